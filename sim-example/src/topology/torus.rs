//! Tori and meshes of any number of dimensions: each router has links to its neighbours in each dimension; in
//! a torus the rows wrap around.
//!
//! Router `r` has the coordinates `r mod k₀, r / k₀ mod k₁, …`: the first dimension varies fastest. With T
//! nodes per router, node `n` is at router `n / T`. In a torus, a dimension of size 2 has one cable between
//! its two routers, as in a mesh; a dimension of size 1 has none.
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
//! **Classes by hops**, on request: a route with `h` links left, in dimension order those of the current dimension, uses class `h - 1`. All
//! routers are then alike, and adaptive routes are free to go in any direction.
//!
//! Sources: W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
//! Transactions on Computers, 1987; D. H. Linder, J. C. Harden, "An adaptive and fault tolerant wormhole routing strategy
//! for k-ary n-cubes", IEEE Transactions on Computers, 1991; K. D. Günther, "Prevention of deadlocks in packet-switched data
//! transport systems", IEEE Transactions on Communications, 1981 (classes by hops).

use placement::optimise::box_order;

use super::drawing::Drawing;
use super::error::TopologyProblem;
use super::form::{Form, Parsed, grid, grid_name};
use super::interface::{Level, Topology};
use super::route::{Adaptivity, Choice, Field, Hop, Policy, Route, other_than};
use super::wiring::{LinkClass, LinkId, Wiring, checked_links, product};
use crate::division::Divisor;

pub(super) const FORMS: &[Form] = &[
    Form {
        kind: "torus",
        form: "torus:AxBx…[:NODES]",
        example: "torus:4x4x2, or with nodes per router, torus:4x4x2:2",
        help: "torus of any number of dimensions, NODES (1) per router",
        parse: |text| parse(text, true),
    },
    Form {
        kind: "mesh",
        form: "mesh:AxBx…[:NODES]",
        example: "mesh:4x4, or with nodes per router, mesh:4x4:2",
        help: "mesh, likewise",
        parse: |text| parse(text, false),
    },
];

fn parse(text: &str, wraps: bool) -> Option<Parsed> {
    let (sizes, per_router) = grid(text)?;
    Some(Torus::new(&sizes, per_router, wraps).map(Into::into))
}

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

/// Whether the virtual network is chosen; then its directions in all dimensions but the first, one bit each,
/// the number of times the route has wrapped around, and its direction in the first dimension.
const CHOSEN: Field<0, 1> = Field;
const DIRECTIONS: Field<1, 31> = Field;
const WRAPPED: Field<32, 6> = Field;
const FIRST: Field<38, 1> = Field;

/// A torus or mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Torus {
    nodes: u32,
    routers: u32,
    wraps: bool,
    per_router: Divisor,
    dimensions: Vec<Dimension>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimension {
    size: u32,
    /// Whether the rows wrap around: never in a mesh, nor with one or two routers.
    wraps: bool,
    /// Product of the sizes of the dimensions before: the distance of neighbours in router numbers.
    stride: u32,
    divide_by_stride: Divisor,
    divide_by_size: Divisor,
    /// First link of the dimension; see [`Dimension::link`].
    first: u32,
}

impl Torus {
    /// A torus (`wraps`) or mesh of these sizes, with `per_router` nodes per router.
    fn new(sizes: &[u32], per_router: u32, wraps: bool) -> Result<Self, TopologyProblem> {
        if sizes.contains(&0) || per_router == 0 {
            return Err(TopologyProblem::Zero);
        }
        if sizes.len() > 32 {
            return Err(TopologyProblem::TooLarge);
        }
        let routers = product(sizes.iter().copied())?;
        let nodes = product([routers, per_router])?;
        let mut links = u64::from(nodes) * 2;
        let (mut dimensions, mut stride) = (Vec::with_capacity(sizes.len()), 1);
        for &size in sizes {
            if size > 1 << 16 {
                return Err(TopologyProblem::TooLarge);
            }
            let first = checked_links(links)?;
            let wraps = wraps && size > 2;
            let (divide_by_stride, divide_by_size) = (Divisor::new(stride), Divisor::new(size));
            dimensions.push(Dimension { size, wraps, stride, divide_by_stride, divide_by_size, first });
            stride *= size;
            let cables = if wraps { size } else { size - 1 };
            links += 2 * u64::from(routers / size) * u64::from(cables);
        }
        checked_links(links)?;
        Ok(Self { nodes, routers, wraps, per_router: Divisor::new(per_router), dimensions })
    }

