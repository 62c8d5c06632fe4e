//! Which rank sits on which node, as the launcher would do it, and where it would sit better.
//!
//! A [`Placement`] is the answer: the nodes of a job and, for every rank, the node (slot, core) it runs on. It comes
//! from one of
//! - a launcher's rules, for its own files and options: [`Request::place`];
//! - a rule: [`Placement::block`], [`Placement::round_robin`];
//! - a file: [`Placement::read`] (TOML, JSON, or one node a line; `docs/placement.md` describes them);
//! - what a capture saw at run time: [`captured::placement`];
//! - a search for fewer hop-bytes: [`optimise::optimise`].
//!
//! The crate never prints, never asks, and knows nothing of traces, messages or simulators.

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
