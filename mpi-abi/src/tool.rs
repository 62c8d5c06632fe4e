//! Interface of the tools between a program and its MPI.
//!
//! The preload library keeps a *chain* of tools. A call enters the first tool that intercepts it, each tool calls the next
//! one, and the last calls MPI. A tool may be in the chain several times; each instance is a [`Layer`] with its own
//! context. A tool selects the functions that it intercepts; the others bypass it at no cost.
//!
//! Each layer has a table with the next handler of every function ([`ChainCell`]), filled before the program starts: to pass a
//! call on takes a load and an indirect call, however long the chain is. A handler may call any function through this
//! table; the tools behind it see such calls, those in front do not.
//!
//! A tool in Rust is a type that implements [`Tool`], exported from a library (`crate-type = ["cdylib"]`) by
//! [`vef_tool!`](crate::vef_tool). A tool in C is a [`Descriptor`], see `vef_tool.h`. The chain treats both alike.

pub use crate::prototypes::TABLE;

use crate::prototypes::Call;
use crate::symbols::{Function, MOST_WORDS, call_with};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::path::PathBuf;
use std::ptr::{NonNull, null};

/// A tool in Rust.
///
/// Threads of the program may be in handlers concurrently. A panic ends the chain of tools and the recording, with
/// one line on stderr; the call goes to MPI, and the program continues.
pub trait Tool: Send + Sync + Sized + 'static {
    /// The tool's name in messages.
    const NAME: &'static CStr;

    /// Creates the tool for a place in the chain. MPI may not be initialised yet.
    ///
    /// # Errors
    /// A sentence for the user; the program then runs without tools.
    fn open(place: &ChainPlace) -> Result<Self, String>;

    /// Whether the tool intercepts a function; called once for each, after [`Tool::open`].
    fn intercepts(&self, call: Call) -> bool;

    /// Handles an intercepted call of the program or of a tool in front; returns the call's result.
    fn call(&self, call: &mut Intercepted<'_>) -> i32;

    /// The program has called `MPI_Pcontrol`. Every tool is called once; there is no next tool to call.
    fn pcontrol(&self, _level: i32) {}

    /// A phase of the program begins or ends.
    fn phase(&self, _begin: bool, _name: &str) {}

    /// `MPI_Finalize` has returned, or the program ends without it. No other function of the tool is called later.
    fn close(&self) {}
}

/// The place of a tool in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPlace {
    /// The position in the chain, from 0 (called first).
    pub position: usize,
    /// The number of instances of the same tool in front.
    pub instance: usize,
    /// The directory for the tool's files; it may not exist yet.
    pub directory: PathBuf,
}

/// An intercepted call.
pub struct Intercepted<'a> {
    layer: &'a Layer,
    call: Call,
    words: &'a mut [usize],
}

impl Intercepted<'_> {
    /// The function.
    #[inline(always)]
    pub fn function(&self) -> Call {
        self.call
    }

    /// The arguments as in C; of an `int` the upper half of the word is undefined
    /// ([`Kind::width`](crate::prototypes::Kind::width)). Changes affect the arguments that are passed on.
    #[inline(always)]
    pub fn words(&mut self) -> &mut [usize] {
        self.words
    }

    /// The argument at `index`, a C `int`.
    #[inline(always)]
    pub fn int(&self, index: usize) -> i32 {
        self.words[index] as u32 as i32
    }

    /// Calls the next tool, or MPI, with the current arguments; returns its result.
    #[inline(always)]
    pub fn pass_on(&mut self) -> i32 {
        // SAFETY: the arguments are the program's, or the tool's responsibility if it changed them.
        unsafe { self.layer.go_on(self.call, self.words) }
    }

    /// Whether the call ends in a Fortran function that no tool can replace: arguments that the tool passes on have no effect,
    /// and a buffer may be the first element of an array section with holes.
    pub fn is_shown(&self) -> bool {
        static IS_SHOWN: Function = Function::named(c"vef_call_is_shown");
        // SAFETY: int vef_call_is_shown(void), which the preload library defines.
        unsafe { IS_SHOWN.call::<c_int, 0>([]) }.is_some_and(|shown| shown != 0)
    }

    /// Calls any MPI function; only the tools behind this one see the call.
    ///
    /// # Safety
    /// The words must be valid arguments of that function.
    pub unsafe fn call_next(&self, call: Call, words: &[usize]) -> i32 {
        // SAFETY: the contract.
        unsafe { self.layer.go_on(call, words) }
    }
}

/// A handler of one function.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ChainCell {
    /// `int (*)(vef_layer *, the function's parameters …)`.
    pub function: NonNull<c_void>,
    /// The handler's first argument.
    pub layer: *mut c_void,
}

// SAFETY: two addresses; the tools ensure that the data behind them can be shared.
unsafe impl Send for ChainCell {}
// SAFETY: as above.
unsafe impl Sync for ChainCell {}

