//! Finds what is repeated in a sequence: the longest stretch in which each item equals the one a period before.

use std::ops::Range;

/// A stretch of a sequence that repeats itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) items: Range<usize>,
    pub(super) period: usize,
}

/// A pattern occurs so many times at least.
const FEWEST: usize = 3;
/// It covers at least this share of the sequence: 1 / `SHARE`.
const SHARE: usize = 4;
/// Equal stretches of this length suggest a period.
const WINDOW: usize = 8;
/// Comparisons for each item of a sequence, in all.
const EFFORT: usize = 64;

impl Pattern {
    /// Whole periods.
    pub(super) fn times(&self) -> usize {
        self.items.len() / self.period
    }

    /// The longest pattern of a sequence, of patterns of equal length that with the shortest period. It covers a place at a multiple of
    /// an eighth of the sequence, as all do that are longer than a quarter.
    pub(super) fn find(of: &[u32]) -> Option<Self> {
        let mut best: Option<Self> = None;
        let mut effort = EFFORT.saturating_mul(of.len());
        for eighth in 1..8 {
            let anchor = of.len() / 8 * eighth;
            if best
                .as_ref()
                .is_some_and(|best| best.items.contains(&anchor) && best.items.len() > of.len() / 2)
            {
                continue;
            }
            let window = of.get(anchor..(anchor + WINDOW).min(of.len()))?;
            for period in 1..of.len() / FEWEST + 1 {
                let Some(later) = of.get(anchor + period..anchor + period + window.len()) else { break };
                if later != window {
                    continue;
                }
                let found = Self::around(of, anchor, period);
                effort = effort.saturating_sub(found.items.len());
                let longest = best.as_ref().map_or(of.len() / SHARE, |best| best.items.len());
                if found.times() >= FEWEST && found.items.len() > longest {
                    best = Some(found);
                }
                if effort == 0 {
                    return best;
                }
            }
        }
        best
    }

    /// The stretch around a place in which each item equals the one `period` items later, and these.
    fn around(of: &[u32], place: usize, period: usize) -> Self {
        let later = &of[period..];
        let begin = (0..place).rev().find(|&at| of[at] != later[at]).map_or(0, |at| at + 1);
        let end = (place..later.len()).find(|&at| of[at] != later[at]).unwrap_or(later.len());
        Self { items: begin..end + period, period }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds patterns by trying all periods and all stretches.
    fn slowly(of: &[u32]) -> Option<(Range<usize>, usize)> {
        let mut best: Option<(Range<usize>, usize)> = None;
        for period in 1..=of.len() / 3 {
            let mut begin = 0;
            for at in 0..=of.len() - period {
                if at < of.len() - period && of[at] == of[at + period] {
                    continue;
                }
                let items = begin..at + period;
                begin = at + 1;
                let longest = best.as_ref().map_or(of.len() / 4, |(best, _)| best.len());
                if items.len() >= 3 * period && items.len() > longest {
                    best = Some((items, period));
                }
            }
        }
        best
    }

    /// So many items from `seed` that look random.
    fn noise(seed: u32, items: usize) -> Vec<u32> {
        let mut state = u64::from(seed) * 2 + 1;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 60) as u32
        };
        (0..items).map(next).collect()
    }

    #[test]
    fn a_loop_between_set_up_and_end_is_found() {
        for (setup, body, times, end) in [(0, 9, 4, 0), (37, 20, 12, 11), (100, 13, 9, 80), (5, 1, 60, 3)] {
            let mut sequence = noise(setup as u32 + 1, setup);
            let body_items: Vec<u32> = noise(777, body).iter().map(|item| item + 20).collect();
            (0..times).for_each(|_| sequence.extend(&body_items));
            sequence.extend(noise(3, end));
            let found = Pattern::find(&sequence).unwrap();
            assert_eq!(Some((found.items.clone(), found.period)), slowly(&sequence));
            assert_eq!((found.period, found.times()), (body, times), "{setup} {body}");
            assert_eq!(found.items.start, setup);
        }
    }

    #[test]
    fn of_loops_within_each_other_the_outer_one_is_found() {
        let mut sequence = noise(1, 30);
        for _ in 0..6 {
            sequence.extend([50, 51, 52]);
            (0..5).for_each(|_| sequence.extend([60, 61, 62, 63]));
        }
        let found = Pattern::find(&sequence).unwrap();
        assert_eq!((found.items, found.period), (30..30 + 6 * 23, 23));
    }

    #[test]
    fn noise_has_no_pattern_and_short_sequences_neither() {
        for seed in 0..20 {
            assert_eq!(Pattern::find(&noise(seed, 500)), None);
        }
        for length in 0..3 {
            assert_eq!(Pattern::find(&vec![1; length]), None);
        }
    }
}
