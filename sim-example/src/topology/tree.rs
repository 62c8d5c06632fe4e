//! Trees of switches: a single switch, and fat trees of any height.
//!
//! The general form is the extended generalised fat tree XGFT(h; m₁…m_h; w₁…w_h) with p₁…p_h parallel cables: a switch
//! of level `l` has `m_l` children, an element of level `l − 1` has `w_l` parents and `p_l` cables to each; nodes (level
//! 0) have one cable (w₁ = p₁ = 1). With `M_l = m₁⋯m_l` and `W_l = w₁⋯w_l`, level `l` consists of `nodes / M_l` groups of
//! `W_l` parallel switches; element `(t, q)` has the parents `(t / m, q·w + u)`, `u = 0…w−1`.
//!
//! Source: S. R. Öhring et al., "On generalized fat trees", IPPS 1995.

use super::TopologyProblem;
use super::graph::{Graph, LinkClass, LinkId, checked_links, product};
use crate::division::Divisor;

/// A tree of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    nodes: u32,
    switches: u32,
    links: u32,
    levels: Vec<Level>,
}

/// Level `l` of the tree and the cables between it and level `l − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// Parents of an element of the level below: `w_l`.
    pub(crate) parents: Divisor,
    /// Cables between a switch and each of its children: `p_l`.
    pub(crate) cables: u32,
    /// Children of a switch: `m_l`.
    pub(crate) children: Divisor,
    /// Nodes below an element of the level below: `M_{l−1}`.
    pub(crate) below: Divisor,
    /// Parallel elements of the level below: `W_{l−1}`.
    pub(crate) parallel_below: Divisor,
    /// Parallel switches here: `W_l`.
    pub(crate) parallel: Divisor,
    /// Nodes below a switch: `M_l`.
    pub(crate) span: Divisor,
    /// The first switch of the level.
    pub(crate) first_switch: u32,
    /// First link between the two levels; see [`Level::link`].
    first_link: u32,
}

impl Level {
    /// The upward link over cable `cable` from the element of `group` in the level below to its parent number
    /// `parallel`; the downward link follows.
    #[inline(always)]
    pub(crate) fn link(&self, group: u32, parallel: u32, cable: u32) -> LinkId {
        LinkId(self.first_link + 2 * ((group * self.parallel.get() + parallel) * self.cables + cable))
    }
}

impl Tree {
    /// A tree in which elements of level `l` have `parents[l]` parents with `cables[l]` cables to each, and
    /// switches of level `l + 1` have `children[l]` children.
    pub(super) fn new(children: &[u32], parents: &[u32], cables: &[u32]) -> Result<Self, TopologyProblem> {
        if children.len() != parents.len() || children.is_empty() {
            return Err(TopologyProblem::Levels { children: children.len(), others: parents.len() });
        }
        if children.len() != cables.len() {
            return Err(TopologyProblem::Levels { children: children.len(), others: cables.len() });
        }
        if children.len() > 32 {
            return Err(TopologyProblem::TooLarge);
        }
        if [children, parents, cables].iter().any(|numbers| numbers.contains(&0)) {
            return Err(TopologyProblem::Zero);
        }
        if parents[0] != 1 || cables[0] != 1 {
            return Err(TopologyProblem::Rails(parents[0].max(cables[0])));
        }
        let nodes = product(children.iter().copied())?;
        let up_to = |numbers: &[u32], level: usize| product(numbers[..level].iter().copied());
        let (mut levels, mut first_link, mut first_switch) = (Vec::with_capacity(children.len()), 0, 0);
        for l in 0..children.len() {
            let (below, span) = (up_to(children, l)?, up_to(children, l + 1)?);
            let (parallel_below, parallel) = (up_to(parents, l)?, up_to(parents, l + 1)?);
            levels.push(Level {
                parents: Divisor::new(parents[l]),
                cables: cables[l],
                children: Divisor::new(children[l]),
                below: Divisor::new(below),
                parallel_below: Divisor::new(parallel_below),
                parallel: Divisor::new(parallel),
                span: Divisor::new(span),
                first_switch,
                first_link,
            });
            let joined = product([nodes / below, parallel, cables[l]])?;
            first_link = checked_links(u64::from(first_link) + 2 * u64::from(joined))?;
            first_switch =
                checked_links(u64::from(first_switch) + u64::from(product([nodes / span, parallel])?))?;
        }
        Ok(Self { nodes, switches: first_switch, links: first_link, levels })
    }

    pub(super) fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.nodes, self.switches, self.links, |node| self.switch_of(node));
        for (below, level) in self.levels.iter().zip(&self.levels[1..]) {
            for group in 0..self.nodes / level.below.get() {
                for parallel in 0..level.parallel.get() {
                    let child = group * level.parallel_below.get() + level.parents.quotient(parallel);
                    let parent = level.children.quotient(group) * level.parallel.get() + parallel;
                    for _ in 0..level.cables {
                        graph.cable(
                            below.first_switch + child,
                            level.first_switch + parent,
                            LinkClass::LOCAL,
                        );
                    }
                }
            }
        }
        graph
    }

    /// The levels of switches, lowest first.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The switch of `node`.
    #[inline(always)]
    pub(crate) fn switch_of(&self, node: u32) -> u32 {
        self.levels[0].span.quotient(node)
    }

    /// Links on a shortest route between two nodes: up to the lowest common ancestor, and down.
    pub(super) fn distance(&self, src: u32, dst: u32) -> u32 {
        let common = |level: &Level| level.span.quotient(src) == level.span.quotient(dst);
        2 * (1 + self.levels.iter().position(common).unwrap_or(0) as u32)
    }

    /// The name of a switch.
    pub(super) fn switch_name(&self, switch: u32) -> String {
        let level = self.level_of(switch);
        let index = switch - self.levels[level].first_switch;
        match (self.levels.len(), level + 1) {
            (1, _) => "switch".to_owned(),
            (2, 1) => format!("leaf{index}"),
            (2, _) => format!("spine{index}"),
            (3, 1) => format!("edge{index}"),
            (3, 2) => format!("aggregation{index}"),
            (3, _) => format!("core{index}"),
            (_, level) => format!("level{level}.{index}"),
        }
    }

    /// Index of the level of `switch` in [`Tree::levels`].
    pub(crate) fn level_of(&self, switch: u32) -> usize {
        self.levels.partition_point(|level| level.first_switch <= switch) - 1
    }
}
