//! A network from a file: any connected graph of switches, with nodes of one cable each.
//!
//! Shortest routes follow a table of distances between all pairs of switches. Routes given in the file take
//! precedence.
//!
//! Among the n links that lead closer, deterministic routing takes number `dst mod n`. Whether one class of
//! virtual channels per phase suffices depends on the graph. If it does not, the class is the number of links
//! taken, so that each class depends only on the next.

use std::collections::HashMap;
use std::path::Path;

use super::file::{self, Description, FileError, FileProblem, Kind, Speed};
use super::form::{Form, TopologySpec};
use super::graph::Graph;
use super::interface::Topology;
use super::limits::{GraphProblem, MAX_LINKS, MAX_SWITCHES};
use super::route::{Choice, Field, Hop, Policy, Route, other_than};
use super::routes::Routes;
use super::wiring::{LinkClass, LinkId, Vertex, Wiring};

pub(super) const FORMS: &[Form] = &[Form {
    kind: "file",
    form: "file:PATH",
    example: "file:net.graphml, file:net.dot, file:topology.conf, file:fabric.ibnet, file:infrastructure.json or file:net.txt",
    help: "any graph, from a .graphml, .dot or .txt file, Slurm's topology.conf, the output of ibnetdiscover (.ibnet), or InfraGraph's JSON",
    parse: |path| (!path.is_empty()).then(|| Ok(TopologySpec::File(path.into()))),
}];

/// The next link of a given route, plus one; 0 without a given route.
const GIVEN: Field<0, 32> = Field;
/// Links left on the given route.
const LEFT: Field<32, 14> = Field;
/// Links taken.
const TAKEN: Field<46, 16> = Field;
/// Whether the route has passed the intermediate switch.
const PHASE: Field<62, 1> = Field;

/// A network from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    name: String,
    node_names: Vec<String>,
    switch_names: Vec<String>,
    wiring: Wiring,
    /// Speeds of the classes from [`LinkClass::GIVEN`] on, each with the class that supplies missing values.
    speeds: Vec<(Speed, LinkClass)>,
    graph: Graph,
    routes: Routes,
}

