//! Finds the loop in a sequence: a word that occurs again and again, with little between its occurrences.

/// The loop of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Where the word occurs, ascending; occurrences do not overlap.
    pub(super) starts: Vec<usize>,
    /// The length of the word.
    pub(super) period: usize,
    /// Items in occurrences that are followed by another one at once.
    regular: usize,
}

/// A word occurs so many times at least; if it begins within an iteration, its end and its beginning are one more.
const FEWEST: usize = 3;
/// Regular occurrences cover at least this share of the sequence: 1 / `SHARE`.
const SHARE: usize = 4;
/// Between two occurrences of the loop there are less than so many times the length of the word.
const GAP: usize = 4;
/// Equal stretches of this length suggest a period, of an eighth of a shorter sequence.
const WINDOW: usize = 8;
/// Comparisons for each item of a sequence, in all.
const EFFORT: usize = 64;

impl Pattern {
    /// The loop with most regular occurrences, of equal ones that with the shortest word. One of its words is at a multiple of an eighth of
    /// the sequence, or begins where the stretch around that place does.
    pub(super) fn find(of: &[u32]) -> Option<Self> {
        let mut best: Option<Self> = None;
        let mut effort = EFFORT.saturating_mul(of.len());
        let window = WINDOW.min(of.len() / 8).max(1);
        for anchor in (1..8).map(|eighth| of.len() * eighth / 8) {
            let window = of.get(anchor..anchor + window)?;
            // Of the periods at this place only those are tried that last longer than the shorter ones.
            let mut longest = 0;
            for period in 1..of.len() / FEWEST + 1 {
                let Some(later) = of.get(anchor + period..anchor + period + window.len()) else { break };
                if later != window {
                    continue;
                }
                let [before, behind] = lasts(of, anchor, period);
                let lasts = before + behind;
                effort = effort.saturating_sub(lasts);
                if lasts < period || lasts <= longest {
                    continue;
                }
                longest = lasts;
                let here = Self::of_word(of, anchor, period);
                let earlier = Self::of_word(of, anchor - before % period, period);
                let found = if earlier.starts.len() < here.starts.len() { here } else { earlier };
                effort = effort.saturating_sub(of.len());
                let least = best.as_ref().map_or(of.len().div_ceil(SHARE).max(1) - 1, |best| best.regular);
                let times = found.starts.len().max(lasts / period + 1);
                if times >= FEWEST && found.regular > least {
                    best = Some(found);
                }
                if effort == 0 {
                    return best;
                }
            }
        }
        best
    }

    /// Where an occurrence starts, from 0; of those that there would be in front of the first or behind the last, too.
    pub(super) fn start(&self, occurrence: i64) -> i64 {
        let known = occurrence.clamp(0, self.starts.len() as i64 - 1);
        self.starts[known as usize] as i64 + (occurrence - known) * self.period as i64
    }

    /// Where iterations begin that are `offset` items behind the word's occurrences, and the end of the last one. What is in front of the first
    /// occurrence or behind the last one may complete an iteration more.
    pub(super) fn begins(&self, of: &[u32], offset: usize) -> Vec<usize> {
        let &Self { ref starts, period, .. } = self;
        let (first, last) = (starts[0], starts[starts.len() - 1]);
        let word = &of[first..first + period];
        let mut begins: Vec<usize> = starts.iter().map(|start| start + offset).collect();
        if offset > 0 && of[..first].ends_with(&word[offset..]) {
            begins.insert(0, first + offset - period);
        }
        if of[last + period..].starts_with(&word[..offset]) {
            begins.push(last + period + offset);
        }
        begins
    }

    /// The loop around a place, with the word of this length there.
    fn of_word(of: &[u32], place: usize, length: usize) -> Self {
        let word = &of[place..place + length];
        let occurs = |at: usize| of.get(at..at + length) == Some(word);
        let mut starts = vec![place];
        let mut last = place;
        while let Some(next) = (last + length..last + GAP * length).find(|&at| occurs(at)) {
            starts.push(next);
            last = next;
        }
        starts.reverse();
        let mut first = place;
        while let Some(before) = (first.saturating_sub(GAP * length)..first.saturating_sub(length) + 1)
            .rev()
            .find(|&at| at + length <= first && occurs(at))
        {
            starts.push(before);
            first = before;
        }
        starts.reverse();
        let regular = starts.windows(2).filter(|pair| pair[1] - pair[0] == length).count() * length;
        Self { starts, period: length, regular }
    }
}

