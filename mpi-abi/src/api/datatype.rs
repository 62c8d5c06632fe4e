//! Datatypes and reduction operations: where an element's bytes lie, packing, and combining. All of it is local: no other
//! process takes part.

use super::{Mpi, int, pmpi};
use crate::error::Result;
use crate::handles::{Comm, Datatype, Op};
use std::ffi::c_int;

/// Where the bytes of an element of a datatype lie, relative to the element's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of data.
    pub size: u64,
    /// Bytes from one element to the next; may be negative.
    pub extent: i64,
    /// The first byte of data.
    pub true_lower: i64,
    /// Bytes from the first byte of data to behind the last.
    pub true_extent: i64,
    /// A predefined datatype without holes: elements in a row are the bytes that packing them gives.
    pub is_plain: bool,
}

impl Layout {
    /// Whether elements are contiguous in memory, without gaps.
    ///
    /// Compares sizes: the bytes of data must equal both the extent and the true extent. This accepts a type whose parts overlap
    /// and leave a gap of the same size; MPI forbids receiving with such types. The order of the parts does not matter.
    pub fn is_contiguous(&self) -> bool {
        [self.extent, self.true_extent].iter().all(|&extent| u64::try_from(extent) == Ok(self.size))
    }
}

impl Mpi {
    /// The layout of a datatype. `None` if its size does not fit the type of MPI's result.
    pub fn type_layout(&self, datatype: Datatype) -> Result<Option<Layout>> {
        // MPI_UNDEFINED is negative.
        let size = self.count(|size| pmpi!(self, MPI_Type_size_x(datatype.word(), size)))?;
        let Ok(size) = u64::try_from(size) else { return Ok(None) };
        let (mut lower, mut extent, mut true_lower, mut true_extent) = (0i64, 0i64, 0i64, 0i64);
        pmpi!(self, MPI_Type_get_extent(datatype.word(), &raw mut lower, &raw mut extent))?;
        pmpi!(self, MPI_Type_get_true_extent(datatype.word(), &raw mut true_lower, &raw mut true_extent))?;
        let mut layout = Layout { size, extent, true_lower, true_extent, is_plain: false };
        // A derived type without holes may still have its parts in another order than memory.
        let is_predefined = self.abi().basic.named().any(|(_, &basic)| basic == Some(datatype.word()));
        layout.is_plain = is_predefined && lower == 0 && true_lower == 0 && layout.is_contiguous();
        Ok(Some(layout))
    }

    /// `MPI_SUM`.
    pub fn sum(&self) -> Op {
        // SAFETY: what the ABI says it is.
        unsafe { Op::from_word(self.abi().predefined.op_sum) }
    }

    /// `MPI_Op_commutative`.
    pub fn op_is_commutative(&self, op: Op) -> Result<bool> {
        Ok(self.number(|commutes| pmpi!(self, MPI_Op_commutative(op.word(), commutes)))? != 0)
    }

    /// `MPI_Reduce_local` on memory: `into` = `from` ⊕ `into`.
    ///
    /// # Safety
    /// Both must hold `count` elements of `datatype`, aligned for it, and not overlap; `op` must be defined for it.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call).
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

    /// `MPI_Pack`; the bytes written. `room`: at most the largest C `int`.
    ///
    /// # Safety
    /// `from` must hold `count` elements of `datatype`, and `into` have `room` bytes.
    pub unsafe fn pack(
        &self,
        elements: (usize, i32, Datatype),
        (into, room): (*mut u8, i32),
        comm: Comm,
    ) -> Result<i32> {
        self.number(|position| {
            self.not_at_null(elements, |from, count, datatype| {
                pmpi!(self, MPI_Pack(from, count, datatype.word(), into, room, position, comm.word()))
            })
        })
    }

    /// `MPI_Unpack` of `len` bytes.
    ///
    /// # Safety
    /// `from` must hold `len` bytes that packing `count` elements gave, and `into` have room for these.
    pub unsafe fn unpack(
        &self,
        (from, len): (*const u8, i32),
        elements: (usize, i32, Datatype),
        comm: Comm,
    ) -> Result<()> {
        let mut position: c_int = 0;
        let at = &raw mut position;
        self.not_at_null(elements, |into, count, datatype| {
            pmpi!(self, MPI_Unpack(from, len, at, into, count, datatype.word(), comm.word()))
        })
    }

    /// Calls `with` for elements whose address is not null: MPICH's packing refuses `MPI_BOTTOM`, which is null. Elements there
    /// become one of a datatype that lies as far below an address.
    fn not_at_null(
        &self,
        (at, count, datatype): (usize, i32, Datatype),
        with: impl FnOnce(usize, i32, Datatype) -> Result<()>,
    ) -> Result<()> {
        const ADDRESS: usize = 4096;
        static BELOW: isize = -(ADDRESS as isize);
        if at != 0 {
            return with(at, count, datatype);
        }
        let (count, below, element) = (&raw const count, &raw const BELOW, datatype.word());
        let moved: Datatype =
            self.handle(|new| pmpi!(self, MPI_Type_create_hindexed(1, count, below, element, new)))?;
        let mut word = moved.word();
        pmpi!(self, MPI_Type_commit(&raw mut word))?;
        let result = with(ADDRESS, 1, moved);
        pmpi!(self, MPI_Type_free(&raw mut word))?;
        result
    }
}
