//! Routes through dragonflies: at most one local link to the router with the global cable, that cable, and
//! one local link in the destination's group. Among several cables between two groups, deterministic routing
//! chooses by destination.
//!
//! Valiant routes have an intermediate group (l g l g l) or an intermediate router (l g l, l g l). The class
//! of a link is the number of global links before it; behind an intermediate router it is higher by two
//! (local) or one (global). So classes depend only on higher classes.

use super::walk::{Choice, Field, Hop, NONE, Walk};
use crate::topology::{Dragonfly, LinkId};

/// The global port that the route leads to, plus one; 0 if none is chosen.
const PORT: Field<0, 32> = Field;
/// Global links taken in this phase.
const GLOBAL: Field<32, 2> = Field;
/// Whether the route has passed the intermediate router.
const PHASE: Field<34, 1> = Field;

/// The next hop; with `by_router`, [`Walk::via`] is a router, else a group.
pub(super) fn next(dragonfly: &Dragonfly, walk: &mut Walk, by_router: bool, choice: &mut impl Choice) -> Hop {
    let (group, own) = dragonfly.place(walk.at);
    if walk.via != NONE && walk.via == if by_router { walk.at } else { group } {
        walk.via = NONE;
        if by_router {
            PHASE.set(&mut walk.state, 1);
            GLOBAL.set(&mut walk.state, 0);
        }
    }
    let target = match walk.via {
        NONE => dragonfly.switch_of(walk.dst),
        via if by_router => via,
        via => via * dragonfly.routers(),
    };
    if target == walk.at && walk.via == NONE {
        return Hop::to_node(walk.dst);
    }
    let (to_group, index) = dragonfly.place(target);
    let (taken, phase) = (GLOBAL.get(walk.state), PHASE.get(walk.state));
    if group == to_group {
        let link = dragonfly.local_link(walk.at, own, index);
        walk.at = target;
        return Hop::to_switch(link, taken + 2 * phase);
    }
    let port = match PORT.get(walk.state) {
        0 => {
            let way = match dragonfly.cables_between() {
                1 => 0,
                n => {
                    let link =
                        |way: u32| first_link(dragonfly, walk.at, dragonfly.port_to(group, to_group, way));
                    choice.among(walk, n, walk.dst % n, link)
                }
            };
            dragonfly.port_to(group, to_group, way)
        }
        chosen => chosen - 1,
    };
    let exit = dragonfly.router_of_port(group, port);
    let link = first_link(dragonfly, walk.at, port);
    if exit != walk.at {
        walk.at = exit;
        PORT.set(&mut walk.state, port + 1);
        return Hop::to_switch(link, taken + 2 * phase);
    }
    let (arrived, entry) = dragonfly.peer(group, port);
    walk.at = dragonfly.router_of_port(arrived, entry);
    PORT.set(&mut walk.state, 0);
    GLOBAL.set(&mut walk.state, taken + 1);
    Hop::to_switch(link, taken + phase)
}

/// The first link from `router` to a port of its group, and over it.
#[inline]
fn first_link(dragonfly: &Dragonfly, router: u32, port: u32) -> LinkId {
    let (group, own) = dragonfly.place(router);
    let exit = dragonfly.router_of_port(group, port);
    match exit == router {
        true => dragonfly.global_link(group, port),
        false => dragonfly.local_link(router, own, dragonfly.place(exit).1),
    }
}

/// Links between switches on the route over an intermediate group, by the first cable between each two
/// groups.
pub(super) fn length_by_group(dragonfly: &Dragonfly, walk: &Walk, via: u32) -> u32 {
    let target = dragonfly.switch_of(walk.dst);
    let ((group, _), (to_group, _)) = (dragonfly.place(walk.at), dragonfly.place(target));
    let out = dragonfly.port_to(group, via, 0);
    let (_, entry) = dragonfly.peer(group, out);
    let middle = dragonfly.router_of_port(via, entry);
    let to_middle = 1 + u32::from(dragonfly.router_of_port(group, out) != walk.at);
    match via == to_group {
        true => to_middle + u32::from(middle != target),
        false => to_middle + dragonfly.hops_by(middle, target, 0),
    }
}
