//! The dragonfly: groups of fully connected routers, joined by global cables.
//!
//! A dragonfly has p nodes per router, a routers per group, h global cables per router and g groups. Node `n`
//! is at router `n / p`; router `R` is number `R mod a` of group `R / a`. Its `j`-th global cable is port `k
//! = (R mod a)·h + j` of the group, `0 ≤ k < a·h`. With all g = a·h + 1 groups, port k of group i leads to
//!
//! | arrangement | group | its port |
//! |---|---|---|
//! | palmtree | (i − k − 1) mod g | a·h − 1 − k |
//! | relative | (i + k + 1) mod g | a·h − 1 − k |
//! | absolute | k if k < i, else k + 1 | i if i is less than that group, else i − 1 |
//!
//! With fewer groups, where g − 1 divides a·h, each pair of groups has a·h / (g − 1) cables. Under
//! *palmtree*, port k of group i leads to group i + 1 + ((a·h − 1 − k) mod (g − 1)), under *relative* to i +
//! 1 + (k mod (g − 1)); both at port a·h − 1 − k.
//!
//! A shortest route has at most one local link to the router with the global cable, that cable, and
//! one local link in the destination's group. Among several cables between two groups, deterministic routing
//! chooses by destination.
//!
//! Valiant routes have an intermediate group (l g l g l) or an intermediate router (l g l, l g l). The class
//! of a link is the number of global links before it; behind an intermediate router it is higher by two
//! (local) or one (global). So classes depend only on higher classes. Under progressive adaptive routing a route may take a local link
//! towards the shortest way's cable, and then another one away from it (l l g l g l): the first local link of the source's group keeps
//! class 0, and all other local links have a class that is higher by one.
//!
//! Sources: J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008;
//! C. Camarero, E. Vallejo, R. Beivide, "Topological characterization of Hamming and dragonfly networks", TACO 2014.

use std::f64::consts::TAU;

use super::drawing::Drawing;
use super::error::TopologyProblem;
use super::form::{Form, Parsed, numbers};
use super::interface::{Level, Topology};
use super::route::{Choice, Field, Hop, Policy, Route, other_than};
use super::wiring::{LinkClass, LinkId, Vertex, Wiring, checked_links, product};
use crate::division::Divisor;

pub(super) const FORMS: &[Form] = &[Form {
    kind: "dragonfly",
    form: "dragonfly:NODESxROUTERSxGLOBAL[xGROUPS][:palmtree|absolute|relative]",
    example: "dragonfly:2x4x2, dragonfly:2x4x2x5 or dragonfly:2x4x2:absolute",
    help: "NODES per router, ROUTERS per group, GLOBAL cables per router, by default as many groups as possible; and the arrangement of the global cables",
    parse,
}];

fn parse(text: &str) -> Option<Parsed> {
    let (sizes, arrangement) = text.split_once(':').unwrap_or((text, "palmtree"));
    let arrangement = Arrangement::ALL.into_iter().find(|known| known.name() == arrangement)?;
    let (nodes, routers, global, groups) = match numbers(sizes, 'x')?[..] {
        [nodes, routers, global] => (nodes, routers, global, None),
        [nodes, routers, global, groups] => (nodes, routers, global, Some(groups)),
        _ => return None,
    };
    Some(Dragonfly::new(nodes, routers, global, groups, arrangement).map(Into::into))
}

/// The global port that the route leads to, plus one; 0 if none is chosen.
const PORT: Field<0, 32> = Field;
/// Global links taken in this phase.
const GLOBAL: Field<32, 2> = Field;
/// Whether the route has passed the intermediate router.
const PHASE: Field<34, 1> = Field;

/// Whether the route has taken a local link in its source's group, and may have decided again behind it.
const LEFT: Field<35, 1> = Field;

/// The arrangement of the global cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrangement {
    /// Consecutive ports lead to the preceding groups.
    Palmtree,
    /// Port k leads to group k; the own group is skipped.
    Absolute,
    /// Consecutive ports lead to the following groups.
    Relative,
}

impl Arrangement {
    const ALL: [Self; 3] = [Self::Palmtree, Self::Absolute, Self::Relative];

