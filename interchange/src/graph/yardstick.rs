//! The order in which the operations of a graph start on a network of 1 µs + bytes / 10 Gbit/s without contention.
//!
//! Sends end at once; a receive ends when its message is there; operations of a stream compute one after the other. Among
//! operations that start at the same time, sends and receives come before computing, then those that stand first in the file.

use super::matching::Pairs;
use super::model::{Act, Graph, NONE, Neighbours};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Latency of the yardstick, ns.
const LATENCY: u64 = 1000;

/// What happened on the yardstick.
#[derive(Debug)]
pub(super) struct Order {
    /// All nodes, by their starts.
    pub(super) nodes: Vec<u32>,
    /// Sends, computing and collectives that start while their task computes, which a trace cannot say.
    pub(super) overlapping: u64,
    /// Receives without a partner that were left out because nothing else could go on.
    pub(super) left_out: Vec<u32>,
    /// Those that require each node.
    pub(super) after: Neighbours,
}

/// Kinds of events, in the order in which those of one time happen.
const END: u64 = 0;
const ARRIVE: u64 = 1;
const START: u64 = 2;
const COMPUTE: u64 = 3;

/// A time, the kind of what happens then, and its node, as one number: the first event is the least.
type Event = u128;

fn event(t: u64, kind: u64, node: u32) -> Reverse<Event> {
    Reverse(u128::from(t) << 64 | u128::from(kind << 32 | u64::from(node)))
}

struct Run<'g> {
    graph: &'g Graph,
    partner: &'g mut [u32],
    /// Dependencies not yet satisfied, by node.
    open: Vec<u32>,
    after_end: Neighbours,
    after_start: Neighbours,
    events: BinaryHeap<Reverse<Event>>,
    /// When a send's message arrives, or when a receive was posted; by node.
    at: Vec<u64>,
    ended: Vec<bool>,
    order: Vec<u32>,
    /// By task: posted receives with a wildcard, and arrived messages that no receive names.
    posted: HashMap<u32, VecDeque<u32>>,
    arrived: HashMap<u32, VecDeque<u32>>,
    /// By task and stream: until when it computes.
    busy: HashMap<(u32, u32), u64>,
    /// By task: until when any of its streams computes.
    computing: Vec<u64>,
    /// By task: number of its collectives, by group.
    called: HashMap<(u32, u32), u32>,
    /// By group and number: the members that have called it.
    collectives: BTreeMap<(u32, u32), Vec<u32>>,
    overlapping: u64,
}

const NOT_YET: u64 = u64::MAX;

/// Runs a graph. Receives from any source get their partners by arrival. With `partial`, receives without a partner are left
/// out when nothing else can go on.
///
/// # Errors
/// The graph cannot end: a chain of nodes, each of which waits for the next, and why.
pub(super) fn order(graph: &Graph, pairs: &mut Pairs, tasks: u32, partial: bool) -> Result<Order, String> {
    let nodes = graph.nodes.len();
    let mut open = vec![0; nodes];
    for &(_, second) in graph.requires.iter().chain(&graph.starts) {
        open[second as usize] += 1;
    }
    let mut run = Run {
        graph,
        partner: &mut pairs.partner,
        open,
        after_end: Neighbours::after(nodes, &graph.requires),
        after_start: Neighbours::after(nodes, &graph.starts),
        events: BinaryHeap::new(),
        at: vec![NOT_YET; nodes],
        ended: vec![false; nodes],
        order: Vec::with_capacity(nodes),
        posted: HashMap::new(),
        arrived: HashMap::new(),
        busy: HashMap::new(),
        computing: vec![0; tasks as usize],
        called: HashMap::new(),
        collectives: BTreeMap::new(),
        overlapping: 0,
    };
    let free = (0..nodes as u32).filter(|&node| run.open[node as usize] == 0);
    run.events = free.map(|node| ready(graph, 0, node)).collect();
    let mut left_out = Vec::new();
    loop {
        run.all();
        if run.ended.iter().all(|&ended| ended) {
            break;
        }
        let alone = |&node: &u32| {
            let started = run.at[node as usize] != NOT_YET && !run.ended[node as usize];
            started && run.is_receive(node) && run.partner[node as usize] == NONE
        };
        let alone: Vec<u32> = (0..nodes as u32).filter(alone).collect();
        if !partial || alone.is_empty() {
            return Err(run.stuck());
        }
        for node in alone {
            if let Some(posted) = run.posted.get_mut(&graph.nodes[node as usize].task) {
                posted.retain(|&other| other != node);
            }
            left_out.push(node);
            run.events.push(event(run.at[node as usize], END, node));
        }
    }
    Ok(Order { nodes: run.order, overlapping: run.overlapping, left_out, after: run.after_end })
}

