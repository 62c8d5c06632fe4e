//! The chain of tools between the program and MPI: several tools in order, each possibly more than once.
//!
//! `VEF_TOOLS` (or `TOOLS`) names them: files, and `capture`, `profile` and `text`, which stand for the recorder.
//! Without files the recorder stands alone: stubs lead to it, and this module is not used by calls.
//!
//! ```text
//! stubs ─▶ enter ─▶ tool ─▶ recorder ─▶ tool ─▶ MPI
//! ```
//!
//! Functions that no tool intercepts have no overhead: their stubs lead to MPI. Calls that MPI or a tool makes by
//! plain names bypass the tools.

mod catch;
mod fortran;
mod handlers;
mod load;

use crate::guard::{catching_panics, warn};
use crate::machine::{self, Chained, ChainedGuard, Frame, RECORDERS, trampoline};
use crate::objects;
use crate::record::pass;
use crate::settings::Settings;
use crate::tracer::Tracer;
use catch::catching;
pub(crate) use handlers::is_beginning;
use handlers::{enter_tools, note_exception};
use mpi_abi::prototypes::{Call, Convention, Export, Group};
use mpi_abi::tool::{ChainCell, Descriptor, Layer, Recording, recordings};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The chain, from `MPI_Init` to `MPI_Finalize`; null if there are no tools. Never freed.
static CHAIN: AtomicPtr<Chain> = AtomicPtr::new(null_mut());

/// The tools in order.
struct Chain {
    layers: Vec<(&'static Descriptor, &'static mut Layer)>,
    /// The entry of each function.
    head: Box<[ChainCell]>,
}

/// What is inserted between the program and MPI.
pub(crate) enum Interposition {
    /// A recorder alone, which writes to this directory.
    Recorder(PathBuf),
    /// A chain of tools.
    Chain,
    /// Nothing.
    Nothing,
}

/// Loads the tools that the environment names, once, in `MPI_Init`. If one cannot be loaded, a line on stderr says so
/// and the program runs without tools: a partial chain could be mistaken for the whole.
pub(crate) fn build() -> &'static Interposition {
    static BETWEEN: OnceLock<Interposition> = OnceLock::new();
    BETWEEN.get_or_init(|| {
        let settings = Settings::from_env();
        let Some(tools) = &settings.tools else { return Interposition::Recorder(settings.dir) };
        // A panic in here must not reach the program.
        let built = catching_panics(|| Chain::load(tools, &settings.dir));
        built.unwrap_or_else(|| Err("the loader failed".into())).unwrap_or_else(|reason| {
            if load::is_reporting_process() {
                warn(&format!("the program runs without tools and unrecorded: {reason}"));
            }
            Interposition::Nothing
        })
    })
}

/// Directs calls to the chain.
fn install(chain: Chain) {
    CHAIN.store(Box::into_raw(Box::new(chain)), Ordering::Release);
    machine::forget_destinations();
    // SAFETY: functions that are there for ever.
    unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

/// Whether the calls of a function enter the chain.
pub(crate) fn has(call: Call) -> bool {
    // The chain itself begins and ends with these.
    let ours = matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Finalize | Call::MPI_Abort);
    let changed = |chain: &Chain| {
        let (head, last) = (chain.head[call as usize], handlers::mpi_handlers(close)[call as usize]);
        (head.function, head.layer) != (last.function, last.layer)
    };
    chain().is_some_and(|chain| ours || changed(chain)) && call.group() != Group::Others
}

extern "C" fn at_exit() {
    close();
}

/// A child of `fork` continues without tools, whose files belong to the parent.
extern "C" fn in_child() {
    if !CHAIN.swap(null_mut(), Ordering::Relaxed).is_null() {
        machine::forget_destinations();
    }
}

/// Ends the chain: calls `close` of every tool, in order.
fn close() {
    // SAFETY: a leaked box, or null.
    let Some(chain) = (unsafe { CHAIN.swap(null_mut(), Ordering::AcqRel).as_ref() }) else { return };
    machine::forget_destinations();
    for (descriptor, layer) in &chain.layers {
        if let Some(close) = descriptor.close {
            // SAFETY: the tool's function and its own layer.
            let closed = catching(|| unsafe { close(layer_pointer(layer)) });
            if closed.is_none() {
                warn("a tool threw an exception in its close");
            }
        }
    }
}

/// Ends the chain and its recorders if a tool has thrown an exception.
fn end_if_broken() {
    if handlers::is_broken() && chain().is_some() {
        close();
        for tracer in Tracer::all() {
            if let Some(mut lane) = tracer.lane() {
                tracer.stop_quietly(lane.get(), "a tool threw an exception");
            }
        }
    }
}

/// Calls a function of every tool, in order.
fn each_tool(within: &str, call: impl Fn(&Descriptor, *mut Layer)) {
    for (descriptor, layer) in chain().iter().flat_map(|chain| &chain.layers) {
        if catching(|| call(descriptor, layer_pointer(layer))).is_none() {
            note_exception(within);
        }
    }
    end_if_broken();
}

/// Passes `MPI_Pcontrol` to every tool.
pub(crate) fn pcontrol(level: i32) {
    each_tool("MPI_Pcontrol", |tool, layer| {
        // SAFETY: as in `close`.
        tool.pcontrol.into_iter().for_each(|pcontrol| unsafe { pcontrol(layer, level) });
    });
}

/// Passes the begin or end of a phase to every tool.
pub(crate) fn phase(begin: bool, name: &CStr) {
    each_tool("a phase", |tool, layer| {
        // SAFETY: as in `close`, and a C string.
        tool.phase.into_iter().for_each(|phase| unsafe { phase(layer, c_int::from(begin), name.as_ptr()) });
    });
}

