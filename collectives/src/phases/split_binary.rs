//! The split-binary broadcast: odd nodes get the first half of the vector, even ones the second, each down a
//! binary tree by segments; then 1 and 2, 3 and 4 … exchange halves. A last odd node without partner gets its
//! second half from the root.

use super::{WAIT, recv, send};
use crate::Tree;
use crate::phase::Next;
use crate::{Buffer, Cursor};

impl Cursor {
    /// Half 0 or 1 of the vector, the first one being the larger.
    pub(crate) fn half(&self, half: u32) -> (u64, u64) {
        let unit = u64::from(self.unit);
        let first = (self.total / unit).div_ceil(2) * unit;
        if half == 0 { (0, first) } else { (first, self.total - first) }
    }

    /// Segment s of the half that node v ≠ 0 gets.
    fn half_segment(&self, v: u32, s: u32) -> (u64, u64) {
        let (start, len) = self.half((v + 1) % 2);
        let skip = (u64::from(s) * self.segment).min(len);
        (start + skip, self.segment.min(len - skip))
    }

    pub(crate) fn split_down(&self) -> Next {
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
                send(self.real_rank(child), Buffer::Output, self.half_segment(child, s))
            }
            pos if pos - 3 == children && children > 0 && (v == 0 || last) => WAIT,
            _ if last => Next::Done,
            _ => Next::Round,
        }
    }

    fn recv_half_segment(&self, v: u32, s: u32) -> Next {
        recv(self.real_rank(self.parent(Tree::Binary, v)), Buffer::Output, self.half_segment(v, s))
    }

    pub(crate) fn split_exchange(&self) -> Next {
        let v = self.virtual_rank();
        let lonely = self.ranks - 1;
        let has_lonely = self.ranks.is_multiple_of(2);
        match (v, self.pos) {
            (0, 0) if has_lonely => send(self.real_rank(lonely), Buffer::Output, self.half(1)),
            (0, 1) if has_lonely => WAIT,
            (0, _) => Next::Done,
            (_, 0) if v == lonely && has_lonely => Next::Skip,
            (_, 1) if v == lonely && has_lonely => recv(self.root, Buffer::Output, self.half(1)),
            (_, 0) => send(self.exchange_partner(v), Buffer::Output, self.half((v + 1) % 2)),
            (_, 1) => recv(self.exchange_partner(v), Buffer::Output, self.half(v % 2)),
            (_, 2) => WAIT,
            _ => Next::Done,
        }
    }

    fn exchange_partner(&self, v: u32) -> u32 {
        self.real_rank(if v % 2 == 1 { v + 1 } else { v - 1 })
    }
}
