//! Streams of a rank as tasks of their own: a dependency from one to another becomes a message of 0 bytes.

use super::matching::Pairs;
use super::model::{Act, Graph, NONE, Node};

/// The tag of messages between streams of a rank. It is not matched: these pairs are known.
const TAG: u32 = 0;

/// Makes a task of each stream; returns the rank of each task.
pub(super) fn divide(graph: &mut Graph, pairs: &mut Pairs) -> Vec<u32> {
    // Tasks in the order of ranks, then of streams; a rank without operations keeps one task.
    let mut places: Vec<(u32, u32)> = graph.nodes.iter().map(|node| (node.task, node.stream)).collect();
    places.extend((0..graph.ranks).filter(|&rank| graph.of_rank(rank).is_empty()).map(|rank| (rank, 0)));
    places.sort_unstable();
    places.dedup();
    for node in &mut graph.nodes {
        let task = places.binary_search(&(node.task, node.stream));
        node.task = task.unwrap_or_default() as u32;
        node.stream = 0;
    }
    for (is_start, mut edges) in
        [(false, std::mem::take(&mut graph.requires)), (true, std::mem::take(&mut graph.starts))]
    {
        let mut across = Vec::new();
        edges.retain(|&(first, second)| {
            let same = graph.nodes[first as usize].task == graph.nodes[second as usize].task;
            if !same {
                across.push((first, second));
            }
            same
        });
        if is_start {
            graph.starts.append(&mut edges)
        } else {
            graph.requires.append(&mut edges)
        }
        for (first, second) in across {
            let (from, to) = (graph.nodes[first as usize], graph.nodes[second as usize]);
            let send = graph.nodes.len() as u32;
            let receive = send + 1;
            let act = Act::Send { bytes: 0, to: to.task, tag: TAG };
            graph.nodes.push(Node { act, ..from });
            let act = Act::Receive { bytes: 0, from: Some(from.task), tag: Some(TAG) };
            graph.nodes.push(Node { act, ..to });
            pairs.partner.extend([receive, send]);
            if is_start {
                graph.starts.push((first, send))
            } else {
                graph.requires.push((first, send))
            }
            graph.requires.push((receive, second));
        }
    }
    // A message goes to the task of its receive.
    for (node, &partner) in pairs.partner.iter().enumerate() {
        if partner != NONE {
            let task = graph.nodes[partner as usize].task;
            match &mut graph.nodes[node].act {
                Act::Send { to, .. } => *to = task,
                Act::Receive { from, .. } => *from = from.map(|_| task),
                Act::Compute { .. } | Act::Collective { .. } => {}
            }
        }
    }
    places.into_iter().map(|(rank, _)| rank).collect()
}