    /// The router of `node`.
    #[inline(always)]
    fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }

    /// The sizes of the dimensions.
    fn sizes(&self) -> Vec<u32> {
        self.dimensions.iter().map(|dimension| dimension.size).collect()
    }

    /// Dimension order.
    #[inline]
    fn next_in_order(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        let dimensions = &self.dimensions[..];
        let mut state = route.state;
        if route.via == route.at {
            route.via = Route::NO_DETOUR;
            PHASE.set(&mut state, 1);
            ENTERED.set(&mut state, 0);
            STEPS.set(&mut state, 0);
        }
        let mut steps = STEPS.get(state);
        if steps == 0 {
            let target = if route.via == Route::NO_DETOUR { self.switch_of(route.dst) } else { route.via };
            let mut entered = ENTERED.get(state);
            while steps == 0 {
                let Some(dimension) = dimensions.get(entered as usize) else {
                    return Hop::to_node(route.dst);
                };
                entered += 1;
                let coordinate = dimension.coordinate(route.at);
                let way;
                (steps, way) = dimension.way(coordinate, dimension.coordinate(target));
                if steps == 0 {
                    continue;
                }
                let positive = match way {
                    Way::Up => true,
                    Way::Down => false,
                    // Routes with detours are random already; a fixed rule would only make routers unlike.
                    Way::Either if policy.detours => choice.draw(route, 2, route.at) == 0,
                    Way::Either => {
                        let link = |way: u32| dimension.link(route.at, coordinate, way == 0);
                        choice.among(route, 2, coordinate % 2, &link) == 0
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
        let link = dimension.link(route.at, coordinate, positive);
        let coordinate;
        (route.at, coordinate) = dimension.neighbour(route.at, COORDINATE.get(state), positive);
        COORDINATE.set(&mut state, coordinate);
        STEPS.set(&mut state, steps - 1);
        route.state = state;
        let class = match policy.classes_by_hops {
            true => steps - 1,
            false => u32::from(self.wraps) * INSIDE.get(state),
        };
        Hop::to_switch(link, PHASE.get(state) * self.classes_of_a_phase(policy) + class)
    }

    /// Minimal adaptive.
    fn next_adaptive(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        let dimensions = &self.dimensions[..];
        let target = self.switch_of(route.dst);
        // Unfinished dimensions, with coordinate and direction.
        let mut open = [(0u8, 0u16, false); 32];
        let (mut count, mut left) = (0, 0);
        let is_chosen = CHOSEN.get(route.state) == 1;
        let negative = DIRECTIONS.get(route.state) << 1 | FIRST.get(route.state);
        for (at, dimension) in dimensions.iter().enumerate() {
            let coordinate = dimension.coordinate(route.at);
            let (steps, way) = dimension.way(coordinate, dimension.coordinate(target));
            if steps > 0 {
                let positive = match way {
                    Way::Up => true,
                    Way::Down => false,
                    Way::Either if is_chosen => negative >> at & 1 == 0,
                    Way::Either => {
                        let link = |way: u32| dimension.link(route.at, coordinate, way == 0);
                        choice.among(route, 2, 0, &link) == 0
                    }
                };
                open[count as usize] = (at as u8, coordinate as u16, positive);
                count += 1;
                left += steps;
            }
        }
        if !is_chosen {
            let negative = open[..count as usize].iter().filter(|&&(.., positive)| !positive);
            let negative: u32 = negative.map(|&(at, ..)| 1u32 << at).sum();
            FIRST.set(&mut route.state, negative & 1);
            DIRECTIONS.set(&mut route.state, negative >> 1);
            CHOSEN.set(&mut route.state, 1);
        }
        let link = |way: u32| {
            let (at, coordinate, positive) = open[way as usize];
            dimensions[usize::from(at)].link(route.at, coordinate.into(), positive)
        };
        let way = match count {
            0 => return Hop::to_node(route.dst),
            1 => 0,
            n => choice.among(route, n, 0, &link),
        };
        let (at, coordinate, positive) = open[way as usize];
        let (at, coordinate) = (usize::from(at), u32::from(coordinate));
        let (link, wrapped) = (link(way), WRAPPED.get(route.state));
        let next;
        (route.at, next) = dimensions[at].neighbour(route.at, coordinate, positive);
        if (next > coordinate) != positive {
            WRAPPED.set(&mut route.state, wrapped + 1);
        }
        let networks = 1 << (dimensions.len() - 1);
        let class = match policy.classes_by_hops {
            true => left - 1,
            false => DIRECTIONS.get(route.state) + networks * wrapped,
        };
        Hop::to_switch(link, class)
    }

    /// Classes of virtual channels without a detour.
    #[inline]
    fn classes_of_a_phase(&self, policy: Policy) -> u32 {
        let longest = self.dimensions.iter().map(|dimension| dimension.longest());
        match (policy.adaptivity, policy.classes_by_hops) {
            (Adaptivity::Adaptive, true) => longest.sum::<u32>().max(1),
            (Adaptivity::Adaptive, false) => {
                let wrapping = self.dimensions.iter().filter(|dimension| dimension.wraps).count() as u32;
                let networks = 1u32.checked_shl(self.dimensions.len() as u32 - 1);
                networks.map_or(u32::MAX, |networks| networks.saturating_mul(wrapping + 1))
            }
            (Adaptivity::Deterministic | Adaptivity::Oblivious, true) => longest.max().unwrap_or(0).max(1),
            (Adaptivity::Deterministic | Adaptivity::Oblivious, false) => 1 + u32::from(self.wraps),
        }
    }
}

impl Topology for Torus {
    fn name(&self) -> String {
        grid_name(if self.wraps { "torus" } else { "mesh" }, &self.sizes(), self.per_router.get())
    }

    fn wiring(&self) -> Wiring {
        let mut wiring = Wiring::new(self.nodes, self.routers, |node| self.switch_of(node));
        for dimension in &self.dimensions {
            for cable in 0..self.routers / dimension.size * dimension.cables() {
                let (row, coordinate) = (cable / dimension.cables(), cable % dimension.cables());
                let (above, inside) = (row / dimension.stride, row % dimension.stride);
                let router = (above * dimension.size + coordinate) * dimension.stride + inside;
                let (next, _) = dimension.neighbour(router, coordinate, true);
                wiring.cable(router, next, LinkClass::LOCAL);
            }
        }
        wiring
    }

    /// Coordinates: `(3,0,1)`.
    fn switch_name(&self, router: u32) -> String {
        let coordinates: Vec<String> =
            self.dimensions.iter().map(|d| d.coordinate(router).to_string()).collect();
        format!("({})", coordinates.join(","))
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        self.dimensions.iter().map(|d| d.way(d.coordinate(from), d.coordinate(to)).0).sum()
    }

    #[inline]
    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        match policy.adaptivity {
            Adaptivity::Adaptive => self.next_adaptive(route, policy, choice),
            Adaptivity::Deterministic | Adaptivity::Oblivious => self.next_in_order(route, policy, choice),
        }
    }

    fn channel_classes(&self, policy: Policy, _: LinkClass) -> u32 {
        policy.phases().saturating_mul(self.classes_of_a_phase(policy))
    }

    fn can_number_classes_by_hops(&self) -> bool {
        true
    }

    fn minimal_routing(&self) -> &'static str {
        "dor"
    }

    fn ties_alone_differ(&self) -> bool {
        true
    }

    fn intermediate(&self, from: u32, to: u32, _: Policy, draw: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        other_than(from, to, self.routers, draw)
    }

    fn dimensions(&self) -> Vec<u32> {
        self.sizes()
    }

    fn order(&self, _: u32) -> Vec<u32> {
        box_order(&[&[self.per_router.get()], &self.sizes()[..]].concat())
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        Level::of_dimensions(self.dimensions.iter().map(|dimension| dimension.first), wiring)
    }

    /// Across the longest dimension, if that is possible.
    fn bisection(&self) -> Option<u32> {
        let longest = self.dimensions.iter().max_by_key(|dimension| dimension.size)?;
        let rings = if longest.wraps { 2 } else { 1 };
        longest.size.is_multiple_of(2).then(|| (self.routers / longest.size * rings).min(self.nodes / 2))
    }

    fn drawing(&self, _: &Wiring) -> Drawing {
        Drawing::grid(&self.sizes(), self.routers)
    }
}

/// The shorter direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Positive.
    Up,
    /// Negative.
    Down,
    /// Both directions are equally long.
    Either,
}

