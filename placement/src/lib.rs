//! Computes the node of each rank as a launcher does, and searches for better placements.
//!
//! A [`Placement`] has the nodes of a job and, for each rank, its node, slot and core. It comes from
//! - the rules of a launcher, for its own files and options: [`Request::place`];
//! - a rule: [`Placement::block`], [`Placement::round_robin`];
//! - a file: [`Placement::read`] (TOML, JSON, or one node per line; see `docs/placement.md`);
//! - the hosts recorded by a capture: [`captured::placement`];
//! - a search for fewer hop-bytes: [`optimise::optimise`].
//!
//! The crate never prints, never runs a launcher, and knows nothing of traces, messages or simulators.

mod error;
mod input;
mod launchers;
pub mod optimise;
mod output;
mod place;
mod policy;
mod request;

pub use error::{Error, Problem};
pub use input::captured;
pub use input::file::Format;
pub use input::hwloc::Topology;
pub use launchers::slurm::Distribution;
pub use place::{Node, Place, Placement};
pub use request::{Model, Request};
