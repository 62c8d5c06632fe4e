//! The Dragonfly+ (Megafly): groups of leaf and spine switches, joined by global cables between spines.
//!
//! A group has l leaves with p nodes each and s spines with h global cables each; every leaf is joined to every spine of its group. There
//! are g groups, by default s·h + 1. Global cable `j` of spine `i` is port k = i·h + j of its group; the cables are arranged
//! as in the palmtree dragonfly ([`super::dragonfly`]): port k of group i leads to group i + 1 + ((s·h − 1 − k) mod (g − 1)), at its
//! port s·h − 1 − k, where g − 1 must divide s·h.
//!
//! A shortest route is leaf, spine, leaf in a group, and leaf, spine, spine, leaf to another one. Of several spines or cables,
//! deterministic routing chooses by destination. Routes up, over and down need one class of virtual channels. With an intermediate group
//! (or leaf: `valiant:router`) they need two: the second from there on. Where the spine by which a route enters its
//! intermediate group has no cable to the destination's, it takes a leaf to another spine.
//!
//! Sources: A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters", HiPINEB 2017; M. Flajslik, E. Borch, M. A. Parker,
//! "Megafly: a topology for exascale systems", ISC 2018.

use super::error::TopologyProblem;
use super::form::{Form, Parsed, numbers};
use super::interface::{Level, Topology};
use super::route::{Choice, Field, Hop, Policy, Route, other_than};
use super::wiring::{LinkClass, LinkId, Wiring, checked_links, product};

pub(super) const FORMS: &[Form] = &[Form {
    kind: "dragonflyplus",
    form: "dragonflyplus:NODESxLEAVESxSPINESxGLOBAL[xGROUPS]",
    example: "dragonflyplus:4x4x4x4 or dragonflyplus:4x4x4x4x5",
    help: "Dragonfly+ (Megafly) of groups of LEAVES with NODES each and SPINES with GLOBAL cables each, by default as many groups as possible",
    parse,
}];

fn parse(text: &str) -> Option<Parsed> {
    let (sizes, groups) = match numbers(text, 'x')?[..] {
        [nodes, leaves, spines, global] => ([nodes, leaves, spines, global], None),
        [nodes, leaves, spines, global, groups] => ([nodes, leaves, spines, global], Some(groups)),
        _ => return None,
    };
    Some(Megafly::new(sizes, groups).map(Into::into))
}

/// The global port that the route leads to, plus one; 0 if none is chosen.
const PORT: Field<0, 32> = Field;
/// Whether the route has passed the intermediate group or leaf.
const PHASE: Field<32, 1> = Field;

/// A Dragonfly+.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Megafly {
    name: String,
    /// Nodes of a leaf.
    nodes: u32,
    /// Leaves and spines of a group.
    leaves: u32,
    spines: u32,
    /// Global cables of a spine, and of a group.
    global: u32,
    ports: u32,
    groups: u32,
    first_global: u32,
}

impl Megafly {
    fn new([nodes, leaves, spines, global]: [u32; 4], groups: Option<u32>) -> Result<Self, TopologyProblem> {
        if [nodes, leaves, spines, global].contains(&0) || groups == Some(0) {
            return Err(TopologyProblem::Zero);
        }
        let given = groups.map_or(String::new(), |groups| format!("x{groups}"));
        let name = format!("dragonflyplus:{nodes}x{leaves}x{spines}x{global}{given}");
        let ports = product([spines, global])?;
        let groups = groups.unwrap_or(ports + 1);
        if groups != 1 && !ports.is_multiple_of(groups - 1) {
            return Err(TopologyProblem::Groups { ports, groups });
        }
        // A single group uses none of its global ports.
        let ports = if groups == 1 { 0 } else { ports };
        let all_nodes = product([nodes, leaves, groups])?;
        let local = 2 * u64::from(product([leaves, spines, groups])?);
        let first_global = checked_links(2 * u64::from(all_nodes) + local)?;
        checked_links(u64::from(first_global) + u64::from(groups) * u64::from(ports))?;
        product([leaves + spines, groups])?;
        Ok(Self { name, nodes, leaves, spines, global, ports, groups, first_global })
    }

    /// Switches of a group.
    fn switches(&self) -> u32 {
        self.leaves + self.spines
    }

    fn all_nodes(&self) -> u32 {
        self.nodes * self.leaves * self.groups
    }

    fn switch_of(&self, node: u32) -> u32 {
        let leaf = node / self.nodes;
        leaf / self.leaves * self.switches() + leaf % self.leaves
    }

    /// The group of a switch, and its number there: leaves come first.
    fn group_of(&self, switch: u32) -> (u32, u32) {
        (switch / self.switches(), switch % self.switches())
    }

