//! The least cut of a directed graph between a source and a sink, by Dinic's algorithm (Soviet Mathematics Doklady 11, 1970).

use std::collections::VecDeque;

/// Capacity of an edge that no cut crosses; a sum of many of them does not overflow.
pub(super) const UNBOUNDED: i64 = i64::MAX >> 8;

const NONE: u32 = u32::MAX;

/// A graph with capacities. Edges 2n and 2n+1 are the two directions of one.
pub(super) struct Network {
    /// First edge of each node, [`NONE`] without.
    first: Vec<u32>,
    /// The next edge of the same node.
    next: Vec<u32>,
    to: Vec<u32>,
    /// What can still flow.
    left: Vec<i64>,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Self {
        Self { first: vec![NONE; nodes], next: Vec::new(), to: Vec::new(), left: Vec::new() }
    }

    /// Joins two nodes, with a capacity in each direction.
    pub(super) fn join(&mut self, from: u32, to: u32, there: i64, back: i64) {
        if from == to {
            return;
        }
        for (node, other, capacity) in [(from, to, there), (to, from, back)] {
            self.next.push(std::mem::replace(&mut self.first[node as usize], self.to.len() as u32));
            self.to.push(other);
            self.left.push(capacity);
        }
    }

    /// Which nodes are on the source's side of the least cut that is nearest to the source.
    pub(super) fn cut(mut self, source: u32, sink: u32) -> Vec<bool> {
        loop {
            let level = self.levels(source);
            if level[sink as usize] == NONE {
                return level.into_iter().map(|level| level != NONE).collect();
            }
            self.augment(source, sink, &level);
        }
    }

    /// The number of edges from the source to each node along which something can still flow.
    fn levels(&self, source: u32) -> Vec<u32> {
        let mut level = vec![NONE; self.first.len()];
        level[source as usize] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            let mut edge = self.first[node as usize];
            while edge != NONE {
                let to = self.to[edge as usize];
                if self.left[edge as usize] > 0 && level[to as usize] == NONE {
                    level[to as usize] = level[node as usize] + 1;
                    queue.push_back(to);
                }
                edge = self.next[edge as usize];
            }
        }
        level
    }

    /// Adds flow along shortest paths until none is left.
    fn augment(&mut self, source: u32, sink: u32, level: &[u32]) {
        // The edge of each node that is tried next.
        let mut edges = self.first.clone();
        let mut path: Vec<u32> = Vec::new();
        loop {
            let node = path.last().map_or(source, |&edge| self.to[edge as usize]);
            if node == sink {
                let least = path.iter().map(|&edge| self.left[edge as usize]).min().unwrap_or(0);
                for &edge in &path {
                    self.left[edge as usize] -= least;
                    self.left[edge as usize ^ 1] += least;
                }
                // From the first edge that is full on, the path is another.
                let full = path.iter().position(|&edge| self.left[edge as usize] == 0);
                path.truncate(full.unwrap_or(0));
                continue;
            }
            let edge = edges[node as usize];
            if edge == NONE {
                // Nothing flows over this node any more.
                match path.pop() {
                    Some(edge) => {
                        let from = self.to[edge as usize ^ 1] as usize;
                        edges[from] = self.next[edge as usize];
                    }
                    None => return,
                }
            } else if self.left[edge as usize] > 0
                && level[self.to[edge as usize] as usize] == level[node as usize] + 1
            {
                path.push(edge);
            } else {
                edges[node as usize] = self.next[edge as usize];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against all cuts of small graphs.
        #[test]
        fn no_cut_is_less(edges in prop::collection::vec((0u32..7, 0u32..7, 0i64..5, 0i64..3), 0..16)) {
            let mut network = Network::new(7);
            for &(from, to, there, back) in &edges {
                network.join(from, to, there, back);
            }
            let capacity = |side: &[bool]| -> i64 {
                edges.iter().map(|&(from, to, there, back)| match (side[from as usize], side[to as usize]) {
                    (true, false) => there,
                    (false, true) => back,
                    _ => 0,
                }).sum()
            };
            let found = network.cut(0, 6);
            prop_assert!(found[0] && !found[6]);
            let least = (0..1u32 << 5).map(|bits| {
                let side: Vec<bool> = (0..7).map(|node| node == 0 || (node < 6 && bits >> (node - 1) & 1 == 1)).collect();
                capacity(&side)
            }).min();
            prop_assert_eq!(Some(capacity(&found)), least);
        }
    }
}
