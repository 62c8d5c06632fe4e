//! Blocking collectives on slices.
//!
//! Every process of the communicator must make the same call, with as many elements.

use super::{Element, Mpi, pmpi};
use crate::error::Result;
use crate::handles::Comm;

impl Mpi {
    /// `MPI_Barrier`.
    pub fn barrier(&self, comm: Comm) -> Result<()> {
        pmpi!(self, MPI_Barrier(comm.word()))
    }

    /// `MPI_Bcast`: copies the root's `data` to all.
    pub fn bcast<T: Element>(&self, data: &mut [T], root: i32, comm: Comm) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Bcast", data.len())?;
        pmpi!(self, MPI_Bcast(data.as_mut_ptr(), count, datatype, root, comm.word()))
    }

    /// `MPI_Allreduce` with `MPI_MAX`: the largest of all processes' values.
    pub fn largest<T: Element>(&self, value: T, comm: Comm) -> Result<T> {
        let (mut largest, datatype, max) = (value, T::datatype(self.abi()), self.abi().predefined.op_max);
        pmpi!(self, MPI_Allreduce(&raw const value, &raw mut largest, 1, datatype.word(), max, comm.word()))?;
        Ok(largest)
    }

    /// `MPI_Gather`: the processes' `input` in rank order at the root; nothing elsewhere.
    pub fn gather<T: Element>(&self, input: &[T], root: i32, comm: Comm) -> Result<Vec<T>> {
        let (count, datatype) = self.shape::<T>("MPI_Gather", input.len())?;
        let ranks = if self.comm_rank(comm)? == root { self.comm_size(comm)? as usize } else { 0 };
        let mut all = input.repeat(ranks);
        let (from, to) = (input.as_ptr(), all.as_mut_ptr());
        pmpi!(self, MPI_Gather(from, count, datatype, to, count, datatype, root, comm.word()))?;
        Ok(all)
    }
}
