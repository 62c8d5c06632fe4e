//! Typed calls of the real MPI for this project's own use, without linking an MPI.
//!
//! They use the `PMPI_` names, so no tool sees them. They fail with [`Error::Call`] if MPI returns an error, which requires
//! an error handler that returns ([`Mpi::return_errors`]), with [`Error::MissingSymbol`] if MPI lacks the function, and
//! functions with buffers also with [`Error::TooLarge`].
//!
//! # Safety of this interface
//! A function is safe if no arguments that safe code can construct make MPI access memory that it must not access: buffers
//! are slices of [`Element`]s, counts are derived from them, and handles are trusted ([`crate::handles`]). Functions whose
//! effects outlast the call (non-blocking transfers) or that free an object are `unsafe` and document what the caller must
//! ensure. MPI itself checks its other rules (initialisation, valid ranks and sizes, thread levels); to break them is an
//! error or an abort in MPI.

mod collective;
mod comm;
mod datatype;
mod file;
mod owned;
mod point_to_point;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{CStr, c_int};
use std::path::Path;

use crate::detect::Abi;
use crate::error::{Error, Result};
use crate::handles::{Comm, Datatype, Group, Handle};

pub use datatype::Layout;
pub use owned::{CallForm, CollectiveData, CollectiveFunction, OwnedCollective};
pub use point_to_point::Envelope;

/// The MPI of this process.
#[derive(Clone, Debug)]
pub struct Mpi {
    abi: Abi,
    /// The group that takes the place of `MPI_COMM_WORLD` in programs without `MPI_Init`.
    world: Option<Group>,
}

/// Calls a `PMPI_` function that returns an error code; the arguments become words.
macro_rules! pmpi {
    ($mpi:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        static FUNCTION: $crate::symbols::Function = $crate::symbols::Function::named(
            match ::core::ffi::CStr::from_bytes_with_nul(concat!("P", stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without an inner NUL"), // at compile time
            }
        );
        // SAFETY: the callers below pass arguments that match the prototype of $name; pointers refer to memory that
        // is large enough and lives as long as the call or as their contract says.
        let code: Option<i32> = unsafe { FUNCTION.call([$($argument as usize),*]) };
        $mpi.check(stringify!($name), code)
    }};
}
use pmpi;

/// A type of the elements of a buffer that MPI knows as a predefined datatype.
///
/// # Safety
/// [`Element::datatype`] must describe exactly one value of the type, of which any bit pattern is valid.
pub unsafe trait Element: Copy + 'static {
    /// The datatype of one element.
    fn datatype(abi: &Abi) -> Datatype;
}

macro_rules! elements {
    ($($type:ty: $field:ident)*) => { $(
        // SAFETY: the C type of that width; any bit pattern is valid.
        unsafe impl Element for $type {
            fn datatype(abi: &Abi) -> Datatype {
                // SAFETY: a datatype of this MPI; if it lacks the type, MPI_DATATYPE_NULL, which calls reject.
                unsafe { Datatype::from_word(abi.basic.$field.unwrap_or(abi.predefined.datatype_null)) }
            }
        }
    )* };
}
elements! { u8: uint8_t f64: double }

impl Mpi {
    /// The MPI that is already loaded in this process, for a library loaded by a program.
    pub fn loaded() -> Result<Mpi> {
        Ok(Mpi { abi: Abi::detect()?, world: None })
    }

    /// The MPI of this process; loads one if there is none.
    ///
    /// `library` names the file. Without it, the usual names are tried, first those of the launcher that started this process.
    pub fn open(library: Option<&Path>) -> Result<Mpi> {
        match Abi::detect() {
            Err(Error::NotLoaded) => {}
            found => return found.map(|abi| Mpi { abi, world: None }),
        }
        let names = match library {
            Some(path) => vec![path.to_string_lossy().into_owned()],
            None => usual_names(|variable| std::env::var_os(variable).is_some()),
        };
        let mut tried = Vec::new();
        for name in names {
            match load(&name) {
                Ok(()) => return Mpi::loaded(),
                Err(reason) => tried.push(reason),
            }
        }
        Err(Error::CannotOpen { tried })
    }

    /// Its ABI.
    #[inline(always)]
    pub fn abi(&self) -> &Abi {
        &self.abi
    }

    /// `MPI_Init_thread`, with a level of [`Abi`]'s constants; returns the provided one.
    pub fn init_thread(&self, required: i32) -> Result<i32> {
        self.number(|provided| pmpi!(self, MPI_Init_thread(0, 0, required, provided)))
    }

    /// `MPI_Query_thread`.
    pub fn query_thread(&self) -> Result<i32> {
        self.number(|provided| pmpi!(self, MPI_Query_thread(provided)))
    }

    /// `MPI_Finalize`.
    pub fn finalize(&self) -> Result<()> {
        pmpi!(self, MPI_Finalize())
    }

    /// `MPI_Abort`: ends all processes of the communicator.
    pub fn abort(&self, comm: Comm, code: i32) -> Result<()> {
        pmpi!(self, MPI_Abort(comm.word(), code))
    }

    /// `MPI_Wtime`, in seconds.
    #[inline]
    pub fn wtime(&self) -> Result<f64> {
        static WTIME: crate::symbols::Function = crate::symbols::Function::named(c"PMPI_Wtime");
        // SAFETY: double MPI_Wtime(void).
        unsafe { WTIME.call::<f64, 0>([]) }.ok_or(Error::MissingSymbol { symbol: "PMPI_Wtime" })
    }

