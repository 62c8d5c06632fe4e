//! A network divided among threads.

use std::collections::VecDeque;

use super::fabric::Fabric;
use super::wiring::{LinkId, Vertex};

/// The part of each switch, with the nodes at it.
#[derive(Debug)]
pub(crate) struct Parts {
    /// By link: the part of its beginning, and of its end.
    links: Vec<(u16, u16)>,
    /// By part: the links that have an end in it, in ascending order.
    of_part: Vec<Vec<LinkId>>,
    /// By link: its place among those of the part of its beginning, and of its end.
    at_sender: Vec<u32>,
    at_receiver: Vec<u32>,
}

impl Parts {
    /// Number of parts.
    pub(crate) fn count(&self) -> u16 {
        self.of_part.len() as u16
    }

    /// The links that have an end in a part. Those of nodes come first, as in the whole network.
    #[inline]
    pub(crate) fn links(&self, part: u16) -> &[LinkId] {
        &self.of_part[usize::from(part)]
    }

    /// The place of a link among those of the part that sends over it.
    #[inline]
    pub(crate) fn at_sender(&self, link: LinkId) -> LinkId {
        LinkId(self.at_sender[link.index()])
    }

    /// The place of a link among those of the part that receives from it.
    #[inline]
    pub(crate) fn at_receiver(&self, link: LinkId) -> LinkId {
        LinkId(self.at_receiver[link.index()])
    }

    /// The part of a node.
    #[inline]
    pub(crate) fn of_node(&self, node: u32) -> u16 {
        self.of_sender(LinkId::injection(node))
    }

    /// The part that sends over a link.
    #[inline]
    pub(crate) fn of_sender(&self, link: LinkId) -> u16 {
        self.links[link.index()].0
    }

    /// The part that receives from a link.
    #[inline]
    pub(crate) fn of_receiver(&self, link: LinkId) -> u16 {
        self.links[link.index()].1
    }

    /// The links from one part to another.
    pub(crate) fn between(&self) -> impl Iterator<Item = LinkId> + '_ {
        let links = (0..).zip(&self.links).filter(|(_, (from, to))| from != to);
        links.map(|(link, _)| LinkId(link))
    }
}

impl Fabric {
    /// Divides the network into `count` parts of about as many tasks each, of which `tasks` are the nodes. Nodes with
    /// neighbouring numbers are in one part where possible, and a switch without nodes is where most of its neighbours are.
    pub(crate) fn parts(&self, count: u16, tasks: impl Iterator<Item = u32>) -> Parts {
        let mut weights = vec![0u64; self.nodes() as usize];
        tasks.for_each(|node| weights[node as usize] += 1);
        let total = weights.iter().sum::<u64>().max(1);
        let mut of_switch: Vec<Option<u16>> = vec![None; self.switches() as usize];
        let mut before = 0;
        for (node, weight) in (0..).zip(weights) {
            let part = (before * u64::from(count) / total).min(u64::from(count) - 1) as u16;
            of_switch[self.switch_of(node) as usize].get_or_insert(part);
            before += weight;
        }
        let ends = |link: u32| self.ends(LinkId(link));
        let mut neighbours = vec![Vec::new(); of_switch.len()];
        for link in 0..self.links() {
            if let Some((Vertex::Switch(from), Vertex::Switch(to))) = ends(link) {
                neighbours[from as usize].push(to);
            }
        }
        // From the nodes inwards.
        let mut switches_of = vec![0u32; usize::from(count)];
        let mut known: VecDeque<u32> =
            (0..self.switches()).filter(|&switch| of_switch[switch as usize].is_some()).collect();
        while let Some(switch) = known.pop_front() {
            for &neighbour in &neighbours[switch as usize] {
                if of_switch[neighbour as usize].is_some() {
                    continue;
                }
                let mut votes = vec![0u32; usize::from(count)];
                for part in neighbours[neighbour as usize].iter().filter_map(|&it| of_switch[it as usize]) {
                    votes[usize::from(part)] += 1;
                }
                let best = (0..count).max_by_key(|&part| {
                    let part = usize::from(part);
                    (votes[part], std::cmp::Reverse(switches_of[part]))
                });
                let best = best.unwrap_or(0);
                switches_of[usize::from(best)] += 1;
                of_switch[neighbour as usize] = Some(best);
                known.push_back(neighbour);
            }
        }
        let part = |vertex: Vertex| {
            let switch = match vertex {
                Vertex::Node(node) => self.switch_of(node),
                Vertex::Switch(switch) => switch,
            };
            of_switch[switch as usize].unwrap_or(0)
        };
        let mut parts = Parts {
            links: Vec::new(),
            of_part: vec![Vec::new(); usize::from(count)],
            at_sender: Vec::new(),
            at_receiver: Vec::new(),
        };
        for link in (0..self.links()).map(LinkId) {
            let (from, to) = ends(link.0).map_or((0, 0), |(from, to)| (part(from), part(to)));
            let mut place = |part: u16| {
                let links = &mut parts.of_part[usize::from(part)];
                if links.last() != Some(&link) {
                    links.push(link);
                }
                links.len() as u32 - 1
            };
            parts.at_sender.push(place(from));
            parts.at_receiver.push(place(to));
            parts.links.push((from, to));
        }
        parts
    }
}
