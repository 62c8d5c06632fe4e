//! In which order the tasks take turns in a trace: by the time at which their records began, so that a reader who
//! replays while he reads holds few records back.
//!
//! The sweep goes window by window. A window's records are put into as many buckets of time as there are records,
//! all in linear time; within a bucket the lower task comes first. That is exact enough: what must not stand
//! before what is up to [`crate::resolve`].

use crate::packed::{StartCursor, Starts};
use rayon::prelude::*;

/// Every how manyth start of a task is looked at to choose the windows.
const SAMPLE: usize = 64;

/// Goes over the records of all tasks by time.
#[derive(Debug)]
pub(crate) struct Sweep<'a> {
    tasks: Vec<Swept<'a>>,
    /// Where windows end, in descending order.
    ends: Vec<u64>,
    /// Where the next window begins.
    begin: u64,
    /// In how many buckets a window is sorted, a power of two.
    buckets: usize,
    /// A window's records: bucket and task.
    found: Vec<(u32, u32)>,
    begins: Vec<u32>,
}

#[derive(Debug)]
struct Swept<'a> {
    starts: &'a Starts,
    cursor: StartCursor,
    /// What makes this task's clock that of all.
    shift: i64,
    /// When its next record starts; `None` behind the last.
    next: Option<u64>,
}

impl Swept<'_> {
    fn step(&mut self) {
        self.next = self.cursor.next(self.starts).map(|start| start.saturating_add_signed(self.shift));
    }
}

impl<'a> Sweep<'a> {
    /// Over records that began at `starts`, by task, each with what to add to make the clocks one;
    /// about `window` records at a time.
    pub(crate) fn new(starts: &[(&'a Starts, i64)], window: usize) -> Self {
        let sampled: Vec<_> = starts.par_iter().map(|&(starts, shift)| sample(starts, shift)).collect();
        let latest = sampled.iter().map(|&(_, latest)| latest).max().unwrap_or(0);
        let mut samples: Vec<u64> = sampled.into_iter().flat_map(|(samples, _)| samples).collect();
        samples.par_sort_unstable();
        let every = window.div_ceil(SAMPLE);
        let mut ends: Vec<u64> = samples.chunks_exact(every).map(|chunk| chunk[every - 1]).collect();
        ends.push(latest);
        ends.dedup();
        ends.reverse();
        let tasks: Vec<_> = starts
            .iter()
            .map(|&(starts, shift)| {
                let mut task = Swept { starts, cursor: StartCursor::default(), shift, next: None };
                task.step();
                task
            })
            .collect();
        let begin = tasks.iter().filter_map(|task| task.next).min().unwrap_or(0);
        let buckets = window.next_power_of_two().max(64);
        Self { tasks, ends, begin, buckets, found: Vec::new(), begins: Vec::new() }
    }

    /// The next window: whose turn it is, record by record, into `turns`. `false` when there is none. Calls
    /// `found(task, start)` for each of its records, task by task.
    pub(crate) fn next(&mut self, turns: &mut Vec<u32>, mut found: impl FnMut(u32, u64)) -> bool {
        turns.clear();
        while turns.is_empty() {
            let Some(end) = self.ends.pop() else { return false };
            self.window(end, turns, &mut found);
        }
        true
    }

    /// All records up to `end` inclusive.
    fn window(&mut self, end: u64, turns: &mut Vec<u32>, found: &mut impl FnMut(u32, u64)) {
        let span = end.saturating_sub(self.begin);
        let shift = (64 - span.leading_zeros()).saturating_sub(self.buckets.trailing_zeros());
        self.found.clear();
        self.begins.clear();
        self.begins.resize(self.buckets + 1, 0);
        for (rank, task) in self.tasks.iter_mut().enumerate() {
            while let Some(start) = task.next.filter(|&start| start <= end) {
                let bucket = (start.saturating_sub(self.begin) >> shift) as u32;
                found(rank as u32, start);
                self.found.push((bucket, rank as u32));
                self.begins[bucket as usize + 1] += 1;
                task.step();
            }
        }
        let mut sum = 0;
        for begin in &mut self.begins {
            sum += *begin;
            *begin = sum;
        }
        turns.resize(self.found.len(), 0);
        for &(bucket, rank) in &self.found {
            let at = &mut self.begins[bucket as usize];
            turns[*at as usize] = rank;
            *at += 1;
        }
        self.begin = end.saturating_add(1);
    }
}

/// Some starts of a task, and the last.
fn sample(starts: &Starts, shift: i64) -> (Vec<u64>, u64) {
    let mut cursor = StartCursor::default();
    let (mut samples, mut latest) = (Vec::with_capacity(starts.len() / SAMPLE), 0);
    for at in 1..=starts.len() {
        let Some(start) = cursor.next(starts) else { break };
        latest = start.saturating_add_signed(shift);
        if at % SAMPLE == 0 {
            samples.push(latest);
        }
    }
    (samples, latest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn swept(times: &[Vec<u64>], window: usize) -> Vec<u32> {
        let starts: Vec<Starts> = times
            .iter()
            .map(|times| {
                let mut starts = Starts::default();
                times.iter().for_each(|&time| starts.push(time));
                starts
            })
            .collect();
        let starts: Vec<_> = starts.iter().map(|starts| (starts, 0)).collect();
        let mut sweep = Sweep::new(&starts, window);
        let (mut all, mut turns) = (Vec::new(), Vec::new());
        while sweep.next(&mut turns, |_, _| {}) {
            all.extend_from_slice(&turns);
        }
        all
    }

    proptest! {
        #[test]
        fn every_record_has_its_turn_and_time_goes_forward(
            mut times in proptest::collection::vec(proptest::collection::vec(0u64..50_000, 0..400), 1..6),
            window in prop_oneof![1usize..300, Just(1 << 16)],
        ) {
            times.iter_mut().for_each(|times| times.sort_unstable());
            let mut turns = swept(&times, window);
            let mut expected: Vec<_> = times
                .iter()
                .enumerate()
                .flat_map(|(rank, times)| times.iter().map(move |&time| (time, rank as u32)))
                .collect();
            expected.sort_unstable();
            let mut expected: Vec<_> = expected.into_iter().map(|(_, rank)| rank).collect();
            // With a bucket for every instant the order is exact; else it is that within some width.
            if window < 1 << 16 {
                turns.sort_unstable();
                expected.sort_unstable();
            }
            prop_assert_eq!(turns, expected);
        }
    }

    #[test]
    fn the_ends_of_time_are_no_trouble() {
        assert_eq!(swept(&[vec![0, u64::MAX], vec![5]], 1), [0, 1, 0]);
        assert_eq!(swept(&[vec![], vec![]], 1), Vec::<u32>::new());
        assert_eq!(swept(&[], 1), Vec::<u32>::new());
    }
}