/// The event of a node whose dependencies are satisfied.
fn ready(graph: &Graph, t: u64, node: u32) -> Reverse<Event> {
    let kind = match graph.nodes[node as usize].act {
        Act::Compute { .. } => COMPUTE,
        Act::Send { .. } | Act::Receive { .. } | Act::Collective { .. } => START,
    };
    event(t, kind, node)
}

impl Run<'_> {
    fn is_receive(&self, node: u32) -> bool {
        matches!(self.graph.nodes[node as usize].act, Act::Receive { .. })
    }

    fn all(&mut self) {
        while let Some(Reverse(event)) = self.events.pop() {
            let (t, kind, node) = ((event >> 64) as u64, event as u64 >> 32, event as u32);
            match kind {
                END => self.end(t, node),
                ARRIVE => self.arrive(t, node),
                _ => self.start(t, node),
            }
        }
    }

    fn release(&mut self, t: u64, node: u32, ended: bool) {
        let Self { graph, open, events, after_end, after_start, .. } = self;
        for &next in if ended { after_end.of(node) } else { after_start.of(node) } {
            let open = &mut open[next as usize];
            *open -= 1;
            if *open == 0 {
                events.push(ready(graph, t, next));
            }
        }
    }

    fn end(&mut self, t: u64, node: u32) {
        if !std::mem::replace(&mut self.ended[node as usize], true) {
            self.release(t, node, true);
        }
    }

    fn end_at(&mut self, t: u64, node: u32) {
        self.events.push(event(t, END, node));
    }

    fn start(&mut self, t: u64, node: u32) {
        let of = self.graph.nodes[node as usize];
        let stream = (of.task, of.stream);
        if let Act::Compute { time } = of.act {
            let busy = self.busy.get(&stream).copied().unwrap_or(0);
            if busy > t {
                self.events.push(event(busy, COMPUTE, node));
                return;
            }
            let end = t.saturating_add(time);
            self.busy.insert(stream, end);
            self.overlap(t, of.task);
            let computing = &mut self.computing[of.task as usize];
            *computing = (*computing).max(end);
            self.end_at(end, node);
        }
        self.order.push(node);
        match of.act {
            Act::Compute { .. } => {}
            Act::Send { bytes, .. } => {
                self.overlap(t, of.task);
                let arrival = t.saturating_add(LATENCY).saturating_add(bytes.saturating_mul(8) / 10);
                self.at[node as usize] = arrival;
                match self.partner[node as usize] {
                    NONE => self.events.push(event(arrival, ARRIVE, node)),
                    receive if self.at[receive as usize] != NOT_YET => self.end_at(arrival, receive),
                    _ => {}
                }
                self.end(t, node);
            }
            Act::Receive { from, tag, .. } => {
                self.at[node as usize] = t;
                match self.partner[node as usize] {
                    NONE if from.is_some() && tag.is_some() => {}
                    NONE => self.post(t, node),
                    send if self.at[send as usize] != NOT_YET => {
                        self.end_at(t.max(self.at[send as usize]), node);
                    }
                    _ => {}
                }
            }
            Act::Collective { call } => {
                let group = self.graph.calls[call as usize].group;
                self.overlap(t, of.task);
                self.at[node as usize] = t;
                let number = self.called.entry((of.task, group)).or_default();
                let key = (group, *number);
                *number += 1;
                let members = self.collectives.entry(key).or_default();
                members.push(node);
                if members.len() == self.graph.groups[group as usize].members.len() {
                    for member in self.collectives.remove(&key).unwrap_or_default() {
                        self.end_at(t.saturating_add(LATENCY), member);
                    }
                }
            }
        }
        self.release(t, node, false);
    }

    fn overlap(&mut self, t: u64, task: u32) {
        self.overlapping += u64::from(self.computing[task as usize] > t);
    }

    /// Whether a receive accepts a message.
    fn accepts(&self, receive: u32, send: u32) -> bool {
        match (self.graph.nodes[receive as usize].act, self.graph.nodes[send as usize].act) {
            (Act::Receive { from, tag, .. }, Act::Send { tag: sent, .. }) => {
                let source = self.graph.nodes[send as usize].task;
                from.is_none_or(|from| from == source) && tag.is_none_or(|tag| tag == sent)
            }
            _ => false,
        }
    }

    fn join(&mut self, t: u64, send: u32, receive: u32) {
        (self.partner[send as usize], self.partner[receive as usize]) = (receive, send);
        self.end_at(t, receive);
    }

    /// A message that no receive names arrives.
    fn arrive(&mut self, t: u64, send: u32) {
        let Act::Send { to, .. } = self.graph.nodes[send as usize].act else { return };
        let posted = self
            .posted
            .get(&to)
            .and_then(|posted| posted.iter().position(|&receive| self.accepts(receive, send)));
        match posted {
            Some(at) => {
                let receive = self.posted.get_mut(&to).and_then(|posted| posted.remove(at));
                if let Some(receive) = receive {
                    self.join(t, send, receive);
                }
            }
            None => self.arrived.entry(to).or_default().push_back(send),
        }
    }

    /// Posts a receive with a wildcard.
    fn post(&mut self, t: u64, receive: u32) {
        let task = self.graph.nodes[receive as usize].task;
        let arrived = self
            .arrived
            .get(&task)
            .and_then(|arrived| arrived.iter().position(|&send| self.accepts(receive, send)));
        match arrived {
            Some(at) => {
                let send = self.arrived.get_mut(&task).and_then(|arrived| arrived.remove(at));
                if let Some(send) = send {
                    self.join(t, send, receive);
                }
            }
            None => self.posted.entry(task).or_default().push_back(receive),
        }
    }

    /// Why nothing goes on: the chain of nodes from the first that has not ended.
    fn stuck(&self) -> String {
        let left = self.ended.iter().filter(|&&ended| !ended).count();
        let before = [&self.graph.requires, &self.graph.starts]
            .map(|edges| Neighbours::before(self.graph.nodes.len(), edges));
        let mut text = format!("the schedule cannot end: {left} operations are not done");
        let mut node = self.ended.iter().position(|&ended| !ended).map_or(0, |node| node as u32);
        for _ in 0..5 {
            let started = self.at[node as usize] != NOT_YET;
            let next = match self.graph.nodes[node as usize].act {
                Act::Receive { .. } if started && self.partner[node as usize] == NONE => {
                    text.push_str(&format!(
                        "; {} waits for a message that is not sent",
                        self.graph.shown(node)
                    ));
                    return text;
                }
                Act::Receive { .. } if started => Some(self.partner[node as usize]),
                Act::Collective { call } if started => {
                    let group = self.graph.calls[call as usize].group;
                    let members = self.collectives.values().find(|members| members.contains(&node));
                    let called = members.map_or(0, Vec::len);
                    text.push_str(&format!(
                        "; {} was called by {called} of {} members",
                        self.graph.shown(node),
                        self.graph.groups[group as usize].members.len()
                    ));
                    return text;
                }
                _ => {
                    let required = before[0].of(node).iter().find(|&&first| !self.ended[first as usize]);
                    let starts = before[1].of(node).iter().find(|&&first| self.at[first as usize] == NOT_YET);
                    required.or(starts).copied()
                }
            };
            let Some(next) = next else { return text };
            text.push_str(&format!("; {} waits for {}", self.graph.shown(node), self.graph.shown(next)));
            node = next;
        }
        text
    }
}
