//! In which order the tasks take turns in a trace: by the time at which their records began, the lower task first
//! where that is the same, so that a reader who replays while he reads holds few records back.
//!
//! The turns are taken window by window. A window's records are put into as many buckets of time as there are
//! records, in linear time, and each bucket is sorted. Where windows end has no influence on the order.

use crate::packed::{Records, SAMPLE};
use crate::prepare::Prepared;

/// At most so many starts are kept to choose the windows by.
const KEPT: usize = 1 << 18;

/// Puts the records of a window of time in order.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    /// Where each bucket of time begins.
    buckets: Vec<u32>,
    /// The start and the place of each record, in order.
    keys: Vec<(u64, u32)>,
}

impl Sorter {
    /// Gives `sorted` what is in `records`, task by task there, in the order of turns.
    pub(crate) fn sort(&mut self, records: &[Prepared], sorted: &mut Vec<Prepared>) {
        let wider =
            |(from, to): (u64, u64), record: &Prepared| (from.min(record.start), to.max(record.start));
        let (begin, end) = records.iter().fold((u64::MAX, 0), wider);
        let bits = records.len().next_power_of_two().trailing_zeros();
        let shift = (64 - end.saturating_sub(begin).leading_zeros()).saturating_sub(bits);
        let bucket = |record: &Prepared| ((record.start - begin) >> shift) as usize;
        let Self { buckets, keys } = self;
        buckets.clear();
        buckets.resize((1 << bits) + 1, 0);
        for record in records {
            buckets[bucket(record) + 1] += 1;
        }
        let mut sum = 0;
        for begin in buckets.iter_mut() {
            sum += *begin;
            *begin = sum;
        }
        keys.resize(records.len(), (0, 0));
        for (place, record) in (0..).zip(records) {
            let at = &mut buckets[bucket(record)];
            keys[*at as usize] = (record.start, place);
            *at += 1;
        }
        let mut from = 0;
        for &to in buckets.iter() {
            if to - from > 1 {
                // Tasks came in ascending order, and so do the places of their records.
                keys[from as usize..to as usize].sort_unstable();
            }
            from = to;
        }
        sorted.clear();
        sorted.extend(keys.iter().map(|&(_, place)| records[place as usize]));
    }
}

/// Some starts of many records, each standing for as many.
#[derive(Debug)]
pub(crate) struct Samples {
    starts: Vec<u64>,
    /// For how many records each stands.
    each: usize,
    latest: u64,
}

impl Samples {
    /// None.
    pub(crate) fn new() -> Self {
        Self { starts: Vec::new(), each: SAMPLE, latest: 0 }
    }

    /// Of the records of one task; `shift` makes their clock that of all.
    pub(crate) fn of(records: &Records, shift: i64) -> Self {
        let (starts, last) = records.samples();
        let starts = starts.iter().map(|start| start.saturating_add_signed(shift)).collect();
        let latest = if records.len() > 0 { last.saturating_add_signed(shift) } else { 0 };
        Self { starts, each: SAMPLE, latest }
    }

    /// Those of `other` too.
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.each < other.each {
            self.halve();
        }
        while other.each < self.each {
            other.halve();
        }
        self.latest = self.latest.max(other.latest);
        self.starts.append(&mut other.starts);
        self.thin();
    }

    fn thin(&mut self) {
        self.thin_to(KEPT);
    }

    /// Keeps at most so many.
    pub(crate) fn thin_to(&mut self, most: usize) {
        while self.starts.len() > most.max(1) {
            self.halve();
        }
    }

    /// For how many records each stands, the latest start of all, and the starts.
    pub(crate) fn into_parts(self) -> (usize, u64, Vec<u64>) {
        (self.each, self.latest, self.starts)
    }

    /// The other way round.
    pub(crate) fn from_parts(each: usize, latest: u64, starts: Vec<u64>) -> Self {
        Self { starts, each: each.max(1), latest }
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

    /// Where windows of about `window` records end, in ascending order.
    pub(crate) fn ends(mut self, window: usize) -> Vec<u64> {
        self.starts.sort_unstable();
        let every = window.div_ceil(self.each);
        let mut ends: Vec<u64> = self.starts.chunks_exact(every).map(|chunk| chunk[every - 1]).collect();
        ends.push(self.latest);
        ends.dedup();
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::{After, Body, Record};
    use crate::prepare::{Awaits, What};
    use proptest::prelude::*;
    use vef_format::ids::Rank;

    fn turns(times: &[Vec<u64>]) -> Vec<u32> {
        let (awaits, what) = (Awaits::Start, What::Mark);
        let record = |task, start| Prepared { task, start, time: 0, awaits, what };
        let of_task = |(rank, times): (u32, &Vec<u64>)| {
            times.iter().map(|&start| record(Rank(rank), start)).collect::<Vec<_>>()
        };
        let records: Vec<_> = (0..).zip(times).flat_map(of_task).collect();
        let mut sorted = vec![record(Rank(7), 7)];
        let mut sorter = Sorter { keys: vec![(7, 7)], ..Sorter::default() };
        sorter.sort(&records, &mut sorted);
        assert!(sorted.is_sorted_by_key(|record| record.start));
        sorted.iter().map(|record| record.task.0).collect()
    }

    fn marks(starts: impl Iterator<Item = u64>) -> Records {
        let mut records = Records::default();
        let mark = Record { body: Body::Mark, after: After::Sent, time: 0 };
        starts.for_each(|start| records.push(start, &mark));
        records
    }

    proptest! {
        #[test]
        fn turns_come_by_time_then_task(
            mut times in proptest::collection::vec(proptest::collection::vec(0u64..5_000, 0..200), 1..6),
            stretch in prop_oneof![Just(1), Just(1u64 << 50)],
        ) {
            for times in &mut times {
                times.iter_mut().for_each(|time| *time *= stretch);
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
            let ends = Samples::of(&marks((0..count).map(|at| at * 10)), 5).ends(window);
            prop_assert!(ends.is_sorted());
            prop_assert_eq!(ends.last().copied(), Some(count.saturating_sub(1) * 10 + if count > 0 { 5 } else { 0 }));
            for pair in ends.windows(2) {
                prop_assert!(pair[1] - pair[0] <= (window as u64 + 2 * SAMPLE as u64) * 10);
            }
        }
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
        let mut all = Samples::new();
        for _ in 0..40 {
            all.merge(Samples::of(&records, 0));
        }
        assert!(all.starts.len() <= KEPT && all.each > SAMPLE);
        let ends = all.ends(1_000_000);
        assert!((39..=42).contains(&ends.len()), "{}", ends.len());
    }
}
