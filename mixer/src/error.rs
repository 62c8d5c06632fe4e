//! Why a capture cannot be mixed, by kind and place.

use crate::summary::Unmatched;
use std::fmt;
use std::path::PathBuf;
use vef_format::ids::Rank;
use vef_format::operation::Operation;

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
        /// The trace.
        path: PathBuf,
        /// What the operating system, or the writer, says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The trace would take the place of what it is made of.
    #[error("{}: a file of the capture itself; the trace goes to another file", .0.display())]
    OwnInput(PathBuf),
    /// The threads cannot be started.
    #[error("cannot start {jobs} threads: {source}")]
    Threads {
        /// How many were asked for.
        jobs: usize,
        /// Why not.
        #[source]
        source: rayon::ThreadPoolBuildError,
    },
    /// An event contradicts what came before it, or the run.
    #[error("task {task}, event {event}: {problem}")]
    Event {
        /// Whose event.
        task: Rank,
        /// Its index in the task, from 0.
        event: u64,
        /// What is wrong.
        problem: Problem,
    },
    /// Sends that nobody received, or receives that nobody sent to.
    #[error("{0}")]
    Unmatched(Box<Unmatched>),
    /// Members of a communicator that do not call the same collective operation.
    #[error("{0}")]
    Disagreement(Box<Disagreement>),
    /// Tasks whose records wait for each other in a circle: no execution gives that.
    #[error("records wait for each other in a circle: {}", chain(.0))]
    Circle(Vec<Waiting>),
    /// What the processes of a job have to do with each other does not work.
    #[error("mixing with several processes: {0}")]
    Job(#[from] JobError),
    /// What another process of the job found, in its words.
    #[error("{0}")]
    Told(String),
    /// Another process of the job tells what is wrong.
    #[error("another process of the job tells what is wrong")]
    Elsewhere,
    /// Parts or processes do not understand each other.
    #[error(transparent)]
    Garbled(#[from] crate::bytes::Garbled),
    /// The user's table of codes does not have an operation that tasks call.
    #[error("the table of codes has none for {0}, which the capture has")]
    NoCode(Operation),
    /// More than a trace's ids, or one task's, are made for.
    #[error("more {0} than there are numbers for")]
    TooMany(&'static str),
}

/// Why the processes of a job cannot mix together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The MPI library cannot be used.
    #[error("{0}")]
    Mpi(#[from] mpi_abi::Error),
    /// The launcher and the library are not of the same MPI.
    #[error(
        "the launcher started {promised} processes, but the MPI library that was found knows {found}: \
        it is not the launcher's ({library})"
    )]
    OtherMpi {
        /// Processes by the launcher's environment.
        promised: u32,
        /// Processes by the library.
        found: u32,
        /// What the library calls itself.
        library: String,
    },
}

/// What is wrong with an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A communicator that no earlier event described.
    #[error("communicator {0} was never described")]
    UnknownCommunicator(u32),
    /// More different communicators in all tasks than there are numbers for.
    #[error("communicator {0} is one more than can be told apart")]
    TooManyCommunicators(u32),
    /// A communicator without members, or with one outside the run.
    #[error("communicator {0} has no members, or one outside the run")]
    Members(u32),
    /// A communicator whose members do not include the task itself.
    #[error("communicator {0} does not include the task that uses it")]
    NotAMember(u32),
    /// A communicator described twice in different ways.
    #[error("communicator {0} is described a second time")]
    DescribedTwice(u32),
    /// A peer or root outside its communicator.
    #[error("rank {rank} is outside communicator {comm} of {size} ranks")]
    Peer {
        /// The task's number for the communicator.
        comm: u32,
        /// Its size.
        size: u32,
        /// The rank.
        rank: u32,
    },
    /// A request that is not the next of its thread.
    #[error("request {number} of thread {thread} is not that thread's next")]
    Request {
        /// The thread that started it.
        thread: u16,
        /// Its number.
        number: u64,
    },
    /// A receive with a wildcard that completed without saying whom it met.
    #[error("a receive with a wildcard completed without its source and tag")]
    Unresolved,
    /// A receive that met another source or tag than it asked for.
    #[error("a receive met a message it did not ask for")]
    OtherMessage,
    /// A collective that cannot be replaced by messages.
    #[error("no messages for {0}: {1}")]
    Schedule(Operation, collectives::Error),
    /// A root where there is none, or none where there must be one.
    #[error("{0} with a wrong root")]
    Root(Operation),
}

/// Members of a communicator that do not agree on its n-th collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The members of the communicator, in its rank order; at most eight of them.
    pub members: Vec<Rank>,
    /// How many members there are.
    pub size: u32,
    /// Index of the operation on the communicator, from 0.
    pub position: u64,
    /// One task and its call.
    pub one: (Rank, Call),
    /// Another task, and its call: `None`, it makes no further call on the communicator.
    pub other: (Rank, Option<Call>),
}

/// A call of a collective operation, as far as all members must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which operation.
    pub operation: Operation,
    /// The root, by communicator rank.
    pub root: Option<u32>,
}

/// A record that waits for a message of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The task that waits.
    pub task: Rank,
    /// Index of its record, from 0.
    pub record: u64,
    /// For whose message.
    pub source: Rank,
    /// Index of the message it waits for, from 0.
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
            None => write!(f, "makes no such call"),
        }
    }
}

impl std::error::Error for Disagreement {}
