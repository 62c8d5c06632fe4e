//! Where a function's arguments are that the built-in tools look at, worked out once from the table of prototypes.

use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category};
use std::sync::OnceLock;

/// The place of an argument; `None`: the function has none such.
type Place = Option<u8>;

/// The places of a function's arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments {
    pub(super) count: Place,
    pub(super) datatype: Place,
    pub(super) dest: Place,
    pub(super) recvcount: Place,
    pub(super) recvtype: Place,
    pub(super) source: Place,
    pub(super) tag: Place,
    pub(super) root: Place,
    pub(super) comm: Place,
    pub(super) sendbuf: Place,
    pub(super) sendcounts: Place,
    pub(super) recvcounts: Place,
    pub(super) sendtypes: Place,
    pub(super) recvtypes: Place,
    pub(super) new_comm: Place,
    pub(super) request: Place,
    pub(super) requests: Place,
    pub(super) length: Place,
    /// Of a partitioned request: how many parts of `count` elements it has.
    pub(super) partitions: Place,
    pub(super) status: Place,
    pub(super) flag: Place,
    pub(super) index: Place,
    pub(super) indices: Place,
    /// A scatter: only its root gives something.
    pub(super) scatters: bool,
    /// An all-to-all: something else to each.
    pub(super) exchanges: bool,
    /// Counts are `MPI_Count`s.
    large: bool,
}

/// The places of the arguments of `call`.
pub(super) fn of(call: Call) -> &'static Arguments {
    static ALL: OnceLock<Vec<Arguments>> = OnceLock::new();
    &ALL.get_or_init(|| Call::all().map(Arguments::find).collect())[call as usize]
}

impl Arguments {
    fn find(call: Call) -> Self {
        let parameters = call.prototype().parameters;
        let place = |names: &[&str]| {
            let found = names.iter().find_map(|name| parameters.iter().position(|p| p.name == *name));
            found.and_then(|place| u8::try_from(place).ok())
        };
        let large = |kind| matches!(kind, Kind::BigCount | Kind::BigCountArray);
        Self {
            count: place(&["count", "sendcount", "origin_count"]),
            datatype: place(&["datatype", "sendtype", "origin_datatype"]),
            dest: place(&["dest"]),
            recvcount: place(&["recvcount", "count"]),
            recvtype: place(&["recvtype", "datatype"]),
            source: place(&["source"]),
            tag: place(&["tag", "recvtag"]),
            root: place(&["root"]),
            comm: place(&["comm", "comm_old", "local_comm", "intercomm"]),
            sendbuf: place(&["sendbuf"]),
            sendcounts: place(&["sendcounts"]),
            recvcounts: place(&["recvcounts"]),
            sendtypes: place(&["sendtypes"]),
            recvtypes: place(&["recvtypes"]),
            new_comm: place(&[
                "newcomm",
                "comm_cart",
                "comm_graph",
                "comm_dist_graph",
                "newintercomm",
                "newintracomm",
            ]),
            request: place(&["request"]),
            requests: place(&["array_of_requests", "request"]),
            length: place(&["incount", "count"]).filter(|_| place(&["array_of_requests"]).is_some()),
            partitions: place(&["partitions"]),
            status: place(&["status", "array_of_statuses"]),
            flag: place(&["flag"]),
            index: place(&["indx", "outcount"]),
            indices: place(&["array_of_indices"]),
            scatters: ["MPI_Scatter", "MPI_Iscatter"].iter().any(|name| call.name().starts_with(name)),
            exchanges: call.name().contains("lltoall"),
            large: parameters.iter().any(|parameter| large(parameter.kind)),
        }
    }

    /// A count of elements; 0 where there is none.
    #[inline]
    pub(super) fn number(&self, words: &[usize], place: Place) -> i64 {
        match place.map(|place| words[usize::from(place)]) {
            None => 0,
            Some(word) if self.large => word as i64,
            Some(word) => i64::from(word as u32 as i32),
        }
    }

    /// Number `index` of an array of counts.
    ///
    /// # Safety
    /// The array must be that long.
    #[inline]
    pub(super) unsafe fn number_at(&self, words: &[usize], place: Place, index: usize) -> i64 {
        let Some(place) = place else { return 0 };
        let address = words[usize::from(place)];
        // SAFETY: the contract.
        unsafe {
            match self.large {
                true => *(address as *const i64).add(index),
                false => i64::from(*(address as *const i32).add(index)),
            }
        }
    }
}

/// A C `int`; 0 where there is none.
#[inline]
pub(super) fn int(words: &[usize], place: Place) -> i32 {
    place.map_or(0, |place| words[usize::from(place)] as u32 as i32)
}

/// A handle; 0 where there is none.
#[inline]
pub(super) fn handle(abi: &Abi, words: &[usize], place: Place) -> usize {
    place.map_or(0, |place| words[usize::from(place)] & abi.handle_mask())
}

/// The word itself; 0 where there is none.
#[inline]
pub(super) fn word(words: &[usize], place: Place) -> usize {
    place.map_or(0, |place| words[usize::from(place)])
}

/// The handle number `index` behind an address; 0 where there is none.
///
/// # Safety
/// There must be one that can be read, or no address.
#[inline]
pub(super) unsafe fn handle_at(abi: &Abi, words: &[usize], place: Place, index: usize) -> usize {
    match word(words, place) {
        0 => 0,
        // SAFETY: the contract.
        address => unsafe { abi.read_handle((address as *const u8).add(index * abi.handle_size)) },
    }
}

/// The `int` number `index` behind an address; 0 where there is none.
///
/// # Safety
/// As [`handle_at`].
#[inline]
pub(super) unsafe fn int_at(words: &[usize], place: Place, index: usize) -> i32 {
    match word(words, place) {
        0 => 0,
        // SAFETY: the contract.
        address => unsafe { *(address as *const i32).add(index) },
    }
}

/// Whether a VEF trace has no record for calls of this kind.
pub(super) fn is_beyond_a_trace(category: Category) -> bool {
    use Category::*;
    matches!(
        category,
        NeighborCollective
            | NeighborCollectiveImmediate
            | NeighborCollectivePersistent
            | Partitioned
            | Rma
            | RmaRequest
            | RmaSync
            | WinCreate
            | WinFree
            | FileOpen
            | Io
            | IoImmediate
            | Process
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_their_names() {
        let send = of(Call::MPI_Send_c);
        let words = [1, 5 << 32 | 7, 2, 3, 4, 6];
        assert_eq!((send.number(&words, send.count), int(&words, send.dest)), (5 << 32 | 7, 3));
        let send = of(Call::MPI_Send);
        assert_eq!(send.number(&words, send.count), 7);
        assert_eq!((send.source, send.root, send.length), (None, None, None));
        let wait = of(Call::MPI_Waitall);
        assert_eq!((wait.length, wait.requests, wait.status), (Some(0), Some(1), Some(2)));
        let gather = of(Call::MPI_Gatherv);
        assert_eq!((gather.count, gather.recvcounts, gather.root), (Some(1), Some(4), Some(7)));
    }
}
