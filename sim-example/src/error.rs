//! The error of a simulation.

use std::fmt;
use std::path::PathBuf;
use vef_format::units::Count;

use crate::computing::ScaleError;
use crate::loggp::StuckSchedule;
use crate::model::{ModelError, OutOfTime};
use crate::places::UnknownRule;
use crate::topology::{FaultError, FileError, TopologyError};
use crate::traffic::PatternError;
use interchange::ImportError;
use replay::{BuildError, LoadError, PartError, ReplayError, Stuck};

/// The error of a simulation.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A trace cannot be opened.
    #[error(transparent)]
    Trace(#[from] LoadError),
    /// The trace has no such part.
    #[error(transparent)]
    Part(#[from] PartError),
    /// The topology is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The tables of the routing are invalid.
    #[error("{}: {error}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The error in it.
        error: FileError,
    },
    /// The network cannot have these failures.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The traffic pattern is invalid for the network.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The load is outside (0, 1].
    #[error("load {0}: write a share of the bandwidth above 0 and up to 1")]
    Load(f64),
    /// Messages take no time on a link.
    #[error("--message: messages must not be empty")]
    EmptyMessages,
    /// The model is invalid for the network.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The placement rule is invalid.
    #[error(transparent)]
    Placement(#[from] UnknownRule),
    /// The placement is [`Places::Captured`](crate::Places::Captured), but the trace has no host of each
    /// task.
    #[error("the trace does not record the hosts of its tasks: only a container that vef mix wrote does")]
    NotCaptured,
    /// Factors of computing times are invalid for the trace.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// A noise model needs repetitions of computing times, and the trace has none.
    #[error(
        "compute noise {0}: no computing time of the trace repeats ten times (--compute-scale changes all of them)"
    )]
    NoRepetition(String),
    /// A task is placed on a node that the topology does not have.
    #[error("{}task {task} is placed on node {node}, but the nodes of {topology} are 0 to {}: take a larger topology, or place several tasks on each (block:N)", Job(*.job), .nodes - 1)]
    TooFewNodes {
        /// The topology.
        topology: String,
        /// Its number of nodes.
        nodes: u32,
        /// The job, from 0.
        job: u32,
        /// The first task without a node.
        task: u32,
        /// The node that the placement gives it.
        node: u32,
    },
    /// There are too few nodes that no other job has.
    #[error("job {job} needs {} that no other job has; the topology has {free}", Count(*.needed as u64, "node"))]
    NoRoom {
        /// The job, from 0.
        job: u32,
        /// Nodes that it needs.
        needed: usize,
        /// Nodes that no other job has.
        free: usize,
    },
    /// A placement names nodes of the topology, and one that this does not have.
    #[error(
        "the topology has no node {name:?}, but others of the placement of job {job}; nodes may also be numbers"
    )]
    UnknownNode {
        /// The job, from 0.
        job: u32,
        /// The name.
        name: String,
    },
    /// The machine is smaller than a job that arrives.
    #[error("{}: its jobs need {}; the topology has {nodes}", trace.display(), Count(*.needed as u64, "node"))]
    TooSmall {
        /// The trace file.
        trace: PathBuf,
        /// Nodes that a job needs.
        needed: u32,
        /// Nodes of the topology.
        nodes: u32,
    },
    /// A list of arrivals is invalid, or does not fit the traces.
    #[error(transparent)]
    Arrivals(#[from] placement::Error),
    /// A list of arrivals has no job.
    #[error("the list of arrivals has no job that ran")]
    NoArrivals,
    /// The machine of a list of arrivals is unknown.
    #[error("the list of arrivals names no number of nodes (MaxNodes or MaxProcs); give a topology")]
    NoMachine,
    /// A job that gets its nodes when it starts has others.
    #[error("job {job}: nodes are allotted when a job arrives; its placement must be a rule, not a file")]
    GivenPlaces {
        /// The job, from 0.
        job: u32,
    },
    /// Jobs run until each other are over, or until a job that does not exist is.
    #[error(
        "job {job} repeats until job {until} is over: that must be another job, and one that does not repeat until others are over"
    )]
    Repeat {
        /// The job, from 0.
        job: u32,
        /// The other.
        until: u32,
    },
    /// Jobs wait for each other: each begins after the next one or repeats until that is over, the last so after the first.
    #[error(
        "jobs wait for each other in a circle, each to begin after the next one or repeating until that is over: {} and again {}",
        jobs.iter().map(|job| format!("job {job}")).collect::<Vec<_>>().join(", "), jobs.first().map_or(0, |job| *job)
    )]
    Circle {
        /// The jobs, from 0.
        jobs: Vec<u32>,
    },
    /// Jobs begin after each other in a circle, or after one that does not exist.
    #[error(
        "job {job} begins after job {after}: that must be another job, which does not begin after this one"
    )]
    After {
        /// The job, from 0.
        job: u32,
        /// The other.
        after: u32,
    },
    /// The model, or the critical path, cannot have several runs of a job, or background traffic.
    #[error("{what}: not with {with}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// What excludes it.
        with: &'static str,
    },
    /// Collectives are chosen by a communicator that no trace has.
    #[error("--collectives comms={comm}: no trace has a communicator of that number")]
    NoCommunicator {
        /// Its number.
        comm: u32,
    },
    /// A trace is invalid at its beginning.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A trace is invalid further on.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A message would arrive after the end of time.
    #[error(transparent)]
    EndOfTime(#[from] OutOfTime),
    /// A GOAL file is invalid.
    #[error(transparent)]
    Goal(#[from] ImportError),
    /// A GOAL schedule cannot end.
    #[error(transparent)]
    StuckSchedule(#[from] Box<StuckSchedule>),
    /// Links have failed around a message.
    #[error("the network is cut: {0}; with --model packet --lossy it would be sent again")]
    Stranded(String),
    /// Packets of synthetic traffic wait for each other's buffers.
    #[error("the network is deadlocked; give it more virtual channels (--vcs): {circle}")]
    DeadlockedTraffic {
        /// The channels that wait for each other.
        circle: String,
    },
    /// The replay cannot end: tasks wait for messages that are never sent.
    #[error("the trace is stuck: {0}")]
    Stuck(Box<Stuck>),
    /// Packets wait for each other's buffers.
    #[error("the network is deadlocked; give it more virtual channels (--vcs): {circle}; {stuck}")]
    Deadlock {
        /// The channels that wait for each other.
        circle: String,
        /// The tasks that wait for the messages.
        stuck: Box<Stuck>,
    },
}

/// `job 2, `; empty for job 0.
struct Job(u32);

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, "job {}, ", self.0) } else { Ok(()) }
    }
}
