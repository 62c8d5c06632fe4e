//! A network with other routes than its topology's own: shortest ones over links that have not failed, for ever or for a time, and those of tables
//! from a file.
//!
//! Of several shortest ways, deterministic routing takes the first in the order of link numbers in tori, meshes and HyperX, which is dimension
//! order, elsewhere number `⌊dst / nʰ⌋ mod n` of n behind h links, which is D-mod-k in trees of equal switches. So routes that no failure
//! concerns are as before in these. The class of virtual channels is the number of links taken, unless one class a phase suffices.
//! Intermediates are any switches that are connected. If links fail at times, each epoch has its routes, and a route enters the epoch in which
//! it takes its next link; it goes on from where it is then.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use vef_format::units::Picos;

use super::drawing::Drawing;
use super::fabric::Fabric;
use super::file::{FileError, FileProblem, Speed};
use super::graph::Graph;
use super::interface::{Level, Topology};
use super::limits::GraphProblem;
use super::outages::Outages;
use super::route::{Adaptivity, Choice, Field, Hop, Policy, Route};
use super::table::Table;
use super::wiring::{LinkClass, LinkId, Wiring};

/// Links taken.
const TAKEN: Field<0, 16> = Field;
/// Whether the route has passed the intermediate switch.
const PHASE: Field<16, 1> = Field;

/// The epoch whose routes are taken.
const EPOCH: Field<17, 13> = Field;
/// The next link of a given route, plus one; 0 without a given route.
const GIVEN: Field<30, 32> = Field;

/// A topology without some of its links, or with tables.
#[derive(Debug)]
struct Failed {
    whole: Arc<dyn Topology>,
    wiring: Wiring,
    /// What works in each epoch; one graph without epochs.
    graphs: Vec<Arc<Graph>>,
    /// Switches from which all others in this list can be reached: most of those that work.
    connected: Vec<u32>,
    table: Option<Table>,
}

impl Fabric {
    /// This network without links that have failed.
    pub(super) fn without(&self, failed: &HashSet<LinkId>) -> Result<Self, GraphProblem> {
        let graph = self.graph_without(failed)?;
        Ok(self.with_graphs(vec![Arc::new(graph)], failed))
    }

    /// This network with links that fail at times.
    pub(super) fn with_outages(&self, outages: Outages) -> Result<Self, GraphProblem> {
        let graph = |set| self.graph_without(set).map(Arc::new);
        let graphs = outages.sets().iter().map(graph).collect::<Result<Vec<_>, _>>()?;
        let of_epochs = (0..outages.begins().len() as u32).map(|epoch| graphs[outages.place(epoch)].clone());
        let mut fabric = self.with_graphs(of_epochs.collect(), &outages.sets()[outages.place(0)]);
        fabric.outages = Some(Arc::new(outages));
        Ok(fabric)
    }

    fn graph_without(&self, failed: &HashSet<LinkId>) -> Result<Graph, GraphProblem> {
        Graph::new(
            self.wiring(),
            |link| !failed.contains(&link),
            |switch| self.topology().switch_name(switch),
        )
    }

    /// The same links, with routes in these graphs; `failed` are links that the first one lacks.
    fn with_graphs(&self, graphs: Vec<Arc<Graph>>, failed: &HashSet<LinkId>) -> Self {
        let (whole, wiring) = (self.shared_topology(), self.wiring().clone());
        let works = |node: &u32| !failed.contains(&LinkId::injection(*node));
        let first = (0..wiring.nodes()).find(works).map_or(0, |node| wiring.switch_of(node));
        let graph = &graphs[0];
        let both = |switch: &u32| {
            graph.distance(first, *switch).is_some() && graph.distance(*switch, first).is_some()
        };
        let connected = (0..wiring.switches()).filter(both).collect();
        self.with_topology(Arc::new(Failed { whole, wiring, graphs, connected, table: None }))
    }

    /// This network with routes by the tables of a file.
    ///
    /// # Errors
    /// The file is invalid, or a route by its entries does not end.
    pub(crate) fn with_table(&self, path: &Path) -> Result<Self, FileError> {
        let graph =
            self.graph_without(&HashSet::new()).map_err(|problem| FileProblem::from(problem).at(0))?;
        let table = Table::read(path, self, &graph)?;
        let (whole, wiring) = (self.shared_topology(), self.wiring().clone());
        let connected = (0..wiring.switches()).collect();
        let mut failed =
            Failed { whole, wiring, graphs: vec![Arc::new(graph)], connected, table: Some(table) };
        failed.follow_entries()?;
        Ok(self.with_topology(Arc::new(failed)))
    }

    /// A route from one node to another exists, but for the links of the nodes; with epochs, in that of this number.
    pub(super) fn is_connected(&self, from: u32, to: u32, epoch: u32) -> bool {
        let mut route = Route { dst: to, at: self.switch_of(from), via: Route::NO_DETOUR, key: 0, state: 0 };
        EPOCH.set(&mut route.state, epoch);
        self.topology().reaches(&route)
    }
}

impl Outages {
    /// A route takes its next link at this time.
    pub(crate) fn enter(&self, route: &mut Route, now: Picos) {
        EPOCH.set(&mut route.state, self.at(now));
    }
}

