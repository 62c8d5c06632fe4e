//! A network as a file describes it, in any of the formats.

use std::collections::HashMap;

use vef_format::units::Picos;

use super::error::FileProblem;
use crate::quantity::{Bandwidth, parse_time};

/// What a file says of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// Nodes and switches in the order of the file.
    pub(crate) vertices: Vec<Named>,
    /// Cables, and links of one direction.
    pub(crate) edges: Vec<Edge>,
    /// Ways that are given, by names.
    pub(crate) routes: Vec<RouteLine>,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// Node or switch; where the file does not say it, a vertex with one cable is a node.
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Node,
    Switch,
}

/// A cable, or a link of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Places in [`Description::vertices`].
    pub(crate) ends: (usize, usize),
    pub(crate) speed: Speed,
    /// How many, side by side.
    pub(crate) cables: u32,
    /// From the first end to the second alone.
    pub(crate) one_way: bool,
    /// The line it is on.
    pub(crate) line: usize,
}

/// Bandwidth and latency, where they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Speed {
    pub(crate) bandwidth: Option<Bandwidth>,
    pub(crate) latency: Option<Picos>,
}

/// The way from a node to another: the switches on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteLine {
    pub(crate) src: usize,
    pub(crate) dst: usize,
    pub(crate) switches: Vec<usize>,
    pub(crate) line: usize,
}

/// Collects vertices by name.
#[derive(Default)]
pub(super) struct Names {
    pub(super) description: Description,
    pub(super) places: HashMap<String, usize>,
}

impl Names {
    /// A new vertex.
    pub(super) fn declare(&mut self, name: &str, kind: Option<Kind>) -> Result<usize, FileProblem> {
        if self.places.contains_key(name) {
            return Err(FileProblem::Twice(name.to_owned()));
        }
        let place = self.description.vertices.len();
        self.description.vertices.push(Named { name: name.to_owned(), kind });
        self.places.insert(name.to_owned(), place);
        Ok(place)
    }

    pub(super) fn find(&self, name: &str) -> Result<usize, FileProblem> {
        self.places.get(name).copied().ok_or_else(|| FileProblem::Unknown(name.to_owned()))
    }
}

impl Kind {
    /// A kind by one of its names.
    pub(super) fn named(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "node" | "host" | "end" | "hca" => Some(Self::Node),
            "switch" | "router" => Some(Self::Switch),
            _ => None,
        }
    }
}

impl Speed {
    /// Takes the value of an attribute, if it is one of a link's speed.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, FileProblem> {
        match key.to_ascii_lowercase().as_str() {
            "bandwidth" => self.bandwidth = Some(value.parse()?),
            "latency" => self.latency = Some(parse_time(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
