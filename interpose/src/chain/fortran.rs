//! Fortran calls on their way into the chain: tools see the C function, with C's arguments, and C's MPI is what it ends in.
//!
//! Converted are handles (both ways), integers, indices, the addresses that mean something by themselves, and buffers (of
//! descriptors, those that are contiguous). A call that cannot be shown so (strings, callbacks, attributes, non-contiguous
//! sections, and everything that is not wrapped in Fortran) goes to Fortran's own function as without tools: the recorder
//! sees it if it comes first, tools see it only where the library's Fortran calls its C by name (MPICH's `mpif.h`).

use crate::languages::{Fortran, c_handle, fortran_handle, is_bottom};
use crate::wrap::Language;
use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Prototype};
use mpi_abi::symbols::call_with;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Makes the call as one of C, through `wrapper`, our function of that name. `None`: it cannot be shown in C, and nothing
/// was done. `descriptors`: buffers come as descriptors.
pub(crate) fn call_as_c(
    call: Call,
    words: &[usize],
    descriptors: bool,
    wrapper: *const c_void,
) -> Option<i32> {
    static ABI: OnceLock<Option<Abi>> = OnceLock::new();
    let abi = ABI.get_or_init(|| Abi::detect().ok()).as_ref()?;
    let prototype = call.prototype();
    if !is_convertible(prototype) {
        return None;
    }
    let mut converted = Converted::new(prototype, words, descriptors, abi)?;
    let wrapper = NonNull::new(wrapper.cast_mut())?;
    converted.point(prototype);
    // SAFETY: the wrapper's prototype, and C arguments made of the program's.
    let code = unsafe { call_with(wrapper, &converted.words[..words.len()]) }?;
    converted.give_back(prototype, words, abi);
    Some(code)
}

/// Whether all arguments of a function can be shown in C.
fn is_convertible(prototype: &Prototype) -> bool {
    let refused = matches!(prototype.category, Category::Attribute | Category::Process | Category::Session)
        || matches!(
            prototype.call,
            Call::MPI_Dist_graph_create | Call::MPI_Dist_graph_create_adjacent | Call::MPI_Type_get_contents
        );
    !refused
        && prototype.parameters.iter().all(|parameter| {
            !matches!(
                parameter.kind,
                Kind::Str
                    | Kind::StrOut
                    | Kind::StrArray
                    | Kind::Function
                    | Kind::Pointer
                    | Kind::Vararg
                    | Kind::InfoArray
                    | Kind::Session
                    | Kind::SessionPtr
            ) && (!is_handle_array(parameter.kind) || length_name(prototype).is_some())
        })
}

const fn is_handle_array(kind: Kind) -> bool {
    matches!(kind, Kind::RequestArray | Kind::DatatypeArray)
}

/// The parameter that says how long the arrays of handles are.
fn length_name(prototype: &Prototype) -> Option<usize> {
    prototype.parameters.iter().position(|parameter| matches!(parameter.name, "count" | "incount"))
}

/// One handle, or an array of them, in C: in a place of ours while the call runs.
const fn points_to_handle(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CommPtr
            | Kind::DatatypePtr
            | Kind::RequestPtr
            | Kind::MessagePtr
            | Kind::OpPtr
            | Kind::GroupPtr
            | Kind::WinPtr
            | Kind::FilePtr
            | Kind::InfoPtr
            | Kind::ErrhandlerPtr
    )
}

const fn is_handle(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Comm
            | Kind::Datatype
            | Kind::Request
            | Kind::Message
            | Kind::Op
            | Kind::Group
            | Kind::Win
            | Kind::File
            | Kind::Info
            | Kind::Errhandler
    )
}

/// C's arguments.
struct Converted {
    words: [usize; 14],
    /// Room for the handle behind each argument that is the address of one, and what it was before the call.
    places: [(usize, usize); 14],
    /// The arrays of handles as C has them, and as they were before the call.
    arrays: Vec<(usize, Vec<u64>, Vec<usize>)>,
}

