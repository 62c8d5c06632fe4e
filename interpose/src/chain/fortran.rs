//! Calls from Fortran in a chain of tools: tools see the C function with C's arguments, and the chain ends in C's MPI function.
//!
//! Handles, integers, indices, special addresses and buffers are converted; buffers in descriptors only if they are contiguous. If
//! a call has other arguments (strings, callbacks, attributes, non-contiguous sections), tools are *shown* C's arguments, but the
//! chain ends in the Fortran function with the program's arguments. Calls that cannot be shown are recorded but not seen by tools.

use super::end::ending_in;
use super::enter::enter_tools;
use super::handlers::wants;
use crate::arguments::{abi, c_value, words_of};
use crate::call::SUCCESS;
use crate::fortran::{base, buffer, c_handle, contiguous, fortran_handle, text};
use crate::machine::{Frame, MOST};
use crate::record::{Next, Plan, pass, record};
use crate::tracer::Tracer;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Export, Form, Kind, Name};
use mpi_abi::tool::Cell;

/// Passes a call by a Fortran name through the chain, which begins at `head`.
///
/// # Safety
/// The frame must have the arguments of the program.
pub(super) unsafe fn go_through(head: Cell, number: usize, frame: Frame) -> i32 {
    let export = Export::get(number);
    let call = export.call();
    let count = words_of(export) - 1 - call.hidden_lengths();
    // SAFETY: the contract.
    unsafe {
        let all = frame.words(words_of(export));
        let (words, rest) = all[..words_of(export)].split_at(count);
        let [ierror, lengths @ ..] = rest else { return pass(number, frame) };
        let descriptors = export.form == Form::Descriptors;
        match call {
            // The C functions have additional arguments.
            Call::MPI_Init => {
                return ending_in(call, || pass(number, frame), || enter_tools(head, &[0, 0], call));
            }
            Call::MPI_Init_thread => {
                let required = *(words[0] as *const i32) as usize;
                let words = [0, 0, required, words[1]];
                return ending_in(call, || pass(number, frame), || enter_tools(head, &words, call));
            }
            _ => {}
        }
        let Some(abi) = abi() else { return pass(number, frame) };
        if is_convertible(call)
            && let Some(mut converted) = Converted::new(call, words, None, descriptors, abi)
        {
            converted.set_addresses();
            let code = enter_tools(head, &converted.words, call);
            converted.write_outputs(words, abi);
            // The address is null or the program's INTEGER.
            (*ierror as *mut i32).as_mut().into_iter().for_each(|place| *place = code);
            return code;
        }
        if can_be_shown(call)
            && let Some(mut shown) = Converted::new(call, words, Some(lengths), descriptors, abi)
        {
            shown.set_addresses();
            let arguments = shown.words;
            let real = || {
                let code = pass(number, frame);
                if code == SUCCESS {
                    copy_outputs(call, &arguments, words, lengths, abi);
                }
                code
            };
            return ending_in(call, real, || enter_tools(head, &arguments, call));
        }
        Recorders { number, place: 0 }.call(frame)
    }
}

/// The recorders from `place` on, then MPI, with Fortran's arguments.
#[derive(Clone, Copy)]
struct Recorders {
    number: usize,
    place: usize,
}

impl Next for Recorders {
    unsafe fn call(self, frame: Frame) -> i32 {
        let next = Self { place: self.place + 1, ..self };
        // SAFETY: the contract; the lane is the calling thread's.
        unsafe {
            if self.place >= crate::machine::RECORDERS {
                return pass(self.number, frame);
            }
            let tracer =
                Tracer::at(self.place).filter(|tracer| wants(tracer, Export::get(self.number).call()));
            match tracer.and_then(|tracer| tracer.lane().zip(Plan::of(self.number, tracer.abi()))) {
                Some((lane, plan)) => record(plan, frame, lane, next),
                None => next.call(frame),
            }
        }
    }
}

/// Whether all arguments of a function can be converted, so that the C function can replace the Fortran function.
fn is_convertible(call: Call) -> bool {
    can_be_shown(call)
        && !matches!(call.category(), Category::Attribute | Category::Process)
        && call.parameters().iter().all(|parameter| {
            !parameter.kind.is_string()
                && !matches!(parameter.kind, Kind::Function | Kind::Pointer | Kind::InfoArray)
        })
}

