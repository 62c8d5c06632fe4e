//! MPI without linking MPI.
//!
//! Programs of this toolkit meet an MPI library that they were not built for: a preload library stands in front
//! of whichever one the program has, and a benchmark opens whichever one there is. This crate knows what that
//! takes, and holds all the raw `unsafe` of it:
//!
//! - [`prototypes`]: every function of MPI-4.0 once, from the table `functions.txt`, with what each parameter is;
//! - [`handles`] and [`status`]: what handles and statuses hold;
//! - [`detect`]: which MPI is in the process, and its [`detect::Abi`], from one of the [`tables`] [`mpich`],
//!   [`openmpi`] and [`standard`];
//! - [`symbols`]: finds the real functions and data in the process;
//! - [`api`]: the calls that this toolkit itself makes;
//! - [`tool`]: what a tool of the chain in front of MPI is, in Rust and in C.
//!
//! It records nothing, keeps no state but the addresses of functions it has looked up, prints nothing, and never
//! initialises an MPI by itself. `mpi-abi/oracle` holds the tables against each installed `mpi.h`.
//!
//! # What the author of a wrapper needs to know
//! - **Arguments are words.** Every parameter of every MPI function is an integer or a pointer, so a wrapper takes
//!   `usize`s and hands them on untouched. Of an `int`, and of an MPICH handle, only the lower 32 bits mean
//!   something ([`prototypes::Kind::width`]). Only what the functions of the group `Others` return is of another
//!   type (`double`, `MPI_Aint`, handles); those have no wrappers. Platforms whose calling convention passes an
//!   `int` and a pointer differently are not supported: 64-bit little-endian Linux (x86-64, AArch64) is.
//! - **A function may be missing.** Open MPI 4.1 has no `_c` forms.
//! - **`MPI_Pcontrol` is variadic.** What came in floating-point registers does not arrive when the call goes through a
//!   chain of tools. MPICH and Open MPI ignore it.
//! - **Outputs** may be read only after the real call, and only when it succeeded; [`detect::Abi::predefined`]
//!   tells null handles.
//! - **A status** gives bytes and the cancelled flag without a call under MPICH and Open MPI; under the standard
//!   ABI ask MPI ([`api::Mpi::status_bytes`]). MPICH 4.0 reports source 0 and tag 0 for a completed request to
//!   `MPI_PROC_NULL`: keep the posted source.
//! - **Requests before, not after.** `Wait` and its kin overwrite their requests; read them before.
//! - **Fortran** reaches a wrapper by another name (`mpi_send_`, `mpi_send_f08_`, `mpi_send_f08ts_`; gfortran's
//!   large-count forms `mpi_send_f08_large_`, `mpi_send_f08ts_large_`), with every argument by reference, handles as
//!   `INTEGER` (`MPI_Comm_f2c`; the identity under MPICH), indices of arrays from 1, logicals as `INTEGER`, an
//!   address for each `IGNORE`, buffers as descriptors in the `ts` forms, `ierror` last (it may be null from
//!   `mpi_f08`), and hidden lengths of strings after it. MPICH's Fortran calls its `MPI_` C entry, Open MPI's the
//!   `PMPI_` one.
//! - **Exceptions and `longjmp`** may leave a call: an error handler of the program's runs in it.
//! - **No MPI, no harm.** Nothing here runs before the first look-up, and nothing refers to an MPI symbol, so a
//!   preload library made with it can sit in a shell.

mod error;

pub mod prototypes;

pub mod handles;
pub mod status;

pub mod detect;
pub mod tables;

pub mod mpich;
pub mod openmpi;
pub mod standard;

pub mod symbols;

pub mod api;

pub mod tool;

pub use error::{Error, Result};

/// What a wrapper returns for a function that the real MPI does not have: an error of the most general kind
/// (`MPI_ERR_OTHER`, under MPICH `MPI_ERR_INTERN`).
pub const ERR_NO_SUCH_FUNCTION: i32 = 16;
