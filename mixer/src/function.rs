//! The MPI functions that notes name.

use std::sync::LazyLock;
use vef_format::capture::event::{Collective, Send};
use vef_format::operation::Operation;

/// An MPI function that makes records: twice the index of its name, plus one if it is non-blocking.
///
/// A capture's call table names it. In the older layout, without a table, it follows from the kind of event: all waits are `MPI_Wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function(u16);

/// The first names: those of sends, by mode, then others. Those of collectives follow, by operation.
const NAMES: [&str; 117] = [
    "Send",
    "Bsend",
    "Ssend",
    "Rsend",
    "Recv",
    "Sendrecv",
    "Wait",
    "Finalize",
    "Waitall",
    "Waitany",
    "Waitsome",
    "Test",
    "Testall",
    "Testany",
    "Testsome",
    "Start",
    "Startall",
    "Sendrecv_replace",
    "Mrecv",
    "Session_finalize",
    "Probe",
    "Mprobe",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_idup",
    "Comm_idup_with_info",
    "Comm_create",
    "Comm_create_group",
    "Comm_create_from_group",
    "Comm_split",
    "Comm_split_type",
    "Cart_create",
    "Cart_sub",
    "Graph_create",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Intercomm_merge",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
    "Get",
    "Put",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
    "Rput",
    "Rget",
    "Raccumulate",
    "Rget_accumulate",
    "Win_create",
    "Win_allocate",
    "Win_allocate_shared",
    "Win_create_dynamic",
    "Win_free",
    "Win_fence",
    "Win_post",
    "Win_start",
    "Win_complete",
    "Win_wait",
    "Win_test",
    "Win_lock",
    "Win_unlock",
    "Win_unlock_all",
    "Win_flush",
    "Win_flush_all",
    "Win_flush_local",
    "Win_flush_local_all",
    "File_open",
    "File_set_view",
    "File_close",
    "File_read",
    "File_read_at",
    "File_read_all",
    "File_read_at_all",
    "File_read_shared",
    "File_read_ordered",
    "File_iread",
    "File_iread_at",
    "File_iread_all",
    "File_iread_at_all",
    "File_iread_shared",
    "File_read_all_begin",
    "File_read_at_all_begin",
    "File_read_ordered_begin",
    "File_write",
    "File_write_at",
    "File_write_all",
    "File_write_at_all",
    "File_write_shared",
    "File_write_ordered",
    "File_iwrite",
    "File_iwrite_at",
    "File_iwrite_all",
    "File_iwrite_at_all",
    "File_iwrite_shared",
    "File_write_all_begin",
    "File_write_at_all_begin",
    "File_write_ordered_begin",
    "Pready",
    "Pready_range",
    "Pready_list",
    "Parrived",
    "Intercomm_create",
    "Comm_spawn",
    "Comm_spawn_multiple",
    "Comm_accept",
    "Comm_connect",
    "Comm_disconnect",
    "Init",
    "Init_thread",
    "File_set_size",
    "File_preallocate",
    "File_seek_shared",
    "File_sync",
];

impl Function {
    pub(crate) const RECEIVE: Self = Self(2 * 4);
    pub(crate) const EXCHANGE: Self = Self(2 * 5);
    pub(crate) const WAIT: Self = Self(2 * 6);
    pub(crate) const FINALIZE: Self = Self(2 * 7);
    pub(crate) const PROBE: Self = Self(2 * 20);
    pub(crate) const CREATION: Self = Self(2 * 22);
    pub(crate) const GET: Self = Self(2 * 42);

    /// That of a send.
    #[inline(always)]
    pub(crate) fn send(send: &Send) -> Self {
        Self(2 * send.mode as u16 + u16::from(send.request.is_some()))
    }

    /// That of a collective.
    pub(crate) fn collective(call: &Collective<'_>) -> Self {
        Self(2 * (NAMES.len() as u16 + call.operation as u16) + u16::from(call.request.is_some()))
    }

    /// That of a name in a call table; a function with large counts is the same as without, and one that makes a persistent request is the
    /// same as the blocking one.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.strip_suffix("_c").unwrap_or(name);
        let name = name.strip_suffix("_init").unwrap_or(name);
        (0..).zip(Self::names()).find(|(_, known)| *known == name).map(|(number, _)| Self(number))
    }

    /// Its number, which is small.
    #[inline(always)]
    pub(crate) fn number(self) -> usize {
        self.0.into()
    }

    /// The names of all functions, by number.
    pub(crate) fn names() -> &'static [String] {
        static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
            (0..2 * (NAMES.len() + Operation::ALL.len()))
                .map(|number| Function(number as u16).name())
                .collect()
        });
        &ALL
    }

    /// Its name.
    pub(crate) fn name(self) -> String {
        let at = usize::from(self.0 / 2);
        let name = NAMES.get(at).copied().unwrap_or_else(|| Operation::ALL[at - NAMES.len()].name());
        match self.0 % 2 {
            0 => format!("MPI_{name}"),
            _ => format!("MPI_I{}", name.to_ascii_lowercase()),
        }
    }
}
