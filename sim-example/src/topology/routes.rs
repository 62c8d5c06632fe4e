//! Routes between pairs of nodes that a file gives, switch by switch.

use std::collections::HashMap;

use super::graph::Graph;
use super::wiring::{LinkId, Vertex, Wiring};

/// Given routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    /// Links between switches, with the switches they lead to; route by route.
    links: Vec<(LinkId, u32)>,
    /// First entry in `links` and number of links, by source and destination.
    of_pair: HashMap<(u32, u32), (u32, u32)>,
}

impl Routes {
    /// Adds the route between two nodes over these switches. Of several links from one to the next, it takes the first.
    ///
    /// # Errors
    /// Why there is no such route.
    pub(super) fn add(
        &mut self,
        (src, dst): (u32, u32),
        switches: &[u32],
        wiring: &Wiring,
        graph: &Graph,
        name: impl Fn(Vertex) -> String,
    ) -> Result<(), String> {
        for (end, node) in [(switches.first(), src), (switches.last(), dst)] {
            if end != Some(&wiring.switch_of(node)) {
                let end =
                    end.map_or_else(|| "no switch".into(), |end| format!("{:?}", name(Vertex::Switch(*end))));
                return Err(format!("{:?} is not connected to {end}", name(Vertex::Node(node))));
            }
        }
        let first = self.links.len() as u32;
        for pair in switches.windows(2) {
            let link = graph.neighbours(pair[0]).iter().find(|&&(_, to)| to == pair[1]);
            let [from, to] = [pair[0], pair[1]].map(Vertex::Switch);
            let missing = || format!("no such link: {}->{}", name(from), name(to));
            self.links.push(*link.ok_or_else(missing)?);
        }
        match self.of_pair.insert((src, dst), (first, switches.len() as u32 - 1)) {
            None => Ok(()),
            Some(_) => Err("the route is given twice".into()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_pair.is_empty()
    }

    /// The route between two nodes: its first [`Routes::link`], and number of links.
    pub(super) fn of(&self, src: u32, dst: u32) -> Option<(u32, u32)> {
        if self.is_empty() {
            return None;
        }
        self.of_pair.get(&(src, dst)).copied()
    }

    /// Link number `at` of the routes, and the switch it leads to.
    #[inline]
    pub(super) fn link(&self, at: u32) -> (LinkId, u32) {
        self.links[at as usize]
    }

    /// Links of the longest route.
    pub(super) fn longest(&self) -> u32 {
        self.of_pair.values().map(|&(_, links)| links).max().unwrap_or(0)
    }
}
