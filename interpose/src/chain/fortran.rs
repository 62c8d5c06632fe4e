//! Calls from Fortran in a chain of tools: tools see the C function with C's arguments, and the chain ends in C's MPI function.
//!
//! Handles, integers, indices, special addresses and buffers are converted; buffers in descriptors only if they are contiguous. If
//! a call has other arguments (strings, callbacks, attributes, non-contiguous sections), tools are *shown* C's arguments, but the
//! chain ends in the Fortran function with the program's arguments. Calls that cannot be shown are recorded but not seen by tools.

use super::handlers::{enter_tools, enter_tools_ending_in, record_with};
use crate::arguments::{abi, c_value, words_of};
use crate::call::SUCCESS;
use crate::fortran::{base, c_address, c_handle, contiguous, fortran_handle, has_converters, text};
use crate::machine::{Frame, MOST, RECORDERS};
use crate::record::pass;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Convention, Export, Kind, Name, Parameter};
use mpi_abi::tool::ChainCell;

/// Passes a call by a Fortran name through the chain, which begins at `head`.
pub(super) fn go_through(head: ChainCell, number: usize, frame: Frame) -> i32 {
    let export = Export::get(number);
    let call = export.call();
    let given = frame.words(words_of(export));
    let count = words_of(export) - 1 - call.hidden_lengths();
    let (ierror, lengths) = (given[count] as *mut i32, &given[count + 1..words_of(export)]);
    let descriptors = export.form == Convention::Descriptors;
    let unchanged = || pass(number, frame);
    // SAFETY: the program's arguments. The C functions for initialisation have additional ones.
    unsafe {
        match call {
            Call::MPI_Init => return enter_tools_ending_in(&unchanged, head, &[0, 0], call),
            Call::MPI_Init_thread => {
                let required = *(given[0] as *const i32) as usize;
                return enter_tools_ending_in(&unchanged, head, &[0, 0, required, given[1]], call);
            }
            _ => {}
        }
        let Some(abi) = abi() else { return unchanged() };
        let has_converters = has_converters(abi, call);
        if has_converters
            && is_convertible(call)
            && let Some(converted) = Converted::new(call, given, None, descriptors, abi)
        {
            let code = enter_tools(head, &converted.words, call);
            converted.write_outputs();
            // The address is null or the program's INTEGER.
            ierror.as_mut().into_iter().for_each(|place| *place = code);
            return code;
        }
        if has_converters
            && can_be_shown(call)
            && let Some(shown) = Converted::new(call, given, Some(lengths), descriptors, abi)
        {
            let real = || {
                let code = unchanged();
                if code == SUCCESS {
                    shown.show_outputs(lengths);
                }
                code
            };
            return enter_tools_ending_in(&real, head, &shown.words, call);
        }
    }
    record_from(0, number, frame)
}

