//! The queue of things that become ready at a time: a hierarchical timing wheel.
//!
//! Order: by time; at equal times first in, first out. Time never goes back: nothing may be put in for a moment
//! before the last that was asked for ([`Ready::pop`]).
//!
//! A thing lies on the level of the highest digit (of [`BITS`] bits) in which its time differs from the wheel's
//! present, in the slot of that digit. When the wheel's present comes to a slot, its things move to lower levels;
//! each so moves a few times, however many there are, where a heap would compare on each of log n levels.

use std::collections::VecDeque;
use vef_format::units::Picos;

/// What becomes ready: of which task (counted over all jobs), and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When.
    pub(crate) at: Picos,
    /// Whose.
    pub(crate) task: u32,
    /// Which of the task's things.
    pub(crate) what: u32,
}

/// Bits of a digit.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// Room for so many things stays with an empty slot; more is given back.
const KEPT: usize = 64;

#[derive(Debug)]
pub(crate) struct Ready {
    /// The wheel's present, not after the last moment asked for.
    present: u64,
    /// What is ready at the wheel's present.
    fifo: VecDeque<Due>,
    /// Which levels hold anything, and which of their slots.
    levels: u32,
    occupied: [u64; LEVELS],
    slots: Box<[Slot]>,
}

#[derive(Clone, Debug)]
struct Slot {
    /// The earliest time in it.
    first: u64,
    dues: Vec<Due>,
}

impl Default for Ready {
    fn default() -> Self {
        let slot = Slot { first: u64::MAX, dues: Vec::new() };
        Self {
            present: 0,
            fifo: VecDeque::new(),
            levels: 0,
            occupied: [0; LEVELS],
            slots: vec![slot; LEVELS * SLOTS].into(),
        }
    }
}

impl Ready {
    /// Puts something in.
    #[inline]
    pub(crate) fn push(&mut self, due: Due) {
        let at = due.at.0;
        if at <= self.present {
            self.fifo.push_back(due);
            return;
        }
        let level = ((u64::BITS - 1 - (at ^ self.present).leading_zeros()) / BITS) as usize;
        let digit = (at >> (level as u32 * BITS)) as usize % SLOTS;
        self.levels |= 1 << level;
        self.occupied[level] |= 1 << digit;
        let slot = &mut self.slots[level * SLOTS + digit];
        slot.first = slot.first.min(at);
        slot.dues.push(due);
    }

    /// When the first is ready.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        if !self.fifo.is_empty() {
            return Some(Picos(self.present));
        }
        let (level, digit) = self.first_slot()?;
        Some(Picos(self.slots[level * SLOTS + digit].first))
    }

    /// Takes the first if it is ready at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Picos) -> Option<Due> {
        loop {
            if let Some(due) = self.fifo.pop_front() {
                return Some(due);
            }
            let (level, digit) = self.first_slot()?;
            let slot = &mut self.slots[level * SLOTS + digit];
            if slot.first > now.0 {
                return None;
            }
            self.occupied[level] &= !(1 << digit);
            if self.occupied[level] == 0 {
                self.levels &= !(1 << level);
            }
            // Nothing comes before the first of this slot, so the wheel's present can move on to it.
            self.present = std::mem::replace(&mut slot.first, u64::MAX);
            if slot.dues.len() == 1 {
                return slot.dues.pop();
            }
            self.spread(level * SLOTS + digit);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.is_empty() && self.levels == 0
    }

    /// The slot of the first thing that is not yet in the FIFO.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.levels.trailing_zeros() as usize;
        let digit = self.occupied.get(level)?.trailing_zeros() as usize;
        Some((level, digit))
    }

    /// Puts the things of a slot in again, as the wheel's present is now.
    fn spread(&mut self, slot: usize) {
        let mut dues = std::mem::take(&mut self.slots[slot].dues);
        for due in dues.drain(..) {
            self.push(due);
        }
        if dues.capacity() <= KEPT && self.slots[slot].dues.capacity() == 0 {
            self.slots[slot].dues = dues;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A push so much later than the present, or the moment so much later.
    fn action() -> impl Strategy<Value = Result<u64, u64>> {
        let span = || prop_oneof![Just(0u64), 0u64..10, 0u64..5000, 0u64..1 << 40];
        prop_oneof![3 => span().prop_map(Ok), 2 => span().prop_map(Err)]
    }

    proptest! {
        #[test]
        fn gives_by_time_and_first_in_first_out(actions in prop::collection::vec(action(), 0..400)) {
            let (mut ready, mut plain, mut now) = (Ready::default(), Vec::new(), 0);
            for (task, action) in (0u32..).zip(actions) {
                match action {
                    Ok(later) => {
                        let due = Due { at: Picos(now + later), task, what: 0 };
                        ready.push(due);
                        plain.push(due);
                    }
                    Err(later) => {
                        now += later;
                        plain.sort_by_key(|due| due.at);
                        prop_assert_eq!(ready.next(), plain.first().map(|due| due.at));
                        let first = plain.first().copied().filter(|due| due.at.0 <= now);
                        prop_assert_eq!(ready.pop(Picos(now)), first);
                        if first.is_some() {
                            plain.remove(0);
                        }
                    }
                }
            }
            plain.sort_by_key(|due| due.at);
            for due in plain {
                prop_assert_eq!(ready.pop(Picos::MAX), Some(due));
            }
            prop_assert!(ready.is_empty() && ready.next().is_none());
        }
    }

    #[test]
    fn the_end_of_time_has_a_slot() {
        let mut ready = Ready::default();
        for at in [u64::MAX, u64::MAX - 1, 1 << 63, 0] {
            ready.push(Due { at: Picos(at), task: 0, what: 0 });
        }
        let order: Vec<u64> = std::iter::from_fn(|| ready.pop(Picos::MAX)).map(|due| due.at.0).collect();
        assert_eq!(order, [0, 1 << 63, u64::MAX - 1, u64::MAX]);
    }
}
