//! Use of the links of a network.

use replay::Kind;
use serde::Serialize;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Picos};

use super::figures::{Amount, kind};
use crate::model::Usage;
use crate::quantity::Bandwidth;
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, LinkId};
use crate::watch::{BINS, LinkUse, Watch};

/// Use of the links. The utilisation of a link is the share of the run time in which the link is busy; in
/// models without contention, where messages overlap, it can exceed 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinksReport {
    /// Links that carried messages.
    pub used: u32,
    /// Highest utilisation of a link.
    pub utilisation_max: f64,
    /// Mean utilisation of all links, idle ones included.
    pub utilisation_mean: f64,
    /// The links with the highest utilisation, in descending order; at most ten.
    pub busiest: Vec<LinkReport>,
    /// All links that carried messages, in the order of their numbers, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<LinkReport>>,
    /// Width of the bins in [`OverTime`], if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin_ps: Option<Picos>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Its ends, such as `node3->leaf0`.
    pub link: String,
    /// Its number in the topology.
    pub number: u32,
    /// Bits per second.
    #[serde(rename = "bandwidth_bits_per_s")]
    pub bandwidth: Bandwidth,
    /// Its latency.
    pub latency_ps: Picos,
    /// Share of the run time in which the link was busy.
    pub utilisation: f64,
    /// Time in which the link was busy.
    pub busy_ps: Picos,
    /// Messages, or packets in the packet model, and their bytes, with packet headers.
    #[serde(flatten)]
    pub amount: Amount,
    /// Sum of the times that messages or packets waited for the link.
    pub waited_ps: Picos,
    /// Longest such time.
    pub longest_wait_ps: Picos,
    /// Bytes the link sends in that time: the longest queue.
    pub longest_queue: Bytes,
    /// Time in which packets waited and none had room in the buffer behind the link.
    pub blocked_ps: Picos,
    /// Use over time, if requested.
    #[serde(flatten)]
    pub over_time: Option<OverTime>,
}

/// Use of a link over time, and by task and kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverTime {
    /// Busy share of each bin.
    pub busy: Vec<f64>,
    /// Share of each bin in which packets waited and none had room behind the link.
    pub blocked: Vec<f64>,
    /// Bytes sent in each bin.
    pub bytes_over_time: Vec<u64>,
    /// Tasks with the most bytes on the link, at most eight. A figure is exact or too high by at most an
    /// eighth of the link's bytes.
    pub sources: Vec<SharedBy>,
    /// Bytes by kind of message.
    pub kinds: Vec<Share>,
}

/// Bytes of a task's messages on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SharedBy {
    /// The job.
    pub job: u32,
    /// The task that sends.
    pub task: Rank,
    /// Bytes.
    pub bytes: Bytes,
}

/// Bytes of a kind of messages on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The kind.
    #[serde(serialize_with = "kind")]
    pub kind: Kind,
    /// Bytes.
    pub bytes: Bytes,
}

/// Length of [`LinksReport::busiest`].
const BUSIEST: usize = 10;

/// The links of a finished run.
pub(super) struct Used<'a> {
    pub(super) topology: &'a Fabric,
    pub(super) settings: &'a NetworkSettings,
    pub(super) usage: &'a [Usage],
    pub(super) watch: Option<&'a Watch>,
    pub(super) runtime: Picos,
    /// First task of each job.
    pub(super) first_tasks: &'a [u32],
}

impl Used<'_> {
    fn share(&self, time: u128, of: u64) -> f64 {
        if of == 0 { 0.0 } else { time as f64 / of as f64 }
    }

    pub(super) fn report(&self) -> LinksReport {
        let (mut used, mut busy) = (0, 0u128);
        // By descending busy time, then by number.
        let mut busiest: Vec<(LinkId, Usage)> = Vec::with_capacity(BUSIEST + 1);
        let of_use =
            || (0..).map(LinkId).zip(self.usage.iter().copied()).filter(|(_, usage)| usage.count > 0);
        for (link, usage) in of_use() {
            used += 1;
            busy += u128::from(usage.busy.0);
            let place = busiest.partition_point(|(_, other)| other.busy >= usage.busy);
            if place < BUSIEST {
                busiest.insert(place, (link, usage));
                busiest.truncate(BUSIEST);
            }
        }
        let uses = self.watch.and_then(Watch::uses);
        let one = |(link, usage): (LinkId, Usage)| self.link(link, usage, None);
        let with_time = |(link, usage): (LinkId, Usage)| {
            self.link(
                link,
                usage,
                uses.and_then(|(width, links)| Some((width, links[link.index()].as_deref()?))),
            )
        };
        let busiest: Vec<LinkReport> = busiest.into_iter().map(one).collect();
        LinksReport {
            used,
            utilisation_max: busiest.first().map_or(0.0, |link| link.utilisation),
            utilisation_mean: self.share(busy, self.runtime.0) / f64::from(self.topology.links()),
            busiest,
            all: uses.map(|_| of_use().map(with_time).collect()),
            bin_ps: uses.map(|(width, _)| width),
        }
    }

    fn link(&self, link: LinkId, usage: Usage, over_time: Option<(Picos, &LinkUse)>) -> LinkReport {
        let Usage { busy, count: messages, bytes, waited, longest_wait, blocked } = usage;
        let speed = self.settings.links.speeds(self.topology)[usize::from(self.topology.class(link).0)];
        let queue =
            u128::from(longest_wait.0) * u128::from(speed.bandwidth.bits_per_second()) / 8_000_000_000_000;
        LinkReport {
            link: self.topology.link_name(link),
            number: link.0,
            bandwidth: speed.bandwidth,
            latency_ps: speed.latency,
            utilisation: self.share(busy.0.into(), self.runtime.0),
            busy_ps: busy,
            amount: Amount { messages, bytes },
            waited_ps: waited,
            longest_wait_ps: longest_wait,
            longest_queue: Bytes(u64::try_from(queue).unwrap_or(u64::MAX)),
            blocked_ps: blocked,
            over_time: over_time.map(|(width, link)| self.over_time(width, link)),
        }
    }

    fn over_time(&self, width: Picos, link: &LinkUse) -> OverTime {
        let bins = (self.runtime.0.div_ceil(width.0) as usize).clamp(1, BINS);
        // The last bin ends with the run.
        let length = |bin: usize| (self.runtime.0 - (bin as u64 * width.0).min(self.runtime.0)).min(width.0);
        let shares = |times: &[u64; BINS]| {
            (0..bins).map(|bin| self.share(times[bin].into(), length(bin))).collect::<Vec<f64>>()
        };
        let mut sources: Vec<SharedBy> = link
            .sharers
            .iter()
            .map(|&(number, bytes)| {
                let job = self.first_tasks.partition_point(|&first| first <= number) - 1;
                let task = Rank(number - self.first_tasks[job]);
                SharedBy { job: job as u32, task, bytes: Bytes(bytes) }
            })
            .collect();
        sources.sort_by_key(|source| (std::cmp::Reverse(source.bytes), source.job, source.task));
        let mut kinds: Vec<Share> = Kind::all()
            .filter_map(|kind| {
                let (_, bytes) =
                    link.kinds.iter().find(|(number, _)| usize::from(*number) == kind.index())?;
                Some(Share { kind, bytes: Bytes(*bytes) })
            })
            .collect();
        kinds.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        OverTime {
            busy: shares(&link.busy),
            blocked: shares(&link.blocked),
            bytes_over_time: link.bytes[..bins].to_vec(),
            sources,
            kinds,
        }
    }
}
