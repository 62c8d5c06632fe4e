//! What can go wrong between a program and its MPI.

/// Why MPI can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No MPI library is loaded in this process.
    #[error("no MPI library is loaded in this process")]
    NotLoaded,
    /// No MPI library could be opened; each attempt with the loader's words.
    #[error("no MPI library could be opened (tried: {})", tried.join("; "))]
    CannotOpen {
        /// The names tried, each with the reason why it was not opened.
        tried: Vec<String>,
    },
    /// The loaded library lacks a symbol that its kind of MPI always has.
    #[error("the MPI library lacks the symbol {symbol}")]
    MissingSymbol {
        /// The symbol's name.
        symbol: &'static str,
    },
    /// This MPI does not have a function.
    #[error("this MPI has no {function}")]
    NoSuchFunction {
        /// The function's name.
        function: &'static str,
    },
    /// The loaded library has an ABI that is none of the known ones.
    #[error("unknown kind of MPI library: {version:?}")]
    UnknownLibrary {
        /// What `MPI_Get_library_version` says.
        version: String,
    },
    /// An MPI function returned an error code.
    #[error("{function} failed: {message} (error class {class})")]
    Call {
        /// The function's name.
        function: &'static str,
        /// The error code.
        code: i32,
        /// Its class (`MPI_Error_class`).
        class: i32,
        /// What `MPI_Error_string` says of it.
        message: String,
    },
    /// A buffer is too short for what the call would read from it or write to it.
    #[error("{function}: a buffer of {given} elements, {needed} needed")]
    ShortBuffer {
        /// The function that would have been called.
        function: &'static str,
        /// Elements in the buffer.
        given: usize,
        /// Elements that the call needs.
        needed: usize,
    },
    /// A value does not fit the C type that this MPI takes.
    #[error("{function}: {what} {value} is larger than this MPI can take")]
    TooLarge {
        /// The function that would have been called.
        function: &'static str,
        /// What the value is.
        what: &'static str,
        /// The value.
        value: u64,
    },
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
