//! The Slim Fly: routers joined as a McKay–Miller–Širáň graph, of which no two are more than two links apart.
//!
//! For a power of a prime q = 4w + δ, δ = ±1 or 0, there are 2q² routers in two halves, each of q groups of q routers; with ξ a primitive
//! element of the field of q elements, and all sums and products in that field,
//!
//! - router (0, x, y) is joined to (0, x, y') where y − y' is in X, and to (1, m, c) where y = m·x + c;
//! - router (1, m, c) is joined to (1, m, c') where c − c' is in X'.
//!
//! δ = 1: X are the even powers of ξ, X' the odd ones. δ = −1: X = {1, ξ², …, ξ^(2w−2), ξ^(2w−1), ξ^(2w+1), …, ξ^(4w−3)}, X' = ξ·X.
//! δ = 0: X = {1, ξ², …, ξ^(q−2)}, X' = ξ·X. So each router has (3q − δ)/2 cables. With q = 5 it is the Hoffman–Singleton graph. Router h·q² + x·q + y is (h, x, y); node `n` is
//! at router n / p, with p = ⌈(3q − δ)/4⌉ nodes per router unless said otherwise.
//!
//! The class of virtual channels is the number of links taken, as in the source, so two for shortest routes, four with an intermediate
//! router. Of several shortest routes, deterministic routing chooses by destination.
//!
//! Source: M. Besta, T. Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC 2014.

use super::error::TopologyProblem;
use super::field::Field;
use super::form::{Form, Parsed, exactly};
use super::interface::{Level, Topology};
use super::route::{Choice, Hop, Policy, Route, other_than};
use super::wiring::{LinkClass, LinkId, Wiring, checked_links, product};
use crate::division::Divisor;

pub(super) const FORMS: &[Form] = &[Form {
    kind: "slimfly",
    form: "slimfly:Q[:NODES]",
    example: "slimfly:5 or slimfly:17:12",
    help: "Slim Fly of 2Q² routers with 3Q/2 cables each (½ more or less if Q is odd), Q a power of a prime, and NODES per router",
    parse,
}];

fn parse(text: &str) -> Option<Parsed> {
    let (q, nodes) = match text.split_once(':') {
        None => (text, None),
        Some((q, nodes)) => (q, Some(nodes)),
    };
    let ([q], nodes) = (exactly(q)?, nodes.map(exactly).map_or(Some(None), |nodes| nodes.map(Some))?);
    Some(SlimFly::new(q, nodes.map(|[nodes]| nodes)).map(Into::into))
}

/// A Slim Fly.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SlimFly {
    name: String,
    q: u32,
    field: Field,
    per_router: Divisor,
    nodes: u32,
    /// X and X', ascending.
    steps: [Vec<u32>; 2],
    /// Of each half, for each number below q its place in `steps`.
    places: [Vec<Option<u32>>; 2],
}

/// Largest Q: with more, a topology has too many links.
const MOST: u32 = 1 << 9;

impl SlimFly {
    fn new(q: u32, per_router: Option<u32>) -> Result<Self, TopologyProblem> {
        if q == 0 || per_router == Some(0) {
            return Err(TopologyProblem::Zero);
        }
        if q > MOST {
            return Err(TopologyProblem::TooLarge);
        }
        let field = Field::new(q).filter(|_| q > 2).ok_or(TopologyProblem::PrimePower(q))?;
        // w, of q = 4w + δ.
        let w = q.div_ceil(4) as usize - usize::from(q % 4 == 1);
        let x: Vec<usize> = match q % 4 {
            0 | 1 => (0..q as usize - 1).step_by(2).collect(),
            _ => (0..2 * w - 1).step_by(2).chain((2 * w - 1..4 * w - 2).step_by(2)).collect(),
        };
        let steps = [0, 1].map(|more| {
            let mut steps: Vec<u32> = x.iter().map(|at| field.power((at + more) as u32)).collect();
            steps.sort_unstable();
            steps
        });
        let places = [0, 1].map(|half: usize| {
            let place = |step| steps[half].iter().position(|known| *known == step).map(|place| place as u32);
            (0..q).map(place).collect()
        });
        let degree = q + steps[0].len() as u32;
        let name = format!("slimfly:{q}{}", per_router.map_or(String::new(), |nodes| format!(":{nodes}")));
        let per_router = per_router.unwrap_or(degree.div_ceil(2));
        let routers = product([2, q, q])?;
        let nodes = product([routers, per_router])?;
        checked_links(2 * u64::from(nodes) + u64::from(routers) * u64::from(degree))?;
        Ok(Self { name, q, field, per_router: Divisor::new(per_router), nodes, steps, places })
    }

    fn routers(&self) -> u32 {
        2 * self.q * self.q
    }

    /// Cables of a router to others.
    fn degree(&self) -> u32 {
        self.q + self.steps[0].len() as u32
    }

    /// Half, group and number in the group.
    fn label(&self, router: u32) -> (u32, u32, u32) {
        let q = self.q;
        (router / (q * q), router / q % q, router % q)
    }

    fn router(&self, (half, group, own): (u32, u32, u32)) -> u32 {
        (half * self.q + group) * self.q + own
    }

    /// The router at the end of a port: first those of the group, then those of the other half by their groups.
    fn neighbour(&self, router: u32, port: u32) -> u32 {
        let (half, group, own) = self.label(router);
        let inside = &self.steps[half as usize];
        match inside.get(port as usize) {
            Some(step) => self.router((half, group, self.field.add(own, *step))),
            None => {
                let other = port - inside.len() as u32;
                let product = self.field.multiply(group, other);
                // y = m·x + c.
                let its =
                    if half == 0 { self.field.subtract(own, product) } else { self.field.add(product, own) };
                self.router((1 - half, other, its))
            }
        }
    }