/// Whether the arguments of a function have a C form.
fn can_be_shown(call: Call) -> bool {
    use Call::*;
    let special_weights = matches!(call, MPI_Dist_graph_create | MPI_Dist_graph_create_adjacent);
    // MPI-1 functions: addresses are default INTEGERs in Fortran.
    let short_addresses = matches!(
        call,
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
    let handles_out = call == MPI_Type_get_contents;
    !(special_weights || short_addresses || handles_out)
        && call.category() != Category::Session
        && call.parameters().iter().all(|parameter| {
            !matches!(parameter.kind, Kind::Vararg | Kind::Session | Kind::SessionPtr)
                && (!parameter.kind.is_handle_array() || length_of_arrays(call).is_some())
        })
}

/// The position of the length of arrays of handles.
fn length_of_arrays(call: Call) -> Option<usize> {
    call.position(Name::Count).or_else(|| call.position(Name::Incount))
}

/// Whether the argument is the address of a single handle.
fn points_to_handle(kind: Kind) -> bool {
    kind.target().is_some() && !kind.is_handle_array()
}

/// The arguments of a Fortran call in C's form.
struct Converted {
    call: Call,
    words: [usize; MOST],
    /// For each address of a handle: the handle during the call, and before it.
    places: [(usize, usize); MOST],
    /// For each array of handles: its position, its converted copy, and the handles before the call.
    arrays: Vec<(usize, Vec<u64>, Vec<usize>)>,
    strings: Vec<Vec<u8>>,
    lists: Vec<Vec<usize>>,
}

impl Converted {
    /// `lengths`: the lengths of strings, if the call is shown; `None`: the C function replaces the Fortran function.
    ///
    /// # Safety
    /// The words must be the program's arguments.
    unsafe fn new(
        call: Call,
        words: &[usize],
        lengths: Option<&[usize]>,
        descriptors: bool,
        abi: &'static Abi,
    ) -> Option<Self> {
        let mut made = Self {
            call,
            words: [0; MOST],
            places: [(0, 0); MOST],
            arrays: Vec::new(),
            strings: Vec::new(),
            lists: Vec::new(),
        };
        for (i, (parameter, &word)) in call.parameters().iter().zip(words).enumerate() {
            let is_choice = matches!(parameter.name, Name::Base | Name::Buffer | Name::Location);
            // SAFETY: the contract: integers and handles are readable.
            unsafe {
                made.words[i] = match parameter.kind {
                    Kind::Buffer if descriptors && lengths.is_none() => buffer(abi, contiguous(word)?),
                    Kind::Pointer if descriptors && is_choice => base(word),
                    kind => c_value(abi, kind, word, descriptors),
                };
                if points_to_handle(parameter.kind) {
                    // An output may be uninitialised, which the conversion tolerates.
                    let handle = c_handle(abi, parameter.kind, *(word as *const i32));
                    made.places[i] = (handle, handle);
                }
            }
        }
        let number = |place: usize| usize::try_from(made.words[place] as i32).unwrap_or(0);
        let length = length_of_arrays(call).map(number);
        for (i, parameter) in call.parameters().iter().enumerate() {
            if parameter.kind.is_handle_array() {
                let size = abi.handle_size;
                // In words, for alignment.
                let mut room = vec![0u64; (length.unwrap_or(0) * size).div_ceil(8)];
                let mut before = Vec::new();
                for at in 0..length.unwrap_or(0) {
                    // SAFETY: the program's array has `length` elements; the copy is as long.
                    unsafe {
                        let handle = c_handle(abi, parameter.kind, *(words[i] as *const i32).add(at));
                        let place = room.as_mut_ptr().cast::<u8>().add(at * size);
                        place.copy_from_nonoverlapping(handle.to_ne_bytes().as_ptr(), size);
                        before.push(handle);
                    }
                }
                made.arrays.push((i, room, before));
            }
        }
        // SAFETY: the contract.
        unsafe { made.place_strings(words, lengths.unwrap_or_default(), length)? };
        Some(made)
    }

    /// Converts strings to NUL-terminated ones. `most`: the number of strings in a list, if the call has a count.
    ///
    /// # Safety
    /// As [`Converted::new`].
    unsafe fn place_strings(
        &mut self,
        words: &[usize],
        lengths: &[usize],
        most: Option<usize>,
    ) -> Option<()> {
        let mut lengths = lengths.iter();
        for (i, parameter) in self.call.parameters().iter().enumerate() {
            if !parameter.kind.is_string() {
                continue;
            }
            let length = *lengths.next()?;
            // SAFETY: the program passed strings of that length.
            let c_string = |address| [unsafe { text(address, length) }, &[0]].concat();
            self.words[i] = match parameter.kind {
                Kind::Str => self.keep(c_string(words[i])),
                Kind::StrOut => self.keep(vec![0; length + 1]),
                // Matrices of strings are shown as MPI_ARGVS_NULL.
                _ if parameter.name == Name::ArrayOfArgv => 0,
                _ => {
                    let mut list = Vec::new();
                    // A list without a count ends with a blank string.
                    while most.is_none_or(|most| list.len() < most) {
                        let text = c_string(words[i] + list.len() * length);
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

    /// Stores bytes for the duration of the call; returns their address.
    fn keep(&mut self, mut bytes: Vec<u8>) -> usize {
        let address = bytes.as_mut_ptr() as usize;
        self.strings.push(bytes);
        address
    }

    /// Sets the addresses of our copies, once `self` is not moved any more.
    fn set_addresses(&mut self) {
        for (i, parameter) in self.call.parameters().iter().enumerate() {
            if points_to_handle(parameter.kind) {
                self.words[i] = &raw mut self.places[i].0 as usize;
            }
        }
        for (i, room, _) in &mut self.arrays {
            self.words[*i] = room.as_mut_ptr() as usize;
        }
    }

    /// Converts the outputs of the call to Fortran.
    ///
    /// # Safety
    /// The words must be those passed to [`Converted::new`].
    unsafe fn write_outputs(&self, words: &[usize], abi: &Abi) {
        for (i, parameter) in self.call.parameters().iter().enumerate() {
            let (after, before) = self.places[i];
            // Files are pointers in every ABI.
            let after = if parameter.kind == Kind::FilePtr { after } else { after & abi.handle_mask() };
            if points_to_handle(parameter.kind) && after != before {
                // SAFETY: the program's INTEGER for this handle.
                unsafe { *(words[i] as *mut i32) = fortran_handle(abi, parameter.kind, after) };
            }
        }
        for (i, room, before) in &self.arrays {
            for (at, before) in before.iter().enumerate() {
                // SAFETY: the call has left a handle there; the program's array is as long.
                unsafe {
                    let after = abi.read_handle(room.as_ptr().cast::<u8>().add(at * abi.handle_size));
                    if after != *before {
                        let kind = self.call.parameters()[*i].kind;
                        *(words[*i] as *mut i32).add(at) = fortran_handle(abi, kind, after);
                    }
                }
            }
        }
        // Fortran counts indices from 1.
        // SAFETY: the program's INTEGERs, which the call has set.
        let shift = |index: *mut i32| unsafe {
            if *index != abi.constants.undefined && *index >= 0 {
                *index += 1;
            }
        };
        if let Some(i) = self.call.position(Name::Indx).filter(|_| self.call.category() == Category::Wait) {
            shift(words[i] as *mut i32);
        }
        if let (Some(count), Some(i)) =
            (self.call.position(Name::Outcount), self.call.position(Name::ArrayOfIndices))
        {
            // SAFETY: as above.
            let count = unsafe { *(words[count] as *const i32) };
            for at in 0..usize::try_from(count).unwrap_or(0) {
                shift((words[i] as *mut i32).wrapping_add(at));
            }
        }
    }
}

/// Copies the outputs of the Fortran function to the arguments that the tools see.
///
/// # Safety
/// `shown` must be the words of a [`Converted`] made from `words`, which were passed to the function.
unsafe fn copy_outputs(call: Call, shown: &[usize; MOST], words: &[usize], lengths: &[usize], abi: &Abi) {
    let mut lengths = lengths.iter();
    for (i, parameter) in call.parameters().iter().enumerate() {
        let length = if parameter.kind.is_string() { lengths.next().copied().unwrap_or(0) } else { 0 };
        // SAFETY: our own places, as long as the program's.
        unsafe {
            if points_to_handle(parameter.kind) {
                *(shown[i] as *mut usize) = c_handle(abi, parameter.kind, *(words[i] as *const i32));
            } else if parameter.kind == Kind::StrOut {
                let text = [text(words[i], length), &[0]].concat();
                (shown[i] as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
            }
        }
    }
}
