//! The wiring of a network: nodes, switches, and directed links, two per cable.
//!
//! In every topology, the link from node `n` into the network (its *injection* link) has number `2n`, the
//! link from the network into node `n` (its *ejection* link) number `2n + 1`; links between switches follow.
//! A node has one cable.

use super::error::TopologyProblem;
use super::limits::MAX_LINKS;

/// Number of a directed link, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The injection link of `node`.
    #[inline]
    pub const fn injection(node: u32) -> Self {
        Self(2 * node)
    }

    /// The ejection link of `node`.
    #[inline]
    pub const fn ejection(node: u32) -> Self {
        Self(2 * node + 1)
    }

    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vertex {
    /// An end node.
    Node(u32),
    /// A switch (or router), numbered from 0.
    Switch(u32),
}

/// A class of links with the same speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkClass(pub u16);

impl LinkClass {
    /// Between a node and a switch.
    pub const NODE: Self = Self(0);
    /// Between switches; within a group of a dragonfly.
    pub const LOCAL: Self = Self(1);
    /// Between groups of a dragonfly.
    pub const GLOBAL: Self = Self(2);
    /// First class with a speed from a file.
    pub const GIVEN: Self = Self(3);
}

/// The ends and classes of all links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    nodes: u32,
    switches: u32,
    /// From and to: nodes, then switches.
    ends: Vec<(u32, u32)>,
    classes: Vec<LinkClass>,
}

impl Wiring {
    /// Nodes and their switches, without links between switches; `switch_of(n)` is the switch of node `n`.
    pub fn new(nodes: u32, switches: u32, switch_of: impl Fn(u32) -> u32) -> Self {
        let mut wiring = Self { nodes, switches, ends: Vec::new(), classes: Vec::new() };
        for node in 0..nodes {
            let switch = nodes + switch_of(node);
            wiring.push(node, switch, LinkClass::NODE);
            wiring.push(switch, node, LinkClass::NODE);
        }
        wiring
    }

    fn push(&mut self, from: u32, to: u32, class: LinkClass) {
        self.ends.push((from, to));
        self.classes.push(class);
    }

    /// Adds a directed link between switches, with the next number.
    pub fn link(&mut self, from: u32, to: u32, class: LinkClass) {
        self.push(self.nodes + from, self.nodes + to, class);
    }

    /// Adds the two links of a cable between switches, `from → to` first.
    pub fn cable(&mut self, from: u32, to: u32, class: LinkClass) {
        self.link(from, to, class);
        self.link(to, from, class);
    }

    /// Sets the class of one link.
    pub(super) fn set_class(&mut self, link: LinkId, class: LinkClass) {
        self.classes[link.index()] = class;
    }

    /// Number of end nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.switches
    }

    /// Number of directed links, those of the nodes included.
    pub fn links(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The two ends of `link`; `None` if the link does not exist.
    pub fn ends(&self, link: LinkId) -> Option<(Vertex, Vertex)> {
        self.ends.get(link.index()).map(|&(from, to)| (self.vertex(from), self.vertex(to)))
    }

    /// The speed class of `link`, which must exist.
    pub fn class(&self, link: LinkId) -> LinkClass {
        self.classes[link.index()]
    }

    /// The switch of `node`, which must exist.
    #[inline]
    pub fn switch_of(&self, node: u32) -> u32 {
        self.ends[LinkId::injection(node).index()].1 - self.nodes
    }

    fn vertex(&self, at: u32) -> Vertex {
        match at.checked_sub(self.nodes) {
            None => Vertex::Node(at),
            Some(switch) => Vertex::Switch(switch),
        }
    }
}

/// The product, at most [`MAX_LINKS`].
pub(super) fn product(numbers: impl IntoIterator<Item = u32>) -> Result<u32, TopologyProblem> {
    numbers
        .into_iter()
        .try_fold(1u32, u32::checked_mul)
        .filter(|&product| product <= MAX_LINKS)
        .ok_or(TopologyProblem::TooLarge)
}

/// The number of links, at most [`MAX_LINKS`].
pub(super) fn checked_links(links: u64) -> Result<u32, TopologyProblem> {
    u32::try_from(links).ok().filter(|&links| links <= MAX_LINKS).ok_or(TopologyProblem::TooLarge)
}
