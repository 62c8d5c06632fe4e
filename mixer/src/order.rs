//! In which order the tasks take turns in a trace: by the time at which their records began, the lower task first
//! where that is the same, so that a reader who replays while he reads holds few records back.
//!
//! The turns are taken window by window. A window's records are put into as many buckets of time as there are
//! records, in linear time, and each bucket is sorted. Where windows end has no influence on the order.

use crate::packed::{StartCursor, Starts};
use crate::prepare::Prepared;
use vef_format::ids::Rank;

/// Every how manyth start of a task is looked at to choose the windows.
const SAMPLE: usize = 64;
/// At most so many starts are kept to choose the windows by.
const KEPT: usize = 1 << 18;

/// The records of a window of time.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Whose turn it is, by time.
    pub(crate) turns: Vec<u32>,
    /// The records, task by task.
    pub(crate) records: Vec<Prepared>,
    /// Where each task's records begin; one more at the end.
    pub(crate) begins: Vec<u32>,
    /// When each record began, and whose it is.
    found: Vec<(u64, u32)>,
    sorted: Vec<(u64, u32)>,
    /// Where each bucket of time begins.
    buckets: Vec<u32>,
}

impl Window {
    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.turns.clear();
        self.records.clear();
        self.begins.clear();
        self.found.clear();
    }

    /// Adds a record of `task`, which is no lower than that of the record before.
    #[inline]
    pub(crate) fn push(&mut self, task: Rank, record: Prepared) {
        if self.begins.len() <= task.index() {
            self.begins.resize(task.index() + 1, self.records.len() as u32);
        }
        self.found.push((record.start, task.0));
        self.records.push(record);
    }

    /// All records of `tasks` tasks are here.
    pub(crate) fn close(&mut self, tasks: u32) {
        self.begins.resize(tasks as usize + 1, self.records.len() as u32);
    }

    /// All records of `tasks` tasks are here: puts their turns in order.
    pub(crate) fn sort(&mut self, tasks: u32) {
        self.close(tasks);
        let Self { turns, found, sorted, buckets, .. } = self;
        let begin = found.iter().map(|&(start, _)| start).min().unwrap_or(0);
        let end = found.iter().map(|&(start, _)| start).max().unwrap_or(0);
        let bits = found.len().next_power_of_two().trailing_zeros();
        let shift = (64 - (end - begin).leading_zeros()).saturating_sub(bits);
        let bucket = |start: u64| ((start - begin) >> shift) as usize;
        buckets.clear();
        buckets.resize((1 << bits) + 1, 0);
        for &(start, _) in found.iter() {
            buckets[bucket(start) + 1] += 1;
        }
        let mut sum = 0;
        for begin in buckets.iter_mut() {
            sum += *begin;
            *begin = sum;
        }
        sorted.clear();
        sorted.resize(found.len(), (0, 0));
        for &(start, task) in found.iter() {
            let at = &mut buckets[bucket(start)];
            sorted[*at as usize] = (start, task);
            *at += 1;
        }
        let mut from = 0;
        for &to in buckets.iter() {
            if to - from > 1 {
                // Tasks came in ascending order, and a stable sort leaves them so.
                sorted[from as usize..to as usize].sort_by_key(|&(start, _)| start);
            }
            from = to;
        }
        turns.extend(sorted.iter().map(|&(_, task)| task));
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

    /// Looks at the records that began at `starts`; `shift` makes their clock that of all.
    pub(crate) fn add(&mut self, starts: &Starts, shift: i64) {
        let mut cursor = StartCursor::default();
        let mut at = 0;
        while let Some(start) = cursor.next(starts) {
            at += 1;
            let start = start.saturating_add_signed(shift);
            self.latest = self.latest.max(start);
            if at % self.each == 0 {
                self.starts.push(start);
            }
        }
        self.thin();
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
    use crate::prepare::{Awaits, What};
    use proptest::prelude::*;

    fn turns(times: &[Vec<u64>]) -> Vec<u32> {
        let mut window = Window::default();
        for (rank, times) in times.iter().enumerate() {
            for &start in times {
                let record = Prepared { start, time: 0, awaits: Awaits::Start, what: What::Mark };
                window.push(Rank(rank as u32), record);
            }
        }
        window.sort(times.len() as u32);
        assert_eq!(window.begins.len(), times.len() + 1);
        for (rank, times) in times.iter().enumerate() {
            let records = window.begins[rank] as usize..window.begins[rank + 1] as usize;
            assert!(window.records[records].iter().map(|record| record.start).eq(times.iter().copied()));
        }
        window.turns
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
            let mut starts = Starts::default();
            (0..count).for_each(|at| starts.push(at * 10));
            let mut samples = Samples::new();
            samples.add(&starts, 5);
            let ends = samples.ends(window);
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
        let mut starts = Starts::default();
        (0..1_000_000).for_each(|at| starts.push(at));
        let mut all = Samples::new();
        for _ in 0..40 {
            let mut some = Samples::new();
            some.add(&starts, 0);
            all.merge(some);
        }
        assert!(all.starts.len() <= KEPT && all.each > SAMPLE);
        let ends = all.ends(1_000_000);
        assert!((39..=42).contains(&ends.len()), "{}", ends.len());
    }
}
