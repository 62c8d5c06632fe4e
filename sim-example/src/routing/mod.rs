//! Routing: the links and virtual channels of each message or packet.
//!
//! | name | route |
//! |---|---|
//! | `minimal` | shortest, the same for each pair: dimension order in tori, meshes and HyperX (`dor`), D-mod-k in trees (`dmodk`) |
//! | `ecmp:pair`, `ecmp:message`, `ecmp:packet` | one of the shortest, by a hash of the pair, the message or the packet |
//! | `adaptive` | one of the shortest, over the least loaded link |
//! | `valiant` | over a random intermediate switch (in trees, of the highest level; in dragonflies, a random group, or with `valiant:router` a router) |
//! | `ugal`, `ugal:BYTES` | shortest or Valiant, by the load of the first link times the length of the route (UGAL-L) |
//!
//! A [`Router`] returns one link after the other. A [`Choice`], which knows loads and random bits, decides
//! where several links are possible. [`channels`] checks that routes cannot deadlock.

pub(crate) mod channels;
mod dragonfly;
mod given;
mod hyperx;
mod torus;
mod tree;
mod walk;

use std::fmt;
use std::str::FromStr;

use vef_format::units::Bytes;

use crate::quantity::parse_bytes;
use crate::random::combine;
use crate::topology::{LinkClass, Shape, Topology};

pub(crate) use walk::{Choice, Decide, Hop, Load, Pick, Walk};
use walk::{NONE, UNDECIDED};

/// The route of a message or packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// Shortest and deterministic.
    #[default]
    Minimal,
    /// [`Routing::Minimal`]; only in tori, meshes and HyperX.
    DimensionOrder,
    /// [`Routing::Minimal`]; only in trees.
    DModK,
    /// One of the shortest, by a hash.
    Ecmp(Spread),
    /// One of the shortest, by load.
    Adaptive,
    /// Over a random intermediate switch.
    Valiant {
        /// In a dragonfly: a random router instead of a random group.
        by_router: bool,
    },
    /// Shortest or over a random intermediate switch, by load at the source.
    Ugal {
        /// Load times length by which the detour may exceed the shortest route.
        threshold: Bytes,
    },
}

/// The input of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Source and destination: all their messages take the same route.
    Pair,
    /// Each message.
    Message,
    /// Each packet; in models without packets, each message.
    Packet,
}

/// An unknown routing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown routing {0:?}; write minimal, dor, dmodk, ecmp:pair, ecmp:message, ecmp:packet, adaptive, valiant, valiant:router, ugal or ugal:BYTES"
)]
pub struct UnknownRouting(pub String);

/// A routing that is invalid for a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The routing is for other topologies.
    #[error("routing {routing} is for {needs}; use minimal, ecmp:…, adaptive, valiant or ugal")]
    OtherTopology {
        /// The routing.
        routing: Routing,
        /// The topologies it is for.
        needs: &'static str,
    },
    /// Virtual channels can deadlock.
    #[error("routing {routing} needs {needed} virtual channels here; {vcs} can deadlock: {cycle}")]
    Cycle {
        /// The routing.
        routing: Routing,
        /// Virtual channels per link.
        vcs: u32,
        /// Virtual channels that suffice.
        needed: u32,
        /// The switches of the cycle, with the channels of their links.
        cycle: String,
    },
    /// The routing needs more classes of virtual channels than can be numbered.
    #[error("routing {routing} needs {classes} virtual channels here; at most {} are possible", MAX_CLASSES)]
    TooManyClasses {
        /// The routing.
        routing: Routing,
        /// Classes needed.
        classes: u32,
    },
}

/// Most classes of virtual channels.
pub(crate) const MAX_CLASSES: u32 = 128;

impl FromStr for Routing {
    type Err = UnknownRouting;

    fn from_str(text: &str) -> Result<Self, UnknownRouting> {
        let unknown = || UnknownRouting(text.to_owned());
        Ok(match text.split_once(':') {
            None => match text {
                "minimal" => Self::Minimal,
                "dor" => Self::DimensionOrder,
                "dmodk" => Self::DModK,
                "ecmp" => Self::Ecmp(Spread::Pair),
                "adaptive" => Self::Adaptive,
                "valiant" => Self::Valiant { by_router: false },
                "ugal" => Self::Ugal { threshold: Bytes::ZERO },
                _ => return Err(unknown()),
            },
            Some(("ecmp", "pair")) => Self::Ecmp(Spread::Pair),
            Some(("ecmp", "message")) => Self::Ecmp(Spread::Message),
            Some(("ecmp", "packet")) => Self::Ecmp(Spread::Packet),
            Some(("valiant", "router")) => Self::Valiant { by_router: true },
            Some(("ugal", threshold)) => {
                Self::Ugal { threshold: parse_bytes(threshold).map_err(|_| unknown())? }
            }
            Some(_) => return Err(unknown()),
        })
    }
}

