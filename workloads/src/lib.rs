//! Generates traces of known communication patterns, such as a ring, a halo exchange or a training step, to test networks
//! without a program to capture.
//!
//! ```
//! use workloads::{Workload, pattern};
//!
//! let halo = Workload { sizes: vec![8, 2], iterations: 10, ..Workload::new(pattern("halo2d")?, 16) };
//! let mut text = Vec::new();
//! let header = halo.write_text(&mut text)?;
//! // Each task sends four messages an iteration, waits for four, and ends with a mark.
//! assert_eq!(header.messages, 16 * (10 * 8 + 1));
//! assert!(text.starts_with(b"VEF3 16 "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same workload gives the same bytes. Records are written as they are generated: a trace may be larger than memory.
//!
//! ```text
//! patterns/   the list of patterns, and what each task does in an iteration
//! workload    a pattern with its parameters ─▶ a trace
//! emit        the records of all tasks in program order, with their dependencies
//! join, cut   traces of several jobs in one; a part of a trace
//! ```
//!
//! This crate uses no network model and no MPI, and never replays what it writes.

#![forbid(unsafe_code)]

mod rewrite;

mod cut;
mod join;

mod emit;
mod error;
mod model;
mod patterns;
mod workload;

pub use cut::{Cut, LeftOut, Stretch, cut};
pub use error::WorkloadError;
pub use join::{Joined, join};
pub use model::Model;
pub use patterns::{PATTERNS, UnknownPattern, pattern};
pub use rewrite::RewriteError;
pub use workload::{Layout, Pattern, Workload};