impl Given {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        Self::new(format!("file:{}", path.display()), &file::read(path)?)
    }

    fn new(name: String, description: &Description) -> Result<Self, FileError> {
        let numbered = Numbered::new(description)?;
        let Numbered { nodes, switches, .. } = &numbered;
        if nodes.is_empty() {
            return Err(FileProblem::NoNodes.at(0));
        }
        // Before its links are counted.
        if switches.len() > MAX_SWITCHES {
            return Err(FileProblem::from(GraphProblem::TooManySwitches { switches: switches.len() }).at(0));
        }
        let name_of = |place: usize| description.vertices[place].name.clone();
        let mut ends_of = vec![NodeEnds::default(); nodes.len()];
        let (mut classes, mut links) = (Classes::default(), 2 * nodes.len() as u64);
        for edge in &description.edges {
            let (from, to) = edge.ends;
            let wrong = |problem: FileProblem| problem.at(edge.line);
            match (numbered.place(from), numbered.place(to)) {
                (Place::Node(_), Place::Node(_)) => {
                    return Err(wrong(FileProblem::NodeToNode(name_of(from), name_of(to))));
                }
                (Place::Switch(a), Place::Switch(b)) if a == b => {
                    return Err(wrong(FileProblem::OneWay(name_of(from), name_of(to))));
                }
                (Place::Switch(_), Place::Switch(_)) => {
                    links += u64::from(edge.cables) * if edge.one_way { 1 } else { 2 };
                    if links > u64::from(MAX_LINKS) {
                        return Err(wrong(FileProblem::TooLarge));
                    }
                }
                (Place::Node(node), Place::Switch(switch)) | (Place::Switch(switch), Place::Node(node)) => {
                    let class = classes.of(edge.speed, LinkClass::NODE).map_err(wrong)?;
                    let ends = &mut ends_of[node as usize];
                    let from_node = matches!(numbered.place(from), Place::Node(_));
                    if from_node || !edge.one_way {
                        ends.out.add(switch, edge.cables, class);
                    }
                    if !from_node || !edge.one_way {
                        ends.into.add(switch, edge.cables, class);
                    }
                }
            }
        }
        let mut switch_of = Vec::with_capacity(nodes.len());
        for (&node, NodeEnds { out, into }) in nodes.iter().zip(&ends_of) {
            let name = name_of(node);
            if let Some(cables) = [out.cables, into.cables].into_iter().find(|&cables| cables > 1) {
                return Err(FileProblem::Cables { name, cables }.at(0));
            }
            match (out.cables, into.cables) {
                (0, 0) => return Err(FileProblem::Cables { name, cables: 0 }.at(0)),
                (1, 1) if out.switch == into.switch => switch_of.push(out.switch),
                (with_out, _) => {
                    let switch = if with_out > 0 { out.switch } else { into.switch };
                    return Err(FileProblem::OneWay(name, name_of(switches[switch as usize])).at(0));
                }
            }
        }
        let (node_count, switch_count) = (nodes.len() as u32, switches.len() as u32);
        let mut wiring = Wiring::new(node_count, switch_count, |node| switch_of[node as usize]);
        for (node, NodeEnds { out, into }) in (0..).zip(&ends_of) {
            wiring.set_class(LinkId::injection(node), out.class);
            wiring.set_class(LinkId::ejection(node), into.class);
        }
        for edge in &description.edges {
            if let (Place::Switch(a), Place::Switch(b)) =
                (numbered.place(edge.ends.0), numbered.place(edge.ends.1))
            {
                let class =
                    classes.of(edge.speed, LinkClass::LOCAL).map_err(|problem| problem.at(edge.line))?;
                for _ in 0..edge.cables {
                    wiring.link(a, b, class);
                    if !edge.one_way {
                        wiring.link(b, a, class);
                    }
                }
            }
        }
        let switch_name = |switch: u32| name_of(switches[switch as usize]);
        let graph =
            Graph::new(&wiring, |_| true, switch_name).map_err(|problem| FileProblem::from(problem).at(0))?;
        let mut given = Self {
            name,
            node_names: nodes.iter().map(|&place| name_of(place)).collect(),
            switch_names: switches.iter().map(|&place| name_of(place)).collect(),
            graph,
            routes: Routes::default(),
            speeds: classes.speeds,
            wiring,
        };
        given.check_connections()?;
        for route in &description.routes {
            given.add_route(&numbered, route, &name_of)?;
        }
        Ok(given)
    }

    /// All nodes are connected if each is connected with node 0 in both directions.
    fn check_connections(&self) -> Result<(), FileError> {
        let unreachable = |&(a, b): &(u32, u32)| {
            self.graph.distance(self.wiring.switch_of(a), self.wiring.switch_of(b)).is_none()
        };
        let pairs = (1..self.wiring.nodes()).flat_map(|node| [(0, node), (node, 0)]);
        match pairs.into_iter().find(unreachable) {
            None => Ok(()),
            Some((a, b)) => {
                let name = |node: u32| self.node_names[node as usize].clone();
                Err(FileProblem::Disconnected(name(a), name(b)).at(0))
            }
        }
    }

    fn add_route(
        &mut self,
        numbered: &Numbered,
        route: &file::RouteLine,
        name: &dyn Fn(usize) -> String,
    ) -> Result<(), FileError> {
        let wrong = |problem: String| {
            FileProblem::Route { src: name(route.src), dst: name(route.dst), problem }.at(route.line)
        };
        let (Place::Node(src), Place::Node(dst)) = (numbered.place(route.src), numbered.place(route.dst))
        else {
            return Err(wrong("a route leads from a node to a node".into()));
        };
        let mut switches = Vec::with_capacity(route.switches.len());
        for &place in &route.switches {
            match numbered.place(place) {
                Place::Switch(switch) => switches.push(switch),
                Place::Node(_) => return Err(wrong(format!("{:?} is not a switch", name(place)))),
            }
        }
        let name = |vertex: Vertex| match vertex {
            Vertex::Node(node) => self.node_names[node as usize].clone(),
            Vertex::Switch(switch) => self.switch_names[switch as usize].clone(),
        };
        self.routes.add((src, dst), &switches, &self.wiring, &self.graph, name).map_err(wrong)
    }

    /// Most links between two switches, on given routes too.
    fn diameter(&self) -> u32 {
        self.graph.diameter().max(self.routes.longest())
    }
}

impl Topology for Given {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn wiring(&self) -> Wiring {
        self.wiring.clone()
    }

    fn switch_name(&self, switch: u32) -> String {
        self.switch_names[switch as usize].clone()
    }

