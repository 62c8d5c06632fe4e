//! Routes through networks from files: shortest, by the table of distances, or as given in the file.
//!
//! Among the n links that lead closer, deterministic routing takes number `dst mod n`. Whether one class of
//! virtual channels per phase suffices depends on the graph. If it does not, the class is the number of links
//! taken, so that each class depends only on the next.

use super::walk::{Choice, Field, Hop, NONE, Walk};
use crate::topology::Given;

/// The next link of a given route, plus one; 0 without a given route.
pub(super) const GIVEN: Field<0, 32> = Field;
/// Links left on the given route.
pub(super) const LEFT: Field<32, 14> = Field;
/// Links taken.
const TAKEN: Field<46, 16> = Field;
/// Whether the route has passed the intermediate switch.
const PHASE: Field<62, 1> = Field;

pub(super) fn next(given: &Given, walk: &mut Walk, by_links_taken: bool, choice: &mut impl Choice) -> Hop {
    if walk.via == walk.at {
        walk.via = NONE;
        PHASE.set(&mut walk.state, 1);
    }
    let taken = TAKEN.get(walk.state);
    let class = if by_links_taken { taken } else { PHASE.get(walk.state) };
    TAKEN.set(&mut walk.state, taken + 1);
    if let Some(at) = GIVEN.get(walk.state).checked_sub(1) {
        let left = LEFT.get(walk.state);
        if left == 0 {
            return Hop::to_node(walk.dst);
        }
        GIVEN.set(&mut walk.state, at + 2);
        LEFT.set(&mut walk.state, left - 1);
        let link;
        (link, walk.at) = given.route_link(at);
        return Hop::to_switch(link, class);
    }
    let target = if walk.via == NONE { given.switch_of(walk.dst) } else { walk.via };
    let Some(left @ 1..) = given.hops(walk.at, target) else { return Hop::to_node(walk.dst) };
    let shorter = || {
        let is_shorter = move |&&(_, to): &&(_, u32)| given.hops(to, target) == Some(left - 1);
        given.neighbours(walk.at).iter().filter(is_shorter)
    };
    // A switch at a distance has a closer neighbour.
    let nth = |way: u32| shorter().nth(way as usize).copied().unwrap_or_default();
    let way = match shorter().count() as u32 {
        1 => 0,
        n => choice.among(walk, n, walk.dst % n, |way| nth(way).0),
    };
    let link;
    (link, walk.at) = nth(way);
    Hop::to_switch(link, class)
}
