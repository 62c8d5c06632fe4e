//! The tools between the program and MPI: several, in order, each as often as it is named.
//!
//! `VEF_TOOLS` (or `TOOLS`) names them: files, and `capture`, `profile`, `text`, which stand for the recorder. Without files there is the
//! recorder alone, which stubs lead to, and nothing here is reached by any call.
//!
//! ```text
//! stubs ─▶ enter ─▶ tool ─▶ recorder ─▶ tool ─▶ MPI
//! ```
//!
//! Nobody pays for a function that no tool wants: its stub leads to MPI. Calls that MPI or a tool makes by their plain names go
//! past the tools.

mod end;
mod fortran;
mod load;
mod seat;

use crate::guard::{complain, guarded};
use crate::machine::{self, Frame, Mode, RECORDERS, trampoline};
use crate::objects;
use crate::record::pass;
use crate::settings::Settings;
use mpi_abi::prototypes::{Call, Export, Form, Group};
use mpi_abi::tool::{Cell, Descriptor, Layer, Recording, recordings};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The chain, from `MPI_Init` to `MPI_Finalize`, if there are tools. Never freed.
static CHAIN: AtomicPtr<Chain> = AtomicPtr::new(null_mut());

/// Tools in order.
struct Chain {
    layers: Vec<(&'static Descriptor, &'static mut Layer)>,
    /// How the program's calls enter.
    head: Box<[Cell]>,
}

/// What stands between the program and MPI.
pub(crate) enum Between {
    /// A recorder alone, that writes to this directory.
    Recorder(PathBuf),
    /// A chain of tools.
    Chain,
    /// Nothing.
    Nothing,
}

/// Loads the tools that the environment names; once, in `MPI_Init`. What cannot be loaded is said on stderr, and then there
/// are no tools, so that nobody takes a part of a chain for the whole.
pub(crate) fn build() -> &'static Between {
    static BETWEEN: OnceLock<Between> = OnceLock::new();
    BETWEEN.get_or_init(|| {
        let settings = Settings::from_env();
        let Some(tools) = &settings.tools else { return Between::Recorder(settings.dir) };
        // What goes wrong in here must not reach the program.
        let built = guarded(|| Chain::load(tools, &settings.dir));
        match built.unwrap_or_else(|| Err("the loader went wrong".into())) {
            Ok(Ok(chain)) => {
                install(chain);
                Between::Chain
            }
            Ok(Err(directory)) => Between::Recorder(directory),
            Err(reason) => {
                if load::speaks() {
                    complain(&format!("the program runs without tools and unrecorded: {reason}"));
                }
                Between::Nothing
            }
        }
    })
}

/// From now on, calls go through the chain.
fn install(chain: Chain) {
    CHAIN.store(Box::into_raw(Box::new(chain)), Ordering::Release);
    machine::set_mode(Mode::Chained);
    // SAFETY: functions that are there for ever.
    unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

/// Whether the calls of a function enter the chain.
pub(crate) fn has(call: Call) -> bool {
    // The beginning and the end are the chain's business even where no tool looks at them.
    let ours = matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Finalize | Call::MPI_Abort);
    let changed = |chain: &Chain| {
        let (head, last) = (chain.head[call as usize], seat::lasts(close)[call as usize]);
        (head.function, head.layer) != (last.function, last.layer)
    };
    chain().is_some_and(|chain| ours || changed(chain)) && call.group() != Group::Others
}

extern "C" fn at_exit() {
    close();
}

/// A child of `fork` goes on without tools: their files are the parent's.
extern "C" fn in_child() {
    if !CHAIN.swap(null_mut(), Ordering::Relaxed).is_null() {
        machine::set_mode(Mode::Idle);
    }
}

/// The end: every tool hears of it once, in order.
fn close() {
    // SAFETY: a leaked box, or null.
    let Some(chain) = (unsafe { CHAIN.swap(null_mut(), Ordering::AcqRel).as_ref() }) else { return };
    machine::set_mode(Mode::Idle);
    for (descriptor, layer) in &chain.layers {
        if let Some(close) = descriptor.close {
            // SAFETY: the tool's function and its own layer.
            unsafe { close(layer_pointer(layer)) };
        }
    }
}

/// `MPI_Pcontrol`: every tool once.
pub(crate) fn pcontrol(level: i32) {
    for (descriptor, layer) in chain().iter().flat_map(|chain| &chain.layers) {
        if let Some(pcontrol) = descriptor.pcontrol {
            // SAFETY: as in `close`.
            unsafe { pcontrol(layer_pointer(layer), level) };
        }
    }
}

/// A phase begins or ends: every tool once.
pub(crate) fn phase(begin: bool, name: &CStr) {
    for (descriptor, layer) in chain().iter().flat_map(|chain| &chain.layers) {
        if let Some(phase) = descriptor.phase {
            // SAFETY: as in `close`, and a C string.
            unsafe { phase(layer_pointer(layer), c_int::from(begin), name.as_ptr()) };
        }
    }
}

#[inline]
fn chain() -> Option<&'static Chain> {
    // SAFETY: a leaked box, or null.
    unsafe { CHAIN.load(Ordering::Acquire).as_ref() }
}

