//! Routes through a network, link by link.

use super::interface::{Alternatives, Detours, Load, Routing, Spread, Ways, draw};
use crate::random::combine;
use crate::topology::{Adaptivity, Choice, Fabric, Hop, LinkClass, LinkId, Outages, Policy, Route};
use vef_format::units::Picos;

/// A routing that is invalid for a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The routing is for other topologies.
    #[error("routing {routing} is for {needs}; use minimal, ecmp:…, adaptive, valiant or ugal")]
    OtherTopology {
        /// The routing.
        routing: String,
        /// The topologies it is for.
        needs: &'static str,
    },
    /// Virtual channels can deadlock.
    #[error("routing {routing} needs {needed} virtual channels here; {vcs} can deadlock: {cycle}")]
    Cycle {
        /// The routing.
        routing: String,
        /// Virtual channels per link.
        vcs: u32,
        /// Virtual channels that suffice.
        needed: u32,
        /// The switches of the cycle, with the channels of their links.
        cycle: String,
    },
    /// Classes by hops, on a topology that has others.
    #[error(
        "routing {routing} has classes of virtual channels of its own here; --channel-classes hops is for tori, meshes and graphs"
    )]
    NoHops {
        /// The routing.
        routing: String,
    },
    /// The routing needs more classes of virtual channels than can be numbered.
    #[error("routing {routing} needs {classes} virtual channels here; at most {} are possible", MAX_CLASSES)]
    TooManyClasses {
        /// The routing.
        routing: String,
        /// Classes needed.
        classes: u32,
    },
}

/// Most classes of virtual channels.
pub(super) const MAX_CLASSES: u32 = 128;

/// Finds routes through a network.
#[derive(Clone, Copy, Debug)]
pub struct Router<'a> {
    fabric: &'a Fabric,
    routing: &'a dyn Routing,
    policy: Policy,
    spread: Option<Spread>,
    asks_for_load: bool,
    seed: u64,
}

impl<'a> Router<'a> {
    /// What random choices depend on.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Routes through `fabric`; random choices depend on `seed`.
    ///
    /// # Errors
    /// The routing is for other topologies.
    pub fn new(fabric: &'a Fabric, routing: &'a dyn Routing, seed: u64) -> Result<Self, RoutingError> {
        if let Some(needs) = routing.is_only_for(fabric.topology()) {
            return Err(RoutingError::OtherTopology { routing: routing.name(), needs });
        }
        let policy = Policy {
            adaptivity: routing.adaptivity(),
            detours: routing.detours() != Detours::Never,
            via_switch: routing.via_switch(),
            decides_again: routing.decides_again(),
            classes_by_hops: false,
        };
        let (spread, asks_for_load) = (routing.spread(), routing.asks_for_load());
        Ok(Self { fabric, routing, policy, spread, asks_for_load, seed })
    }