impl Dimension {
    /// The steps of the longest of the shortest routes.
    fn longest(&self) -> u32 {
        if self.wraps { self.size / 2 } else { self.size - 1 }
    }

    fn cables(&self) -> u32 {
        if self.wraps { self.size } else { self.size - 1 }
    }

    /// The coordinate of `router` in this dimension.
    #[inline(always)]
    fn coordinate(&self, router: u32) -> u32 {
        self.divide_by_size.remainder(self.divide_by_stride.quotient(router))
    }

    /// Number of steps from coordinate `from` to `to`, and their direction.
    #[inline(always)]
    fn way(&self, from: u32, to: u32) -> (u32, Way) {
        let (distance, way) = if to >= from { (to - from, Way::Up) } else { (from - to, Way::Down) };
        if !self.wraps || 2 * distance < self.size {
            return (distance, way);
        }
        let around = match way {
            _ if 2 * distance == self.size => Way::Either,
            Way::Up => Way::Down,
            _ => Way::Up,
        };
        (self.size - distance, around)
    }

    /// The link from `router`, at `coordinate`, to its neighbour. Cable `c` of the row joins coordinates `c`
    /// and `c + 1`; its link in the positive direction comes first.
    #[inline(always)]
    fn link(&self, router: u32, coordinate: u32, positive: bool) -> LinkId {
        if self.wraps {
            // A row has as many cables as routers, so the only division is by the stride.
            let (above, inside) = self.divide_by_stride.divide(router);
            let row = (above - coordinate) * self.stride + inside * self.size;
            let cable = match positive {
                true => coordinate,
                false if coordinate == 0 => self.size - 1,
                false => coordinate - 1,
            };
            return LinkId(self.first + 2 * (row + cable) + u32::from(!positive));
        }
        let (above, inside) = self.divide_by_stride.divide(router);
        let row = self.divide_by_size.quotient(above) * self.stride + inside;
        let cable = if positive { coordinate } else { coordinate - 1 };
        LinkId(self.first + 2 * (row * (self.size - 1) + cable) + u32::from(!positive))
    }

    /// The neighbour of `router`, which is at `coordinate`, and the neighbour's coordinate.
    #[inline(always)]
    fn neighbour(&self, router: u32, coordinate: u32, positive: bool) -> (u32, u32) {
        match positive {
            true if coordinate + 1 == self.size => (router - coordinate * self.stride, 0),
            true => (router + self.stride, coordinate + 1),
            false if coordinate == 0 => (router + (self.size - 1) * self.stride, self.size - 1),
            false => (router - self.stride, coordinate - 1),
        }
    }
}
