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
//! Sources: J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008;
//! C. Camarero, E. Vallejo, R. Beivide, "Topological characterization of Hamming and dragonfly networks", TACO 2014.

use super::TopologyProblem;
use super::graph::{Graph, LinkClass, LinkId, checked_links, product};
use crate::division::Divisor;

/// The arrangement of the global cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Arrangement {
    /// Consecutive ports lead to the preceding groups.
    #[default]
    Palmtree,
    /// Port k leads to group k; the own group is skipped.
    Absolute,
    /// Consecutive ports lead to the following groups.
    Relative,
}

impl Arrangement {
    /// All arrangements, with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("palmtree", Self::Palmtree), ("absolute", Self::Absolute), ("relative", Self::Relative)];

    /// Its name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            Self::Palmtree => "palmtree",
            Self::Absolute => "absolute",
            Self::Relative => "relative",
        }
    }
}

/// A dragonfly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    nodes: u32,
    links: u32,
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
    pub(super) fn new(
        nodes: u32,
        routers: u32,
        global: u32,
        groups: Option<u32>,
        arrangement: Arrangement,
    ) -> Result<Self, TopologyProblem> {
        if [nodes, routers, global].contains(&0) || groups == Some(0) {
            return Err(TopologyProblem::Zero);
        }
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
        let links = checked_links(u64::from(first_global) + u64::from(groups) * u64::from(ports))?;
        Ok(Self {
            nodes: all_nodes,
            links,
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

    /// The links.
    pub(super) fn graph(&self) -> Graph {
        let routers = self.groups * self.routers();
        let mut graph = Graph::new(self.nodes, routers, self.links, |node| self.switch_of(node));
        for router in 0..routers {
            let (group, own) = self.per_group.divide(router);
            for to in (0..self.routers()).filter(|&to| to != own) {
                graph.link(router, group * self.routers() + to, LinkClass::LOCAL);
            }
        }
        for group in 0..self.groups {
            for port in 0..self.ports {
                let (to, to_port) = self.peer(group, port);
                graph.link(
                    self.router_of_port(group, port),
                    self.router_of_port(to, to_port),
                    LinkClass::GLOBAL,
                );
            }
        }
        graph
    }

    /// Number of groups.
    pub(crate) fn groups(&self) -> u32 {
        self.groups
    }

    /// Routers of a group.
    pub(crate) fn routers(&self) -> u32 {
        self.per_group.get()
    }

    /// The router of `node`.
    #[inline(always)]
    pub(crate) fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }

    /// The group of `router`, and its number in the group.
    #[inline(always)]
    pub(crate) fn place(&self, router: u32) -> (u32, u32) {
        self.per_group.divide(router)
    }

    /// The router with `port` of `group`.
    #[inline(always)]
    pub(crate) fn router_of_port(&self, group: u32, port: u32) -> u32 {
        group * self.per_group.get() + self.per_router_global.quotient(port)
    }

    /// Cables between each two groups.
    #[inline(always)]
    pub(crate) fn cables_between(&self) -> u32 {
        self.other_groups.quotient(self.ports)
    }

    /// The port of `group` with the `n`-th cable to another group `to`.
    #[inline(always)]
    pub(crate) fn port_to(&self, group: u32, to: u32, n: u32) -> u32 {
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
    pub(crate) fn peer(&self, group: u32, port: u32) -> (u32, u32) {
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
    pub(crate) fn local_link(&self, router: u32, own: u32, to: u32) -> LinkId {
        let first = 2 * self.nodes + router * (self.per_group.get() - 1);
        LinkId(first + to - u32::from(to > own))
    }

    /// The link out of `port` of `group`.
    #[inline(always)]
    pub(crate) fn global_link(&self, group: u32, port: u32) -> LinkId {
        LinkId(self.first_global + group * self.ports + port)
    }

    /// Links between two routers over the `n`-th cable between their groups.
    pub(crate) fn hops_by(&self, from: u32, to: u32, n: u32) -> u32 {
        let ((group, _), (to_group, _)) = (self.place(from), self.place(to));
        if group == to_group {
            return u32::from(from != to);
        }
        let port = self.port_to(group, to_group, n);
        let (_, arrival) = self.peer(group, port);
        let (exit, entry) = (self.router_of_port(group, port), self.router_of_port(to_group, arrival));
        1 + u32::from(exit != from) + u32::from(entry != to)
    }

    /// Links on a shortest route between two routers.
    pub(crate) fn hops(&self, from: u32, to: u32) -> u32 {
        (0..self.cables_between().max(1)).map(|n| self.hops_by(from, to, n)).min().unwrap_or(0)
    }

    /// Group and number: `g3.r1`.
    pub(super) fn switch_name(&self, router: u32) -> String {
        let (group, index) = self.place(router);
        format!("g{group}.r{index}")
    }
}
