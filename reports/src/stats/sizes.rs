//! Sizes of messages.

use super::bounded::{Bounded, MOST_KEYS, Volume};
use results::classes::{fine, greatest};

/// Messages by size or, with too many different sizes, by [`fine`] classes, which are 1/128 wide.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    exact: Option<Bounded>,
    /// By class, once there were too many.
    bins: Vec<Volume>,
    /// The least and the greatest size in the bins.
    range: (u64, u64),
}

/// The sizes of a trace's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeCounts {
    /// How often each size occurs, by size; with `exact` false, the largest size of a bin that is 1/128 wide, at most `most`.
    pub sizes: Vec<(u64, Volume)>,
    /// The least size; 0 without messages.
    pub least: u64,
    /// The greatest.
    pub most: u64,
    /// Whether each size was counted by itself.
    pub exact: bool,
}

impl Sizes {
    pub(super) fn new() -> Self {
        Self::with_at_most(MOST_KEYS)
    }

    fn with_at_most(most: usize) -> Self {
        Self { exact: Some(Bounded::new(most)), bins: Vec::new(), range: (u64::MAX, 0) }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, size: u64, volume: Volume) {
        let left_over = match &mut self.exact {
            Some(exact) => exact.add(size, volume),
            None => Some((size, volume)),
        };
        if let Some((size, volume)) = left_over {
            self.add_inexact(size, volume);
        }
    }

    #[cold]
    fn add_inexact(&mut self, size: u64, volume: Volume) {
        if let Some(mut exact) = self.exact.take() {
            self.bins = vec![Volume::default(); fine(u64::MAX) + 1];
            exact.drain().for_each(|(size, volume)| self.add_to_bin(size, volume));
        }
        self.add_to_bin(size, volume);
    }

    fn add_to_bin(&mut self, size: u64, volume: Volume) {
        if volume.messages > 0 {
            self.bins[fine(size)].add(volume);
            self.range = (self.range.0.min(size), self.range.1.max(size));
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (size, volume) in other.exact.into_iter().flat_map(|mut exact| exact.drain()) {
            self.add(size, volume);
        }
        for (at, volume) in other.bins.into_iter().enumerate() {
            if volume.messages > 0 {
                self.add_inexact(greatest(at).clamp(other.range.0, other.range.1), volume);
            }
        }
        if other.range.0 <= other.range.1 {
            self.range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
        }
    }

    pub(super) fn finish(mut self) -> SizeCounts {
        match self.exact.take().map(Bounded::sorted) {
            Some(Ok(sizes)) => {
                let [least, most] = [sizes.first(), sizes.last()].map(|end| end.map_or(0, |(size, _)| *size));
                return SizeCounts { sizes, least, most, exact: true };
            }
            Some(Err(exact)) => {
                self.exact = Some(exact);
                self.add_inexact(0, Volume::default());
            }
            None => {}
        }
        let used = self.bins.into_iter().enumerate().filter(|(_, volume)| volume.messages > 0);
        let (least, most) = self.range;
        let sizes = used.map(|(at, volume)| (greatest(at).min(most), volume)).collect();
        SizeCounts { sizes, least, most, exact: false }
    }
}

/// The smallest size of the bin of a size.
pub(super) fn smallest_beside(size: u64) -> u64 {
    fine(size).checked_sub(1).map_or(0, |before| greatest(before) + 1)
}

impl SizeCounts {
    /// The size of which `share` of the messages are no larger (nearest rank); 0 without any messages.
    pub fn quantile(&self, share: f64) -> u64 {
        let all: u64 = self.sizes.iter().map(|(_, volume)| volume.messages).sum();
        let wanted = ((share * all as f64).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0;
        for (size, volume) in &self.sizes {
            seen += volume.messages;
            if seen >= wanted {
                return *size;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(sizes: &[u64], most: usize) -> SizeCounts {
        let mut all = Sizes::with_at_most(most);
        sizes.iter().for_each(|&size| all.add(size, Volume { messages: 1, bytes: size }));
        all.finish()
    }

    proptest! {
        #[test]
        fn least_and_greatest_are_exact(sizes in proptest::collection::vec(any::<u64>(), 1..60), most in 1usize..50) {
            let counts = counted(&sizes, most);
            prop_assert_eq!((Some(&counts.least), Some(&counts.most)), (sizes.iter().min(), sizes.iter().max()));
            prop_assert_eq!(counts.quantile(1.0), counts.most);
            let inside = |&size: &u64| counts.sizes.iter().any(|&(to, _)| smallest_beside(to) <= size && size <= to);
            prop_assert!(sizes.iter().all(inside));
        }

        #[test]
        fn parts_in_any_order_give_the_same(sizes in proptest::collection::vec(0u64..5000, 0..60), at in 0usize..60, most in 1usize..50) {
            let whole = counted(&sizes, most);
            let (one, other) = sizes.split_at(at.min(sizes.len()));
            for (one, other) in [(one, other), (other, one)] {
                let mut merged = Sizes::with_at_most(most);
                for part in [one, other] {
                    let mut sizes = Sizes::with_at_most(most);
                    part.iter().for_each(|&size| sizes.add(size, Volume { messages: 1, bytes: size }));
                    merged.merge(sizes);
                }
                prop_assert_eq!(&merged.finish(), &whole);
            }
        }
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sizes = counted(&[8, 8, 8, 100, 1000], MOST_KEYS);
        assert_eq!(
            [0.0, 0.5, 0.6, 0.61, 0.8, 0.81, 1.0].map(|share| sizes.quantile(share)),
            [8, 8, 8, 100, 100, 1000, 1000]
        );
        assert_eq!(counted(&[], 4).quantile(0.5), 0);
    }
}
