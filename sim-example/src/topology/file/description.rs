//! A network as described by a file of any format.

use std::collections::HashMap;

use vef_format::units::Picos;

use super::error::FileProblem;
use crate::quantity::{Bandwidth, parse_time};

/// A network as described by a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// Nodes and switches, in the order of the file.
    pub(crate) vertices: Vec<Named>,
    /// Cables and one-way links.
    pub(crate) edges: Vec<Edge>,
    /// Given routes.
    pub(crate) routes: Vec<RouteLine>,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// If absent, a vertex with one cable is a node, any other a switch.
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Node,
    Switch,
}

/// A cable or a one-way link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Indices in [`Description::vertices`].
    pub(crate) ends: (usize, usize),
    pub(crate) speed: Speed,
    /// Number of parallel cables.
    pub(crate) cables: u32,
    /// Whether the link leads only from the first end to the second.
    pub(crate) one_way: bool,
    /// The line in the file.
    pub(crate) line: usize,
}

/// Bandwidth and latency, as far as given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Speed {
    /// The bandwidth.
    pub bandwidth: Option<Bandwidth>,
    /// The latency.
    pub latency: Option<Picos>,
}

/// A given route: source and destination nodes, and the switches between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteLine {
    pub(crate) src: usize,
    pub(crate) dst: usize,
    pub(crate) switches: Vec<usize>,
    pub(crate) line: usize,
}

/// Vertices by name.
#[derive(Default)]
pub(super) struct Names {
    pub(super) description: Description,
    pub(super) places: HashMap<String, usize>,
}

impl Names {
    /// Adds a vertex.
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
    /// The kind of that name.
    pub(super) fn named(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "node" | "host" | "end" | "hca" => Some(Self::Node),
            "switch" | "router" => Some(Self::Switch),
            _ => None,
        }
    }
}

impl Speed {
    /// Sets bandwidth or latency; returns false for any other attribute.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, FileProblem> {
        let wrong =
            |attribute| move |problem| FileProblem::Quantity { attribute, text: value.to_owned(), problem };
        match key.to_ascii_lowercase().as_str() {
            "bandwidth" => self.bandwidth = Some(value.parse().map_err(wrong("bandwidth"))?),
            "latency" => self.latency = Some(parse_time(value).map_err(wrong("latency"))?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
