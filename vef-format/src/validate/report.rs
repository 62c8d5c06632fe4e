//! The result of validation: counts of records, and problems with their lines.

use crate::units::{Bytes, Picos};
use std::collections::BTreeMap;
use std::fmt;

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The main line.
    #[serde(flatten)]
    pub place: Place,
    /// The kind of problem.
    pub kind: Kind,
    /// Whether a replay tolerates it.
    pub severity: Severity,
    /// Description of the problem.
    pub text: String,
    /// Other lines involved, in the order of the text.
    pub related: Vec<u64>,
}

/// Where a problem is. Shown is the record, if there is one, else the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The line, 1-based; of a container, the one that it would be as text.
    pub line: u64,
    /// The record of that line, if the trace is a container, which has no lines.
    #[serde(default, rename = "place", skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordPlace>,
}

impl From<u64> for Place {
    fn from(line: u64) -> Self {
        Self { line, record: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.record {
            Some(record) => record.fmt(f),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// A record of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordPlace {
    /// Its task.
    pub task: u32,
    /// Its number among those of the task, from 0.
    pub record: u64,
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of task {}", self.record, self.task)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}: {severity}: {}", self.place, self.text)
    }
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A replay would be wrong or incomplete.
    Error,
    /// A replay tolerates it.
    Warning,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $severity:ident $name:ident $meaning:literal;)*) => {
        /// Kinds of problems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// A description of this kind of problem.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }

            /// The severity of this kind of problem.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

kinds! {
    /// A count of the header is wrong.
    Error HeaderCount "the header's counts are wrong";
    /// Two point-to-point lines have the same id.
    Error DuplicateId "duplicate id of a point-to-point line";
    /// Two communicator lines have the same id.
    Error DuplicateCommunicator "duplicate communicator";
    /// A task occurs twice in a communicator.
    Error DuplicateMember "a task is in a communicator twice";
    /// A record depends on itself.
    Error SelfDependency "a record waits for itself";
    /// A record depends on one that does not exist.
    Error UnknownDependency "a record waits for one that does not exist";
    /// A record depends on one in which its task has no part, or `dep` has the wrong kind.
    Error WrongDependency "a record waits for one that its task has no part in";
    /// A record waits for a reception, and the message is not marked as awaited (`+4`).
    Error NotAwaited "a record waits for a message that is not marked as awaited (+4)";
    /// A message is marked as awaited (`+4`), and no record waits for it.
    Warning AwaitedByNobody "a message is marked as awaited (+4), but no record waits for it";
    /// No line above a collective describes its communicator.
    Error UnknownCommunicator "a collective on an unknown communicator";
    /// A task has a part in a collective of a communicator of which it is not a member.
    Error NotAMember "a collective of a task that is not a member";
    /// Members of a collective disagree about the operation, the communicator, the root, or the order.
    Error Disagreement "members disagree about a collective";
    /// A member of the communicator has no part in a collective.
    Error MissingMember "a collective without one of its members";
    /// Tasks wait for each other.
    Error Cycle "records wait for each other, in a cycle";
    /// A time exceeds the range of picoseconds.
    Error TimeRange "times beyond 2^64 ps";
    /// The table lacks an operation code.
    Error UnknownOperation "an operation code that the table does not have";
    /// The first record of a task has a dependency.
    Warning Start "a first record with a dependency";
    /// The last record of a task is not a local mark, or there is no record: the task was cut before `MPI_Finalize`.
    Warning EndsEarly "a task ends before MPI_Finalize";
    /// More records than can be checked.
    Error TooMany "more records than can be checked";
    /// A container of a later minor version, whose additions were skipped.
    Warning LaterVersion "a container of a later version than this program";
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

    /// Adds a problem; calls `describe` for its place and text only if the problem is kept.
    #[cold]
    pub(super) fn add<P: Into<Place>>(&mut self, kind: Kind, describe: impl FnOnce() -> (P, String)) {
        self.add_with(kind, || {
            let (place, text) = describe();
            (place, text, Vec::new())
        });
    }

    /// [`Log::add`] of a problem that has other lines, too.
    #[cold]
    pub(super) fn add_with<P: Into<Place>>(
        &mut self,
        kind: Kind,
        describe: impl FnOnce() -> (P, String, Vec<u64>),
    ) {
        let count = self.kinds.entry(kind).or_default();
        *count += 1;
        if *count <= self.keep {
            let (place, text, related) = describe();
            let (place, severity) = (place.into(), kind.severity());
            self.problems.push(Problem { place, kind, severity, text, related });
        }
    }

    pub(super) fn report(mut self, tallies: Tallies, stuck_tasks: u64) -> Report {
        self.problems.sort_by_key(|problem| (problem.place.line, problem.kind));
        let count = |severity| {
            self.kinds.iter().filter(|(kind, _)| kind.severity() == severity).map(|(_, count)| count).sum()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        Report { tallies, errors, warnings, kinds: self.kinds, problems: self.problems, stuck_tasks }
    }
}