#[inline]
fn chain() -> Option<&'static Chain> {
    // SAFETY: a leaked box, or null.
    unsafe { CHAIN.load(Ordering::Acquire).as_ref() }
}

/// The pointer to a layer for its tool. The layer is not changed after `open`.
fn layer_pointer(layer: &Layer) -> *mut Layer {
    std::ptr::from_ref(layer).cast_mut()
}

trampoline! {
    /// The entry of calls that go through the chain.
    enter => entered
}

/// Passes a call of the program through the chain.
pub(crate) extern "C-unwind" fn entered(number: usize, frame: Frame, _lane: *mut c_void) -> i32 {
    let thread = machine::thread();
    let outer = thread.chained.get();
    // After a longjmp out of an earlier call, that call's frame lies below this one's.
    let is_nested = outer.frame != 0 && frame.address() < outer.frame;
    match chain() {
        Some(chain) if !(is_nested && objects::is_internal(frame.return_address())) => {
            let outer = if is_nested { outer } else { Chained::NONE };
            thread.chained.set(outer);
            let inside = ChainedGuard::enter(Chained { frame: frame.address(), end: null(), ..outer });
            let code = go_through(chain, number, frame);
            drop(inside);
            if !is_nested {
                end_if_broken();
            }
            code
        }
        _ => pass(number, frame),
    }
}

fn go_through(chain: &'static Chain, number: usize, frame: Frame) -> i32 {
    let export = Export::get(number);
    let call = export.call();
    let head = chain.head[call as usize];
    let code = match export.form {
        // SAFETY: the arguments of the function.
        Convention::C => unsafe { enter_tools(head, &frame.words(call.parameters().len()), call) },
        _ => fortran::go_through(head, number, frame),
    };
    if call == Call::MPI_Finalize {
        close();
    }
    code
}

impl Chain {
    /// Installs a chain, unless the tools are one recorder.
    fn load(names: &str, directory: &Path) -> Result<Interposition, String> {
        let names: Vec<&str> = names.split(':').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.iter().filter(|name| **name == "capture").count() > 1 {
            return Err(
                "`capture` is named twice: a program is recorded once, into one file a rank (profile and text can be named \
                 several times)"
                    .into(),
            );
        }
        let recordings = recordings(&names);
        match &recordings[..] {
            [one] if one.places.len() == names.len() => {
                return Ok(Interposition::Recorder(directory.join(one.directory())));
            }
            _ if recordings.len() > RECORDERS => {
                return Err("there are too many recorders in the chain".into());
            }
            _ => install(Self::open(&names, &recordings, directory)?),
        }
        Ok(Interposition::Chain)
    }

    fn open(names: &[&str], recordings: &[Recording], directory: &Path) -> Result<Self, String> {
        let path = CString::new(directory.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        let path: &'static CStr = Box::leak(path.into());
        let is_recorder = |place: usize| recordings.iter().any(|of| of.places.contains(&place));
        let tools = (0..names.len()).filter(|&place| !is_recorder(place));
        // All are found before the first is opened.
        let tools: Vec<_> =
            tools.map(|place| Ok((place, load::find(names[place])?))).collect::<Result<_, String>>()?;
        let mut layers: Vec<(&'static Descriptor, &'static mut Layer)> = Vec::new();
        for &(place, descriptor) in &tools {
            let instance = layers.iter().filter(|(other, _)| std::ptr::eq(*other, descriptor)).count();
            let layer = Box::leak(Box::new(Layer {
                context: null_mut(),
                next: null(),
                names: c_names(),
                directory: path.as_ptr(),
                position: place as c_int,
                instance: instance as c_int,
                reason: [0; 256],
            }));
            // SAFETY: the tool's function and a layer that has no other reference yet.
            let opened = catching(|| descriptor.open.map_or(0, |open| unsafe { open(layer) }));
            let why = match (opened, layer.reason()) {
                (Some(0), _) => {
                    layers.push((descriptor, layer));
                    continue;
                }
                (None, _) => "its open threw an exception".to_owned(),
                (Some(code), silent) if silent.is_empty() => format!("its open failed with {code}"),
                (Some(_), reason) => reason,
            };
            return Err(format!("tool {}: {why}", names[place]));
        }
        let mut cells: Box<[ChainCell]> = handlers::mpi_handlers(close).into();
        // From last to first: each layer gets the table of those behind it.
        for place in (0..names.len()).rev() {
            let behind: &'static [ChainCell] = Box::leak(cells.clone());
            if let Some(recorder) = recordings.iter().position(|of| of.places.start == place) {
                let directory = directory.join(recordings[recorder].directory());
                handlers::insert_recorder(&mut cells, recorder, &directory, behind);
            } else if let Ok(tool) = tools.binary_search_by_key(&place, |tool| tool.0) {
                let (descriptor, layer) = &mut layers[tool];
                layer.next = behind.as_ptr();
                handlers::insert_tool(&mut cells, descriptor, layer_pointer(layer));
            }
        }
        Ok(Self { layers, head: cells })
    }
}

/// The C names of the functions, by number.
fn c_names() -> *const *const c_char {
    static NAMES: OnceLock<Vec<usize>> = OnceLock::new();
    let name = |call: Call| CString::new(call.name()).map_or(0, |name| name.into_raw() as usize);
    NAMES.get_or_init(|| Call::all().map(name).collect()).as_ptr().cast()
}
