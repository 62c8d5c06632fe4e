//! Distances between nodes: by formula for a few networks, or from a file.

use std::path::Path;

use crate::error::{Error, Problem};
use crate::input::file::read_text;

/// Distances between the nodes of a network.
pub trait Distances: Sync {
    /// Number of nodes.
    fn nodes(&self) -> u32;

    /// Hops (links) between two nodes below [`Self::nodes`]: symmetric, and 0 from a node to itself.
    fn hops(&self, a: u32, b: u32) -> u32;

    /// All nodes in an order in which halves, quarters, … are compact parts of the network. The default
    /// derives it from the distances, in time nodes × log(nodes).
    fn order(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = (0..self.nodes()).collect();
        order_by_distance(self, &mut nodes);
        nodes
    }
}

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

/// Most nodes of a network by formula: do not allocate memory on a mistyped dimension's word.
const MOST_NODES: u32 = 1 << 24;

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
    ///
    /// # Errors
    /// There is no dimension, a dimension is 0, or there are more than 2^24 nodes.
    pub fn new(dimensions: Vec<u32>) -> Result<Self, Error> {
        let nodes = dimensions.iter().try_fold(1u32, |nodes, &size| nodes.checked_mul(size));
        let Some(nodes) = nodes.filter(|&nodes| nodes > 0 && nodes <= MOST_NODES && !dimensions.is_empty())
        else {
            return Err(Problem::Syntax(format!("{dimensions:?} are no dimensions of a torus")).into());
        };
        let mut coordinates = Vec::with_capacity(nodes as usize * dimensions.len());
        for node in 0..nodes {
            let mut rest = node;
            for &size in &dimensions {
                coordinates.push(rest % size);
                rest /= size;
            }
        }
        Ok(Torus { dimensions, coordinates, nodes })
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

/// The nodes of a torus or mesh in boxes, cut in halves across their longest side; the first dimension varies
/// fastest.
pub fn box_order(dimensions: &[u32]) -> Vec<u32> {
    let mut order = Vec::new();
    let mut boxes = vec![dimensions.iter().map(|&size| 0..size).collect::<Vec<_>>()];
    while let Some(mut first) = boxes.pop() {
        let longest = (0..first.len()).max_by_key(|&d| (first[d].len(), std::cmp::Reverse(d))).unwrap_or(0);
        let side = first.get(longest).cloned().unwrap_or(0..1);
        if side.len() <= 1 {
            let at = first.iter().zip(dimensions).rev();
            order.push(at.fold(0, |node, (at, &size)| node * size + at.start));
            continue;
        }
        let middle = side.start + (side.end - side.start).div_ceil(2);
        let mut second = first.clone();
        first[longest] = side.start..middle;
        second[longest] = middle..side.end;
        boxes.extend([second, first]);
    }
    order
}

/// Distances from a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DistanceTable {
    nodes: u32,
    hops: Vec<u32>,
}

impl DistanceTable {
    /// Reads a square of numbers, one row per line, separated by spaces or commas; `#` starts a comment.
    ///
    /// # Errors
    /// The file cannot be read, is not square and symmetric, or has a number other than 0 on its diagonal;
    /// with the line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?, &path.display().to_string())
    }

    /// Parses a table; `name` is the file in errors.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let mut hops = Vec::new();
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let wrong = |why: String| Problem::Syntax(why).at(name, at + 1);
            let before = hops.len();
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty()) {
                hops.push(word.parse().map_err(|_| wrong(format!("{word:?} is not a distance")))?);
            }
            let (found, expected) =
                (hops.len() - before, lines.first().map_or(hops.len(), |&(_, width)| width));
            if found == 0 {
                continue;
            }
            if found != expected {
                return Err(wrong(format!("a row of {found} distances, and the first one has {expected}")));
            }
            lines.push((at + 1, found));
        }
        let Some(&(last, width)) = lines.last() else {
            return Err(Problem::NoNodes.at(name, 1));
        };
        if lines.len() != width {
            let why = format!("{} rows of {width} distances: the table is not square", lines.len());
            return Err(Problem::Syntax(why).at(name, last));
        }
        for a in 0..width {
            for b in 0..=a {
                let (there, back) = (hops[a * width + b], hops[b * width + a]);
                if there != back || a == b && there != 0 {
                    let why = format!("nodes {b} and {a} are {back} hops apart, and {there} the other way");
                    return Err(Problem::Syntax(why).at(name, lines[a].0));
                }
            }
        }
        Ok(DistanceTable { nodes: width as u32, hops })
    }
}

impl Distances for DistanceTable {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        self.hops[a as usize * self.nodes as usize + b as usize]
    }
}

/// Sorts nodes by their distances to two distant nodes, then each half likewise.
fn order_by_distance(network: &(impl Distances + ?Sized), nodes: &mut [u32]) {
    if nodes.len() <= 2 {
        return;
    }
    let farthest =
        |from: u32| nodes.iter().copied().max_by_key(|&node| network.hops(from, node)).unwrap_or(from);
    let first = farthest(nodes[0]);
    let second = farthest(first);
    nodes.sort_by_cached_key(|&node| {
        i64::from(network.hops(first, node)) - i64::from(network.hops(second, node))
    });
    let (left, right) = nodes.split_at_mut(nodes.len().div_ceil(2));
    order_by_distance(network, left);
    order_by_distance(network, right);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(network: &impl Distances) {
        let mut order = network.order();
        order.sort_unstable();
        assert_eq!(order, (0..network.nodes()).collect::<Vec<_>>(), "the order has every node once");
        for a in 0..network.nodes() {
            assert_eq!(network.hops(a, a), 0);
            for b in 0..network.nodes() {
                assert_eq!(network.hops(a, b), network.hops(b, a));
            }
        }
    }

    #[test]
    fn formulas() {
        let torus = Torus::new(vec![4, 3]).unwrap();
        assert_eq!((torus.hops(0, 3), torus.hops(0, 6), torus.hops(1, 9)), (1, 3, 1));
        assert_eq!(&torus.order()[..2], [0, 4], "halves of the longest side first");
        let tree = FatTree { nodes: 10, per_leaf: 4 };
        assert_eq!((tree.hops(0, 3), tree.hops(3, 4)), (2, 4));
        check(&torus);
        check(&tree);
        check(&SingleSwitch { nodes: 5 });
        check(&DistanceTable::parse("0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0", "line").unwrap());
        assert!(
            Torus::new(vec![]).is_err()
                && Torus::new(vec![0]).is_err()
                && Torus::new(vec![1 << 20; 2]).is_err()
        );
    }

    #[test]
    fn tables_from_files() {
        let table = DistanceTable::parse("# three\n0 1,2\n1 0 1\n\n2 1 0 # last\n", "d").unwrap();
        assert_eq!((table.nodes(), table.hops(0, 2)), (3, 2));
        let error = |text| DistanceTable::parse(text, "d").unwrap_err().to_string();
        assert!(error("0 1\n1 x").starts_with("d:2: \"x\" is not a distance"));
        assert!(error("0 1\n1").starts_with("d:2: a row of 1"));
        assert!(error("0 1\n\n").starts_with("d:1: 1 rows of 2"));
        assert!(error("0 1\n2 0").starts_with("d:2: nodes 0 and 1"));
        assert!(error("1").starts_with("d:1: nodes 0 and 0"));
        assert!(error("").contains("no nodes"));
    }
}