    fn name(self) -> &'static str {
        match self {
            Self::Palmtree => "palmtree",
            Self::Absolute => "absolute",
            Self::Relative => "relative",
        }
    }
}

/// A dragonfly.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dragonfly {
    name: String,
    nodes: u32,
    groups: u32,
    per_router: Divisor,
    per_group: Divisor,
    per_router_global: Divisor,
    /// Global ports of a group.
    ports: u32,
    /// Distance between neighbouring ports that lead to the same group.
    other_groups: Divisor,
    arrangement: Arrangement,
    first_global: u32,
}

impl Dragonfly {
    /// A dragonfly of `nodes` per router, `routers` per group, `global` cables per router and `groups`, by
    /// default as many as possible.
    fn new(
        nodes: u32,
        routers: u32,
        global: u32,
        groups: Option<u32>,
        arrangement: Arrangement,
    ) -> Result<Self, TopologyProblem> {
        if [nodes, routers, global].contains(&0) || groups == Some(0) {
            return Err(TopologyProblem::Zero);
        }
        let given = groups.map_or(String::new(), |groups| format!("x{groups}"));
        let arranged = match arrangement {
            Arrangement::Palmtree => String::new(),
            other => format!(":{}", other.name()),
        };
        let name = format!("dragonfly:{nodes}x{routers}x{global}{given}{arranged}");
        let ports = product([routers, global])?;
        let groups = groups.unwrap_or(ports + 1);
        let divides = groups > 1 && ports.is_multiple_of(groups - 1);
        if !divides && groups != 1 {
            return Err(TopologyProblem::Groups { ports, groups });
        }
        if arrangement == Arrangement::Absolute && groups != ports + 1 {
            return Err(TopologyProblem::AbsoluteGroups { ports });
        }
        // A single group uses none of its global ports.
        let ports = if groups == 1 { 0 } else { ports };
        let all_routers = product([routers, groups])?;
        let all_nodes = product([all_routers, nodes])?;
        let local = u64::from(all_routers) * u64::from(routers - 1);
        let first_global = checked_links(2 * u64::from(all_nodes) + local)?;
        checked_links(u64::from(first_global) + u64::from(groups) * u64::from(ports))?;
        Ok(Self {
            name,
            nodes: all_nodes,
            groups,
            per_router: Divisor::new(nodes),
            per_group: Divisor::new(routers),
            per_router_global: Divisor::new(global),
            ports,
            other_groups: Divisor::new((groups - 1).max(1)),
            arrangement,
            first_global,
        })
    }

    /// Routers of a group.
    fn routers(&self) -> u32 {
        self.per_group.get()
    }

