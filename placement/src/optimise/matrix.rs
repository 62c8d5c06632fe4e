//! The communication matrix: sparse, built in one streaming pass.

/// Bytes between pairs of ranks, both directions together, as hops are symmetric; messages of a rank to
/// itself are ignored. Memory grows with the distinct pairs, not with the messages.
#[derive(Debug, Clone, Default)]
pub struct CommMatrix {
    ranks: u32,
    /// (low rank, high rank, bytes); the first `merged` pairs are sorted and distinct.
    pairs: Vec<(u32, u32, u64)>,
    merged: usize,
}

impl CommMatrix {
    /// An empty matrix of `ranks` ranks; messages of further ranks enlarge it.
    pub fn new(ranks: u32) -> Self {
        CommMatrix { ranks, ..CommMatrix::default() }
    }

    /// Adds a message, or several with `bytes` in total.
    pub fn push(&mut self, src: u32, dst: u32, bytes: u64) {
        self.ranks = self.ranks.max(src.saturating_add(1)).max(dst.saturating_add(1));
        if src == dst || bytes == 0 {
            return;
        }
        self.pairs.push((src.min(dst), src.max(dst), bytes));
        if self.pairs.len() >= 1024 + 2 * self.merged {
            self.merge();
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The distinct pairs, sorted: low rank, high rank, bytes of both directions.
    pub fn pairs(&mut self) -> &[(u32, u32, u64)] {
        self.merge();
        &self.pairs
    }

    fn merge(&mut self) {
        if self.merged == self.pairs.len() {
            return;
        }
        self.pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
        self.pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 = kept.2.saturating_add(next.2);
            }
            same
        });
        self.merged = self.pairs.len();
    }
}

/// A weighted graph of ranks, or of groups of ranks.
pub(super) struct CommGraph {
    /// First edge of each vertex, and one more at the end.
    starts: Vec<usize>,
    /// Neighbour, and weight in bytes.
    edges: Vec<(u32, f64)>,
}

impl CommGraph {
    /// From pairs; weights of repeated pairs add up.
    pub(super) fn new(vertices: usize, pairs: impl Iterator<Item = (u32, u32, f64)> + Clone) -> Self {
        let mut starts = vec![0; vertices + 1];
        for (a, b, _) in pairs.clone() {
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut edges = vec![(0, 0.0); starts[vertices]];
        for (a, b, weight) in pairs {
            for (from, to) in [(a, b), (b, a)] {
                edges[next[from as usize]] = (to, weight);
                next[from as usize] += 1;
            }
        }
        CommGraph { starts, edges }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn neighbours(&self, vertex: u32) -> &[(u32, f64)] {
        &self.edges[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_add_up_in_both_directions() {
        let mut matrix = CommMatrix::new(3);
        for _ in 0..5000 {
            matrix.push(0, 1, 10);
            matrix.push(1, 0, 1);
            matrix.push(2, 2, 7);
        }
        matrix.push(4, 1, 3);
        assert_eq!(matrix.pairs(), [(0, 1, 55_000), (1, 4, 3)]);
        assert_eq!(matrix.ranks(), 5);
        assert!(matrix.pairs.capacity() < 4096, "memory follows the distinct pairs");
    }

    #[test]
    fn graphs_have_both_ends() {
        let graph = CommGraph::new(3, [(0, 1, 2.0), (1, 2, 3.0)].into_iter());
        assert_eq!(graph.neighbours(1), [(0, 2.0), (2, 3.0)]);
        assert_eq!(graph.neighbours(2), [(1, 3.0)]);
        assert_eq!(graph.len(), 3);
    }
}
