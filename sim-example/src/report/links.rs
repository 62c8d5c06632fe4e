//! Use of the links of a network.

use replay::Kind;
use results::simulation::{Amount, JobBytes, KindBytes, LinkReport, LinksReport, OverTime, Source};
use vef_format::units::Picos;

use crate::model::Usage;
use crate::settings::NetworkSettings;
use crate::topology::{Fabric, LinkId};
use crate::watch::{BINS, LinkUse, NO_JOB, Watch};

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

    /// The share of the run time in which a link was busy.
    pub(super) fn utilisation(&self, link: LinkId) -> f64 {
        self.share(self.usage[link.index()].busy.0.into(), self.runtime.0)
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
            bin_ps: uses.map(|(width, _)| width.0),
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
            bandwidth_bits_per_s: speed.bandwidth.bits_per_second(),
            latency_ps: speed.latency.0,
            utilisation: self.utilisation(link),
            busy_ps: busy.0,
            amount: Amount { messages, bytes: bytes.0 },
            waited_ps: waited.0,
            longest_wait_ps: longest_wait.0,
            longest_queue_bytes: u64::try_from(queue).unwrap_or(u64::MAX),
            blocked_ps: blocked.0,
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
        let mut sources: Vec<Source> = link
            .sharers
            .iter()
            .map(|&(number, bytes)| {
                let job = self.first_tasks.partition_point(|&first| first <= number) - 1;
                Source { job: job as u32, task: number - self.first_tasks[job], bytes }
            })
            .collect();
        sources.sort_by_key(|source| (std::cmp::Reverse(source.bytes), source.job, source.task));
        let mut kinds: Vec<KindBytes> = Kind::all()
            .filter_map(|of| {
                let (_, bytes) = link.kinds.iter().find(|(number, _)| usize::from(*number) == of.index())?;
                Some(KindBytes { kind: kind(of), bytes: *bytes })
            })
            .collect();
        kinds.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        let mut jobs: Vec<JobBytes> = (link.jobs.iter())
            .map(|&(job, bytes)| JobBytes { job: (job != NO_JOB).then_some(job), bytes })
            .collect();
        jobs.sort_by_key(|share| (share.job.is_none(), share.job));
        OverTime {
            jobs,
            busy: shares(&link.busy),
            blocked: shares(&link.blocked),
            bytes_over_time: link.bytes[..bins].to_vec(),
            sources,
            kinds,
        }
    }
}

/// The kind as in results.
pub(crate) fn kind(kind: Kind) -> results::Kind {
    match kind {
        Kind::PointToPoint => results::Kind::PointToPoint,
        Kind::Collective(operation) => results::Kind::Collective(operation),
    }
}
