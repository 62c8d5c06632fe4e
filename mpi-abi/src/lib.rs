//! MPI without linking MPI.
//!
//! Programs of this toolkit use an MPI library that is not known when they are built: a preload library works with the
//! program's MPI, a benchmark with any installed one. This crate contains all raw `unsafe` code for that.
//!
//! ```
//! use mpi_abi::detect::Abi;
//! use mpi_abi::prototypes::{Call, Category, Export, Kind, Name};
//! use mpi_abi::symbols;
//!
//! // What is known of a function without any MPI: its parameters, and the words that they fill.
//! let send = Call::from_name("MPI_Send").expect("a function of MPI");
//! assert_eq!(send.category(), Category::Send);
//! let kinds: Vec<Kind> = send.parameters().iter().map(|parameter| parameter.kind).collect();
//! assert_eq!(kinds, [Kind::Buffer, Kind::Count, Kind::Datatype, Kind::Rank, Kind::Tag, Kind::Comm]);
//! assert_eq!(send.position(Name::Comm), Some(5));
//!
//! // The names by which programs call it.
//! let names: Vec<_> = (0..Export::COUNT).filter(|&at| Export::get(at).call() == send).map(Export::symbol).collect();
//! assert!([c"MPI_Send", c"mpi_send_"].iter().all(|name| names.iter().any(|symbol| **symbol == **name)));
//!
//! // This process has no MPI, so there is no real function, and nothing to detect.
//! assert!(symbols::function(c"PMPI_Send").is_none());
//! assert!(Abi::detect().is_err());
//! ```
//!
//! # Which module
//!
//! - [`prototypes`]: all functions of MPI-4.0, from the table `functions.txt`, with the kinds of their parameters;
//! - [`handles`] and [`status`]: the contents of handles and statuses;
//! - [`detect`]: detects the loaded MPI and its [`detect::Abi`], one of the [`tables`];
//! - [`symbols`]: finds the real functions and data in the process;
//! - [`api`]: the calls that this toolkit itself makes ([`api::Mpi::open`] loads an MPI);
//! - [`tool`]: the interface of tools in front of MPI, in Rust and in C; `examples/tools/count_sends.rs` is one.
//!
//! The crate records nothing, has no state except the addresses of functions, prints nothing, and never initialises an MPI
//! by itself. `tests/tests/abi.rs` compares the tables with each installed `mpi.h`.
//!
//! # Notes for authors of wrappers
//! - **Arguments are words.** All parameters of MPI functions are integers or pointers, so a wrapper takes `usize`s and
//!   passes them on unchanged. Of an `int`, and of an MPICH handle, only the lower 32 bits are defined
//!   ([`prototypes::Kind::width`]). Only functions of the group `Others` return another type than an error code
//!   (`double`, `MPI_Aint`, handles); they have no wrappers. Platforms whose calling convention passes an `int` and a
//!   pointer differently are not supported; 64-bit little-endian Linux (x86-64, AArch64) is.
//! - **A function may be missing.** Open MPI 4.1 has no `_c` forms.
//! - **`MPI_Pcontrol` is variadic.** Arguments in floating-point registers are lost if the call goes through a chain of
//!   tools. MPICH and Open MPI ignore them.
//! - **Outputs** may be read only after the real call, and only if it succeeded; [`detect::Abi::predefined`] has the null
//!   handles.
//! - **A status** has the number of bytes and the cancelled flag in known fields under MPICH and Open MPI; under the
//!   standard ABI, query MPI ([`api::Mpi::status_bytes`]). MPICH 4.0 sets source 0 and tag 0 when a request to
//!   `MPI_PROC_NULL` completes: use the posted source.
//! - **Requests** are overwritten by `Wait` and its variants; read them before the call.
//! - **Fortran** calls a wrapper by another name (`mpi_send_`, `mpi_send_f08_`, `mpi_send_f08ts_`; gfortran's large-count
//!   forms `mpi_send_f08_large_`, `mpi_send_f08ts_large_`), with all arguments by reference, handles as `INTEGER`
//!   (`MPI_Comm_f2c`; the identity under MPICH), indices of arrays from 1, logicals as `INTEGER`, special addresses for
//!   `MPI_STATUS_IGNORE` and the like, descriptors for buffers in the `ts` forms, `ierror` last (null is possible in
//!   `mpi_f08`), and the hidden lengths of strings after it. MPICH's Fortran functions call its `MPI_` C function, Open
//!   MPI's the `PMPI_` one.
//! - **Exceptions and `longjmp`** may leave a call, because error handlers of the program run in it.
//! - **Processes without MPI.** Nothing runs before the first look-up, and nothing refers to an MPI symbol, so a preload
//!   library based on this crate may be loaded into any process.

mod error;

pub mod account;
pub mod prototypes;
pub mod unrecorded;
pub mod waiting;

pub mod handles;
pub mod status;

pub mod detect;
pub mod tables;

pub mod symbols;

pub mod api;

pub mod tool;

pub use error::{Error, Result};

/// The result of a wrapper for a function that the real MPI lacks: a general error (`MPI_ERR_OTHER`; under MPICH `MPI_ERR_INTERN`).
pub const ERR_NO_SUCH_FUNCTION: i32 = 16;
