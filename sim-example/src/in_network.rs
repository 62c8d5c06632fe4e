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

/// What happens at a time: times of entries may be reported long before.
#[derive(Clone, Copy, Debug)]
enum Event {
    Entry(Collective),
    Completion(Completed),
}

/// The collectives that the network is carrying out.
#[derive(Debug)]
pub(crate) struct InNetwork {
    latency: Picos,
    links: NodeLinks,
    open: HashMap<(u32, CollectiveId), Open>,
    events: Queue<Event>,
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

/// The nodes of a collective's members.
#[derive(Debug)]
struct Members {
    /// By member.
    nodes: Vec<u32>,
    /// How many members a node has.
    on_node: BTreeMap<u32, u32>,
    /// Members from the first on that are on its node, and those up to the last that are on another one than it.
    head: u32,
    body: u32,
}

impl Members {
    fn new(nodes: Vec<u32>) -> Self {
        let mut on_node = BTreeMap::new();
        nodes.iter().for_each(|node| *on_node.entry(*node).or_default() += 1);
        let count = nodes.len() as u32;
        let head = nodes.iter().take_while(|node| nodes.first() == Some(node)).count() as u32;
        let body = count - nodes.iter().rev().take_while(|node| nodes.last() == Some(node)).count() as u32;
        Self { nodes, on_node, head, body }
    }

    fn node(&self, member: u32) -> u32 {
        self.nodes[member as usize]
    }

    fn are_together(&self, a: u32, b: u32) -> bool {
        self.node(a) == self.node(b)
    }

    /// Whether data that a member gives to an operation leaves its node.
    fn sends_away(&self, operation: Operation, root: u32, member: u32) -> bool {
        match Needs::of(operation, member == root) {
            Needs::Own if member != root => !self.are_together(member, root),
            // A member after it is on another node.
            Needs::Before => member < self.body || self.nodes.last() != Some(&self.node(member)),
            Needs::Own | Needs::Root | Needs::All => self.on_node.len() > 1,
        }
    }

    /// Whether a member needs data of another node.
    fn needs_others(&self, operation: Operation, root: u32, member: u32) -> bool {
        match Needs::of(operation, member == root) {
            Needs::Own => false,
            Needs::Root => !self.are_together(member, root),
            // A member before it is on another node.
            Needs::Before => member >= self.head,
            Needs::All => self.on_node.len() > 1,
        }
    }

