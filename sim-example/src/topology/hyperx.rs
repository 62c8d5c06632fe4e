//! HyperX: a grid of routers of any number of dimensions, each with a link to all routers that differ in one
//! coordinate. With equal sizes this is the flattened butterfly, with one dimension a full mesh.
//!
//! Router `r` has the coordinates `r mod S₀, r / S₀ mod S₁, …`; with T nodes per router, node `n` is at
//! router `n / T`.
//!
//! Dimension order takes the lowest dimension first and needs one class of virtual channels per phase: two
//! with the intermediate router of Valiant or UGAL. ECMP and adaptive routing take the dimensions in any
//! order; the class is the number of links taken.
//!
//! Sources: J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale networks", SC 2009; J. Kim,
//! W. J. Dally, D. Abts, "Flattened butterfly: a cost-efficient topology for high-radix networks", ISCA 2007.

use super::drawing::Drawing;
use super::error::TopologyProblem;
use super::form::{Form, Parsed, grid, grid_name};
use super::interface::{Level, Topology};
use super::route::{Adaptivity, Choice, Field, Hop, Policy, Route, other_than};
use super::wiring::{LinkClass, LinkId, Wiring, checked_links, product};
use crate::division::Divisor;

pub(super) const FORMS: &[Form] = &[Form {
    kind: "hyperx",
    form: "hyperx:AxBx…[:NODES]",
    example: "hyperx:4x4:4",
    help: "HyperX, NODES (1) per router; with one dimension, a full mesh",
    parse,
}];

fn parse(text: &str) -> Option<Parsed> {
    let (sizes, per_router) = grid(text)?;
    Some(HyperX::new(&sizes, per_router).map(Into::into))
}

/// In any order: links taken. In dimension order: whether the route has passed the intermediate router.
const TAKEN: Field<0, 8> = Field;

/// A HyperX.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HyperX {
    nodes: u32,
    routers: u32,
    per_router: Divisor,
    dimensions: Vec<Row>,
}

/// A dimension; a row is a set of fully connected routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    size: u32,
    stride: u32,
    divide_by_stride: Divisor,
    divide_by_size: Divisor,
    /// First link of the dimension: each router has `size − 1`, in the order of the coordinates they lead to.
    first: u32,
}

impl HyperX {
    /// A HyperX of these sizes, with `per_router` nodes per router.
    fn new(sizes: &[u32], per_router: u32) -> Result<Self, TopologyProblem> {
        if sizes.contains(&0) || per_router == 0 {
            return Err(TopologyProblem::Zero);
        }
        if sizes.len() > 32 {
            return Err(TopologyProblem::TooLarge);
        }
        let routers = product(sizes.iter().copied())?;
        let nodes = product([routers, per_router])?;
        let mut links = 2 * u64::from(nodes);
        let (mut dimensions, mut stride) = (Vec::with_capacity(sizes.len()), 1);
        for &size in sizes {
            let (divide_by_stride, divide_by_size) = (Divisor::new(stride), Divisor::new(size));
            let first = checked_links(links)?;
            dimensions.push(Row { size, stride, divide_by_stride, divide_by_size, first });
            stride *= size;
            links += u64::from(routers) * u64::from(size - 1);
        }
        checked_links(links)?;
        Ok(Self { nodes, routers, per_router: Divisor::new(per_router), dimensions })
    }

