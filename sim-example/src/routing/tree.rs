//! Routes through trees: up to a switch above the destination, then down the only route.
//!
//! The choice is among parents. Deterministic routing is D-mod-k: from level l to l + 1 over port ⌊dst /
//! (W₁⋯W_l)⌋ mod (w_{l+1}·p_{l+1}) of the upward ports, of which the first w are the first cables to all
//! parents. So all messages to one node come down through the same switches, neighbouring destinations use
//! different ones, and every shift of a full tree runs without contention. Valiant routes lead through a
//! random switch of the highest level.
//!
//! Up-down routes need one class of virtual channels: no downward link is followed by an upward one.
//!
//! Source: E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees", 2010.

use super::walk::{Choice, Field, Hop, NONE, Walk};
use crate::topology::{LinkId, Tree};

/// Level of the current switch, from 0.
const LEVEL: Field<0, 8> = Field;

/// [`Walk::via`] for the highest level.
pub(super) const TOP: u32 = 0;

pub(super) fn next(tree: &Tree, walk: &mut Walk, choice: &mut impl Choice) -> Hop {
    let levels = tree.levels();
    let l = LEVEL.get(walk.state) as usize;
    let level = &levels[l];
    if walk.via != NONE && l + 1 == levels.len() {
        walk.via = NONE;
    }
    let (group, parallel) = level.parallel.divide(walk.at - level.first_switch);
    if walk.via == NONE && level.span.quotient(walk.dst) == group {
        if l == 0 {
            return Hop::to_node(walk.dst);
        }
        let lower = &levels[l - 1];
        let child = level.below.quotient(walk.dst);
        let down = |cable: u32| LinkId(level.link(child, parallel, cable).0 + 1);
        let cable = match level.cables {
            1 => 0,
            cables => {
                let port = level.parallel_below.quotient(walk.dst) % (level.parents.get() * cables);
                choice.among(walk, cables, level.parents.quotient(port), down)
            }
        };
        walk.at = lower.first_switch + child * lower.parallel.get() + level.parents.quotient(parallel);
        LEVEL.set(&mut walk.state, l as u32 - 1);
        return Hop::to_switch(down(cable), 0);
    }
    let upper = &levels[l + 1];
    let parents = upper.parents;
    let parent = |port: u32| parallel * parents.get() + parents.remainder(port);
    let up = |port: u32| upper.link(group, parent(port), parents.quotient(port));
    let port = match parents.get() * upper.cables {
        1 => 0,
        ports if walk.via != NONE => choice.draw(walk, ports, walk.at),
        ports => choice.among(walk, ports, upper.parallel_below.quotient(walk.dst) % ports, up),
    };
    walk.at = upper.first_switch + upper.children.quotient(group) * upper.parallel.get() + parent(port);
    LEVEL.set(&mut walk.state, l as u32 + 1);
    Hop::to_switch(up(port), 0)
}

/// Links between switches from `walk`, at its lowest switch: on the shortest route, and over the highest
/// level.
pub(super) fn lengths(tree: &Tree, walk: &Walk) -> (u32, u32) {
    let levels = tree.levels();
    let src = walk.at * levels[0].span.get();
    let common = levels.iter().position(|level| level.span.quotient(src) == level.span.quotient(walk.dst));
    (2 * common.unwrap_or(0) as u32, 2 * (levels.len() as u32 - 1))
}
