//! Fortran calls on their way into the chain: tools see the C function, with C's arguments, and C's MPI is what it ends in.
//!
//! Converted are handles (both ways), integers, indices, the addresses that mean something by themselves, and buffers (of
//! descriptors, those that are contiguous). Where that is not all there is to a call (strings, callbacks, attributes,
//! non-contiguous sections), tools are *shown* it: with C's arguments, but what it ends in is Fortran's own function with the
//! program's own arguments, so nothing that Fortran knows better is lost. What cannot be shown is recorded, but no tool sees it.

use super::end::ending_in;
use super::seat::go_on;
use crate::arguments::{abi, c_value, words_of};
use crate::call::SUCCESS;
use crate::fortran::{base, buffer, c_handle, contiguous, fortran_handle, text};
use crate::hooks;
use crate::machine::{Frame, MOST};
use crate::record::{Next, Plan, pass, record};
use crate::tracer::{State, Tracer};
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Export, Form, Kind, Name};
use mpi_abi::tool::Cell;

/// Makes a call by a Fortran name go through the chain, which begins with `head`.
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
            // C's have arguments that Fortran's lack.
            Call::MPI_Init => return ending_in(call, || pass(number, frame), || go_on(head, &[0, 0], call)),
            Call::MPI_Init_thread => {
                let required = *(words[0] as *const i32) as usize;
                let words = [0, 0, required, words[1]];
                return ending_in(call, || pass(number, frame), || go_on(head, &words, call));
            }
            _ => {}
        }
        let Some(abi) = abi() else { return pass(number, frame) };
        if is_convertible(call)
            && let Some(mut converted) = Converted::new(call, words, None, descriptors, abi)
        {
            converted.point();
            let code = go_on(head, &converted.words, call);
            converted.give_back(words, abi);
            // Null, or the program's INTEGER for it.
            (*ierror as *mut i32).as_mut().into_iter().for_each(|place| *place = code);
            return code;
        }
        if can_be_shown(call)
            && let Some(mut shown) = Converted::new(call, words, Some(lengths), descriptors, abi)
        {
            shown.point();
            let arguments = shown.words;
            let real = || {
                let code = pass(number, frame);
                if code == SUCCESS {
                    tell_outputs(call, &arguments, words, lengths, abi);
                }
                code
            };
            return ending_in(call, real, || go_on(head, &arguments, call));
        }
        Recorders { number, place: 0 }.call(frame)
    }
}

/// From a recorder on, all of them and MPI, with Fortran's arguments.
#[derive(Clone, Copy)]
struct Recorders {
    number: usize,
    place: usize,
}

impl Next for Recorders {
    unsafe fn call(self, frame: Frame) -> i32 {
        let wants = |tracer: &&'static Tracer| match tracer.state() {
            State::Recording => true,
            State::Paused => {
                let call = Export::get(self.number).call();
                hooks::of(call).is_some_and(|hook| hook.even_paused(call))
            }
            State::Closed | State::Over => false,
        };
        let next = Self { place: self.place + 1, ..self };
        // SAFETY: the contract; the lane is the calling thread's.
        unsafe {
            if self.place >= crate::machine::RECORDERS {
                return pass(self.number, frame);
            }
            let tracer = Tracer::at(self.place).filter(wants);
            match tracer.and_then(|tracer| tracer.lane().zip(Plan::of(self.number, tracer.abi()))) {
                Some((lane, plan)) => record(plan, frame, lane, next),
                None => next.call(frame),
            }
        }
    }

    unsafe fn is_mpis_own(self, _frame: Frame) -> bool {
        // Those do not enter the chain.
        false
    }
}

/// Whether all arguments of a function can be converted, so that C's can be called in the place of Fortran's.
fn is_convertible(call: Call) -> bool {
    can_be_shown(call)
        && !matches!(call.category(), Category::Attribute | Category::Process)
        && call.parameters().iter().all(|parameter| {
            !parameter.kind.is_string()
                && !matches!(parameter.kind, Kind::Function | Kind::Pointer | Kind::InfoArray)
        })
}

