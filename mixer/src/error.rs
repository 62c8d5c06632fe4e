//! Errors of a mix, by kind and place.

use crate::summary::Unmatched;
use std::fmt;
use std::path::PathBuf;
use vef_format::ids::Rank;
use vef_format::operation::Operation;
use vef_format::varint::Ended;

/// Why a capture cannot be mixed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MixError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] vef_format::capture::CaptureError),
    /// The trace cannot be written.
    #[error("{}: {source}", path.display())]
    Output {
        /// Path of the trace.
        path: PathBuf,
        /// Error of the operating system or of the writer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The output would overwrite a file of the capture.
    #[error("{}: the output is a file of the capture; choose another name", .0.display())]
    OwnInput(PathBuf),
    /// The threads cannot be started.
    #[error("cannot start {jobs} threads: {source}")]
    Threads {
        /// Requested number of threads.
        jobs: usize,
        /// The cause.
        #[source]
        source: rayon::ThreadPoolBuildError,
    },
    /// An event contradicts an earlier event, or the size of the run.
    #[error("task {task}, event {event}: {problem}")]
    Event {
        /// Task of the event.
        task: Rank,
        /// Index of the event in its task, from 0.
        event: u64,
        /// The contradiction.
        problem: Problem,
    },
    /// Sends without a receive, or receives without a send.
    #[error("{0}")]
    Unmatched(Box<Unmatched>),
    /// Members of a communicator called different collective operations.
    #[error("{0}")]
    Disagreement(Box<Disagreement>),
    /// Records of several tasks wait for each other in a circle, which no execution produces.
    #[error("records wait for each other in a circle: {}", chain(.0))]
    Circle(Vec<Waiting>),
    /// The processes of a job cannot work together.
    #[error("mixing with several processes: {0}")]
    Job(#[from] JobError),
    /// Error text of another process of the job.
    #[error("{0}")]
    PeerError(String),
    /// Another process of the job reports the error.
    #[error("another process of the job reports the error")]
    ReportedByPeer,
    /// A message between parts or processes is invalid, which is a defect of the program.
    #[error("a message between parts of the mix is invalid")]
    Garbled,
    /// The user's table of operation codes lacks an operation of the capture.
    #[error("the table of codes has none for {0}, which the capture contains")]
    NoCode(Operation),
    /// More items than there are ids.
    #[error("too many {0}")]
    TooMany(&'static str),
}

impl From<Ended> for MixError {
    fn from(_: Ended) -> Self {
        Self::Garbled
    }
}

/// Why the processes of a job cannot mix together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The MPI library cannot be used.
    #[error("{0}")]
    Mpi(#[from] mpi_abi::Error),
    /// The launcher and the library belong to different MPI implementations.
    #[error(
        "the launcher started {promised} processes, but the MPI library found at run time reports {found}: \
        it does not belong to the launcher ({library})"
    )]
    OtherMpi {
        /// Number of processes by the launcher's environment.
        promised: u32,
        /// Number of processes by the library.
        found: u32,
        /// Version text of the library.
        library: String,
    },
    /// The processes have opened different captures, perhaps under one name: that of rank 0, and one that differs.
    #[error("{} and {} are different captures, or one that has changed meanwhile", .0[0], .0[1])]
    OtherCapture(Box<[SeenCapture; 2]>),
}

/// A capture as a process of a job has opened it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SeenCapture {
    /// Its path in that process.
    pub path: String,
    /// Number of its tasks.
    pub tasks: u32,
    /// Its [identity](vef_format::capture::Capture::identity).
    pub identity: u64,
    /// Rank of the process in the job.
    pub process: u32,
    /// The host of the process.
    pub host: String,
}

impl fmt::Display for SeenCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, tasks, process, host, .. } = self;
        write!(f, "{path} of process {process} on {host} ({tasks} tasks)")
    }
}

