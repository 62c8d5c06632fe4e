//! Shortest routes through any graph of switches, by a table of distances.

use std::collections::VecDeque;

use super::limits::{GraphProblem, MAX_PORTS, MAX_SEARCH, MAX_SWITCHES};
use super::wiring::{LinkId, Vertex, Wiring};

/// Unreachable.
const FAR: u16 = u16::MAX;

/// The links between switches, and the distances between these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    /// Links out of each switch to other switches, grouped by switch: (link, to).
    out: Vec<(LinkId, u32)>,
    /// Index of each switch's first entry in `out`; one more at the end.
    first_out: Vec<u32>,
    /// Links between two switches: `[to × switches + from]`.
    distances: Vec<u16>,
}

impl Graph {
    /// The graph of those links of a network that work; `name` returns the name of a switch.
    pub(super) fn new(
        wiring: &Wiring,
        works: impl Fn(LinkId) -> bool,
        name: impl Fn(u32) -> String,
    ) -> Result<Self, GraphProblem> {
        let switches = wiring.switches() as usize;
        if switches > MAX_SWITCHES {
            return Err(GraphProblem::TooManySwitches { switches });
        }
        let mut graph = Self { out: Vec::new(), first_out: Vec::new(), distances: Vec::new() };
        graph.find_neighbours(wiring, works, name)?;
        graph.find_distances(switches)?;
        Ok(graph)
    }

    /// Lists the links out of each switch.
    fn find_neighbours(
        &mut self,
        wiring: &Wiring,
        works: impl Fn(LinkId) -> bool,
        name: impl Fn(u32) -> String,
    ) -> Result<(), GraphProblem> {
        let between = || {
            let links = (2 * wiring.nodes()..wiring.links()).map(LinkId).filter(|link| works(*link));
            links.filter_map(|link| match wiring.ends(link) {
                Some((Vertex::Switch(from), Vertex::Switch(to))) => Some((link, from, to)),
                _ => None,
            })
        };
        let switches = wiring.switches() as usize;
        let mut next = vec![0u32; switches + 1];
        between().for_each(|(_, from, _)| next[from as usize + 1] += 1);
        if let Some(switch) = next[1..].iter().position(|&ports| ports > MAX_PORTS) {
            return Err(GraphProblem::TooManyPorts(name(switch as u32)));
        }
        for switch in 1..next.len() {
            next[switch] += next[switch - 1];
        }
        self.first_out.clone_from(&next);
        let mut out = vec![(LinkId(0), 0); next[switches] as usize];
        for (link, from, to) in between() {
            out[next[from as usize] as usize] = (link, to);
            next[from as usize] += 1;
        }
        self.out = out;
        Ok(())
    }

    /// Breadth-first search backwards from each switch.
    fn find_distances(&mut self, switches: usize) -> Result<(), GraphProblem> {
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); switches];
        for from in 0..switches as u32 {
            for &(_, to) in self.neighbours(from) {
                // Of parallel links one counts.
                let into = &mut into[to as usize];
                if into.last() != Some(&from) {
                    into.push(from);
                }
            }
        }
        let neighbours: usize = into.iter().map(Vec::len).sum();
        if switches as u64 * neighbours as u64 > MAX_SEARCH {
            return Err(GraphProblem::TooDense { switches, neighbours });
        }
        self.distances = vec![FAR; switches * switches];
        let mut queue = VecDeque::new();
        for (to, distances) in self.distances.chunks_mut(switches.max(1)).enumerate() {
            distances[to] = 0;
            queue.push_back(to as u32);
            while let Some(at) = queue.pop_front() {
                let next = distances[at as usize] + 1;
                for &from in &into[at as usize] {
                    if distances[from as usize] == FAR {
                        distances[from as usize] = next;
                        queue.push_back(from);
                    }
                }
            }
        }
        Ok(())
    }

    /// The links out of a switch to other switches: (link, to).
    #[inline(always)]
    pub(super) fn neighbours(&self, switch: u32) -> &[(LinkId, u32)] {
        let range = self.first_out[switch as usize] as usize..self.first_out[switch as usize + 1] as usize;
        &self.out[range]
    }

    /// Links between two switches; `None` if unreachable.
    #[inline(always)]
    pub(super) fn distance(&self, from: u32, to: u32) -> Option<u16> {
        let switches = self.first_out.len() - 1;
        let distance = self.distances[to as usize * switches + from as usize];
        (distance != FAR).then_some(distance)
    }

    /// Most links between two switches that are connected.
    pub(super) fn diameter(&self) -> u32 {
        let distances = self.distances.iter().filter(|&&distance| distance != FAR);
        distances.max().copied().unwrap_or(0).into()
    }

    /// The next link from a switch to another one, and where it leads, one closer; `choose` gets the number of such links, if there are
    /// several, and the links. `None` at the target, and if it is unreachable.
    #[inline]
    pub(super) fn next(
        &self,
        at: u32,
        target: u32,
        choose: impl FnOnce(u32, &dyn Fn(u32) -> LinkId) -> u32,
    ) -> Option<(LinkId, u32)> {
        let left = self.distance(at, target).filter(|left| *left > 0)?;
        let shorter = || {
            let is_shorter = move |&&(_, to): &&(_, u32)| self.distance(to, target) == Some(left - 1);
            self.neighbours(at).iter().filter(is_shorter)
        };
        // A switch at a distance has a closer neighbour.
        let nth = |way: u32| shorter().nth(way as usize).copied().unwrap_or_default();
        let way = match shorter().count() as u32 {
            1 => 0,
            n => choose(n, &|way| nth(way).0),
        };
        Some(nth(way))
    }
}
