//! Typed views of the words that arrive in a wrapper: what a parameter of the table is, and how to read it.
//!
//! A wrapper receives every argument as a `usize`, the whole register. An `int` fills only its lower half and the
//! upper half is garbage; a handle is an `int` under MPICH and a pointer under Open MPI. The types here keep the
//! word to themselves and give out only what is really there, so neither can be forgotten. Their names are those
//! of the kinds in the table: `unsafe { arguments::Count::from_raw(word) }.get()`. Making a view is the `unsafe`
//! step, because a handle that comes out of one is trusted from then on.
//!
//! Reading through a pointer argument is `unsafe`: MPI's own rules say when the memory behind it may be read
//! (an output only after the real call, and only when that succeeded).

use std::ffi::{CStr, c_char};

use crate::detect::Abi;
use crate::handles;
use crate::status::Status;

macro_rules! arguments {
    ($($(#[$doc:meta])* $kind:ident: $width:ident),* $(,)?) => {
        /// What a parameter of an MPI function is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind),*
        }

        impl Kind {
            /// How wide an argument of this kind is in C.
            pub const fn width(self) -> Width {
                match self {
                    $(Kind::$kind => Width::$width),*
                }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            #[repr(transparent)]
            pub struct $kind(usize);

            impl $kind {
                /// The view of an argument as it arrived.
                ///
                /// # Safety
                /// The word must be what a caller passed to an MPI function for a parameter of this kind.
                #[inline(always)]
                pub const unsafe fn from_raw(word: usize) -> Self {
                    $kind(word)
                }
            }
        )*
    };
}

/// How wide an argument is in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// A C `int`: the lower 32 bits of the word.
    Int,
    /// 64 bits: `MPI_Aint`, `MPI_Offset`, `MPI_Count`, pointers.
    Word,
    /// A handle: as wide as the ABI says.
    Handle,
}

arguments! {
    /// Number of elements, C `int`.
    Count: Int,
    /// Number of elements, `MPI_Count`.
    BigCount: Word,
    /// Rank of a peer, `MPI_PROC_NULL` or `MPI_ANY_SOURCE`.
    Rank: Int,
    /// Rank of the root of a collective, `MPI_ROOT` or `MPI_PROC_NULL`.
    Root: Int,
    /// Message tag, or `MPI_ANY_TAG`.
    Tag: Int,
    /// Any other C `int`.
    Int: Int,
    /// `MPI_Aint`: an address, displacement or size in bytes.
    Aint: Word,
    /// `MPI_Offset`: a place in a file.
    Offset: Word,
    /// Address of communicated or packed data; may be `MPI_BOTTOM` or `MPI_IN_PLACE`.
    Buffer: Word,
    /// Array of counts, C `int`.
    CountArray: Word,
    /// Array of counts (of displacements in datatype constructors), `MPI_Count`.
    BigCountArray: Word,
    /// Array of displacements, C `int`.
    DisplArray: Word,
    /// Array of displacements, `MPI_Aint`.
    AintDisplArray: Word,
    /// Address of one C `int`, mostly an output.
    IntPtr: Word,
    /// Array of C `int`s, input or output.
    IntArray: Word,
    /// Address of one `MPI_Aint`, an output.
    AintPtr: Word,
    /// Array of `MPI_Aint`s.
    AintArray: Word,
    /// Address of one `MPI_Count`, mostly an output.
    BigCountPtr: Word,
    /// Address of one `MPI_Offset`, an output.
    OffsetPtr: Word,
    /// Address of a status, or `MPI_STATUS_IGNORE`.
    StatusPtr: Word,
    /// Array of statuses, or `MPI_STATUSES_IGNORE`.
    StatusArray: Word,
    /// A string that is read.
    Str: Word,
    /// Room for a string.
    StrOut: Word,
    /// An array of strings, or an address of one.
    StrArray: Word,
    /// A callback.
    Function: Word,
    /// Any other address.
    Pointer: Word,
    /// What may follow a fixed parameter of a variadic function: a register, perhaps meaningless.
    Vararg: Word,
    /// A communicator.
    Comm: Handle,
    /// Address of a communicator.
    CommPtr: Word,
    /// A datatype.
    Datatype: Handle,
    /// Address of a datatype.
    DatatypePtr: Word,
    /// Array of datatypes.
    DatatypeArray: Word,
    /// A request.
    Request: Handle,
    /// Address of a request.
    RequestPtr: Word,
    /// Array of requests.
    RequestArray: Word,
    /// A matched message.
    Message: Handle,
    /// Address of a matched message.
    MessagePtr: Word,
    /// A reduction operation.
    Op: Handle,
    /// Address of a reduction operation.
    OpPtr: Word,
    /// A group.
    Group: Handle,
    /// Address of a group.
    GroupPtr: Word,
    /// A window.
    Win: Handle,
    /// Address of a window.
    WinPtr: Word,
    /// A file; a pointer in every ABI.
    File: Word,
    /// Address of a file.
    FilePtr: Word,
    /// An info object.
    Info: Handle,
    /// Address of an info object.
    InfoPtr: Word,
    /// Array of info objects.
    InfoArray: Word,
    /// An error handler.
    Errhandler: Handle,
    /// Address of an error handler.
    ErrhandlerPtr: Word,
    /// A session.
    Session: Handle,
    /// Address of a session.
    SessionPtr: Word,
}

macro_rules! ints {
    ($($kind:ident)*) => { $(
        impl $kind {
            /// The value: the lower 32 bits of the word.
            #[inline(always)]
            pub const fn get(self) -> i32 {
                self.0 as u32 as i32
            }
        }
    )* };
}
ints!(Count Rank Root Tag Int);

macro_rules! words {
    ($($kind:ident)*) => { $(
        impl $kind {
            /// The value: the whole word.
            #[inline(always)]
            pub const fn get(self) -> i64 {
                self.0 as i64
            }
        }
    )* };
}
words!(BigCount Aint Offset);

/// A number of elements of either width, so that one hook serves a function and its large-count form.
pub trait Elements: Copy {
    /// The number of elements.
    fn elements(self) -> i64;
}

impl Elements for Count {
    #[inline(always)]
    fn elements(self) -> i64 {
        i64::from(self.get())
    }
}

impl Elements for BigCount {
    #[inline(always)]
    fn elements(self) -> i64 {
        self.get()
    }
}

/// An array of numbers of either width, so that one hook serves a function and its large-count form.
pub trait Numbers: Copy {
    /// The number at `index`.
    ///
    /// # Safety
    /// The argument must point to more than `index` elements that may be read.
    unsafe fn at(self, index: usize) -> i64;
}

macro_rules! addresses {
    ($($kind:ident)*) => { $(
        impl $kind {
            /// The address as a number.
            #[inline(always)]
            pub const fn address(self) -> usize {
                self.0
            }

            /// Whether it is the null address.
            #[inline(always)]
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }
        }
    )* };
}
addresses!(Buffer CountArray BigCountArray DisplArray AintDisplArray IntPtr IntArray AintPtr AintArray BigCountPtr
    OffsetPtr StatusPtr StatusArray Str StrOut StrArray Function Pointer CommPtr DatatypePtr DatatypeArray RequestPtr
    RequestArray MessagePtr OpPtr GroupPtr WinPtr FilePtr InfoPtr InfoArray ErrhandlerPtr SessionPtr);

