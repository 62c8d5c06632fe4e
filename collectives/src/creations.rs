//! The collectives by which MPI libraries agree on a new communicator, and on a file.
//!
//! Recorded below the library by `tests/record/record.sh MPI RANKS creations`, for MPICH 4.0.2 and Open MPI 4.1.4. MPICH agrees on a
//! context id by an allreduce of a mask of 65 words; rank 0 then broadcasts a word. Open MPI agrees on an id, on its being free
//! everywhere, and on the activation, by an allreduce of a word each. A split first gathers colour and key of all. Both open a file
//! on a duplicate of its communicator. Before they access it together, all gather where each begins and ends.
//!
//! Simplified: what the opening of a file has beyond the duplicate (settings and the file's system), and a collective access beyond the first gathering (`mixer/src/two_phase.rs` has that), which Open MPI has code of its own for, MPICH's broadcast within each part of a split, the edges that `MPI_Dist_graph_create` distributes, and the allreduces of Open MPI, which are a reduction and a broadcast.

use vef_format::operation::Operation;

/// A family of MPI libraries that agree in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// MPICH and the libraries that descend from it.
    #[default]
    Mpich,
    /// Open MPI.
    OpenMpi,
}

/// A collective over all members; each contributes this many bytes.
pub type Part = (Operation, u64);

/// What Open MPI gathers before a collective access to a file that three ranks or more have opened.
pub const OPENMPI_ACCESS: Part = (Operation::Allgather, 32);

impl Library {
    /// The library that calls itself this ([`MPI_Get_library_version`](https://www.mpi-forum.org/docs/mpi-4.0/mpi40-report.pdf)).
    pub fn named(version: &str) -> Self {
        let of_openmpi = ["Open MPI", "IBM Spectrum MPI", "FUJITSU MPI"];
        if of_openmpi.iter().any(|name| version.contains(name)) { Self::OpenMpi } else { Self::Mpich }
    }

    /// The collectives of a call of the function `name` (`MPI_Comm_dup`), over the communicator that it creates something from, in
    /// order; empty: none are known. Of a non-blocking call the first one stands for all.
    pub fn agreement(self, name: &str) -> &'static [Part] {
        use Operation::{Allgather, Allreduce, Barrier, Bcast, Gather, ReduceScatterBlock, Scatter};
        const MASK: Part = (Allreduce, 260);
        const WORD: Part = (Bcast, 4);
        const ID: Part = (Allreduce, 4);
        match (self, name.strip_suffix("_c").unwrap_or(name)) {
            (Self::Mpich, name) if is_plain(name) => &[MASK, WORD],
            (Self::Mpich, "MPI_File_open") => &[MASK, WORD],
            (Self::Mpich, "MPI_File_set_view") => &[(Allreduce, 4), (Barrier, 0)],
            (Self::Mpich, "MPI_File_close") => &[(Barrier, 0)],
            (Self::Mpich, "MPI_File_set_size") => &[(Allreduce, 8), (Allreduce, 8), WORD],
            (Self::Mpich, "MPI_File_preallocate") => &[(Allreduce, 8), (Allreduce, 8), (Barrier, 0)],
            (Self::Mpich, "MPI_File_seek_shared") => &[WORD, (Bcast, 8), (Barrier, 0)],
            // And a broadcast of a word for each hint that it knows.
            (Self::Mpich, "MPI_File_set_info") => &[(Allreduce, 4)],
            (_, "MPI_File_set_atomicity") => &[WORD],
            (Self::OpenMpi, "MPI_File_set_size") => &[(Bcast, 8), WORD, (Barrier, 0)],
            (Self::OpenMpi, "MPI_File_preallocate") => &[(Bcast, 8), WORD],
            (Self::OpenMpi, "MPI_File_seek_shared" | "MPI_File_sync") => &[(Barrier, 0)],
            // In the first half of a split access is all of it.
            (
                Self::Mpich,
                "MPI_File_read_all"
                | "MPI_File_read_at_all"
                | "MPI_File_read_ordered"
                | "MPI_File_write_all"
                | "MPI_File_write_at_all"
                | "MPI_File_write_ordered"
                | "MPI_File_read_all_begin"
                | "MPI_File_read_at_all_begin"
                | "MPI_File_read_ordered_begin"
                | "MPI_File_write_all_begin"
                | "MPI_File_write_at_all_begin"
                | "MPI_File_write_ordered_begin",
            ) => &[(Allgather, 8), (Allgather, 8)],
            (
                Self::OpenMpi,
                "MPI_File_read_all" | "MPI_File_read_at_all" | "MPI_File_write_all" | "MPI_File_write_at_all",
            ) => &[OPENMPI_ACCESS],
            // The first rank gives each one its place. Split accesses are otherwise one of each rank.
            (Self::OpenMpi, "MPI_File_read_ordered" | "MPI_File_write_ordered") => {
                &[(Gather, 8), (Scatter, 8), OPENMPI_ACCESS]
            }
            (Self::OpenMpi, "MPI_File_read_ordered_begin" | "MPI_File_write_ordered_begin") => {
                &[(Gather, 8), (Scatter, 8)]
            }
            // Everybody exchanges empty messages with everybody.
            (Self::OpenMpi, "MPI_Comm_disconnect") => &[(Barrier, 0)],
            (Self::OpenMpi, "MPI_File_open") => &[ID, ID, ID],
            (Self::OpenMpi, "MPI_File_set_view") => &[(Allreduce, 24), (Barrier, 0)],
            (Self::OpenMpi, "MPI_File_close") => &[(Barrier, 0), (Barrier, 0), (Barrier, 0)],
            (Self::Mpich, "MPI_Comm_split" | "MPI_Cart_sub") => &[(Allgather, 8), MASK],
            (Self::Mpich, "MPI_Comm_split_type") => &[(Allgather, 8), MASK, (Allgather, 8), MASK],
            (Self::Mpich, "MPI_Dist_graph_create") => &[MASK, WORD, (ReduceScatterBlock, 8)],
            (Self::OpenMpi, "MPI_Dist_graph_create") => &[ID, ID, ID],
            (Self::OpenMpi, name) if is_plain(name) => &[ID, ID, ID],
            (Self::OpenMpi, "MPI_Comm_split" | "MPI_Cart_sub") => &[(Allgather, 8), ID, ID, ID],
            // First they make sure that all ask for the same kind.
            (Self::OpenMpi, "MPI_Comm_split_type") => &[(Allreduce, 16), (Allgather, 8), ID, ID, ID],
            _ => &[],
        }
    }
}

/// Whether a call makes a communicator, and agrees on nothing else.
fn is_plain(name: &str) -> bool {
    matches!(
        name,
        "MPI_Comm_dup"
            | "MPI_Comm_dup_with_info"
            | "MPI_Comm_idup"
            | "MPI_Comm_idup_with_info"
            | "MPI_Comm_create"
            | "MPI_Comm_create_group"
            | "MPI_Comm_create_from_group"
            | "MPI_Intercomm_merge"
            | "MPI_Cart_create"
            | "MPI_Graph_create"
            | "MPI_Dist_graph_create_adjacent"
    )
}
