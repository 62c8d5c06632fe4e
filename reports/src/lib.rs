//! What the tools beside the recorder wrote, one file a rank, added up over all ranks.
//!
//! - [`text`]: time-independent text traces, aggregated as MinI Parser does it (`vef text`);
//! - [`profile`]: counts, times and bytes (`vef profile`).
//!
//! This crate never calls MPI, never starts a thread and never prints.

#![forbid(unsafe_code)]

pub mod profile;
pub mod text;

mod ranks;