impl Converted {
    fn new(prototype: &Prototype, words: &[usize], descriptors: bool, abi: &Abi) -> Option<Self> {
        let mut made = Self { words: [0; 14], places: [(0, 0); 14], arrays: Vec::new() };
        for (i, (parameter, &word)) in prototype.parameters.iter().zip(words).enumerate() {
            let kind = parameter.kind;
            // SAFETY: the program passed what the table says: addresses of integers and handles that can be read.
            made.words[i] = unsafe {
                match kind {
                    Kind::Count | Kind::Rank | Kind::Root | Kind::Tag | Kind::Int => {
                        Fortran::int(word) as usize
                    }
                    Kind::BigCount | Kind::Aint | Kind::Offset => Fortran::long(word) as usize,
                    Kind::Buffer => buffer(word, descriptors, abi)?,
                    Kind::StatusPtr if Fortran::ignores_status(abi, word) => abi.constants.status_ignore,
                    Kind::StatusArray if Fortran::ignores_statuses(abi, word) => {
                        abi.constants.statuses_ignore
                    }
                    kind if is_handle(kind) => c_handle(abi, kind, *(word as *const i32)),
                    _ => word,
                }
            };
        }
        let length = length_name(prototype).map_or(0, |i| usize::try_from(made.words[i] as i32).unwrap_or(0));
        for (i, parameter) in prototype.parameters.iter().enumerate() {
            if is_handle_array(parameter.kind) {
                let size = abi.handle_size;
                // In words, for their alignment.
                let mut room = vec![0u64; (length * size).div_ceil(8)];
                let mut before = Vec::with_capacity(length);
                for at in 0..length {
                    // SAFETY: the program passed an array that long.
                    let handle = c_handle(abi, parameter.kind, unsafe { *(words[i] as *const i32).add(at) });
                    // SAFETY: within the room.
                    unsafe {
                        let place = room.as_mut_ptr().cast::<u8>().add(at * size);
                        place.copy_from_nonoverlapping(handle.to_ne_bytes().as_ptr(), size);
                    }
                    before.push(handle);
                }
                made.arrays.push((i, room, before));
            }
        }
        made.place_handles(prototype, words, abi);
        Some(made)
    }

    /// Addresses of our own places, once those no longer move.
    fn point(&mut self, prototype: &Prototype) {
        for (i, parameter) in prototype.parameters.iter().enumerate() {
            if points_to_handle(parameter.kind) {
                self.words[i] = &raw mut self.places[i].0 as usize;
            }
        }
        for (i, room, _) in &mut self.arrays {
            self.words[*i] = room.as_mut_ptr() as usize;
        }
    }

    fn place_handles(&mut self, prototype: &Prototype, words: &[usize], abi: &Abi) {
        for (i, parameter) in prototype.parameters.iter().enumerate() {
            if points_to_handle(parameter.kind) {
                // SAFETY: the address of an INTEGER; of an output it may be anything, which the conversion allows for.
                let handle = c_handle(abi, parameter.kind, unsafe { *(words[i] as *const i32) });
                self.places[i] = (handle, handle);
            }
        }
    }

    /// Hands what the call has changed to Fortran.
    fn give_back(&mut self, prototype: &Prototype, words: &[usize], abi: &Abi) {
        for (i, parameter) in prototype.parameters.iter().enumerate() {
            let (after, before) = self.places[i];
            // A file is a pointer in every ABI.
            let after = if parameter.kind == Kind::FilePtr { after } else { after & abi.handle_mask() };
            if points_to_handle(parameter.kind) && after != before {
                // SAFETY: the program's INTEGER for this handle.
                unsafe { *(words[i] as *mut i32) = fortran_handle(abi, parameter.kind, after) };
            }
        }
        for (i, room, before) in &self.arrays {
            for (at, before) in before.iter().enumerate() {
                // SAFETY: a handle that the call has left there.
                let after = unsafe { abi.read_handle(room.as_ptr().cast::<u8>().add(at * abi.handle_size)) };
                if after != *before {
                    let kind = prototype.parameters[*i].kind;
                    // SAFETY: the program's array is that long.
                    unsafe { *(words[*i] as *mut i32).add(at) = fortran_handle(abi, kind, after) };
                }
            }
        }
        self.shift_indices(prototype, words, abi);
    }

