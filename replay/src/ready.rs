//! The queue of things that become ready at a time: a four-ary heap, and in front of it a FIFO for what is
//! ready at the very moment it is put in.
//!
//! Order: by time; at equal times first what was known before that moment came, by task, then what became
//! ready at that moment itself, in the order in which it did.

use std::collections::VecDeque;
use vef_format::units::Picos;

/// What becomes ready: of which task (counted over all jobs), and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When.
    pub(crate) at: Picos,
    /// Whose; decides between equal times.
    pub(crate) task: u32,
    /// Which of the task's things; decides between equal times of one task.
    pub(crate) what: u32,
}

impl Due {
    #[inline]
    fn key(self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.task) << 32 | u128::from(self.what)
    }

    #[inline]
    fn from_key(key: u128) -> Self {
        Self { at: Picos((key >> 64) as u64), task: (key >> 32) as u32, what: key as u32 }
    }
}

/// Children of a node: four keys of 16 bytes fill a cache line.
const ARITY: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Ready {
    heap: Vec<u128>,
    fifo: VecDeque<Due>,
}

impl Ready {
    /// Puts something in; `clock` is the present, which no later call may precede.
    #[inline]
    pub(crate) fn push(&mut self, due: Due, clock: Picos) {
        if due.at <= clock && self.fifo.back().is_none_or(|last| last.at <= due.at) {
            self.fifo.push_back(due);
            return;
        }
        let key = due.key();
        let mut hole = self.heap.len();
        self.heap.push(key);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = key;
    }

    /// When the first is ready.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        let heap = self.heap.first().map(|&key| Due::from_key(key).at);
        let fifo = self.fifo.front().map(|due| due.at);
        match (heap, fifo) {
            (Some(heap), Some(fifo)) => Some(heap.min(fifo)),
            (one, other) => one.or(other),
        }
    }

    /// Takes the first if it is ready at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Picos) -> Option<Due> {
        let first = self.heap.first().map(|&key| Due::from_key(key));
        if let Some(&due) = self.fifo.front()
            && first.is_none_or(|first| due.at < first.at)
        {
            return (due.at <= now).then(|| {
                self.fifo.pop_front();
                due
            });
        }
        let first = first.filter(|first| first.at <= now)?;
        self.remove_first();
        Some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.fifo.is_empty()
    }

    fn remove_first(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        let len = self.heap.len();
        if len == 0 {
            return;
        }
        let mut hole = 0;
        loop {
            let child = hole * ARITY + 1;
            let least = match self.heap.get(child..child + ARITY) {
                Some(&[a, b, c, d]) => {
                    let (left, right) = (child + usize::from(b < a), child + 2 + usize::from(d < c));
                    if self.heap[right] < self.heap[left] { right } else { left }
                }
                _ => match (child..len).min_by_key(|&at| self.heap[at]) {
                    Some(least) => least,
                    None => break,
                },
            };
            if self.heap[least] >= last {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_in_order_of_time_then_task(dues in prop::collection::vec((1u64..50, 0u32..9), 0..200)) {
            let mut ready = Ready::default();
            let mut plain = Vec::new();
            for (what, &(at, task)) in (0u32..).zip(&dues) {
                let due = Due { at: Picos(at), task, what };
                ready.push(due, Picos::ZERO);
                plain.push(due);
            }
            plain.sort_by_key(|due| (due.at, due.task, due.what));
            for due in plain {
                prop_assert_eq!(ready.next(), Some(due.at));
                prop_assert_eq!(ready.pop(Picos(due.at.0 - 1)), None);
                prop_assert_eq!(ready.pop(Picos::MAX), Some(due));
            }
            prop_assert!(ready.is_empty());
        }
    }

    #[test]
    fn what_was_known_before_comes_before_what_becomes_ready_now() {
        let mut ready = Ready::default();
        let due = |at, task| Due { at: Picos(at), task, what: 0 };
        ready.push(due(10, 9), Picos(3));
        ready.push(due(10, 7), Picos(10));
        ready.push(due(10, 1), Picos(10));
        ready.push(due(11, 0), Picos(10));
        let order: Vec<u32> = std::iter::from_fn(|| ready.pop(Picos(11))).map(|due| due.task).collect();
        assert_eq!(order, [9, 7, 1, 0]);
    }
}