impl fmt::Display for Routing {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minimal => "minimal",
            Self::DimensionOrder => "dor",
            Self::DModK => "dmodk",
            Self::Ecmp(Spread::Pair) => "ecmp:pair",
            Self::Ecmp(Spread::Message) => "ecmp:message",
            Self::Ecmp(Spread::Packet) => "ecmp:packet",
            Self::Adaptive => "adaptive",
            Self::Valiant { by_router: false } => "valiant",
            Self::Valiant { by_router: true } => "valiant:router",
            Self::Ugal { threshold: Bytes::ZERO } => "ugal",
            Self::Ugal { threshold } => return write!(f, "ugal:{}", threshold.0),
        })
    }
}

/// Finds routes through a topology.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Router<'a> {
    topology: &'a Topology,
    routing: Routing,
    seed: u64,
    /// Networks from files: whether the class of virtual channels is the number of links taken.
    by_links_taken: bool,
}

impl<'a> Router<'a> {
    /// Routes through `topology`; random choices depend on `seed`.
    pub(crate) fn new(topology: &'a Topology, routing: Routing, seed: u64) -> Result<Self, RoutingError> {
        let needs = match (routing, topology.shape()) {
            (Routing::DimensionOrder, Shape::Torus(_) | Shape::HyperX(_))
            | (Routing::DModK, Shape::Tree(_)) => None,
            (Routing::DimensionOrder, _) => Some("tori, meshes and HyperX"),
            (Routing::DModK, _) => Some("trees"),
            (Routing::Valiant { by_router: true }, shape) if !matches!(shape, Shape::Dragonfly(_)) => {
                Some("dragonflies")
            }
            _ => None,
        };
        if let Some(needs) = needs {
            return Err(RoutingError::OtherTopology { routing, needs });
        }
        Ok(Self { topology, routing, seed, by_links_taken: false })
    }

    pub(crate) fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// Whether routes depend on random bits.
    pub(crate) fn is_random(&self) -> bool {
        !matches!(
            self.routing,
            Routing::Minimal | Routing::DimensionOrder | Routing::DModK | Routing::Ecmp(Spread::Pair)
        )
    }

    /// Load by which a detour may exceed the shortest route.
    pub(crate) fn threshold(&self) -> Bytes {
        match self.routing {
            Routing::Ugal { threshold } => threshold,
            _ => Bytes::ZERO,
        }
    }

    /// How to choose among shortest routes.
    pub(crate) fn pick(&self) -> Pick {
        match self.routing {
            Routing::Ecmp(_) => Pick::Hashed,
            Routing::Adaptive => Pick::LeastLoaded,
            _ => Pick::Fixed,
        }
    }

    /// Whether routes depend on the load of links.
    pub(crate) fn asks_for_load(&self) -> bool {
        matches!(self.routing, Routing::Adaptive | Routing::Ugal { .. })
    }

    /// Whether each packet of a message gets its own route.
    pub(crate) fn by_packet(&self) -> bool {
        matches!(
            self.routing,
            Routing::Ecmp(Spread::Packet)
                | Routing::Adaptive
                | Routing::Valiant { .. }
                | Routing::Ugal { .. }
        )
    }

    /// Random bits of message (or packet) `number` from `src` to `dst`.
    #[inline]
    pub(crate) fn key(&self, src: u32, dst: u32, number: u64) -> u32 {
        let pair = u64::from(src) << 32 | u64::from(dst);
        let of = match self.routing {
            Routing::Minimal | Routing::DimensionOrder | Routing::DModK => return 0,
            Routing::Ecmp(Spread::Pair) => pair,
            _ => combine(pair, number),
        };
        (combine(self.seed, of) >> 32) as u32
    }

    /// A route at its first switch, behind the injection link.
    #[inline]
    pub(crate) fn start(&self, src: u32, dst: u32, key: u32) -> Walk {
        let via = match self.routing {
            Routing::Valiant { .. } | Routing::Ugal { .. } => UNDECIDED,
            _ => NONE,
        };
        let mut walk =
            Walk { dst, at: self.topology.switch_of(src), via, key, state: walk::State::default() };
        if let Shape::Given(given) = self.topology.shape()
            && let Some((first, links)) = given.given_route(src, dst)
        {
            walk.via = NONE;
            given::GIVEN.set(&mut walk.state, first + 1);
            given::LEFT.set(&mut walk.state, links);
        }
        walk
    }

    /// The next link of the route; the last one leads to the destination.
    #[inline]
    pub(crate) fn next(&self, walk: &mut Walk, choice: &mut impl Choice) -> Hop {
        if walk.via == UNDECIDED {
            self.decide(walk, choice);
        }
        self.step(walk, choice)
    }

