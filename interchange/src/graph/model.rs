//! The graph of all ranks.

use std::mem::take;
use vef_format::operation::{Amounts, Operation};
use vef_format::prefetch::prefetch;
use vef_format::units::Count;

/// Index of a node that is none.
pub(super) const NONE: u32 = u32::MAX;

/// Operations of all ranks, and their dependencies.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// The operations, grouped by rank, in file order.
    pub(crate) nodes: Vec<Node>,
    /// Index after the last operation of each rank.
    pub(crate) ends: Vec<u32>,
    /// The second starts when the first has ended.
    pub(crate) requires: Vec<(u32, u32)>,
    /// The second starts when the first has started.
    pub(crate) starts: Vec<(u32, u32)>,
    /// What the operations that are parts of collectives do.
    pub(crate) calls: Vec<Call>,
    /// The groups of collectives.
    pub(crate) groups: Vec<Group>,
    /// What a place in the file is called: `line`, `operation`.
    pub(crate) place: &'static str,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) act: Act,
    /// Its rank; its task, once streams are tasks.
    pub(crate) task: u32,
    /// The stream in its rank.
    pub(crate) stream: u32,
    /// Where it stands in the file.
    pub(crate) place: u64,
}

/// What an operation does. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Send {
        bytes: u64,
        to: u32,
        tag: u32,
    },
    Receive {
        bytes: u64,
        from: Option<u32>,
        tag: Option<u32>,
    },
    Compute {
        time: u64,
    },
    /// A rank's part of a collective.
    Collective {
        /// Its place in [`Graph::calls`].
        call: u32,
    },
}

/// A rank's part of a collective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) group: u32,
    pub(crate) operation: Operation,
    pub(crate) amounts: Amounts,
}

/// A group of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its name in the file.
    pub(crate) name: String,
    /// Its members, in the order of their ranks in it.
    pub(crate) members: Vec<u32>,
}

impl Graph {
    /// The nodes of a rank.
    pub(crate) fn of_rank(&self, rank: u32) -> std::ops::Range<usize> {
        let begin = if rank == 0 { 0 } else { self.ends[rank as usize - 1] };
        begin as usize..self.ends[rank as usize] as usize
    }

    /// Takes the dependencies out of the graph.
    pub(super) fn take_dependencies(&mut self) -> Dependencies {
        let (nodes, requires, starts) = (self.nodes.len(), take(&mut self.requires), take(&mut self.starts));
        Dependencies {
            before: Neighbours::before(nodes, &requires),
            after_end: Neighbours::after(nodes, &requires),
            after_start: Neighbours::after(nodes, &starts),
        }
    }

    /// A node with rank and place, for a message to the user.
    pub(crate) fn shown(&self, node: u32) -> String {
        let Node { act, task, place, .. } = self.nodes[node as usize];
        let any = |number: Option<u32>| number.map_or("any".to_owned(), |number| number.to_string());
        let what = match act {
            Act::Send { bytes, to, tag } => format!("send of {} to {to}, tag {tag}", Count(bytes, "byte")),
            Act::Receive { bytes, from, tag } => {
                format!("receive of {} from {}, tag {}", Count(bytes, "byte"), any(from), any(tag))
            }
            Act::Compute { time } => format!("computing for {time} ns"),
            Act::Collective { call } => {
                let Call { group, operation, .. } = self.calls[call as usize];
                format!("{} of group {}", operation.name(), self.groups[group as usize].name)
            }
        };
        format!("rank {task}, {} {place}: {what}", self.place)
    }
}

/// The dependencies of all nodes.
#[derive(Debug)]
pub(super) struct Dependencies {
    /// Those that must have ended.
    pub(super) before: Neighbours,
    /// Those that start when the node has ended, and when it has started.
    pub(super) after_end: Neighbours,
    pub(super) after_start: Neighbours,
}

/// A list of nodes for each node.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// Where the list of each node begins, and the end of the last; empty if all lists are.
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Neighbours {
    /// For each node those to which an edge leads from it.
    pub(super) fn after(nodes: usize, edges: &[(u32, u32)]) -> Self {
        Self::new(nodes, edges.iter().copied())
    }

    /// For each node those from which an edge leads to it.
    fn before(nodes: usize, edges: &[(u32, u32)]) -> Self {
        Self::new(nodes, edges.iter().map(|&(first, second)| (second, first)))
    }

    fn new(
        nodes: usize,
        edges: impl ExactSizeIterator<Item = (u32, u32)> + DoubleEndedIterator + Clone,
    ) -> Self {
        if edges.len() == 0 {
            return Self { starts: Vec::new(), all: Vec::new() };
        }
        let mut starts = vec![0u32; nodes + 1];
        for (from, _) in edges.clone() {
            starts[from as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut all = vec![0; edges.len()];
        // Each list is filled from its end, where its start is until then.
        for (from, to) in edges.rev() {
            let start = &mut starts[from as usize];
            *start -= 1;
            all[*start as usize] = to;
        }
        Self { starts, all }
    }

    /// Prefetches where the list of a node is.
    pub(super) fn prefetch(&self, node: u32) {
        prefetch(&self.starts, node as usize);
    }

    /// Prefetches the list of a node.
    pub(super) fn prefetch_list(&self, node: u32) {
        if let Some(&start) = self.starts.get(node as usize) {
            prefetch(&self.all, start as usize);
        }
    }

    /// All lists.
    pub(super) fn all(&self) -> &[u32] {
        &self.all
    }

    /// The list of a node.
    pub(super) fn of(&self, node: u32) -> &[u32] {
        match self.starts.get(node as usize..node as usize + 2) {
            Some(&[from, to]) => &self.all[from as usize..to as usize],
            _ => &[],
        }
    }
}
