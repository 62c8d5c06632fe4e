//! Generates traces of known communication patterns, such as a ring, a halo exchange or a training step, to
//! test networks without a program to capture.
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
//! The same workload gives the same bytes. Records are written as they are generated: a trace may be larger
//! than memory.
//!
//! This crate uses no network model and no MPI, and never replays what it writes.

#![forbid(unsafe_code)]

mod emit;
mod error;
mod kernels;
mod write;

use vef_format::units::{Bytes, Ticks};

pub use emit::Sink;
pub use error::WorkloadError;
pub use kernels::{Kernel, UnknownKernel, cube, square};

/// A trace to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The communication pattern.
    pub kernel: Kernel,
    /// Payload of a message, or of each member's block in a collective.
    pub bytes: Bytes,
    /// Number of iterations of the pattern.
    pub iterations: u32,
    /// Computing of a task per iteration, in nanoseconds.
    pub compute: Ticks,
    /// Largest deviation of a task's factor for its computing from 1.
    pub imbalance: f64,
    /// Largest deviation of an iteration's factor for the computing of a task from 1.
    pub noise: f64,
    /// Seed of all random choices.
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
