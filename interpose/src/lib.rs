//! The preload library that records the MPI calls of unmodified programs: `libvef_interpose.so`.
//!
//! ONE file serves every MPI: it links none, defines the names that programs call MPI by, and finds the real functions at
//! run time. From a call to the file:
//!
//! ```text
//! entry (the names) ─▶ record (the frame of a call) ─▶ hooks (what it did) ─▶ writer ─▶ output (the file)
//!    │                    │    ╰─▶ shapes, pending (like earlier ones) ────────╯
//!    ╰▶ chain (tools) ────╯         known, comms (what handles mean)
//! ```
//!
//! This library never prints, except one line on stderr when something is lost; never ends the program; never communicates; takes no
//! lock in single-threaded programs and allocates nothing on the path of an ordinary call; does nothing in processes without MPI.

mod absent;
mod arguments;
mod call;
mod chain;
mod clock;
mod comms;
mod entry;
mod fortran;
mod guard;
mod hooks;
mod identity;
mod known;
mod machine;
mod objects;
mod output;
mod pending;
mod phases;
mod record;
mod requests;
mod settings;
mod shapes;
mod table;
mod tracer;
mod writer;
