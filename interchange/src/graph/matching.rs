//! Pairs of sends and receives, by source and tag, in the order of their rank.
//!
//! The n-th send from s to d with tag t meets the n-th receive at d that names s and t. The order of a rank is topological; among
//! operations that are free, it is that of the file. Receives from any source or with any tag are left for the yardstick.

use super::model::{Act, Graph, NONE, Neighbours};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sends and receives, and their partners.
#[derive(Debug)]
pub(super) struct Pairs {
    /// By node.
    pub(super) partner: Vec<u32>,
    /// Receives without a send that names their rank and tag.
    pub(super) receives: Vec<u32>,
    /// Sends that no receive names.
    pub(super) sends: Vec<u32>,
    /// Number of receives from any source or with any tag.
    pub(super) wildcards: u64,
    /// Pairs of which the message is larger than the room of the receive.
    pub(super) too_large: Vec<(u32, u32)>,
    /// The first node that is for a dependency between streams of a rank.
    pub(super) between: u32,
}

/// An order of the `count` nodes from `first` on in which each is behind those on which it depends; `Err`: there is a circle.
pub(crate) fn order_of(first: u32, count: u32, edges: &[(u32, u32)]) -> Result<Vec<u32>, ()> {
    let local: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (from - first, to - first)).collect();
    match sorted(count as usize, [&local, &Vec::new()]) {
        Ok(order) => {
            Ok((first..first + count).map(|node| node_at(order.as_deref(), node - first) + first).collect())
        }
        Err(_) => Err(()),
    }
}

/// An order of all nodes in which each is behind those on which it depends, `None`: that of the file; or a circle of dependencies.
pub(super) fn topological(graph: &Graph) -> Result<Option<Vec<u32>>, Vec<u32>> {
    sorted(graph.nodes.len(), [&graph.requires, &graph.starts]).map_err(|open| circle(graph, &open))
}

/// The node with a number in an order.
fn node_at(order: Option<&[u32]>, number: u32) -> u32 {
    order.map_or(number, |order| order[number as usize])
}

/// Sorts nodes, unless they are in order; if there is a circle, the number of open dependencies of each node.
fn sorted(nodes: usize, edges: [&Vec<(u32, u32)>; 2]) -> Result<Option<Vec<u32>>, Vec<u32>> {
    if edges.into_iter().flatten().all(|(first, second)| first < second) {
        return Ok(None);
    }
    let mut open = vec![0u32; nodes];
    for &(_, second) in edges.into_iter().flatten() {
        open[second as usize] += 1;
    }
    let followers = edges.map(|edges| Neighbours::after(nodes, edges));
    let free = (0..nodes as u32).filter(|&node| open[node as usize] == 0).map(Reverse);
    let mut free: BinaryHeap<Reverse<u32>> = free.collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(Reverse(node)) = free.pop() {
        order.push(node);
        for &next in followers.iter().flat_map(|followers| followers.of(node)) {
            open[next as usize] -= 1;
            if open[next as usize] == 0 {
                free.push(Reverse(next));
            }
        }
    }
    if order.len() == nodes { Ok(Some(order)) } else { Err(open) }
}

/// A circle among the nodes that have open dependencies, each behind the one that it depends on.
fn circle(graph: &Graph, open: &[u32]) -> Vec<u32> {
    let mut before = vec![NONE; open.len()];
    for &(first, second) in graph.requires.iter().chain(&graph.starts) {
        if open[first as usize] > 0 && open[second as usize] > 0 {
            before[second as usize] = first;
        }
    }
    let Some(mut node) = (0..open.len() as u32).find(|&node| before[node as usize] != NONE) else {
        return Vec::new();
    };
    // Every node with open dependencies has one before it that has, so going back ends in a circle.
    for _ in 0..open.len() {
        node = before[node as usize];
    }
    let mut circle = vec![node];
    let mut at = before[node as usize];
    while at != node {
        circle.push(at);
        at = before[at as usize];
    }
    circle.reverse();
    circle
}

/// Where a message goes: receiver, sender, tag; and its number in the order.
type Key = u128;

fn key(to: u32, from: u32, tag: u32, number: u32) -> Key {
    u128::from(to) << 96 | u128::from(from) << 64 | u128::from(tag) << 32 | u128::from(number)
}

/// Pairs sends and receives, which are in this order.
pub(super) fn pair(graph: &Graph, order: Option<&[u32]>) -> Pairs {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    let mut wildcards = 0;
    for number in 0..graph.nodes.len() as u32 {
        let node = node_at(order, number);
        let task = graph.nodes[node as usize].task;
        match graph.nodes[node as usize].act {
            Act::Send { to, tag, .. } => sends.push(key(to, task, tag, number)),
            Act::Receive { from: Some(from), tag: Some(tag), .. } => {
                receives.push(key(task, from, tag, number))
            }
            Act::Receive { .. } => wildcards += 1,
            Act::Compute { .. } | Act::Collective { .. } => {}
        }
    }
    sends.sort_unstable();
    receives.sort_unstable();
    let node = |key: &Key| node_at(order, *key as u32);
    let mut partner = vec![NONE; graph.nodes.len()];
    let (mut alone_sends, mut alone_receives, mut too_large) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sends, mut receives) = (sends.iter().peekable(), receives.iter().peekable());
    loop {
        match (sends.peek(), receives.peek()) {
            (None, None) => break,
            (Some(send), Some(receive)) if *send >> 32 == *receive >> 32 => {
                let (send, receive) = (node(send), node(receive));
                (partner[send as usize], partner[receive as usize]) = (receive, send);
                if bytes(graph, send) > bytes(graph, receive) {
                    too_large.push((send, receive));
                }
                sends.next();
                receives.next();
            }
            (Some(send), receive) if receive.is_none_or(|receive| *send < *receive) => {
                alone_sends.push(node(send));
                sends.next();
            }
            (_, Some(receive)) => {
                alone_receives.push(node(receive));
                receives.next();
            }
            (Some(_), None) => break,
        }
    }
    let between = graph.nodes.len() as u32;
    Pairs { partner, receives: alone_receives, sends: alone_sends, wildcards, too_large, between }
}

/// The size of a message, or the room of a receive.
pub(super) fn bytes(graph: &Graph, node: u32) -> u64 {
    match graph.nodes[node as usize].act {
        Act::Send { bytes, .. } | Act::Receive { bytes, .. } => bytes,
        Act::Compute { .. } | Act::Collective { .. } => 0,
    }
}
