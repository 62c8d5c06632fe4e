//! Trees of switches: a single switch, and fat trees of any height.
//!
//! The general form is the extended generalised fat tree XGFT(h; m₁…m_h; w₁…w_h): a switch of level `l` has
//! `m_l` children, an element of level `l − 1` has `w_l` parents, and nodes (level 0) have one link (w₁ = 1).
//! With `M_l = m₁⋯m_l` and `W_l = w₁⋯w_l`, level `l` consists of `nodes / M_l` groups of `W_l` parallel switches;
//! element `(t, q)` has the parents `(t / m, q·w + p)`, `p = 0…w−1`.
//!
//! Routing is D-mod-k: upwards to the lowest level at which source and destination have a common ancestor,
//! through parent `⌊dst / W_{l−1}⌋ mod w_l`, and down the only way that leads to the destination. All messages
//! to one node so come down through the same switches, and neighbouring destinations use different ones.
//!
//! Sources: S. R. Öhring et al., "On generalized fat trees", IPPS 1995; E. Zahavi, "D-Mod-K routing providing
//! non-blocking traffic for shift permutations on real life fat trees", 2010.

use crate::routing::{LinkId, Routing, Vertex};

use super::TopologyProblem;

/// A tree of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    nodes: u32,
    links: u32,
    levels: Vec<Level>,
}

/// Level `l` of the tree and the cables between it and level `l − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// Parents of an element of the level below: `w_l`.
    parents: u32,
    /// Nodes below an element of the level below: `M_{l−1}`.
    below: u32,
    /// Parallel elements of the level below: `W_{l−1}`.
    parallel_below: u32,
    /// Parallel switches here: `W_l`.
    parallel: u32,
    /// Nodes below a switch: `M_l`.
    span: u32,
    /// The first of the links between the two levels. Cable `c` is link `first + 2c` upwards and the next one
    /// downwards; it joins child `(c / W_l, c mod W_l / w_l)` and parent `(c / W_l / m_l, c mod W_l)`.
    first: u32,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub struct TreeWalk {
    src: u32,
    dst: u32,
    /// Which of the parallel elements of the present level.
    parallel: u32,
    /// The present level.
    level: u8,
    /// The level up to which the way leads; 0 on the way down.
    top: u8,
}

impl Tree {
    /// A tree with `children[l]` children and `parents[l]` parents from level `l` to `l + 1`.
    pub(super) fn new(children: &[u32], parents: &[u32]) -> Result<Self, TopologyProblem> {
        if children.len() != parents.len() || children.is_empty() {
            return Err(TopologyProblem::Levels { children: children.len(), parents: parents.len() });
        }
        if children.len() > usize::from(u8::MAX) {
            return Err(TopologyProblem::TooLarge);
        }
        if children.contains(&0) || parents.contains(&0) {
            return Err(TopologyProblem::Zero);
        }
        if parents[0] != 1 {
            return Err(TopologyProblem::Rails(parents[0]));
        }
        let product = |numbers: &[u32]| numbers.iter().try_fold(1u32, |a, &b| a.checked_mul(b));
        let nodes = product(children).ok_or(TopologyProblem::TooLarge)?;
        let mut levels = Vec::with_capacity(children.len());
        let mut first = 0u32;
        for l in 0..children.len() {
            let level = Level {
                parents: parents[l],
                below: product(&children[..l]).ok_or(TopologyProblem::TooLarge)?,
                parallel_below: product(&parents[..l]).ok_or(TopologyProblem::TooLarge)?,
                parallel: product(&parents[..=l]).ok_or(TopologyProblem::TooLarge)?,
                span: product(&children[..=l]).ok_or(TopologyProblem::TooLarge)?,
                first,
            };
            let links = u64::from(nodes / level.below) * u64::from(level.parallel) * 2;
            first = u32::try_from(u64::from(first) + links).map_err(|_| TopologyProblem::TooLarge)?;
            levels.push(level);
        }
        Ok(Self { nodes, links: first, levels })
    }

    /// The lowest level at which the two nodes have a common ancestor, at least 1.
    #[inline]
    fn common_level(&self, src: u32, dst: u32) -> u8 {
        let mut level = 1;
        for l in &self.levels {
            if src / l.span == dst / l.span {
                break;
            }
            level += 1;
        }
        level
    }
}

impl Routing for Tree {
    type Walk = TreeWalk;

    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn links(&self) -> u32 {
        self.links
    }

    #[inline]
    fn walk(&self, src: u32, dst: u32) -> TreeWalk {
        TreeWalk { src, dst, parallel: 0, level: 1, top: self.common_level(src, dst) }
    }

    #[inline]
    fn next(&self, walk: &mut TreeWalk) -> Option<LinkId> {
        if walk.level < walk.top {
            let level = &self.levels[usize::from(walk.level)];
            let parent = walk.dst / level.parallel_below % level.parents;
            walk.parallel = walk.parallel * level.parents + parent;
            walk.level += 1;
            let cable = walk.src / level.below * level.parallel + walk.parallel;
            return Some(LinkId(level.first + 2 * cable));
        }
        walk.top = 0;
        walk.level = walk.level.checked_sub(1)?;
        let level = &self.levels[usize::from(walk.level)];
        let cable = walk.dst / level.below * level.parallel + walk.parallel;
        walk.parallel /= level.parents;
        Some(LinkId(level.first + 2 * cable + 1))
    }

    fn distance(&self, src: u32, dst: u32) -> u32 {
        2 * u32::from(self.common_level(src, dst))
    }

    fn ends(&self, link: LinkId) -> Option<(Vertex, Vertex)> {
        if link.0 >= self.links {
            return None;
        }
        let at = self.levels.partition_point(|level| level.first <= link.0).checked_sub(1)?;
        let level = &self.levels[at];
        let cable = (link.0 - level.first) / 2;
        let (group, parallel) = (cable / level.parallel, cable % level.parallel);
        let child = match at {
            0 => Vertex::Node(group),
            _ => Vertex::Switch {
                level: at as u8,
                index: group * level.parallel_below + parallel / level.parents,
            },
        };
        let group = group / (level.span / level.below);
        let parent = Vertex::Switch { level: at as u8 + 1, index: group * level.parallel + parallel };
        Some(if (link.0 - level.first).is_multiple_of(2) { (child, parent) } else { (parent, child) })
    }

    fn vertex_name(&self, vertex: Vertex) -> String {
        let (level, index) = match vertex {
            Vertex::Node(node) => return format!("node{node}"),
            Vertex::Switch { level, index } => (level, index),
        };
        match (self.levels.len(), level) {
            (1, _) => "switch".to_owned(),
            (2, 1) => format!("leaf{index}"),
            (2, _) => format!("spine{index}"),
            (3, 1) => format!("edge{index}"),
            (3, 2) => format!("aggregation{index}"),
            (3, _) => format!("core{index}"),
            _ => format!("level{level}.{index}"),
        }
    }
}