/// A layer as its tool gets it. Nothing of it is changed here after its `open`.
fn layer_pointer(layer: &Layer) -> *mut Layer {
    std::ptr::from_ref(layer).cast_mut()
}

trampoline! {
    /// Where the calls go that enter the chain.
    enter => entered
}

/// A call of the program's, which goes through the chain.
unsafe extern "C-unwind" fn entered(number: usize, frame: Frame, _lane: *mut c_void) -> i32 {
    // SAFETY: the calling thread's own, and the program's arguments.
    unsafe {
        let thread = machine::thread();
        let outer = (*thread).chained;
        // The frame of a call that was left by longjmp lies deeper than that of a later one.
        let is_nested = outer != 0 && frame.address() < outer;
        match chain() {
            Some(chain) if !(is_nested && objects::is_own(frame.return_address())) => {
                let _leave = Leave(if is_nested { outer } else { 0 });
                (*thread).chained = frame.address();
                go_through(chain, number, frame)
            }
            _ => pass(number, frame),
        }
    }
}

/// When a call leaves the chain, also by an exception: the thread is in the call that this one was made from, if in any.
struct Leave(usize);

impl Drop for Leave {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own.
        unsafe { (*machine::thread()).chained = self.0 };
    }
}

/// Makes a call of the program's go through the chain.
///
/// # Safety
/// The frame must have the arguments of the program.
pub(crate) unsafe fn pass_through(number: usize, frame: Frame) -> i32 {
    // SAFETY: the contract.
    unsafe {
        let Some(chain) = chain() else { return pass(number, frame) };
        let _leave = Leave((*machine::thread()).chained);
        (*machine::thread()).chained = frame.address();
        go_through(chain, number, frame)
    }
}

unsafe fn go_through(chain: &'static Chain, number: usize, frame: Frame) -> i32 {
    let export = Export::get(number);
    let call = export.call();
    let head = chain.head[call as usize];
    // SAFETY: the caller's.
    let code = unsafe {
        match export.form {
            Form::C => seat::go_on(head, &frame.words(call.parameters().len()), call),
            _ => fortran::go_through(head, number, frame),
        }
    };
    if call == Call::MPI_Finalize {
        close();
    }
    code
}

impl Chain {
    /// Either a chain, or the directory of a recorder that is not in the company of tools.
    fn load(names: &str, directory: &Path) -> Result<Result<Self, PathBuf>, String> {
        let names: Vec<&str> = load::split(names).collect();
        if names.iter().filter(|name| **name == "capture").count() > 1 {
            return Err(
                "`capture` is named twice: a program is recorded once, into one file a rank (profile and text can be named \
                 several times)"
                    .into(),
            );
        }
        let recordings = recordings(&names);
        match &recordings[..] {
            [one] if one.places.len() == names.len() => Ok(Err(directory.join(&one.directory))),
            _ if recordings.len() > RECORDERS => Err("there are too many recorders in the chain".into()),
            _ => Self::open(&names, &recordings, directory).map(Ok),
        }
    }

    fn open(names: &[&str], recordings: &[Recording], directory: &Path) -> Result<Self, String> {
        let path = CString::new(directory.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        let path: &'static CStr = Box::leak(path.into());
        let is_recorder = |place: usize| recordings.iter().any(|of| of.places.contains(&place));
        let tools: Vec<(usize, &str, &'static Descriptor)> = (0..names.len())
            .filter(|&place| !is_recorder(place))
            .map(|place| Ok((place, names[place], load::find(names[place])?)))
            .collect::<Result<_, String>>()?;
        let mut layers: Vec<(usize, &'static Descriptor, &'static mut Layer)> = Vec::new();
        for (position, name, descriptor) in tools {
            let instance = layers.iter().filter(|(_, other, _)| std::ptr::eq(*other, descriptor)).count();
            let layer: &'static mut Layer =
                Box::leak(Box::new(Layer::new(c_names(), path.as_ptr(), position, instance)));
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
            layers.push((position, descriptor, layer));
        }
        let mut cells: Box<[Cell]> = seat::lasts(close).into();
        // From the last to the first: each finds the table of those behind it.
        for place in (0..names.len()).rev() {
            let behind: &'static [Cell] = Box::leak(cells.clone());
            if let Some(recorder) = recordings.iter().position(|of| of.places.start == place) {
                seat::record_at(
                    &mut cells,
                    recorder,
                    &directory.join(&recordings[recorder].directory),
                    behind,
                );
            } else if let Some((_, descriptor, layer)) =
                layers.iter_mut().find(|(position, ..)| *position == place)
            {
                layer.next = behind.as_ptr();
                seat::intercept(&mut cells, descriptor, layer_pointer(layer));
            }
        }
        let layers = layers.into_iter().map(|(_, descriptor, layer)| (descriptor, layer)).collect();
        Ok(Self { layers, head: cells })
    }
}

/// The functions' C names by number.
fn c_names() -> *const *const c_char {
    static NAMES: OnceLock<Vec<usize>> = OnceLock::new();
    let name = |call: Call| CString::new(call.name()).map_or(0, |name| name.into_raw() as usize);
    NAMES.get_or_init(|| Call::all().map(name).collect()).as_ptr().cast()
}
