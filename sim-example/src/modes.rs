//! Kinds of work at one place, told apart by their times.
//!
//! Where records of one shape follow each other, one place holds all that is computed between them: a hundred microseconds of
//! forces, then some microseconds between two messages. Such a place is divided at a time that separates its times clearly
//! if they also come in a regular order: the length of a run of shorter ones then tells when a longer one follows. Noise has
//! no such order: a time slice is lost after any number of undisturbed repetitions.

use results::classes::fine;

/// The means (of logarithms) of two kinds of work differ by 2^(200/128), about a factor of 3.
const APART: f64 = 200.0;
/// A place is halved so many times in a row at most.
const HALVINGS: u32 = 3;
/// Longer runs are not distinguished.
const LONGEST: usize = 64;
/// Of longer (or shorter) times after runs of one length, fewer than three are ignored.
const NO_CHANCE: u64 = 3;

/// Times of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// Their number.
    pub(crate) count: u64,
    /// In ascending order.
    pub(crate) buckets: Vec<Bucket>,
}

/// Times that differ by less than 1/128.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    at: u16,
    /// The number of times.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) sum: u64,
}

impl Times {
    pub(crate) fn add(&mut self, time: u64) {
        self.count += 1;
        let at = fine(time) as u16;
        match self.buckets.binary_search_by_key(&at, |bucket| bucket.at) {
            Ok(found) => {
                let bucket = &mut self.buckets[found];
                bucket.count += 1;
                bucket.sum = bucket.sum.saturating_add(time);
            }
            Err(place) => self.buckets.insert(place, Bucket { at, count: 1, sum: time }),
        }
    }

    /// The mean of the bucket that has the quantile (nearest rank).
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = |bucket: &&Bucket| {
            seen += bucket.count;
            seen >= rank
        };
        let bucket = self.buckets.iter().find(reached).or(self.buckets.last());
        bucket.map_or(0, |bucket| bucket.sum / bucket.count)
    }

    /// Where the times may be divided so that each mode has at least `fewest`; ascending.
    pub(crate) fn candidates(&self, fewest: u64) -> Vec<Candidate> {
        let mut cuts = Vec::new();
        halve(&self.buckets, fewest, HALVINGS, &mut cuts);
        cuts.sort_unstable();
        cuts.into_iter().map(|at| Candidate { at, ..Candidate::default() }).collect()
    }

    /// Divided at the candidates that are accepted.
    pub(crate) fn divided(&self, candidates: &[Candidate]) -> Modes<Times> {
        let cuts: Vec<u16> =
            candidates.iter().filter(|candidate| candidate.is_regular()).map(|cut| cut.at).collect();
        let mut of = vec![Times::default(); cuts.len() + 1];
        for bucket in &self.buckets {
            let mode = &mut of[cuts.partition_point(|&cut| cut <= bucket.at)];
            mode.count += bucket.count;
            mode.buckets.push(*bucket);
        }
        Modes { cuts, of }
    }
}

/// Finds the bucket from which on the upper part begins, so that the squares within both parts are least (Otsu), and divides both parts again.
fn halve(buckets: &[Bucket], fewest: u64, halvings: u32, cuts: &mut Vec<u16>) {
    // Logarithms to base 2 in units of 1/128, straight in between.
    let log = |bucket: &Bucket| bucket_log(bucket.sum / bucket.count);
    let sum = |part: &[Bucket]| part.iter().map(|bucket| bucket.count * log(bucket)).sum::<u64>();
    let count = |part: &[Bucket]| part.iter().map(|bucket| bucket.count).sum::<u64>();
    let (all, all_logs) = (count(buckets), sum(buckets));
    let (mut below, mut logs) = (0, 0);
    let mut best: Option<(f64, f64, usize)> = None;
    for (place, bucket) in buckets.iter().enumerate() {
        let above = all - below;
        if below >= fewest && above >= fewest {
            let apart = (all_logs - logs) as f64 / above as f64 - logs as f64 / below as f64;
            let between = below as f64 * above as f64 * apart * apart;
            if best.is_none_or(|best| between > best.0) {
                best = Some((between, apart, place));
            }
        }
        below += bucket.count;
        logs += bucket.count * log(bucket);
    }
    let Some((_, apart, place)) = best.filter(|_| halvings > 0) else { return };
    if apart >= APART {
        cuts.push(buckets[place].at);
    }
    let (low, high) = buckets.split_at(place);
    halve(low, fewest, halvings - 1, cuts);
    halve(high, fewest, halvings - 1, cuts);
}

fn bucket_log(time: u64) -> u64 {
    fine(time.clamp(1, u64::MAX >> 7) << 7) as u64
}

/// A time at which a place may be divided, and in which order the times below it and from it on have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    at: u16,
    /// Whether the last time was a longer one, and how many of its kind came in a row.
    run: Option<(bool, usize)>,
    /// Shorter and longer times by the run that they followed: of shorter, of longer ones; by its length.
    after: [Vec<[u64; 2]>; 2],
}

impl Candidate {
    /// The next time of the place.
    pub(crate) fn follow(&mut self, time: u64) {
        let is_long = fine(time) >= usize::from(self.at);
        if let Some((of, length)) = self.run {
            let after = &mut self.after[usize::from(of)];
            after.resize(after.len().max(length), [0; 2]);
            after[length - 1][usize::from(is_long)] += 1;
        }
        self.run = Some(match self.run {
            Some((of, length)) if of == is_long => (of, (length + 1).min(LONGEST)),
            _ => (is_long, 1),
        });
    }

    /// Whether the runs tell at least half of the rarer kind.
    fn is_regular(&self) -> bool {
        let runs = || self.after.iter().flatten();
        let of = |kind: usize| runs().map(|after| after[kind]).sum::<u64>();
        let rare = usize::from(of(1) < of(0));
        let wrong = runs().map(|after| match (after[rare], after[1 - rare]) {
            (rare, common) if rare >= NO_CHANCE && rare > common => common,
            (rare, _) => rare,
        });
        2 * wrong.sum::<u64>() <= of(rare)
    }
}

/// Something for each mode of a place.
#[derive(Debug)]
pub(crate) struct Modes<T> {
    /// Ascending: the buckets with which all modes but the first begin.
    cuts: Vec<u16>,
    of: Vec<T>,
}

impl<T> Modes<T> {
    /// That of a time's mode.
    pub(crate) fn at(&self, time: u64) -> &T {
        &self.of[self.cuts.partition_point(|&cut| usize::from(cut) <= fine(time))]
    }

    /// From the shortest mode on.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.of.iter()
    }

    /// Something else for each.
    pub(crate) fn map<U>(&self, made: impl FnMut(&T) -> U) -> Modes<U> {
        Modes { cuts: self.cuts.clone(), of: self.of.iter().map(made).collect() }
    }
}
