//! A tool of the preload library's chain that carries the collectives of an unmodified program out by schedules of this
//! project instead of the MPI's own algorithms: `libvef_collectives.so`, for `vef run --tool collectives=TABLE`.
//!
//! ```text
//! tool (which call, which communicator) ─▶ demand (what the arguments ask for) ─▶ run (a schedule, step by step) ─▶ messages
//! ```
//!
//! The messages are non-blocking sends and receives on a duplicate of the program's communicator that only this tool has;
//! they go on through the chain, so that a recorder behind this tool sees them. Whether a call is substituted follows from
//! what all members of the communicator know, so they all come to the same decision.
//!
//! This library never prints (but one line before it ends a program that it cannot serve), starts no thread, and never communicates on the program's communicators, except to make its
//! own from them.

mod arguments;
mod demand;
mod messages;
mod run;
mod tool;
mod usage;

mpi_abi::vef_tool!(tool::Substitute);
