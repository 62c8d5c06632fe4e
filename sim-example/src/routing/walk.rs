//! How far on its way a message or packet is, and what is decided on the way.

use crate::random::{below, combine};
use crate::topology::LinkId;

/// A message or packet on its way: where it is, where it is to go, and what was decided before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Walk {
    /// The node to which it goes.
    pub(crate) dst: u32,
    /// The switch at which it is, or to which it is on its way.
    pub(crate) at: u32,
    /// The switch (group, in a dragonfly) that it visits first; [`NONE`], or [`UNDECIDED`].
    pub(crate) via: u32,
    /// Random bits of its own.
    pub(crate) key: u32,
    /// What the topology's routing remembers.
    pub(crate) state: State,
}

/// No intermediate switch.
pub(crate) const NONE: u32 = u32::MAX;
/// Whether there is an intermediate switch is decided at the first switch.
pub(crate) const UNDECIDED: u32 = u32::MAX - 1;

/// Small numbers in 64 bits; each topology's routing has its own fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State(pub(crate) u64);

/// A field of a [`State`]: `BITS` bits from bit `SHIFT` on.
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

/// One step of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) link: LinkId,
    /// The class of virtual channels that it uses there.
    pub(crate) class: u8,
    /// Whether it is the last: the link leads to the destination.
    pub(crate) last: bool,
}

impl Hop {
    /// A step between switches.
    #[inline(always)]
    pub(crate) const fn to_switch(link: LinkId, class: u32) -> Self {
        Self { link, class: class as u8, last: false }
    }

    /// The last step.
    #[inline(always)]
    pub(crate) const fn to_node(node: u32) -> Self {
        Self { link: LinkId::ejection(node), class: 0, last: true }
    }
}

/// Decides where routing leaves a choice.
pub(crate) trait Choice {
    /// One of `n` ways that are equally short, at least two; `link` gives the first link of each, `fixed` which of them
    /// deterministic routing takes.
    fn among(&mut self, walk: &Walk, n: u32, fixed: u32, link: impl Fn(u32) -> LinkId) -> u32;

    /// One of `n` ways at random; `salt` tells draws of one walk apart.
    fn draw(&mut self, walk: &Walk, n: u32, salt: u32) -> u32;

    /// Whether to go round, given the first link of the short way and of the one round, and the lengths of both ways.
    fn detours(&mut self, short: (LinkId, u32), round: (LinkId, u32)) -> bool;
}

/// How loaded links are.
pub(crate) trait Load {
    /// What waits for `link` and was sent over it without having left the buffer behind it, in a unit of the model's own.
    fn load(&self, link: LinkId) -> u64;
}

/// How one of several equally short ways is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pick {
    /// The same for each destination.
    #[default]
    Fixed,
    /// By the walk's random bits.
    Hashed,
    /// The least loaded.
    LeastLoaded,
}

/// Choices of a simulation that runs.
pub(crate) struct Decide<'a, L> {
    pub(crate) pick: Pick,
    /// What the way round may be more loaded by, in the unit of `load`.
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
                // The first of the least loaded, from a random one on.
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