    /// The router of `node`.
    #[inline(always)]
    fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }

    /// The group of `router`, and its number in the group.
    #[inline(always)]
    fn group_of(&self, router: u32) -> (u32, u32) {
        self.per_group.divide(router)
    }

    /// The router with `port` of `group`.
    #[inline(always)]
    fn router_of_port(&self, group: u32, port: u32) -> u32 {
        group * self.per_group.get() + self.per_router_global.quotient(port)
    }

    /// Cables between each two groups.
    #[inline(always)]
    fn cables_between(&self) -> u32 {
        self.other_groups.quotient(self.ports)
    }

    /// The port of `group` with the `n`-th cable to another group `to`.
    #[inline(always)]
    fn port_to(&self, group: u32, to: u32, n: u32) -> u32 {
        let others = self.other_groups.get();
        // Distance in groups, from 0 for the next group.
        let ahead = if to > group { to - group - 1 } else { to + self.groups - group - 1 };
        match self.arrangement {
            Arrangement::Palmtree => self.ports - 1 - ahead - n * others,
            Arrangement::Relative => ahead + n * others,
            Arrangement::Absolute => to - u32::from(to > group),
        }
    }

    /// The group and port at the other end of `port` of `group`.
    #[inline]
    fn peer(&self, group: u32, port: u32) -> (u32, u32) {
        let further = |ahead: u32| {
            let to = group + 1 + ahead;
            if to >= self.groups { to - self.groups } else { to }
        };
        match self.arrangement {
            Arrangement::Palmtree => {
                let back = self.ports - 1 - port;
                (further(self.other_groups.remainder(back)), back)
            }
            Arrangement::Relative => (further(self.other_groups.remainder(port)), self.ports - 1 - port),
            Arrangement::Absolute => {
                let to = port + u32::from(port >= group);
                (to, group - u32::from(group > to))
            }
        }
    }

    /// The link within a group from `router`, which is number `own`, to router number `to`.
    #[inline(always)]
    fn local_link(&self, router: u32, own: u32, to: u32) -> LinkId {
        let first = 2 * self.nodes + router * (self.per_group.get() - 1);
        LinkId(first + to - u32::from(to > own))
    }

    /// The link out of `port` of `group`.
    #[inline(always)]
    fn global_link(&self, group: u32, port: u32) -> LinkId {
        LinkId(self.first_global + group * self.ports + port)
    }

    /// Links between two routers over the `n`-th cable between their groups.
    fn hops_by(&self, from: u32, to: u32, n: u32) -> u32 {
        let ((group, _), (to_group, _)) = (self.group_of(from), self.group_of(to));
        if group == to_group {
            return u32::from(from != to);
        }
        let port = self.port_to(group, to_group, n);
        let (_, arrival) = self.peer(group, port);
        let (exit, entry) = (self.router_of_port(group, port), self.router_of_port(to_group, arrival));
        1 + u32::from(exit != from) + u32::from(entry != to)
    }

    /// The first link from `router` to a port of its group, and over it.
    #[inline]
    fn first_link(&self, router: u32, port: u32) -> LinkId {
        let (group, own) = self.group_of(router);
        let exit = self.router_of_port(group, port);
        match exit == router {
            true => self.global_link(group, port),
            false => self.local_link(router, own, self.group_of(exit).1),
        }
    }

    /// Links between switches on the route over an intermediate group, by the first cable between each two
    /// groups.
    fn length_by_group(&self, route: &Route, to: u32, via: u32) -> u32 {
        let ((group, _), (to_group, _)) = (self.group_of(route.at), self.group_of(to));
        let out = self.port_to(group, via, 0);
        let (_, entry) = self.peer(group, out);
        let middle = self.router_of_port(via, entry);
        let to_middle = 1 + u32::from(self.router_of_port(group, out) != route.at);
        match via == to_group {
            true => to_middle + u32::from(middle != to),
            false => to_middle + self.hops_by(middle, to, 0),
        }
    }
}

impl Topology for Dragonfly {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn wiring(&self) -> Wiring {
        let routers = self.groups * self.routers();
        let mut wiring = Wiring::new(self.nodes, routers, |node| self.switch_of(node));
        for router in 0..routers {
            let (group, own) = self.per_group.divide(router);
            for to in (0..self.routers()).filter(|&to| to != own) {
                wiring.link(router, group * self.routers() + to, LinkClass::LOCAL);
            }
        }
        for group in 0..self.groups {
            for port in 0..self.ports {
                let (to, to_port) = self.peer(group, port);
                wiring.link(
                    self.router_of_port(group, port),
                    self.router_of_port(to, to_port),
                    LinkClass::GLOBAL,
                );
            }
        }
        wiring
    }

    /// Group and number: `g3.r1`.
    fn switch_name(&self, router: u32) -> String {
        let (group, index) = self.group_of(router);
        format!("g{group}.r{index}")
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        (0..self.cables_between().max(1)).map(|n| self.hops_by(from, to, n)).min().unwrap_or(0)
    }

