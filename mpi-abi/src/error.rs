//! Errors of this crate.

/// Why MPI cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No MPI library is loaded in this process.
    #[error("no MPI library is loaded in this process")]
    NotLoaded,
    /// No MPI library could be opened.
    #[error("no MPI library could be opened (tried: {})", tried.join("; "))]
    CannotOpen {
        /// The names tried, each with the loader's reason.
        tried: Vec<String>,
    },
    /// The loaded library lacks a function, or a symbol that libraries of its kind have.
    #[error("the MPI library lacks the symbol {symbol}")]
    MissingSymbol {
        /// The symbol's name.
        symbol: &'static str,
    },
    /// The ABI of the loaded library is unknown.
    #[error("unknown kind of MPI library: {version:?}")]
    UnknownLibrary {
        /// The text of `MPI_Get_library_version`.
        version: String,
    },
    /// The library has a version of the standard ABI that this crate does not know.
    #[error("unknown version of the standard ABI: {major}.{minor} (known: 1) of {version:?}")]
    UnknownAbi {
        /// `abi_major` of `MPI_Abi_get_version`.
        major: i32,
        /// `abi_minor` of it.
        minor: i32,
        /// The text of `MPI_Get_library_version`.
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
        /// The text of `MPI_Error_string`.
        message: String,
    },
    /// A value does not fit the C type that this MPI takes.
    #[error("{function}: {what} {value} is larger than this MPI can take")]
    TooLarge {
        /// The function that was not called.
        function: &'static str,
        /// What the value stands for.
        what: &'static str,
        /// The value.
        value: u64,
    },
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
