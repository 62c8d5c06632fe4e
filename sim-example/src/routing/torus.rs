//! Routes through tori and meshes.
//!
//! **Dimension order**: the lowest dimension first, in the shorter direction. If both directions are equally
//! long, routers with even coordinates go in the positive direction and those with odd coordinates in the
//! negative one, so that the directions share such traffic; ECMP chooses by its hash, adaptive routing by
//! load. In a torus, routes that wrap around use virtual channels of class 0 throughout that dimension,
//! others class 1: within a class no ring is closed, as no shortest route that wraps is longer than half a
//! ring. Valiant's second phase has separate classes.
//!
//! **Minimal adaptive**: any unfinished dimension, by load. Virtual networks prevent cycles: one for each
//! combination of directions in all dimensions but the first, and in a torus one more set for each time that
//! a route has wrapped around.
//!
//! Sources: W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
//! Transactions on Computers, 1987; D. H. Linder, J. C. Harden, "An adaptive and fault tolerant wormhole routing strategy
//! for k-ary n-cubes", IEEE Transactions on Computers, 1991.

use super::walk::{Choice, Field, Hop, NONE, Walk};
use crate::topology::{Torus, Way};

/// Steps left in the current dimension.
const STEPS: Field<0, 17> = Field;
/// The current coordinate in it.
const COORDINATE: Field<17, 16> = Field;
/// Number of dimensions entered.
const ENTERED: Field<33, 6> = Field;
/// Whether the direction is positive.
const POSITIVE: Field<39, 1> = Field;
/// Whether the route does not wrap around in the current dimension.
const INSIDE: Field<40, 1> = Field;
/// Whether the route has passed the intermediate router.
const PHASE: Field<41, 1> = Field;

/// Dimension order.
#[inline]
pub(super) fn next(torus: &Torus, walk: &mut Walk, choice: &mut impl Choice) -> Hop {
    let dimensions = torus.dimensions();
    let mut state = walk.state;
    if walk.via == walk.at {
        walk.via = NONE;
        PHASE.set(&mut state, 1);
        ENTERED.set(&mut state, 0);
        STEPS.set(&mut state, 0);
    }
    let mut steps = STEPS.get(state);
    if steps == 0 {
        let target = if walk.via == NONE { torus.switch_of(walk.dst) } else { walk.via };
        let mut entered = ENTERED.get(state);
        while steps == 0 {
            let Some(dimension) = dimensions.get(entered as usize) else { return Hop::to_node(walk.dst) };
            entered += 1;
            let coordinate = dimension.coordinate(walk.at);
            let way;
            (steps, way) = dimension.way(coordinate, dimension.coordinate(target));
            if steps == 0 {
                continue;
            }
            let positive = match way {
                Way::Up => true,
                Way::Down => false,
                Way::Either => {
                    let link = |way: u32| dimension.link(walk.at, coordinate, way == 0);
                    choice.among(walk, 2, coordinate % 2, link) == 0
                }
            };
            let inside = match positive {
                true => coordinate + steps < dimension.size,
                false => steps <= coordinate,
            };
            COORDINATE.set(&mut state, coordinate);
            POSITIVE.set(&mut state, positive.into());
            INSIDE.set(&mut state, inside.into());
        }
        ENTERED.set(&mut state, entered);
    }
    // Steps are left only in a dimension that was entered.
    let dimension = &dimensions[ENTERED.get(state) as usize - 1];
    let (coordinate, positive) = (COORDINATE.get(state), POSITIVE.get(state) == 1);
    let link = dimension.link(walk.at, coordinate, positive);
    let coordinate;
    (walk.at, coordinate) = dimension.neighbour(walk.at, COORDINATE.get(state), positive);
    COORDINATE.set(&mut state, coordinate);
    STEPS.set(&mut state, steps - 1);
    walk.state = state;
    let rings = if torus.wraps() { 2 } else { 1 };
    let class = PHASE.get(state) * rings + if torus.wraps() { INSIDE.get(state) } else { 0 };
    Hop::to_switch(link, class)
}

/// Whether the virtual network is chosen; then its directions in all dimensions but the first, one bit each,
/// and the number of times the route has wrapped around.
const CHOSEN: Field<0, 1> = Field;
const DIRECTIONS: Field<1, 31> = Field;
const WRAPPED: Field<32, 6> = Field;

/// Minimal adaptive.
pub(super) fn next_adaptive(torus: &Torus, walk: &mut Walk, choice: &mut impl Choice) -> Hop {
    let dimensions = torus.dimensions();
    let target = torus.switch_of(walk.dst);
    // Unfinished dimensions, with coordinate and direction.
    let mut open = [(0, 0, false); 32];
    let mut count = 0;
    for (at, dimension) in dimensions.iter().enumerate() {
        let coordinate = dimension.coordinate(walk.at);
        let (steps, way) = dimension.way(coordinate, dimension.coordinate(target));
        if steps > 0 {
            let positive = way == Way::Up || way == Way::Either && coordinate.is_multiple_of(2);
            open[count as usize] = (at, coordinate, positive);
            count += 1;
        }
    }
    if CHOSEN.get(walk.state) == 0 {
        let negative = open[..count as usize].iter().filter(|&&(at, _, positive)| at > 0 && !positive);
        DIRECTIONS.set(&mut walk.state, negative.map(|&(at, ..)| 1 << (at - 1)).sum());
        CHOSEN.set(&mut walk.state, 1);
    }
    let link = |way: u32| {
        let (at, coordinate, positive) = open[way as usize];
        dimensions[at].link(walk.at, coordinate, positive)
    };
    let way = match count {
        0 => return Hop::to_node(walk.dst),
        1 => 0,
        n => choice.among(walk, n, 0, link),
    };
    let (at, coordinate, positive) = open[way as usize];
    let (link, wrapped) = (link(way), WRAPPED.get(walk.state));
    let next;
    (walk.at, next) = dimensions[at].neighbour(walk.at, coordinate, positive);
    if (next > coordinate) != positive {
        WRAPPED.set(&mut walk.state, wrapped + 1);
    }
    let networks = 1 << (dimensions.len() - 1);
    Hop::to_switch(link, DIRECTIONS.get(walk.state) + networks * wrapped)
}

/// Classes of virtual channels that minimal adaptive routing needs.
pub(super) fn adaptive_classes(torus: &Torus) -> u32 {
    let dimensions = torus.dimensions();
    let wrapping = dimensions.iter().filter(|dimension| dimension.wraps).count() as u32;
    1u32.checked_shl(dimensions.len() as u32 - 1)
        .map_or(u32::MAX, |networks| networks.saturating_mul(wrapping + 1))
}
