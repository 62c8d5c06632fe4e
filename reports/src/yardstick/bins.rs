//! Bins of time, for a run time that is not known beforehand.

use vef_format::units::Picos;

/// Bins of time, at most.
pub(super) const MOST: usize = 2048;

/// The width of bins: a power of two of picoseconds, doubled whenever time runs over the last of [`MOST`] bins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width {
    shift: u32,
}

/// The bins of one measure.
pub(super) type Lane = Box<[u64; MOST]>;

/// Empty bins.
pub(super) fn lane() -> Lane {
    Box::new([0; MOST])
}

impl Width {
    /// 1.024 ns.
    pub(super) const FIRST: Self = Self { shift: 10 };

    /// The width in picoseconds.
    pub(super) fn picos(self) -> u64 {
        1 << self.shift
    }

    /// Whether a moment lies before the end of the last bin.
    #[inline(always)]
    pub(super) fn holds(self, at: Picos) -> bool {
        at.0 >> self.shift < MOST as u64
    }

    /// The bin of a moment for which [`Width::holds`] is true.
    #[inline(always)]
    pub(super) fn bin(self, at: Picos) -> usize {
        (at.0 >> self.shift) as usize
    }

    /// Doubles the width.
    pub(super) fn double(&mut self) {
        self.shift += 1;
    }

    /// Adds the picoseconds from `from` to `to`, both in bins, to the bins that they are in.
    #[inline]
    pub(super) fn add_span(self, lane: &mut [u64; MOST], from: Picos, to: Picos) {
        let (first, last) = (self.bin(from), self.bin(to));
        if first == last {
            lane[first] = lane[first].saturating_add(to.0 - from.0);
            return;
        }
        let within = |at: Picos| at.0 & (self.picos() - 1);
        lane[first] = lane[first].saturating_add(self.picos() - within(from));
        for bin in &mut lane[first + 1..last] {
            *bin = bin.saturating_add(self.picos());
        }
        lane[last] = lane[last].saturating_add(within(to));
    }
}

/// Combines neighbouring bins in pairs, for twice the width.
pub(super) fn fold(lane: &mut [u64], together: fn(u64, u64) -> u64) {
    let half = lane.len() / 2;
    for bin in 0..half {
        lane[bin] = together(lane[2 * bin], lane[2 * bin + 1]);
    }
    lane[half..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shared_out_and_folded() {
        let mut width = Width { shift: 4 };
        let mut bins = lane();
        width.add_span(&mut bins, Picos(5), Picos(7));
        width.add_span(&mut bins, Picos(10), Picos(40));
        assert_eq!(bins[..4], [2 + 6, 16, 8, 0]);
        assert!(width.holds(Picos(16 * MOST as u64 - 1)) && !width.holds(Picos(16 * MOST as u64)));
        fold(&mut bins[..], u64::saturating_add);
        width.double();
        assert_eq!((bins[..3].to_vec(), width.picos(), width.bin(Picos(40))), (vec![24, 8, 0], 32, 1));
    }
}
