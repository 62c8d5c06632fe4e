//! Communicators: ranks and sizes, and making them.

use super::{Mpi, pmpi};
use crate::error::Result;
use crate::handles::Comm;
use std::ffi::c_int;

/// The color and the key of `MPI_Comm_split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Processes with the same color get the same communicator; `None`: `MPI_UNDEFINED`.
    pub color: Option<i32>,
    /// The order of ranks in the new communicator.
    pub key: i32,
}

impl Mpi {
    /// `MPI_Comm_rank`.
    pub fn comm_rank(&self, comm: Comm) -> Result<i32> {
        let mut rank: c_int = 0;
        pmpi!(self, MPI_Comm_rank(comm.word(), &raw mut rank))?;
        Ok(rank)
    }

    /// `MPI_Comm_size`: of an intercommunicator, the size of the local group.
    pub fn comm_size(&self, comm: Comm) -> Result<i32> {
        let mut size: c_int = 0;
        pmpi!(self, MPI_Comm_size(comm.word(), &raw mut size))?;
        Ok(size)
    }

    /// `MPI_Comm_dup`. Collective.
    pub fn comm_dup(&self, comm: Comm) -> Result<Comm> {
        self.new_comm(|word| pmpi!(self, MPI_Comm_dup(comm.word(), word)))
    }

    /// `MPI_Comm_split`. Collective; returns `None` on a process without a color.
    pub fn comm_split(&self, comm: Comm, split: Split) -> Result<Option<Comm>> {
        let color = split.color.unwrap_or(self.abi().constants.undefined);
        let new = self.new_comm(|word| pmpi!(self, MPI_Comm_split(comm.word(), color, split.key, word)))?;
        Ok((new.word() != self.abi().predefined.comm_null).then_some(new))
    }

    pub(super) fn new_comm(&self, make: impl FnOnce(*mut usize) -> Result<()>) -> Result<Comm> {
        let mut word = 0usize;
        make(&raw mut word)?;
        // SAFETY: the call succeeded and wrote a communicator.
        Ok(unsafe { Comm::from_word(self.abi().read_handle((&raw const word).cast())) })
    }
}
