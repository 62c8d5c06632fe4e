//! The critical path as it is reported.

use std::cmp::Reverse;

use replay::Kind;
use serde::Serialize;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Picos};

use super::shares::{Shares, Step, What};
use crate::topology::{LinkId, Topology};

/// What the run time consists of: computing of tasks and messages, each of which begins where the one before ends. The times here add up to the
/// run time exactly; where several paths are equally long, it is one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriticalPath {
    /// Messages on it.
    pub messages: u64,
    /// Before the first job of the path began.
    pub before_start_ps: Picos,
    /// Computing of tasks.
    pub computing_ps: Picos,
    /// Overhead of nodes.
    pub overhead_ps: Picos,
    /// Latency of links and switches.
    pub latency_ps: Picos,
    /// Transmission: a message's bytes at the rate of the slowest link on its way.
    pub transmission_ps: Picos,
    /// Waiting for links, behind other messages or for room behind them.
    pub queueing_ps: Picos,
    /// Messages within nodes.
    pub memory_ps: Picos,
    /// The links with most transmission and queueing on the path, at most ten.
    pub links: Vec<CriticalLink>,
    /// The tasks that compute most on the path, at most ten.
    pub ranks: Vec<CriticalRank>,
    /// What its messages belong to.
    pub kinds: Vec<OnPath>,
    /// Its longest pieces, in the order of their times, at most twenty.
    pub steps: Vec<CriticalStep>,
}

/// A link on the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriticalLink {
    /// Its ends.
    pub link: String,
    /// Its number in the topology.
    pub number: u32,
    /// Transmission of messages for which it was the slowest link.
    pub transmission_ps: Picos,
    /// Waiting for it.
    pub queueing_ps: Picos,
    /// The run time if the link had twice the bandwidth and all else were as it is: of another simulation, where one was asked for.
    pub runtime_if_twice_as_fast_ps: Option<Picos>,
}

/// A task that computes on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CriticalRank {
    /// The job.
    pub job: u32,
    /// Its task.
    pub task: Rank,
    /// Computing on the path.
    pub computing_ps: Picos,
}

/// Messages of a kind on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OnPath {
    /// Which.
    #[serde(serialize_with = "crate::report::kind")]
    pub kind: Kind,
    /// How many.
    pub messages: u64,
    /// How long they took.
    pub time_ps: Picos,
}

/// A piece of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum CriticalStep {
    /// A task computes.
    Computing {
        /// From then on.
        from_ps: Picos,
        /// Up to then.
        to_ps: Picos,
        /// The job.
        job: u32,
        /// Its task.
        task: Rank,
        /// The record that starts then, from 0; absent at the end of the run.
        record: Option<u64>,
    },
    /// A message is under way.
    Message {
        /// From then on.
        from_ps: Picos,
        /// Up to then.
        to_ps: Picos,
        /// The job.
        job: u32,
        /// The task that sends it.
        task: Rank,
        /// The record with which it does, or with which it entered the collective, from 0.
        record: u64,
        /// The task that receives it.
        to_task: Rank,
        /// Its payload.
        bytes: Bytes,
        /// What it belongs to.
        #[serde(serialize_with = "crate::report::kind")]
        kind: Kind,
        /// How long of that it waited for links.
        queueing_ps: Picos,
    },
}

/// How many links and tasks are listed.
const LISTED: usize = 10;

pub(super) fn of(shares: &Shares, topology: &Topology, first_tasks: &[u32]) -> CriticalPath {
    let place = |number: u32| {
        let job = first_tasks.partition_point(|&first| first <= number).saturating_sub(1);
        (job as u32, Rank(number - first_tasks.get(job).copied().unwrap_or(0)))
    };
    let of_number = |number: u8| Kind::all().nth(usize::from(number)).unwrap_or(Kind::PointToPoint);
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
        let (from_ps, to_ps) = (step.from, step.from.saturating_add(step.length));
        match step.what {
            What::Computing { task, record } => {
                let (job, task) = place(task);
                CriticalStep::Computing { from_ps, to_ps, job, task, record }
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
                    bytes: sent.bytes,
                    kind: of_number(sent.kind),
                    queueing_ps: queueing,
                }
            }
        }
    };
    CriticalPath {
        messages: shares.messages,
        before_start_ps: shares.before_start,
        computing_ps: shares.computing,
        overhead_ps: shares.overhead,
        latency_ps: shares.latency,
        transmission_ps: shares.transmission,
        queueing_ps: shares.queueing,
        memory_ps: shares.memory,
        links: links
            .into_iter()
            .map(|(link, transmission_ps, queueing_ps)| CriticalLink {
                link: topology.link_name(link),
                number: link.0,
                transmission_ps,
                queueing_ps,
                runtime_if_twice_as_fast_ps: None,
            })
            .collect(),
        ranks: tasks
            .into_iter()
            .map(|(number, computing_ps)| {
                let (job, task) = place(number);
                CriticalRank { job, task, computing_ps }
            })
            .collect(),
        kinds: shares
            .kinds
            .iter()
            .map(|(&number, &(messages, time_ps))| OnPath { kind: of_number(number), messages, time_ps })
            .collect(),
        steps: shares.steps().into_iter().map(step).collect(),
    }
}

impl CriticalPath {
    /// All its pieces together: the run time.
    pub fn total_ps(&self) -> Picos {
        [
            self.before_start_ps,
            self.computing_ps,
            self.overhead_ps,
            self.latency_ps,
            self.transmission_ps,
            self.queueing_ps,
            self.memory_ps,
        ]
        .into_iter()
        .fold(Picos::ZERO, Picos::saturating_add)
    }
}

impl CriticalStep {
    /// When it begins.
    pub fn from_ps(&self) -> Picos {
        match *self {
            Self::Computing { from_ps, .. } | Self::Message { from_ps, .. } => from_ps,
        }
    }

    /// How long it takes.
    pub fn length_ps(&self) -> Picos {
        match *self {
            Self::Computing { from_ps, to_ps, .. } | Self::Message { from_ps, to_ps, .. } => {
                to_ps.saturating_sub(from_ps)
            }
        }
    }
}
