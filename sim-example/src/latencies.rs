//! Latencies of messages by kind and size.
//!
//! Each message is added to one histogram, of its kind and size; sums are computed at the end.

use replay::Kind;
use results::classes::{ends, power};
use vef_format::units::Bytes;

use crate::histogram::Histogram;

/// Sizes by [`power`]s of two: 0, 1, 2–3, 4–7, …
const CLASSES: usize = 65;

/// A histogram for each kind and size class.
#[derive(Debug)]
pub(crate) struct Latencies {
    cells: Vec<Histogram>,
    /// Messages without kind and size.
    unsorted: Histogram,
}

/// Index of the histogram of a kind and size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell(u16);

impl Cell {
    #[inline]
    pub(crate) fn of(kind: Kind, bytes: Bytes) -> Self {
        let class = power(bytes.0) as usize;
        Self((kind.index() * CLASSES + class) as u16)
    }
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self { cells: vec![Histogram::default(); Kind::COUNT * CLASSES], unsorted: Histogram::default() }
    }

    /// From messages without kind and size.
    pub(crate) fn unsorted(unsorted: Histogram) -> Self {
        Self { cells: Vec::new(), unsorted }
    }

    /// Adds a message.
    #[inline]
    pub(crate) fn add(&mut self, cell: Cell, latency: u64) {
        if let Some(histogram) = self.cells.get_mut(usize::from(cell.0)) {
            histogram.add(latency);
        }
    }

    /// Adds the messages of another partition.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.cells.iter_mut().zip(&other.cells).for_each(|(cell, other)| cell.merge(other));
    }

    /// All messages.
    pub(crate) fn all(&self) -> Histogram {
        merged(self.cells.iter().chain([&self.unsorted]))
    }

    /// Messages of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> Histogram {
        merged(self.cells.iter().skip(kind.index() * CLASSES).take(CLASSES))
    }

    /// Non-empty size classes: smallest size, largest size, histogram.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (Bytes, Bytes, Histogram)> + '_ {
        let class = |class: usize| merged(self.cells.iter().skip(class).step_by(CLASSES));
        (0..CLASSES).map(move |at| (at, class(at))).filter(|(_, histogram)| histogram.count() > 0).map(
            |(at, histogram)| {
                let (from, to) = ends(at as u32);
                (Bytes(from), Bytes(to), histogram)
            },
        )
    }
}

fn merged<'a>(cells: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut all = Histogram::default();
    cells.for_each(|cell| all.merge(cell));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_message_is_in_its_class(messages in prop::collection::vec(
            (0..Kind::COUNT, (any::<u64>(), 0u32..=64), any::<u32>()), 1..60))
        {
            let kinds: Vec<Kind> = Kind::all().collect();
            let messages: Vec<(Kind, u64, u64)> = messages
                .into_iter()
                .map(|(kind, (size, shift), latency)| {
                    (kinds[kind], size.checked_shr(shift).unwrap_or(0), latency.into())
                })
                .collect();
            let mut latencies = Latencies::new();
            for &(kind, size, latency) in &messages {
                latencies.add(Cell::of(kind, Bytes(size)), latency);
            }
            prop_assert_eq!(latencies.all().count(), messages.len() as u64);
            for &kind in &kinds {
                let of_kind = messages.iter().filter(|message| message.0 == kind);
                let histogram = latencies.of_kind(kind);
                prop_assert_eq!(histogram.count(), of_kind.clone().count() as u64);
                prop_assert_eq!(histogram.max(), of_kind.map(|message| message.2).max().unwrap_or(0));
            }
            let mut counted = 0;
            let mut next = 0;
            for (from, to, histogram) in latencies.sizes() {
                prop_assert!(from.0 >= next && from <= to);
                prop_assert!(to.0 == 0 || to.0 / 2 < from.0, "{from:?} {to:?}");
                let inside = messages.iter().filter(|message| (from.0..=to.0).contains(&message.1));
                prop_assert_eq!(histogram.count(), inside.count() as u64);
                counted += histogram.count();
                next = to.0.saturating_add(1);
            }
            prop_assert_eq!(counted, messages.len() as u64);
        }
    }
}
