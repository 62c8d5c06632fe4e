//! Optional records of links and routes during a run.
//!
//! **Links over time.** Each link that carries a message gets [`BINS`] bins of equal width. When time passes
//! the last bin, neighbouring bins are merged and the width doubles, so sums stay exact.
//!
//! **Link sharers.** The source tasks with the most bytes on a link, by the Space-Saving algorithm (A.
//! Metwally, D. Agrawal, A. El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
//! Streams", ICDT 2005) with [`SHARERS`] counters: a count is exact or too high by at most the link's bytes
//! over [`SHARERS`]. Bytes by kind of message are exact.
//!
//! **Routes.** The links that each message crossed, kept until its delivery.

use replay::{Kind, LiveId};
use vef_format::units::Picos;

use crate::topology::LinkId;

/// Tag of the bytes that a protocol returns; no message of a replay has it.
pub(crate) const RETURNED: u64 = u64::MAX;
/// High half of the tags of background traffic; no message of a replay has it.
const BACKGROUND: u64 = 0xffff_ffff;
/// Stands for background traffic in place of the number of a job.
pub(crate) const NO_JOB: u32 = u32::MAX;

/// The tag of background traffic from a node.
pub(crate) const fn background_tag(node: u32) -> u64 {
    BACKGROUND << 32 | node as u64
}

/// The node of a message of background traffic.
pub(crate) const fn node_of_background(tag: u64) -> Option<u32> {
    if tag >> 32 == BACKGROUND && tag != RETURNED { Some(tag as u32) } else { None }
}

/// Bins per link.
pub(crate) const BINS: usize = 64;
/// Counters of source tasks per link.
pub(crate) const SHARERS: usize = 8;
/// Initial width of a bin, in picoseconds.
const FIRST_WIDTH: u64 = 1 << 10;

/// Optional results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe {
    /// Use of every link over time, and by task.
    pub links: bool,
    /// The critical path.
    pub critical_path: bool,
    /// Who waits for whom.
    pub waits: bool,
}

impl Observe {
    /// The recorder for these results.
    pub(crate) fn watch(self, links: u32, nodes: u32) -> Option<Box<Watch>> {
        (self.links || self.critical_path).then(|| {
            let uses = self.links.then(|| Uses {
                width: FIRST_WIDTH,
                links: (0..links).map(|_| None).collect(),
                senders: Vec::new(),
            });
            let ways = self.critical_path.then(Ways::default);
            Box::new(Watch { uses, ways, injections: 2 * nodes })
        })
    }
}

/// A message, or one of its packets, that crosses a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The link.
    pub link: LinkId,
    /// With headers.
    pub bytes: u64,
    /// Time from when the link could have been used until it was.
    pub waited: Picos,
    /// Time for which the link was busy with it, up to `end`.
    pub time: Picos,
    /// When its last byte entered the link.
    pub end: Picos,
}

/// The recorder of optional results.
#[derive(Debug)]
pub struct Watch {
    uses: Option<Uses>,
    ways: Option<Ways>,
    /// Even link numbers below this are injection links.
    injections: u32,
}

/// Use of all links.
#[derive(Debug)]
struct Uses {
    /// Width of a bin, in picoseconds.
    width: u64,
    links: Vec<Option<Box<LinkUse>>>,
    /// Task, job and kind of each live message, by slot of its id.
    senders: Vec<(u32, u32, u8)>,
}

/// Use of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkUse {
    /// Busy picoseconds of each bin.
    pub(crate) busy: [u64; BINS],
    /// Picoseconds of each bin in which packets waited and none had room behind the link.
    pub(crate) blocked: [u64; BINS],
    pub(crate) bytes: [u64; BINS],
    /// Source tasks, numbered over all jobs, and their bytes.
    pub(crate) sharers: Vec<(u32, u64)>,
    /// Kinds of messages, by index, and their bytes.
    pub(crate) kinds: Vec<(u8, u64)>,
    /// Jobs, or [`NO_JOB`], and their bytes.
    pub(crate) jobs: Vec<(u32, u64)>,
}

/// Routes of messages.
#[derive(Debug, Default)]
struct Ways {
    /// Of messages or packets in the network, by its number for them.
    in_network: Vec<Vec<Crossing>>,
    /// Of messages on their last link, by slot of their ids.
    on_last_link: Vec<Vec<Crossing>>,
}