    /// Indices count from 1.
    fn shift_indices(&self, prototype: &Prototype, words: &[usize], abi: &Abi) {
        let place = |name| prototype.parameters.iter().position(|parameter| parameter.name == name);
        // SAFETY: the program's INTEGERs, which the call has set.
        let shift = |index: *mut i32| unsafe {
            if *index != abi.constants.undefined && *index >= 0 {
                *index += 1;
            }
        };
        if let Some(i) = place("indx") {
            shift(words[i] as *mut i32);
        }
        if let (Some(count), Some(i)) = (place("outcount"), place("array_of_indices")) {
            // SAFETY: as above.
            let count = unsafe { *(words[count] as *const i32) };
            for at in 0..usize::try_from(count).unwrap_or(0) {
                shift((words[i] as *mut i32).wrapping_add(at));
            }
        }
    }
}

/// A buffer's address in C.
///
/// # Safety
/// `word` must be what the program passed for a buffer.
unsafe fn buffer(word: usize, descriptor: bool, abi: &Abi) -> Option<usize> {
    let address = match descriptor {
        // SAFETY: the compiler passes the address of one.
        true => unsafe { Descriptor::contiguous(word)? },
        false => word,
    };
    Some(if Fortran::is_in_place(abi, address) {
        abi.constants.in_place
    } else if is_bottom(address) {
        0
    } else {
        address
    })
}

/// The beginning of a `CFI_cdesc_t` of gfortran 9 and later.
#[repr(C)]
struct Descriptor {
    base: usize,
    element: usize,
    version: i32,
    rank: i8,
    attribute: i8,
    kind: i16,
}

/// One of its dimensions.
#[repr(C)]
struct Dimension {
    lower: isize,
    extent: isize,
    stride: isize,
}

impl Descriptor {
    /// Where the data is, if it lies in one piece.
    ///
    /// # Safety
    /// `word` must be the address of a descriptor.
    unsafe fn contiguous(word: usize) -> Option<usize> {
        // SAFETY: the contract; the dimensions follow.
        let (this, dimensions) = unsafe {
            let this = &*(word as *const Self);
            let first = (word as *const Self).add(1).cast::<Dimension>();
            (this, std::slice::from_raw_parts(first, usize::try_from(this.rank).unwrap_or(0)))
        };
        let mut expected = this.element as isize;
        for dimension in dimensions {
            if dimension.extent > 1 && dimension.stride != expected {
                return None;
            }
            // An array of assumed size says -1 in its last dimension.
            expected = expected.wrapping_mul(dimension.extent.max(0));
        }
        Some(this.base)
    }
}

thread_local! {
    /// What initialises MPI in the place of C's function: Fortran's, which also sets up Fortran.
    static INITIALIZE: Cell<Option<*mut dyn FnMut() -> i32>> = const { Cell::new(None) };
}

/// Runs `enter`, the C call that enters the chain, whose last step is `real`.
pub(crate) fn initialize(mut real: impl FnMut() -> i32, enter: impl FnOnce() -> i32) -> i32 {
    let real: &mut dyn FnMut() -> i32 = &mut real;
    // SAFETY: only the lifetime is forgotten; it is taken back before `real` ends.
    let real: *mut (dyn FnMut() -> i32 + 'static) = unsafe { std::mem::transmute(real) };
    INITIALIZE.set(Some(real));
    let code = enter();
    INITIALIZE.set(None);
    code
}

/// The last step of `MPI_Init` in a Fortran program.
pub(super) fn last_of_init() -> Option<i32> {
    let real = INITIALIZE.take()?;
    // SAFETY: set by `initialize` on this thread, which has not returned.
    Some(unsafe { (*real)() })
}
