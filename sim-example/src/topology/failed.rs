//! A network of which links have failed: shortest routes over those that work.
//!
//! Of several shortest ways, deterministic routing takes the first in the order of link numbers in tori, meshes and HyperX, which is dimension
//! order, elsewhere number `⌊dst / nʰ⌋ mod n` of n behind h links, which is D-mod-k in trees of equal switches. So routes that no failure
//! concerns are as before in these. The class of virtual channels is the number of links taken, unless one class a phase suffices.
//! Intermediates are any switches that are connected.

use std::collections::HashSet;
use std::sync::Arc;

use super::drawing::Drawing;
use super::fabric::Fabric;
use super::file::Speed;
use super::graph::Graph;
use super::interface::{Level, Topology};
use super::limits::GraphProblem;
use super::route::{Choice, Field, Hop, Policy, Route};
use super::wiring::{LinkClass, LinkId, Wiring};

/// Links taken.
const TAKEN: Field<0, 16> = Field;
/// Whether the route has passed the intermediate switch.
const PHASE: Field<16, 1> = Field;

/// A topology without some of its links.
#[derive(Debug)]
struct Failed {
    whole: Arc<dyn Topology>,
    wiring: Wiring,
    graph: Graph,
    /// Switches from which all others in this list can be reached: most of those that work.
    connected: Vec<u32>,
}

impl Fabric {
    /// This network without links.
    pub(super) fn without(&self, failed: &HashSet<LinkId>) -> Result<Self, GraphProblem> {
        let (whole, wiring) = (self.shared_topology(), self.wiring().clone());
        let works = |link: LinkId| !failed.contains(&link);
        let graph = Graph::new(&wiring, works, |switch| whole.switch_name(switch))?;
        let nodes = (0..wiring.nodes()).find(|&node| works(LinkId::injection(node)));
        let first = nodes.map_or(0, |node| wiring.switch_of(node));
        let both = |switch: &u32| {
            graph.distance(first, *switch).is_some() && graph.distance(*switch, first).is_some()
        };
        let connected = (0..wiring.switches()).filter(both).collect();
        Ok(self.with_topology(Arc::new(Failed { whole, wiring, graph, connected })))
    }

    /// A route from one node to another exists, but for the links of the nodes.
    pub(super) fn is_connected(&self, from: u32, to: u32) -> bool {
        self.topology().is_connected(self.switch_of(from), self.switch_of(to))
    }
}

impl Topology for Failed {
    fn name(&self) -> String {
        self.whole.name()
    }

    fn wiring(&self) -> Wiring {
        self.wiring.clone()
    }

    fn switch_name(&self, switch: u32) -> String {
        self.whole.switch_name(switch)
    }

    fn node_name(&self, node: u32) -> String {
        self.whole.node_name(node)
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        self.graph.distance(from, to).map_or(0, u32::from)
    }

    fn is_connected(&self, from: u32, to: u32) -> bool {
        self.graph.distance(from, to).is_some()
    }

    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        if route.via == route.at {
            route.via = Route::NO_DETOUR;
            PHASE.set(&mut route.state, 1);
        }
        let taken = TAKEN.get(route.state);
        let class = if policy.classes_by_hops { taken } else { PHASE.get(route.state) };
        let target = if route.via == Route::NO_DETOUR { self.wiring.switch_of(route.dst) } else { route.via };
        let in_order = self.whole.minimal_routing() == "dor";
        let fixed = |n: u32| {
            if in_order { 0 } else { n.checked_pow(taken).map_or(0, |before| route.dst / before % n) }
        };
        let next = self.graph.next(route.at, target, |n, link| choice.among(route, n, fixed(n), link));
        let Some((link, at)) = next else { return Hop::to_node(route.dst) };
        route.at = at;
        TAKEN.set(&mut route.state, taken + 1);
        Hop::to_switch(link, class)
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        policy.phases() * if policy.classes_by_hops { self.graph.diameter().max(1) } else { 1 }
    }

    fn can_number_classes_by_hops(&self) -> bool {
        true
    }

    fn minimal_routing(&self) -> &'static str {
        self.whole.minimal_routing()
    }

    fn intermediate(&self, from: u32, to: u32, _: Policy, draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        let drawn = self.connected.get(draw((self.connected.len() as u32).max(1)) as usize).copied();
        drawn.filter(|via| *via != from && *via != to)
    }

    fn switches_per_group(&self) -> Option<u32> {
        self.whole.switches_per_group()
    }

    fn dimensions(&self) -> Vec<u32> {
        self.whole.dimensions()
    }

    fn order(&self, nodes: u32) -> Vec<u32> {
        self.whole.order(nodes)
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        self.whole.levels(wiring)
    }

    fn drawing(&self, wiring: &Wiring) -> Drawing {
        self.whole.drawing(wiring)
    }

    fn speeds(&self) -> Vec<(Speed, LinkClass)> {
        self.whole.speeds()
    }
}
