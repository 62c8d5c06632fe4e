//! Why there is no result.

use std::fmt;

use crate::loggp::{GoalError, StuckSchedule};
use crate::model::{ModelError, OutOfTime};
use crate::places::UnknownRule;
use crate::topology::TopologyError;
use crate::traffic::PatternError;
use replay::{BuildError, LoadError, ReplayError, Stuck};

/// Why a simulation has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A trace cannot be opened.
    #[error(transparent)]
    Trace(#[from] LoadError),
    /// There is no such topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The network does not have such a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A load that is none, or whose messages take no time.
    #[error(
        "a load of {0}: write a share of the bandwidth above 0 and up to 1, for messages that are not empty"
    )]
    Load(f64),
    /// The model cannot be.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A rule of placement without sense.
    #[error(transparent)]
    Placement(#[from] UnknownRule),
    /// A placement as captured, and a trace that does not say it.
    #[error("the trace does not say where its tasks ran: only a container can")]
    NotCaptured,
    /// A run from the end of `MPI_Init` on, and a trace that does not say when that was.
    #[error(
        "the trace does not say when its tasks came out of MPI_Init: only a container that vef mix wrote does"
    )]
    NoInitialisation,
    /// The placement needs a node that the topology does not have.
    #[error("{}task {task} is placed on node {node}, but the last node of {topology} is {}", Job(*.job), .nodes - 1)]
    TooFewNodes {
        /// The topology.
        topology: String,
        /// Its nodes.
        nodes: u32,
        /// Which job, from 0.
        job: u32,
        /// Its first task without a node.
        task: u32,
        /// The node that it should have.
        node: u32,
    },
    /// The traces cannot be replayed from the beginning.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A trace cannot be replayed further.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A message would need until after the end of time.
    #[error(transparent)]
    EndOfTime(#[from] OutOfTime),
    /// A file that is no GOAL schedule.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A schedule that cannot end.
    #[error(transparent)]
    StuckSchedule(#[from] Box<StuckSchedule>),
    /// Tasks wait for what never happens.
    #[error("the trace is stuck: {0}")]
    Stuck(Box<Stuck>),
}

/// `job 2, `, or nothing for the first.
struct Job(u32);

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, "job {}, ", self.0) } else { Ok(()) }
    }
}