    fn node_name(&self, node: u32) -> String {
        self.node_names[node as usize].clone()
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        self.graph.distance(from, to).map_or(0, u32::from)
    }

    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        if route.via == route.at {
            route.via = Route::NO_DETOUR;
            PHASE.set(&mut route.state, 1);
        }
        let taken = TAKEN.get(route.state);
        let class = if policy.classes_by_hops { taken } else { PHASE.get(route.state) };
        TAKEN.set(&mut route.state, taken + 1);
        if let Some(at) = GIVEN.get(route.state).checked_sub(1) {
            let left = LEFT.get(route.state);
            if left == 0 {
                return Hop::to_node(route.dst);
            }
            GIVEN.set(&mut route.state, at + 2);
            LEFT.set(&mut route.state, left - 1);
            let link;
            (link, route.at) = self.routes.link(at);
            return Hop::to_switch(link, class);
        }
        let target = if route.via == Route::NO_DETOUR { self.wiring.switch_of(route.dst) } else { route.via };
        let next = self.graph.next(route.at, target, |n, link| choice.among(route, n, route.dst % n, link));
        let Some((link, at)) = next else { return Hop::to_node(route.dst) };
        route.at = at;
        Hop::to_switch(link, class)
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        policy.phases() * if policy.classes_by_hops { self.diameter().max(1) } else { 1 }
    }

    fn can_number_classes_by_hops(&self) -> bool {
        true
    }

    /// A route that the file gives has no detour.
    fn start(&self, src: u32, route: &mut Route) {
        if let Some((first, links)) = self.routes.of(src, route.dst) {
            route.via = Route::NO_DETOUR;
            GIVEN.set(&mut route.state, first + 1);
            LEFT.set(&mut route.state, links);
        }
    }

    fn routes_are_those_of_the_switch(&self) -> bool {
        self.routes.is_empty()
    }

    fn intermediate(&self, from: u32, to: u32, _: Policy, draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        other_than(from, to, self.wiring.switches(), draw)
    }

    fn speeds(&self) -> Vec<(Speed, LinkClass)> {
        self.speeds.clone()
    }
}

/// Numbers of the vertices among the nodes or the switches.
struct Numbered {
    places: Vec<Place>,
    /// Indices of the nodes and of the switches, in the order of the file.
    nodes: Vec<usize>,
    switches: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Node(u32),
    Switch(u32),
}

impl Numbered {
    fn new(description: &Description) -> Result<Self, FileError> {
        let mut cables = vec![0u32; description.vertices.len()];
        for edge in &description.edges {
            cables[edge.ends.0] = cables[edge.ends.0].saturating_add(edge.cables);
            // The other end has a one-way edge of its own.
            if !edge.one_way {
                cables[edge.ends.1] = cables[edge.ends.1].saturating_add(edge.cables);
            }
        }
        let (mut places, mut nodes, mut switches) = (Vec::new(), Vec::new(), Vec::new());
        for (at, vertex) in description.vertices.iter().enumerate() {
            let is_node = vertex.kind.map_or(cables[at] == 1, |kind| kind == Kind::Node);
            let list = if is_node { &mut nodes } else { &mut switches };
            list.push(at);
            let number = u32::try_from(list.len() - 1).map_err(|_| FileProblem::TooLarge.at(0))?;
            places.push(if is_node { Place::Node(number) } else { Place::Switch(number) });
        }
        Ok(Self { places, nodes, switches })
    }

    fn place(&self, vertex: usize) -> Place {
        self.places[vertex]
    }
}

/// The two directions of a node's cable.
#[derive(Clone, Default)]
struct NodeEnds {
    out: NodeEnd,
    into: NodeEnd,
}

/// One direction of a node's cable.
#[derive(Clone)]
struct NodeEnd {
    /// Number of cables in this direction; one is valid.
    cables: u64,
    switch: u32,
    class: LinkClass,
}

impl Default for NodeEnd {
    fn default() -> Self {
        Self { cables: 0, switch: 0, class: LinkClass::NODE }
    }
}

impl NodeEnd {
    fn add(&mut self, switch: u32, cables: u32, class: LinkClass) {
        *self = Self { cables: self.cables + u64::from(cables), switch, class };
    }
}

/// The classes of the speeds in a file.
#[derive(Default)]
struct Classes {
    speeds: Vec<(Speed, LinkClass)>,
    places: HashMap<(Speed, LinkClass), u16>,
}

impl Classes {
    /// The class of `speed`; class `otherwise` supplies missing values.
    fn of(&mut self, speed: Speed, otherwise: LinkClass) -> Result<LinkClass, FileProblem> {
        if speed == Speed::default() {
            return Ok(otherwise);
        }
        if let Some(&class) = self.places.get(&(speed, otherwise)) {
            return Ok(LinkClass(class));
        }
        let class = u16::try_from(self.speeds.len() + usize::from(LinkClass::GIVEN.0));
        let class = class.map_err(|_| FileProblem::TooManySpeeds)?;
        self.speeds.push((speed, otherwise));
        self.places.insert((speed, otherwise), class);
        Ok(LinkClass(class))
    }
}
