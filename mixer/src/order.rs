//! The order of lines in a trace: by start of the records, the lower task first where starts are equal. A reader that
//! replays while it reads then holds few records back.
//!
//! Records are ordered window by window. A window is sorted by radix in linear time. The ends of windows do not influence the order.

use crate::index::Slot;
use crate::records::{Records, SAMPLE};
use serde::{Deserialize, Serialize};
use vef_format::ids::Rank;

/// Maximum number of samples kept.
const KEPT: usize = 1 << 18;

/// Sorts a window.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    /// The high bits are the record's start, as far as it fits; the low bits are its index.
    keys: Vec<u64>,
    slot_bits: u32,
    spare: Vec<u64>,
}

/// Bits of a digit: the counters fit into the first-level cache.
const DIGIT: u32 = 10;

impl Sorter {
    /// Sorts the indices of `records` by what `start` returns, then by index.
    pub(crate) fn sort<R>(&mut self, records: &[R], start: impl Fn(&R) -> u64) {
        let wider = |(from, to): (u64, u64), start: u64| (from.min(start), to.max(start));
        let (begin, end) = records.iter().map(&start).fold((u64::MAX, 0), wider);
        let slot_bits = records.len().next_power_of_two().trailing_zeros();
        let time_bits = 64 - end.saturating_sub(begin).leading_zeros();
        let Self { keys, spare, .. } = self;
        self.slot_bits = slot_bits;
        keys.clear();
        if time_bits + slot_bits > 64 {
            keys.extend(0..records.len() as u64);
            keys.sort_unstable_by_key(|&at| (start(&records[at as usize]), at));
            return;
        }
        keys.extend((0..).zip(records).map(|(at, record)| (start(record) - begin) << slot_bits | at));
        for low in (slot_bits..slot_bits + time_bits).step_by(DIGIT as usize) {
            distribute(keys, spare, low);
            std::mem::swap(keys, spare);
        }
    }

    /// The records in sorted order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + Clone {
        let slots = (1 << self.slot_bits) - 1;
        self.keys.iter().map(move |key| Slot((key & slots) as u32))
    }
}

/// The digit of `key` whose lowest bit is `low`.
#[inline(always)]
fn digit(key: u64, low: u32) -> usize {
    (key >> low) as usize % (1 << DIGIT)
}

/// One pass of the radix sort: distributes `keys` by the digit whose lowest bit is `low`, stably.
fn distribute(keys: &[u64], sorted: &mut Vec<u64>, low: u32) {
    let mut counts = [0u32; 1 << DIGIT];
    keys.iter().for_each(|&key| counts[digit(key, low)] += 1);
    let mut sum = 0;
    for count in &mut counts {
        sum += std::mem::replace(count, sum);
    }
    sorted.resize(keys.len(), 0);
    for &key in keys {
        let at = &mut counts[digit(key, low)];
        sorted[*at as usize] = key;
        *at += 1;
    }
}

/// The end of a window, inclusive: all records with an earlier start, and those with this start of tasks up to this one.
/// So windows stay small even if a coarse clock gives very many records the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) start: u64,
    pub(crate) task: u32,
}

impl End {
    /// The latest start that a record of `task` in the window may have; `None`: no record is new in this window.
    #[inline]
    pub(crate) fn latest(self, task: Rank) -> Option<u64> {
        if task.0 <= self.task { Some(self.start) } else { self.start.checked_sub(1) }
    }
}

/// A sample of many records' starts, to choose windows by.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Samples {
    /// Start and task of each sample.
    starts: Vec<End>,
    /// Number of records that each sample stands for.
    each: usize,
    latest: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self { starts: Vec::new(), each: SAMPLE, latest: 0 }
    }
}

impl Samples {
    /// Samples the records of `task`; `shift` converts their clock to the common clock.
    pub(crate) fn of(task: Rank, records: &Records, shift: i64) -> Self {
        let (starts, last) = records.samples();
        let on_clock_of_all = |start: &u64| End { start: start.saturating_add_signed(shift), task: task.0 };
        let starts = starts.iter().map(on_clock_of_all).collect();
        let latest = if records.len() > 0 { last.saturating_add_signed(shift) } else { 0 };
        Self { starts, each: SAMPLE, latest }
    }

