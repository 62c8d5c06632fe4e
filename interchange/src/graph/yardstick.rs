//! The order in which the operations of a graph start on a network of 1 µs + bytes / 10 Gbit/s without contention. What streams of a
//! rank require of each other takes no time.
//!
//! Sends end at once; a receive ends when its message is there; operations of a stream compute one after the other. Among
//! operations that start at the same time, sends and receives come before computing, then those that stand first in the file.

use super::matching::Pairs;
use super::model::{Act, Dependencies, Graph, NONE, Node};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use vef_format::prefetch::prefetch;
use vef_format::units::Count;

/// Latency of the yardstick, ns.
const LATENCY: u64 = 1000;

/// How many nodes ahead memory is prefetched.
const AHEAD: usize = 8;

/// What happened on the yardstick.
#[derive(Debug)]
pub(super) struct Order {
    /// All nodes, by their starts.
    pub(super) nodes: Vec<u32>,
    /// Sends, computing and collectives that start while their task computes, which a trace cannot say.
    pub(super) overlapping: u64,
    /// Receives with a wildcard and without a partner that were left out because nothing else could go on.
    pub(super) left_out: Vec<u32>,
}

/// A time, a task, and its node that may start then, that ends, or whose message arrives at the task, as one number: the first event
/// is the least.
type Event = u128;

fn event(t: u64, task: u32, node: u32) -> Reverse<Event> {
    Reverse(u128::from(t) << 64 | u128::from(task) << 32 | u128::from(node))
}

struct Run<'g> {
    graph: &'g Graph,
    partner: &'g mut [u32],
    /// Dependencies not yet satisfied, by node.
    open: Vec<u32>,
    dependencies: &'g Dependencies,
    events: BinaryHeap<Reverse<Event>>,
    /// The nodes of one task that can start now, with [`turn`]: at one time no task depends on what one of another rank does.
    now: BinaryHeap<Reverse<u64>>,
    /// When a send's message arrives, or when another node starts; by node.
    at: Vec<u64>,
    ended: Vec<bool>,
    order: Vec<u32>,
    /// By task: posted receives with a wildcard, and arrived messages that no receive names.
    posted: HashMap<u32, VecDeque<u32>>,
    arrived: HashMap<u32, VecDeque<u32>>,
    /// By task.
    streams: HashMap<(u32, u32), Stream>,
    /// By task: until when any of its streams computes.
    computing: Vec<u64>,
    /// By task: number of its collectives, by group.
    called: HashMap<(u32, u32), u32>,
    /// By group and number: the members that have called it.
    collectives: BTreeMap<(u32, u32), Vec<u32>>,
    overlapping: u64,
    /// Whether receives that name a message that is not there end at once.
    partial: bool,
    /// The first node between streams of a rank.
    between: u32,
}

/// Computes one node after the other.
#[derive(Default)]
struct Stream {
    /// Until when.
    busy: u64,
    /// Those that could start, by their places in the file.
    waiting: BinaryHeap<Reverse<u32>>,
}

const NOT_YET: u64 = u64::MAX;

/// The time `by` after `t`.
fn later(t: u64, by: u64) -> u64 {
    t.saturating_add(by).min(NOT_YET - 1)
}

