//! The critical path in a report.

use std::cmp::Reverse;

use replay::Kind;
use results::simulation::{
    Captured, CriticalLevel, CriticalLink, CriticalPath, CriticalRank, CriticalStep, OnPath,
};
use vef_format::units::Picos;

use super::shares::{Shares, Step, What};
use crate::report::kind;
use crate::topology::{Fabric, LinkId};

/// Most links and tasks in a report.
const LISTED: usize = 10;

pub(super) fn of(shares: &Shares, topology: &Fabric, first_tasks: &[u32]) -> CriticalPath {
    let place = |number: u32| {
        let job = first_tasks.partition_point(|&first| first <= number).saturating_sub(1);
        (job as u32, number - first_tasks.get(job).copied().unwrap_or(0))
    };
    let of_number = |number: u8| kind(Kind::all().nth(usize::from(number)).unwrap_or(Kind::PointToPoint));
    let mut levels: Vec<CriticalLevel> = topology
        .topology()
        .levels(topology.wiring())
        .into_iter()
        .map(|level| {
            let of_level = shares.links.range(LinkId(level.links.start)..LinkId(level.links.end));
            let sums = of_level.fold((0u64, 0u64), |sums, (_, own)| {
                (sums.0.saturating_add(own.0.0), sums.1.saturating_add(own.1.0))
            });
            CriticalLevel {
                level: level.name,
                first_link: level.links.start,
                links: level.links.end - level.links.start,
                transmission_ps: sums.0,
                queueing_ps: sums.1,
                runtime_if_twice_as_fast_ps: None,
            }
        })
        .collect();
    let time = |level: &CriticalLevel| level.transmission_ps.saturating_add(level.queueing_ps);
    levels.retain(|level| time(level) > 0);
    levels.sort_by_key(|level| (Reverse(time(level)), level.first_link));
    let mut links: Vec<(LinkId, Picos, Picos)> = shares
        .links
        .iter()
        .map(|(&link, &(transmission, queueing))| (link, transmission, queueing))
        .collect();
    links.retain(|(_, transmission, queueing)| transmission.0 + queueing.0 > 0);
    links.sort_by_key(|(link, transmission, queueing)| (Reverse(transmission.0 + queueing.0), *link));
    links.truncate(LISTED);
    let mut tasks: Vec<(u32, Picos)> = shares.tasks.iter().map(|(&task, &time)| (task, time)).collect();
    tasks.retain(|(_, time)| time.0 > 0);
    tasks.sort_by_key(|(task, time)| (Reverse(*time), *task));
    tasks.truncate(LISTED);
    let step = |step: Step| {
        let (from_ps, to_ps) = (step.from.0, step.from.saturating_add(step.length).0);
        match step.what {
            What::Computing { task, record } => {
                let (job, task) = place(task);
                CriticalStep::Computing { from_ps, to_ps, job, task, record, captured: Captured::default() }
            }
            What::Message { sent, queueing } => {
                let ((job, task), (_, to_task)) = (place(sent.src), place(sent.dst));
                CriticalStep::Message {
                    from_ps,
                    to_ps,
                    job,
                    task,
                    record: sent.record,
                    to_task,
                    bytes: sent.bytes.0,
                    kind: of_number(sent.kind),
                    queueing_ps: queueing.0,
                    captured: Captured::default(),
                }
            }
        }
    };
    CriticalPath {
        messages: shares.messages,
        before_start_ps: shares.before_start.0,
        computing_ps: shares.computing.0,
        overhead_ps: shares.overhead.0,
        latency_ps: shares.latency.0,
        transmission_ps: shares.transmission.0,
        queueing_ps: shares.queueing.0,
        memory_ps: shares.memory.0,
        levels,
        links: links
            .into_iter()
            .map(|(link, transmission, queueing)| CriticalLink {
                link: topology.link_name(link),
                number: link.0,
                transmission_ps: transmission.0,
                queueing_ps: queueing.0,
                runtime_if_twice_as_fast_ps: None,
            })
            .collect(),
        ranks: tasks
            .into_iter()
            .map(|(number, computing)| {
                let (job, task) = place(number);
                CriticalRank { job, task, computing_ps: computing.0 }
            })
            .collect(),
        kinds: shares
            .kinds
            .iter()
            .map(|(&number, &(messages, time))| OnPath { kind: of_number(number), messages, time_ps: time.0 })
            .collect(),
        steps: shares.steps().into_iter().map(step).collect(),
    }
}