    /// The router of `node`.
    #[inline(always)]
    fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }

    /// The sizes of the dimensions.
    fn sizes(&self) -> Vec<u32> {
        self.dimensions.iter().map(|row| row.size).collect()
    }

    /// Dimension order.
    fn next_in_order(&self, route: &mut Route) -> Hop {
        if route.via == route.at {
            route.via = Route::NO_DETOUR;
            TAKEN.set(&mut route.state, 1);
        }
        let target = if route.via == Route::NO_DETOUR { self.switch_of(route.dst) } else { route.via };
        for row in &self.dimensions {
            let (own, to) = (row.coordinate(route.at), row.coordinate(target));
            if own != to {
                let link = row.link(route.at, own, to);
                route.at = row.neighbour(route.at, own, to);
                return Hop::to_switch(link, TAKEN.get(route.state));
            }
        }
        Hop::to_node(route.dst)
    }

    /// Any order.
    fn next_in_any_order(&self, route: &mut Route, choice: &mut dyn Choice) -> Hop {
        let target = self.switch_of(route.dst);
        let rows = &self.dimensions[..];
        let mut open = [0u8; 32];
        let mut count = 0;
        for (at, row) in rows.iter().enumerate() {
            if row.coordinate(route.at) != row.coordinate(target) {
                open[count as usize] = at as u8;
                count += 1;
            }
        }
        let link = |way: u32| {
            let row = &rows[usize::from(open[way as usize])];
            row.link(route.at, row.coordinate(route.at), row.coordinate(target))
        };
        let way = match count {
            0 => return Hop::to_node(route.dst),
            1 => 0,
            n => choice.among(route, n, 0, &link),
        };
        let (link, row) = (link(way), &rows[usize::from(open[way as usize])]);
        route.at = row.neighbour(route.at, row.coordinate(route.at), row.coordinate(target));
        let taken = TAKEN.get(route.state);
        TAKEN.set(&mut route.state, taken + 1);
        Hop::to_switch(link, taken)
    }
}

impl Topology for HyperX {
    fn name(&self) -> String {
        grid_name("hyperx", &self.sizes(), self.per_router.get())
    }

    fn wiring(&self) -> Wiring {
        let mut wiring = Wiring::new(self.nodes, self.routers, |node| self.switch_of(node));
        for row in &self.dimensions {
            for router in 0..self.routers {
                let own = row.coordinate(router);
                for to in (0..row.size).filter(|&to| to != own) {
                    wiring.link(router, row.neighbour(router, own, to), LinkClass::LOCAL);
                }
            }
        }
        wiring
    }

    /// Coordinates: `(3,0)`.
    fn switch_name(&self, router: u32) -> String {
        let coordinates: Vec<String> =
            self.dimensions.iter().map(|row| row.coordinate(router).to_string()).collect();
        format!("({})", coordinates.join(","))
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        self.dimensions.iter().filter(|row| row.coordinate(from) != row.coordinate(to)).count() as u32
    }

    #[inline]
    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        match policy.adaptivity {
            Adaptivity::Deterministic => self.next_in_order(route),
            Adaptivity::Oblivious | Adaptivity::Adaptive => self.next_in_any_order(route, choice),
        }
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        match policy.adaptivity {
            Adaptivity::Deterministic => policy.phases(),
            Adaptivity::Oblivious | Adaptivity::Adaptive => self.dimensions.len() as u32,
        }
    }

    fn minimal_routing(&self) -> &'static str {
        "dor"
    }

    fn intermediate(&self, from: u32, to: u32, _: Policy, draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        other_than(from, to, self.routers, draw)
    }

    fn dimensions(&self) -> Vec<u32> {
        self.sizes()
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        Level::of_dimensions(self.dimensions.iter().map(|row| row.first), wiring)
    }

    /// Across the dimension that needs the fewest links, if all sizes are even.
    fn bisection(&self) -> Option<u32> {
        let across = self.dimensions.iter().map(|row| row.size / 2 * (self.routers / 2));
        let all_even = self.dimensions.iter().all(|row| row.size.is_multiple_of(2));
        all_even.then(|| across.min().map(|links| links.min(self.nodes / 2)))?
    }

    fn drawing(&self, _: &Wiring) -> Drawing {
        Drawing::grid(&self.sizes(), self.routers)
    }
}

impl Row {
    /// The coordinate of `router` in this dimension.
    #[inline(always)]
    fn coordinate(&self, router: u32) -> u32 {
        self.divide_by_size.remainder(self.divide_by_stride.quotient(router))
    }

    /// The router with coordinate `to` in the row of `router`, whose coordinate is `own`.
    #[inline(always)]
    fn neighbour(&self, router: u32, own: u32, to: u32) -> u32 {
        router - own * self.stride + to * self.stride
    }

    /// The link from `router` to coordinate `to`.
    #[inline(always)]
    fn link(&self, router: u32, own: u32, to: u32) -> LinkId {
        LinkId(self.first + router * (self.size - 1) + to - u32::from(to > own))
    }
}
