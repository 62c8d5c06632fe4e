//! Traces of known communication patterns: what a network does to a ring, a halo exchange or a training step can be tried
//! before there is a program to capture.
//!
//! ```
//! use workloads::{Kernel, Workload};
//!
//! let halo = Workload { kernel: Kernel::Halo2d { grid: [4, 4] }, iterations: 10, ..Workload::default() };
//! let mut text = Vec::new();
//! halo.write_text(&mut text)?;
//! # Ok::<(), workloads::WorkloadError>(())
//! ```
//!
//! The same workload gives the same bytes. Records are written as they are made: a trace may be larger than memory.
//!
//! This crate knows no network and no MPI; it never replays what it writes.

#![forbid(unsafe_code)]

mod emit;
mod error;
mod kernels;
mod write;

use vef_format::units::{Bytes, Ticks};

pub use emit::Sink;
pub use error::WorkloadError;
pub use kernels::{Kernel, UnknownKernel, cube, square};

/// A trace to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Who talks to whom.
    pub kernel: Kernel,
    /// Payload of a message, or of each member's block in a collective.
    pub bytes: Bytes,
    /// How often the pattern is repeated.
    pub iterations: u32,
    /// Computing of a task in an iteration, in nanoseconds.
    pub compute: Ticks,
    /// Each task's computing is multiplied by a number of its own, from `1 − imbalance` to `1 + imbalance`.
    pub imbalance: f64,
    /// And each time by another one, from `1 − noise` to `1 + noise`.
    pub noise: f64,
    /// What all that is random depends on.
    pub seed: u64,
}

impl Default for Workload {
    /// A ring of 16 tasks.
    fn default() -> Self {
        Self {
            kernel: Kernel::Ring { tasks: 16 },
            bytes: Bytes(8192),
            iterations: 100,
            compute: Ticks(10_000),
            imbalance: 0.0,
            noise: 0.0,
            seed: 1,
        }
    }
}
