//! The tools between the program and MPI: several, in order, each as often as it is named.
//!
//! `VEF_TOOLS` (or `TOOLS`) names them: files, and the built-in `capture`, `profile`, `text`. Without it there is the recorder
//! alone, on the path of [`wrap`](crate::wrap), and nothing here is reached by any call.
//!
//! ```text
//! wrappers ─▶ (recorder, if it comes first) ─▶ entries ─▶ tool ─▶ tool ─▶ (recorder, if it does not) ─▶ tool ─▶ MPI
//! ```
//!
//! A wrapper calls on to [`entries::NEXT`], which is the real function until a tool intercepts it: so nobody pays for a
//! function that no tool wants. Calls that MPI or a tool makes by their plain names go past the tools.

pub(crate) mod entries;
pub(crate) mod fortran;
mod load;

use crate::clock;
use crate::settings::Settings;
use crate::tools;
use crate::tracer::complain;
use load::Named;
use mpi_abi::prototypes::Call;
use mpi_abi::tool::{Cell, Descriptor, Layer};
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The chain, from `MPI_Init` to `MPI_Finalize`, if there are tools besides a recorder that comes first. Never freed.
static CHAIN: AtomicPtr<Chain> = AtomicPtr::new(null_mut());

/// Where the recorder is: a [`Recorder`] as a number.
static RECORDER: AtomicU8 = AtomicU8::new(Recorder::First as u8);

/// Where the recorder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Recorder {
    /// In front of all tools: the wrappers record.
    First,
    /// Behind some: it is one of the chain's.
    Behind,
    /// Nowhere.
    Absent,
}

/// Tools in order.
struct Chain {
    layers: Vec<(&'static Descriptor, &'static mut Layer)>,
    /// How the program's calls enter.
    head: Box<[Cell]>,
}

/// Where the recorder stands.
#[inline]
pub(crate) fn recorder() -> Recorder {
    match RECORDER.load(Ordering::Relaxed) {
        1 => Recorder::Behind,
        2 => Recorder::Absent,
        _ => Recorder::First,
    }
}

/// Whether calls have tools to go through.
#[inline(always)]
pub(crate) fn active() -> bool {
    !CHAIN.load(Ordering::Relaxed).is_null()
}

/// Loads the tools that the environment names; once, in `MPI_Init`. What cannot be loaded is said on stderr, and then there
/// are no tools, so that nobody takes a part of a chain for the whole.
pub(crate) fn build() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let settings = Settings::from_env();
        let Some(names) = &settings.tools else { return };
        // Before any of them reads it.
        clock::choose(settings.cycles);
        // What goes wrong in here must not reach the program.
        let built = std::panic::catch_unwind(|| Chain::load(names, &settings.dir));
        match built.unwrap_or_else(|_| Err("the loader panicked".into())) {
            Ok((recorder, chain)) => {
                RECORDER.store(recorder as u8, Ordering::Relaxed);
                if let Some(chain) = chain {
                    install(chain);
                }
            }
            Err(reason) => {
                RECORDER.store(Recorder::Absent as u8, Ordering::Relaxed);
                if load::speaks() {
                    complain(&format!("the program runs without tools and unrecorded: {reason}"));
                }
            }
        }
    });
}

/// From now on, calls go through the chain.
fn install(chain: Chain) {
    // The beginning and the end are the chain's business even where no tool looks at them.
    let ours = [Call::MPI_Init, Call::MPI_Init_thread, Call::MPI_Finalize, Call::MPI_Abort];
    for call in Call::all() {
        let untouched = entries::last(call).is_some_and(|last| chain.head[call as usize].function == last);
        if !untouched || ours.contains(&call) {
            entries::divert(call);
        }
    }
    CHAIN.store(Box::leak(Box::new(chain)), Ordering::Release);
    // SAFETY: functions that are there for ever.
    unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

extern "C" fn at_exit() {
    close();
}

/// A child of `fork` goes on without tools: their files are the parent's.
extern "C" fn in_child() {
    if !CHAIN.swap(null_mut(), Ordering::Relaxed).is_null() {
        entries::restore();
    }
}

/// The end: every tool hears of it once, in order.
pub(crate) fn close() {
    // SAFETY: a leaked box, or null.
    let Some(chain) = (unsafe { CHAIN.swap(null_mut(), Ordering::AcqRel).as_ref() }) else { return };
    entries::restore();
    for (descriptor, layer) in &chain.layers {
        if let Some(close) = descriptor.close {
            // SAFETY: the tool's function and its own layer.
            unsafe { close(layer_pointer(layer)) };
        }
    }
}

/// `MPI_Pcontrol`: every tool once.
pub(crate) fn pcontrol(level: i32) {
    for (descriptor, layer) in layers() {
        if let Some(pcontrol) = descriptor.pcontrol {
            // SAFETY: as in `close`.
            unsafe { pcontrol(layer_pointer(layer), level) };
        }
    }
}

/// A phase begins or ends: every tool once.
pub(crate) fn phase(begin: bool, name: &CStr) {
    for (descriptor, layer) in layers() {
        if let Some(phase) = descriptor.phase {
            // SAFETY: as in `close`, and a C string.
            unsafe { phase(layer_pointer(layer), c_int::from(begin), name.as_ptr()) };
        }
    }
}

fn layers() -> &'static [(&'static Descriptor, &'static mut Layer)] {
    // SAFETY: a leaked box, or null.
    unsafe { CHAIN.load(Ordering::Acquire).as_ref() }.map_or(&[], |chain| &chain.layers)
}

