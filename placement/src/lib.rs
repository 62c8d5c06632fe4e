//! Which rank sits on which node, as the launcher would do it.
//!
//! A [`Placement`] is the answer: the nodes of a job and, for every rank, the node (slot, core) it runs on. It comes
//! from one of
//! - a rule: [`Placement::block`], [`Placement::round_robin`];
//! - a file: [`Placement::read`] (TOML, JSON, or one node a line; `docs/placement.md` describes them);
//! - what a capture saw at run time: [`captured::placement`].
//!
//! The crate never prints, never asks, and knows nothing of traces, messages or simulators.

pub mod captured;
mod error;
mod file;
mod place;

pub use error::{Error, Problem};
pub use file::Format;
pub use place::{Node, Place, Placement};
