//! Fortran calls on their way into the chain: tools see the C function, with C's arguments, and C's MPI is what it ends in.
//!
//! Converted are handles (both ways), integers, indices, the addresses that mean something by themselves, and buffers (of
//! descriptors, those that are contiguous). Where that is not all there is to a call (strings, callbacks, attributes,
//! non-contiguous sections), tools are *shown* it: with C's arguments, but what it ends in is Fortran's own function with the
//! program's own arguments, so nothing that Fortran knows better is lost.

use super::entries;
use crate::languages::{Fortran, c_handle, fortran_handle, is_bottom};
use crate::wrap::{Language, SUCCESS};
use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Prototype};
use mpi_abi::symbols::{self, Function, call_with};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

fn abi() -> Option<&'static Abi> {
    static ABI: OnceLock<Option<Abi>> = OnceLock::new();
    ABI.get_or_init(|| Abi::detect().ok()).as_ref()
}

/// Makes the call as one of C, through `wrapper`, our function of that name. `None`: it cannot be made in C, and nothing
/// was done. `descriptors`: buffers come as descriptors.
pub(crate) fn call_as_c(
    call: Call,
    words: &[usize],
    descriptors: bool,
    wrapper: *const c_void,
) -> Option<i32> {
    let abi = abi()?;
    let prototype = call.prototype();
    if !is_convertible(prototype) {
        return None;
    }
    let mut converted = Converted::new(prototype, words, None, descriptors, abi)?;
    let wrapper = NonNull::new(wrapper.cast_mut())?;
    converted.point(prototype);
    // SAFETY: the wrapper's prototype, and C arguments made of the program's.
    let code = unsafe { call_with(wrapper, &converted.words[..words.len()]) }?;
    converted.give_back(prototype, words, abi);
    Some(code)
}

/// Shows the call to the tools as one of C that ends in `real`, Fortran's own function with the program's own arguments; `real`
/// alone where that cannot be. `lengths`: those of its strings.
pub(crate) fn show(
    call: Call,
    words: &[usize],
    lengths: &[usize],
    descriptors: bool,
    real: &mut dyn FnMut() -> i32,
) -> i32 {
    let prototype = call.prototype();
    let entry = entries::entrance(call).filter(|_| can_be_shown(prototype) && !entries::is_inside());
    let Some((entry, abi)) = entry.zip(abi()) else { return real() };
    let Some(mut shown) = Converted::new(prototype, words, Some(lengths), descriptors, abi) else {
        return real();
    };
    shown.point(prototype);
    let arguments = shown.words;
    let real = || {
        let code = real();
        if code == SUCCESS {
            // SAFETY: what has just been made of the program's arguments, which is still there.
            unsafe { tell_outputs(prototype, &arguments, words, lengths, abi) };
        }
        code
    };
    // SAFETY: the entry's prototype, and C arguments made of the program's.
    let code = ending_in(call, real, || unsafe { call_with(entry, &arguments[..words.len()]) });
    drop(shown);
    code.unwrap_or(SUCCESS)
}

/// [`show`] for a call that is not recorded, with all that the program passed: the arguments, the place for the code, the lengths
/// of strings.
///
/// # Safety
/// `next` must be a Fortran name of the function, and `words` what the program passed to it.
pub(crate) unsafe fn pass(call: Call, next: &Function, words: &[usize], descriptors: bool) {
    let (arguments, rest) = words.split_at(call.prototype().parameters.len());
    let [ierror, lengths @ ..] = rest else { return };
    show(call, arguments, lengths, descriptors, &mut || {
        // SAFETY: the contract; what it does not return is not looked at.
        let _ = next.get().and_then(|address| unsafe { call_with(address, words) });
        // SAFETY: null, or an INTEGER that the call has set.
        unsafe { (*ierror as *const i32).as_ref() }.copied().unwrap_or(SUCCESS)
    });
}

