//! HyperX: a grid of routers of any number of dimensions, each with a link to all routers that differ in one
//! coordinate. With equal sizes this is the flattened butterfly, with one dimension a full mesh.
//!
//! Router `r` has the coordinates `r mod S₀, r / S₀ mod S₁, …`; with T nodes per router, node `n` is at
//! router `n / T`.
//!
//! Sources: J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale networks", SC 2009; J. Kim,
//! W. J. Dally, D. Abts, "Flattened butterfly: a cost-efficient topology for high-radix networks", ISCA 2007.

use super::TopologyProblem;
use super::graph::{Graph, LinkClass, LinkId, checked_links, product};
use crate::division::Divisor;

/// A HyperX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperX {
    nodes: u32,
    routers: u32,
    links: u32,
    per_router: Divisor,
    dimensions: Vec<Row>,
}

/// A dimension; a row is a set of fully connected routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) size: u32,
    pub(crate) stride: u32,
    divide_by_stride: Divisor,
    divide_by_size: Divisor,
    /// First link of the dimension: each router has `size − 1`, in the order of the coordinates they lead to.
    first: u32,
}

impl HyperX {
    /// A HyperX of these sizes, with `per_router` nodes per router.
    pub(super) fn new(sizes: &[u32], per_router: u32) -> Result<Self, TopologyProblem> {
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
        let links = checked_links(links)?;
        Ok(Self { nodes, routers, links, per_router: Divisor::new(per_router), dimensions })
    }

    pub(super) fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.nodes, self.routers, self.links, |node| self.switch_of(node));
        for row in &self.dimensions {
            for router in 0..self.routers {
                let own = row.coordinate(router);
                for to in (0..row.size).filter(|&to| to != own) {
                    graph.link(router, row.neighbour(router, own, to), LinkClass::LOCAL);
                }
            }
        }
        graph
    }

    /// The dimensions, fastest varying first.
    pub(crate) fn dimensions(&self) -> &[Row] {
        &self.dimensions
    }

    /// The router of `node`.
    #[inline(always)]
    pub(crate) fn switch_of(&self, node: u32) -> u32 {
        self.per_router.quotient(node)
    }

    /// Links on a shortest route between two routers.
    pub(crate) fn hops(&self, from: u32, to: u32) -> u32 {
        self.dimensions.iter().filter(|row| row.coordinate(from) != row.coordinate(to)).count() as u32
    }

    /// Coordinates: `(3,0)`.
    pub(super) fn switch_name(&self, router: u32) -> String {
        let coordinates: Vec<String> =
            self.dimensions.iter().map(|row| row.coordinate(router).to_string()).collect();
        format!("({})", coordinates.join(","))
    }
}

impl Row {
    /// The coordinate of `router` in this dimension.
    #[inline(always)]
    pub(crate) fn coordinate(&self, router: u32) -> u32 {
        self.divide_by_size.remainder(self.divide_by_stride.quotient(router))
    }

    /// The router with coordinate `to` in the row of `router`, whose coordinate is `own`.
    #[inline(always)]
    pub(crate) fn neighbour(&self, router: u32, own: u32, to: u32) -> u32 {
        router - own * self.stride + to * self.stride
    }

    /// The link from `router` to coordinate `to`.
    #[inline(always)]
    pub(crate) fn link(&self, router: u32, own: u32, to: u32) -> LinkId {
        LinkId(self.first + router * (self.size - 1) + to - u32::from(to > own))
    }
}