    fn cables_between(&self) -> u32 {
        self.ports / (self.groups - 1).max(1)
    }

    /// The port of a group with the `n`-th cable to another.
    fn port_to(&self, group: u32, to: u32, n: u32) -> u32 {
        let ahead = (to + self.groups - group - 1) % self.groups;
        self.ports - 1 - ahead - n * (self.groups - 1)
    }

    /// The group and port at the other end of a port.
    fn peer(&self, group: u32, port: u32) -> (u32, u32) {
        let back = self.ports - 1 - port;
        ((group + 1 + back % (self.groups - 1)) % self.groups, back)
    }

    /// The spine, of its group, with a port.
    fn spine_of(&self, port: u32) -> u32 {
        port / self.global
    }

    fn spine(&self, group: u32, spine: u32) -> u32 {
        group * self.switches() + self.leaves + spine
    }

    /// The link from a leaf to a spine of its group; the one back is the next.
    fn up(&self, group: u32, leaf: u32, spine: u32) -> LinkId {
        LinkId(2 * self.all_nodes() + 2 * ((group * self.leaves + leaf) * self.spines + spine))
    }

    fn down(&self, group: u32, leaf: u32, spine: u32) -> LinkId {
        LinkId(self.up(group, leaf, spine).0 + 1)
    }

    fn global_link(&self, group: u32, port: u32) -> LinkId {
        LinkId(self.first_global + group * self.ports + port)
    }

    /// A cable to another group, preferably of the spine (`own`, if this is one).
    fn port(&self, route: &Route, group: u32, own: u32, to: u32, choice: &mut dyn Choice) -> u32 {
        let all: Vec<u32> = (0..self.cables_between()).map(|n| self.port_to(group, to, n)).collect();
        let is_own = |port: &u32| own == self.leaves + self.spine_of(*port);
        let mut near: Vec<u32> = all.iter().copied().filter(is_own).collect();
        if near.is_empty() {
            near = all;
        }
        let link = |way: u32| match own.checked_sub(self.leaves) {
            None => self.up(group, own, self.spine_of(near[way as usize])),
            Some(_) => self.global_link(group, near[way as usize]),
        };
        let way = match near.len() as u32 {
            1 => 0,
            n => choice.among(route, n, route.dst % n, &link),
        };
        near[way as usize]
    }

    /// One of `n` at random, by load or by destination.
    fn one(&self, route: &Route, n: u32, choice: &mut dyn Choice, link: &dyn Fn(u32) -> LinkId) -> u32 {
        if n == 1 { 0 } else { choice.among(route, n, route.dst % n, link) }
    }
}

impl Topology for Megafly {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn wiring(&self) -> Wiring {
        let mut wiring =
            Wiring::new(self.all_nodes(), self.groups * self.switches(), |node| self.switch_of(node));
        for (group, leaf) in
            (0..self.groups).flat_map(|group| (0..self.leaves).map(move |leaf| (group, leaf)))
        {
            for spine in 0..self.spines {
                wiring.cable(group * self.switches() + leaf, self.spine(group, spine), LinkClass::LOCAL);
            }
        }
        for (group, port) in (0..self.groups).flat_map(|group| (0..self.ports).map(move |port| (group, port)))
        {
            let (to, to_port) = self.peer(group, port);
            let ends =
                [(group, port), (to, to_port)].map(|(group, port)| self.spine(group, self.spine_of(port)));
            wiring.link(ends[0], ends[1], LinkClass::GLOBAL);
        }
        wiring
    }

    /// `g3.leaf1`, `g3.spine0`.
    fn switch_name(&self, switch: u32) -> String {
        let (group, own) = self.group_of(switch);
        match own.checked_sub(self.leaves) {
            None => format!("g{group}.leaf{own}"),
            Some(spine) => format!("g{group}.spine{spine}"),
        }
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        match self.group_of(from).0 == self.group_of(to).0 {
            true if from == to => 0,
            true => 2,
            false => 3,
        }
    }

