//! What a table of handlers leads to where it is not a tool's own function for one of MPI's: a handler for any function, the
//! recorder, and the last step, to MPI.

use super::end::end_of;
use crate::hooks;
use crate::machine::{self, Frame, MOST, OwnFrame, trampoline};
use crate::objects;
use crate::record::{Next, Plan, record};
use crate::tracer::{State, Tracer};
use mpi_abi::ERR_NO_SUCH_FUNCTION;
use mpi_abi::prototypes::{Call, Group};
use mpi_abi::symbols::call_with;
use mpi_abi::tool::{AnyCall, Cell, Descriptor, Layer};
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// What a cell passes as the first argument to [`sit`].
struct Seat {
    call: Call,
    /// The number of its C name.
    number: usize,
    does: Does,
}

/// What is done with a call.
enum Does {
    /// A tool's handler for any function gets it.
    Any(*mut Layer, unsafe extern "C-unwind" fn(*mut Layer, *mut AnyCall) -> c_int),
    /// The recorder at a place gets it, which writes to a directory, and goes on to the tools behind it.
    Record(usize, PathBuf, &'static [Cell]),
    /// MPI gets it, which does not return from `MPI_Abort`: that is told before.
    Last(fn()),
}

trampoline! {
    /// A handler whose layer is a [`Seat`].
    sit => seated
}

unsafe extern "C-unwind" fn seated(_number: usize, frame: Frame, _lane: *mut c_void) -> i32 {
    // SAFETY: a seat comes first, then the arguments of its function.
    unsafe {
        let seat = &*(frame.word(0) as *const Seat);
        let count = seat.call.parameters().len();
        let all = frame.words(1 + count);
        let words = &all[1..=count];
        match &seat.does {
            Does::Any(layer, any) => {
                let mut words: [usize; MOST] = {
                    let mut own = [0; MOST];
                    own[..count].copy_from_slice(words);
                    own
                };
                let mut call =
                    AnyCall { number: seat.call as u32, count: count as u32, words: words.as_mut_ptr() };
                any(*layer, &raw mut call)
            }
            Does::Record(place, directory, behind) => seat.record((*place, directory), behind, words),
            Does::Last(aborts) => seat.last(*aborts, words),
        }
    }
}

/// Goes on to a cell.
///
/// # Safety
/// The words must be valid arguments of the function.
pub(super) unsafe fn go_on(cell: Cell, words: &[usize], call: Call) -> i32 {
    let count = call.parameters().len();
    let mut all = [0; MOST];
    all[0] = cell.layer as usize;
    all[1..=count].copy_from_slice(&words[..count]);
    // SAFETY: a handler takes its layer, then what the function takes.
    unsafe { call_with(cell.function, &all, 1 + count) }
}

impl Seat {
    /// # Safety
    /// The words must be valid arguments of the function.
    unsafe fn last(&self, aborts: fn(), words: &[usize]) -> i32 {
        if self.call == Call::MPI_Abort {
            aborts();
        }
        if let Some(code) = end_of(self.call) {
            return code;
        }
        let Some(real) = machine::real(self.number) else { return ERR_NO_SUCH_FUNCTION };
        let mut all = [0; MOST];
        all[..words.len()].copy_from_slice(words);
        // SAFETY: the contract.
        unsafe { call_with(real, &all, words.len()) }
    }

    /// # Safety
    /// As [`Seat::last`].
    unsafe fn record(&self, at: (usize, &Path), behind: &[Cell], words: &[usize]) -> i32 {
        let next = ToCell { cell: behind[self.call as usize], call: self.call };
        let mut own = OwnFrame::new(words);
        let frame = own.frame();
        // SAFETY: the contract; the lane is the calling thread's.
        unsafe {
            if is_beginning(self.call) {
                return hooks::begin(self.number, frame, at, false, || next.call(frame));
            }
            let recorded = match Tracer::at(at.0) {
                Some(tracer) if wants(tracer, self.call) => {
                    tracer.lane().zip(Plan::of(self.number, tracer.abi()))
                }
                _ => None,
            };
            match recorded {
                Some((lane, plan)) => record(plan, frame, lane, next),
                None => next.call(frame),
            }
        }
    }
}

/// Whether a function begins something.
fn is_beginning(call: Call) -> bool {
    matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Session_init)
}

