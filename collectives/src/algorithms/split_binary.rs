//! The split-binary broadcast: odd nodes get the first half of the vector, even ones the second, each down a
//! binary tree by segments; then 1 and 2, 3 and 4 … exchange halves. A last odd node without partner gets its
//! second half from the root.

use crate::Buffer::Output;
use crate::cursor::{Cursor, Next};
use crate::program::{Description, WAIT, programs, recv, send};
use crate::{Sizes, Tree};

pub(super) const SPLIT_BINARY: Description = Description {
    segments: |c, _, segment| c.cut(c.half(0).1, segment),
    ..Description::new(programs! { Bcast: split_down(), split_exchange(); })
};

impl Cursor {
    /// Segment s of the half that node v ≠ 0 gets.
    fn half_segment(&self, v: u32, s: u32) -> (u64, u64) {
        let (start, len) = self.half((v + 1) % 2);
        let skip = (u64::from(s) * self.segment).min(len);
        (start + skip, self.segment.min(len - skip))
    }

    /// Each half of the vector down its half of a binary tree.
    pub(crate) fn split_down(&self, _: Sizes<'_>) -> Next {
        let v = self.virtual_rank();
        let (s, last) = (self.round, self.round + 1 == self.segments);
        let children = self.children(Tree::Binary, v);
        match self.pos {
            0 if v != 0 && s == 0 => self.recv_half_segment(v, 0),
            1 if v != 0 => WAIT,
            2 if v != 0 && !last => self.recv_half_segment(v, s + 1),
            0..=2 => Next::Skip,
            pos if pos - 3 < children => {
                let child = self.child(Tree::Binary, v, pos - 3);
                send(self.real_rank(child), Output, self.half_segment(child, s))
            }
            pos if pos - 3 == children && children > 0 && (v == 0 || last) => WAIT,
            _ if last => Next::Done,
            _ => Next::Round,
        }
    }

    fn recv_half_segment(&self, v: u32, s: u32) -> Next {
        recv(self.real_rank(self.parent(Tree::Binary, v)), Output, self.half_segment(v, s))
    }

    /// The halves exchanged.
    pub(crate) fn split_exchange(&self, _: Sizes<'_>) -> Next {
        let v = self.virtual_rank();
        let lonely = self.ranks - 1;
        let has_lonely = self.ranks.is_multiple_of(2);
        match (v, self.pos) {
            (0, 0) if has_lonely => send(self.real_rank(lonely), Output, self.half(1)),
            (0, 1) if has_lonely => WAIT,
            (0, _) => Next::Done,
            (_, 0) if v == lonely && has_lonely => Next::Skip,
            (_, 0) => send(self.exchange_partner(v), Output, self.half((v + 1) % 2)),
            (_, 1) => recv(self.exchange_partner(v), Output, self.half(v % 2)),
            (_, 2) => WAIT,
            _ => Next::Done,
        }
    }

    /// The node with the other half: after the last one of an even number of nodes comes the root.
    fn exchange_partner(&self, v: u32) -> u32 {
        self.real_rank(if v % 2 == 1 { v + 1 } else { v - 1 })
    }
}
