//! Collectives that the network carries out itself, such as reductions in switches, and when their members are complete.
//!
//! Data streams through the network: a member has its result LATENCY after the last byte that it needs has left a node and could have reached
//! its own. Each node has one link, of which its tasks share both directions, those of other collectives included. What members of a node send to a reduction is
//! reduced in the node first, and what is the same for all of them (the result of a broadcast, an allreduce, an allgather) is received once; all else adds up.
//! Blocks for members of the same node do not use its link. A root that only sends, and other members of
//! an operation with a root that receives, are complete when their bytes are sent. The messages of the network and these collectives do not
//! share links.

use std::collections::{BTreeMap, HashMap};

use replay::{Bytes, Collective, CollectiveId, Picos, Queue};
use vef_format::operation::{Operation, Root};

use crate::model::OutOfTime;
use crate::quantity::Bandwidth;

/// A member's completion, to be reported to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) collective: (u32, CollectiveId),
    pub(crate) member: u32,
}

/// The collectives that the network is carrying out.
#[derive(Debug)]
pub(crate) struct InNetwork {
    latency: Picos,
    links: NodeLinks,
    open: HashMap<(u32, CollectiveId), Open>,
    completions: Queue<Completed>,
    /// Collectives that all members have entered.
    pub(crate) carried_out: u64,
}

/// Whose data a member needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Own,
    Root,
    /// That of members up to itself.
    Before,
    All,
}

