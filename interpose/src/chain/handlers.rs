//! The way of a call through the tables of a chain, and the handlers in them other than a tool's typed ones: a tool's handler for any
//! function, the recorder, and MPI.

use super::catch::catching;
use crate::guard::warn;
use crate::hooks;
use crate::machine::{self, Chained, ChainedGuard, Frame, MOST, OwnFrame, trampoline};
use crate::objects;
use crate::record::{CallPlan, CallTarget, record};
use crate::tracer::Tracer;
use mpi_abi::ERR_NO_SUCH_FUNCTION;
use mpi_abi::prototypes::{Call, Export, Group};
use mpi_abi::symbols::call_with;
use mpi_abi::tool::{AnyCall, ChainCell, Descriptor, Layer};
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a tool has thrown an exception.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// A tool has thrown an exception in a call, or in another of its functions: it must not be called any more. As other tools and
/// recorders may be in the middle of the call, the chain ends when the call has left it.
#[cold]
pub(super) fn note_exception(within: &str) {
    if !BROKEN.swap(true, Ordering::AcqRel) {
        warn(&format!(
            "a tool threw an exception in {within}: the program continues without tools and without recording"
        ));
    }
}

/// Whether a tool has thrown an exception.
pub(super) fn is_broken() -> bool {
    BROKEN.load(Ordering::Relaxed)
}

/// Makes a call enter the tools at `head`. If one of them throws an exception, MPI is called directly, unless it has been called.
///
/// # Safety
/// The words must be valid arguments of the function.
pub(super) unsafe fn enter_tools(head: ChainCell, words: &[usize], call: Call) -> i32 {
    let thread = machine::thread();
    thread.chained.set(Chained {
        call: call as u16,
        in_mpi: false,
        has_returned: false,
        ..thread.chained.get()
    });
    // SAFETY: the contract.
    let call_cell = |cell| unsafe { call_cell(cell, words, call) };
    if let Some(code) = catching(|| call_cell(head)) {
        return code;
    }
    note_exception(call.name());
    match thread.chained.get() {
        Chained { has_returned: true, code, .. } => code,
        _ => mpi_handler(call).map_or(ERR_NO_SUCH_FUNCTION, call_cell),
    }
}

/// The last step of a call from Fortran that is only shown to tools: the Fortran function instead of C's.
struct End<'a> {
    call: Call,
    real: &'a dyn Fn() -> i32,
}

/// [`enter_tools`] with another last step. The entry of the chain has removed that of an enclosing call.
///
/// # Safety
/// As [`enter_tools`].
pub(super) unsafe fn enter_tools_ending_in(
    real: &dyn Fn() -> i32,
    head: ChainCell,
    words: &[usize],
    call: Call,
) -> i32 {
    let end = End { call, real };
    // The entry of the chain removes the pointer when the call has ended.
    let thread = machine::thread();
    thread.chained.set(Chained { end: (&raw const end).cast(), ..thread.chained.get() });
    // SAFETY: the contract.
    unsafe { enter_tools(head, words, call) }
}

/// For tools (`vef_tool.h`): whether the call of this thread ends in a Fortran function, whatever a tool passes on.
#[unsafe(no_mangle)]
extern "C" fn vef_call_is_shown() -> c_int {
    c_int::from(!machine::thread().chained.get().end.is_null())
}

/// The first argument that a cell passes to [`call_handler`].
struct Handler {
    call: Call,
    /// The export number of the C name.
    number: usize,
    kind: HandlerKind,
}

/// The kinds of handlers.
enum HandlerKind {
    /// A tool's handler for any function.
    Tool(*mut Layer, unsafe extern "C-unwind" fn(*mut Layer, *mut AnyCall) -> c_int),
    /// The recorder with this number and directory; its next step is in the table.
    Record(usize, PathBuf, &'static [ChainCell]),
    /// MPI. The function is called before `MPI_Abort`, which does not return.
    Mpi(fn()),
}

trampoline! {
    /// The code of a cell whose layer is a [`Handler`].
    call_handler => run_handler
}

unsafe extern "C-unwind" fn run_handler(_number: usize, frame: Frame, _lane: *mut c_void) -> i32 {
    // SAFETY: the handler comes first, then the arguments of its function.
    unsafe {
        let handler = &*(frame.word(0) as *const Handler);
        let count = handler.call.parameters().len();
        let words = &mut frame.words(1 + count)[1..];
        match &handler.kind {
            HandlerKind::Tool(layer, any) => {
                let (number, words) = (handler.call as u32, words.as_mut_ptr());
                any(*layer, &mut AnyCall { number, count: count as u32, words })
            }
            HandlerKind::Record(place, directory, behind) => {
                handler.record((*place, directory), behind, words)
            }
            HandlerKind::Mpi(aborts) => handler.call_mpi(*aborts, words),
        }
    }
}

/// Calls the handler of a cell.
///
/// # Safety
/// The words must be valid arguments of the function.
pub(super) unsafe fn call_cell(cell: ChainCell, words: &[usize], call: Call) -> i32 {
    let count = call.parameters().len();
    let mut all = [0; MOST];
    all[0] = cell.layer as usize;
    all[1..=count].copy_from_slice(&words[..count]);
    // SAFETY: a handler takes its layer, then what the function takes.
    unsafe { call_with(cell.function, &all, 1 + count) }
}

impl Handler {
    /// # Safety
    /// The words must be valid arguments of the function.
    unsafe fn call_mpi(&self, aborts: fn(), words: &[usize]) -> i32 {
        if self.call == Call::MPI_Abort {
            aborts();
        }
        let chained = machine::thread().chained.get();
        let in_mpi = ChainedGuard::enter(Chained { in_mpi: true, ..chained });
        // SAFETY: null, or that of a call that has not ended.
        let end = unsafe { chained.end.cast::<End>().as_ref() };
        let code = match (end.filter(|end| end.call == self.call), machine::real(self.number)) {
            (Some(end), _) => (end.real)(),
            (None, None) => return ERR_NO_SUCH_FUNCTION,
            (None, Some(real)) => {
                let mut all = [0; MOST];
                all[..words.len()].copy_from_slice(words);
                // SAFETY: the contract.
                unsafe { call_with(real, &all, words.len()) }
            }
        };
        drop(in_mpi);
        if chained.call == self.call as u16 {
            machine::thread().chained.set(Chained { has_returned: true, code, ..chained });
        }
        code
    }

