//! The preload library that records the MPI calls of unmodified programs: `libvef_interpose.so`.
//!
//! ONE file serves every MPI: it links none, defines the MPI functions it wants to see, and finds the real ones at
//! run time. Each wrapper comes from the table of prototypes (`mpi_abi::for_each_mpi_function!`); what it records is the
//! hook of its category ([`hooks`]). From the call to the file:
//!
//! ```text
//! wrappers ─▶ wrap (frame of a call) ─▶ hooks (what it did) ─▶ lane (this thread's records) ─▶ output (the file)
//!                      ╰─▶ shapes (like an earlier one) ─▶╯
//!                                         comms, types, requests (what handles mean)
//! ```
//!
//! This library never prints, except one line on stderr when something is lost; never ends the program; takes no lock in
//! single-threaded programs and allocates nothing on the path of an ordinary call; does nothing in processes without MPI.

mod chain;
mod clock;
mod comms;
mod handles;
mod hooks;
mod lane;
mod languages;
mod output;
mod pending;
mod phases;
mod place;
mod requests;
mod run;
mod settings;
mod shapes;
mod tools;
mod tracer;
mod types;
mod wrap;
mod wrappers;
