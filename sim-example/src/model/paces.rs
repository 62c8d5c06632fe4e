//! Links whose bandwidth changes during the run: when bytes have left over them.
//!
//! With the bandwidth B(t) of a link, bytes m that begin to leave at s have left at the first whole picosecond e with ∫ₛᵉ B(t) dt ≥ 8m.

use std::collections::HashMap;

use vef_format::units::{Bytes, Picos};

use crate::quantity::Bandwidth;
use crate::topology::{Fabric, LinkClass, LinkId};

/// The links whose bandwidth changes.
#[derive(Debug)]
pub(crate) struct Paces {
    links: HashMap<LinkId, Pace>,
}

/// The bandwidth of a link.
#[derive(Debug)]
pub(crate) struct Pace {
    /// From when on it is which; the first begin is 0.
    steps: Vec<(Picos, Bandwidth)>,
}

impl Paces {
    /// Those of a network, with the bandwidths of its classes; `None` if no bandwidth changes.
    pub(super) fn new(topology: &Fabric, bandwidth: impl Fn(LinkClass) -> Bandwidth) -> Option<Box<Self>> {
        let pace = |(link, shares): (LinkId, &[(Picos, f64)])| {
            let whole = bandwidth(topology.class(link));
            (
                link,
                Pace { steps: shares.iter().map(|&(begin, share)| (begin, whole.scaled(share))).collect() },
            )
        };
        Some(Box::new(Self { links: topology.slowdowns()?.links().map(pace).collect() }))
    }

    /// A link, if its bandwidth changes.
    #[inline(never)]
    pub(super) fn of(&self, link: LinkId) -> Option<&Pace> {
        self.links.get(&link)
    }

    /// All changes, by time: the link and its bandwidth from then on.
    pub(super) fn changes(&self) -> Vec<(Picos, LinkId, Bandwidth)> {
        let of_link = |(link, pace): (&LinkId, &Pace)| {
            let link = *link;
            pace.steps.iter().map(move |&(begin, bandwidth)| (begin, link, bandwidth)).collect::<Vec<_>>()
        };
        let mut changes: Vec<_> = self.links.iter().flat_map(of_link).collect();
        changes.sort_by_key(|&(begin, link, _)| (begin, link));
        changes
    }
}

/// What a bit takes of the bandwidth in bits per second times picoseconds.
const OF_A_BIT: u128 = 1_000_000_000_000;

/// The time that so many bits take; `None` beyond 64 bits.
fn time(bits: u128, bandwidth: Bandwidth) -> Option<u64> {
    u64::try_from(bits.div_ceil(bandwidth.bits_per_second().into())).ok()
}

impl Pace {
    /// When bytes that begin to leave at `from` have left; `None` beyond the range of times.
    #[inline(never)]
    pub(super) fn after(&self, from: Picos, bytes: Bytes) -> Option<Picos> {
        let mut left = u128::from(bytes.0) * 8 * OF_A_BIT;
        let first = self.steps.partition_point(|(begin, _)| *begin <= from) - 1;
        for (step, &(begin, bandwidth)) in self.steps.iter().enumerate().skip(first) {
            let begin = begin.max(from);
            let all = u128::from(bandwidth.bits_per_second())
                * u128::from(self.steps.get(step + 1).map_or(u64::MAX, |(end, _)| end.0) - begin.0);
            if left <= all {
                return begin.0.checked_add(time(left, bandwidth)?).map(Picos);
            }
            left -= all;
        }
        None
    }

    /// When bytes that have left at `end` began to leave at the latest; 0 if that is before the beginning.
    #[inline(never)]
    pub(super) fn before(&self, end: Picos, bytes: Bytes) -> Picos {
        let mut left = u128::from(bytes.0) * 8 * OF_A_BIT;
        let (last, mut end) = (end, end);
        for &(begin, bandwidth) in self.steps.iter().rev().skip_while(|(begin, _)| *begin >= last) {
            let all = u128::from(bandwidth.bits_per_second()) * u128::from(end.0 - begin.0);
            if left <= all {
                return Picos(end.0 - time(left, bandwidth).unwrap_or(end.0).min(end.0));
            }
            (left, end) = (left - all, begin);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sum over single picoseconds.
        #[test]
        fn as_each_picosecond_counts(
            steps in prop::collection::vec((1u64..30, 1u64..20), 1..6),
            from in 0u64..100,
            bytes in 0u64..40,
        ) {
            // So many bytes a picosecond or less.
            let rate = |eighths: u64| Bandwidth::from_bits_per_second(eighths * 1_000_000_000_000).unwrap();
            let mut begin = 0;
            let mut pace = Pace { steps: Vec::new() };
            for &(length, eighths) in &steps {
                pace.steps.push((Picos(begin), rate(eighths)));
                begin += length;
            }
            let eighths_at = |at: u64| {
                let step = pace.steps.iter().rev().find(|(begin, _)| begin.0 <= at).unwrap();
                step.1.bits_per_second() / 1_000_000_000_000
            };
            let (mut end, mut passed) = (from, 0);
            while passed < 8 * bytes {
                passed += eighths_at(end);
                end += 1;
            }
            prop_assert_eq!(pace.after(Picos(from), Bytes(bytes)), Some(Picos(end)));
            let (mut begin, mut passed) = (from, 0);
            while passed < 8 * bytes && begin > 0 {
                begin -= 1;
                passed += eighths_at(begin);
            }
            prop_assert_eq!(pace.before(Picos(from), Bytes(bytes)), Picos(begin));
        }
    }

    #[test]
    fn what_never_ends_is_none() {
        let pace = Pace { steps: vec![(Picos(0), Bandwidth::from_bits_per_second(1).unwrap())] };
        assert_eq!(pace.after(Picos(0), Bytes(u64::MAX)), None);
        assert_eq!(pace.after(Picos(u64::MAX), Bytes(1)), None);
        assert_eq!(pace.before(Picos(5), Bytes(u64::MAX)), Picos(0));
    }
}
