//! Collective operations: blocking, non-blocking and persistent, with one count for all or one a peer.
//!
//! Amounts are those of [`Amounts`]. Where a call says the same size twice (its own block of an Allgather: as what it sends
//! and as one of those it receives), the receiving side is asked, because with `MPI_IN_PLACE` only that one is significant.

use crate::comms::Comm;
use crate::requests::{CollectiveTemplate, Template};
use crate::shapes::Key;
use crate::types::Type;
use crate::wrap::{Args, Done, Language, Row, alike, find, pend_like, simply, simply_even_paused};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::Call;
use vef_format::capture::event::{Action, Collective, DatatypeId};
use vef_format::ids::CommRank;
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

macro_rules! operations {
    ($($operation:ident: $($call:ident)+;)*) => {
        /// The operation of a function.
        pub(crate) const fn operation(call: Call) -> Option<Operation> {
            match call {
                $($(Call::$call)|+ => Some(Operation::$operation),)*
                _ => None,
            }
        }
    };
}
operations! {
    Bcast: MPI_Bcast MPI_Bcast_c MPI_Ibcast MPI_Ibcast_c MPI_Bcast_init MPI_Bcast_init_c;
    Reduce: MPI_Reduce MPI_Reduce_c MPI_Ireduce MPI_Ireduce_c MPI_Reduce_init MPI_Reduce_init_c;
    Allreduce: MPI_Allreduce MPI_Allreduce_c MPI_Iallreduce MPI_Iallreduce_c MPI_Allreduce_init MPI_Allreduce_init_c;
    Gather: MPI_Gather MPI_Gather_c MPI_Igather MPI_Igather_c MPI_Gather_init MPI_Gather_init_c;
    Scatter: MPI_Scatter MPI_Scatter_c MPI_Iscatter MPI_Iscatter_c MPI_Scatter_init MPI_Scatter_init_c;
    Allgather: MPI_Allgather MPI_Allgather_c MPI_Iallgather MPI_Iallgather_c MPI_Allgather_init MPI_Allgather_init_c;
    Barrier: MPI_Barrier MPI_Ibarrier MPI_Barrier_init;
    Alltoall: MPI_Alltoall MPI_Alltoall_c MPI_Ialltoall MPI_Ialltoall_c MPI_Alltoall_init MPI_Alltoall_init_c;
    Gatherv: MPI_Gatherv MPI_Gatherv_c MPI_Igatherv MPI_Igatherv_c MPI_Gatherv_init MPI_Gatherv_init_c;
    Scatterv: MPI_Scatterv MPI_Scatterv_c MPI_Iscatterv MPI_Iscatterv_c MPI_Scatterv_init MPI_Scatterv_init_c;
    Allgatherv: MPI_Allgatherv MPI_Allgatherv_c MPI_Iallgatherv MPI_Iallgatherv_c MPI_Allgatherv_init
        MPI_Allgatherv_init_c;
    Alltoallv: MPI_Alltoallv MPI_Alltoallv_c MPI_Ialltoallv MPI_Ialltoallv_c MPI_Alltoallv_init MPI_Alltoallv_init_c;
    Alltoallw: MPI_Alltoallw MPI_Alltoallw_c MPI_Ialltoallw MPI_Ialltoallw_c MPI_Alltoallw_init MPI_Alltoallw_init_c;
    ReduceScatter: MPI_Reduce_scatter MPI_Reduce_scatter_c MPI_Ireduce_scatter MPI_Ireduce_scatter_c
        MPI_Reduce_scatter_init MPI_Reduce_scatter_init_c;
    ReduceScatterBlock: MPI_Reduce_scatter_block MPI_Reduce_scatter_block_c MPI_Ireduce_scatter_block
        MPI_Ireduce_scatter_block_c MPI_Reduce_scatter_block_init MPI_Reduce_scatter_block_init_c;
    Scan: MPI_Scan MPI_Scan_c MPI_Iscan MPI_Iscan_c MPI_Scan_init MPI_Scan_init_c;
    Exscan: MPI_Exscan MPI_Exscan_c MPI_Iexscan MPI_Iexscan_c MPI_Exscan_init MPI_Exscan_init_c;
}

/// When the operation happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// In the call.
    Blocking,
    /// From the call to its completion.
    Immediate,
    /// Whenever it is started.
    Persistent,
}