/// Runs a graph. Receives from any source get their partners by arrival. With `partial`, receives without a partner are left
/// out: those with a wildcard when nothing else can go on.
///
/// # Errors
/// The graph cannot end: a chain of nodes, each of which waits for the next, and why.
pub(super) fn order(
    graph: &Graph,
    dependencies: &Dependencies,
    pairs: &mut Pairs,
    tasks: u32,
    partial: bool,
) -> Result<Order, String> {
    let nodes = graph.nodes.len();
    let required = (0..nodes as u32).map(|node| dependencies.before.of(node).len() as u32);
    let mut open: Vec<u32> = required.collect();
    for &second in dependencies.after_start.all() {
        open[second as usize] += 1;
    }
    let mut run = Run {
        graph,
        partner: &mut pairs.partner,
        open,
        dependencies,
        events: BinaryHeap::new(),
        now: BinaryHeap::new(),
        at: vec![NOT_YET; nodes],
        ended: vec![false; nodes],
        order: Vec::with_capacity(nodes),
        posted: HashMap::new(),
        arrived: HashMap::new(),
        streams: HashMap::new(),
        computing: vec![0; tasks as usize],
        called: HashMap::new(),
        collectives: BTreeMap::new(),
        overlapping: 0,
        partial,
        between: pairs.between,
    };
    let free = (0..nodes as u32).filter(|&node| run.open[node as usize] == 0);
    run.events = free.map(|node| event(0, graph.nodes[node as usize].task, node)).collect();
    let mut left_out = Vec::new();
    loop {
        let now = run.all();
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
            run.events.push(event(now, graph.nodes[node as usize].task, node));
        }
    }
    Ok(Order { nodes: run.order, overlapping: run.overlapping, left_out })
}

/// A node as a number that is the less, the earlier it starts among those of its task that can at one time.
fn turn(graph: &Graph, node: u32) -> Reverse<u64> {
    let computes = matches!(graph.nodes[node as usize].act, Act::Compute { .. });
    Reverse(u64::from(computes) << 32 | u64::from(node))
}

