//! Blocking collectives on slices.
//!
//! Every process of the communicator must make the same call. The standard defines the lengths that each must pass; a
//! slice that is too short for this process's own arguments fails with [`Error::ShortBuffer`] before MPI is called.

use super::{Element, Mpi, int, pmpi};
use crate::error::{Error, Result};
use crate::handles::Comm;

/// What a reduction does with the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `MPI_SUM`.
    Sum,
    /// `MPI_MAX`.
    Max,
    /// `MPI_MIN`.
    Min,
}

/// Reductions whose result has the length of the input and goes to every process.
macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident $name:ident;)*) => { $(
        $(#[$doc])*
        pub fn $method<T: Element>(
            &self,
            input: &[T],
            output: &mut [T],
            operation: Reduction,
            comm: Comm,
        ) -> Result<()> {
            let (count, datatype) = self.shape::<T>(stringify!($name), input.len())?;
            room(stringify!($name), Some(output), input.len())?;
            let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.op(operation));
            pmpi!(self, $name(from, to, count, datatype, op, comm.word()))
        }
    )* };
}

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

    reductions! {
        /// `MPI_Allreduce`: element-wise; every process gets the result.
        allreduce MPI_Allreduce;
        /// `MPI_Scan`: element-wise over the ranks up to this one.
        scan MPI_Scan;
    }

    /// `MPI_Gather`: concatenates the processes' `input` into the root's `output`, in rank order.
    pub fn gather<T: Element>(
        &self,
        input: &[T],
        output: Option<&mut [T]>,
        root: i32,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Gather", input.len())?;
        if self.comm_rank(comm)? == root {
            room("MPI_Gather", output.as_deref(), self.times_size(input.len(), comm)?)?;
        }
        let (from, to) = (input.as_ptr(), start(output));
        pmpi!(self, MPI_Gather(from, count, datatype, to, count, datatype, root, comm.word()))
    }

    /// The count and the datatype of a slice, as arguments.
    fn shape<T: Element>(&self, function: &'static str, count: usize) -> Result<(i32, usize)> {
        Ok((int(function, "count", count)?, T::datatype(self.abi()).word()))
    }

    pub(super) fn op(&self, operation: Reduction) -> usize {
        let handles = &self.abi().predefined;
        match operation {
            Reduction::Sum => handles.op_sum,
            Reduction::Max => handles.op_max,
            Reduction::Min => handles.op_min,
        }
    }

    fn times_size(&self, count: usize, comm: Comm) -> Result<usize> {
        Ok(count.saturating_mul(usize::try_from(self.comm_size(comm)?).unwrap_or(0)))
    }
}

/// Fails if a slice is missing or shorter than `needed` elements.
fn room<T>(function: &'static str, slice: Option<&[T]>, needed: usize) -> Result<()> {
    let given = slice.map_or(0, <[T]>::len);
    if given < needed { Err(Error::ShortBuffer { function, given, needed }) } else { Ok(()) }
}

/// The address of a slice; null if there is none.
fn start<T>(slice: Option<&mut [T]>) -> *mut T {
    slice.map_or(std::ptr::null_mut(), <[T]>::as_mut_ptr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_buffer_is_a_short_one() {
        assert!(room::<u8>("MPI_Gather", None, 1).is_err());
        assert_eq!(room::<u8>("MPI_Gather", None, 0), Ok(()));
        assert!(start::<u8>(None).is_null());
    }
}
