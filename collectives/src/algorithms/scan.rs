//! Prefix reductions.

use crate::Buffer::{Arrival, Input, Output, Work};
use crate::cursor::{Cursor, Next};
use crate::program::{WAIT, local, order_of, recv, reduce, send};
use crate::{Combine, Operation, Sizes};

impl Cursor {
    fn is_last(&self) -> bool {
        self.rank + 1 == self.ranks
    }

    /// From rank to rank, inclusive.
    pub(crate) fn scan_chain(&self, _: Sizes<'_>) -> Next {
        let all = self.all();
        match self.pos {
            0 => local((Input, all), (Output, all), Combine::Store),
            1 if self.rank > 0 => reduce(self.rank - 1, Output, all, Combine::Before),
            2 if self.rank > 0 => WAIT,
            3 if !self.is_last() => send(self.rank + 1, Output, all),
            4 if !self.is_last() => WAIT,
            1..=4 => Next::Skip,
            _ => Next::Done,
        }
    }

    /// From rank to rank, exclusive.
    pub(crate) fn exscan_chain(&self, _: Sizes<'_>) -> Next {
        let all = self.all();
        let work = (Work, all);
        match self.pos {
            0 if self.rank > 0 => recv(self.rank - 1, Output, all),
            1 if self.rank > 0 => WAIT,
            2 if !self.is_last() => local((Input, all), work, Combine::Store),
            3 if !self.is_last() && self.rank > 0 => local((Output, all), work, Combine::Before),
            4 if !self.is_last() => send(self.rank + 1, Work, all),
            5 if !self.is_last() => WAIT,
            0..=5 => Next::Skip,
            _ => Next::Done,
        }
    }

    /// Work: the reduction over the cube of 2ᵏ ranks around this one (its last part may be missing where no
    /// higher rank exists to need it). Output: the part of it at and below (exclusive: below) this rank.
    pub(crate) fn scan_doubling(&self, _: Sizes<'_>) -> Next {
        let all = self.all();
        let (input, output) = ((Input, all), (Output, all));
        let (work, arrival) = ((Work, all), (Arrival, all));
        let is_exclusive = self.operation == Operation::Exscan;
        if self.lap == 0 {
            return match self.pos {
                0 => local(input, work, Combine::Store),
                1 if !is_exclusive => local(input, output, Combine::Store),
                _ => Next::Lap,
            };
        }
        let distance = 1 << self.round;
        if distance >= self.ranks {
            return Next::Done;
        }
        let partner = self.rank ^ distance;
        if partner >= self.ranks {
            return Next::Round;
        }
        match self.pos {
            0 => send(partner, Work, all),
            1 => recv(partner, Arrival, all),
            2 => WAIT,
            3 => local(arrival, work, order_of(partner, self.rank)),
            4 if partner < self.rank => {
                // The first that comes from below is all there is below yet.
                let is_first = is_exclusive && self.round == self.rank.trailing_zeros();
                local(arrival, output, if is_first { Combine::Store } else { Combine::Before })
            }
            _ => Next::Round,
        }
    }
}