macro_rules! arrays {
    ($($kind:ident of $element:ty;)*) => { $(
        impl Numbers for $kind {
            #[inline(always)]
            unsafe fn at(self, index: usize) -> i64 {
                // SAFETY: by the contract the element exists; C arrays of this type are aligned.
                unsafe { *(self.0 as *const $element).add(index) as i64 }
            }
        }

        impl $kind {
            /// The first `length` elements; empty for a null address or a length that is not positive.
            ///
            /// # Safety
            /// The argument must be null or point to `length` elements that may be read and do not change
            /// while the slice lives.
            #[inline(always)]
            pub unsafe fn slice<'a>(self, length: i64) -> &'a [$element] {
                if self.0 == 0 || length <= 0 {
                    return &[];
                }
                // SAFETY: the contract, and not null.
                unsafe { std::slice::from_raw_parts(self.0 as *const $element, length as usize) }
            }
        }
    )* };
}
arrays! {
    CountArray of i32;
    BigCountArray of i64;
    DisplArray of i32;
    AintDisplArray of i64;
    IntArray of i32;
    AintArray of i64;
}

macro_rules! pointers {
    ($($kind:ident to $element:ty;)*) => { $(
        impl $kind {
            /// What is at the address, `None` for the null address.
            ///
            /// # Safety
            /// The argument must be null or point to a value that may be read.
            #[inline(always)]
            pub unsafe fn read(self) -> Option<$element> {
                let pointer = self.0 as *const $element;
                // SAFETY: the contract, and not null.
                (!pointer.is_null()).then(|| unsafe { *pointer })
            }

            /// Writes a value to the address.
            ///
            /// # Safety
            /// The argument must point to a value that may be written.
            #[inline(always)]
            pub unsafe fn write(self, value: $element) {
                // SAFETY: the contract.
                unsafe { *(self.0 as *mut $element) = value };
            }
        }
    )* };
}
pointers! {
    IntPtr to i32;
    AintPtr to i64;
    BigCountPtr to i64;
    OffsetPtr to i64;
}