/// A layer as its tool gets it. Nothing of it is changed here after its `open`.
fn layer_pointer(layer: &Layer) -> *mut Layer {
    std::ptr::from_ref(layer).cast_mut()
}

/// How the program's call enters.
#[inline(always)]
fn head(call: Call) -> Option<Cell> {
    // SAFETY: a leaked box, or null; the table has every function.
    unsafe { CHAIN.load(Ordering::Acquire).as_ref().map(|chain| *chain.head.get_unchecked(call as usize)) }
}

/// What a handler for any function is called through: it does not get the function's number from C.
#[repr(C)]
struct Seat {
    layer: *mut Layer,
    any: unsafe extern "C" fn(*mut Layer, *mut mpi_abi::tool::AnyCall) -> c_int,
    number: u32,
}

impl Chain {
    fn load(names: &str, directory: &Path) -> Result<(Recorder, Option<Self>), String> {
        let directory: &'static CStr = Box::leak(
            CString::new(directory.as_os_str().as_bytes()).map_err(|error| error.to_string())?.into(),
        );
        let named: Vec<(String, Named)> = load::split(names)
            .map(|name| Ok((name.to_owned(), load::find(name)?)))
            .collect::<Result<_, String>>()?;
        let is_recorder = |(_, tool): &(String, Named)| matches!(tool, Named::Recorder);
        if named.iter().filter(|tool| is_recorder(tool)).count() > 1 {
            return Err(
                "`capture` is named twice: a program is recorded once, into one file a rank (profile and text can be named \
                 several times)"
                    .into(),
            );
        }
        let recorder = match named.iter().position(is_recorder) {
            None => Recorder::Absent,
            Some(0) => Recorder::First,
            Some(_) => Recorder::Behind,
        };
        if named.len() == usize::from(recorder == Recorder::First) {
            return Ok((recorder, None));
        }
        Ok((recorder, Some(Self::open(named, directory)?)))
    }

    fn open(named: Vec<(String, Named)>, directory: &'static CStr) -> Result<Self, String> {
        let mut layers: Vec<(&'static Descriptor, &'static mut Layer)> = Vec::new();
        for (position, (name, tool)) in named.iter().enumerate() {
            let descriptor = match tool {
                Named::Tool(descriptor) => *descriptor,
                Named::Recorder if position == 0 => continue,
                Named::Recorder => &load::RECORDER,
            };
            let instance = layers.iter().filter(|(other, _)| std::ptr::eq(*other, descriptor)).count();
            let names = entries::names();
            let layer: &'static mut Layer =
                Box::leak(Box::new(Layer::new(names, directory.as_ptr(), position, instance)));
            if let Some(open) = descriptor.open {
                // SAFETY: the tool's function and a layer that nobody else has yet.
                let code = unsafe { open(layer) };
                if code != 0 {
                    let why = match layer.reason() {
                        silent if silent.is_empty() => format!("its open failed with {code}"),
                        reason => reason,
                    };
                    return Err(format!("tool {name}: {why}"));
                }
            }
            layers.push((descriptor, layer));
        }
        let mut cells = entries::lasts();
        // From the last to the first: each finds the table of those behind it.
        for (descriptor, layer) in layers.iter_mut().rev() {
            layer.next = Box::leak(cells.clone()).as_ptr();
            let layer = layer_pointer(layer);
            if std::ptr::eq(*descriptor, &load::RECORDER) {
                entries::record_at(&mut cells, layer);
            } else {
                intercept(&mut cells, descriptor, layer);
            }
        }
        Ok(Self { layers, head: cells })
    }
}

/// Puts the handlers of a layer in front of those in `cells`.
fn intercept(cells: &mut [Cell], descriptor: &'static Descriptor, layer: *mut Layer) {
    if let Some(any) = descriptor.any {
        // Of MPI_Pcontrol every tool hears in another way.
        let calls = Call::all().filter(|&call| entries::last(call).is_some() && call != Call::MPI_Pcontrol);
        for call in calls {
            // SAFETY: the tool's function and its own layer.
            if descriptor.wants.is_none_or(|wants| unsafe { wants(layer, call as c_int) } != 0)
                && let Some(function) = entries::any(call.prototype().parameters.len())
            {
                let seat = Box::leak(Box::new(Seat { layer, any, number: call as u32 }));
                cells[call as usize] = Cell { function, layer: std::ptr::from_mut(seat).cast() };
            }
        }
    }
    let mut list = descriptor.intercepts;
    // SAFETY: null, or a list that ends with a null function.
    while let Some(entry) = unsafe { list.as_ref() } {
        let Some(function) = NonNull::new(entry.function.cast_mut()) else { break };
        if let Some(cell) = cells.get_mut(entry.number as usize) {
            *cell = Cell { function, layer: layer.cast::<c_void>() };
        }
        // SAFETY: not at the end yet.
        list = unsafe { list.add(1) };
    }
}

/// The built-in tools by name.
fn built_in(name: &str) -> Option<&'static Descriptor> {
    match name {
        "profile" => Some(&tools::PROFILE),
        "text" => Some(&tools::TEXT),
        _ => None,
    }
}
