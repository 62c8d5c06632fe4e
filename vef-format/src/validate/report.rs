//! What validation says: tallies of the records, and problems with their lines.

use crate::units::{Bytes, Picos};
use std::collections::BTreeMap;
use std::fmt;

/// What is in a trace, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Report {
    /// What is in the trace.
    pub tallies: Tallies,
    /// Problems after which a replay is wrong or does not end.
    pub errors: u64,
    /// Problems that a replay survives.
    pub warnings: u64,
    /// How many problems of each kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// The first problems of each kind, by line.
    pub problems: Vec<Problem>,
    /// Tasks that cannot come to their last record, whatever the network: those of cycles and those that wait for them.
    pub stuck_tasks: u64,
}

impl Report {
    /// Whether nothing stands against a replay to the last record.
    pub fn is_complete(&self) -> bool {
        self.errors == 0 && self.stuck_tasks == 0
    }
}

/// What is in a trace.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Tallies {
    /// Tasks according to the header.
    pub tasks: u64,
    /// Communicators.
    pub communicators: u64,
    /// Messages: point-to-point lines that are not local marks.
    pub messages: u64,
    /// Messages whose reception somebody waits for.
    pub awaited: u64,
    /// Messages of a task to itself.
    pub to_self: u64,
    /// Bytes of all messages.
    pub bytes: Bytes,
    /// Local marks.
    pub marks: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Lines of collective operations: one a member task.
    pub local_collectives: u64,
    /// Each kind of collective operation, by name, or by code where the name is not known.
    pub operations: BTreeMap<String, OperationTally>,
    /// Records that wait for nothing, a send, a reception, a collective.
    pub dependencies: [u64; 4],
    /// The longest computing time of a task: no replay is shorter.
    pub computing: Picos,
}

/// What there is of one kind of collective operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OperationTally {
    /// Operations.
    pub operations: u64,
    /// Lines: one a member task.
    pub lines: u64,
    /// Bytes that members contribute.
    pub send: Bytes,
    /// Bytes that members obtain.
    pub recv: Bytes,
}

/// Something wrong between lines.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The line to look at, 1-based.
    pub line: u64,
    /// What sort of thing it is.
    pub kind: Kind,
    /// Whether a replay survives it.
    pub severity: Severity,
    /// What is wrong, for people.
    pub text: String,
    /// Other lines that have to do with it, in the order in which the text tells of them.
    pub related: Vec<u64>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "line {}: {severity}: {}", self.line, self.text)
    }
}

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A replay would be wrong, or not end.
    Error,
    /// A replay survives it.
    Warning,
}

/// Sorts of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The header promises another number of something.
    HeaderCount,
    /// Two point-to-point lines have the same id.
    DuplicateId,
    /// Two communicator lines have the same id.
    DuplicateCommunicator,
    /// A task comes twice in a communicator.
    DuplicateMember,
    /// A record waits for itself.
    SelfDependency,
    /// A record waits for one that does not exist.
    UnknownDependency,
    /// A record waits for one that its task has no part in, or in another way than `dep` says.
    WrongDependency,
    /// A reception is waited for, and the message does not say so (`+4`).
    NotAwaited,
    /// A message says that somebody waits for it (`+4`), and nobody does.
    AwaitedByNobody,
    /// A collective on a communicator of which no line above tells.
    UnknownCommunicator,
    /// A task takes part in a collective of a communicator that it does not belong to.
    NotAMember,
    /// Members of a collective disagree about the operation, the communicator, the root, or the order.
    Disagreement,
    /// A member of the communicator has no part in a collective.
    MissingMember,
    /// Tasks wait for each other.
    Cycle,
    /// A time that leaves the range of picoseconds.
    TimeRange,
    /// An operation code that the table does not have.
    UnknownOperation,
    /// A first record that waits for something.
    Start,
    /// A task whose last record is no local mark, or that has no record: it was cut before `MPI_Finalize`.
    EndsEarly,
    /// More records than can be checked.
    TooMany,
    /// A container of a later minor version: what that adds was passed by.
    LaterVersion,
}

impl Kind {
    /// What a problem of this kind is, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::HeaderCount => "the header promises other counts than there are",
            Self::DuplicateId => "an id of a point-to-point line comes twice",
            Self::DuplicateCommunicator => "a communicator comes twice",
            Self::DuplicateMember => "a task is in a communicator twice",
            Self::SelfDependency => "a record waits for itself",
            Self::UnknownDependency => "a record waits for one that does not exist",
            Self::WrongDependency => "a record waits for one that its task has no part in",
            Self::NotAwaited => "a message is waited for and does not say so (+4)",
            Self::AwaitedByNobody => "a message says it is waited for (+4), and nobody does",
            Self::UnknownCommunicator => "a collective on an unknown communicator",
            Self::NotAMember => "a collective of a task that is no member",
            Self::Disagreement => "members disagree about a collective",
            Self::MissingMember => "a collective without one of its members",
            Self::Cycle => "records wait for each other, in a cycle",
            Self::TimeRange => "times beyond 2^64 ps",
            Self::UnknownOperation => "an operation code that the table does not have",
            Self::Start => "a first record that waits for something",
            Self::EndsEarly => "a task ends before MPI_Finalize",
            Self::TooMany => "more records than can be checked",
            Self::LaterVersion => "a container of a later version than this program",
        }
    }

    /// How much problems of this kind matter.
    pub const fn severity(self) -> Severity {
        match self {
            Self::HeaderCount
            | Self::DuplicateId
            | Self::DuplicateCommunicator
            | Self::DuplicateMember
            | Self::SelfDependency
            | Self::UnknownDependency
            | Self::WrongDependency
            | Self::NotAwaited
            | Self::UnknownCommunicator
            | Self::NotAMember
            | Self::Disagreement
            | Self::MissingMember
            | Self::Cycle
            | Self::TimeRange
            | Self::UnknownOperation
            | Self::TooMany => Severity::Error,
            Self::AwaitedByNobody | Self::Start | Self::EndsEarly | Self::LaterVersion => Severity::Warning,
        }
    }
}

/// Collects problems: counts all, keeps the first of each kind.
#[derive(Debug)]
pub(super) struct Log {
    keep: u64,
    kinds: BTreeMap<Kind, u64>,
    problems: Vec<Problem>,
}

impl Log {
    pub(super) fn new(keep: usize) -> Self {
        Self { keep: keep as u64, kinds: BTreeMap::new(), problems: Vec::new() }
    }

    /// Adds a problem; `tell` gives its text and other lines, and is asked only for those that are kept.
    #[cold]
    pub(super) fn add(&mut self, kind: Kind, line: u64, tell: impl FnOnce() -> (String, Vec<u64>)) {
        let count = self.kinds.entry(kind).or_default();
        *count += 1;
        if *count <= self.keep {
            let (text, related) = tell();
            self.problems.push(Problem { line, kind, severity: kind.severity(), text, related });
        }
    }

    pub(super) fn report(mut self, tallies: Tallies, stuck_tasks: u64) -> Report {
        self.problems.sort_by_key(|problem| (problem.line, problem.kind));
        let count = |severity| {
            self.kinds.iter().filter(|(kind, _)| kind.severity() == severity).map(|(_, count)| count).sum()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        Report { tallies, errors, warnings, kinds: self.kinds, problems: self.problems, stuck_tasks }
    }
}
