//! Routes through HyperX: one link in each dimension in which the coordinates differ.
//!
//! Dimension order takes the lowest dimension first and needs one class of virtual channels per phase: two
//! with the intermediate router of Valiant or UGAL. ECMP and adaptive routing take the dimensions in any
//! order; the class is the number of links taken.

use super::walk::{Choice, Field, Hop, NONE, Walk};
use crate::topology::HyperX;

/// In any order: links taken. In dimension order: whether the route has passed the intermediate router.
const TAKEN: Field<0, 8> = Field;

/// Dimension order.
pub(super) fn next(hyperx: &HyperX, walk: &mut Walk) -> Hop {
    if walk.via == walk.at {
        walk.via = NONE;
        TAKEN.set(&mut walk.state, 1);
    }
    let target = if walk.via == NONE { hyperx.switch_of(walk.dst) } else { walk.via };
    for row in hyperx.dimensions() {
        let (own, to) = (row.coordinate(walk.at), row.coordinate(target));
        if own != to {
            let link = row.link(walk.at, own, to);
            walk.at = row.neighbour(walk.at, own, to);
            return Hop::to_switch(link, TAKEN.get(walk.state));
        }
    }
    Hop::to_node(walk.dst)
}

/// Any order.
pub(super) fn next_in_any_order(hyperx: &HyperX, walk: &mut Walk, choice: &mut impl Choice) -> Hop {
    let target = hyperx.switch_of(walk.dst);
    let rows = hyperx.dimensions();
    let mut open = [0; 32];
    let mut count = 0;
    for (at, row) in rows.iter().enumerate() {
        if row.coordinate(walk.at) != row.coordinate(target) {
            open[count as usize] = at;
            count += 1;
        }
    }
    let link = |way: u32| {
        let row = &rows[open[way as usize]];
        row.link(walk.at, row.coordinate(walk.at), row.coordinate(target))
    };
    let way = match count {
        0 => return Hop::to_node(walk.dst),
        1 => 0,
        n => choice.among(walk, n, 0, link),
    };
    let (link, row) = (link(way), &rows[open[way as usize]]);
    walk.at = row.neighbour(walk.at, row.coordinate(walk.at), row.coordinate(target));
    let taken = TAKEN.get(walk.state);
    TAKEN.set(&mut walk.state, taken + 1);
    Hop::to_switch(link, taken)
}
