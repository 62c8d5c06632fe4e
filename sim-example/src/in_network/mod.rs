//! Collectives that the network carries out itself, such as reductions in switches, and when their members are complete.
//!
//! Data streams through the network: a member has its result LATENCY after the last byte that it needs has left a node and could have reached
//! its own. Each node has one link, of which its tasks share both directions, those of other collectives included. What members of a node send to a reduction is
//! reduced in the node first, and what is the same for all of them (the result of a broadcast, an allreduce, an allgather) is received once; all else adds up.
//! Blocks for members of the same node do not use its link. A root that only sends, and other members of
//! an operation with a root that receives, are complete when their bytes are sent. The messages of the network and these collectives do not
//! share links.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use replay::{Bytes, Collective, CollectiveId, Picos, Queue};
use vef_format::operation::{Operation, Root};

use crate::model::OutOfTime;
use crate::quantity::Bandwidth;
use rules::{Blocks, DOWN, Members, Needs, Sharing, UP};

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
