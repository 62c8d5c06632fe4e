//! What formats of calls share: the way from the calls of each rank to a capture.
//!
//! ```text
//! reader of the format ─▶ Process ─▶ Recorder ─▶ <rank>.vefc
//!   (its own arguments)   (handles)   (numbers requests)
//! ```
//!
//! A format with MPI's handles (DUMPI, liballprof) is read twice: first for the calls that create communicators, whose members
//! [`creations`] finds; then each rank, with a [`process::Process`], in a [`recorder::Recorder`]. A format whose communicators are
//! known (OTF2, SimGrid) uses the recorder alone. Receives with a wildcard whose message the trace does not tell get what remains when
//! all others have theirs ([`wildcards`]).

pub(crate) mod resolved;

pub(crate) mod input;
pub(crate) mod lines;

pub(crate) mod arguments;
pub(crate) mod functions;

pub(crate) mod creations;
pub(crate) mod recorder;
pub(crate) mod wildcards;

pub(crate) mod process;
pub(crate) mod summing;
