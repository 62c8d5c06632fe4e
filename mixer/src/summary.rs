//! What a mix did: counts, bytes and times, for people and (by serde) for programs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use vef_format::capture::Host;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Grouped};

/// What a mix did.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Number of tasks.
    pub tasks: u32,
    /// The hosts that the tasks ran on.
    pub hosts: Vec<Host>,
    /// Events of the capture.
    pub events: u64,
    /// Lines of the trace: messages, marks, and one a task for each collective.
    pub records: u64,
    /// Messages among them.
    pub messages: u64,
    /// Local marks among them.
    pub marks: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Lines of collectives: one a member.
    pub local_collectives: u64,
    /// Communicators written.
    pub communicators: u64,
    /// Payload of all messages.
    pub bytes: Bytes,
    /// Messages whose receive was found.
    pub matched: u64,
    /// What has no partner; dropped, because the mix was lenient.
    pub unmatched: Unmatched,
    /// Records left out of the trace, by reason.
    pub dropped: Dropped,
    /// Calls that a trace cannot represent, by name.
    pub not_representable: BTreeMap<String, Tally>,
    /// Tasks in which several threads made calls.
    pub threaded: u64,
    /// Records that began before the previous event of their thread ended (a clock that went backwards); their computing
    /// time is 0.
    pub negative_times: u64,
    /// Messages that, by the clocks (of different hosts, or of one that was set), were received before they were sent; a
    /// lower bound, of those that kept a line back.
    pub early_receptions: u64,
    /// Tasks that never came to `MPI_Finalize`.
    pub killed: Vec<Rank>,
    /// Calls that were being written at the instant their task was killed, and are lost.
    pub torn: u64,
    /// Completions of requests whose start is not in the capture.
    pub unknown_requests: u64,
    /// Requests that no call completed or freed; receives among them have no place in the trace unless a message came.
    pub never_completed: u64,
    /// Events of unknown type that were skipped.
    pub skipped_unknown: u64,
    /// Bytes that lay in temporary files, because the capture, or a process's share of it, was mixed in parts.
    pub spilled: Bytes,
    /// The most memory that the process had up to then, as the system counts it; of a job, the process with most. 0: the
    /// system does not tell.
    pub peak_memory: Bytes,
    /// Where the tasks spent their time.
    pub spent: Spent,
    /// How long each stage took.
    pub times: Times,
}

impl Summary {
    /// What of the run is not in the trace, a line each, the largest first.
    pub fn lacks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let other: u64 = self.not_representable.values().map(|tally| tally.count).sum();
        if other > 0 {
            let all = other + self.messages + self.local_collectives;
            let share = 100.0 * other as f64 / all as f64;
            lines.push(format!(
                "{} of {} calls that move data ({share:.0} %): a trace cannot represent them",
                Grouped(other),
                Grouped(all)
            ));
        }
        let mut names: Vec<_> = self.not_representable.iter().collect();
        names.sort_by_key(|(_, tally)| Reverse(tally.count));
        lines.extend(
            names.iter().map(|(name, tally)| format!("{} × {name} ({})", Grouped(tally.count), tally.bytes)),
        );
        let Dropped { sends, cancelled, empty_self, collectives } = self.dropped;
        for (count, what) in [
            (sends, "sends without a receive"),
            (cancelled, "cancelled sends"),
            (empty_self, "empty messages of a task to itself"),
            (collectives, "parts of collectives that not all members came to"),
            (self.skipped_unknown, "events of unknown type"),
            (self.unknown_requests, "completions of requests whose start was not recorded"),
        ] {
            if count > 0 {
                lines.push(format!("{} {what}", Grouped(count)));
            }
        }
        if !self.killed.is_empty() {
            lines.push(format!("what {} tasks did after their last complete record", self.killed.len()));
        }
        lines
    }

    /// The hosts with more tasks than cores: times of the trace measure their schedulers, too.
    pub fn oversubscribed(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.is_oversubscribed())
    }
}

/// Records left out of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Dropped {
    /// Sends without a receive.
    pub sends: u64,
    /// Sends that were cancelled.
    pub cancelled: u64,
    /// Messages of a task to itself without bytes that nobody waits for: text cannot tell them from marks.
    pub empty_self: u64,
    /// Parts of collectives that not all members came to.
    pub collectives: u64,
}

