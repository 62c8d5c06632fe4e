//! The position of a message or packet on its route, the steps of a route, and the choices along it.

use super::wiring::LinkId;

/// A message or packet on its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The destination node.
    pub dst: u32,
    /// The current switch, or the one at the end of the current link.
    pub at: u32,
    /// The intermediate switch (whatever [`Topology::intermediate`](super::Topology::intermediate) returns), or [`Route::NO_DETOUR`].
    pub via: u32,
    /// Its random bits.
    pub key: u32,
    /// State of the topology's routing; 0 at the first switch.
    pub state: u64,
}

impl Route {
    /// No intermediate switch, or none any more.
    pub const NO_DETOUR: u32 = u32::MAX;
    /// Decided at the first switch.
    pub(crate) const UNDECIDED: u32 = u32::MAX - 1;
}

/// `BITS` bits of [`Route::state`], from bit `SHIFT`; each topology defines its fields.
pub(crate) struct Field<const SHIFT: u32, const BITS: u32>;

impl<const SHIFT: u32, const BITS: u32> Field<SHIFT, BITS> {
    const MASK: u64 = (1 << BITS) - 1;

    #[inline(always)]
    pub(crate) const fn get(self, state: u64) -> u32 {
        (state >> SHIFT & Self::MASK) as u32
    }

    #[inline(always)]
    pub(crate) const fn set(self, state: &mut u64, value: u32) {
        debug_assert!(value as u64 <= Self::MASK);
        *state = *state & !(Self::MASK << SHIFT) | (value as u64) << SHIFT;
    }
}

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link.
    pub link: LinkId,
    /// Its class of virtual channels.
    pub class: u8,
    /// Whether the link leads to the destination.
    pub last: bool,
}

impl Hop {
    /// A step to a switch.
    #[inline(always)]
    pub const fn to_switch(link: LinkId, class: u32) -> Self {
        Self { link, class: class as u8, last: false }
    }

    /// The last step, to the destination.
    #[inline(always)]
    pub const fn to_node(node: u32) -> Self {
        Self { link: LinkId::ejection(node), class: 0, last: true }
    }
}

/// What a topology must know of the routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// On what the choice among shortest routes depends.
    pub adaptivity: Adaptivity,
    /// Whether routes may lead over an intermediate switch.
    pub detours: bool,
    /// In a network of groups: that the intermediate is a switch, not a group.
    pub via_switch: bool,
    /// In a network of groups: that a shortest route may get its intermediate at a later switch of the source's group, too.
    pub decides_again: bool,
    /// That the class of virtual channels follows the number of links taken, or left; only if [`Topology::can_number_classes_by_hops`](super::Topology::can_number_classes_by_hops).
    pub classes_by_hops: bool,
}

impl Policy {
    /// Parts of a route that need classes of virtual channels of their own: to the intermediate switch, and from there.
    pub fn phases(self) -> u32 {
        1 + u32::from(self.detours)
    }
}

/// On what the choice among shortest routes depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adaptivity {
    /// On source and destination.
    Deterministic,
    /// On random bits.
    Oblivious,
    /// On the load of links.
    Adaptive,
}

/// Chooses where several links are possible.
pub trait Choice {
    /// One of `n` ≥ 2 shortest routes; `link` returns the first link of each, `fixed` is the choice of
    /// deterministic routing.
    fn among(&mut self, route: &Route, n: u32, fixed: u32, link: &dyn Fn(u32) -> LinkId) -> u32;

    /// One of `n` options at random; `salt` distinguishes draws of one route.
    fn draw(&mut self, route: &Route, n: u32, salt: u32) -> u32;
}

/// One of `count` switches (or groups) other than `from` and `to`, at random; `None` if there is no other.
pub fn other_than(from: u32, to: u32, count: u32, draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
    let (low, high) = (from.min(to), from.max(to));
    let others = count - 1 - u32::from(low != high);
    if others == 0 {
        return None;
    }
    let drawn = draw(others);
    let behind_low = drawn + u32::from(drawn >= low);
    Some(behind_low + u32::from(low != high && behind_low >= high))
}