impl Needs {
    fn of(operation: Operation, is_root: bool) -> Self {
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
enum Sharing {
    /// Once for all of them.
    Once,
    /// Each has its own.
    Each,
}

impl Sharing {
    /// Of what members send, and of what they receive.
    fn of(operation: Operation) -> [Self; 2] {
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

/// A collective that not all members have entered.
#[derive(Debug)]
struct Open {
    sharing: [Sharing; 2],
    entries: Vec<Option<Entry>>,
    entered: u32,
    /// Members from the first on that have entered.
    leading: u32,
    /// The data of these.
    before: Data,
    /// That of the root, once it has entered.
    root: Option<Data>,
    /// The last entry, and the end of what was sent by members that need nothing of others.
    all: Data,
    /// When the link of a node is through with what its members send or receive once.
    once: [HashMap<u32, Picos>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Picos,
    node: u32,
    bytes: [Bytes; 2],
}

/// Data that members give: when the last of them has entered, and when the last byte has left its node.
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    at: Picos,
    sent: Picos,
}

impl Data {
    fn with(self, at: Picos, sent: Picos) -> Self {
        Self { at: self.at.max(at), sent: self.sent.max(sent) }
    }
}

/// The directions of a node's link.
const UP: usize = 0;
const DOWN: usize = 1;

/// The links of nodes.
#[derive(Debug)]
struct NodeLinks {
    bandwidth: Bandwidth,
    /// From when on each direction is free.
    free: HashMap<u32, [Picos; 2]>,
}

impl NodeLinks {
    /// When `bytes` that may use a link from some time on are through.
    fn through(
        &mut self,
        node: u32,
        direction: usize,
        from: Picos,
        bytes: Bytes,
    ) -> Result<Picos, OutOfTime> {
        if bytes == Bytes::ZERO {
            return Ok(from);
        }
        let free = &mut self.free.entry(node).or_default()[direction];
        let end = self.bandwidth.time(bytes).and_then(|time| from.max(*free).checked_add(time));
        let end = end.ok_or(OutOfTime { bytes })?;
        *free = end;
        Ok(end)
    }
}

impl Open {
    fn new(operation: Operation, ranks: u32) -> Self {
        Self {
            sharing: Sharing::of(operation),
            entries: vec![None; ranks as usize],
            entered: 0,
            leading: 0,
            before: Data::default(),
            root: None,
            all: Data::default(),
            once: Default::default(),
        }
    }

    /// When a member's bytes are through its node's link, which they may use from some time on.
    fn through(
        &mut self,
        entry: Entry,
        direction: usize,
        from: Picos,
        links: &mut NodeLinks,
    ) -> Result<Picos, OutOfTime> {
        let (node, bytes) = (entry.node, entry.bytes[direction]);
        match (self.sharing[direction], self.once[direction].get(&node)) {
            (Sharing::Once, Some(&end)) => Ok(end.max(from)),
            (Sharing::Once, None) => {
                let end = links.through(node, direction, from, bytes)?;
                self.once[direction].insert(node, end);
                Ok(end)
            }
            (Sharing::Each, _) => links.through(node, direction, from, bytes),
        }
    }

    /// When the bytes of all members are through the links of their nodes, by node: of blocks, those for other nodes.
    fn all_through(
        &self,
        operation: Operation,
        direction: usize,
        links: &mut NodeLinks,
    ) -> Result<HashMap<u32, Picos>, OutOfTime> {
        // In the order of nodes: results do not depend on that of a hash table.
        let mut nodes: BTreeMap<u32, (u64, u128)> = BTreeMap::new();
        for Entry { node, bytes, .. } in self.entries.iter().flatten() {
            let (members, sum) = nodes.entry(*node).or_default();
            *members += 1;
            let bytes = u128::from(bytes[direction].0);
            *sum = if self.sharing[direction] == Sharing::Once { bytes.max(*sum) } else { *sum + bytes };
        }
        let ranks = self.entries.len() as u128;
        // The blocks of which the bytes consist; all of them, or all but the member's own.
        let blocks = match operation {
            Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw => Some(ranks),
            Operation::Allgather | Operation::Allgatherv if direction == DOWN => Some(ranks),
            Operation::Gather | Operation::Gatherv if direction == DOWN => Some((ranks - 1).max(1)),
            _ => None,
        };
        let is_one_node = nodes.len() == 1;
        let through = |(node, (members, sum)): (u32, (u64, u128))| {
            let bytes = match blocks {
                _ if is_one_node => 0,
                Some(blocks) => (sum * (ranks - u128::from(members))).div_ceil(blocks),
                None => sum,
            };
            let bytes = Bytes(u64::try_from(bytes).unwrap_or(u64::MAX));
            Ok((node, links.through(node, direction, self.all.at, bytes)?))
        };
        nodes.into_iter().map(through).collect()
    }
}

impl InNetwork {
    pub(crate) fn new(latency: Picos, bandwidth: Bandwidth) -> Self {
        let links = NodeLinks { bandwidth, free: HashMap::new() };
        Self { latency, links, open: HashMap::new(), completions: Queue::new(), carried_out: 0 }
    }

    /// When the next member is complete.
    pub(crate) fn next(&self) -> Option<Picos> {
        self.completions.next()
    }

    /// The next member that is complete, up to `limit`.
    pub(crate) fn pop(&mut self, limit: Picos) -> Option<(Picos, Completed)> {
        self.completions.pop(limit)
    }

    /// A member enters a collective.
    ///
    /// # Errors
    /// A member is complete after the end of time.
    pub(crate) fn enter(&mut self, event: &Collective) -> Result<(), OutOfTime> {
        let Collective {
            job,
            id,
            operation,
            root,
            ranks,
            at,
            member: Some(member),
            node: Some(node),
            bytes,
            ..
        } = *event
        else {
            return Ok(());
        };
        let Self { latency, links, open, completions, carried_out } = self;
        let collective = (job, id);
        let open_one = open.entry(collective).or_insert_with(|| Open::new(operation, ranks));
        let entry = Entry { at, node, bytes };
        open_one.entries[member as usize] = Some(entry);
        open_one.entered += 1;
        open_one.all.at = open_one.all.at.max(at);
        let mut complete = |member: u32, at: Picos| completions.push(at, Completed { collective, member });
        let result = |sent: Picos, received: Picos, entry: Entry| {
            let result = sent.max(received).checked_add(*latency);
            result.map(|result| result.max(entry.at)).ok_or(OutOfTime { bytes: entry.bytes[DOWN] })
        };
        // Members that have now what they need of some others.
        let mut ready: Vec<(u32, Data)> = Vec::new();
        match Needs::of(operation, member == root) {
            Needs::Own => {
                let sent = open_one.through(entry, UP, at, links)?;
                complete(member, sent);
                open_one.all = open_one.all.with(at, sent);
                if operation.root() == Some(Root::Sends) {
                    let data = Data { at, sent };
                    open_one.root = Some(data);
                    let others = (0..ranks)
                        .filter(|other| *other != member && open_one.entries[*other as usize].is_some());
                    ready.extend(others.map(|other| (other, data)));
                }
            }
            Needs::All => {}
            Needs::Root => ready.extend(open_one.root.map(|data| (member, data))),
            Needs::Before => {
                while let Some(&Some(entry)) = open_one.entries.get(open_one.leading as usize) {
                    let sent = open_one.through(entry, UP, entry.at, links)?;
                    open_one.before = open_one.before.with(entry.at, sent);
                    ready.push((open_one.leading, open_one.before));
                    open_one.leading += 1;
                }
            }
        }
        for (member, data) in ready {
            let Some(entry) = open_one.entries[member as usize] else { continue };
            let received = open_one.through(entry, DOWN, data.at, links)?;
            complete(member, result(data.sent, received, entry)?);
        }
        if open_one.entered < ranks {
            return Ok(());
        }
        let needs_all = |member: &u32| Needs::of(operation, *member == root) == Needs::All;
        let all: Vec<u32> = (0..ranks).filter(needs_all).collect();
        if !all.is_empty() {
            let mut sent = open_one.all.sent;
            // Members of an operation with a root have sent already.
            if operation.root().is_none() {
                sent = open_one.all_through(operation, UP, links)?.into_values().fold(sent, Picos::max);
            }
            let received = open_one.all_through(operation, DOWN, links)?;
            for member in all {
                let Some(entry) = open_one.entries[member as usize] else { continue };
                let received = received.get(&entry.node).copied().unwrap_or_default();
                complete(member, result(sent, received, entry)?);
            }
        }
        open.remove(&collective);
        *carried_out += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use replay::CommId;

    use super::*;

    /// What members enter, and when they are complete: 1000 bytes take 1 µs, the latency is 2 µs.
    fn completions(operation: Operation, root: u32, entries: &[(u32, u64, [u64; 2])]) -> Vec<(u32, u64)> {
        on_nodes(1, operation, root, entries)
    }

    /// The same, with so many members on each node.
    fn on_nodes(
        per_node: u32,
        operation: Operation,
        root: u32,
        entries: &[(u32, u64, [u64; 2])],
    ) -> Vec<(u32, u64)> {
        let mut network = InNetwork::new(Picos(2_000_000), "1GB/s".parse().unwrap());
        for &(member, at, bytes) in entries {
            network
                .enter(&Collective {
                    job: 0,
                    id: CollectiveId(7),
                    comm: CommId(0),
                    operation,
                    root,
                    ranks: entries.len() as u32,
                    at: Picos(at * 1_000_000),
                    member: Some(member),
                    node: Some(member / per_node),
                    bytes: bytes.map(Bytes),
                })
                .unwrap();
        }
        assert!(network.open.is_empty());
        let popped = std::iter::from_fn(|| network.pop(Picos::MAX));
        popped.map(|(at, completed)| (completed.member, at.0 / 1_000_000)).collect()
    }

    #[test]
    fn members_wait_for_those_of_which_they_need_data() {
        use Operation::{Allreduce, Barrier, Bcast, Reduce, Scan};
        let none = [0, 0];
        assert_eq!(
            completions(Barrier, 0, &[(0, 1, none), (2, 9, none), (1, 3, none)]),
            [(0, 11), (1, 11), (2, 11)]
        );
        let both = [3000, 3000];
        assert_eq!(completions(Allreduce, 0, &[(0, 1, both), (1, 4, both)]), [(0, 9), (1, 9)]);
        // The root is complete when it has sent; who comes late finds the data there.
        let bcast = [(2, 0, [0, 1000]), (1, 5, [1000, 0]), (0, 20, [0, 1000])];
        assert_eq!(completions(Bcast, 1, &bcast), [(1, 6), (2, 8), (0, 20)]);
        let reduce = [(0, 0, [1000, 0]), (1, 1, [0, 1000]), (2, 9, [1000, 0])];
        assert_eq!(completions(Reduce, 1, &reduce), [(0, 1), (2, 10), (1, 12)]);
        assert_eq!(
            completions(Scan, 0, &[(1, 1, none), (0, 3, none), (2, 0, none)]),
            [(0, 5), (1, 5), (2, 5)]
        );
        assert_eq!(
            completions(Scan, 0, &[(0, 0, none), (2, 1, none), (1, 9, none)]),
            [(0, 2), (1, 11), (2, 11)]
        );
    }

    /// Two members on each of two nodes.
    #[test]
    fn tasks_of_a_node_share_its_link() {
        use Operation::{Allgather, Allreduce, Alltoall, Bcast, Gather, Scatter};
        let all =
            |operation, bytes| on_nodes(2, operation, 0, &[0, 1, 2, 3].map(|member| (member, 0, bytes)));
        let each = |at: u64| [0, 1, 2, 3].map(|member| (member, at)).to_vec();
        // Half of the blocks are for the other node: two members send 2000 bytes each there.
        assert_eq!(all(Alltoall, [4000, 4000]), each(2 + 4));
        // Reduced in the node.
        assert_eq!(all(Allreduce, [3000, 3000]), each(2 + 3));
        // Both send 3000 bytes; the 6000 of the other node come once.
        assert_eq!(all(Allgather, [3000, 12000]), each(2 + 6));
        let bcast = [(0, 0, [1000, 0]), (1, 0, [0, 1000]), (2, 0, [0, 1000]), (3, 0, [0, 1000])];
        assert_eq!(on_nodes(2, Bcast, 0, &bcast), [(0, 1), (1, 3), (2, 3), (3, 3)]);
        let scatter = [(0, 0, [4000, 0]), (1, 0, [0, 1000]), (2, 0, [0, 1000]), (3, 0, [0, 1000])];
        // The root sends for 4 µs, during which the others receive.
        assert_eq!(on_nodes(2, Scatter, 0, &scatter), [(0, 4), (1, 6), (2, 6), (3, 6)]);
        let gather = [(0, 0, [0, 3000]), (1, 0, [1000, 0]), (2, 0, [1000, 0]), (3, 0, [1000, 0])];
        assert_eq!(on_nodes(2, Gather, 0, &gather), [(1, 1), (2, 1), (3, 2), (0, 4)]);
        assert_eq!(on_nodes(1, Gather, 0, &gather), [(1, 1), (2, 1), (3, 1), (0, 5)]);
        // Within a node nothing goes over its link.
        let within =
            |operation, bytes| on_nodes(4, operation, 0, &[0, 1, 2, 3].map(|member| (member, 0, bytes)));
        assert_eq!(within(Allreduce, [3000, 3000]), each(2));
        assert_eq!(within(Allgather, [3000, 12000]), each(2));
        assert_eq!(completions(Allreduce, 0, &[(0, 1, [3000, 3000])]), [(0, 3)]);
    }

    /// Of different collectives, too.
    #[test]
    fn collectives_of_a_node_share_its_link() {
        let mut network = InNetwork::new(Picos(2_000_000), "1GB/s".parse().unwrap());
        for (id, members) in [(1, [0, 2]), (2, [1, 3])] {
            for (member, node) in [(0, 0), (1, 1)] {
                let collective = Collective {
                    job: 0,
                    id: CollectiveId(id),
                    comm: CommId(members[0]),
                    operation: Operation::Allreduce,
                    root: 0,
                    ranks: 2,
                    at: Picos(0),
                    member: Some(member),
                    node: Some(node),
                    bytes: [Bytes(1000); 2],
                };
                network.enter(&collective).unwrap();
            }
        }
        // Who sends nothing does not wait for the link.
        for member in [0, 1] {
            let barrier = Collective {
                job: 0,
                id: CollectiveId(9),
                comm: CommId(9),
                operation: Operation::Barrier,
                root: 0,
                ranks: 2,
                at: Picos(0),
                member: Some(member),
                node: Some(member),
                bytes: [Bytes(0); 2],
            };
            network.enter(&barrier).unwrap();
        }
        let ends: Vec<u64> =
            std::iter::from_fn(|| network.pop(Picos::MAX)).map(|(at, _)| at.0 / 1_000_000).collect();
        assert_eq!(ends, [2, 2, 3, 3, 4, 4]);
    }
}