impl Buffer {
    /// Whether it is `MPI_IN_PLACE`.
    #[inline(always)]
    pub fn is_in_place(self, abi: &Abi) -> bool {
        self.0 == abi.constants.in_place
    }
}

impl StatusPtr {
    /// The status, `None` for `MPI_STATUS_IGNORE` (and for null).
    ///
    /// # Safety
    /// The argument must come from a caller of an MPI function, and the status must live as long as the view.
    #[inline(always)]
    pub unsafe fn status<'a>(self, abi: &'a Abi) -> Option<Status<'a>> {
        // SAFETY: the contract; neither null nor the IGNORE address is a status.
        (self.0 != abi.constants.status_ignore && self.0 != 0)
            .then(|| unsafe { Status::at(self.0 as *const u8, abi) })
    }
}

impl StatusArray {
    /// The status at `index`, `None` for `MPI_STATUSES_IGNORE` (and for null).
    ///
    /// # Safety
    /// The argument must come from a caller of an MPI function with more than `index` statuses, and the status
    /// must live as long as the view.
    #[inline(always)]
    pub unsafe fn status<'a>(self, abi: &'a Abi, index: usize) -> Option<Status<'a>> {
        // SAFETY: the contract; neither null nor the IGNORE address is an array.
        (self.0 != abi.constants.statuses_ignore && self.0 != 0)
            .then(|| unsafe { Status::at((self.0 as *const u8).add(index * abi.status.size), abi) })
    }
}

impl Str {
    /// The string, `None` for the null address.
    ///
    /// # Safety
    /// The argument must be null or a C string that lives, unchanged, as long as the result.
    pub unsafe fn c_str<'a>(self) -> Option<&'a CStr> {
        // SAFETY: the contract, and not null.
        (self.0 != 0).then(|| unsafe { CStr::from_ptr(self.0 as *const c_char) })
    }
}

