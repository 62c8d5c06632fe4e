//! A network that has been built: its links, and their speeds.

use std::collections::HashMap;
use std::sync::Arc;

use super::file::Speed;
use super::interface::Topology;
use super::outages::Outages;
use super::slowdowns::Slowdowns;
use super::wiring::{LinkClass, LinkId, Vertex, Wiring};

/// A network's nodes, switches and links.
#[derive(Clone, Debug)]
pub struct Fabric {
    topology: Arc<dyn Topology>,
    wiring: Wiring,
    /// Speeds of the classes from [`LinkClass::GIVEN`] on, each with the class that supplies missing values.
    speeds: Vec<(Speed, LinkClass)>,
    /// Set if links fail at times.
    pub(super) outages: Option<Arc<Outages>>,
    /// Set if links are slower for a time.
    pub(super) slowdowns: Option<Arc<Slowdowns>>,
}

impl Fabric {
    /// The network of a topology.
    pub fn new(topology: Arc<dyn Topology>) -> Self {
        Self {
            wiring: topology.wiring(),
            speeds: topology.speeds(),
            topology,
            outages: None,
            slowdowns: None,
        }
    }

    pub(super) fn of(topology: impl Topology + 'static) -> Self {
        Self::new(Arc::new(topology))
    }

    /// Its topology, shared.
    pub(super) fn shared_topology(&self) -> Arc<dyn Topology> {
        self.topology.clone()
    }

    /// The same links, with another's routes.
    pub(super) fn with_topology(&self, topology: Arc<dyn Topology>) -> Self {
        Self { topology, ..self.clone() }
    }

    /// Its topology.
    pub fn topology(&self) -> &dyn Topology {
        &*self.topology
    }

    /// When which links work, if some fail at times.
    pub(crate) fn outages(&self) -> Option<&Outages> {
        self.outages.as_deref()
    }

    /// What is left of the bandwidth of links when, if some are slower for a time.
    pub(crate) fn slowdowns(&self) -> Option<&Slowdowns> {
        self.slowdowns.as_deref()
    }

    /// Its links.
    pub fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Number of end nodes.
    pub fn nodes(&self) -> u32 {
        self.wiring.nodes()
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.wiring.switches()
    }

    /// Number of directed links, those of the nodes included.
    pub fn links(&self) -> u32 {
        self.wiring.links()
    }

    /// The two ends of `link`; `None` if the link does not exist.
    pub fn ends(&self, link: LinkId) -> Option<(Vertex, Vertex)> {
        self.wiring.ends(link)
    }

    /// The speed class of `link`, which must exist.
    pub fn class(&self, link: LinkId) -> LinkClass {
        self.wiring.class(link)
    }

    /// The switch of `node`, which must be below [`Fabric::nodes`].
    #[inline]
    pub fn switch_of(&self, node: u32) -> u32 {
        self.wiring.switch_of(node)
    }

    /// Links on a shortest route between nodes `src` and `dst`, both below [`Fabric::nodes`]. The route of
    /// a node to itself leads to its switch and back.
    pub fn distance(&self, src: u32, dst: u32) -> u32 {
        2 + self.topology.hops(self.switch_of(src), self.switch_of(dst))
    }

    /// The name of `vertex`.
    pub fn vertex_name(&self, vertex: Vertex) -> String {
        match vertex {
            Vertex::Node(node) => self.topology.node_name(node),
            Vertex::Switch(switch) => self.topology.switch_name(switch),
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

    /// Gives these links other speeds, by their class; without effect if there is no number left for another class.
    pub(crate) fn set_speeds(
        &mut self,
        links: impl Iterator<Item = LinkId>,
        speed: impl Fn(LinkClass) -> Speed,
    ) {
        let mut others: HashMap<LinkClass, Option<LinkClass>> = HashMap::new();
        for link in links {
            let class = self.class(link);
            let other = *others.entry(class).or_insert_with(|| {
                let number = usize::from(LinkClass::GIVEN.0) + self.speeds.len();
                let other = LinkClass(u16::try_from(number).ok()?);
                let speed = (speed(class), self.kind(link));
                self.speeds.push(speed);
                Some(other)
            });
            if let Some(other) = other {
                self.wiring.set_class(link, other);
            }
        }
    }
}
