//! The preload library that records the MPI calls of unmodified programs: `libvef_interpose.so`.
//!
//! One file serves every MPI: it links none, exports the names by which programs call MPI, and finds the real
//! functions at run time. The path of a call:
//!
//! ```text
//! entry (exported names) ─▶ record (frame of a call) ─▶ hooks (by category) ─▶ writer ─▶ output (the file)
//!    │                         │    ╰─▶ shapes, pending (fast paths) ─────────╯
//!    ╰▶ chain (tools) ─────────╯         known, comms (state of handles)
//! ```
//!
//! This library never prints, except one line on stderr when data is lost. It never ends the program and never
//! communicates. It takes no lock in single-threaded programs, does not allocate in ordinary calls, and does nothing
//! in processes without MPI.

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
mod places;
mod record;
mod requests;
mod settings;
mod shapes;
mod table;
mod tracer;
mod writer;
