//! Tori and meshes of any number of dimensions: each router has links to its neighbours in each dimension; in
//! a torus the rows wrap around.
//!
//! Router `r` has the coordinates `r mod k₀, r / k₀ mod k₁, …`: the first dimension varies fastest. With T
//! nodes per router, node `n` is at router `n / T`. In a torus, a dimension of size 2 has one cable between
//! its two routers, as in a mesh; a dimension of size 1 has none.

use super::TopologyProblem;
use super::graph::{Graph, LinkClass, LinkId, checked_links, product};
use crate::division::Divisor;

/// A torus or mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    nodes: u32,
    routers: u32,
    links: u32,
    wraps: bool,
    per_router: Divisor,
    dimensions: Vec<Dimension>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) size: u32,
    /// Whether the rows wrap around: never in a mesh, nor with one or two routers.
    pub(crate) wraps: bool,
    /// Product of the sizes of the dimensions before: the distance of neighbours in router numbers.
    pub(crate) stride: u32,
    divide_by_stride: Divisor,
    divide_by_size: Divisor,
    /// First link of the dimension; see [`Dimension::link`].
    first: u32,
}

impl Torus {
    /// A torus (`wraps`) or mesh of these sizes, with `per_router` nodes per router.
    pub(super) fn new(sizes: &[u32], per_router: u32, wraps: bool) -> Result<Self, TopologyProblem> {
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
        let links = checked_links(links)?;
        Ok(Self { nodes, routers, links, wraps, per_router: Divisor::new(per_router), dimensions })
    }

    pub(super) fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.nodes, self.routers, self.links, |node| self.switch_of(node));
        for dimension in &self.dimensions {
            for cable in 0..self.routers / dimension.size * dimension.cables() {
                let (row, coordinate) = (cable / dimension.cables(), cable % dimension.cables());
                let (above, inside) = (row / dimension.stride, row % dimension.stride);
                let router = (above * dimension.size + coordinate) * dimension.stride + inside;
                let (next, _) = dimension.neighbour(router, coordinate, true);
                graph.cable(router, next, LinkClass::LOCAL);
            }
        }
        graph
    }

    /// Whether this is a torus, not a mesh.
    pub(crate) fn wraps(&self) -> bool {
        self.wraps
    }

    /// The dimensions, fastest varying first.
    pub(crate) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The router of `node`.
    #[inline(always)]
    pub(crate) fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }

    /// Links on a shortest route between two routers.
    pub(crate) fn hops(&self, from: u32, to: u32) -> u32 {
        self.dimensions.iter().map(|d| d.way(d.coordinate(from), d.coordinate(to)).0).sum()
    }

    /// Coordinates: `(3,0,1)`.
    pub(super) fn switch_name(&self, router: u32) -> String {
        let coordinates: Vec<String> =
            self.dimensions.iter().map(|d| d.coordinate(router).to_string()).collect();
        format!("({})", coordinates.join(","))
    }
}

/// The shorter direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Positive.
    Up,
    /// Negative.
    Down,
    /// Both directions are equally long.
    Either,
}

impl Dimension {
    fn cables(&self) -> u32 {
        if self.wraps { self.size } else { self.size - 1 }
    }

    /// The coordinate of `router` in this dimension.
    #[inline(always)]
    pub(crate) fn coordinate(&self, router: u32) -> u32 {
        self.divide_by_size.remainder(self.divide_by_stride.quotient(router))
    }

    /// Number of steps from coordinate `from` to `to`, and their direction.
    #[inline(always)]
    pub(crate) fn way(&self, from: u32, to: u32) -> (u32, Way) {
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
    pub(crate) fn link(&self, router: u32, coordinate: u32, positive: bool) -> LinkId {
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
    pub(crate) fn neighbour(&self, router: u32, coordinate: u32, positive: bool) -> (u32, u32) {
        match positive {
            true if coordinate + 1 == self.size => (router - coordinate * self.stride, 0),
            true => (router + self.stride, coordinate + 1),
            false if coordinate == 0 => (router + (self.size - 1) * self.stride, self.size - 1),
            false => (router - self.stride, coordinate - 1),
        }
    }
}
