//! Schedules of collective algorithms as pure data.
//!
//! A collective operation, an algorithm and a rank of a communicator give a [`Cursor`]: a plain value of less than 100 bytes
//! that yields this rank's [`Step`]s one by one, each computed from the step's number. Nothing is materialised, so a
//! communicator of a million ranks costs a million cursors and no more. The replay runs the steps in simulated time, `collbench`
//! over real MPI, and the proofs in `tests/` symbolically, over all ranks.
//!
//! # A schedule
//!
//! A [`Member`] says whose schedule of which operation is wanted, a [`Choice`] by which algorithm, and [`Sizes`] how many bytes:
//!
//! ```
//! use collectives::{Algorithm, Choice, Member, Operation, Sizes, Step, steps};
//!
//! let member = Member { operation: Operation::Bcast, ranks: 4, rank: 2, root: 0, unit: 1 };
//! let choice = Choice::plain(Algorithm::Binomial);
//! let steps: Vec<Step> = steps(member, choice, Sizes::Bytes(1000))?.collect();
//! assert!(matches!(steps[0], Step::Recv { from: 0, .. }));
//! assert!(matches!(steps[2], Step::Send { to: 3, data } if data.len == 1000));
//! # Ok::<(), collectives::Error>(())
//! ```
//!
//! # Which algorithm
//!
//! [`choose`] holds the decision tables, those that mimic an MPI among them. All members of a communicator get the same choice.
//!
//! ```
//! use collectives::{Algorithm, Member, Operation, Sizes, choose::Table};
//!
//! let table = Table::builtin("mpich").expect("it ships");
//! let member = Member { operation: Operation::Allreduce, ranks: 12, rank: 0, root: 0, unit: 1 };
//! assert_eq!(table.choose(&member, Sizes::Bytes(20_000)).algorithm, Algorithm::Rabenseifner);
//! ```
//!
//! # From top to bottom
//!
//! ```text
//! choose       decision tables ─▶ a Choice
//! schedule     a Choice ─▶ a Cursor, and its steps
//! algorithms/  the list of algorithms; one file a family: for which operations, by which phases
//! program      the words in which such a file describes an algorithm
//! cursor       a position in a schedule, and what phases compute from it
//! sizes, step, names, error
//! between      collectives of two groups, as two MPI libraries send them
//! creations    the collectives by which these agree on communicators
//! windows      and by which they make and synchronise windows
//! ```
//!
//! This crate knows no network, no time and no MPI; of traces only the table of operations.
#![forbid(unsafe_code)]

mod error;
mod names;
mod sizes;
mod step;

mod cursor;
mod program;

mod algorithms;
pub mod between;
pub mod choose;
pub mod creations;
mod schedule;
pub mod windows;

pub use algorithms::{Algorithm, Choice};
pub use cursor::{Cursor, Member};
pub use error::Error;
pub use names::Tree;
pub use schedule::{Exchange, steps};
pub use sizes::{Counts, Order, Sizes};
pub use step::{Buffer, Combine, Data, Layout, Step};
pub use vef_format::operation::Operation;

/// Ranks of the largest communicator that can be scheduled.
pub const MAX_RANKS: u32 = 1 << 20;

/// Channels of [`Algorithm::RingChannels`], at most: `MAXCHANNELS` of AMD's RCCL. NVIDIA's NCCL has 64, and had 32.
pub const MAX_CHANNELS: u32 = 128;
