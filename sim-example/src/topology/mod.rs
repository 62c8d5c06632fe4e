//! Topologies: wiring, names, shortest routes and text forms.
//!
//! Each file below is a topology with all that is particular to it. [`FORMS`] lists their text forms, and
//! `docs/extending.md` says how to add one; a topology of another crate is a type with the trait [`Topology`]
//! (`examples/own_topology.rs`). [`Fabric`] is a topology that has been built. [`crate::routing`] chooses among
//! the routes.

mod dragonfly;
mod given;
mod hyperx;
mod megafly;
mod rail;
mod slimfly;
mod torus;
mod tree;

mod file;
mod list;
mod parts;

mod drawing;
mod error;
mod fabric;
mod failed;
mod fault;
mod field;
mod form;
mod graph;
mod interface;
mod limits;
mod outages;
mod route;
mod routes;
mod slowdowns;
mod table;
mod wiring;

pub use drawing::Drawing;
pub use error::{TopologyError, TopologyProblem};
pub use fabric::Fabric;
pub use fault::{Fault, FaultError};
pub use file::{FileError, FileProblem, Speed};
pub use form::{Form, TopologySpec};
pub use interface::{Level, Topology};
pub use limits::{GraphProblem, MAX_LINKS};
pub use list::FORMS;
pub use outages::CutOff;
pub use route::{Adaptivity, Choice, Hop, Policy, Route, other_than};
pub use wiring::{LinkClass, LinkId, Vertex, Wiring};

pub(crate) use outages::Outages;
pub(crate) use parts::Parts;

#[cfg(test)]
pub(crate) mod tests;