    #[inline]
    fn step(&self, walk: &mut Walk, choice: &mut impl Choice) -> Hop {
        match self.topology.shape() {
            Shape::Tree(tree) => tree::next(tree, walk, choice),
            Shape::Torus(torus) if self.routing == Routing::Adaptive => {
                torus::next_adaptive(torus, walk, choice)
            }
            Shape::Torus(torus) => torus::next(torus, walk, choice),
            Shape::HyperX(hyperx) => match self.routing {
                Routing::Adaptive | Routing::Ecmp(_) => hyperx::next_in_any_order(hyperx, walk, choice),
                _ => hyperx::next(hyperx, walk),
            },
            Shape::Dragonfly(dragonfly) => dragonfly::next(dragonfly, walk, self.by_router(), choice),
            Shape::Given(given) => given::next(given, walk, self.by_links_taken, choice),
        }
    }

    fn by_router(&self) -> bool {
        self.routing == Routing::Valiant { by_router: true }
    }

    /// Decides at the first switch whether the route has an intermediate switch, and which.
    #[inline(never)]
    fn decide(&self, walk: &mut Walk, choice: &mut impl Choice) {
        walk.via = NONE;
        let Some(via) = self.intermediate(walk, choice) else { return };
        if matches!(self.routing, Routing::Valiant { .. }) {
            walk.via = via;
            return;
        }
        let (short, round) = self.lengths(walk, via);
        if short == 0 {
            return;
        }
        let (mut by_short, mut by_round) = (*walk, Walk { via, ..*walk });
        let short = (self.step(&mut by_short, choice).link, short);
        let round = (self.step(&mut by_round, choice).link, round);
        if choice.detours(short, round) {
            walk.via = via;
        }
    }

    /// A random switch (in a dragonfly, group) other than those of source and destination; `None` if these
    /// are the same.
    fn intermediate(&self, walk: &Walk, choice: &mut impl Choice) -> Option<u32> {
        const SALT: u32 = u32::MAX;
        let here = walk.at;
        let there = self.topology.switch_of(walk.dst);
        if here == there {
            return None;
        }
        let (all, here, there) = match self.topology.shape() {
            Shape::Tree(tree) => return (tree.levels().len() > 1).then_some(tree::TOP),
            Shape::Dragonfly(dragonfly) if !self.by_router() => {
                (dragonfly.groups(), dragonfly.place(here).0, dragonfly.place(there).0)
            }
            _ => (self.topology.switches(), here, there),
        };
        let (low, high) = (here.min(there), here.max(there));
        let others = all - 1 - u32::from(low != high);
        if others == 0 {
            return None;
        }
        let drawn = choice.draw(walk, others, SALT);
        let behind_low = drawn + u32::from(drawn >= low);
        Some(behind_low + u32::from(low != high && behind_low >= high))
    }

    /// Links between switches on the shortest route, and on the route over `via`.
    fn lengths(&self, walk: &Walk, via: u32) -> (u32, u32) {
        let to = self.topology.switch_of(walk.dst);
        match self.topology.shape() {
            Shape::Tree(tree) => tree::lengths(tree, walk),
            Shape::Torus(torus) => (torus.hops(walk.at, to), torus.hops(walk.at, via) + torus.hops(via, to)),
            Shape::HyperX(hyperx) => {
                (hyperx.hops(walk.at, to), hyperx.hops(walk.at, via) + hyperx.hops(via, to))
            }
            Shape::Dragonfly(dragonfly) => {
                (dragonfly.hops(walk.at, to), dragonfly::length_by_group(dragonfly, walk, via))
            }
            Shape::Given(given) => {
                let hops = |from, to| given.hops(from, to).map_or(0, u32::from);
                (hops(walk.at, to), hops(walk.at, via) + hops(via, to))
            }
        }
    }

    /// Classes of virtual channels, on links of `class`, with which no deadlock is possible.
    pub(crate) fn classes(&self, class: LinkClass) -> u32 {
        let phases = match self.routing {
            Routing::Valiant { .. } | Routing::Ugal { .. } => 2,
            _ => 1,
        };
        match self.topology.shape() {
            Shape::Tree(_) => 1,
            Shape::Torus(torus) if self.routing == Routing::Adaptive => torus::adaptive_classes(torus),
            Shape::Torus(torus) => phases * if torus.wraps() { 2 } else { 1 },
            Shape::HyperX(hyperx) => match self.routing {
                Routing::Adaptive | Routing::Ecmp(_) => hyperx.dimensions().len() as u32,
                _ => phases,
            },
            Shape::Dragonfly(_) => match (class == LinkClass::GLOBAL, phases) {
                (true, phases) => phases,
                (false, 1) => 2,
                (false, _) => {
                    if self.by_router() {
                        4
                    } else {
                        3
                    }
                }
            },
            Shape::Given(given) if self.by_links_taken => phases * given.diameter().max(1),
            Shape::Given(_) => phases,
        }
    }
}

#[cfg(test)]
mod tests;