/// Blocking, one count for all.
#[allow(non_snake_case)]
pub(crate) fn Collective<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    alike::<R, L, N, _>(
        words,
        next,
        |_, _, _| (),
        |args| Some(collective_key(args)),
        |_, _, _, _| (),
        |done, args, key| record(done, args, Kept::Blocking, key),
    )
}

/// Non-blocking, one count for all.
#[allow(non_snake_case)]
pub(crate) fn CollectiveImmediate<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    alike::<R, L, N, _>(
        words,
        next,
        |_, _, _| (),
        |args| Some(collective_key(args)),
        pend_like,
        |done, args, key| record(done, args, Kept::Immediate, key),
    )
}

/// Blocking, with counts.
#[allow(non_snake_case)]
pub(crate) fn VectorCollective<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply::<R, L, N>(words, next, |done, args| record(done, args, Kept::Blocking, None))
}

/// Non-blocking, with counts.
#[allow(non_snake_case)]
pub(crate) fn VectorCollectiveImmediate<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply::<R, L, N>(words, next, |done, args| record(done, args, Kept::Immediate, None))
}

/// Persistent, all functions.
#[allow(non_snake_case)]
pub(crate) fn CollectivePersistent<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply_even_paused::<R, L, N>(words, next, |done, args| record(done, args, Kept::Persistent, None))
}

/// What a call of this rank moves.
struct Moved {
    amounts: Amounts,
    datatype: DatatypeId,
}

type CollectiveKey = Key<3, 2, 1>;

/// What tells a call without lists from others of its function. Arguments that are not significant at this rank are in it, too.
#[inline(always)]
pub(crate) fn collective_key<R: Row, L: Language>(args: &Args<'_, R, L>) -> CollectiveKey {
    macro_rules! if_any {
        ($value:expr, $($name:literal)|+) => {
            if const { find(R::NAMES, &[$($name),+]).is_some() } { $value } else { 0 }
        };
    }
    Key {
        handles: [
            args.raw_comm(),
            if_any!(args.raw_datatype(), "datatype" | "sendtype"),
            if_any!(args.raw_recvtype(), "recvtype"),
        ],
        counts: [if_any!(args.count(), "count" | "sendcount"), if_any!(args.recvcount(), "recvcount")],
        ints: [if_any!(args.root(), "root")],
    }
}

fn record<R: Row, L: Language>(
    done: &mut Done<'_>,
    args: &Args<'_, R, L>,
    kept: Kept,
    key: Option<&CollectiveKey>,
) {
    let found = const { operation(R::CALL) };
    let Some(operation) = found else { return };
    let comm = done.comm(args.comm());
    let rooted = const { find(R::NAMES, &["root"]).is_some() };
    let root = if rooted { args.root() } else { 0 };
    // Between the two groups of an inter-communicator the same arguments mean something else.
    if comm.foreign {
        let bytes = super::sent_between_groups(done, args);
        return done.put_other(bytes);
    }
    done.lane.scratch.send_counts.clear();
    done.lane.scratch.recv_counts.clear();
    let moved = measure(done, args, operation, comm, rooted && root == comm.rank);
    let (count, datatype, recv_datatype) = counted(done, args, operation, rooted && root == comm.rank);
    let send_counts = std::mem::take(&mut done.lane.scratch.send_counts);
    let recv_counts = std::mem::take(&mut done.lane.scratch.recv_counts);
    let request = done.next_request();
    let part = Collective {
        operation,
        comm: comm.id,
        root: rooted.then_some(CommRank(root as u32)),
        amounts: moved.amounts,
        count,
        datatype: datatype.unwrap_or(moved.datatype),
        recv_datatype,
        request: (kept == Kept::Immediate).then_some(request),
        send_counts: &send_counts,
        recv_counts: &recv_counts,
    };
    match kept {
        Kept::Blocking => done.put_first::<R, L>(key, &Action::Collective(part), 0),
        Kept::Immediate => {
            done.put_first::<R, L>(key, &Action::Collective(part), 0);
            done.pend(args, args.request(), request, 0);
        }
        Kept::Persistent => {
            done.keep_template(args, Template::Collective(Box::new(CollectiveTemplate::new(&part))));
        }
    }
    done.lane.scratch.send_counts = send_counts;
    done.lane.scratch.recv_counts = recv_counts;
}