impl Run<'_> {
    fn is_receive(&self, node: u32) -> bool {
        matches!(self.graph.nodes[node as usize].act, Act::Receive { .. })
    }

    /// Goes on until nothing happens any more; returns when that is.
    fn all(&mut self) -> u64 {
        let mut now = 0;
        while let Some(Reverse(first)) = self.events.pop() {
            now = (first >> 64) as u64;
            let mut event = first;
            loop {
                self.happens(event as u32);
                match self.events.peek() {
                    Some(&Reverse(next)) if next >> 32 == first >> 32 => event = next,
                    _ => break,
                }
                self.events.pop();
            }
            while let Some(Reverse(turn)) = self.now.pop() {
                self.start(now, turn as u32);
            }
        }
        now
    }

    fn happens(&mut self, node: u32) {
        match self.graph.nodes[node as usize].act {
            _ if self.at[node as usize] == NOT_YET => self.now.push(turn(self.graph, node)),
            Act::Send { .. } => self.arrive(node),
            Act::Receive { .. } | Act::Compute { .. } | Act::Collective { .. } => self.end(node),
        }
    }

    fn release(&mut self, node: u32, ended: bool) {
        let Self { graph, open, now, dependencies, .. } = self;
        let after = if ended { &dependencies.after_end } else { &dependencies.after_start };
        for &next in after.of(node) {
            let open = &mut open[next as usize];
            *open -= 1;
            if *open == 0 {
                now.push(turn(graph, next));
            }
        }
    }

    fn end(&mut self, node: u32) {
        if std::mem::replace(&mut self.ended[node as usize], true) {
            return;
        }
        let Node { act, task, stream, .. } = self.graph.nodes[node as usize];
        if let Act::Compute { .. } = act
            && let Some(Reverse(next)) = self.streams.entry((task, stream)).or_default().waiting.pop()
        {
            self.now.push(turn(self.graph, next));
        }
        self.release(node, true);
    }

    fn start(&mut self, t: u64, node: u32) {
        let of = self.graph.nodes[node as usize];
        // One of the next in the file.
        if let Some(&partner) = self.partner.get(node as usize + AHEAD) {
            prefetch(&self.at, partner as usize);
        }
        let mut end = None;
        if let Act::Compute { time } = of.act {
            let stream = self.streams.entry((of.task, of.stream)).or_default();
            if stream.busy > t {
                stream.waiting.push(Reverse(node));
                return;
            }
            stream.busy = later(t, time);
            end = Some(stream.busy);
        }
        self.order.push(node);
        self.at[node as usize] = t;
        match of.act {
            Act::Compute { .. } => {
                self.overlap(t, of.task);
                let computing = &mut self.computing[of.task as usize];
                *computing = end.map_or(*computing, |end| end.max(*computing));
            }
            Act::Send { bytes, to, .. } => {
                self.overlap(t, of.task);
                let arrival = match node >= self.between {
                    true => t,
                    false => later(later(t, LATENCY), bytes.saturating_mul(8) / 10),
                };
                self.at[node as usize] = arrival;
                match self.partner[node as usize] {
                    NONE => self.events.push(event(arrival, to, node)),
                    receive if self.at[receive as usize] != NOT_YET => {
                        self.events.push(event(arrival, to, receive));
                    }
                    _ => {}
                }
                end = Some(t);
            }
            Act::Receive { from, tag, .. } => match self.partner[node as usize] {
                NONE if from.is_some() && tag.is_some() => end = self.partial.then_some(t),
                NONE => end = self.post(node).then_some(t),
                send if self.at[send as usize] != NOT_YET => end = Some(self.at[send as usize].max(t)),
                _ => {}
            },
            Act::Collective { call } => {
                let group = self.graph.calls[call as usize].group;
                self.overlap(t, of.task);
                let number = self.called.entry((of.task, group)).or_default();
                let key = (group, *number);
                *number += 1;
                let members = self.collectives.entry(key).or_default();
                members.push(node);
                if members.len() == self.graph.groups[group as usize].members.len() {
                    for member in self.collectives.remove(&key).unwrap_or_default() {
                        let task = self.graph.nodes[member as usize].task;
                        self.events.push(event(later(t, LATENCY), task, member));
                    }
                }
            }
        }
        self.release(node, false);
        match end {
            Some(end) if end <= t => self.end(node),
            Some(end) => self.events.push(event(end, of.task, node)),
            None => {}
        }
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

    fn join(&mut self, send: u32, receive: u32) {
        (self.partner[send as usize], self.partner[receive as usize]) = (receive, send);
    }

    /// A message that no receive names arrives.
    fn arrive(&mut self, send: u32) {
        let Act::Send { to, .. } = self.graph.nodes[send as usize].act else { return };
        let posted = self
            .posted
            .get(&to)
            .and_then(|posted| posted.iter().position(|&receive| self.accepts(receive, send)));
        match posted {
            Some(at) => {
                let receive = self.posted.get_mut(&to).and_then(|posted| posted.remove(at));
                if let Some(receive) = receive {
                    self.join(send, receive);
                    self.end(receive);
                }
            }
            None => self.arrived.entry(to).or_default().push_back(send),
        }
    }

    /// Posts a receive with a wildcard; whether its message is there.
    fn post(&mut self, receive: u32) -> bool {
        let task = self.graph.nodes[receive as usize].task;
        let arrived = self
            .arrived
            .get(&task)
            .and_then(|arrived| arrived.iter().position(|&send| self.accepts(receive, send)));
        let there = arrived.and_then(|at| self.arrived.get_mut(&task)?.remove(at));
        match there {
            Some(send) => self.join(send, receive),
            None => self.posted.entry(task).or_default().push_back(receive),
        }
        there.is_some()
    }

    /// Why nothing goes on: the chain of nodes from the first that has not ended.
    fn stuck(&self) -> String {
        let left = self.ended.iter().filter(|&&ended| !ended).count();
        let mut text = format!("the schedule cannot end: {} not done", Count(left, "operation"));
        let mut node = self.ended.iter().position(|&ended| !ended).map_or(0, |node| node as u32);
        let mut seen = vec![node];
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
                    let Dependencies { before, after_start, .. } = self.dependencies;
                    let required = before.of(node).iter().find(|&&first| !self.ended[first as usize]);
                    let starts = |&first: &u32| {
                        self.at[first as usize] == NOT_YET && after_start.of(first).contains(&node)
                    };
                    required.copied().or_else(|| (0..self.at.len() as u32).find(starts))
                }
            };
            let Some(next) = next else { return text };
            text.push_str(&format!("; {} waits for {}", self.graph.shown(node), self.graph.shown(next)));
            if seen.contains(&next) {
                text.push_str(", in a circle");
                return text;
            }
            seen.push(next);
            node = next;
        }
        text
    }
}
