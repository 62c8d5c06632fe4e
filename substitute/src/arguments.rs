//! The arguments of a collective by their names, whichever form of the function it is: `int` counts or `MPI_Count`s.

use mpi_abi::detect::Abi;
use mpi_abi::handles::{Comm, Datatype, Op};
use mpi_abi::prototypes::{Call, Kind, Name};

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    call: Call,
    words: &'a [usize],
    abi: &'a Abi,
}

/// An array of numbers, as long as the communicator is large.
#[derive(Clone, Copy)]
pub(crate) enum List {
    /// C `int`s.
    Ints(*const i32),
    /// `MPI_Count`s or `MPI_Aint`s.
    Words(*const i64),
}

impl List {
    /// # Safety
    /// The array must have that place.
    pub(crate) unsafe fn at(self, index: usize) -> i64 {
        // SAFETY: the contract.
        unsafe {
            match self {
                List::Ints(list) => i64::from(*list.add(index)),
                List::Words(list) => *list.add(index),
            }
        }
    }
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// The words must be arguments of the function.
    pub(crate) unsafe fn new(call: Call, words: &'a [usize], abi: &'a Abi) -> Self {
        Self { call, words, abi }
    }

    /// Whether the function has a parameter of this name.
    pub(crate) fn has(&self, name: Name) -> bool {
        self.call.position(name).is_some()
    }

    /// The word of a parameter that the function has, and what it is.
    fn argument(&self, name: Name) -> (usize, Kind) {
        let place = self.call.place(name);
        (self.words[place], self.call.parameters()[place].kind)
    }

    /// An address.
    pub(crate) fn address(&self, name: Name) -> usize {
        self.argument(name).0
    }

    /// Whether a buffer is `MPI_IN_PLACE`.
    pub(crate) fn is_in_place(&self, name: Name) -> bool {
        self.address(name) == self.abi.constants.in_place
    }

    /// A count.
    pub(crate) fn count(&self, name: Name) -> i64 {
        match self.argument(name) {
            (word, Kind::BigCount) => word as i64,
            (word, _) => i64::from(word as i32),
        }
    }

    /// A rank.
    pub(crate) fn rank(&self, name: Name) -> i32 {
        self.argument(name).0 as i32
    }

    /// An array of counts or displacements.
    pub(crate) fn list(&self, name: Name) -> List {
        match self.argument(name) {
            (word, Kind::BigCountArray | Kind::AintDisplArray) => List::Words(word as *const i64),
            (word, _) => List::Ints(word as *const i32),
        }
    }

    fn handle(&self, name: Name) -> usize {
        self.argument(name).0 & self.abi.handle_mask()
    }

    /// The communicator.
    pub(crate) fn comm(&self) -> Comm {
        // SAFETY: the program's handle.
        unsafe { Comm::from_word(self.handle(Name::Comm)) }
    }

    /// A datatype.
    pub(crate) fn datatype(&self, name: Name) -> Datatype {
        // SAFETY: the program's handle.
        unsafe { Datatype::from_word(self.handle(name)) }
    }

    /// The datatype at a place of an array.
    ///
    /// # Safety
    /// The array must have that place.
    pub(crate) unsafe fn datatype_at(&self, name: Name, index: usize) -> Datatype {
        let list = self.address(name) as *const u8;
        // SAFETY: the contract; the program's handle.
        unsafe { Datatype::from_word(self.abi.read_handle(list.add(index * self.abi.handle_size))) }
    }

    /// The operation of a reduction.
    pub(crate) fn op(&self) -> Op {
        // SAFETY: the program's handle.
        unsafe { Op::from_word(self.handle(Name::Op)) }
    }
}
