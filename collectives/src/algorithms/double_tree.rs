//! The double binary tree of Sanders, Speck and Träff, as NCCL uses it: two trees, each with half of the vector; whoever is within one is
//! a leaf of the other, or nearly so, and so every rank's links are used in full.
//!
//! A tree is the binary tree in order over 1…p−1 with node 0 on top; the second has the ranks mirrored (even p) or moved on by one (odd p).
//!
//! Segments go up and down at the same time, in step: what a node sends behind the wait of one round, the receiver waits for in the
//! next. With trees of height h, a node at depth d hands segment s up in round s + h − d, and passes it down in round s + h + d. So nobody waits in
//! a round for what depends on another's wait of the same round, whichever of two nodes is above the other in which tree.

use crate::Buffer::Output;
use crate::cursor::{Cursor, Next};
use crate::program::{Description, WAIT, programs, recv, reduce, send};
use crate::{Combine, Sizes};

pub(super) const DOUBLE_TREE: Description = Description {
    segments: |c, _, segment| c.cut(c.half(0).1, segment),
    ..Description::new(programs! { Allreduce: copy_in(Output), two_trees(); })
};

/// One of the two trees.
type Side = u32;

impl Cursor {
    /// This rank's node of a tree.
    fn node(&self, side: Side, rank: u32) -> u32 {
        match (side, self.ranks % 2) {
            (0, _) => rank,
            (_, 0) => self.ranks - 1 - rank,
            _ => self.minus(rank, 1),
        }
    }

    /// The rank of a node of a tree.
    fn rank_of_node(&self, side: Side, node: u32) -> u32 {
        match (side, self.ranks % 2) {
            (0, _) => node,
            (_, 0) => self.ranks - 1 - node,
            _ => self.plus(node, 1),
        }
    }

    fn up(&self, node: u32) -> Option<u32> {
        let low = node & node.wrapping_neg();
        let below = node ^ low;
        let up = below | low << 1;
        (node != 0).then_some(if up < self.ranks { up } else { below })
    }

    /// The two children; on top there is one.
    fn down(&self, node: u32, child: u32) -> Option<u32> {
        let half = match node {
            0 if child == 0 => return Some(1 << (self.ranks - 1).ilog2()),
            _ => (node & node.wrapping_neg()) >> 1,
        };
        match child {
            0 => (half > 0).then(|| node - half),
            _ => std::iter::successors(Some(half), |half| Some(half >> 1))
                .take_while(|&half| half > 0)
                .map(|half| node + half)
                .find(|&right| right < self.ranks),
        }
    }

    fn depth(&self, node: u32) -> u32 {
        std::iter::successors(Some(node), |&node| self.up(node)).count() as u32 - 1
    }

    /// Segment s of a tree's half, if there is anything in it.
    fn side_segment(&self, side: Side, s: u32) -> Option<(u64, u64)> {
        if s >= self.segments {
            return None;
        }
        let (start, len) = self.half(side);
        let skip = (u64::from(s) * self.segment).min(len);
        let rest = self.segment.min(len - skip);
        (rest > 0).then_some((start + skip, rest))
    }

    /// A round has the places 0…5 for what comes, then a wait, then 7…12 for what goes; in each six, three a tree: the parent (for what
    /// goes up, or comes down) and two children.
    pub(crate) fn two_trees(&self, _: Sizes<'_>) -> Next {
        if self.ranks == 1 {
            return Next::Done;
        }
        let nodes = [0, 1].map(|side| self.node(side, self.rank));
        let depths = nodes.map(|node| self.depth(node));
        let height = (self.ranks - 1).ilog2() + 1;
        let last = self.round + 1 == self.segments + height + depths[0].max(depths[1]);
        let (place, comes) = match self.pos {
            pos @ 0..=5 => (pos, true),
            6 => return WAIT,
            pos @ 7..=12 => (pos - 7, false),
            13 if last => return WAIT,
            13 => return Next::Round,
            _ => return Next::Done,
        };
        let side = place / 3;
        let (node, depth) = (nodes[side as usize], depths[side as usize]);
        let segment_after = |rounds| self.side_segment(side, self.round.checked_sub(rounds)?);
        let (going_up, going_down) = (segment_after(height - depth), segment_after(height + depth));
        let (peer, segment) = match place % 3 {
            0 => (self.up(node), if comes { going_down } else { going_up }),
            child => (self.down(node, child - 1), if comes { going_up } else { going_down }),
        };
        let (Some(peer), Some(segment)) = (peer, segment) else { return Next::Skip };
        let peer = self.rank_of_node(side, peer);
        match (comes, place % 3) {
            (true, 0) => recv(peer, Output, segment),
            (true, _) => reduce(peer, Output, segment, Combine::After),
            (false, _) => send(peer, Output, segment),
        }
    }
}