/// Whether the arguments of a function say in C what they say in Fortran.
fn can_be_shown(call: Call) -> bool {
    use Call::*;
    let special_weights = matches!(call, MPI_Dist_graph_create | MPI_Dist_graph_create_adjacent);
    // Of MPI 1: where C has addresses, Fortran has integers of half their size.
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

/// The parameter that says how long the arrays of handles are.
fn length_of_arrays(call: Call) -> Option<usize> {
    call.position(Name::Count).or_else(|| call.position(Name::Incount))
}

/// One handle behind an address: in a place of ours while the call runs.
fn points_to_handle(kind: Kind) -> bool {
    kind.target().is_some() && !kind.is_handle_array()
}

/// The arguments of a Fortran call as C has them.
struct Converted {
    call: Call,
    words: [usize; MOST],
    /// For each parameter that is the address of a handle: what is there now, and what was there before.
    places: [(usize, usize); MOST],
    /// For each that is an array of handles: its place, the room for it, and what was in it.
    arrays: Vec<(usize, Vec<u64>, Vec<usize>)>,
    strings: Vec<Vec<u8>>,
    lists: Vec<Vec<usize>>,
}

impl Converted {
    /// `lengths`: those of the strings of a call that is shown; `None`: C's function is to do what Fortran's would.
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
            // SAFETY: the contract: addresses of integers and handles that can be read.
            unsafe {
                made.words[i] = match parameter.kind {
                    Kind::Buffer if descriptors && lengths.is_none() => buffer(abi, contiguous(word)?),
                    Kind::Pointer if descriptors && is_choice => base(word),
                    kind => c_value(abi, kind, word, descriptors),
                };
                if points_to_handle(parameter.kind) {
                    // Of an output it may be anything, which the conversion allows for.
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
                // In words, for their alignment.
                let mut room = vec![0u64; (length.unwrap_or(0) * size).div_ceil(8)];
                let mut before = Vec::new();
                for at in 0..length.unwrap_or(0) {
                    // SAFETY: the program passed an array that long; the place is within the room.
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

    /// Strings as C has them: as long as they need to be, with a NUL. `most`: how many there are in a list, if that is said.
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
                // Rows of a matrix of strings are not shown: MPI_ARGVS_NULL.
                _ if parameter.name == Name::ArrayOfArgv => 0,
                _ => {
                    let mut list = Vec::new();
                    // Without a number of them, the last one is blank.
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

    /// The address at which the bytes stay.
    fn keep(&mut self, mut bytes: Vec<u8>) -> usize {
        let address = bytes.as_mut_ptr() as usize;
        self.strings.push(bytes);
        address
    }

    /// Addresses of our own places, once those no longer move.
    fn point(&mut self) {
        for (i, parameter) in self.call.parameters().iter().enumerate() {
            if points_to_handle(parameter.kind) {
                self.words[i] = &raw mut self.places[i].0 as usize;
            }
        }
        for (i, room, _) in &mut self.arrays {
            self.words[*i] = room.as_mut_ptr() as usize;
        }
    }

    /// Hands what the call has changed to Fortran.
    ///
    /// # Safety
    /// The words must be those that this was made of.
    unsafe fn give_back(&self, words: &[usize], abi: &Abi) {
        for (i, parameter) in self.call.parameters().iter().enumerate() {
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
                // SAFETY: a handle that the call has left there; the program's array is that long.
                unsafe {
                    let after = abi.read_handle(room.as_ptr().cast::<u8>().add(at * abi.handle_size));
                    if after != *before {
                        let kind = self.call.parameters()[*i].kind;
                        *(words[*i] as *mut i32).add(at) = fortran_handle(abi, kind, after);
                    }
                }
            }
        }
        // Indices count from 1.
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

/// Writes what a call of Fortran's has given where the tools look for it.
///
/// # Safety
/// `shown` must be the words of a [`Converted`] made of `words`, which were passed to the call.
unsafe fn tell_outputs(call: Call, shown: &[usize; MOST], words: &[usize], lengths: &[usize], abi: &Abi) {
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
