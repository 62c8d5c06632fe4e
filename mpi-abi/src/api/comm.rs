//! Communicators: ranks and sizes, and making them.

use super::{Mpi, int, pmpi};
use crate::error::Result;
use crate::handles::Comm;

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
        self.number(|rank| pmpi!(self, MPI_Comm_rank(comm.word(), rank)))
    }

    /// `MPI_Comm_size`: of an intercommunicator, the size of the local group.
    pub fn comm_size(&self, comm: Comm) -> Result<i32> {
        self.number(|size| pmpi!(self, MPI_Comm_size(comm.word(), size)))
    }

    /// `MPI_Comm_dup`. Collective.
    pub fn comm_dup(&self, comm: Comm) -> Result<Comm> {
        self.handle(|new| pmpi!(self, MPI_Comm_dup(comm.word(), new)))
    }

    /// `MPI_Comm_split`. Collective; returns `None` on a process without a color.
    pub fn comm_split(&self, comm: Comm, split: Split) -> Result<Option<Comm>> {
        let color = split.color.unwrap_or(self.abi().constants.undefined);
        let new: Comm = self.handle(|new| pmpi!(self, MPI_Comm_split(comm.word(), color, split.key, new)))?;
        Ok((new.word() != self.abi().predefined.comm_null).then_some(new))
    }

    /// `MPI_Cart_create` without reordering: a grid of extents `dims`, periodic in all dimensions. Collective.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call), for example if the grid is larger than `comm`.
    pub fn cart_create(&self, comm: Comm, dims: &[i32]) -> Result<Comm> {
        let periods = vec![1i32; dims.len()];
        let count = int("MPI_Cart_create", "dimensions", dims.len())?;
        self.handle(|new| {
            pmpi!(self, MPI_Cart_create(comm.word(), count, dims.as_ptr(), periods.as_ptr(), 0i32, new))
        })
    }
}
