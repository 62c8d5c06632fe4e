//! Messages by what let them start: a tree whose root is the beginning, of which only what can still be on the critical path is kept.
//!
//! A message is kept while it is under way, and while a task, or a message that is kept, goes back to it. All else can be on no
//! path to the end and is dropped. Where all that is kept goes back to one message, the path up to that is known for good: it is
//! added up and dropped, too. So memory follows the messages under way and how far the tasks have drifted apart, not the length of the run.

use slab::Slab;
use vef_format::units::Picos;

/// What let a task go on, or a message start: a message, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// A message; [`ROOT`] is none, but the beginning.
    pub(super) node: u32,
    /// The moment.
    pub(super) at: Picos,
    /// The message had left its node, and may not be there yet.
    pub(super) by_send: bool,
}

/// The beginning.
pub(super) const ROOT: u32 = 0;

#[derive(Debug)]
struct Node<T> {
    from: Edge,
    /// How often something goes back to it.
    references: u32,
    /// Of these, how many are messages, and the numbers of these, combined by exclusive or: of a single one its number.
    children: u32,
    combined: u32,
    about: T,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Nodes<T> {
    slab: Slab<Node<T>>,
    /// All that is kept goes back to this one, and the path up to it is added up.
    trunk: u32,
}

impl<T> Nodes<T> {
    /// The beginning, to which so many tasks go back; `root` is never looked at.
    pub(super) fn new(tasks: u32, root: T) -> Self {
        let mut slab = Slab::new();
        let from = Edge { node: ROOT, at: Picos::ZERO, by_send: false };
        slab.insert(Node { from, references: tasks.max(1), children: 0, combined: 0, about: root });
        Self { slab, trunk: ROOT }
    }

    /// What is known of a message.
    pub(super) fn about(&self, node: u32) -> &T {
        &self.slab[node as usize].about
    }

    pub(super) fn about_mut(&mut self, node: u32) -> &mut T {
        &mut self.slab[node as usize].about
    }

    /// What let it start.
    pub(super) fn from(&self, node: u32) -> Edge {
        self.slab[node as usize].from
    }

    /// All that is kept goes back to this.
    pub(super) fn trunk(&self) -> u32 {
        self.trunk
    }

    /// Messages that are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// A message starts; its caller goes back to it.
    pub(super) fn insert(&mut self, from: Edge, about: T) -> u32 {
        let node = self.slab.insert(Node { from, references: 1, children: 0, combined: 0, about }) as u32;
        let parent = &mut self.slab[from.node as usize];
        parent.references += 1;
        parent.children += 1;
        parent.combined ^= node;
        node
    }

    /// One more goes back to it.
    pub(super) fn hold(&mut self, node: u32) {
        self.slab[node as usize].references += 1;
    }

    /// One fewer goes back to it. `advance` gets each message to which the path is known for good by that.
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
            // The number of the beginning is not used again.
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

    /// A tree that keeps everything, beside one that does not: tasks go back to messages by other tasks, and at last the paths are the same.
    fn like_a_tree_that_forgets_nothing(tasks: usize, steps: &[(usize, usize)]) -> usize {
        let edge = |node| Edge { node, at: Picos::ZERO, by_send: false };
        let mut nodes = Nodes::new(tasks as u32, 0usize);
        let mut heads = vec![ROOT; tasks];
        // The same by numbers that are not used again: where each message goes back to, and where each task does.
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
        // Ever one task after the other goes on by what the one before sent.
        let steps = |rounds: usize| (0..rounds).map(|n| (n % 8, (n + 1) % 8)).collect::<Vec<_>>();
        let short = like_a_tree_that_forgets_nothing(8, &steps(100));
        assert_eq!(like_a_tree_that_forgets_nothing(8, &steps(100_000)), short);
    }
}
