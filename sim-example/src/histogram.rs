//! Quantiles in fixed memory: a log-linear histogram.
//!
//! Each power of two is divided into 128 buckets of equal width; values below 128 have a bucket each. A
//! quantile is the upper end of its bucket, or the maximum if that is lower:
//!
//! ```text
//! exact ≤ result ≤ exact × (1 + 1/128)
//! ```
//!
//! Minimum, maximum, sum and count are exact.

use results::classes::{fine, greatest};

/// Counts of values: at most 58 KiB, grown to the largest value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Adds a value.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let at = fine(value);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.count += 1;
    }

    /// Adds all values of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.count += other.count;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value; 0 if empty.
    pub(crate) fn min(&self) -> u64 {
        self.min
    }

    /// The largest value; 0 if empty.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The mean, rounded down; 0 if empty.
    pub(crate) fn mean(&self) -> u64 {
        (self.sum / u128::from(self.count.max(1))) as u64
    }

    /// The value that `thousandths` of all values do not exceed (nearest rank), within the error above; 0 if empty.
    pub(crate) fn quantile(&self, thousandths: u32) -> u64 {
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return greatest(at).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_and_extreme() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(500), histogram.mean(), histogram.max()), (0, 0, 0));
        histogram.add(u64::MAX);
        histogram.add(u64::MAX);
        assert_eq!((histogram.quantile(10), histogram.mean()), (u64::MAX, u64::MAX));
        assert!(histogram.counts.len() <= 58 * 128);
    }

    proptest! {
        #[test]
        fn quantiles_keep_their_bound(values in prop::collection::vec((any::<u64>(), 0u32..64), 1..300)) {
            let mut values: Vec<u64> = values.into_iter().map(|(value, shift)| value >> shift).collect();
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            for thousandths in [10, 500, 900, 990, 999, 1000] {
                let exact = values[(values.len() * thousandths).div_ceil(1000) - 1];
                let answer = histogram.quantile(thousandths as u32);
                prop_assert!(exact <= answer, "{exact} > {answer}");
                prop_assert!(answer - exact <= exact / 128, "{answer} too far above {exact}");
            }
            prop_assert_eq!(histogram.min(), values[0]);
            prop_assert_eq!(Some(&histogram.max()), values.last());
            let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
            prop_assert_eq!(u128::from(histogram.mean()), sum / values.len() as u128);
            // Two parts, merged, give the same.
            let mut merged = Histogram::default();
            for part in [&values[..values.len() / 3], &values[values.len() / 3..]] {
                let mut one = Histogram::default();
                part.iter().for_each(|&value| one.add(value));
                merged.merge(&one);
            }
            prop_assert_eq!(merged.quantile(500), histogram.quantile(500));
            let exact = |h: &Histogram| (h.count(), h.min(), h.max(), h.mean());
            prop_assert_eq!(exact(&merged), exact(&histogram));
        }
    }
}