    /// [`Route::via`] is a group, or with [`Policy::via_switch`] a leaf.
    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        let (group, own) = self.group_of(route.at);
        if route.via != Route::NO_DETOUR && route.via == if policy.via_switch { route.at } else { group } {
            route.via = Route::NO_DETOUR;
            PHASE.set(&mut route.state, 1);
        }
        let target = match route.via {
            Route::NO_DETOUR => self.switch_of(route.dst),
            via if policy.via_switch => via,
            via => via * self.switches(),
        };
        if target == route.at {
            return Hop::to_node(route.dst);
        }
        let ((to_group, leaf), phase) = (self.group_of(target), PHASE.get(route.state));
        let spine = own.checked_sub(self.leaves);
        if group == to_group {
            return match spine {
                Some(spine) => {
                    route.at = target;
                    Hop::to_switch(self.down(group, leaf, spine), phase)
                }
                None => {
                    let up = |spine| self.up(group, own, spine);
                    let spine = self.one(route, self.spines, choice, &up);
                    route.at = self.spine(group, spine);
                    Hop::to_switch(up(spine), phase)
                }
            };
        }
        let port = match PORT.get(route.state) {
            0 => self.port(route, group, own, to_group, choice),
            chosen => chosen - 1,
        };
        PORT.set(&mut route.state, port + 1);
        let exit = self.spine_of(port);
        match spine {
            None => {
                route.at = self.spine(group, exit);
                Hop::to_switch(self.up(group, own, exit), phase)
            }
            Some(spine) if spine == exit => {
                let (to, entry) = self.peer(group, port);
                route.at = self.spine(to, self.spine_of(entry));
                PORT.set(&mut route.state, 0);
                Hop::to_switch(self.global_link(group, port), phase)
            }
            // In the intermediate group: still with the channels of the way to it.
            Some(spine) => {
                let down = |leaf| self.down(group, leaf, spine);
                let leaf = self.one(route, self.leaves, choice, &down);
                route.at = group * self.switches() + leaf;
                Hop::to_switch(down(leaf), 0)
            }
        }
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        policy.phases()
    }

    fn intermediate(
        &self,
        from: u32,
        to: u32,
        policy: Policy,
        draw: &mut dyn FnMut(u32) -> u32,
    ) -> Option<u32> {
        let ((group, leaf), (to_group, to_leaf)) = (self.group_of(from), self.group_of(to));
        if !policy.via_switch {
            return other_than(group, to_group, self.groups, draw);
        }
        let number = |group: u32, leaf: u32| group * self.leaves + leaf;
        let leaves = self.groups * self.leaves;
        let leaf = other_than(number(group, leaf), number(to_group, to_leaf), leaves, draw)?;
        Some(leaf / self.leaves * self.switches() + leaf % self.leaves)
    }

    /// Over the first cable between each two groups.
    fn lengths(&self, route: &Route, to: u32, via: u32, policy: Policy) -> (u32, u32) {
        let short = self.hops(route.at, to);
        if policy.via_switch {
            return (short, self.hops(route.at, via) + self.hops(via, to));
        }
        let ((group, _), (to_group, _)) = (self.group_of(route.at), self.group_of(to));
        let (_, entry) = self.peer(group, self.port_to(group, via, 0));
        let exit = self.port_to(via, to_group, 0);
        (short, 4 + 2 * u32::from(self.spine_of(entry) != self.spine_of(exit)))
    }

    fn switches_per_group(&self) -> Option<u32> {
        Some(self.switches())
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        let of_nodes = 2 * self.all_nodes();
        vec![
            Level::new("nodes", 0..of_nodes),
            Level::new("leaf-spine", of_nodes..self.first_global),
            Level::new("global", self.first_global..wiring.links()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::tests::build;
    use crate::topology::{LinkClass, LinkId};

    /// Nodes, switches, cables and distances by the formulas of the source.
    #[test]
    fn counts_and_distances() {
        for (p, l, s, h, groups) in [
            (2, 2, 2, 2, None),
            (4, 4, 4, 4, None),
            (3, 2, 4, 1, None),
            (2, 3, 2, 4, Some(5)),
            (1, 2, 3, 1, Some(1)),
        ] {
            let given = groups.map_or(String::new(), |groups| format!("x{groups}"));
            let network = build(&format!("dragonflyplus:{p}x{l}x{s}x{h}{given}"));
            let g = groups.unwrap_or(s * h + 1);
            assert_eq!((network.nodes(), network.switches()), (p * l * g, (l + s) * g));
            let of = |class| {
                (0..network.links()).filter(|&link| network.class(LinkId(link)) == class).count() as u32
            };
            let global = if g == 1 { 0 } else { g * s * h };
            assert_eq!((of(LinkClass::LOCAL), of(LinkClass::GLOBAL)), (2 * l * s * g, global));
            for (src, dst) in [(0, 0), (0, p), (0, p * l), (p * l, p * l * (g - 1))] {
                let hops = match (src / p == dst / p, src / (p * l) == dst / (p * l)) {
                    (true, _) => 0,
                    (false, true) => 2,
                    (false, false) => 3,
                };
                if src.max(dst) < network.nodes() {
                    assert_eq!(network.distance(src, dst), 2 + hops, "{src} to {dst}");
                }
            }
        }
    }
}
