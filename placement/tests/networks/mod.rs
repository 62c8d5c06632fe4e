//! Networks whose distances are known by formula, for tests and the example of the optimiser.

#![allow(dead_code, unreachable_pub, reason = "each program uses some of them")]

use placement::optimise::{Distances, box_order};

/// All nodes on one switch: 2 hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SingleSwitch {
    /// Number of nodes.
    pub nodes: u32,
}

impl Distances for SingleSwitch {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        if a == b { 0 } else { 2 }
    }

    fn order(&self) -> Vec<u32> {
        (0..self.nodes).collect()
    }
}

/// A fat tree of two levels: 2 hops within a leaf switch, else 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FatTree {
    /// Number of nodes.
    pub nodes: u32,
    /// Consecutive nodes per leaf switch; at least 1.
    pub per_leaf: u32,
}

impl Distances for FatTree {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        let leaf = self.per_leaf.max(1);
        match (a == b, a / leaf == b / leaf) {
            (true, _) => 0,
            (_, true) => 2,
            _ => 4,
        }
    }

    fn order(&self) -> Vec<u32> {
        (0..self.nodes).collect()
    }
}

/// A torus with a node at each router: the hops between routers, in the shorter direction of each ring. The
/// first dimension varies fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torus {
    dimensions: Vec<u32>,
    /// Coordinates of each node: computing them for each distance would take most of a search.
    coordinates: Vec<u32>,
    nodes: u32,
}

impl Torus {
    /// A torus of these dimensions.
    pub fn new(dimensions: Vec<u32>) -> Self {
        let nodes = dimensions.iter().product();
        let mut coordinates = Vec::with_capacity(nodes as usize * dimensions.len());
        for node in 0..nodes {
            let mut rest = node;
            for &size in &dimensions {
                coordinates.push(rest % size);
                rest /= size;
            }
        }
        Torus { dimensions, coordinates, nodes }
    }
}

impl Distances for Torus {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        let of =
            |node: u32| &self.coordinates[node as usize * self.dimensions.len()..][..self.dimensions.len()];
        let ring = |((&a, &b), &size): ((&u32, &u32), &u32)| {
            let apart = a.abs_diff(b);
            apart.min(size - apart)
        };
        of(a).iter().zip(of(b)).zip(&self.dimensions).map(ring).sum()
    }

    fn order(&self) -> Vec<u32> {
        box_order(&self.dimensions)
    }
}