    /// Of `bytes` of which `members` of a node consist in equal blocks for all members, or for all but one: those for other nodes.
    fn for_others(&self, bytes: u128, members: u32, blocks: Blocks) -> Bytes {
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
enum Blocks {
    None,
    /// One for each member.
    All,
    /// One for each member but that whose bytes they are.
    OfOthers,
}

impl Blocks {
    fn of(operation: Operation, direction: usize) -> Self {
        match operation {
            Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw => Self::All,
            Operation::Allgather | Operation::Allgatherv if direction == DOWN => Self::All,
            Operation::Gather | Operation::Gatherv if direction == DOWN => Self::OfOthers,
            Operation::Scatter | Operation::Scatterv if direction == UP => Self::OfOthers,
            _ => Self::None,
        }
    }
}

/// A collective that not all members have entered.
#[derive(Debug)]
struct Open {
    operation: Operation,
    root: u32,
    members: Members,
    sharing: [Sharing; 2],
    entries: Vec<Option<Entry>>,
    entered: u32,
    /// Members from the first on that have entered.
    leading: u32,
    /// The data of these.
    before: Data,
    /// That of the root, once it has entered.
    root_data: Option<Data>,
    /// The last entry, and the end of what was sent by members that need nothing of others.
    all: Data,
    /// When the link of a node is through with what its members send or receive once.
    once: [HashMap<u32, Picos>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Picos,
    /// When its bytes have left its node, of members that send when they enter.
    sent: Picos,
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
    fn new(operation: Operation, root: u32, nodes: Vec<u32>) -> Self {
        Self {
            operation,
            root,
            sharing: Sharing::of(operation),
            entries: vec![None; nodes.len()],
            members: Members::new(nodes),
            entered: 0,
            leading: 0,
            before: Data::default(),
            root_data: None,
            all: Data::default(),
            once: Default::default(),
        }
    }

    /// When bytes of a member are through its node's link, which they may use from some time on.
    fn through(
        &mut self,
        member: u32,
        bytes: Bytes,
        direction: usize,
        from: Picos,
        links: &mut NodeLinks,
    ) -> Result<Picos, OutOfTime> {
        let node = self.members.node(member);
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

    /// When the bytes that a member sends as soon as it enters have left its node.
    fn send(
        &mut self,
        member: u32,
        bytes: Bytes,
        at: Picos,
        links: &mut NodeLinks,
    ) -> Result<Picos, OutOfTime> {
        if !self.members.sends_away(self.operation, self.root, member) {
            return Ok(at);
        }
        let on_node = self.members.on_node[&self.members.node(member)];
        let bytes = self.members.for_others(bytes.0.into(), on_node, Blocks::of(self.operation, UP));
        self.through(member, bytes, UP, at, links)
    }

    /// When a member that needs the data of some others has it, but for the latency.
    fn receive(
        &mut self,
        member: u32,
        bytes: Bytes,
        data: Data,
        links: &mut NodeLinks,
    ) -> Result<Picos, OutOfTime> {
        if !self.members.needs_others(self.operation, self.root, member) {
            return Ok(data.at);
        }
        Ok(self.through(member, bytes, DOWN, data.at, links)?.max(data.sent))
    }

    /// When the bytes of all members are through the links of their nodes, by node: of blocks, those for other nodes.
    fn all_through(&self, direction: usize, links: &mut NodeLinks) -> Result<HashMap<u32, Picos>, OutOfTime> {
        // In the order of nodes: results do not depend on that of a hash table.
        let mut nodes: BTreeMap<u32, u128> = BTreeMap::new();
        for (&node, entry) in self.members.nodes.iter().zip(self.entries.iter().flatten()) {
            let sum = nodes.entry(node).or_default();
            let bytes = u128::from(entry.bytes[direction].0);
            *sum = if self.sharing[direction] == Sharing::Once { bytes.max(*sum) } else { *sum + bytes };
        }
        let is_one_node = nodes.len() == 1;
        let through = |(node, sum): (u32, u128)| {
            let bytes = match is_one_node {
                true => Bytes::ZERO,
                false => {
                    let blocks = Blocks::of(self.operation, direction);
                    self.members.for_others(sum, self.members.on_node[&node], blocks)
                }
            };
            Ok((node, links.through(node, direction, self.all.at, bytes)?))
        };
        nodes.into_iter().map(through).collect()
    }
}

impl InNetwork {
    pub(crate) fn new(latency: Picos, bandwidth: Bandwidth) -> Self {
        let links = NodeLinks { bandwidth, free: HashMap::new() };
        Self { latency, links, open: HashMap::new(), events: Queue::new(), carried_out: 0 }
    }

    /// A member is to enter a collective, at a time that is not before the last [`InNetwork::step`].
    pub(crate) fn enter(&mut self, event: &Collective) {
        self.events.push(event.at, Event::Entry(*event));
    }

    /// When the next member enters or is complete.
    pub(crate) fn next(&self) -> Option<Picos> {
        self.events.next()
    }

    /// The next entry or completion up to `limit`, and the member if it is the latter. `nodes` has those of a collective's members.
    ///
    /// # Errors
    /// A member is complete after the end of time.
    pub(crate) fn step(
        &mut self,
        limit: Picos,
        nodes: impl FnOnce(u32, CollectiveId) -> Vec<u32>,
    ) -> Result<Option<(Picos, Option<Completed>)>, OutOfTime> {
        let Some((now, event)) = self.events.pop(limit) else { return Ok(None) };
        match event {
            Event::Completion(completed) => Ok(Some((now, Some(completed)))),
            Event::Entry(entry) => {
                self.entered(&entry, nodes)?;
                Ok(Some((now, None)))
            }
        }
    }

    /// A member enters a collective, now.
    fn entered(
        &mut self,
        &Collective { job, id, operation, root, at, member, bytes, .. }: &Collective,
        nodes: impl FnOnce(u32, CollectiveId) -> Vec<u32>,
    ) -> Result<(), OutOfTime> {
        // Events of all members together are not asked for.
        let Some(member) = member else { return Ok(()) };
        let Self { latency, links, open, events, carried_out } = self;
        let collective = (job, id);
        let open_one = open.entry(collective).or_insert_with(|| Open::new(operation, root, nodes(job, id)));
        let ranks = open_one.entries.len() as u32;
        if member >= ranks {
            return Ok(());
        }
        let mut complete =
            |member: u32, at: Picos| events.push(at, Event::Completion(Completed { collective, member }));
        let result = |data: Picos, entry: Entry| {
            let result = data.checked_add(*latency).map(|result| result.max(entry.at));
            result.ok_or(OutOfTime { bytes: entry.bytes[DOWN] })
        };
        let needs = Needs::of(operation, member == root);
        let sent = match needs {
            Needs::Own | Needs::Before => open_one.send(member, bytes[UP], at, links)?,
            Needs::Root | Needs::All => at,
        };
        open_one.entries[member as usize] = Some(Entry { at, sent, bytes });
        open_one.entered += 1;
        open_one.all = open_one.all.with(at, sent);
        // Members that have now what they need of some others.
        let mut ready: Vec<(u32, Data)> = Vec::new();
        match needs {
            Needs::Own => {
                complete(member, sent);
                if operation.root() == Some(Root::Sends) {
                    let data = Data { at, sent };
                    open_one.root_data = Some(data);
                    let others = (0..ranks)
                        .filter(|other| *other != member && open_one.entries[*other as usize].is_some());
                    ready.extend(others.map(|other| (other, data)));
                }
            }
            Needs::All => {}
            Needs::Root => ready.extend(open_one.root_data.map(|data| (member, data))),
            Needs::Before => {
                while let Some(&Some(entry)) = open_one.entries.get(open_one.leading as usize) {
                    open_one.before = open_one.before.with(entry.at, entry.sent);
                    ready.push((open_one.leading, open_one.before));
                    open_one.leading += 1;
                }
            }
        }
        for (member, data) in ready {
            let Some(entry) = open_one.entries[member as usize] else { continue };
            let received = open_one.receive(member, entry.bytes[DOWN], data, links)?;
            complete(member, result(received, entry)?);
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
                sent = open_one.all_through(UP, links)?.into_values().fold(sent, Picos::max);
            }
            let received = open_one.all_through(DOWN, links)?;
            for member in all {
                let Some(entry) = open_one.entries[member as usize] else { continue };
                let received = received.get(&open_one.members.node(member)).copied().unwrap_or_default();
                complete(member, result(sent.max(received), entry)?);
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
        let ranks = entries.len() as u32;
        let entries = entries.iter().map(|&(member, at, bytes)| (7, member, at, bytes));
        let ends = all_completions(per_node, operation, root, ranks, entries);
        ends.into_iter().map(|(_, member, at)| (member, at)).collect()
    }

    /// Of several collectives, in the order in which the entries are read: collective, member, microseconds, bytes.
    fn all_completions(
        per_node: u32,
        operation: Operation,
        root: u32,
        ranks: u32,
        entries: impl IntoIterator<Item = (u64, u32, u64, [u64; 2])>,
    ) -> Vec<(u64, u32, u64)> {
        let mut network = InNetwork::new(Picos(2_000_000), "1GB/s".parse().unwrap());
        for (id, member, at, bytes) in entries {
            network.enter(&Collective {
                job: 0,
                id: CollectiveId(id),
                comm: CommId(0),
                operation,
                root,
                ranks,
                at: Picos(at * 1_000_000),
                member: Some(member),
                node: Some(member / per_node),
                bytes: bytes.map(Bytes),
            });
        }
        let nodes = |_, _| (0..ranks).map(|member| member / per_node).collect();
        let steps: Vec<_> = std::iter::from_fn(|| network.step(Picos::MAX, nodes).unwrap()).collect();
        assert!(network.open.is_empty());
        let end = |(at, completed): (Picos, Option<Completed>)| {
            completed.map(|completed| (completed.collective.1.0, completed.member, at.0 / 1_000_000))
        };
        steps.into_iter().filter_map(end).collect()
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
        assert_eq!(on_nodes(2, Bcast, 0, &bcast), [(0, 1), (1, 2), (2, 3), (3, 3)]);
        let scatter = [(0, 0, [3000, 0]), (1, 0, [0, 1000]), (2, 0, [0, 1000]), (3, 0, [0, 1000])];
        // The root sends two of three blocks, during which the others receive; the third is for its own node.
        assert_eq!(on_nodes(2, Scatter, 0, &scatter), [(0, 2), (1, 2), (2, 4), (3, 4)]);
        let gather = [(0, 0, [0, 3000]), (1, 0, [1000, 0]), (2, 0, [1000, 0]), (3, 0, [1000, 0])];
        assert_eq!(on_nodes(2, Gather, 0, &gather), [(1, 0), (2, 1), (3, 2), (0, 4)]);
        assert_eq!(on_nodes(1, Gather, 0, &gather), [(1, 1), (2, 1), (3, 1), (0, 5)]);
        // Within a node nothing goes over its link.
        let within =
            |operation, bytes| on_nodes(4, operation, 0, &[0, 1, 2, 3].map(|member| (member, 0, bytes)));
        assert_eq!(within(Allreduce, [3000, 3000]), each(2));
        assert_eq!(within(Allgather, [3000, 12000]), each(2));
        assert_eq!(completions(Allreduce, 0, &[(0, 1, [3000, 3000])]), [(0, 3)]);
    }

    /// Of different collectives, too; who sends nothing does not wait for the link.
    #[test]
    fn collectives_of_a_node_share_its_link() {
        let entry = |id, bytes| [0, 1].map(|member| (id, member, 0, [bytes; 2]));
        let entries = [entry(1, 1000), entry(2, 1000), entry(9, 0)].concat();
        let ends = all_completions(1, Operation::Allreduce, 0, 2, entries);
        assert_eq!(ends, [(9, 0, 2), (9, 1, 2), (1, 0, 3), (1, 1, 3), (2, 0, 4), (2, 1, 4)]);
    }

    /// In the order of their entries, also if the later one is read first.
    #[test]
    fn a_collective_does_not_wait_for_one_that_is_entered_later() {
        let entry = |id, at| [0, 1].map(|member| (id, member, at, [3000; 2]));
        for entries in [[entry(1, 50), entry(2, 0)], [entry(2, 0), entry(1, 50)]] {
            let ends = all_completions(1, Operation::Allreduce, 0, 2, entries.concat());
            assert_eq!(ends, [(2, 0, 5), (2, 1, 5), (1, 0, 55), (1, 1, 55)]);
            // In a scan, too: the last member sends when it enters, whenever the others come.
            let ends = all_completions(1, Operation::Scan, 0, 2, entries.concat());
            assert_eq!(ends, [(2, 0, 2), (2, 1, 5), (1, 0, 52), (1, 1, 55)]);
        }
    }

    /// Data for members of the same node does not use its link: it is there without the time of its bytes.
    #[test]
    fn data_with_a_root_stays_within_its_node() {
        use Operation::{Bcast, Gather, Reduce, Scan, Scatter};
        let [out, into] = [[3000, 0], [0, 3000]];
        let to_root = [(0, 0, into), (1, 0, out), (2, 0, out), (3, 0, out)];
        let from_root = [(0, 0, out), (1, 0, into), (2, 0, into), (3, 0, into)];
        for operation in [Gather, Reduce] {
            let ends = on_nodes(4, operation, 0, &to_root);
            assert_eq!(ends, [(1, 0), (2, 0), (3, 0), (0, 2)], "{operation}");
        }
        for operation in [Bcast, Scatter] {
            let ends = on_nodes(4, operation, 0, &from_root);
            assert_eq!(ends, [(0, 0), (1, 2), (2, 2), (3, 2)], "{operation}");
        }
        assert_eq!(
            on_nodes(4, Scan, 0, &[0, 1, 2, 3].map(|member| (member, 0, [3000; 2]))),
            [0, 1, 2, 3].map(|member| (member, 2))
        );
        // Of two nodes, member 1 is on that of the root.
        assert_eq!(on_nodes(2, Reduce, 0, &to_root), [(1, 0), (2, 3), (3, 3), (0, 5)]);
        assert_eq!(on_nodes(2, Bcast, 0, &from_root), [(1, 2), (0, 3), (2, 5), (3, 5)]);
        // Members 0 and 1 send, 2 and 3 receive.
        assert_eq!(
            on_nodes(2, Scan, 0, &[0, 1, 2, 3].map(|member| (member, 0, [3000; 2]))),
            [(0, 2), (1, 2), (2, 5), (3, 5)]
        );
    }
}
