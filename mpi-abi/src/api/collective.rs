//! Blocking collectives over slices of elements.
//!
//! Every process of the communicator must make the same call. How much each must pass follows from the standard;
//! a slice that is too short for what this process itself said (counts and displacements, or a count times the
//! number of processes) is refused with [`Error::ShortBuffer`] before MPI sees it.

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

/// A buffer in pieces, one a process: piece `i` is `counts[i]` elements from `displacements[i]` on.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// Elements of each piece.
    pub counts: &'a [i32],
    /// Where each piece begins, in elements.
    pub displacements: &'a [i32],
}

impl Mpi {
    /// `MPI_Barrier`.
    ///
    /// # Errors
    /// [`Error::Call`], as for every call here; with a buffer also [`Error::TooLarge`] and [`Error::ShortBuffer`].
    pub fn barrier(&self, comm: Comm) -> Result<()> {
        pmpi!(self, MPI_Barrier(comm.word()))
    }

    /// `MPI_Bcast`: `data` of the root goes to all.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn bcast<T: Element>(&self, data: &mut [T], root: i32, comm: Comm) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Bcast", data.len())?;
        pmpi!(self, MPI_Bcast(data.as_mut_ptr(), count, datatype, root, comm.word()))
    }

    /// `MPI_Reduce`: element by element; the result is in `output` of the root, which nobody else needs.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn reduce<T: Element>(
        &self,
        input: &[T],
        output: Option<&mut [T]>,
        operation: Reduction,
        root: i32,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Reduce", input.len())?;
        if self.comm_rank(comm)? == root {
            room("MPI_Reduce", output.as_deref(), input.len())?;
        }
        let (from, to, op) = (input.as_ptr(), start(output), self.op(operation));
        pmpi!(self, MPI_Reduce(from, to, count, datatype, op, root, comm.word()))
    }

    /// `MPI_Allreduce`: element by element, the result to all.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn allreduce<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        operation: Reduction,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Allreduce", input.len())?;
        room("MPI_Allreduce", Some(output), input.len())?;
        let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.op(operation));
        pmpi!(self, MPI_Allreduce(from, to, count, datatype, op, comm.word()))
    }

    /// `MPI_Scan`: element by element over the ranks up to this one.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn scan<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        operation: Reduction,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Scan", input.len())?;
        room("MPI_Scan", Some(output), input.len())?;
        let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.op(operation));
        pmpi!(self, MPI_Scan(from, to, count, datatype, op, comm.word()))
    }

    /// `MPI_Exscan`: element by element over the ranks before this one; rank 0 gets nothing.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn exscan<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        operation: Reduction,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Exscan", input.len())?;
        room("MPI_Exscan", Some(output), input.len())?;
        let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.op(operation));
        pmpi!(self, MPI_Exscan(from, to, count, datatype, op, comm.word()))
    }

    /// `MPI_Reduce_scatter_block`: element by element; each process gets `output.len()` elements of the result.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn reduce_scatter_block<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        operation: Reduction,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Reduce_scatter_block", output.len())?;
        room("MPI_Reduce_scatter_block", Some(input), self.times_size(output.len(), comm)?)?;
        let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.op(operation));
        pmpi!(self, MPI_Reduce_scatter_block(from, to, count, datatype, op, comm.word()))
    }

    /// `MPI_Reduce_scatter`: element by element; process `i` gets `counts[i]` elements of the result.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        counts: &[i32],
        operation: Reduction,
        comm: Comm,
    ) -> Result<()> {
        const NAME: &str = "MPI_Reduce_scatter";
        let datatype = T::datatype(self.abi()).word();
        room(NAME, Some(counts), self.times_size(1, comm)?)?;
        let own = counts.get(self.comm_rank(comm)? as usize).copied().unwrap_or(0);
        room(NAME, Some(output), usize::try_from(own).unwrap_or(0))?;
        room(NAME, Some(input), counts.iter().map(|count| usize::try_from(*count).unwrap_or(0)).sum())?;
        let (from, to, op) = (input.as_ptr(), output.as_mut_ptr(), self.op(operation));
        pmpi!(self, MPI_Reduce_scatter(from, to, counts.as_ptr(), datatype, op, comm.word()))
    }

    /// `MPI_Gather`: `input` of every process to `output` of the root, in the order of ranks.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
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

    /// `MPI_Gatherv`: `input` of every process to its piece of `output` at the root.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn gatherv<T: Element>(
        &self,
        input: &[T],
        output: Option<(&mut [T], Pieces<'_>)>,
        root: i32,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Gatherv", input.len())?;
        if self.comm_rank(comm)? == root {
            let (buffer, pieces) = output.as_ref().map_or((&[] as &[T], NO_PIECES), |(b, p)| (&**b, *p));
            self.pieces_fit("MPI_Gatherv", buffer, pieces, comm)?;
        }
        let pieces = output.as_ref().map_or(NO_PIECES, |(_, pieces)| *pieces);
        let (from, to) = (input.as_ptr(), start(output.map(|(buffer, _)| buffer)));
        let (counts, displacements) = (pieces.counts.as_ptr(), pieces.displacements.as_ptr());
        pmpi!(
            self,
            MPI_Gatherv(from, count, datatype, to, counts, displacements, datatype, root, comm.word())
        )
    }

    /// `MPI_Scatter`: `input` of the root in equal pieces to `output` of every process, in the order of ranks.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn scatter<T: Element>(
        &self,
        input: Option<&[T]>,
        output: &mut [T],
        root: i32,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Scatter", output.len())?;
        if self.comm_rank(comm)? == root {
            room("MPI_Scatter", input, self.times_size(output.len(), comm)?)?;
        }
        let (from, to) = (input.unwrap_or(&[]).as_ptr(), output.as_mut_ptr());
        pmpi!(self, MPI_Scatter(from, count, datatype, to, count, datatype, root, comm.word()))
    }

    /// `MPI_Scatterv`: the pieces of `input` of the root to `output` of every process.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn scatterv<T: Element>(
        &self,
        input: Option<(&[T], Pieces<'_>)>,
        output: &mut [T],
        root: i32,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Scatterv", output.len())?;
        let (buffer, pieces) = input.unwrap_or((&[], NO_PIECES));
        if self.comm_rank(comm)? == root {
            self.pieces_fit("MPI_Scatterv", buffer, pieces, comm)?;
        }
        let (from, to) = (buffer.as_ptr(), output.as_mut_ptr());
        let (counts, displacements) = (pieces.counts.as_ptr(), pieces.displacements.as_ptr());
        pmpi!(
            self,
            MPI_Scatterv(from, counts, displacements, datatype, to, count, datatype, root, comm.word())
        )
    }

    /// `MPI_Allgather`: `input` of every process to all, in the order of ranks.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn allgather<T: Element>(&self, input: &[T], output: &mut [T], comm: Comm) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Allgather", input.len())?;
        room("MPI_Allgather", Some(output), self.times_size(input.len(), comm)?)?;
        let (from, to) = (input.as_ptr(), output.as_mut_ptr());
        pmpi!(self, MPI_Allgather(from, count, datatype, to, count, datatype, comm.word()))
    }

    /// `MPI_Allgatherv`: `input` of every process to its piece of `output` everywhere.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn allgatherv<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        pieces: Pieces<'_>,
        comm: Comm,
    ) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Allgatherv", input.len())?;
        self.pieces_fit("MPI_Allgatherv", output, pieces, comm)?;
        let (from, to) = (input.as_ptr(), output.as_mut_ptr());
        let (counts, displacements) = (pieces.counts.as_ptr(), pieces.displacements.as_ptr());
        pmpi!(self, MPI_Allgatherv(from, count, datatype, to, counts, displacements, datatype, comm.word()))
    }

    /// `MPI_Alltoall`: piece `i` of `input` to process `i`; `count` elements a piece.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn alltoall<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        count: usize,
        comm: Comm,
    ) -> Result<()> {
        let all = self.times_size(count, comm)?;
        room("MPI_Alltoall", Some(input), all)?;
        room("MPI_Alltoall", Some(output), all)?;
        let (count, datatype) = self.shape::<T>("MPI_Alltoall", count)?;
        let (from, to) = (input.as_ptr(), output.as_mut_ptr());
        pmpi!(self, MPI_Alltoall(from, count, datatype, to, count, datatype, comm.word()))
    }

    /// `MPI_Alltoallv`: piece `i` of `input` to process `i`, whose piece comes to piece `i` of `output`.
    ///
    /// # Errors
    /// As [`Mpi::barrier`].
    pub fn alltoallv<T: Element>(
        &self,
        (input, sent): (&[T], Pieces<'_>),
        (output, received): (&mut [T], Pieces<'_>),
        comm: Comm,
    ) -> Result<()> {
        self.pieces_fit("MPI_Alltoallv", input, sent, comm)?;
        self.pieces_fit("MPI_Alltoallv", output, received, comm)?;
        let datatype = T::datatype(self.abi()).word();
        pmpi!(
            self,
            MPI_Alltoallv(
                input.as_ptr(),
                sent.counts.as_ptr(),
                sent.displacements.as_ptr(),
                datatype,
                output.as_mut_ptr(),
                received.counts.as_ptr(),
                received.displacements.as_ptr(),
                datatype,
                comm.word()
            )
        )
    }

    /// A number of elements and their datatype as words.
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
        let processes =
            if self.comm_is_inter(comm)? { self.comm_remote_size(comm)? } else { self.comm_size(comm)? };
        Ok(count.saturating_mul(usize::try_from(processes).unwrap_or(0)))
    }

    /// Refuses pieces that are too few or not inside the buffer.
    fn pieces_fit<T>(
        &self,
        function: &'static str,
        buffer: &[T],
        pieces: Pieces<'_>,
        comm: Comm,
    ) -> Result<()> {
        let processes = self.times_size(1, comm)?;
        room(function, Some(pieces.counts), processes)?;
        room(function, Some(pieces.displacements), processes)?;
        pieces_inside(function, buffer, pieces)
    }
}