    /// The class of an error code (`MPI_Error_class`).
    pub fn error_class(&self, code: i32) -> Result<i32> {
        self.number(|class| pmpi!(self, MPI_Error_class(code, class)))
    }

    /// The text of an error code (`MPI_Error_string`).
    pub fn error_text(&self, code: i32) -> Result<String> {
        let mut text = vec![0u8; self.abi.constants.max_error_string.max(ROOM)];
        self.number(|length| pmpi!(self, MPI_Error_string(code, text.as_mut_ptr(), length)))?;
        let text = CStr::from_bytes_until_nul(&text);
        Ok(text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default())
    }

    /// Makes calls on this communicator return errors instead of aborting.
    pub fn return_errors(&self, comm: Comm) -> Result<()> {
        pmpi!(self, MPI_Comm_set_errhandler(comm.word(), self.abi.predefined.errors_return))
    }

    /// `MPI_Comm_call_errhandler`: what the communicator's error handler does with an error, if it returns.
    pub fn call_errhandler(&self, comm: Comm, code: i32) -> Result<()> {
        pmpi!(self, MPI_Comm_call_errhandler(comm.word(), code))
    }

    /// A number of elements and their datatype, as arguments.
    fn shape<T: Element>(&self, function: &'static str, count: usize) -> Result<(c_int, usize)> {
        Ok((int(function, "count", count)?, T::datatype(&self.abi).word()))
    }

    /// Calls a function that writes a C `int`.
    fn number(&self, call: impl FnOnce(*mut c_int) -> Result<()>) -> Result<c_int> {
        let mut number = 0;
        call(&raw mut number)?;
        Ok(number)
    }

    /// Calls a function that writes an `MPI_Count`.
    fn count(&self, call: impl FnOnce(*mut i64) -> Result<()>) -> Result<i64> {
        let mut count = 0;
        call(&raw mut count)?;
        Ok(count)
    }

    /// Calls a function that writes a handle.
    fn handle<H: Handle>(&self, call: impl FnOnce(*mut usize) -> Result<()>) -> Result<H> {
        let mut word = 0usize;
        call(&raw mut word)?;
        // SAFETY: the call succeeded and wrote a handle of the type that its caller expects.
        Ok(unsafe { H::of(self.abi.read_handle((&raw const word).cast())) })
    }

    /// Converts the return code of a call.
    fn check(&self, function: &'static str, code: Option<i32>) -> Result<()> {
        match code {
            Some(code) if code == self.abi.constants.success => Ok(()),
            Some(code) => Err(self.failure(function, code)),
            None => Err(Error::MissingSymbol { symbol: function }),
        }
    }

    #[cold]
    fn failure(&self, function: &'static str, code: i32) -> Error {
        // An error of these functions must not be looked up with them again.
        let about_errors = function.starts_with("MPI_Error_");
        let class = if about_errors { code } else { self.error_class(code).unwrap_or(code) };
        let message = if about_errors { String::new() } else { self.error_text(code).unwrap_or_default() };
        Error::Call { function, code, class, message }
    }
}

/// The minimum room for a string that MPI writes. Other versions may need more than the ABI's table says.
const ROOM: usize = 4096;

/// A length as the C `int` that MPI takes.
fn int(function: &'static str, what: &'static str, value: usize) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| Error::TooLarge { function, what, value: value as u64 })
}

/// The usual names of MPI libraries, those of the launcher that started this process first.
fn usual_names(is_set: impl Fn(&str) -> bool) -> Vec<String> {
    const OPEN_MPI: [&str; 1] = ["libmpi.so.40"];
    const MPICH: [&str; 2] = ["libmpich.so.12", "libmpi.so.12"];
    const STANDARD: [&str; 2] = ["libmpi_abi.so.1", "libmpi_abi.so.0"];
    const UNVERSIONED: [&str; 3] = ["libmpi.so", "libmpich.so", "libmpi_abi.so"];
    let mpich_first = !is_set("OMPI_COMM_WORLD_SIZE") && (is_set("PMI_RANK") || is_set("PMI_FD"));
    let (first, second): (&[&str], &[&str]) =
        if mpich_first { (&MPICH, &OPEN_MPI) } else { (&OPEN_MPI, &MPICH) };
    [first, second, &STANDARD, &UNVERSIONED].concat().into_iter().map(str::to_owned).collect()
}

/// Loads a library permanently and globally: Open MPI's plug-ins look for its symbols in the global scope.
fn load(name: &str) -> std::result::Result<(), String> {
    // SAFETY: MPI libraries are made to be loaded.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) };
    library.map(std::mem::forget).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_mpi_is_tried_first() {
        assert_eq!(usual_names(|_| false)[0], "libmpi.so.40");
        assert_eq!(usual_names(|variable| variable == "PMI_RANK")[0], "libmpich.so.12");
        let both = |variable: &str| variable == "PMI_RANK" || variable == "OMPI_COMM_WORLD_SIZE";
        assert_eq!(usual_names(both)[0], "libmpi.so.40");
        assert_eq!(usual_names(|_| false).len(), 8);
    }

    #[test]
    fn a_library_that_is_not_there_is_named_with_the_reason() {
        let error = Mpi::open(Some(Path::new("/nowhere/libmpi.so"))).unwrap_err();
        let Error::CannotOpen { tried } = &error else { panic!("{error}") };
        assert_eq!(tried.len(), 1);
        assert!(tried[0].contains("/nowhere/libmpi.so"), "{tried:?}");
    }
}
