//! The position of a message or packet on its route, and the choices along it.

use crate::random::{below, combine};
use crate::topology::LinkId;

/// A message or packet on its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Walk {
    /// The destination node.
    pub(crate) dst: u32,
    /// The current switch, or the one at the end of the current link.
    pub(crate) at: u32,
    /// The intermediate switch (in a dragonfly, group), [`NONE`] or [`UNDECIDED`].
    pub(crate) via: u32,
    /// Its random bits.
    pub(crate) key: u32,
    /// State of the topology's routing.
    pub(crate) state: State,
}

/// No intermediate switch.
pub(crate) const NONE: u32 = u32::MAX;
/// Decided at the first switch.
pub(crate) const UNDECIDED: u32 = u32::MAX - 1;

/// Small numbers in 64 bits; each topology's routing defines its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State(pub(crate) u64);

/// `BITS` bits of a [`State`], from bit `SHIFT`.
pub(crate) struct Field<const SHIFT: u32, const BITS: u32>;

impl<const SHIFT: u32, const BITS: u32> Field<SHIFT, BITS> {
    const MASK: u64 = (1 << BITS) - 1;

    #[inline(always)]
    pub(crate) const fn get(self, state: State) -> u32 {
        (state.0 >> SHIFT & Self::MASK) as u32
    }

    #[inline(always)]
    pub(crate) const fn set(self, state: &mut State, value: u32) {
        debug_assert!(value as u64 <= Self::MASK);
        state.0 = state.0 & !(Self::MASK << SHIFT) | (value as u64) << SHIFT;
    }
}

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) link: LinkId,
    /// Its class of virtual channels.
    pub(crate) class: u8,
    /// Whether the link leads to the destination.
    pub(crate) last: bool,
}

impl Hop {
    /// A step to a switch.
    #[inline(always)]
    pub(crate) const fn to_switch(link: LinkId, class: u32) -> Self {
        Self { link, class: class as u8, last: false }
    }

    /// The last step, to the destination.
    #[inline(always)]
    pub(crate) const fn to_node(node: u32) -> Self {
        Self { link: LinkId::ejection(node), class: 0, last: true }
    }
}

/// Chooses where several links are possible.
pub(crate) trait Choice {
    /// One of `n` ≥ 2 shortest routes; `link` returns the first link of each, `fixed` is the choice of
    /// deterministic routing.
    fn among(&mut self, walk: &Walk, n: u32, fixed: u32, link: impl Fn(u32) -> LinkId) -> u32;

    /// One of `n` options at random; `salt` distinguishes draws of one walk.
    fn draw(&mut self, walk: &Walk, n: u32, salt: u32) -> u32;

    /// Whether to take the detour, given first link and length of the shortest route and of the detour.
    fn detours(&mut self, short: (LinkId, u32), round: (LinkId, u32)) -> bool;
}

/// The load of links.
pub(crate) trait Load {
    /// Load that waits for `link` or is in the buffer behind it, in a unit of the model.
    fn load(&self, link: LinkId) -> u64;
}

/// How to choose among shortest routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pick {
    /// By destination.
    #[default]
    Fixed,
    /// By the random bits of the walk.
    Hashed,
    /// The least loaded first link.
    LeastLoaded,
}

/// The choices of a simulation.
pub(crate) struct Decide<'a, L> {
    pub(crate) pick: Pick,
    /// Load by which a detour may exceed the shortest route, in the unit of [`Load::load`].
    pub(crate) threshold: u64,
    pub(crate) load: &'a L,
}

impl<L: Load> Choice for Decide<'_, L> {
    #[inline]
    fn among(&mut self, walk: &Walk, n: u32, fixed: u32, link: impl Fn(u32) -> LinkId) -> u32 {
        match self.pick {
            Pick::Fixed => fixed,
            Pick::Hashed => self.draw(walk, n, walk.at),
            Pick::LeastLoaded => {
                // Ties are broken at random: start at a random option, and keep the first minimum.
                let mut best = self.draw(walk, n, walk.at);
                let mut least = self.load.load(link(best));
                let mut way = best;
                for _ in 1..n {
                    if least == 0 {
                        break;
                    }
                    way = if way + 1 == n { 0 } else { way + 1 };
                    let load = self.load.load(link(way));
                    if load < least {
                        (best, least) = (way, load);
                    }
                }
                best
            }
        }
    }

    #[inline]
    fn draw(&mut self, walk: &Walk, n: u32, salt: u32) -> u32 {
        below((combine(walk.key.into(), salt.into()) >> 32) as u32, n)
    }

    #[inline]
    fn detours(&mut self, short: (LinkId, u32), round: (LinkId, u32)) -> bool {
        let cost = |(link, hops): (LinkId, u32)| self.load.load(link).saturating_mul(hops.into());
        cost(short) > cost(round).saturating_add(self.threshold)
    }
}