/// What is invalid in an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No earlier event describes the communicator.
    #[error("communicator {0} is not described")]
    UnknownCommunicator(u32),
    /// All tasks together have more communicators than there are identities.
    #[error("communicator {0}: the capture has too many communicators")]
    TooManyCommunicators(u32),
    /// The communicator has no members, or one outside the run.
    #[error("communicator {0} has no members, or one outside the run")]
    Members(u32),
    /// The communicator does not include the task that uses it.
    #[error("communicator {0} does not include the task that uses it")]
    NotAMember(u32),
    /// Two events describe the communicator differently.
    #[error("communicator {0} is described a second time")]
    DescribedTwice(u32),
    /// A peer or root outside its communicator.
    #[error("rank {rank} is outside communicator {comm} of {size} ranks")]
    Peer {
        /// The task's number of the communicator.
        comm: u32,
        /// Size of the communicator.
        size: u32,
        /// The invalid rank.
        rank: u32,
    },
    /// The request number is not the next of its thread.
    #[error("request {number} of thread {thread} is not that thread's next")]
    Request {
        /// The thread that started the request.
        thread: u16,
        /// The request number.
        number: u64,
    },
    /// A wildcard receive completed without source and tag.
    #[error("a wildcard receive completed without source and tag")]
    Unresolved,
    /// A receive completed with another source or tag than it was posted with.
    #[error("a receive completed with another source or tag than it was posted with")]
    OtherMessage,
    /// There is no schedule of messages for a collective.
    #[error("{0} cannot be replaced by messages: {1}")]
    Schedule(Operation, collectives::Error),
    /// More events, and messages and receives of lowered collectives, than one task can have.
    #[error("the task has more events, and messages of lowered collectives, than can be numbered")]
    TooManyEvents,
    /// A neighbourhood collective on a communicator whose topology is not in the capture.
    #[error("a neighbourhood collective on communicator {0}, whose topology is not in the capture")]
    NoTopology(u32),
    /// The blocks of a neighbourhood collective are not as many as the neighbours.
    #[error("{given} blocks of a neighbourhood collective with {expected} neighbours")]
    Neighbours {
        /// Number of blocks.
        given: u64,
        /// Number of neighbours.
        expected: u64,
    },
    /// A partitioned transfer that no event made, or that was made twice.
    #[error("partitioned transfer {0} was not made, or twice")]
    Partitioned(u32),
    /// A partition that a partitioned transfer does not have, or that is ready where it is received.
    #[error(
        "partitions {first} and the following, {count} in all, of partitioned transfer {transfer}, which has no such partitions"
    )]
    Partition {
        /// The task's number of the transfer.
        transfer: u32,
        /// The first partition.
        first: u32,
        /// Number of partitions.
        count: u32,
    },
    /// A root where the operation has none, or none where it needs one.
    #[error("{0}: invalid root")]
    Root(Operation),
}

/// Members of a communicator called different operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The first eight members of the communicator, in rank order.
    pub members: Vec<Rank>,
    /// Number of members.
    pub size: u32,
    /// Index of the operation on the communicator, from 0.
    pub position: u64,
    /// One task and its call.
    pub one: (Rank, Call),
    /// Another task and its call; `None`: it makes no further call on the communicator.
    pub other: (Rank, Option<Call>),
}

/// The part of a collective call that all members must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// Communicator rank of the root.
    pub root: Option<u32>,
}

/// A record that waits for a message of another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The task that waits.
    pub task: Rank,
    /// Index of its record, from 0.
    pub record: u64,
    /// The task that sends the message.
    pub source: Rank,
    /// Index of the message in its task, from 0.
    pub message: u64,
}

fn chain(links: &[Waiting]) -> String {
    let link = |link: &Waiting| {
        let Waiting { task, record, source, message } = link;
        format!("record {record} of task {task} for message {message} of task {source}")
    };
    links.iter().map(link).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        match self.root {
            Some(root) => write!(f, " (root {root})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "collective {} on the communicator of tasks", self.position)?;
        for member in &self.members {
            write!(f, " {member}")?;
        }
        if self.members.len() < self.size as usize {
            write!(f, " … ({} tasks)", self.size)?;
        }
        let (task, call) = self.one;
        write!(f, ": task {task} calls {call}, task {} ", self.other.0)?;
        match self.other.1 {
            Some(call) => write!(f, "{call}"),
            None => write!(f, "makes no further call"),
        }
    }
}

impl std::error::Error for Disagreement {}