const NO_PIECES: Pieces<'static> = Pieces { counts: &[], displacements: &[] };

fn pieces_inside<T>(function: &'static str, buffer: &[T], pieces: Pieces<'_>) -> Result<()> {
    for (count, displacement) in pieces.counts.iter().zip(pieces.displacements) {
        let end = i64::from(*count) + i64::from(*displacement);
        // A negative number is no place in a slice; as a huge one it does not fit either.
        let first = if *count < 0 || *displacement < 0 { usize::MAX } else { end as usize };
        room(function, Some(buffer), if *count == 0 { 0 } else { first })?;
    }
    Ok(())
}

/// Refuses a slice that is shorter than `needed` elements, or not there at all.
fn room<T>(function: &'static str, slice: Option<&[T]>, needed: usize) -> Result<()> {
    let given = slice.map_or(0, <[T]>::len);
    if given < needed { Err(Error::ShortBuffer { function, given, needed }) } else { Ok(()) }
}

/// The address of a slice, null where there is none.
fn start<T>(slice: Option<&mut [T]>) -> *mut T {
    slice.map_or(std::ptr::null_mut(), <[T]>::as_mut_ptr)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(needed: usize) -> Result<()> {
        Err(Error::ShortBuffer { function: "MPI_Gatherv", given: 4, needed })
    }

    #[test]
    fn pieces_outside_their_buffer_are_refused() {
        let buffer = [0u8; 4];
        let check = |counts: &[i32], displacements: &[i32]| {
            pieces_inside("MPI_Gatherv", &buffer, Pieces { counts, displacements })
        };
        assert_eq!(check(&[2, 2], &[0, 2]), Ok(()));
        assert_eq!(check(&[2, 0], &[2, 99]), Ok(()));
        assert_eq!(check(&[2, 3], &[0, 2]), short(5));
        assert_eq!(check(&[i32::MAX], &[i32::MAX]), short(2 * i32::MAX as usize));
        assert_eq!(check(&[2], &[-1]), short(usize::MAX));
        assert_eq!(check(&[-2], &[1]), short(usize::MAX));
    }

    #[test]
    fn a_missing_buffer_is_a_short_one() {
        assert!(room::<u8>("MPI_Gather", None, 1).is_err());
        assert_eq!(room::<u8>("MPI_Gather", None, 0), Ok(()));
        assert!(start::<u8>(None).is_null());
    }
}
