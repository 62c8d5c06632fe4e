//! The collectives by which MPI libraries make, synchronise and free windows.
//!
//! Recorded below the library by `tests/record/record.sh MPI RANKS windows`, for MPICH 4.0.2 and components of Open MPI 4.1.4. Both make a window on a
//! duplicate of its communicator, and exchange what a network interface needs for access to it. `docs/mixing.md` has what they send beside collectives.
//!
//! Simplified: keys of memory have the length that UCX needs for TCP, and ranks have nodes of their own: on one node, MPICH's `MPI_Win_allocate` first gathers the
//! sizes there. Left out are the addresses that ranks of Open MPI's `ucx` exchange with their first window, and the Barrier of its `rdma` for a hint `no_locks`.

use crate::creations::{Library, Part};
use vef_format::operation::Operation::{
    Allgather, Allgatherv, Allreduce, Barrier, Bcast, ReduceScatterBlock,
};

/// The code that an MPI library has for windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSided {
    /// That of MPICH.
    Mpich,
    /// Component `pt2pt` of Open MPI: messages, which the target answers. The default over Ethernet.
    Pt2pt,
    /// Component `ucx` of Open MPI: the network interface answers. The default over InfiniBand.
    Ucx,
}

impl OneSided {
    /// That of a library whose one-sided requests are answered by the network interface (`hardware`), or by the target.
    pub fn of(library: Library, hardware: bool) -> Self {
        match (library, hardware) {
            (Library::Mpich, _) => Self::Mpich,
            (Library::OpenMpi, false) => Self::Pt2pt,
            (Library::OpenMpi, true) => Self::Ucx,
        }
    }

    /// The collectives of a call of the function `name` (`MPI_Win_create`), over the window's communicator, in order. Before the last one of a fence, all
    /// transfers are complete.
    pub fn agreement(self, name: &str) -> &'static [Part] {
        const MASK: Part = (Allreduce, 260);
        const WORD: Part = (Bcast, 4);
        const BYTE: Part = (Allreduce, 1);
        const ID: Part = (Allreduce, 4);
        const BARRIER: Part = (Barrier, 0);
        match (self, name.strip_suffix("_c").unwrap_or(name)) {
            (Self::Mpich, "MPI_Win_create") => {
                &[MASK, WORD, BYTE, (Allgather, 8), (Allgatherv, 11), (Allgather, 16), BARRIER]
            }
            // The memory has the same address everywhere.
            (Self::Mpich, "MPI_Win_allocate") => &[
                MASK,
                WORD,
                BYTE,
                BYTE,
                (Allreduce, 12),
                (Bcast, 8),
                (Allreduce, 4),
                (Allgather, 8),
                (Allgatherv, 11),
                (Allgather, 16),
                BARRIER,
            ],
            (Self::Mpich, "MPI_Win_allocate_shared") => {
                &[MASK, WORD, BYTE, BYTE, (Allreduce, 12), (Bcast, 8), (Allreduce, 4), BARRIER]
            }
            (Self::Mpich, "MPI_Win_create_dynamic") => &[MASK, WORD, BYTE, BARRIER],
            (Self::Pt2pt, "MPI_Win_create" | "MPI_Win_allocate" | "MPI_Win_create_dynamic") => {
                &[ID, ID, ID, BARRIER]
            }
            (Self::Ucx, "MPI_Win_create" | "MPI_Win_allocate") => &[
                ID,
                ID,
                ID,
                (Allreduce, 16),
                (Allreduce, 4),
                (Allgather, 4),
                (Allgatherv, 46),
                (Allgather, 4),
                BARRIER,
            ],
            (Self::Ucx, "MPI_Win_create_dynamic") => &[
                ID,
                ID,
                ID,
                (Allreduce, 16),
                (Allreduce, 4),
                (Allgather, 4),
                (Allgatherv, 35),
                (Allgather, 4),
                BARRIER,
            ],
            // Of component `sm`, whichever has the other windows.
            (Self::Pt2pt | Self::Ucx, "MPI_Win_allocate_shared") => {
                &[ID, ID, ID, (Allgather, 8), (Bcast, 4136), BARRIER, (Allgather, 4), BARRIER]
            }
            // How many messages each is to expect.
            (Self::Pt2pt, "MPI_Win_fence") => &[(ReduceScatterBlock, 4), BARRIER],
            (Self::Pt2pt | Self::Ucx, "MPI_Win_set_info") => &[],
            _ => &[BARRIER],
        }
    }
}