/// Elements as the call counts them, and the datatypes of both sides where those are not what the amounts are made of.
fn counted<R: Row, L: Language>(
    done: &mut Done<'_>,
    args: &Args<'_, R, L>,
    operation: Operation,
    at_root: bool,
) -> (u64, Option<DatatypeId>, Option<DatatypeId>) {
    let elements = |count: i64| u64::try_from(count).unwrap_or(0);
    let has = |names: &[&str]| find(R::NAMES, names).is_some();
    let in_place = has(&["sendbuf"]) && L::is_in_place(args.abi, args.sendbuf());
    match operation {
        Operation::Gather | Operation::Allgather | Operation::Alltoall
            if (at_root || operation != Operation::Gather) && !in_place =>
        {
            let (sent, received) = (done.datatype(args.datatype()).id, done.datatype(args.recvtype()).id);
            (elements(args.count()), Some(sent), Some(received))
        }
        Operation::Gather if at_root => (elements(args.recvcount()), None, None),
        Operation::Allgather | Operation::Alltoall | Operation::ReduceScatterBlock => {
            (elements(args.recvcount()), None, None)
        }
        Operation::Scatter | Operation::Scatterv if !at_root => (elements(args.recvcount()), None, None),
        _ if has(&["count", "sendcount"]) => (elements(args.count()), None, None),
        _ => (0, None, None),
    }
}

/// The amounts of this rank, and in the scratch lists its counts by peer.
#[inline(always)]
fn measure<R: Row, L: Language>(
    done: &mut Done<'_>,
    args: &Args<'_, R, L>,
    operation: Operation,
    comm: Comm,
    at_root: bool,
) -> Moved {
    let others = i64::from(comm.size) - 1;
    let all = i64::from(comm.size);
    let moved = |datatype: Type, send: Bytes, recv: Bytes| Moved {
        amounts: Amounts { send, recv },
        datatype: datatype.id,
    };
    let none = Bytes::ZERO;
    match operation {
        Operation::Barrier => Moved { amounts: Amounts::default(), datatype: DatatypeId::default() },
        Operation::Bcast => {
            let datatype = done.datatype(args.datatype());
            let bytes = datatype.bytes(args.count());
            if at_root { moved(datatype, bytes, none) } else { moved(datatype, none, bytes) }
        }
        Operation::Reduce => {
            let datatype = done.datatype(args.datatype());
            let bytes = datatype.bytes(args.count());
            if at_root { moved(datatype, none, bytes) } else { moved(datatype, bytes, none) }
        }
        Operation::Allreduce | Operation::Scan | Operation::Exscan => {
            let datatype = done.datatype(args.datatype());
            let bytes = datatype.bytes(args.count());
            moved(datatype, bytes, bytes)
        }
        Operation::Gather if at_root => {
            let datatype = done.datatype(args.recvtype());
            moved(datatype, none, datatype.bytes(others.saturating_mul(args.recvcount())))
        }
        Operation::Gather | Operation::Gatherv if !at_root => {
            let datatype = done.datatype(args.datatype());
            moved(datatype, datatype.bytes(args.count()), none)
        }
        Operation::Gatherv => {
            let datatype = done.datatype(args.recvtype());
            let (sum, own) = done.recv_counts(args, datatype, comm);
            moved(datatype, none, sum - own)
        }
        Operation::Scatter if at_root => {
            let datatype = done.datatype(args.datatype());
            moved(datatype, datatype.bytes(others.saturating_mul(args.count())), none)
        }
        Operation::Scatter | Operation::Scatterv if !at_root => {
            let datatype = done.datatype(args.recvtype());
            moved(datatype, none, datatype.bytes(args.recvcount()))
        }
        Operation::Scatterv => {
            let datatype = done.datatype(args.datatype());
            let (sum, own) = done.send_counts(args, datatype, comm);
            moved(datatype, sum - own, none)
        }
        Operation::Allgather => {
            let datatype = done.datatype(args.recvtype());
            let block = args.recvcount();
            moved(datatype, datatype.bytes(block), datatype.bytes(all.saturating_mul(block)))
        }
        Operation::Allgatherv => {
            let datatype = done.datatype(args.recvtype());
            let (sum, own) = done.recv_counts(args, datatype, comm);
            moved(datatype, own, sum)
        }
        Operation::Alltoall => {
            let datatype = done.datatype(args.recvtype());
            let bytes = datatype.bytes(all.saturating_mul(args.recvcount()));
            moved(datatype, bytes, bytes)
        }
        Operation::Alltoallv => {
            let datatype = done.datatype(args.recvtype());
            let (recv, _) = done.recv_counts(args, datatype, comm);
            if L::is_in_place(args.abi, args.sendbuf()) {
                done.send_like_recv();
                return moved(datatype, recv, recv);
            }
            let datatype = done.datatype(args.datatype());
            let (send, _) = done.send_counts(args, datatype, comm);
            moved(datatype, send, recv)
        }
        Operation::Alltoallw => {
            let recv = done.typed_counts(args, args.recvcounts(), args.recvtypes(), comm, false);
            if L::is_in_place(args.abi, args.sendbuf()) {
                done.send_like_recv();
                return moved(Type::default(), recv, recv);
            }
            let send = done.typed_counts(args, args.sendcounts(), args.sendtypes(), comm, true);
            moved(Type::default(), send, recv)
        }
        Operation::ReduceScatter => {
            let datatype = done.datatype(args.datatype());
            let (sum, own) = done.recv_counts(args, datatype, comm);
            moved(datatype, sum, own)
        }
        Operation::ReduceScatterBlock => {
            let datatype = done.datatype(args.datatype());
            let block = args.recvcount();
            moved(datatype, datatype.bytes(all.saturating_mul(block)), datatype.bytes(block))
        }
        // Both branches of each are above; the compiler does not see it.
        Operation::Gather | Operation::Scatter => moved(Type::default(), none, none),
    }
}