    /// Adds the samples of `other`.
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.each < other.each {
            self.halve();
        }
        while other.each < self.each {
            other.halve();
        }
        self.latest = self.latest.max(other.latest);
        self.starts.append(&mut other.starts);
        self.thin_to(KEPT);
    }

    /// Halves the samples until those of `processes` together are at most as many as one may have.
    pub(crate) fn thin_among(&mut self, processes: u32) {
        self.thin_to(KEPT / processes as usize);
    }

    fn thin_to(&mut self, most: usize) {
        while self.starts.len() > most.max(1) {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.starts.sort_unstable();
        let mut keep = false; // every other one, from the second on
        self.starts.retain(|_| {
            keep = !keep;
            !keep
        });
        self.each *= 2;
    }

    /// Ends of windows of about `window` records, in ascending order.
    pub(crate) fn ends(mut self, window: usize) -> Vec<End> {
        self.starts.sort_unstable();
        let every = window.div_ceil(self.each);
        let mut ends: Vec<End> = self.starts.chunks_exact(every).map(|chunk| chunk[every - 1]).collect();
        ends.push(End { start: self.latest, task: u32::MAX });
        ends.dedup();
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{After, Body, Record};
    use proptest::prelude::*;
    use vef_format::ids::Rank;

    fn turns(times: &[Vec<u64>]) -> Vec<u32> {
        let of_task =
            |(rank, times): (u32, &Vec<u64>)| times.iter().map(|&at| (at, rank)).collect::<Vec<_>>();
        let records: Vec<(u64, u32)> = (0..).zip(times).flat_map(of_task).collect();
        let starts: Vec<u64> = records.iter().map(|&(start, _)| start).collect();
        // State of an earlier window must not matter.
        let mut sorter = Sorter { keys: vec![7], slot_bits: 7, spare: vec![7] };
        sorter.sort(&starts, |&start| start);
        assert!(sorter.slots().is_sorted_by_key(|slot| (starts[slot.index()], slot)));
        sorter.slots().map(|slot| records[slot.index()].1).collect()
    }

    fn marks(starts: impl Iterator<Item = u64>) -> Records {
        let mut records = Records::default();
        let mark = Record { thread: 0, body: Body::Mark, after: After::Sent, time: 0 };
        starts.for_each(|start| records.push(start, &mark));
        records
    }

    proptest! {
        #[test]
        fn turns_come_by_time_then_task(
            mut times in proptest::collection::vec(proptest::collection::vec(0u64..5_000, 0..200), 1..6),
            stretch in prop_oneof![Just(1), Just(1u64 << 50)],
            outlier in proptest::option::of(1u64 << 40..u64::MAX),
        ) {
            for times in &mut times {
                times.iter_mut().for_each(|time| *time *= stretch);
                // With this outlier all others have the same highest bits.
                times.extend(outlier);
                times.sort_unstable();
            }
            let mut expected: Vec<_> = times
                .iter()
                .enumerate()
                .flat_map(|(rank, times)| times.iter().map(move |&time| (time, rank as u32)))
                .collect();
            expected.sort_unstable();
            let expected: Vec<_> = expected.into_iter().map(|(_, rank)| rank).collect();
            prop_assert_eq!(turns(&times), expected);
        }

        #[test]
        fn windows_are_about_as_large_as_wanted(count in 0u64..20_000, window in 1usize..3_000) {
            let ends = Samples::of(Rank(0), &marks((0..count).map(|at| at * 10)), 5).ends(window);
            prop_assert!(ends.is_sorted());
            prop_assert_eq!(ends.last().map(|end| end.start), Some(count.saturating_sub(1) * 10 + if count > 0 { 5 } else { 0 }));
            for pair in ends.windows(2) {
                prop_assert!(pair[1].start - pair[0].start <= (window as u64 + 2 * SAMPLE as u64) * 10);
            }
        }
    }

    /// Tasks in step: each has its n-th record at about the same time, in bursts of a dozen.
    #[test]
    fn windows_of_tasks_in_step_are_even() {
        let starts = |rank: u64| (0..3000).map(move |at| at / 12 * 100_000 + at % 12 * 300 + rank);
        let mut all = Samples::default();
        for rank in 0..240 {
            let mut records = Records::of(Rank(rank), false, 0);
            let mark = Record { thread: 0, body: Body::Mark, after: After::Sent, time: 0 };
            starts(rank.into()).for_each(|start| records.push(start, &mark));
            all.merge(Samples::of(Rank(rank), &records, 0));
        }
        let ends = all.ends(8192);
        let mut counts = vec![0; ends.len()];
        (0..240)
            .flat_map(|task: u32| starts(task.into()).map(move |start| End { start, task }))
            .for_each(|at| counts[ends.partition_point(|&end| end < at)] += 1);
        let (last, others) = counts.split_last().expect("some");
        assert!(others.iter().all(|count| (5000..12_000).contains(count)) && *last < 12_000, "{counts:?}");
    }

    /// A coarse clock: all records of all tasks have one of a few starts.
    #[test]
    fn windows_of_one_instant_are_even() {
        let mut all = Samples::default();
        for rank in 0..500 {
            let mut records = Records::of(Rank(rank), false, 0);
            let mark = Record { thread: 0, body: Body::Mark, after: After::Sent, time: 0 };
            (0..400).for_each(|at| records.push(at / 200, &mark));
            all.merge(Samples::of(Rank(rank), &records, 0));
        }
        let ends = all.ends(8192);
        let mut counts = vec![0; ends.len()];
        for (task, start) in (0..500).flat_map(|task| (0..400).map(move |at| (task, at / 200))) {
            let window =
                ends.iter().position(|end| end.latest(Rank(task)).is_some_and(|latest| start <= latest));
            counts[window.expect("the last one takes all")] += 1;
        }
        assert_eq!(counts.iter().sum::<usize>(), 500 * 400);
        assert!(counts.iter().all(|&count| count < 12_000), "{counts:?}");
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        assert_eq!(turns(&[vec![0, u64::MAX], vec![5]]), [0, 1, 0]);
        assert_eq!(turns(&[vec![], vec![]]), Vec::<u32>::new());
        assert_eq!(turns(&[]), Vec::<u32>::new());
    }

    #[test]
    fn samples_of_several_merge_to_a_bounded_number() {
        let records = marks(0..1_000_000);
        let mut all = Samples::default();
        for _ in 0..40 {
            all.merge(Samples::of(Rank(0), &records, 0));
        }
        assert!(all.starts.len() <= KEPT && all.each > SAMPLE);
        let ends = all.ends(1_000_000);
        assert!((39..=42).contains(&ends.len()), "{}", ends.len());
    }
}