    /// The network.
    pub fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    pub(crate) fn routing(&self) -> &'a dyn Routing {
        self.routing
    }

    pub(super) fn is_deterministic(&self) -> bool {
        self.policy.adaptivity == Adaptivity::Deterministic
    }

    /// Whether the routes of a node's messages differ.
    pub fn is_random(&self) -> bool {
        matches!(self.spread, Some(Spread::Message | Spread::Packet))
    }

    /// Whether routes depend on the load of links.
    pub fn asks_for_load(&self) -> bool {
        self.asks_for_load
    }

    /// Whether each packet of a message gets its own route.
    pub fn by_packet(&self) -> bool {
        self.spread == Some(Spread::Packet)
    }

    /// Random bits of message (or packet) `number` from `src` to `dst`.
    #[inline]
    pub fn key(&self, src: u32, dst: u32, number: u64) -> u32 {
        let pair = u64::from(src) << 32 | u64::from(dst);
        let of = match self.spread {
            None => return 0,
            Some(Spread::Pair) => pair,
            Some(Spread::Message | Spread::Packet) => combine(pair, number),
        };
        (combine(self.seed, of) >> 32) as u32
    }

    /// A route at its first switch, behind the injection link.
    #[inline]
    pub fn start(&self, src: u32, dst: u32, key: u32) -> Route {
        let via = if self.policy.detours { Route::UNDECIDED } else { Route::NO_DETOUR };
        let mut route = Route { dst, at: self.fabric.switch_of(src), via, key, state: 0 };
        self.fabric.topology().start(src, &mut route);
        route
    }

    /// The next link of the route; the last one leads to the destination.
    #[inline]
    pub fn next(&self, route: &mut Route, load: &impl Load) -> Hop {
        self.next_by(route, &mut Decide { router: self, load })
    }

    /// The next link of the route at `now`, in a network whose links fail at times; `None` if no route is left, or the node's link has failed.
    #[inline(never)]
    pub(crate) fn next_at(
        &self,
        outages: &Outages,
        route: &mut Route,
        now: Picos,
        load: &impl Load,
    ) -> Option<Hop> {
        let mut next = *route;
        outages.enter(&mut next, now);
        if !self.fabric.topology().reaches(&next) {
            return None;
        }
        let hop = self.next(&mut next, load);
        if outages.is_down(hop.link, now) {
            return None;
        }
        *route = next;
        Some(hop)
    }

    /// As [`Router::next`], with another's choices.
    #[inline]
    pub(super) fn next_by(&self, route: &mut Route, decisions: &mut impl Decisions) -> Hop {
        if route.via != Route::UNDECIDED {
            return self.step(route, decisions);
        }
        let from = route.at;
        self.decide(route, decisions);
        let hop = self.step(route, decisions);
        if self.policy.decides_again && route.via == Route::NO_DETOUR && self.are_of_one_group(from, route.at)
        {
            route.via = Route::UNDECIDED;
        }
        hop
    }

    fn are_of_one_group(&self, one: u32, other: u32) -> bool {
        let per_group = self.fabric.topology().switches_per_group();
        per_group.is_some_and(|switches| one / switches == other / switches)
    }

    #[inline]
    fn step(&self, route: &mut Route, choice: &mut dyn Choice) -> Hop {
        self.fabric.topology().next(route, self.policy, choice)
    }

    /// Decides whether the route has an intermediate switch, and which: at the first switch, and with [`Routing::decides_again`] at others of
    /// its group.
    #[inline(never)]
    fn decide(&self, route: &mut Route, decisions: &mut impl Decisions) {
        // Each decision draws another one.
        const SALT: u32 = u32::MAX;
        let salt = if self.policy.decides_again { SALT - route.at } else { SALT };
        route.via = Route::NO_DETOUR;
        let (topology, to) = (self.fabric.topology(), self.fabric.switch_of(route.dst));
        if route.at == to {
            return;
        }
        let mut drawn = |n| decisions.draw(route, n, salt);
        let Some(via) = topology.intermediate(route.at, to, self.policy, &mut drawn) else { return };
        let takes_detour = self.routing.detours() != Detours::ByLoad || {
            let (short, detour) = topology.lengths(route, to, via, self.policy);
            let (by_short, mut by_detour) = (*route, *route);
            topology.detour(&mut by_detour, via);
            let (short, detour) = match self.routing.looks_at_whole_routes() {
                true => (self.load_of(by_short, decisions), self.load_of(by_detour, decisions)),
                false => {
                    let mut first = |mut route, hops: u32| {
                        let link = self.step(&mut route, decisions).link;
                        decisions.load(link).map_or(0, |load| load.saturating_mul(hops.into()))
                    };
                    (first(by_short, short), first(by_detour, detour))
                }
            };
            decisions.takes_detour(short, detour)
        };
        if takes_detour {
            topology.detour(route, via);
        }
    }

    /// The load of all links of a route.
    fn load_of(&self, mut route: Route, decisions: &mut impl Decisions) -> u64 {
        let mut sum = 0u64;
        loop {
            let hop = self.step(&mut route, decisions);
            match decisions.load(hop.link).filter(|_| !hop.last) {
                Some(load) => sum = sum.saturating_add(load),
                None => return sum,
            }
        }
    }

    /// Classes of virtual channels, on links of `class`, with which no deadlock is possible.
    pub fn classes(&self, class: LinkClass) -> u32 {
        self.fabric.topology().channel_classes(self.policy, class)
    }

    /// The same, but with or without the number of links taken as the class, and with or without detours.
    pub(super) fn with_policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }
}

/// The choices along a route, and the one between the shortest way and the detour.
pub(super) trait Decisions: Choice {
    /// The load of a link, if it matters.
    fn load(&self, link: LinkId) -> Option<u64>;

    /// Whether to take the detour, given the cost of the shortest way and of the detour.
    fn takes_detour(&mut self, short: u64, detour: u64) -> bool;
}

/// The choices of a simulation.
struct Decide<'a, L> {
    router: &'a Router<'a>,
    load: &'a L,
}

impl<L: Load> Choice for Decide<'_, L> {
    #[inline]
    fn among(&mut self, route: &Route, n: u32, fixed: u32, link: &dyn Fn(u32) -> LinkId) -> u32 {
        match self.router.policy.adaptivity {
            Adaptivity::Deterministic => fixed,
            Adaptivity::Oblivious | Adaptivity::Adaptive => {
                let load = |way| self.load.load(link(way));
                self.router.routing.among(&Ways { route, count: n, load: &load })
            }
        }
    }

    #[inline]
    fn draw(&mut self, route: &Route, n: u32, salt: u32) -> u32 {
        draw(route, n, salt)
    }
}

impl<L: Load> Decisions for Decide<'_, L> {
    #[inline]
    fn load(&self, link: LinkId) -> Option<u64> {
        Some(self.load.load(link))
    }

    fn takes_detour(&mut self, short: u64, detour: u64) -> bool {
        self.router.routing.takes(&Alternatives { short, detour, load: self.load })
    }
}