impl Done<'_> {
    /// Fills the list of bytes from each peer; gives their sum and this rank's own.
    fn recv_counts<R: Row, L: Language>(
        &mut self,
        args: &Args<'_, R, L>,
        datatype: Type,
        comm: Comm,
    ) -> (Bytes, Bytes) {
        let array = args.recvcounts();
        fill(&mut self.lane.scratch.recv_counts, comm, |i| datatype.bytes(args.number_at(array, i)))
    }

    /// As [`Done::recv_counts`], of bytes to each peer.
    fn send_counts<R: Row, L: Language>(
        &mut self,
        args: &Args<'_, R, L>,
        datatype: Type,
        comm: Comm,
    ) -> (Bytes, Bytes) {
        let array = args.sendcounts();
        fill(&mut self.lane.scratch.send_counts, comm, |i| datatype.bytes(args.number_at(array, i)))
    }

    /// With a datatype a peer.
    fn typed_counts<R: Row, L: Language>(
        &mut self,
        args: &Args<'_, R, L>,
        counts: usize,
        types: usize,
        comm: Comm,
        sending: bool,
    ) -> Bytes {
        let scratch = &mut self.lane.scratch;
        let list = if sending { &mut scratch.send_counts } else { &mut scratch.recv_counts };
        let mut list = std::mem::take(list);
        let (sum, _) = fill(&mut list, comm, |i| {
            // A type that goes with no elements need not be one.
            match args.number_at(counts, i) {
                0 => Bytes::ZERO,
                count => self.datatype(args.handle_at(Kind::DatatypeArray, types, i)).bytes(count),
            }
        });
        let scratch = &mut self.lane.scratch;
        *(if sending { &mut scratch.send_counts } else { &mut scratch.recv_counts }) = list;
        sum
    }

    /// `MPI_IN_PLACE`: what is sent is as long as what is received.
    fn send_like_recv(&mut self) {
        let scratch = &mut self.lane.scratch;
        scratch.send_counts.clear();
        scratch.send_counts.extend_from_slice(&scratch.recv_counts);
    }
}

/// The bytes for each member, their sum and that of this rank.
fn fill(list: &mut Vec<u64>, comm: Comm, mut bytes: impl FnMut(usize) -> Bytes) -> (Bytes, Bytes) {
    list.clear();
    list.extend((0..comm.size as usize).map(|i| bytes(i).0));
    let own = list.get(comm.rank as usize).copied().unwrap_or(0);
    (Bytes(list.iter().fold(0, |sum, &bytes| sum.wrapping_add(bytes))), Bytes(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::prototypes::Category;

    #[test]
    fn every_collective_function_has_its_operation() {
        use Category::*;
        for call in Call::all() {
            let is_collective = matches!(
                call.category(),
                Collective
                    | CollectiveImmediate
                    | CollectivePersistent
                    | VectorCollective
                    | VectorCollectiveImmediate
                    | VectorCollectivePersistent
            );
            assert_eq!(operation(call).is_some(), is_collective, "{}", call.name());
            if let Some(operation) = operation(call) {
                let stem = call.name().trim_end_matches("_c").trim_end_matches("_init").to_lowercase();
                let plain = operation.name().to_lowercase();
                assert!(stem == format!("mpi_{plain}") || stem == format!("mpi_i{plain}"), "{}", call.name());
            }
        }
    }
}