/// Passes a call through the recorders from `place` on, then to MPI, with Fortran's arguments.
fn record_from(place: usize, number: usize, frame: Frame) -> i32 {
    match place {
        RECORDERS => pass(number, frame),
        _ => record_with(place, number, frame, &|frame| record_from(place + 1, number, frame)),
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

/// The arguments that are addresses of handles: the position, the kind, the number of handles, and the bytes of each in C. `length`: the
/// length of arrays.
fn addresses_of_handles(
    call: Call,
    length: Option<usize>,
    abi: &'static Abi,
) -> impl Iterator<Item = (usize, Kind, usize, usize)> {
    call.parameters().iter().enumerate().filter(|(_, parameter)| parameter.kind.target().is_some()).map(
        move |(i, &Parameter { kind, .. })| {
            let count = if kind.is_handle_array() { length.unwrap_or(0) } else { 1 };
            // Files are pointers in every ABI.
            let size = if kind == Kind::FilePtr { size_of::<usize>() } else { abi.handle_size };
            (i, kind, count, size)
        },
    )
}

/// The arguments of a Fortran call in C's form.
struct Converted {
    call: Call,
    abi: &'static Abi,
    /// The program's arguments.
    given: [usize; MOST],
    words: [usize; MOST],
    /// The length of arrays of handles, if the call has one.
    length: Option<usize>,
    /// The handles behind addresses, during the call and before it; in words, for alignment.
    handles: Vec<u64>,
    before: Vec<u64>,
    strings: Vec<Vec<u8>>,
    lists: Vec<Vec<usize>>,
}

impl Converted {
    /// `lengths`: the lengths of strings, if the call is shown; `None`: the C function replaces the Fortran function.
    ///
    /// # Safety
    /// `given` must be the program's arguments.
    unsafe fn new(
        call: Call,
        given: [usize; MOST],
        lengths: Option<&[usize]>,
        descriptors: bool,
        abi: &'static Abi,
    ) -> Option<Self> {
        let mut made = Self {
            call,
            abi,
            given,
            words: [0; MOST],
            length: None,
            handles: Vec::new(),
            before: Vec::new(),
            strings: Vec::new(),
            lists: Vec::new(),
        };
        for (i, (parameter, &word)) in call.parameters().iter().zip(&given).enumerate() {
            let is_choice = matches!(parameter.name, Name::Base | Name::Buffer | Name::Location);
            // SAFETY: the contract: integers and handles are readable.
            made.words[i] = unsafe {
                match parameter.kind {
                    Kind::Buffer if descriptors && lengths.is_none() => c_address(abi, contiguous(word)?),
                    Kind::Pointer if descriptors && is_choice => base(word),
                    kind => c_value(abi, kind, word, descriptors),
                }
            };
        }
        made.length =
            length_of_arrays(call).map(|place| usize::try_from(made.words[place] as i32).unwrap_or(0));
        let addresses = || addresses_of_handles(call, made.length, abi);
        made.handles.resize(addresses().map(|(_, _, count, size)| (count * size).div_ceil(8)).sum(), 0);
        let mut place = made.handles.as_mut_ptr();
        for (i, kind, count, size) in addresses() {
            made.words[i] = place as usize;
            for at in 0..count {
                // SAFETY: the program's address is that of `count` handles, and our room is as long. An output may be uninitialised,
                // which the conversion tolerates.
                unsafe {
                    let handle = c_handle(abi, kind, *(given[i] as *const i32).add(at));
                    let place = place.cast::<u8>().add(at * size);
                    place.copy_from_nonoverlapping(handle.to_ne_bytes().as_ptr(), size);
                }
            }
            place = place.wrapping_add((count * size).div_ceil(8));
        }
        made.before.clone_from(&made.handles);
        made.place_strings(lengths.unwrap_or_default())?;
        Some(made)
    }

    /// Converts strings to NUL-terminated ones.
    fn place_strings(&mut self, lengths: &[usize]) -> Option<()> {
        for (i, length, kind) in strings(self.call, lengths) {
            let length = length?;
            // SAFETY: the program passed strings of that length.
            let c_string = |address| [unsafe { text(address, length) }, &[0]].concat();
            self.words[i] = match kind {
                Kind::Str => self.keep(c_string(self.given[i])),
                Kind::StrOut => self.keep(vec![0; length + 1]),
                // Matrices of strings are shown as MPI_ARGVS_NULL.
                _ if self.call.parameters()[i].name == Name::ArrayOfArgv => 0,
                _ => {
                    let mut list = Vec::new();
                    // A list without a count ends with a blank string.
                    while self.length.is_none_or(|most| list.len() < most) {
                        let text = c_string(self.given[i] + list.len() * length);
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

    /// Converts the outputs of the C function to Fortran, after the call.
    fn write_outputs(&self) {
        let (call, given, abi) = (self.call, &self.given, self.abi);
        for (i, kind, count, size) in addresses_of_handles(call, self.length, abi) {
            let after = self.words[i] as *const u8;
            let before =
                self.before.as_ptr().wrapping_byte_add(self.words[i] - self.handles.as_ptr() as usize);
            for at in 0..count {
                // SAFETY: the call has left a handle of this size there; the program's INTEGERs are as many.
                unsafe {
                    let handle = |address: *const u8| match size {
                        4 => *address.add(at * size).cast::<u32>() as usize,
                        _ => *address.add(at * size).cast::<usize>(),
                    };
                    if handle(after) != handle(before.cast()) {
                        *(given[i] as *mut i32).add(at) = fortran_handle(abi, kind, handle(after));
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
        if let Some(i) = call.position(Name::Indx).filter(|_| call.category() == Category::Wait) {
            shift(given[i] as *mut i32);
        }
        if let Some((count, i)) = call.position(Name::Outcount).zip(call.position(Name::ArrayOfIndices)) {
            // SAFETY: as above.
            let count = unsafe { *(given[count] as *const i32) };
            for at in 0..usize::try_from(count).unwrap_or(0) {
                shift((given[i] as *mut i32).wrapping_add(at));
            }
        }
    }

    /// Shows the outputs of the Fortran function, which has succeeded, to the tools.
    fn show_outputs(&self, lengths: &[usize]) {
        let (words, given) = (&self.words, &self.given);
        for (i, kind, ..) in addresses_of_handles(self.call, self.length, self.abi) {
            if !kind.is_handle_array() {
                // SAFETY: a handle of the program's and our room for it, which is a word.
                unsafe { *(words[i] as *mut usize) = c_handle(self.abi, kind, *(given[i] as *const i32)) };
            }
        }
        for (i, length, kind) in strings(self.call, lengths) {
            if let (Kind::StrOut, Some(length)) = (kind, length) {
                // SAFETY: the program's string, and our room, which has one byte more.
                unsafe {
                    let text = [text(given[i], length), &[0]].concat();
                    (words[i] as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
                }
            }
        }
    }
}

/// The arguments that are strings: the position, the length that Fortran passes, and the kind.
fn strings(call: Call, lengths: &[usize]) -> impl Iterator<Item = (usize, Option<usize>, Kind)> {
    let strings = call.parameters().iter().enumerate().filter(|(_, parameter)| parameter.kind.is_string());
    strings.enumerate().map(|(at, (i, parameter))| (i, lengths.get(at).copied(), parameter.kind))
}
