//! The result of validation: counts of records, and problems with their lines.

use crate::units::{Bytes, Picos};
use std::collections::BTreeMap;
use std::fmt;

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Report {
    /// Counts of the records.
    pub tallies: Tallies,
    /// Number of problems that make a replay wrong or incomplete.
    pub errors: u64,
    /// Number of problems that a replay tolerates.
    pub warnings: u64,
    /// Number of problems of each kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// The first problems of each kind, by line.
    pub problems: Vec<Problem>,
    /// Tasks that cannot reach their last record: those in cycles and those that wait for them.
    pub stuck_tasks: u64,
}

impl Report {
    /// Whether a replay completes.
    pub fn is_complete(&self) -> bool {
        self.errors == 0 && self.stuck_tasks == 0
    }
}

/// Counts of the records of a trace.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Tallies {
    /// Tasks in the header.
    pub tasks: u64,
    /// Communicators.
    pub communicators: u64,
    /// Messages: point-to-point lines that are not local marks.
    pub messages: u64,
    /// Messages whose reception a record waits for.
    pub awaited: u64,
    /// Messages of a task to itself.
    pub to_self: u64,
    /// Bytes of all messages.
    pub bytes: Bytes,
    /// Local marks.
    pub marks: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Lines of collective operations: one for each member.
    pub local_collectives: u64,
    /// Collective operations by name, or by code if the name is unknown.
    pub operations: BTreeMap<String, OperationTally>,
    /// Records without dependency, on a send, on a reception, on a collective.
    pub dependencies: [u64; 4],
    /// The longest computing time of a task: a lower bound of any replay.
    pub computing: Picos,
}

/// Counts of one collective operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OperationTally {
    /// Operations.
    pub operations: u64,
    /// Lines: one for each member.
    pub lines: u64,
    /// Bytes that members send.
    pub send: Bytes,
    /// Bytes that members receive.
    pub recv: Bytes,
}

/// An inconsistency between lines.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The main line, 1-based.
    pub line: u64,
    /// The kind of problem.
    pub kind: Kind,
    /// Whether a replay tolerates it.
    pub severity: Severity,
    /// Description of the problem.
    pub text: String,
    /// Other lines involved, in the order of the text.
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

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A replay would be wrong or incomplete.
    Error,
    /// A replay tolerates it.
    Warning,
}

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A count of the header is wrong.
    HeaderCount,
    /// Two point-to-point lines have the same id.
    DuplicateId,
    /// Two communicator lines have the same id.
    DuplicateCommunicator,
    /// A task occurs twice in a communicator.
    DuplicateMember,
    /// A record depends on itself.
    SelfDependency,
    /// A record depends on one that does not exist.
    UnknownDependency,
    /// A record depends on one in which its task has no part, or `dep` has the wrong kind.
    WrongDependency,
    /// A record waits for a reception, and the message is not marked as awaited (`+4`).
    NotAwaited,
    /// A message is marked as awaited (`+4`), and no record waits for it.
    AwaitedByNobody,
    /// No line above a collective describes its communicator.
    UnknownCommunicator,
    /// A task has a part in a collective of a communicator of which it is not a member.
    NotAMember,
    /// Members of a collective disagree about the operation, the communicator, the root, or the order.
    Disagreement,
    /// A member of the communicator has no part in a collective.
    MissingMember,
    /// Tasks wait for each other.
    Cycle,
    /// A time exceeds the range of picoseconds.
    TimeRange,
    /// The table lacks an operation code.
    UnknownOperation,
    /// The first record of a task has a dependency.
    Start,
    /// The last record of a task is not a local mark, or there is no record: the task was cut before `MPI_Finalize`.
    EndsEarly,
    /// More records than can be checked.
    TooMany,
    /// A container of a later minor version, whose additions were skipped.
    LaterVersion,
}

impl Kind {
    /// A description of this kind of problem.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::HeaderCount => "the header's counts are wrong",
            Self::DuplicateId => "duplicate id of a point-to-point line",
            Self::DuplicateCommunicator => "duplicate communicator",
            Self::DuplicateMember => "a task is in a communicator twice",
            Self::SelfDependency => "a record waits for itself",
            Self::UnknownDependency => "a record waits for one that does not exist",
            Self::WrongDependency => "a record waits for one that its task has no part in",
            Self::NotAwaited => "a record waits for a message that is not marked as awaited (+4)",
            Self::AwaitedByNobody => "a message is marked as awaited (+4), but no record waits for it",
            Self::UnknownCommunicator => "a collective on an unknown communicator",
            Self::NotAMember => "a collective of a task that is not a member",
            Self::Disagreement => "members disagree about a collective",
            Self::MissingMember => "a collective without one of its members",
            Self::Cycle => "records wait for each other, in a cycle",
            Self::TimeRange => "times beyond 2^64 ps",
            Self::UnknownOperation => "an operation code that the table does not have",
            Self::Start => "a first record with a dependency",
            Self::EndsEarly => "a task ends before MPI_Finalize",
            Self::TooMany => "more records than can be checked",
            Self::LaterVersion => "a container of a later version than this program",
        }
    }

    /// The severity of this kind of problem.
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

/// Counts all problems; keeps the first of each kind.
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

    /// Adds a problem; calls `describe` for the text and the other lines only if the problem is kept.
    #[cold]
    pub(super) fn add(&mut self, kind: Kind, line: u64, describe: impl FnOnce() -> (String, Vec<u64>)) {
        let count = self.kinds.entry(kind).or_default();
        *count += 1;
        if *count <= self.keep {
            let (text, related) = describe();
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