/// A tool at its place in the chain: `vef_layer` in C.
#[derive(Debug)]
#[repr(C)]
pub struct Layer {
    /// Data of the tool.
    pub context: *mut c_void,
    /// The next handler of each function, by number.
    pub next: *const ChainCell,
    /// The functions' C names, by number.
    pub names: *const *const c_char,
    /// The directory for the tool's files.
    pub directory: *const c_char,
    /// The position in the chain, from 0 (called first).
    pub position: c_int,
    /// The number of instances of the same tool in front.
    pub instance: c_int,
    /// The reason why `open` failed, a C string.
    pub reason: [c_char; 256],
}

impl Layer {
    /// The reason why `open` failed.
    pub fn reason(&self) -> String {
        let bytes: Vec<u8> = self.reason.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// # Safety
    /// The words must be valid arguments of the function.
    #[inline(always)]
    unsafe fn go_on(&self, call: Call, words: &[usize]) -> i32 {
        // SAFETY: the table has a cell for every function.
        let cell = unsafe { *self.next.add(call as usize) };
        let mut all = [0; MOST_WORDS];
        all[0] = cell.layer as usize;
        let count = 1 + words.len().min(MOST_WORDS - 1);
        all[1..count].copy_from_slice(&words[..count - 1]);
        // SAFETY: a handler takes its layer, then what the function takes; the words are the contract's.
        unsafe { call_with(cell.function, &all, count) }
    }
}

/// A call in the form for a handler of any function: `vef_call` in C.
#[derive(Debug)]
#[repr(C)]
pub struct AnyCall {
    /// The function's number.
    pub number: u32,
    /// The number of arguments.
    pub count: u32,
    /// The arguments as words; the upper half of an `int` is undefined.
    pub words: *mut usize,
}

/// A typed handler: `vef_intercept` in C.
#[derive(Debug)]
#[repr(C)]
pub struct Intercept {
    /// The function's number.
    pub number: c_int,
    /// `int (*)(vef_layer *, the function's parameters …)`; null ends the list.
    pub function: *const c_void,
}

/// The descriptor exported by a tool's library under the name [`EXPORTED_AS`]: `vef_tool` in C.
#[derive(Debug)]
#[repr(C)]
pub struct Descriptor {
    /// [`ABI`].
    pub abi: u32,
    /// `sizeof` this.
    pub size: u32,
    /// [`TABLE`].
    pub table: u64,
    /// The tool's name in messages.
    pub name: *const c_char,
    /// Called before all others; sets the context. A result other than 0 refuses, with a text in the layer's `reason`.
    pub open: Option<unsafe extern "C-unwind" fn(*mut Layer) -> c_int>,
    /// Called after all others.
    pub close: Option<unsafe extern "C-unwind" fn(*mut Layer)>,
    /// The begin (1) or end (0) of a phase.
    pub phase: Option<unsafe extern "C-unwind" fn(*mut Layer, c_int, *const c_char)>,
    /// `MPI_Pcontrol`.
    pub pcontrol: Option<unsafe extern "C-unwind" fn(*mut Layer, c_int)>,
    /// The typed handlers; may be null.
    pub intercepts: *const Intercept,
    /// The handler of functions without a typed one.
    pub any: Option<unsafe extern "C-unwind" fn(*mut Layer, *mut AnyCall) -> c_int>,
    /// Whether `any` handles a function; null: it handles all.
    pub wants: Option<unsafe extern "C-unwind" fn(*mut Layer, c_int) -> c_int>,
}

// SAFETY: function pointers and addresses of constants.
unsafe impl Sync for Descriptor {}

/// The name of a tool's [`Descriptor`].
pub const EXPORTED_AS: &CStr = c"vef_tool_descriptor";

/// The version of the layouts in this module.
pub const ABI: u32 = 1;

/// The names that stand for the recorder, with the directory of the output made from its capture.
const RECORDERS: [(&str, &str); 3] = [("capture", ""), ("profile", "profile"), ("text", "ti_traces")];

/// A recorder in a chain; adjacent names share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The positions of its names in the chain.
    pub places: Range<usize>,
    /// The output directory of each name, relative to that of the run; empty: that of the run.
    pub outputs: Vec<String>,
}

impl Recording {
    /// The directory of its capture, relative to that of the run; empty: that of the run.
    pub fn directory(&self) -> &str {
        if self.outputs.iter().any(String::is_empty) { "" } else { &self.outputs[0] }
    }
}

/// Finds the recorders among the names of a chain.
pub fn recordings(names: &[&str]) -> Vec<Recording> {
    let mut recordings: Vec<Recording> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let Some((_, directory)) = RECORDERS.iter().find(|(known, _)| known == name) else { continue };
        // Further instances are numbered.
        let output = match names[..place].iter().filter(|other| *other == name).count() {
            before if before > 0 && !directory.is_empty() => format!("{directory}.{}", before + 1),
            _ => (*directory).to_owned(),
        };
        match recordings.last_mut().filter(|last| last.places.end == place) {
            Some(last) => {
                last.places.end += 1;
                last.outputs.push(output);
            }
            None => recordings.push(Recording { places: place..place + 1, outputs: vec![output] }),
        }
    }
    recordings
}