impl Watch {
    /// A message of a task was submitted.
    pub(crate) fn handed_over(&mut self, id: LiveId, task: u32, job: u32, kind: Kind) {
        if let Some(uses) = &mut self.uses {
            *place(&mut uses.senders, id.slot()) = (task, job, kind.index() as u8);
        }
    }

    /// Message `tag`, or one of its packets, which the network calls `number`, crosses a link; `last` on the
    /// last link of the route.
    pub fn crossed(&mut self, number: u32, tag: u64, crossing: &Crossing, last: bool) {
        // Returned bytes belong to no message.
        if tag == RETURNED {
            return;
        }
        if let Some(uses) = &mut self.uses {
            uses.add(tag, crossing);
        }
        if let Some(ways) = &mut self.ways
            && node_of_background(tag).is_none()
        {
            let way = place(&mut ways.in_network, number);
            if crossing.link.0 < self.injections && crossing.link.0.is_multiple_of(2) {
                way.clear();
            }
            way.push(*crossing);
            if last {
                std::mem::swap(way, place(&mut ways.on_last_link, LiveId::from_raw(tag).slot()));
            }
        }
    }

    /// Packets waited for a link from `from` to `to`, and none had room behind it.
    pub(crate) fn blocked(&mut self, link: LinkId, from: Picos, to: Picos) {
        if let Some(uses) = &mut self.uses {
            uses.spread(link, from, to, 0, |link| &mut link.blocked);
        }
    }

    /// The route of a message, or of its last packet, at its delivery.
    pub(crate) fn way(&mut self, id: LiveId) -> &[Crossing] {
        match &mut self.ways {
            Some(ways) => place(&mut ways.on_last_link, id.slot()),
            None => &[],
        }
    }

    /// The width of the bins, and the use of each link.
    pub(crate) fn uses(&self) -> Option<(Picos, &[Option<Box<LinkUse>>])> {
        self.uses.as_ref().map(|uses| (Picos(uses.width), &uses.links[..]))
    }
}

/// The entry of a number in a table that grows on demand.
fn place<T: Default + Clone>(table: &mut Vec<T>, number: u32) -> &mut T {
    let at = number as usize;
    if at >= table.len() {
        table.resize(at + 1, T::default());
    }
    &mut table[at]
}

impl Uses {
    fn add(&mut self, tag: u64, crossing: &Crossing) {
        let &Crossing { link, bytes, time, end, .. } = crossing;
        self.spread(link, end.saturating_sub(time), end, bytes, |link| &mut link.busy);
        let Some(Some(link)) = self.links.get_mut(link.index()) else { return };
        if node_of_background(tag).is_some() {
            return add(&mut link.jobs, NO_JOB, bytes);
        }
        let slot = LiveId::from_raw(tag).slot() as usize;
        let (task, job, kind) = self.senders.get(slot).copied().unwrap_or_default();
        link.add(task, kind, bytes);
        add(&mut link.jobs, job, bytes);
    }

    /// Adds a time span, and bytes sent evenly in it, to the bins of a link.
    fn spread(
        &mut self,
        link: LinkId,
        from: Picos,
        to: Picos,
        bytes: u64,
        bins: impl Fn(&mut LinkUse) -> &mut [u64; BINS],
    ) {
        // The last moment of a span that ends with a bin is in that bin.
        while to.0.saturating_sub(1).max(from.0) / self.width >= BINS as u64 {
            self.widen();
        }
        let Some(link) = self.links.get_mut(link.index()) else { return };
        let link = link.get_or_insert_with(|| Box::new(LinkUse::new()));
        let length = to.0 - from.0;
        let mut at = from.0;
        let mut sent = 0;
        loop {
            let bin = (at / self.width) as usize;
            let until = (bin as u64 + 1).saturating_mul(self.width).min(to.0);
            bins(link)[bin] += until - at;
            let so_far = match until == to.0 {
                true => bytes,
                false => (u128::from(bytes) * u128::from(until - from.0) / u128::from(length)) as u64,
            };
            link.bytes[bin] = link.bytes[bin].saturating_add(so_far - sent);
            if until == to.0 {
                return;
            }
            (at, sent) = (until, so_far);
        }
    }

