//! Messages and their causes: a tree with the start of the run as its root. Only nodes that can still be on
//! the critical path are kept.
//!
//! A message is kept while it is in the network, and while a task or a kept message depends on it; no other
//! can be on the critical path. If all kept nodes depend on one message, the path up to it is final: it is
//! added to the result and removed. So memory grows with the messages in the network and the drift between
//! tasks, not with the length of the run.

use slab::Slab;
use vef_format::units::Picos;

/// A cause: a message at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The message, or [`ROOT`].
    pub(super) node: u32,
    /// When it took effect.
    pub(super) at: Picos,
    /// Whether the message had left its node, rather than arrived.
    pub(super) by_send: bool,
}

/// The start of the run.
pub(super) const ROOT: u32 = 0;

#[derive(Debug)]
struct Node<T> {
    from: Edge,
    /// Number of tasks and messages that depend on this node.
    references: u32,
    /// Number of those that are messages, and the exclusive or of their node numbers: for a single message,
    /// its number.
    children: u32,
    combined: u32,
    about: T,
}

/// The tree of causes.
#[derive(Debug)]
pub(super) struct Nodes<T> {
    slab: Slab<Node<T>>,
    /// All kept nodes depend on this one; the path up to it is final.
    trunk: u32,
}

impl<T> Nodes<T> {
    /// The start of the run, on which all tasks depend; `root` is never read.
    pub(super) fn new(tasks: u32, root: T) -> Self {
        let mut slab = Slab::new();
        let from = Edge { node: ROOT, at: Picos::ZERO, by_send: false };
        slab.insert(Node { from, references: tasks.max(1), children: 0, combined: 0, about: root });
        Self { slab, trunk: ROOT }
    }

    pub(super) fn about(&self, node: u32) -> &T {
        &self.slab[node as usize].about
    }

    pub(super) fn about_mut(&mut self, node: u32) -> &mut T {
        &mut self.slab[node as usize].about
    }

    /// The cause of its start.
    pub(super) fn from(&self, node: u32) -> Edge {
        self.slab[node as usize].from
    }

    /// All kept nodes depend on this one.
    pub(super) fn trunk(&self) -> u32 {
        self.trunk
    }

    /// Number of kept nodes.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Adds a message, with one reference for the caller.
    pub(super) fn insert(&mut self, from: Edge, about: T) -> u32 {
        let node = self.slab.insert(Node { from, references: 1, children: 0, combined: 0, about }) as u32;
        let parent = &mut self.slab[from.node as usize];
        parent.references += 1;
        parent.children += 1;
        parent.combined ^= node;
        node
    }

    /// Adds a reference.
    pub(super) fn hold(&mut self, node: u32) {
        self.slab[node as usize].references += 1;
    }

    /// Removes a reference. Calls `advance` for each message that the final path now reaches.
    pub(super) fn release(&mut self, node: u32, mut advance: impl FnMut(&Self, u32)) {
        let mut at = node;
        loop {
            let found = &mut self.slab[at as usize];
            found.references -= 1;
            if found.references > 0 {
                break;
            }
            let parent = found.from.node;
            self.slab.remove(at as usize);
            let found = &mut self.slab[parent as usize];
            found.children -= 1;
            found.combined ^= at;
            at = parent;
        }
        while at == self.trunk {
            let Node { references: 1, children: 1, combined: child, .. } = self.slab[at as usize] else {
                break;
            };
            advance(self, child);
            // ROOT is never reused.
            if at != ROOT {
                self.slab.remove(at as usize);
            }
            self.trunk = child;
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares with a tree that keeps all nodes: the paths are equal.
    fn like_a_tree_that_forgets_nothing(tasks: usize, steps: &[(usize, usize)]) -> usize {
        let edge = |node| Edge { node, at: Picos::ZERO, by_send: false };
        let mut nodes = Nodes::new(tasks as u32, 0usize);
        let mut heads = vec![ROOT; tasks];
        // The complete tree: the parent of each message, and the last cause of each task.
        let (mut parents, mut all_heads) = (vec![0usize], vec![0usize; tasks]);
        let mut known: Vec<usize> = Vec::new();
        let mut most = 0;
        for &(from, to) in steps {
            let node = nodes.insert(edge(heads[from]), parents.len());
            parents.push(all_heads[from]);
            // The message's own reference becomes the task's.
            let before = std::mem::replace(&mut heads[to], node);
            all_heads[to] = parents.len() - 1;
            nodes.release(before, |nodes, child| known.push(*nodes.about(child)));
            most = most.max(nodes.len());
        }
        for (&head, &whole) in heads.iter().zip(&all_heads) {
            let mut path = Vec::new();
            let mut at = head;
            while at != nodes.trunk() {
                path.push(*nodes.about(at));
                at = nodes.from(at).node;
            }
            path.extend(known.iter().rev());
            let mut expected = Vec::new();
            let mut at = whole;
            while at != 0 {
                expected.push(at);
                at = parents[at];
            }
            assert_eq!(path, expected);
        }
        most
    }

    proptest! {
        #[test]
        fn paths_are_whole(tasks in 1usize..6, steps in prop::collection::vec((0usize..6, 0usize..6), 0..200)) {
            let steps: Vec<(usize, usize)> =
                steps.into_iter().map(|(from, to)| (from % tasks, to % tasks)).collect();
            like_a_tree_that_forgets_nothing(tasks, &steps);
        }
    }

    #[test]
    fn memory_does_not_follow_the_length() {
        // Each task is released by a message of the previous one, in a ring.
        let steps = |rounds: usize| (0..rounds).map(|n| (n % 8, (n + 1) % 8)).collect::<Vec<_>>();
        let short = like_a_tree_that_forgets_nothing(8, &steps(100));
        assert_eq!(like_a_tree_that_forgets_nothing(8, &steps(100_000)), short);
    }
}