    /// The port that leads to a router, if one does.
    fn port_to(&self, from: u32, to: u32) -> Option<u32> {
        let ((half, group, own), (to_half, to_group, to_own)) = (self.label(from), self.label(to));
        if half != to_half {
            let port = self.steps[half as usize].len() as u32 + to_group;
            return (self.neighbour(from, port) == to).then_some(port);
        }
        let step = self.field.subtract(to_own, own);
        if group == to_group { self.places[half as usize][step as usize] } else { None }
    }

    fn link(&self, router: u32, port: u32) -> LinkId {
        LinkId(2 * self.nodes + router * self.degree() + port)
    }

    fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }
}

impl Topology for SlimFly {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn wiring(&self) -> Wiring {
        let mut wiring = Wiring::new(self.nodes, self.routers(), |node| self.switch_of(node));
        for router in 0..self.routers() {
            for port in 0..self.degree() {
                wiring.link(router, self.neighbour(router, port), LinkClass::LOCAL);
            }
        }
        wiring
    }

    /// Half, group and number: `(0,3,1)`.
    fn switch_name(&self, router: u32) -> String {
        let (half, group, own) = self.label(router);
        format!("({half},{group},{own})")
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        match from == to {
            true => 0,
            false => 2 - u32::from(self.port_to(from, to).is_some()),
        }
    }

    fn next(&self, route: &mut Route, _: Policy, choice: &mut dyn Choice) -> Hop {
        if route.via == route.at {
            route.via = Route::NO_DETOUR;
        }
        let to = if route.via == Route::NO_DETOUR { self.switch_of(route.dst) } else { route.via };
        if to == route.at {
            return Hop::to_node(route.dst);
        }
        let port = self.port_to(route.at, to).unwrap_or_else(|| {
            let at = route.at;
            let ways: Vec<u32> = (0..self.degree())
                .filter(|&port| self.port_to(self.neighbour(at, port), to).is_some())
                .collect();
            let way = match ways.len() as u32 {
                0 | 1 => 0,
                n => choice.among(route, n, route.dst % n, &|way| self.link(at, ways[way as usize])),
            };
            ways[way as usize]
        });
        let (link, taken) = (self.link(route.at, port), route.state);
        route.at = self.neighbour(route.at, port);
        route.state += 1;
        Hop::to_switch(link, taken as u32)
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        2 * policy.phases()
    }

    fn intermediate(&self, from: u32, to: u32, _: Policy, draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        other_than(from, to, self.routers(), draw)
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        let of_nodes = 2 * self.nodes;
        vec![Level::new("nodes", 0..of_nodes), Level::new("routers", of_nodes..wiring.links())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::build;

    /// Routers, cables a router and diameter of the source; two links from every router to every other.
    #[test]
    fn it_is_the_graph_of_the_source() {
        for (q, routers, degree) in [
            (3, 18, 5),
            (4, 32, 6),
            (5, 50, 7),
            (7, 98, 11),
            (8, 128, 12),
            (9, 162, 13),
            (11, 242, 17),
            (13, 338, 19),
            (16, 512, 24),
            (17, 578, 25),
            (19, 722, 29),
            (25, 1250, 37),
            (27, 1458, 41),
        ] {
            let fly = SlimFly::new(q, Some(1)).unwrap();
            assert_eq!((fly.routers(), fly.degree()), (routers, degree), "q = {q}");
            for router in 0..routers {
                let near: Vec<u32> = (0..degree).map(|port| fly.neighbour(router, port)).collect();
                let mut reached = vec![false; routers as usize];
                for (port, &to) in (0..).zip(&near) {
                    assert!(to != router && fly.port_to(router, to) == Some(port));
                    assert!(fly.port_to(to, router).is_some(), "a cable leads both ways");
                    reached[to as usize] = true;
                    (0..degree).for_each(|port| reached[fly.neighbour(to, port) as usize] = true);
                }
                assert!(
                    reached.iter().all(|reached| *reached),
                    "q = {q}: two links from {router} do not reach all"
                );
            }
        }
        // A Moore graph: exactly one shortest route between any two.
        let fly = SlimFly::new(5, None).unwrap();
        for (from, to) in
            (0..50).flat_map(|from| (0..50).map(move |to| (from, to))).filter(|(from, to)| from != to)
        {
            let ways = (0..7).filter(|&port| fly.port_to(fly.neighbour(from, port), to).is_some()).count();
            assert_eq!(ways, usize::from(fly.port_to(from, to).is_none()));
        }
    }

    #[test]
    fn forms() {
        // The source's network of 19³ routers' size: 722 routers of 29 cables and 15 nodes.
        let network = build("slimfly:19");
        assert_eq!((network.nodes(), network.switches()), (10_830, 722));
        assert_eq!(build("slimfly:5").nodes(), 200);
        assert_eq!(build("slimfly:5:1").links(), 2 * 50 + 50 * 7);
        for text in [
            "slimfly:0",
            "slimfly:2",
            "slimfly:6",
            "slimfly:10",
            "slimfly:5:0",
            "slimfly:1000",
            "slimfly:",
            "slimfly:5:x",
            "slimfly:5:1:1",
        ] {
            assert!(text.parse::<crate::topology::TopologySpec>().is_err(), "{text}");
        }
    }
}
