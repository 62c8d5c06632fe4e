//! Schedules of collective algorithms as pure data.
//!
//! A collective operation, an algorithm and a rank of a communicator give a [`Cursor`]: a plain value of less
//! than 100 bytes that yields this rank's [`Step`]s one by one, computing each from the step's number. Nothing
//! is materialised, so a communicator of a million ranks costs a million cursors and no more. The replay runs
//! the steps in simulated time, collbench over real MPI, and the module `prove` (feature `prove`) symbolically, over all ranks.
//!
//! [`choose`] holds the decision tables that pick the algorithm.
//!
//! This crate knows no network, no time and no MPI; of traces only their table of operations.
//!
//! ```
//! use collectives::{Algorithm, Choice, Operation, Shape, Sizes, Step, steps};
//!
//! let shape = Shape { operation: Operation::Bcast, ranks: 4, rank: 2, root: 0, unit: 1 };
//! let choice = Choice::plain(Algorithm::Binomial);
//! let steps: Vec<Step> = steps(shape, choice, Sizes::Bytes(1000))?.collect();
//! assert!(matches!(steps[0], Step::Recv { from: 0, .. }));
//! assert!(matches!(steps[2], Step::Send { to: 3, data } if data.len == 1000));
//! # Ok::<(), collectives::Error>(())
//! ```
#![forbid(unsafe_code)]

mod algorithm;
pub mod choose;
mod cursor;
mod error;
mod phase;
mod phases;
#[cfg(test)]
mod proofs;
#[cfg(any(test, feature = "prove"))]
pub mod prove;
mod schedule;
mod sizes;
mod step;

pub use algorithm::{Algorithm, Tree};
pub use cursor::{Choice, Cursor, Exchange, Shape};
pub use error::Error;
pub use schedule::steps;
pub use sizes::{Counts, Order, Sizes};
pub use step::{Buffer, Combine, Data, Layout, Step};
pub use vef_format::operation::Operation;

/// Ranks of the largest communicator that can be scheduled.
pub const MAX_RANKS: u32 = 1 << 20;