    /// Doubles the width of the bins.
    fn widen(&mut self) {
        self.width *= 2;
        for link in self.links.iter_mut().flatten() {
            for bins in [&mut link.busy, &mut link.blocked, &mut link.bytes] {
                for at in 0..BINS / 2 {
                    bins[at] = bins[2 * at].saturating_add(bins[2 * at + 1]);
                }
                bins[BINS / 2..].fill(0);
            }
        }
    }
}

/// Adds bytes to the sum of one of few keys.
fn add<K: PartialEq>(sums: &mut Vec<(K, u64)>, key: K, bytes: u64) {
    match sums.iter_mut().find(|(known, _)| *known == key) {
        Some((_, sum)) => *sum = sum.saturating_add(bytes),
        None => sums.push((key, bytes)),
    }
}

impl LinkUse {
    fn new() -> Self {
        Self {
            busy: [0; BINS],
            blocked: [0; BINS],
            bytes: [0; BINS],
            sharers: Vec::with_capacity(SHARERS),
            kinds: Vec::new(),
            jobs: Vec::new(),
        }
    }

    fn add(&mut self, task: u32, kind: u8, bytes: u64) {
        add(&mut self.kinds, kind, bytes);
        if let Some((_, sum)) = self.sharers.iter_mut().find(|(known, _)| *known == task) {
            *sum = sum.saturating_add(bytes);
        } else if self.sharers.len() < SHARERS {
            self.sharers.push((task, bytes));
        } else if let Some(least) = self.sharers.iter_mut().min_by_key(|(_, sum)| *sum) {
            *least = (task, least.1.saturating_add(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Bins hold exactly the spans that were added, and no byte is lost.
        #[test]
        fn bins_add_up(crossings in prop::collection::vec(
            (0u32..3, 0u64..1 << 12, (0u64..1 << 20, 0u32..20), 0u32..12), 1..60))
        {
            let observe = Observe { links: true, ..Observe::default() };
            let mut watch = observe.watch(3, 0).unwrap();
            let mut sum: HashMap<(u32, u32), u64> = HashMap::new();
            for (n, &(link, bytes, (end, shift), task)) in crossings.iter().enumerate() {
                let (end, time) = (end >> shift, (end >> shift) / 3);
                let id = LiveId::from_raw(n as u64);
                watch.handed_over(id, task, 0, Kind::PointToPoint);
                let crossing = Crossing {
                    link: LinkId(link), bytes, waited: Picos::ZERO, time: Picos(time), end: Picos(end),
                };
                watch.crossed(0, id.to_raw(), &crossing, false);
                *sum.entry((link, task)).or_default() += bytes;
            }
            let (width, links) = watch.uses().unwrap();
            for (number, link) in (0..).zip(links) {
                let of_link = || crossings.iter().filter(move |crossing| crossing.0 == number);
                let Some(link) = link else {
                    prop_assert_eq!(of_link().count(), 0);
                    continue;
                };
                prop_assert_eq!(link.bytes.iter().sum::<u64>(), of_link().map(|crossing| crossing.1).sum::<u64>());
                for (bin, &busy) in (0..).zip(&link.busy) {
                    let bounds = (bin * width.0, (bin + 1) * width.0);
                    let inside = of_link().map(|&(_, _, (end, shift), _)| {
                        let (end, time) = (end >> shift, (end >> shift) / 3);
                        end.min(bounds.1).saturating_sub((end - time).max(bounds.0))
                    });
                    prop_assert_eq!(busy, inside.sum::<u64>());
                }
                let all: u64 = of_link().map(|crossing| crossing.1).sum();
                for &(task, bytes) in &link.sharers {
                    let truth = sum[&(number, task)];
                    prop_assert!(truth <= bytes && bytes <= truth + all / SHARERS as u64);
                }
                // Every task with more bytes than the error bound is listed.
                for (&(_, task), &truth) in sum.iter().filter(|((link, _), _)| *link == number) {
                    prop_assert!(truth <= all / SHARERS as u64 || link.sharers.iter().any(|known| known.0 == task));
                }
            }
        }
    }
}
