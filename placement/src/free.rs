//! The free nodes of a machine, in the order of their numbers: the k-th of them is found, taken and given back in a time that grows with the
//! logarithm of the machine.

/// Nodes from 0, each free or not. A binary indexed tree (Fenwick): `counts[i - 1]` is how many are free among the `i & -i` nodes before node i.
#[derive(Clone, Debug)]
pub(crate) struct FreeNodes {
    counts: Vec<u32>,
    is_free: Vec<bool>,
    free: u32,
}

impl FreeNodes {
    /// All of so many nodes.
    pub(crate) fn all(nodes: u32) -> Self {
        let counts = (1..=nodes).map(|end| 1 << end.trailing_zeros()).collect();
        Self { counts, is_free: vec![true; nodes as usize], free: nodes }
    }

    /// Nodes of the machine, free or not.
    pub(crate) fn nodes(&self) -> u32 {
        self.is_free.len() as u32
    }

    /// How many are free.
    pub(crate) fn len(&self) -> u32 {
        self.free
    }

    /// The node with so many free ones before it, which is free itself.
    pub(crate) fn nth(&self, mut before: u32) -> Option<u32> {
        if before >= self.free {
            return None;
        }
        let (mut node, mut step) = (0, 1 << self.nodes().ilog2());
        while step > 0 {
            if let Some(&count) = self.counts.get(node + step - 1).filter(|count| **count <= before) {
                before -= count;
                node += step;
            }
            step /= 2;
        }
        Some(node as u32)
    }

    /// A node is free from now on, or not; false, and nothing happens, if there is none of that number, or if it was so before.
    pub(crate) fn set(&mut self, node: u32, is_free: bool) -> bool {
        match self.is_free.get_mut(node as usize) {
            Some(before) if *before != is_free => *before = is_free,
            _ => return false,
        }
        let change = |count: &mut u32| *count = if is_free { *count + 1 } else { *count - 1 };
        change(&mut self.free);
        let mut end = node as usize + 1;
        while let Some(count) = self.counts.get_mut(end - 1) {
            change(count);
            end += end & end.wrapping_neg();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn has_the_nodes_that_a_set_has(nodes in 0u32..70, changes in prop::collection::vec((0u32..80, any::<bool>()), 0..200)) {
            let (mut free, mut set) = (FreeNodes::all(nodes), (0..nodes).collect::<BTreeSet<u32>>());
            for (node, is_free) in changes {
                free.set(node, is_free);
                if is_free && node < nodes { set.insert(node); } else { set.remove(&node); }
                let found: Vec<u32> = (0..free.len()).map_while(|before| free.nth(before)).collect();
                prop_assert_eq!(&found, &set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((free.nth(free.len()), free.nodes()), (None, nodes));
            }
        }
    }
}
