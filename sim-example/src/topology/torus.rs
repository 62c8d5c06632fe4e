//! The torus of any number of dimensions: a router a node, joined to its neighbours in each dimension, the last
//! of a row to the first.
//!
//! Node `n` has the coordinates `n mod d₀, n / d₀ mod d₁, …`: the first dimension varies fastest. A dimension of
//! size 2 has one cable between its two routers, one of size 1 none.
//!
//! Routing is dimension order, first dimension first, the shorter way round. Where both ways are equally
//! long (half of an even ring) a router of even coordinate sends in the positive direction and one of odd coordinate in
//! the negative one, so that the two directions share such traffic.

use crate::routing::{LinkId, Routing, Vertex};

use super::TopologyProblem;

/// A torus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    nodes: u32,
    links: u32,
    dimensions: Vec<Dimension>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimension {
    size: u32,
    /// Product of the sizes before: the distance of neighbours in node numbers.
    stride: u32,
    /// The first of the dimension's links. Router `r` has the links `first + 2r` in the positive and the next one in
    /// the negative direction; in a dimension of size 2 only the link `first + r`.
    first: u32,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub struct TorusWalk {
    at: u32,
    dst: u32,
    /// Steps left in the present dimension.
    steps: u32,
    /// The present coordinate in it.
    coordinate: u32,
    positive: bool,
    /// How many dimensions the way has entered; [`ARRIVED`] once it has left the last.
    entered: u8,
}

const ARRIVED: u8 = u8::MAX;

impl Torus {
    /// A torus of the given sizes.
    pub(super) fn new(sizes: &[u32]) -> Result<Self, TopologyProblem> {
        if sizes.contains(&0) {
            return Err(TopologyProblem::Zero);
        }
        if sizes.len() >= usize::from(ARRIVED) {
            return Err(TopologyProblem::TooLarge);
        }
        let too_large = TopologyProblem::TooLarge;
        let nodes = sizes.iter().try_fold(1u32, |a, &b| a.checked_mul(b)).ok_or(too_large)?;
        let mut stride = 1u32;
        let mut links = u64::from(nodes) * 2;
        let mut dimensions = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let first = u32::try_from(links).map_err(|_| too_large)?;
            dimensions.push(Dimension { size, stride, first });
            stride = stride.checked_mul(size).ok_or(too_large)?;
            links += u64::from(nodes) * u64::from((size - 1).min(2));
        }
        let links = u32::try_from(links).map_err(|_| too_large)?;
        Ok(Self { nodes, links, dimensions })
    }
}

impl Dimension {
    #[inline]
    fn coordinate(&self, router: u32) -> u32 {
        router / self.stride % self.size
    }

    /// How many steps from coordinate `from` to `to`, and whether in the positive direction.
    #[inline]
    fn way(&self, from: u32, to: u32) -> (u32, bool) {
        let ahead = if to >= from { to - from } else { to + self.size - from };
        let behind = self.size - ahead;
        match ahead.cmp(&behind) {
            std::cmp::Ordering::Less => (ahead, true),
            std::cmp::Ordering::Greater => (behind, false),
            std::cmp::Ordering::Equal => (ahead, from.is_multiple_of(2)),
        }
    }

    #[inline]
    fn link(&self, router: u32, positive: bool) -> LinkId {
        match self.size {
            2 => LinkId(self.first + router),
            _ => LinkId(self.first + 2 * router + u32::from(!positive)),
        }
    }

    /// The neighbour of `router`, which has `coordinate` here, and the neighbour's coordinate.
    #[inline]
    fn neighbour(&self, router: u32, coordinate: u32, positive: bool) -> (u32, u32) {
        match positive {
            true if coordinate + 1 == self.size => (router - coordinate * self.stride, 0),
            true => (router + self.stride, coordinate + 1),
            false if coordinate == 0 => (router + (self.size - 1) * self.stride, self.size - 1),
            false => (router - self.stride, coordinate - 1),
        }
    }
}

impl Routing for Torus {
    type Walk = TorusWalk;

    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn links(&self) -> u32 {
        self.links
    }

    #[inline]
    fn walk(&self, src: u32, dst: u32) -> TorusWalk {
        TorusWalk { at: src, dst, steps: 0, coordinate: 0, positive: true, entered: 0 }
    }

    #[inline]
    fn next(&self, walk: &mut TorusWalk) -> Option<LinkId> {
        if walk.entered == ARRIVED {
            return None;
        }
        while walk.steps == 0 {
            let Some(dimension) = self.dimensions.get(usize::from(walk.entered)) else {
                walk.entered = ARRIVED;
                return Some(LinkId::ejection(walk.dst));
            };
            walk.coordinate = dimension.coordinate(walk.at);
            (walk.steps, walk.positive) = dimension.way(walk.coordinate, dimension.coordinate(walk.dst));
            walk.entered += 1;
        }
        // Steps are left only in a dimension that was entered.
        let dimension = &self.dimensions[usize::from(walk.entered) - 1];
        let link = dimension.link(walk.at, walk.positive);
        (walk.at, walk.coordinate) = dimension.neighbour(walk.at, walk.coordinate, walk.positive);
        walk.steps -= 1;
        Some(link)
    }

    fn distance(&self, src: u32, dst: u32) -> u32 {
        let steps = |d: &Dimension| d.way(d.coordinate(src), d.coordinate(dst)).0;
        2 + self.dimensions.iter().map(steps).sum::<u32>()
    }

    fn ends(&self, link: LinkId) -> Option<(Vertex, Vertex)> {
        let router = |index| Vertex::Switch { level: 1, index };
        if link.0 >= self.links {
            return None;
        }
        if link.0 < 2 * self.nodes {
            let node = link.0 / 2;
            let (node, router) = (Vertex::Node(node), router(node));
            return Some(if link.0.is_multiple_of(2) { (node, router) } else { (router, node) });
        }
        let at = self.dimensions.partition_point(|d| d.first <= link.0).checked_sub(1)?;
        // Dimensions of size 1 share their first link with the next dimension.
        let dimension = self.dimensions[..=at].iter().rfind(|d| d.size > 1)?;
        let local = link.0 - dimension.first;
        let (from, positive) = match dimension.size {
            2 => (local, true),
            _ => (local / 2, local.is_multiple_of(2)),
        };
        let (to, _) = dimension.neighbour(from, dimension.coordinate(from), positive);
        Some((router(from), router(to)))
    }

    /// Routers are called by their coordinates: `(3,0,1)`.
    fn vertex_name(&self, vertex: Vertex) -> String {
        match vertex {
            Vertex::Node(node) => format!("node{node}"),
            Vertex::Switch { index, .. } => {
                let coordinates: Vec<String> =
                    self.dimensions.iter().map(|d| d.coordinate(index).to_string()).collect();
                format!("({})", coordinates.join(","))
            }
        }
    }
}