/// Whether a recorder looks at the calls of a function now.
fn wants(tracer: &'static Tracer, call: Call) -> bool {
    match tracer.state() {
        State::Recording => true,
        State::Paused => hooks::of(call).is_some_and(|hook| hook.even_paused(call)),
        State::Closed | State::Over => false,
    }
}

/// On to the next tool.
#[derive(Clone, Copy)]
struct ToCell {
    cell: Cell,
    call: Call,
}

impl Next for ToCell {
    unsafe fn call(self, frame: Frame) -> i32 {
        // SAFETY: the contract.
        unsafe { go_on(self.cell, &frame.words(self.call.parameters().len()), self.call) }
    }

    unsafe fn is_mpis_own(self, _frame: Frame) -> bool {
        // Those do not enter the chain.
        false
    }
}

fn cell(call: Call, does: Does) -> Option<Cell> {
    let number = machine::c_name(call)?;
    let seat: *mut Seat = Box::into_raw(Box::new(Seat { call, number, does }));
    Some(Cell { function: NonNull::new(sit as *mut c_void)?, layer: seat.cast() })
}

/// The table of a chain without tools. `aborts`: told of `MPI_Abort`.
pub(super) fn lasts(aborts: fn()) -> &'static [Cell] {
    static CELLS: OnceLock<Vec<Cell>> = OnceLock::new();
    CELLS.get_or_init(|| {
        // Functions that cannot be intercepted are not called through the table either.
        let stand_in = cell(Call::MPI_Initialized, Does::Last(aborts))
            .unwrap_or(Cell { function: NonNull::dangling(), layer: null_mut() });
        Call::all().map(|call| cell(call, Does::Last(aborts)).unwrap_or(stand_in)).collect()
    })
}

/// Puts the recorder at a place, which writes to a directory, in front of the handlers in `cells`, which are those behind it.
pub(super) fn record_at(cells: &mut [Cell], place: usize, directory: &Path, behind: &'static [Cell]) {
    for call in Call::all().filter(|&call| hooks::of(call).is_some() || is_beginning(call)) {
        if let Some(cell) = cell(call, Does::Record(place, directory.to_owned(), behind)) {
            cells[call as usize] = cell;
        }
    }
}

/// Puts the handlers of a layer in front of those in `cells`.
pub(super) fn intercept(cells: &mut [Cell], descriptor: &'static Descriptor, layer: *mut Layer) {
    objects::add_own(std::ptr::from_ref(descriptor).cast());
    if let Some(any) = descriptor.any {
        // Of MPI_Pcontrol every tool hears in another way.
        let calls = Call::all().filter(|call| call.group() != Group::Others && *call != Call::MPI_Pcontrol);
        for call in calls {
            // SAFETY: the tool's function and its own layer.
            if descriptor.wants.is_none_or(|wants| unsafe { wants(layer, call as c_int) } != 0)
                && let Some(cell) = cell(call, Does::Any(layer, any))
            {
                cells[call as usize] = cell;
            }
        }
    }
    let mut list = descriptor.intercepts;
    // SAFETY: null, or a list that ends with a null function.
    while let Some(entry) = unsafe { list.as_ref() } {
        let Some(function) = NonNull::new(entry.function.cast_mut()) else { break };
        if let Some(cell) = cells.get_mut(entry.number as usize) {
            *cell = Cell { function, layer: layer.cast() };
        }
        // SAFETY: not at the end yet.
        list = unsafe { list.add(1) };
    }
}
