//! The critical path in a report.

use std::cmp::Reverse;

use replay::Kind;
use serde::Serialize;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Picos};

use super::shares::{Shares, Step, What};
use crate::topology::{Fabric, LinkId};

/// The critical path: a chain of computing and messages in which each piece begins where the previous one
/// ends. Its times add up to the run time exactly. If several paths have that length, this is one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriticalPath {
    /// Messages on it.
    pub messages: u64,
    /// Before the first job on the path starts.
    pub before_start_ps: Picos,
    /// Computing of tasks.
    pub computing_ps: Picos,
    /// Overhead of network interfaces.
    pub overhead_ps: Picos,
    /// Latency of links and switches.
    pub latency_ps: Picos,
    /// Transmission: the bytes of messages at the rate of the slowest link of each route.
    pub transmission_ps: Picos,
    /// Waiting for links: behind other messages, or for buffer space.
    pub queueing_ps: Picos,
    /// Messages within nodes.
    pub memory_ps: Picos,
    /// Links with the most transmission and queueing on the path; at most ten.
    pub links: Vec<CriticalLink>,
    /// Tasks with the most computing on the path; at most ten.
    pub ranks: Vec<CriticalRank>,
    /// Messages on the path by kind.
    pub kinds: Vec<OnPath>,
    /// The longest pieces, in order of time; at most twenty.
    pub steps: Vec<CriticalStep>,
}

/// A link on the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriticalLink {
    /// Its ends.
    pub link: String,
    /// Its number in the topology.
    pub number: u32,
    /// Transmission of the messages whose slowest link this is.
    pub transmission_ps: Picos,
    /// Queueing for the link.
    pub queueing_ps: Picos,
    /// The run time with twice the bandwidth on this link, if that was simulated.
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
    /// The kind.
    #[serde(serialize_with = "crate::report::kind")]
    pub kind: Kind,
    /// Number of messages.
    pub messages: u64,
    /// Their time on the path.
    pub time_ps: Picos,
}

/// A piece of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum CriticalStep {
    /// A task computes.
    Computing {
        /// Start.
        from_ps: Picos,
        /// End.
        to_ps: Picos,
        /// The job.
        job: u32,
        /// Its task.
        task: Rank,
        /// The record that starts at the end, from 0; absent at the end of the run.
        record: Option<u64>,
    },
    /// A message is in the network.
    Message {
        /// Start.
        from_ps: Picos,
        /// End.
        to_ps: Picos,
        /// The job.
        job: u32,
        /// The task that sends.
        task: Rank,
        /// Its record that sends the message, or that enters the collective; from 0.
        record: u64,
        /// The task that receives.
        to_task: Rank,
        /// Payload.
        bytes: Bytes,
        /// Its kind.
        #[serde(serialize_with = "crate::report::kind")]
        kind: Kind,
        /// Time in which the message waited for links.
        queueing_ps: Picos,
    },
}

/// Most links and tasks in a report.
const LISTED: usize = 10;

pub(super) fn of(shares: &Shares, topology: &Fabric, first_tasks: &[u32]) -> CriticalPath {
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
    /// The length of the path: the run time.
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
    /// Start of the piece.
    pub fn from_ps(&self) -> Picos {
        match *self {
            Self::Computing { from_ps, .. } | Self::Message { from_ps, .. } => from_ps,
        }
    }

    /// Length of the piece.
    pub fn length_ps(&self) -> Picos {
        match *self {
            Self::Computing { from_ps, to_ps, .. } | Self::Message { from_ps, to_ps, .. } => {
                to_ps.saturating_sub(from_ps)
            }
        }
    }
}
