//! Datatypes: size, extent, contiguity and how they were made.

use std::ffi::c_int;

use super::{Mpi, pmpi};
use crate::error::Result;
use crate::handles::Datatype;
use crate::symbols::Function;

/// Where the data of one element of a datatype lies, in bytes from its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The lower bound.
    pub lower: i64,
    /// From one element of an array to the next.
    pub extent: i64,
}

/// How a datatype was made: what `MPI_Type_get_envelope` and `MPI_Type_get_contents` say.
///
/// The datatypes among its inputs are copies; those that are not predefined are to be freed
/// ([`Mpi::type_free`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constructor {
    /// The constructor, one of the ABI's `combiner_…` constants.
    pub combiner: i32,
    /// Its `int` inputs.
    pub integers: Vec<i32>,
    /// Its `MPI_Aint` inputs.
    pub addresses: Vec<i64>,
    /// Its datatypes.
    pub datatypes: Vec<Datatype>,
}

impl Mpi {
    /// `MPI_Type_size_x` (`MPI_Type_size` where that is missing): bytes of data in one element. `None` where the
    /// size does not fit what MPI can answer.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn type_size(&self, datatype: Datatype) -> Result<Option<u64>> {
        static TYPE_SIZE_X: Function = Function::named(c"PMPI_Type_size_x");
        let undefined = i64::from(self.abi().constants.undefined);
        let mut size: i64 = 0;
        if TYPE_SIZE_X.get().is_some() {
            pmpi!(self, MPI_Type_size_x(datatype.word(), &raw mut size))?;
        } else {
            let mut narrow: c_int = 0;
            pmpi!(self, MPI_Type_size(datatype.word(), &raw mut narrow))?;
            size = i64::from(narrow);
        }
        Ok(if size == undefined { None } else { u64::try_from(size).ok() })
    }

    /// `MPI_Type_get_extent`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn type_extent(&self, datatype: Datatype) -> Result<Extent> {
        let (mut lower, mut extent) = (0i64, 0i64);
        pmpi!(self, MPI_Type_get_extent(datatype.word(), &raw mut lower, &raw mut extent))?;
        Ok(Extent { lower, extent })
    }

    /// `MPI_Type_get_true_extent`: as the extent, but of the data alone.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn type_true_extent(&self, datatype: Datatype) -> Result<Extent> {
        let (mut lower, mut extent) = (0i64, 0i64);
        pmpi!(self, MPI_Type_get_true_extent(datatype.word(), &raw mut lower, &raw mut extent))?;
        Ok(Extent { lower, extent })
    }

    /// Whether any number of elements of the datatype fill one piece of memory without holes.
    ///
    /// Decided by sizes: as many bytes of data as lie between the first and the last of them, and the next element
    /// where this one ends. A type whose parts overlap and leave a hole of the same size passes; MPI forbids it for
    /// receiving. The parts may be in another order than in memory.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn type_is_contiguous(&self, datatype: Datatype) -> Result<bool> {
        let Some(size) = self.type_size(datatype)? else { return Ok(false) };
        let dense = |extent: Extent| u64::try_from(extent.extent).is_ok_and(|extent| extent == size);
        Ok(dense(self.type_true_extent(datatype)?) && dense(self.type_extent(datatype)?))
    }

    /// `MPI_Type_get_envelope` and, for a datatype that is not predefined, `MPI_Type_get_contents`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`]; a type made by a large-count constructor is one.
    pub fn type_constructor(&self, datatype: Datatype) -> Result<Constructor> {
        let (mut integers, mut addresses, mut datatypes, mut combiner): (c_int, c_int, c_int, c_int) =
            (0, 0, 0, 0);
        pmpi!(
            self,
            MPI_Type_get_envelope(
                datatype.word(),
                &raw mut integers,
                &raw mut addresses,
                &raw mut datatypes,
                &raw mut combiner
            )
        )?;
        let room = |count: c_int| usize::try_from(count).unwrap_or(0);
        let mut constructor = Constructor {
            combiner,
            integers: vec![0; room(integers)],
            addresses: vec![0; room(addresses)],
            datatypes: Vec::new(),
        };
        let constants = &self.abi().constants;
        let without_contents = [
            constants.combiner_named,
            constants.combiner_f90_real,
            constants.combiner_f90_complex,
            constants.combiner_f90_integer,
        ];
        if without_contents.contains(&combiner) {
            return Ok(constructor);
        }
        // A word a handle is room enough in every ABI; the stride is the ABI's.
        let mut handles = vec![0usize; room(datatypes)];
        pmpi!(
            self,
            MPI_Type_get_contents(
                datatype.word(),
                integers,
                addresses,
                datatypes,
                constructor.integers.as_mut_ptr(),
                constructor.addresses.as_mut_ptr(),
                handles.as_mut_ptr()
            )
        )?;
        let first = handles.as_ptr().cast::<u8>();
        constructor.datatypes = (0..handles.len())
            // SAFETY: the call succeeded and wrote that many datatypes.
            .map(|index| unsafe {
                Datatype::from_word(self.abi().read_handle(first.add(index * self.abi().handle_size)))
            })
            .collect();
        Ok(constructor)
    }

    /// `MPI_Type_free`.
    ///
    /// # Safety
    /// The datatype must not be predefined, and no copy of the handle may be used afterwards.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub unsafe fn type_free(&self, datatype: Datatype) -> Result<()> {
        let mut word = datatype.word();
        pmpi!(self, MPI_Type_free(&raw mut word))
    }
}
