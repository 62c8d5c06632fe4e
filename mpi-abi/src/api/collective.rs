//! Blocking collectives on slices.
//!
//! Every process of the communicator must make the same call. The standard defines the lengths that each must pass; a
//! slice that is too short for this process's own arguments fails with [`Error::ShortBuffer`] before MPI is called.

use super::{Element, Mpi, int, pmpi};
use crate::error::{Error, Result};
use crate::handles::{Comm, Datatype, Op};

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
            room(stringify!($name), output, input.len())?;
            let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.reduction(operation).word());
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
        let output = output.unwrap_or_default();
        if self.comm_rank(comm)? == root {
            room("MPI_Gather", output, input.len().saturating_mul(self.comm_size(comm)? as usize))?;
        }
        let (from, to) = (input.as_ptr(), output.as_mut_ptr());
        pmpi!(self, MPI_Gather(from, count, datatype, to, count, datatype, root, comm.word()))
    }

    /// The count and the datatype of a slice, as arguments.
    fn shape<T: Element>(&self, function: &'static str, count: usize) -> Result<(i32, usize)> {
        Ok((int(function, "count", count)?, T::datatype(self.abi()).word()))
    }

    /// The handle of a predefined reduction.
    pub fn reduction(&self, operation: Reduction) -> Op {
        let handles = &self.abi().predefined;
        let word = match operation {
            Reduction::Sum => handles.op_sum,
            Reduction::Max => handles.op_max,
            Reduction::Min => handles.op_min,
        };
        // SAFETY: what the ABI says it is.
        unsafe { Op::from_word(word) }
    }

    /// `MPI_Reduce_local` on memory: `into` = `from` ⊕ `into`.
    ///
    /// # Safety
    /// Both must hold `count` elements of `datatype`, aligned for it, and not overlap; `op` must be defined for it.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub unsafe fn reduce_local(
        &self,
        from: *const u8,
        into: *mut u8,
        count: usize,
        (datatype, op): (Datatype, Op),
    ) -> Result<()> {
        let count = int("MPI_Reduce_local", "count", count)?;
        pmpi!(self, MPI_Reduce_local(from, into, count, datatype.word(), op.word()))
    }
}

/// Fails if a slice is shorter than `needed` elements.
fn room<T>(function: &'static str, slice: &[T], needed: usize) -> Result<()> {
    let given = slice.len();
    if given < needed { Err(Error::ShortBuffer { function, given, needed }) } else { Ok(()) }
}
