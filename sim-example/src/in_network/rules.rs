//! Whose data the members of a collective need, and which of it uses the links of their nodes.

use std::collections::BTreeMap;

use replay::Bytes;
use vef_format::operation::{Operation, Root};

/// The directions of a node's link.
pub(super) const UP: usize = 0;
pub(super) const DOWN: usize = 1;

/// Whose data a member needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Own,
    Root,
    /// That of members up to itself.
    Before,
    All,
}

impl Needs {
    pub(super) fn of(operation: Operation, is_root: bool) -> Self {
        match (operation.root(), operation) {
            (Some(Root::Sends), _) if is_root => Self::Own,
            (Some(Root::Sends), _) => Self::Root,
            (Some(Root::Receives), _) if is_root => Self::All,
            (Some(Root::Receives), _) => Self::Own,
            (None, Operation::Scan | Operation::Exscan) => Self::Before,
            (None, _) => Self::All,
        }
    }
}

/// How the bytes of a node's members use its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Once for all of them.
    Once,
    /// Each has its own.
    Each,
}

impl Sharing {
    /// Of what members send, and of what they receive.
    pub(super) fn of(operation: Operation) -> [Self; 2] {
        match operation {
            Operation::Barrier
            | Operation::Allreduce
            | Operation::Reduce
            | Operation::Scan
            | Operation::Exscan => [Self::Once, Self::Once],
            Operation::Bcast | Operation::Allgather | Operation::Allgatherv => [Self::Each, Self::Once],
            Operation::ReduceScatter | Operation::ReduceScatterBlock => [Self::Once, Self::Each],
            Operation::Gather
            | Operation::Gatherv
            | Operation::Scatter
            | Operation::Scatterv
            | Operation::Alltoall
            | Operation::Alltoallv
            | Operation::Alltoallw => [Self::Each, Self::Each],
        }
    }
}

/// The nodes of a collective's members.
#[derive(Debug)]
pub(super) struct Members {
    /// By member.
    pub(super) nodes: Vec<u32>,
    /// How many members a node has.
    pub(super) on_node: BTreeMap<u32, u32>,
    /// Members from the first on that are on its node, and those up to the last that are on another one than it.
    head: u32,
    body: u32,
}

impl Members {
    pub(super) fn new(nodes: Vec<u32>) -> Self {
        let mut on_node = BTreeMap::new();
        nodes.iter().for_each(|node| *on_node.entry(*node).or_default() += 1);
        let count = nodes.len() as u32;
        let head = nodes.iter().take_while(|node| nodes.first() == Some(node)).count() as u32;
        let body = count - nodes.iter().rev().take_while(|node| nodes.last() == Some(node)).count() as u32;
        Self { nodes, on_node, head, body }
    }

    pub(super) fn node(&self, member: u32) -> u32 {
        self.nodes[member as usize]
    }

    pub(super) fn are_together(&self, a: u32, b: u32) -> bool {
        self.node(a) == self.node(b)
    }

    /// Whether data that a member gives to an operation leaves its node.
    pub(super) fn sends_away(&self, operation: Operation, root: u32, member: u32) -> bool {
        match Needs::of(operation, member == root) {
            Needs::Own if member != root => !self.are_together(member, root),
            // A member after it is on another node.
            Needs::Before => member < self.body || self.nodes.last() != Some(&self.node(member)),
            Needs::Own | Needs::Root | Needs::All => self.on_node.len() > 1,
        }
    }

    /// Whether a member needs data of another node.
    pub(super) fn needs_others(&self, operation: Operation, root: u32, member: u32) -> bool {
        match Needs::of(operation, member == root) {
            Needs::Own => false,
            Needs::Root => !self.are_together(member, root),
            // A member before it is on another node.
            Needs::Before => member >= self.head,
            Needs::All => self.on_node.len() > 1,
        }
    }

    /// Of `bytes` of which `members` of a node consist in equal blocks for all members, or for all but one: those for other nodes.
    pub(super) fn for_others(&self, bytes: u128, members: u32, blocks: Blocks) -> Bytes {
        let all = self.nodes.len() as u128;
        let blocks = match blocks {
            Blocks::None => return Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)),
            Blocks::All => all,
            Blocks::OfOthers => (all - 1).max(1),
        };
        let bytes = (bytes * (all - u128::from(members))).div_ceil(blocks);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// The blocks of which bytes consist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    None,
    /// One for each member.
    All,
    /// One for each member but that whose bytes they are.
    OfOthers,
}

impl Blocks {
    pub(super) fn of(operation: Operation, direction: usize) -> Self {
        match operation {
            Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw => Self::All,
            Operation::Allgather | Operation::Allgatherv if direction == DOWN => Self::All,
            Operation::Gather | Operation::Gatherv if direction == DOWN => Self::OfOthers,
            Operation::Scatter | Operation::Scatterv if direction == UP => Self::OfOthers,
            _ => Self::None,
        }
    }
}