/// Writes what a call of Fortran's has given where the tools look for it.
///
/// # Safety
/// `shown` must be the words of a [`Converted`] made of `words`, which were passed to the call.
unsafe fn tell_outputs(
    prototype: &Prototype,
    shown: &[usize; 14],
    words: &[usize],
    lengths: &[usize],
    abi: &Abi,
) {
    let mut lengths = lengths.iter();
    for (i, parameter) in prototype.parameters.iter().enumerate() {
        let length = if is_string(parameter.kind) { lengths.next().copied().unwrap_or(0) } else { 0 };
        // SAFETY: our own places, as long as the program's.
        unsafe {
            if points_to_handle(parameter.kind) {
                *(shown[i] as *mut usize) = c_handle(abi, parameter.kind, *(words[i] as *const i32));
            } else if parameter.kind == Kind::StrOut {
                let text = c_string(words[i], length);
                (shown[i] as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
            }
        }
    }
}

/// Whether all arguments of a function can be converted, so that C's can be called in the place of Fortran's.
fn is_convertible(prototype: &Prototype) -> bool {
    can_be_shown(prototype)
        && !matches!(prototype.category, Category::Attribute | Category::Process)
        && prototype.parameters.iter().all(|parameter| {
            !is_string(parameter.kind)
                && !matches!(parameter.kind, Kind::Function | Kind::Pointer | Kind::InfoArray)
        })
}

/// Whether the arguments of a function say in C what they say in Fortran.
fn can_be_shown(prototype: &Prototype) -> bool {
    use Call::*;
    let special_weights = matches!(prototype.call, MPI_Dist_graph_create | MPI_Dist_graph_create_adjacent);
    // Of MPI 1: where C has addresses, Fortran has integers of half their size.
    let short_addresses = matches!(
        prototype.call,
        MPI_Address
            | MPI_Attr_get
            | MPI_Attr_put
            | MPI_Type_extent
            | MPI_Type_hindexed
            | MPI_Type_hvector
            | MPI_Type_lb
            | MPI_Type_struct
            | MPI_Type_ub
    );
    let handles_out = prototype.call == MPI_Type_get_contents;
    !(special_weights || short_addresses || handles_out)
        && prototype.category != Category::Session
        && prototype.parameters.iter().all(|parameter| {
            !matches!(parameter.kind, Kind::Vararg | Kind::Session | Kind::SessionPtr)
                && (!is_handle_array(parameter.kind) || length_name(prototype).is_some())
        })
}

const fn is_string(kind: Kind) -> bool {
    matches!(kind, Kind::Str | Kind::StrOut | Kind::StrArray)
}

const fn is_handle_array(kind: Kind) -> bool {
    matches!(kind, Kind::RequestArray | Kind::DatatypeArray | Kind::InfoArray)
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
    strings: Vec<Vec<u8>>,
    /// Addresses of strings, up to a null one.
    lists: Vec<Vec<usize>>,
}

impl Converted {
    /// `lengths`: those of the strings of a call that is shown; `None`: C's function is to do what Fortran's would.
    fn new(
        prototype: &Prototype,
        words: &[usize],
        lengths: Option<&[usize]>,
        descriptors: bool,
        abi: &Abi,
    ) -> Option<Self> {
        let mut made = Self {
            words: [0; 14],
            places: [(0, 0); 14],
            arrays: Vec::new(),
            strings: Vec::new(),
            lists: Vec::new(),
        };
        for (i, (parameter, &word)) in prototype.parameters.iter().zip(words).enumerate() {
            let kind = parameter.kind;
            // SAFETY: the program passed what the table says: addresses of integers and handles that can be read.
            made.words[i] = unsafe {
                match kind {
                    Kind::Count | Kind::Rank | Kind::Root | Kind::Tag | Kind::Int => {
                        Fortran::int(word) as usize
                    }
                    Kind::BigCount | Kind::Aint | Kind::Offset => Fortran::long(word) as usize,
                    Kind::Buffer => buffer(word, descriptors, lengths.is_some(), abi)?,
                    Kind::Pointer if descriptors && is_choice(parameter.name) => Descriptor::base(word),
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
        made.place_strings(prototype, words, lengths.unwrap_or_default())?;
        Some(made)
    }

    /// Strings as C has them: as long as they need to be, with a NUL.
    fn place_strings(&mut self, prototype: &Prototype, words: &[usize], lengths: &[usize]) -> Option<()> {
        let mut lengths = lengths.iter();
        for (i, parameter) in prototype.parameters.iter().enumerate() {
            if !is_string(parameter.kind) {
                continue;
            }
            let length = *lengths.next()?;
            self.words[i] = match parameter.kind {
                // SAFETY: the program passed a string of that length.
                Kind::Str => self.keep(unsafe { c_string(words[i], length) }),
                Kind::StrOut => self.keep(vec![0; length + 1]),
                // Rows of a matrix of strings are not shown: MPI_ARGVS_NULL.
                _ if parameter.name == "array_of_argv" => 0,
                _ => {
                    let most = match length_name(prototype) {
                        Some(i) => usize::try_from(self.words[i] as i32).unwrap_or(0),
                        None => usize::MAX,
                    };
                    let mut list = Vec::new();
                    while list.len() < most {
                        // SAFETY: as above; without a number of them, the last one is blank.
                        let text = unsafe { c_string(words[i] + list.len() * length, length) };
                        if text.len() == 1 {
                            break;
                        }
                        list.push(self.keep(text));
                    }
                    list.push(0);
                    self.lists.push(list);
                    self.lists.last().map_or(0, |list| list.as_ptr() as usize)
                }
            };
        }
        Some(())
    }

    /// The address at which the bytes stay.
    fn keep(&mut self, mut bytes: Vec<u8>) -> usize {
        let address = bytes.as_mut_ptr() as usize;
        self.strings.push(bytes);
        address
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
unsafe fn buffer(word: usize, descriptor: bool, shown: bool, abi: &Abi) -> Option<usize> {
    let address = match (descriptor, shown) {
        // SAFETY: the compiler passes the address of one.
        (true, false) => unsafe { Descriptor::contiguous(word)? },
        // SAFETY: as above.
        (true, true) => unsafe { Descriptor::base(word) },
        (false, _) => word,
    };
    Some(if Fortran::is_in_place(abi, address) {
        abi.constants.in_place
    } else if is_bottom(address) {
        0
    } else {
        address
    })
}

/// A Fortran string as C has it: without the blanks at its end, with a NUL.
///
/// # Safety
/// It must be that long.
unsafe fn c_string(address: usize, length: usize) -> Vec<u8> {
    // SAFETY: the contract.
    let text = unsafe { std::slice::from_raw_parts(address as *const u8, length) };
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    [&text[..end], &[0]].concat()
}

/// Whether an address in C is a buffer of any type in Fortran, by its name.
fn is_choice(name: &str) -> bool {
    matches!(name, "base" | "buffer" | "location")
}

/// The beginning of what describes an array that one Fortran procedure passes to another: gfortran's, from its version 9 on. In
/// those of other compilers only the first word is the same.
#[repr(C)]
struct Descriptor {
    base: usize,
    offset: isize,
    element: usize,
    version: i32,
    rank: i8,
    kind: i8,
    attribute: i16,
    span: isize,
}

/// One of its dimensions; strides are in units of the span.
#[repr(C)]
struct Dimension {
    stride: isize,
    lower: isize,
    upper: isize,
}

impl Descriptor {
    /// Where the data begins.
    ///
    /// # Safety
    /// `word` must be the address of a descriptor.
    unsafe fn base(word: usize) -> usize {
        // SAFETY: the contract.
        unsafe { (*(word as *const Self)).base }
    }

    /// Where the data is, if it is known to lie in one piece.
    ///
    /// # Safety
    /// `word` must be the address of a descriptor.
    unsafe fn contiguous(word: usize) -> Option<usize> {
        static IS_GFORTRAN: OnceLock<bool> = OnceLock::new();
        if !IS_GFORTRAN.get_or_init(|| symbols::function(c"_gfortran_set_options").is_some()) {
            return None;
        }
        // SAFETY: the contract; the dimensions follow.
        let (this, dimensions) = unsafe {
            let this = &*(word as *const Self);
            let first = (word as *const Self).add(1).cast::<Dimension>();
            (this, std::slice::from_raw_parts(first, usize::try_from(this.rank).unwrap_or(0)))
        };
        if !dimensions.is_empty() && this.span != this.element as isize {
            return None;
        }
        let mut expected = 1;
        for dimension in dimensions {
            let extent = dimension.upper.wrapping_sub(dimension.lower).wrapping_add(1).max(0);
            if extent > 1 && dimension.stride != expected {
                return None;
            }
            // The extent of the last dimension may not be known; nothing comes after it.
            expected = expected.wrapping_mul(extent);
        }
        Some(this.base)
    }
}

/// A call that ends in a function of Fortran's, and that function.
type End = (Call, *mut dyn FnMut() -> i32);

thread_local!(static END: Cell<Option<End>> = const { Cell::new(None) });

/// Whether there was any on any thread.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Runs `enter`, a C call that enters the chain, whose last step is `real`.
pub(crate) fn ending_in<T>(call: Call, mut real: impl FnMut() -> i32, enter: impl FnOnce() -> T) -> T {
    let real: &mut dyn FnMut() -> i32 = &mut real;
    // SAFETY: only the lifetime is forgotten; it is taken back before `real` ends.
    let real: *mut (dyn FnMut() -> i32 + 'static) = unsafe { std::mem::transmute(real) };
    ENDS.store(true, Ordering::Relaxed);
    END.set(Some((call, real)));
    let given = enter();
    END.set(None);
    given
}

/// The last step of a call of this thread, if it is Fortran's.
#[inline(always)]
pub(super) fn end_of(call: Call) -> Option<i32> {
    if ENDS.load(Ordering::Relaxed) { run_end(call) } else { None }
}

fn run_end(call: Call) -> Option<i32> {
    let end = END.get();
    let (_, real) = end.filter(|(of, _)| *of == call)?;
    // What MPI calls on the way is no call of the program's.
    END.set(None);
    // SAFETY: set by `ending_in` on this thread, which has not returned.
    let code = unsafe { (*real)() };
    END.set(end);
    Some(code)
}