macro_rules! handles {
    ($($kind:ident by $pointer:ident;)*) => { $(
        impl $kind {
            /// The handle, without what its register holds beyond its width.
            #[inline(always)]
            pub fn get(self, abi: &Abi) -> handles::$kind {
                // SAFETY: `from_raw` promised a handle.
                unsafe { handles::$kind::from_word(self.0 & abi.handle_mask()) }
            }
        }

        impl $pointer {
            /// The handle at the address, `None` for the null address.
            ///
            /// # Safety
            /// The argument must be null or point to a handle that may be read.
            #[inline(always)]
            pub unsafe fn read(self, abi: &Abi) -> Option<handles::$kind> {
                // SAFETY: the contract, and not null.
                (self.0 != 0).then(|| unsafe { handles::$kind::from_word(abi.read_handle(self.0 as *const u8)) })
            }
        }
    )* };
}
handles! {
    Comm by CommPtr;
    Datatype by DatatypePtr;
    Request by RequestPtr;
    Message by MessagePtr;
    Op by OpPtr;
    Group by GroupPtr;
    Win by WinPtr;
    Info by InfoPtr;
    Errhandler by ErrhandlerPtr;
    Session by SessionPtr;
}

impl File {
    /// The handle.
    #[inline(always)]
    pub fn get(self) -> handles::File {
        // SAFETY: `from_raw` promised a handle.
        unsafe { handles::File::from_word(self.0) }
    }
}

impl FilePtr {
    /// The handle at the address, `None` for the null address.
    ///
    /// # Safety
    /// The argument must be null or point to a handle that may be read.
    pub unsafe fn read(self) -> Option<handles::File> {
        // SAFETY: the contract, and not null.
        (self.0 != 0).then(|| unsafe { handles::File::from_word(*(self.0 as *const usize)) })
    }
}

macro_rules! handle_arrays {
    ($($array:ident of $kind:ident;)*) => { $(
        impl $array {
            /// The handle at `index`.
            ///
            /// # Safety
            /// The argument must point to more than `index` handles that may be read.
            #[inline(always)]
            pub unsafe fn at(self, abi: &Abi, index: usize) -> handles::$kind {
                // SAFETY: the contract.
                unsafe {
                    handles::$kind::from_word(abi.read_handle((self.0 as *const u8).add(index * abi.handle_size)))
                }
            }
        }
    )* };
}
handle_arrays! {
    DatatypeArray of Datatype;
    RequestArray of Request;
    InfoArray of Info;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_half_of_an_int_argument_is_ignored() {
        // SAFETY: stands for what a program passes; an int needs no more.
        unsafe {
            assert_eq!(Count::from_raw(0xffff_ffff_0000_0007).get(), 7);
            assert_eq!(Rank::from_raw(0x1234_5678_ffff_fffe).get(), -2);
            assert_eq!(Count::from_raw(0xffff_ffff_0000_0007).elements(), 7);
            assert_eq!(BigCount::from_raw(0x1_0000_0007).elements(), 0x1_0000_0007);
            assert_eq!(Aint::from_raw(usize::MAX).get(), -1);
        }
    }

    #[test]
    fn arrays_have_the_width_of_their_kind() {
        let (narrow, wide) = ([1_i32, -2, 3], [1_i64, -2, 1 << 40]);
        // SAFETY: the arrays have three elements.
        unsafe {
            assert_eq!(CountArray::from_raw(narrow.as_ptr() as usize).at(1), -2);
            assert_eq!(BigCountArray::from_raw(wide.as_ptr() as usize).at(2), 1 << 40);
            assert_eq!(IntArray::from_raw(narrow.as_ptr() as usize).slice(3), narrow);
            assert!(IntArray::from_raw(0).slice(3).is_empty());
            assert!(IntArray::from_raw(narrow.as_ptr() as usize).slice(-1).is_empty());
        }
    }

    #[test]
    fn outputs_may_be_null() {
        let mut flag = 5_i32;
        // SAFETY: null or a live int.
        unsafe {
            assert_eq!(IntPtr::from_raw(0).read(), None);
            let argument = IntPtr::from_raw(&raw mut flag as usize);
            argument.write(1);
            assert_eq!(argument.read(), Some(1));
            assert_eq!(Str::from_raw(c"mpi".as_ptr() as usize).c_str(), Some(c"mpi"));
            assert_eq!(Str::from_raw(0).c_str(), None);
        }
    }
}