impl Failed {
    /// Follows all routes by entries of tables, to their ends.
    fn follow_entries(&mut self) -> Result<(), FileError> {
        let Some(table) = &self.table else { return Ok(()) };
        let mut switches: Vec<u32> =
            (0..self.wiring.nodes()).map(|node| self.wiring.switch_of(node)).collect();
        switches.dedup();
        let policy = Policy {
            adaptivity: Adaptivity::Deterministic,
            detours: false,
            via_switch: false,
            decides_again: false,
            classes_by_hops: false,
        };
        let mut longest = 0;
        for dst in table.destinations() {
            let to = self.wiring.switch_of(dst);
            for &src in &switches {
                let mut route = Route { dst, at: src, via: Route::NO_DETOUR, key: 0, state: 0 };
                let (mut links, mut line) = (0, 0);
                while route.at != to {
                    line = table.line(route.at, dst).unwrap_or(line);
                    links += 1;
                    // A switch that comes again after this many links was passed twice.
                    if links > self.wiring.switches() || self.next(&mut route, policy, &mut Fixed).last {
                        let [src, dst] = [self.switch_name(src), self.node_name(dst)];
                        let problem = "by these entries it does not end".to_owned();
                        return Err(FileProblem::Route { src, dst, problem }.at(line));
                    }
                }
                longest = longest.max(links);
            }
        }
        if let Some(table) = &mut self.table {
            table.longest = longest;
        }
        Ok(())
    }

    fn graph(&self, route: &Route) -> &Graph {
        &self.graphs[EPOCH.get(route.state) as usize]
    }
}

/// The choices of deterministic routing.
struct Fixed;

impl Choice for Fixed {
    fn among(&mut self, _: &Route, _: u32, fixed: u32, _: &dyn Fn(u32) -> LinkId) -> u32 {
        fixed
    }

    fn draw(&mut self, _: &Route, _: u32, _: u32) -> u32 {
        0
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
        self.graphs[0].distance(from, to).map_or(0, u32::from)
    }

    fn reaches(&self, route: &Route) -> bool {
        self.graph(route).distance(route.at, self.wiring.switch_of(route.dst)).is_some()
    }

    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        let (graph, to) = (self.graph(route), self.wiring.switch_of(route.dst));
        // An intermediate may be cut off since it was drawn.
        let leads_on = |via| graph.distance(route.at, via).is_some() && graph.distance(via, to).is_some();
        if route.via == route.at
            || self.graphs.len() > 1 && route.via != Route::NO_DETOUR && !leads_on(route.via)
        {
            route.via = Route::NO_DETOUR;
            PHASE.set(&mut route.state, 1);
        }
        let taken = TAKEN.get(route.state);
        // Routes that change on the way may be longer than all others.
        let class = if policy.classes_by_hops { taken.min(u8::MAX.into()) } else { PHASE.get(route.state) };
        let target = if route.via == Route::NO_DETOUR { to } else { route.via };
        let in_order = self.whole.minimal_routing() == "dor";
        let fixed = |n: u32| {
            if in_order { 0 } else { n.checked_pow(taken).map_or(0, |before| route.dst / before % n) }
        };
        let shortest = |route: &Route, choice: &mut dyn Choice| {
            graph.next(route.at, target, |n, link| choice.among(route, n, fixed(n), link))
        };
        let next = match &self.table {
            Some(_) if route.at == to => None,
            Some(table) => match GIVEN.get(route.state) {
                0 => table.next(route.at, route.dst).or_else(|| shortest(route, choice)),
                given => {
                    GIVEN.set(&mut route.state, given + 1);
                    Some(table.routes.link(given - 1))
                }
            },
            None => shortest(route, choice),
        };
        let Some((link, at)) = next else { return Hop::to_node(route.dst) };
        route.at = at;
        TAKEN.set(&mut route.state, (taken + 1).min(u16::MAX.into()));
        Hop::to_switch(link, class)
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        let given = self.table.as_ref().map_or(0, |table| table.routes.longest().max(table.longest));
        let shortest = || self.graphs.iter().map(|graph| graph.diameter()).max().unwrap_or(0);
        policy.phases() * if policy.classes_by_hops { shortest().max(given).max(1) } else { 1 }
    }

    fn start(&self, src: u32, route: &mut Route) {
        let given = self.table.as_ref().and_then(|table| table.routes.of(src, route.dst));
        if let Some((first, _)) = given {
            GIVEN.set(&mut route.state, first + 1);
        }
    }

    fn routes_are_those_of_the_switch(&self) -> bool {
        self.table.as_ref().is_none_or(|table| table.routes.is_empty())
    }

    fn can_number_classes_by_hops(&self) -> bool {
        true
    }

    fn lengths(&self, route: &Route, to: u32, via: u32, _: Policy) -> (u32, u32) {
        let graph = self.graph(route);
        let hops = |from, to| graph.distance(from, to).map_or(u32::MAX, u32::from);
        (hops(route.at, to), hops(route.at, via).saturating_add(hops(via, to)))
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