/// For how many items before a place, and from it on, each equals the one `period` items later.
fn lasts(of: &[u32], place: usize, period: usize) -> [usize; 2] {
    let later = &of[period..];
    let before = (0..place).rev().take_while(|&at| of[at] == later[at]).count();
    [before, (place..later.len()).take_while(|&at| of[at] == later[at]).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (setup, body, times, end) in
            [(0, 9, 4, 0), (0, 40, 3, 0), (7, 30, 3, 5), (37, 20, 12, 11), (100, 13, 9, 80), (5, 1, 60, 3)]
        {
            let mut sequence = noise(setup as u32 + 1, setup);
            let word: Vec<u32> = noise(777, body).iter().zip(0..).map(|(item, at)| item + 20 + at).collect();
            (0..times).for_each(|_| sequence.extend(&word));
            sequence.extend(noise(3, end));
            let found = Pattern::find(&sequence).unwrap();
            assert_eq!(found.period, body, "{setup} {body}");
            // The word may begin anywhere in the body.
            assert!((times - 1..=times).contains(&found.starts.len()), "{setup} {body}: {found:?}");
            let first = found.starts[0];
            assert!((setup..setup + body).contains(&first), "{setup} {body}: {first}");
            let begins = found.begins(&sequence, (setup + body - first) % body);
            let all: Vec<usize> = (0..=times).map(|time| setup + time * body).collect();
            assert_eq!(begins, all, "{setup} {body}");
        }
    }

    #[test]
    fn a_few_short_iterations_are_found() {
        for setup in [&[][..], &[7], &[7, 8], &[7, 8, 9, 7, 5]] {
            for (times, end) in [(3, &[9][..]), (3, &[]), (4, &[9]), (5, &[12]), (9, &[]), (30, &[5])] {
                let mut sequence = setup.to_vec();
                (0..times).for_each(|_| sequence.extend([1, 22]));
                sequence.extend(end);
                let found = Pattern::find(&sequence).unwrap();
                assert_eq!(found.period, 2, "{sequence:?}");
                let offset = found.starts[0].abs_diff(setup.len()) % 2;
                let all: Vec<usize> = (0..=times).map(|time| setup.len() + 2 * time).collect();
                assert_eq!(found.begins(&sequence, offset), all, "{sequence:?}");
            }
        }
    }

    #[test]
    fn of_loops_within_each_other_the_outer_one_is_found() {
        for (outer, inner) in [(6, 5), (4, 5)] {
            let mut sequence = noise(1, 30);
            for _ in 0..outer {
                sequence.extend([50, 51, 52]);
                (0..inner).for_each(|_| sequence.extend([60, 61, 62, 63]));
            }
            let found = Pattern::find(&sequence).unwrap();
            assert_eq!(found.period, 3 + 4 * inner, "{outer} {inner}");
            assert!(found.starts.len() + 1 >= outer, "{outer} {inner}");
        }
    }

    #[test]
    fn a_loop_may_do_something_else_at_times() {
        // 60 steps; every seventh does more, every tenth writes something.
        let mut sequence = noise(1, 40);
        let mut begins = Vec::new();
        for step in 1..=60 {
            begins.push(sequence.len());
            sequence.extend([30, 31, 32, 33, 34, 35, 36, 37]);
            if step % 7 == 0 {
                sequence.extend([30, 30, 31, 31, 40]);
            }
            if step % 10 == 0 {
                sequence.extend([50, 51]);
            }
        }
        let found = Pattern::find(&sequence).unwrap();
        assert_eq!(found.period, 8);
        assert!(found.starts.len() >= 40, "{found:?}");
    }

    /// Iterations that begin within the word, with another one in front of the first occurrence or behind the last if its rest is there.
    #[test]
    fn incomplete_occurrences_complete_iterations() {
        let sequence = [9, 3, 1, 2, 3, 1, 2, 3, 1, 2];
        let found = Pattern { starts: vec![2, 5], period: 3, regular: 3 };
        for (offset, begins) in [(0, &[2, 5, 8][..]), (1, &[3, 6, 9]), (2, &[1, 4, 7, 10])] {
            assert_eq!(found.begins(&sequence, offset), begins, "{offset}");
        }
        assert_eq!([-2, -1, 0, 1, 2, 3].map(|at| found.start(at)), [-4, -1, 2, 5, 8, 11]);
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
