//! Topologies, and their text forms.
//!
//! | text | topology |
//! |---|---|
//! | `auto` | one switch with as many nodes as the placement needs |
//! | `switch:N` | one switch with N nodes |
//! | `fattree:LxDxS` | L leaf switches with D nodes each, every leaf joined to each of S spine switches |
//! | `fattree:k=K` | three levels of K-port switches (K even): K³/4 nodes |
//! | `karytree:KxN` | k-ary n-tree: N levels of switches with K children and K parents: Kᴺ nodes |
//! | `xgft:M1,M2,…;W1,W2,…[;P1,P2,…]` | general fat tree: Mᵢ children per switch, Wᵢ parents per element, Pᵢ cables to each, from the nodes up |
//! | `torus:AxBx…[:T]`, `mesh:AxBx…[:T]` | torus or mesh of any number of dimensions, T nodes per router |
//! | `hyperx:AxBx…:T` | HyperX, T nodes per router; `hyperx:A:T` is a full mesh |
//! | `dragonfly:PxAxH[xG][:palmtree\|absolute\|relative]` | P nodes per router, A routers per group, H global cables per router, G groups (A·H + 1) |
//! | `file:PATH` | any graph, from a `.graphml`, `.dot` or `.txt` file |
//!
//! This module defines wiring, numbering and names; [`crate::routing`] defines routes.

mod spec;

mod dragonfly;
mod file;
mod given;
mod hyperx;
mod torus;
mod tree;

mod error;
mod graph;
mod limits;
mod parts;

pub use dragonfly::{Arrangement, Dragonfly};
pub use error::{TopologyError, TopologyProblem};
pub use file::{FileError, FileProblem};
pub use given::Given;
pub use graph::{LinkClass, LinkId, Vertex};
pub use hyperx::HyperX;
pub use limits::MAX_LINKS;
pub use spec::TopologySpec;
pub use torus::Torus;
pub use tree::Tree;

pub(crate) use file::Speed;
pub(crate) use parts::Parts;
pub(crate) use torus::Way;

use graph::Graph;

/// A network's nodes, switches and links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    shape: Shape,
    graph: Graph,
    /// Speeds of the classes from [`LinkClass::GIVEN`] on, each with the class that supplies missing values.
    speeds: Vec<(Speed, LinkClass)>,
}

/// The kind of network, with the parameters that routing needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One switch or a fat tree.
    Tree(Tree),
    /// A torus or mesh.
    Torus(Torus),
    /// A HyperX.
    HyperX(HyperX),
    /// A dragonfly.
    Dragonfly(Dragonfly),
    /// A network from a file.
    Given(Box<Given>),
}

impl Topology {
    fn new(shape: Shape) -> Self {
        let graph = match &shape {
            Shape::Tree(tree) => tree.graph(),
            Shape::Torus(torus) => torus.graph(),
            Shape::HyperX(hyperx) => hyperx.graph(),
            Shape::Dragonfly(dragonfly) => dragonfly.graph(),
            Shape::Given(given) => given.graph(),
        };
        let speeds = match &shape {
            Shape::Given(given) => given.speeds().to_vec(),
            _ => Vec::new(),
        };
        Self { shape, graph, speeds }
    }

    /// The kind of network.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of end nodes.
    pub fn nodes(&self) -> u32 {
        self.graph.nodes()
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.graph.switches()
    }

    /// Number of directed links, those of the nodes included.
    pub fn links(&self) -> u32 {
        self.graph.links()
    }

    /// The two ends of `link`; `None` if the link does not exist.
    pub fn ends(&self, link: LinkId) -> Option<(Vertex, Vertex)> {
        self.graph.ends(link)
    }

    /// The speed class of `link`, which must exist.
    pub fn class(&self, link: LinkId) -> LinkClass {
        self.graph.class(link)
    }

    /// The switch of `node`, which must be below [`Topology::nodes`].
    pub fn switch_of(&self, node: u32) -> u32 {
        match &self.shape {
            Shape::Tree(tree) => tree.switch_of(node),
            Shape::Torus(torus) => torus.switch_of(node),
            Shape::HyperX(hyperx) => hyperx.switch_of(node),
            Shape::Dragonfly(dragonfly) => dragonfly.switch_of(node),
            Shape::Given(given) => given.switch_of(node),
        }
    }

    /// Links on a shortest route between nodes `src` and `dst`, both below [`Topology::nodes`]. The route of
    /// a node to itself leads to its switch and back.
    pub fn distance(&self, src: u32, dst: u32) -> u32 {
        let (from, to) = (self.switch_of(src), self.switch_of(dst));
        match &self.shape {
            Shape::Tree(tree) => tree.distance(src, dst),
            Shape::Torus(torus) => 2 + torus.hops(from, to),
            Shape::HyperX(hyperx) => 2 + hyperx.hops(from, to),
            Shape::Dragonfly(dragonfly) => 2 + dragonfly.hops(from, to),
            Shape::Given(given) => 2 + given.hops(from, to).map_or(0, u32::from),
        }
    }

    /// The name of `vertex`.
    pub fn vertex_name(&self, vertex: Vertex) -> String {
        match (vertex, &self.shape) {
            (Vertex::Node(node), Shape::Given(given)) => given.node_name(node).to_owned(),
            (Vertex::Node(node), _) => format!("node{node}"),
            (Vertex::Switch(switch), Shape::Tree(tree)) => tree.switch_name(switch),
            (Vertex::Switch(switch), Shape::Torus(torus)) => torus.switch_name(switch),
            (Vertex::Switch(switch), Shape::HyperX(hyperx)) => hyperx.switch_name(switch),
            (Vertex::Switch(switch), Shape::Dragonfly(dragonfly)) => dragonfly.switch_name(switch),
            (Vertex::Switch(switch), Shape::Given(given)) => given.switch_name(switch).to_owned(),
        }
    }

    /// The name of `link`, such as `node3->leaf0`; empty if the link does not exist.
    pub fn link_name(&self, link: LinkId) -> String {
        match self.ends(link) {
            Some((from, to)) => format!("{}->{}", self.vertex_name(from), self.vertex_name(to)),
            None => String::new(),
        }
    }

    /// Speeds of the classes from [`LinkClass::GIVEN`] on, each with the class that supplies missing values.
    pub(crate) fn given_speeds(&self) -> &[(Speed, LinkClass)] {
        &self.speeds
    }

    /// The class of `link` without regard to a speed of its own.
    pub(crate) fn kind(&self, link: LinkId) -> LinkClass {
        let class = self.class(link);
        match class.0.checked_sub(LinkClass::GIVEN.0) {
            None => class,
            Some(given) => self.speeds[usize::from(given)].1,
        }
    }

    /// Gives a link its own speed; without effect if there is no number left for another class.
    pub(crate) fn set_speed(&mut self, link: LinkId, speed: Speed) {
        let class = usize::from(LinkClass::GIVEN.0) + self.speeds.len();
        if let Ok(class) = u16::try_from(class) {
            self.speeds.push((speed, self.kind(link)));
            self.graph.set_class(link, LinkClass(class));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