    /// [`Route::via`] is a group, or with [`Policy::via_switch`] a router.
    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        let (group, own) = self.group_of(route.at);
        if route.via != Route::NO_DETOUR && route.via == if policy.via_switch { route.at } else { group } {
            route.via = Route::NO_DETOUR;
            if policy.via_switch {
                PHASE.set(&mut route.state, 1);
                GLOBAL.set(&mut route.state, 0);
            }
        }
        let target = match route.via {
            Route::NO_DETOUR => self.switch_of(route.dst),
            via if policy.via_switch => via,
            via => via * self.routers(),
        };
        if target == route.at && route.via == Route::NO_DETOUR {
            return Hop::to_node(route.dst);
        }
        let (to_group, index) = self.group_of(target);
        let (taken, phase) = (GLOBAL.get(route.state), PHASE.get(route.state));
        let local_class = match policy.decides_again {
            true if taken == 0 && phase == 0 => LEFT.get(route.state),
            true => taken + 2 * phase + 1,
            false => taken + 2 * phase,
        };
        if policy.decides_again {
            LEFT.set(&mut route.state, 1);
        }
        if group == to_group {
            let link = self.local_link(route.at, own, index);
            route.at = target;
            return Hop::to_switch(link, local_class);
        }
        let port = match PORT.get(route.state) {
            0 => {
                let way = match self.cables_between() {
                    1 => 0,
                    n => {
                        let link = |way: u32| self.first_link(route.at, self.port_to(group, to_group, way));
                        choice.among(route, n, route.dst % n, &link)
                    }
                };
                self.port_to(group, to_group, way)
            }
            chosen => chosen - 1,
        };
        let exit = self.router_of_port(group, port);
        let link = self.first_link(route.at, port);
        if exit != route.at {
            route.at = exit;
            PORT.set(&mut route.state, port + 1);
            return Hop::to_switch(link, local_class);
        }
        let (arrived, entry) = self.peer(group, port);
        route.at = self.router_of_port(arrived, entry);
        PORT.set(&mut route.state, 0);
        GLOBAL.set(&mut route.state, taken + 1);
        Hop::to_switch(link, taken + phase)
    }

    fn channel_classes(&self, policy: Policy, class: LinkClass) -> u32 {
        match (policy.detours, policy.via_switch) {
            _ if class == LinkClass::GLOBAL => policy.phases(),
            (false, _) => 2,
            (true, false) => 3 + u32::from(policy.decides_again),
            (true, true) => 4 + u32::from(policy.decides_again),
        }
    }

    fn can_decide_again(&self) -> bool {
        true
    }

    /// The cable to which a shortest route is on its way is not that to the intermediate.
    fn detour(&self, route: &mut Route, via: u32) {
        route.via = via;
        PORT.set(&mut route.state, 0);
    }

    fn intermediate(
        &self,
        from: u32,
        to: u32,
        policy: Policy,
        draw: &mut dyn FnMut(u32) -> u32,
    ) -> Option<u32> {
        match policy.via_switch {
            true => other_than(from, to, self.groups * self.routers(), draw),
            false => other_than(self.group_of(from).0, self.group_of(to).0, self.groups, draw),
        }
    }

    fn lengths(&self, route: &Route, to: u32, via: u32, policy: Policy) -> (u32, u32) {
        let detour = match policy.via_switch {
            true => self.hops(route.at, via) + self.hops(via, to),
            false => self.length_by_group(route, to, via),
        };
        (self.hops(route.at, to), detour)
    }

    fn switches_per_group(&self) -> Option<u32> {
        Some(self.routers())
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        let of_nodes = 2 * self.nodes;
        vec![
            Level::new("nodes", 0..of_nodes),
            Level::new("local", of_nodes..self.first_global),
            Level::new("global", self.first_global..wiring.links()),
        ]
    }

    /// Groups on a ring, each with its routers on a ring.
    fn drawing(&self, wiring: &Wiring) -> Drawing {
        let (groups, routers) = (f64::from(self.groups), f64::from(self.routers()));
        let inner = (routers * Drawing::STEP / TAU).max(Drawing::STEP);
        let outer = (groups * (2.0 * inner + 2.0 * Drawing::STEP) / TAU).max(inner + 2.0 * Drawing::STEP);
        let place = |router: u32| {
            let (group, own) = self.group_of(router);
            let (at, turn) = (TAU * f64::from(group) / groups, TAU * f64::from(own) / routers);
            let centre = outer + inner;
            let x = centre + outer * at.sin() + inner * (at + turn).sin();
            let y = centre - outer * at.cos() - inner * (at + turn).cos();
            (Vertex::Switch(router), (x, y))
        };
        Drawing { places: (0..wiring.switches()).map(place).collect(), straight: false }
    }
}