    /// # Safety
    /// As [`Handler::call_mpi`].
    unsafe fn record(&self, at: (usize, &Path), behind: &[ChainCell], words: &[usize]) -> i32 {
        let (cell, call) = (behind[self.call as usize], self.call);
        // SAFETY: the arguments of the function.
        let next = |frame: Frame| unsafe { call_cell(cell, &frame.words(call.parameters().len()), call) };
        // SAFETY: the contract.
        let mut own = unsafe { OwnFrame::new(words) };
        let frame = own.frame();
        match is_beginning(self.call) {
            true => hooks::begin(self.number, frame, at, false, || next(frame)),
            false => record_with(at.0, self.number, frame, &next),
        }
    }
}

/// Whether a function starts a recording.
pub(crate) fn is_beginning(call: Call) -> bool {
    matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Session_init)
}

/// Makes a call by the name with this number by `next`, and records it if recorder number `place` currently records such calls.
pub(super) fn record_with(place: usize, number: usize, frame: Frame, next: &dyn Fn(Frame) -> i32) -> i32 {
    let recorded = Tracer::at(place).filter(|tracer| hooks::record(tracer, Export::get(number).call()));
    match recorded.and_then(|tracer| tracer.lane().zip(CallPlan::of(number, tracer.abi()))) {
        Some((lane, plan)) => record(plan, frame, lane, ToRest(next)),
        None => next(frame),
    }
}

/// The call goes to the rest of a chain of tools.
#[derive(Clone, Copy)]
struct ToRest<'a>(&'a dyn Fn(Frame) -> i32);

impl CallTarget for ToRest<'_> {
    fn call(self, frame: Frame) -> i32 {
        (self.0)(frame)
    }
}

fn cell(call: Call, kind: HandlerKind) -> Option<ChainCell> {
    let number = machine::c_name(call)?;
    let handler: *mut Handler = Box::into_raw(Box::new(Handler { call, number, kind }));
    Some(ChainCell { function: NonNull::new(call_handler as *mut c_void)?, layer: handler.cast() })
}

/// The table of a chain without tools, once it is made.
static MPI: OnceLock<Vec<ChainCell>> = OnceLock::new();

/// The table of a chain without tools. `aborts` is called before `MPI_Abort`.
pub(super) fn mpi_handlers(aborts: fn()) -> &'static [ChainCell] {
    MPI.get_or_init(|| {
        // Functions that cannot be intercepted are never called through the table.
        let stand_in = cell(Call::MPI_Initialized, HandlerKind::Mpi(aborts))
            .unwrap_or(ChainCell { function: NonNull::dangling(), layer: null_mut() });
        Call::all().map(|call| cell(call, HandlerKind::Mpi(aborts)).unwrap_or(stand_in)).collect()
    })
}

/// The handler of a function in that table; `None` before any chain is made.
pub(super) fn mpi_handler(call: Call) -> Option<ChainCell> {
    MPI.get()?.get(call as usize).copied()
}

/// Inserts recorder number `place` in front of the handlers in `cells`, which are those `behind` it.
pub(super) fn insert_recorder(
    cells: &mut [ChainCell],
    place: usize,
    directory: &Path,
    behind: &'static [ChainCell],
) {
    for call in Call::all().filter(|&call| hooks::of(call).is_some() || is_beginning(call)) {
        if let Some(cell) = cell(call, HandlerKind::Record(place, directory.to_owned(), behind)) {
            cells[call as usize] = cell;
        }
    }
}

type Wants = unsafe extern "C-unwind" fn(*mut Layer, c_int) -> c_int;

/// Inserts the handlers of a layer in front of those in `cells`.
pub(super) fn insert_tool(cells: &mut [ChainCell], descriptor: &'static Descriptor, layer: *mut Layer) {
    objects::add_internal(std::ptr::from_ref(descriptor).cast());
    if let Some(any) = descriptor.any {
        // Tools get MPI_Pcontrol by a function of its own.
        let calls = Call::all().filter(|call| call.group() != Group::Others && *call != Call::MPI_Pcontrol);
        for call in calls {
            // SAFETY: the tool's function and its own layer.
            let wanted = |wants: Wants| catching(|| unsafe { wants(layer, call as c_int) }) != Some(0);
            if descriptor.wants.is_none_or(wanted)
                && let Some(cell) = cell(call, HandlerKind::Tool(layer, any))
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
            *cell = ChainCell { function, layer: layer.cast() };
        }
        // SAFETY: not at the end yet.
        list = unsafe { list.add(1) };
    }
}