impl Descriptor {
    /// The descriptor of a tool in Rust.
    pub const fn of<T: Tool>() -> Self {
        Self {
            abi: ABI,
            size: size_of::<Self>() as u32,
            table: TABLE,
            name: T::NAME.as_ptr(),
            open: Some(open::<T>),
            close: Some(close::<T>),
            phase: Some(phase::<T>),
            pcontrol: Some(pcontrol::<T>),
            intercepts: null(),
            any: Some(any::<T>),
            wants: Some(wants::<T>),
        }
    }
}

/// Exports a type that implements [`Tool`](crate::tool::Tool) as this library's tool.
#[macro_export]
macro_rules! vef_tool {
    ($tool:ty) => {
        #[doc(hidden)]
        #[unsafe(export_name = "vef_tool_descriptor")]
        pub static VEF_TOOL: $crate::tool::Descriptor = $crate::tool::Descriptor::of::<$tool>();
    };
}

/// # Safety
/// `layer` must be null or a layer whose context was made by `open::<T>`.
unsafe fn tool_of<'a, T: Tool>(layer: *mut Layer) -> Option<&'a T> {
    // SAFETY: the contract; a context is never freed.
    unsafe { (*layer).context.cast::<T>().as_ref() }
}

unsafe extern "C-unwind" fn open<T: Tool>(layer: *mut Layer) -> c_int {
    // SAFETY: the chain passes a layer without other references; its directory is a C string.
    let (layer, directory) = unsafe {
        let layer = &mut *layer;
        let directory = match layer.directory.is_null() {
            true => PathBuf::new(),
            false => PathBuf::from(CStr::from_ptr(layer.directory).to_string_lossy().into_owned()),
        };
        (layer, directory)
    };
    let place =
        ChainPlace { position: layer.position as usize, instance: layer.instance as usize, directory };
    match T::open(&place) {
        Ok(tool) => {
            layer.context = Box::into_raw(Box::new(tool)).cast();
            0
        }
        Err(reason) => {
            let room = layer.reason.len() - 1;
            for (to, from) in layer.reason[..room].iter_mut().zip(reason.bytes().filter(|&byte| byte != 0)) {
                *to = from as c_char;
            }
            1
        }
    }
}

unsafe extern "C-unwind" fn close<T: Tool>(layer: *mut Layer) {
    // SAFETY: a layer that `open` was called for.
    if let Some(tool) = unsafe { tool_of::<T>(layer) } {
        tool.close();
    }
}

unsafe extern "C-unwind" fn phase<T: Tool>(layer: *mut Layer, begin: c_int, name: *const c_char) {
    // SAFETY: as in `close`, and a C string.
    let (tool, name) = unsafe { (tool_of::<T>(layer), CStr::from_ptr(name).to_string_lossy()) };
    if let Some(tool) = tool {
        tool.phase(begin != 0, &name);
    }
}

unsafe extern "C-unwind" fn pcontrol<T: Tool>(layer: *mut Layer, level: c_int) {
    // SAFETY: as in `close`.
    if let Some(tool) = unsafe { tool_of::<T>(layer) } {
        tool.pcontrol(level);
    }
}

unsafe extern "C-unwind" fn wants<T: Tool>(layer: *mut Layer, number: c_int) -> c_int {
    let call = u16::try_from(number).ok().and_then(Call::from_number);
    // SAFETY: as in `close`.
    match (unsafe { tool_of::<T>(layer) }, call) {
        (Some(tool), Some(call)) => c_int::from(tool.intercepts(call)),
        _ => 0,
    }
}

unsafe extern "C-unwind" fn any<T: Tool>(layer: *mut Layer, call: *mut AnyCall) -> c_int {
    // SAFETY: the chain passes a call with the stated number of words.
    let (raw, words, tool) = unsafe {
        let raw = &*call;
        (raw, std::slice::from_raw_parts_mut(raw.words, raw.count as usize), tool_of::<T>(layer))
    };
    // SAFETY: a layer lives for ever.
    let layer = unsafe { &*layer };
    let Some(function) = Call::from_number(raw.number as u16) else { return crate::ERR_NO_SUCH_FUNCTION };
    let mut intercepted = Intercepted { layer, call: function, words };
    match tool {
        Some(tool) => tool.call(&mut intercepted),
        None => intercepted.pass_on(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorders_are_told_from_tools_and_have_their_directories() {
        let of = |names: &str| -> Vec<(Range<usize>, String, Vec<String>)> {
            let names: Vec<&str> = names.split(':').collect();
            let of = |of: Recording| (of.places.clone(), of.directory().to_owned(), of.outputs);
            recordings(&names).into_iter().map(of).collect()
        };
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(of("a.so"), []);
        assert_eq!(
            of("profile:a.so:profile"),
            [(0..1, "profile".into(), list(&["profile"])), (2..3, "profile.2".into(), list(&["profile.2"]))]
        );
        assert_eq!(of("text:capture:text"), [(0..3, "".into(), list(&["ti_traces", "", "ti_traces.2"]))]);
        assert_eq!(of("text:profile:a.so"), [(0..2, "ti_traces".into(), list(&["ti_traces", "profile"]))]);
    }
}
