//! Networks described by files: nodes, switches and cables, with bandwidth and latency where they are given.
//!
//! The suffix tells the format: `.graphml`, `.dot` (or `.gv`), else lines of text. What the three say is the same
//! [`Description`].

mod dot;
mod graphml;
mod lines;

use std::path::Path;

use vef_format::units::Picos;

use crate::quantity::{Bandwidth, QuantityError, parse_time};

/// What a file says of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Description {
    /// Nodes and switches in the order of the file.
    pub(super) vertices: Vec<Named>,
    /// Cables, and links of one direction.
    pub(super) edges: Vec<Edge>,
    /// Ways that are given, by names.
    pub(super) routes: Vec<RouteLine>,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    /// Node or switch; where the file does not say it, a vertex with one cable is a node.
    pub(super) kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Node,
    Switch,
}

/// A cable, or a link of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// Places in [`Description::vertices`].
    pub(super) ends: (usize, usize),
    pub(super) speed: Speed,
    /// How many, side by side.
    pub(super) cables: u32,
    /// From the first end to the second alone.
    pub(super) one_way: bool,
    /// The line it is on.
    pub(super) line: usize,
}

/// Bandwidth and latency, where they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Speed {
    pub(crate) bandwidth: Option<Bandwidth>,
    pub(crate) latency: Option<Picos>,
}

/// The way from a node to another: the switches on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RouteLine {
    pub(super) src: usize,
    pub(super) dst: usize,
    pub(super) switches: Vec<usize>,
    pub(super) line: usize,
}

/// Why a file describes no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", Line(*.line))]
pub struct FileError {
    /// Where in the file, from 1; 0 where it concerns the whole.
    pub line: usize,
    /// What is wrong.
    pub problem: FileProblem,
}

/// What can be wrong with a file that should describe a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It is not of the format that its name says.
    #[error("{0}")]
    Syntax(String),
    /// A bandwidth or latency that is none.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A name that was not declared.
    #[error("no node or switch is called {0:?}")]
    Unknown(String),
    /// A name that two vertices have.
    #[error("{0:?} is declared twice")]
    Twice(String),
    /// A node with more or fewer cables than one.
    #[error("node {name:?} has {cables} cables; a node has one")]
    Cables {
        /// The node.
        name: String,
        /// How many it has.
        cables: u32,
    },
    /// A node joined to another node.
    #[error("node {0:?} is joined to node {1:?}; a node is joined to a switch")]
    NodeToNode(String, String),
    /// A link to a node that has no way back, or a cable of a vertex to itself.
    #[error("the cable between {0:?} and {1:?} must lead both ways, and to another vertex")]
    OneWay(String, String),
    /// There is no node.
    #[error("there is no node")]
    NoNodes,
    /// Two nodes are not connected.
    #[error("there is no way from node {0:?} to node {1:?}")]
    Disconnected(String, String),
    /// More switches than the table of distances has room for.
    #[error("{switches} switches; at most {} can be routed between", super::given::MAX_SWITCHES)]
    TooManySwitches {
        /// How many.
        switches: usize,
    },
    /// More different speeds than there are classes.
    #[error("more than 65533 different speeds of links")]
    TooManySpeeds,
    /// More links than a topology may have.
    #[error("more than {} links", super::MAX_LINKS)]
    TooLarge,
    /// A given way that is none.
    #[error("the route from {src:?} to {dst:?}: {problem}")]
    Route {
        /// The first node.
        src: String,
        /// The last node.
        dst: String,
        /// What is wrong with it.
        problem: String,
    },
}

struct Line(usize);

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 > 0 { write!(f, "line {}: ", self.0) } else { Ok(()) }
    }
}

impl FileProblem {
    pub(super) fn at(self, line: usize) -> FileError {
        FileError { line, problem: self }
    }
}

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> Result<Description, FileError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| FileProblem::Unreadable(error.to_string()).at(0))?;
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("graphml") => graphml::parse(&text),
        Some("dot" | "gv") => dot::parse(&text),
        _ => lines::parse(&text),
    }
}

/// Collects vertices by name.
#[derive(Default)]
struct Names {
    description: Description,
    places: std::collections::HashMap<String, usize>,
}

impl Names {
    /// A new vertex.
    fn declare(&mut self, name: &str, kind: Option<Kind>) -> Result<usize, FileProblem> {
        if self.places.contains_key(name) {
            return Err(FileProblem::Twice(name.to_owned()));
        }
        let place = self.description.vertices.len();
        self.description.vertices.push(Named { name: name.to_owned(), kind });
        self.places.insert(name.to_owned(), place);
        Ok(place)
    }

    fn find(&self, name: &str) -> Result<usize, FileProblem> {
        self.places.get(name).copied().ok_or_else(|| FileProblem::Unknown(name.to_owned()))
    }
}

impl Kind {
    /// A kind by one of its names.
    fn named(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "node" | "host" | "end" | "hca" => Some(Self::Node),
            "switch" | "router" => Some(Self::Switch),
            _ => None,
        }
    }
}

impl Speed {
    /// Takes the value of an attribute, if it is one of a link's speed.
    fn set(&mut self, key: &str, value: &str) -> Result<bool, FileProblem> {
        match key.to_ascii_lowercase().as_str() {
            "bandwidth" => self.bandwidth = Some(value.parse()?),
            "latency" => self.latency = Some(parse_time(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