/// Where the tasks spent their time, by the capture's table of calls; all zero for captures without one. In nanoseconds, of all tasks
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Spent {
    /// From `MPI_Init` to the end of the recording.
    #[serde(rename = "total_ns")]
    pub total: u64,
    /// In calls that wait for others: receives, waits, probes, and blocking collectives.
    #[serde(rename = "waiting_ns")]
    pub waiting: u64,
    /// In polls, `MPI_Test` and the like, whether they found something or not.
    #[serde(rename = "polling_ns")]
    pub polling: u64,
    /// What failed polls, and the little between them, took that the trace has as waiting ([`Polls::Wait`](crate::Polls::Wait)). All others
    /// are computing there.
    #[serde(rename = "awaited_by_polling_ns")]
    pub awaited: u64,
    /// In all other calls.
    #[serde(rename = "mpi_ns")]
    pub mpi: u64,
}

impl Spent {
    /// Outside of MPI.
    pub fn computing(&self) -> u64 {
        self.total.saturating_sub(self.waiting + self.polling + self.mpi)
    }
}

/// How long each stage of a mix took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Times {
    /// Reading the capture and making the records of each task.
    #[serde(rename = "walk_ns", serialize_with = "nanos")]
    pub walk: Duration,
    /// Matching sends and receives, and comparing collectives.
    #[serde(rename = "matching_ns", serialize_with = "nanos")]
    pub matching: Duration,
    /// Ordering, resolving and writing.
    #[serde(rename = "output_ns", serialize_with = "nanos")]
    pub output: Duration,
}

fn nanos<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// How many, and how much data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// How much data, as far as known.
    pub bytes: Bytes,
}

impl Tally {
    /// Counts one more.
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.count += 1;
        self.bytes.0 = self.bytes.0.saturating_add(bytes.0);
    }

    /// Counts all of `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.bytes.0 = self.bytes.0.saturating_add(other.bytes.0);
    }
}

/// Sends and receives without a partner.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unmatched {
    /// Sends nobody received.
    pub sends: u64,
    /// Receives that something waited for and nobody sent to.
    pub receives: u64,
    /// The first of each, at most five, by task.
    pub first: Vec<UnmatchedMessage>,
}

/// A send or a receive without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UnmatchedMessage {
    /// Which of the two.
    pub kind: UnmatchedKind,
    /// Whose.
    pub task: Rank,
    /// To or from whom; `None`: from anybody.
    pub peer: Option<Rank>,
    /// With which tag; `None`: any.
    pub tag: Option<i32>,
    /// Of how many bytes, where known (a receive says the room it has).
    pub bytes: Option<Bytes>,
}

/// A send, or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmatchedKind {
    /// A send.
    Send,
    /// A receive.
    Receive,
}

/// Of how many a message tells the particulars.
pub(crate) const SHOWN: usize = 5;

impl Unmatched {
    /// Whether everything has a partner.
    pub fn is_empty(&self) -> bool {
        self.sends == 0 && self.receives == 0
    }

    /// Counts all of `other`, which is of later tasks.
    pub(crate) fn merge(&mut self, other: Self) {
        self.sends += other.sends;
        self.receives += other.receives;
        for kind in [UnmatchedKind::Send, UnmatchedKind::Receive] {
            let room = SHOWN - self.first.iter().filter(|message| message.kind == kind).count();
            self.first.extend(other.first.iter().filter(|message| message.kind == kind).take(room));
        }
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sends without receive, {} receives without send", self.sends, self.receives)?;
        for (at, message) in self.first.iter().enumerate() {
            write!(f, "{}{message}", if at == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for UnmatchedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            UnmatchedKind::Send => write!(f, "task {} sends to ", self.task)?,
            UnmatchedKind::Receive => write!(f, "task {} receives from ", self.task)?,
        }
        match self.peer {
            Some(peer) => write!(f, "{peer}")?,
            None => write!(f, "anybody")?,
        }
        match self.tag {
            Some(tag) => write!(f, " with tag {tag}")?,
            None => write!(f, " with any tag")?,
        }
        match self.bytes {
            Some(bytes) => write!(f, ", {} bytes", bytes.0),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Unmatched {}
