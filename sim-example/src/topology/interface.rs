//! What a topology says of itself.

use std::fmt;
use std::ops::Range;

use super::drawing::Drawing;
use super::file::Speed;
use super::route::{Choice, Hop, Policy, Route};
use super::wiring::{LinkClass, Wiring};

/// A network's wiring, names and shortest routes. Nodes, switches and links are numbered from 0; [`Wiring`] says how.
pub trait Topology: fmt::Debug + Send + Sync {
    /// Its text form.
    fn name(&self) -> String;

    /// Its nodes, switches and links.
    fn wiring(&self) -> Wiring;

    /// The name of a switch, different from those of all other vertices.
    fn switch_name(&self, switch: u32) -> String;

    /// The name of a node, different from those of all other vertices.
    fn node_name(&self, node: u32) -> String {
        format!("node{node}")
    }

    /// Links between two switches that have nodes, on a shortest route.
    fn hops(&self, from: u32, to: u32) -> u32;

    /// Whether a route leads to its destination; only where links have failed it may not.
    fn reaches(&self, _: &Route) -> bool {
        true
    }

    /// The next link of a route, which advances to its end: one of the shortest ways to the intermediate switch, or without
    /// one to the destination. Clears [`Route::via`] at the intermediate switch.
    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop;

    /// Classes of virtual channels, on links of a class, with which routes cannot deadlock.
    fn channel_classes(&self, policy: Policy, class: LinkClass) -> u32;

    /// Whether [`Topology::next`] can also take the number of links as the class of virtual channels: on request, and where a
    /// single class may deadlock.
    fn can_number_classes_by_hops(&self) -> bool {
        false
    }

    /// Prepares a route from a node at its switch.
    fn start(&self, _src: u32, _route: &mut Route) {}

    /// Whether the nodes of a switch have the same routes.
    fn routes_are_those_of_the_switch(&self) -> bool {
        true
    }

    /// What its shortest deterministic routes are called, besides `minimal`.
    fn minimal_routing(&self) -> &'static str {
        "minimal"
    }

    /// Whether its shortest routes are in dimension order, and differ in ties alone, unless they are adaptive.
    fn ties_alone_differ(&self) -> bool {
        false
    }

    /// A random intermediate for a route between two different switches, as [`Route::via`]; by default there is none. `draw(n)`
    /// returns a number below n.
    fn intermediate(&self, _: u32, _: u32, _: Policy, _draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        None
    }

    /// Links between switches from the first switch of a route to switch `to`: on the shortest way, and over an intermediate.
    fn lengths(&self, route: &Route, to: u32, via: u32, _: Policy) -> (u32, u32) {
        (self.hops(route.at, to), self.hops(route.at, via) + self.hops(via, to))
    }

    /// Whether a shortest route may leave for an intermediate at a later switch of its source's group; then it has
    /// [`Topology::switches_per_group`].
    fn can_decide_again(&self) -> bool {
        false
    }

    /// Gives a route its intermediate.
    fn detour(&self, route: &mut Route, via: u32) {
        route.via = via;
    }

    /// Switches of a group, if the network consists of groups of consecutive switches, joined by links of [`LinkClass::GLOBAL`].
    fn switches_per_group(&self) -> Option<u32> {
        None
    }

    /// The sizes of the grid of switches, the first varying fastest; empty without a grid.
    fn dimensions(&self) -> Vec<u32> {
        Vec::new()
    }

    /// All nodes in an order in which near ones follow each other.
    fn order(&self, nodes: u32) -> Vec<u32> {
        (0..nodes).collect()
    }

    /// Links of the same kind, such as those of one dimension or between two levels of switches. Each link is in one level.
    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        let of_nodes = 2 * wiring.nodes();
        vec![Level::new("nodes", 0..of_nodes), Level::new("switches", of_nodes..wiring.links())]
    }

    /// Least number of links from one half of the nodes to the other, if it is known.
    fn bisection(&self) -> Option<u32> {
        None
    }

    /// Where its vertices are drawn.
    fn drawing(&self, wiring: &Wiring) -> Drawing {
        Drawing::ring(wiring.switches())
    }

    /// Speeds of the classes from [`LinkClass::GIVEN`] on, each with the class that supplies missing values.
    fn speeds(&self) -> Vec<(Speed, LinkClass)> {
        Vec::new()
    }
}

/// Links of the same kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name, such as `nodes`, `leaf-spine` or `dimension 0`.
    pub name: String,
    /// The numbers of its links.
    pub links: Range<u32>,
}

impl Level {
    /// The level of that name, with these links.
    pub fn new(name: impl Into<String>, links: Range<u32>) -> Self {
        Self { name: name.into(), links }
    }

    /// The levels of a grid: nodes, then the dimensions, of which the first links are given.
    pub(super) fn of_dimensions(firsts: impl Iterator<Item = u32>, wiring: &Wiring) -> Vec<Self> {
        let mut starts: Vec<u32> = std::iter::once(0).chain(firsts).collect();
        starts.push(wiring.links());
        let name = |number: usize| match number {
            0 => "nodes".to_owned(),
            _ => format!("dimension {}", number - 1),
        };
        starts
            .windows(2)
            .enumerate()
            .map(|(number, ends)| Self::new(name(number), ends[0]..ends[1]))
            .collect()
    }
}
