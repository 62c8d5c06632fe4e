//! Which way messages and packets take through a topology, and over which virtual channels.
//!
//! | name | way |
//! |---|---|
//! | `minimal` | shortest, the same for each pair: dimension order in tori, meshes and HyperX (`dor`), D-mod-k in trees (`dmodk`) |
//! | `ecmp:pair`, `ecmp:message`, `ecmp:packet` | shortest; where several are, by a hash of the pair, the message or the packet |
//! | `adaptive` | shortest; where several are, the least loaded link |
//! | `valiant` | over a random intermediate switch (trees: of the highest level; dragonflies: over a random group; `valiant:router`: router) |
//! | `ugal`, `ugal:BYTES` | shortest, or Valiant's, by the load of the first links times the lengths (UGAL-L) |
//!
//! A [`Router`] finds one link after the other; what is open on a way is decided by a [`Choice`], which knows loads and random
//! bits. [`channels`] holds all ways against each other: whether they can lock up.

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

/// Which way messages take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// Shortest and deterministic.
    #[default]
    Minimal,
    /// [`Routing::Minimal`], in tori, meshes and HyperX alone.
    DimensionOrder,
    /// [`Routing::Minimal`], in trees alone.
    DModK,
    /// Shortest, by a hash of so much.
    Ecmp(Spread),
    /// Shortest, by load.
    Adaptive,
    /// Over a random intermediate switch.
    Valiant {
        /// In a dragonfly: over a random router instead of group.
        by_router: bool,
    },
    /// Shortest or over a random intermediate switch, by load at the source.
    Ugal {
        /// How much more may wait on the way round, times its length.
        threshold: Bytes,
    },
}

/// What a hash is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Source and destination: all their messages take one way.
    Pair,
    /// Each message by itself.
    Message,
    /// Each packet by itself; where there are no packets, each message.
    Packet,
}

/// A text that names no routing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown routing {0:?}; write minimal, dor, dmodk, ecmp:pair, ecmp:message, ecmp:packet, adaptive, valiant, valiant:router, ugal or ugal:BYTES"
)]
pub struct UnknownRouting(pub String);

/// A routing that a topology does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// A routing of another kind of topology.
    #[error("routing {routing} is for {needs}; use minimal, ecmp:…, adaptive, valiant or ugal")]
    OtherTopology {
        /// The routing.
        routing: Routing,
        /// The topologies that it is for.
        needs: &'static str,
    },
    /// Channels that wait for each other.
    #[error(
        "routing {routing} needs {needed} virtual channels here; with {vcs} these can wait for each other: {cycle}"
    )]
    Cycle {
        /// The routing.
        routing: Routing,
        /// Virtual channels a link.
        vcs: u32,
        /// How many are enough.
        needed: u32,
        /// The switches, with the channels of their links.
        cycle: String,
    },
    /// More classes of virtual channels than can be numbered.
    #[error("routing {routing} needs {classes} virtual channels here; at most {} are possible", MAX_CLASSES)]
    TooManyClasses {
        /// The routing.
        routing: Routing,
        /// How many.
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
    /// As it is parsed.
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

/// Finds ways through a topology.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Router<'a> {
    topology: &'a Topology,
    routing: Routing,
    seed: u64,
    /// In a network from a file: the class of virtual channels is the number of links taken.
    by_links_taken: bool,
}

impl<'a> Router<'a> {
    /// Ways through `topology`; random ones depend on `seed`.
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

    /// The topology.
    pub(crate) fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// Whether ways depend on random bits.
    pub(crate) fn is_random(&self) -> bool {
        !matches!(
            self.routing,
            Routing::Minimal | Routing::DimensionOrder | Routing::DModK | Routing::Ecmp(Spread::Pair)
        )
    }

    /// What the way round may be more loaded by.
    pub(crate) fn threshold(&self) -> Bytes {
        match self.routing {
            Routing::Ugal { threshold } => threshold,
            _ => Bytes::ZERO,
        }
    }

    /// How ways that are equally short are chosen among.
    pub(crate) fn pick(&self) -> Pick {
        match self.routing {
            Routing::Ecmp(_) => Pick::Hashed,
            Routing::Adaptive => Pick::LeastLoaded,
            _ => Pick::Fixed,
        }
    }

    /// Whether ways depend on how loaded links are.
    pub(crate) fn asks_for_load(&self) -> bool {
        matches!(self.routing, Routing::Adaptive | Routing::Ugal { .. })
    }

    /// Whether each packet of a message takes a way of its own.
    pub(crate) fn by_packet(&self) -> bool {
        matches!(
            self.routing,
            Routing::Ecmp(Spread::Packet)
                | Routing::Adaptive
                | Routing::Valiant { .. }
                | Routing::Ugal { .. }
        )
    }

    /// The random bits of the `number`-th message (or packet) from `src` to `dst`.
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

    /// A way at its first switch, behind the injection link.
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

    /// The next link of the way; the last one leads to the destination.
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

    /// Decides at the first switch whether the way leads over another, and which.
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

    /// A random switch (group) that is not that of the source or destination; none where these are at one switch.
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

    /// Links between switches the short way, and over `via`.
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

    /// How many classes of virtual channels keep the ways from locking up, on links of `class`.
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
