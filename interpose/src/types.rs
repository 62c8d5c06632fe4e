//! Datatypes: described at first use, then known by handle.

use crate::handles::HandleMap;
use crate::lane::Lane;
use mpi_abi::api::Mpi;
use mpi_abi::handles;
use vef_format::capture::event::{Action, Datatype, DatatypeId};
use vef_format::units::Bytes;

/// What the fast path needs of a datatype.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Type {
    pub(crate) id: DatatypeId,
    /// Bytes of one element.
    pub(crate) size: u64,
}

impl Type {
    /// Bytes of `count` elements.
    #[inline(always)]
    pub(crate) fn bytes(self, count: i64) -> Bytes {
        Bytes(self.size.wrapping_mul(count as u64))
    }
}

/// The datatypes seen so far.
#[derive(Debug)]
pub(crate) struct Types {
    known: HandleMap<Type>,
    /// The one asked for last.
    last: (usize, Type),
    next: u32,
}

impl Types {
    pub(crate) fn new() -> Self {
        Self { known: HandleMap::new(), last: (0, Type::default()), next: 0 }
    }

    /// The datatype behind `handle`, which MPI has just accepted in a call of `lane`.
    #[inline(always)]
    pub(crate) fn get(&mut self, lane: &mut Lane, handle: usize) -> Type {
        if self.last.0 == handle && handle != 0 {
            return self.last.1;
        }
        self.find(lane, handle)
    }

    #[inline(never)]
    fn find(&mut self, lane: &mut Lane, handle: usize) -> Type {
        let found = match self.known.get(handle) {
            Some(known) => *known,
            None => self.describe(lane, handle),
        };
        self.last = (handle, found);
        found
    }

    #[cold]
    #[inline(never)]
    fn describe(&mut self, lane: &mut Lane, handle: usize) -> Type {
        let mpi = &lane.tracer.mpi;
        let (size, contiguous) = size_and_shape(mpi, handle);
        let found = Type { id: DatatypeId(self.next), size };
        self.next += 1;
        let name =
            mpi.abi().basic.named().find(|(_, word)| **word == Some(handle)).map_or("", |(name, _)| name);
        lane.define(&Action::Datatype(Datatype { id: found.id, size: Bytes(size), contiguous, name }));
        // Known to other threads only now that its record is written.
        self.known.insert(handle, found);
        found
    }

    /// The handle was freed and may come to mean another datatype.
    pub(crate) fn forget(&mut self, handle: usize) -> Option<Type> {
        self.last = (0, Type::default());
        self.known.remove(handle)
    }
}

/// A datatype that MPI knows nothing of (the null handle where it is not significant) has no size.
fn size_and_shape(mpi: &Mpi, handle: usize) -> (u64, bool) {
    if handle == mpi.abi().predefined.datatype_null {
        return (0, true);
    }
    // SAFETY: a handle that the program passed to a call which MPI found in order.
    let datatype = unsafe { handles::Datatype::from_word(handle) };
    let size = mpi.type_size(datatype).ok().flatten().unwrap_or(0);
    (size, mpi.type_is_contiguous(datatype).unwrap_or(false))
}
