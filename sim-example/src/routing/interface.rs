//! What a routing says of itself.

use std::fmt;
use std::path::Path;

use vef_format::units::Bytes;

use crate::random::{below, combine};
use crate::topology::{Adaptivity, LinkId, Route, Topology};

/// Chooses among shortest routes, and between them and routes over an intermediate switch.
pub trait Routing: fmt::Debug + Send + Sync {
    /// Its text form.
    fn name(&self) -> String;

    /// On what the choice among shortest routes depends.
    fn adaptivity(&self) -> Adaptivity {
        Adaptivity::Deterministic
    }

    /// What gets random bits of its own; `None` if routes depend on source and destination alone.
    fn spread(&self) -> Option<Spread> {
        None
    }

    /// Whether routes depend on the load of links.
    fn asks_for_load(&self) -> bool {
        self.adaptivity() == Adaptivity::Adaptive || self.detours() == Detours::ByLoad
    }

    /// One of several shortest ways, unless routes are deterministic.
    fn among(&self, ways: &Ways<'_>) -> u32 {
        ways.draw()
    }

    /// Whether routes lead over an intermediate switch.
    fn detours(&self) -> Detours {
        Detours::Never
    }

    /// Whether intermediates are always switches, though the topology has groups.
    fn via_switch(&self) -> bool {
        false
    }

    /// With [`Detours::ByLoad`]: that a shortest route is decided again at each further switch of its source's group
    /// ([`Topology::can_decide_again`]).
    fn decides_again(&self) -> bool {
        false
    }

    /// With [`Detours::ByLoad`], whether the load of all links of both routes decides, not that of their first links.
    fn looks_at_whole_routes(&self) -> bool {
        false
    }

    /// At the first switch, with [`Detours::ByLoad`]: whether this route takes its detour.
    fn takes(&self, _: &Alternatives<'_>) -> bool {
        true
    }

    /// Whether it compares loads with a number of bytes: not with models whose load is of something else.
    fn counts_bytes(&self) -> bool {
        false
    }

    /// The file of tables by which routes are, instead of the topology's own.
    fn tables(&self) -> Option<&Path> {
        None
    }

    /// The topologies for which it is, if this is none of them.
    fn is_only_for(&self, _: &dyn Topology) -> Option<&'static str> {
        None
    }
}

/// What gets random bits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Source and destination: all their messages take the same route.
    Pair,
    /// Each message.
    Message,
    /// Each packet; in models without packets, each message.
    Packet,
}

/// Whether routes lead over an intermediate switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detours {
    /// All are shortest.
    Never,
    /// All do.
    Always,
    /// [`Routing::takes`] decides it at the first switch.
    ByLoad,
}

/// The load of links.
pub trait Load {
    /// Load that waits for `link` or is in the buffer behind it, in a unit of the model.
    fn load(&self, link: LinkId) -> u64;

    /// Bytes as load.
    fn of_bytes(&self, bytes: Bytes) -> u64;
}

/// The shortest ways on from a switch, numbered from 0.
pub struct Ways<'a> {
    pub(super) route: &'a Route,
    pub(super) count: u32,
    pub(super) load: &'a dyn Fn(u32) -> u64,
}

impl Ways<'_> {
    /// Their number, at least 2.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The load of the first link of a way.
    pub fn load(&self, way: u32) -> u64 {
        (self.load)(way)
    }

    /// A way at random: by the random bits of the route and by the switch.
    pub fn draw(&self) -> u32 {
        draw(self.route, self.count, self.route.at)
    }
}

/// A number below `n` by the random bits of a route; `salt` distinguishes draws of one route.
#[inline]
pub(super) fn draw(route: &Route, n: u32, salt: u32) -> u32 {
    below((combine(route.key.into(), salt.into()) >> 32) as u32, n)
}

/// The shortest way to the destination, and the one over an intermediate switch: what their load costs.
pub struct Alternatives<'a> {
    pub(super) short: u64,
    pub(super) detour: u64,
    pub(super) load: &'a dyn Load,
}

impl Alternatives<'_> {
    /// Whether the load of the shortest way exceeds that of the detour by more than `threshold`: the load of the first link times the
    /// length, or the sum over all links ([`Routing::looks_at_whole_routes`]).
    pub fn detour_costs_less(&self, threshold: Bytes) -> bool {
        self.short > self.detour.saturating_add(self.load.of_bytes(threshold))
    }
}
