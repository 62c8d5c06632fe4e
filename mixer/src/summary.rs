//! The result of a mix: counts, bytes and times.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use vef_format::account::ByPart;
use vef_format::capture::Host;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Count, Grouped, Picos};

/// The result of a mix.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of tasks.
    pub tasks: u32,
    /// Those among them, behind the tasks of the capture, which stand for storage servers.
    pub io_servers: u32,
    /// The last ones among them, which stand for the network interfaces of the tasks of the capture, in their order.
    pub interfaces: u32,
    /// The worlds that the program spawned: the directory of each one's capture, and its tasks.
    pub spawned: Vec<(String, Range<u32>)>,
    /// Directories of spawned worlds that are not part of the capture, with the reason.
    pub left_out: Vec<(PathBuf, String)>,
    /// Hosts of the tasks.
    pub hosts: Vec<Host>,
    /// Events in the capture.
    pub events: u64,
    /// Lines of the trace: messages, marks, and one for each member of a collective.
    pub records: u64,
    /// Messages among them.
    pub messages: u64,
    /// Local marks among them.
    pub marks: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Lines of collectives: one for each member.
    pub local_collectives: u64,
    /// Those among them by which MPI agrees on communicators, files and windows, fences included.
    pub agreements: u64,
    /// Communicators written.
    pub communicators: u64,
    /// Payload of all messages.
    pub bytes: Bytes,
    /// Messages with a receive.
    pub matched: u64,
    /// Sends and receives without a partner; they were dropped, because the mix was lenient.
    pub unmatched: Unmatched,
    /// Records left out of the trace, by reason.
    pub dropped: Dropped,
    /// Calls that a trace cannot represent, by function.
    pub not_representable: BTreeMap<String, Tally>,
    /// Tasks in which several threads made calls.
    pub threaded: u64,
    /// Of the others, tasks that answer requests: one-sided ones, or as a storage server or a network interface.
    pub answering: u64,
    /// Records that began before the previous event of their thread ended (the clock went backwards); their computing time
    /// is 0.
    pub negative_times: u64,
    /// Messages that were received before they were sent, by the clocks of different hosts or a clock that was set; a lower
    /// bound: only messages that delayed a line count.
    pub early_receptions: u64,
    /// Tasks that did not call `MPI_Finalize`.
    pub killed: Vec<Rank>,
    /// Of these, tasks whose recording was stopped by a limit or a failure.
    pub stopped: Vec<Rank>,
    /// Of these, tasks that were not to be recorded (`vef run --only-ranks`): they have no account of their time.
    pub unrecorded: Vec<Rank>,
    /// Of these, tasks that recorded nothing, because they were killed in `MPI_Init` or their files are missing: they have no account of their time.
    pub unbegun: Vec<Rank>,
    /// Calls lost because their task was killed while they were recorded.
    pub torn: u64,
    /// Completions of requests whose start is not in the capture.
    pub unknown_requests: u64,
    /// Requests that no call completed or freed. Receives among them are in the trace only if a message matched.
    pub never_completed: u64,
    /// Probes whose message no call received.
    pub found_only: u64,
    /// One-sided transfers to other tasks that no synchronisation completed: epochs that were never closed, or whose target ended before. They are in the trace.
    pub never_synchronised: u64,
    /// Pairs of tasks and windows of other tasks where transfers reached beyond the memory of the window, or in front of it. They are in the trace.
    pub outside_windows: u64,
    /// Calls of `MPI_Win_allocate_shared`: what programs load and store behind them is no call.
    pub shared_windows: u64,
    /// One-sided requests that had their answers while the target, on the same host, was in no call of MPI.
    pub answered_outside: u64,
    /// Partitions of partitioned sends that were started, but never ready.
    pub partitions_not_ready: u64,
    /// Partitions that were ready where their send had not been started. They are not in the trace.
    pub partitions_inactive: u64,
    /// Partitioned receives of another size than their sends; the trace has the sizes of the sends.
    pub partitioned_sizes: u64,
    /// Events of unknown type, which were skipped.
    pub skipped_unknown: u64,
    /// Size of the temporary files, if the capture, or a process's share, was mixed in parts.
    pub spilled: Bytes,
    /// Peak resident memory of the process, of a job the largest of all processes; 0: unknown.
    pub peak_memory: Bytes,
    /// Where the tasks spent their time.
    pub spent: Spent,
    /// Duration of each stage.
    pub times: Times,
}

impl Summary {
    /// The tasks that stand for storage servers.
    pub fn storage_tasks(&self) -> Range<u32> {
        let end = self.tasks - self.interfaces;
        end - self.io_servers..end
    }

    /// The tasks that stand for network interfaces; the first one is that of task 0.
    pub fn interface_tasks(&self) -> Range<u32> {
        self.tasks - self.interfaces..self.tasks
    }

    /// What the trace lacks of the run, a line each, the largest count first.
    pub fn lacks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        // Fences, creations of windows and the like move nothing.
        let moving = self.not_representable.iter().filter(|(_, tally)| tally.bytes != Bytes::ZERO);
        let (accesses, others): (Vec<_>, Vec<_>) =
            moving.partition(|(name, _)| self.io_servers == 0 && name.starts_with("MPI_File_"));
        let [accesses, others] =
            [accesses, others].map(|calls| calls.iter().map(|(_, tally)| tally.count).sum::<u64>());
        // No call of the program moves the data of an agreement.
        let all = accesses + others + self.messages + self.local_collectives.saturating_sub(self.agreements);
        for (calls, what) in [
            (others, "a trace cannot represent them"),
            (accesses, "accesses to files, which are in it only with vef mix --io-servers K"),
        ] {
            if calls > 0 {
                let share = match 100.0 * calls as f64 / all as f64 {
                    ..0.5 => "less than 1 %".to_owned(),
                    share => format!("{share:.0} %"),
                };
                lines.push(format!(
                    "{} of {} calls that move data ({share}): {what}",
                    Grouped(calls),
                    Grouped(all)
                ));
            }
        }
        let mut names: Vec<_> = self.not_representable.iter().collect();
        names.sort_by_key(|(_, tally)| Reverse(tally.count));
        lines.extend(
            names.iter().map(|(name, tally)| format!("{} × {name} ({})", Grouped(tally.count), tally.bytes)),
        );
        let Dropped { sends, cancelled, empty_self, collectives } = self.dropped;
        for (count, one, what) in [
            (sends, "send", "without a receive"),
            (self.unmatched.receives, "receive", "without a send"),
            (cancelled, "cancelled send", ""),
            (empty_self, "empty message", "of a task to itself"),
            (collectives, "part", "of collectives that not all members came to"),
            (self.partitions_not_ready, "partition", "of started sends, never ready"),
            (self.partitions_inactive, "partition", "ready before the send was started"),
            (self.skipped_unknown, "event", "of unknown type"),
            (self.unknown_requests, "completion", "of requests whose start was not recorded"),
        ] {
            if count > 0 {
                lines.push(format!("{} {what}", Count(count, one)).trim_end().to_owned());
            }
        }
        if self.shared_windows > 0 {
            let calls = Count(self.shared_windows, "call");
            lines.push(format!("loads and stores behind {calls} of MPI_Win_allocate_shared"));
        }
        // All of them are in the order of ranks.
        let others = [&self.stopped, &self.unrecorded, &self.unbegun];
        let is_cut = |task: &&Rank| others.into_iter().all(|tasks| tasks.binary_search(task).is_err());
        let cut: Vec<Rank> = self.killed.iter().filter(is_cut).copied().collect();
        for (tasks, what) in [
            (&self.unrecorded, "not to be recorded (vef run --only-ranks)"),
            (&self.stopped, "behind the end of their recording, which stopped before MPI_Finalize"),
            (
                &self.unbegun,
                "that recorded nothing: they were killed in MPI_Init, or their files are missing",
            ),
            (&cut, "that ended without MPI_Finalize, behind their last complete record"),
        ] {
            if !tasks.is_empty() {
                lines.push(format!("calls of {} {what}", Count(tasks.len(), "task")));
            }
        }
        lines
    }

    /// The tasks that ended without `MPI_Finalize`, or of which that is not known, but for those that were not to be recorded.
    pub fn without_finalize(&self) -> impl Iterator<Item = Rank> {
        self.killed.iter().copied().filter(|task| self.unrecorded.binary_search(task).is_err())
    }

    /// Hosts with more tasks than cores, whose times include waiting for a core.
    pub fn oversubscribed(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.is_oversubscribed())
    }
}

/// Records left out of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dropped {
    /// Sends without a receive.
    pub sends: u64,
    /// Cancelled sends.
    pub cancelled: u64,
    /// Empty messages of a task to itself that no call waits for: text cannot distinguish them from marks.
    pub empty_self: u64,
    /// Parts of collectives that some members did not call.
    pub collectives: u64,
}

/// Where the tasks spent their time, in nanoseconds summed over all tasks and their threads; all zero if the capture has no call
/// table. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// The parts of the captured run, as `docs/time.md` defines them.
    #[serde(rename = "times_ns")]
    pub times: ByPart,
    /// Failed polls, with the gaps within runs of them, that the trace counts as waiting
    /// ([`Polls::Wait`](crate::Polls::Wait)).
    #[serde(rename = "awaited_by_polling_ns")]
    pub awaited: u64,
    /// The other failed polls, with these gaps: the trace counts them as computing.
    #[serde(rename = "kept_polling_ns")]
    pub polls_kept: u64,
    /// Other calls without a record (receives that are posted, windows, files): the trace counts them as computing.
    #[serde(rename = "kept_calls_ns")]
    pub calls_kept: u64,
    /// Times outside MPI without a core that the trace counts as computing
    /// ([`Options::keep_preempted`](crate::Options::keep_preempted)).
    #[serde(rename = "kept_preempted_ns")]
    pub preempted_kept: u64,
    /// In waits for own sends alone: the trace counts them as computing ([`Options::send_waits`](crate::Options::send_waits)).
    #[serde(rename = "waiting_for_sends_ns")]
    pub send_waits: u64,
}

impl Spent {
    /// A part of what the trace has as computing, if it is at least a hundredth.
    pub(crate) fn notable(&self, nanos: u64) -> Option<String> {
        let kept = [self.polls_kept, self.calls_kept, self.preempted_kept, self.send_waits];
        let computing = kept.into_iter().fold(self.times.outside, u64::saturating_add);
        let share = |of: u64| 100.0 * nanos as f64 / of as f64;
        (computing > 0 && share(computing) >= 1.0).then(|| {
            let time = Picos(nanos.saturating_mul(1000));
            let (of_computing, of_run) = (share(computing), share(self.times.running()));
            format!("{time} ({of_computing:.1} % of computing, {of_run:.1} % of the tasks' time)")
        })
    }

    /// A part of the tasks' time that the trace leaves out, if it is at least a hundredth.
    pub(crate) fn notably_left_out(&self, nanos: u64) -> Option<String> {
        let share = 100.0 * nanos as f64 / self.times.running() as f64;
        let time = Picos(nanos.saturating_mul(1000));
        (share >= 1.0).then(|| format!("{time} ({share:.1} % of the tasks' time)"))
    }
}

/// Duration of each stage of a mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// Reading the capture and making the records of each task.
    #[serde(rename = "walk_ns", with = "nanos")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub walk: Duration,
    /// Matching sends and receives, and comparing collectives.
    #[serde(rename = "matching_ns", with = "nanos")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub matching: Duration,
    /// Ordering, numbering and writing.
    #[serde(rename = "output_ns", with = "nanos")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub output: Duration,
}

/// Durations in JSON: whole nanoseconds.
mod nanos {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// A number of calls and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// Number of calls.
    pub count: u64,
    /// Bytes, as far as known.
    pub bytes: Bytes,
}

impl Tally {
    /// Adds one call.
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.count += 1;
        self.bytes.0 = self.bytes.0.saturating_add(bytes.0);
    }

    /// Adds `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes.0 = self.bytes.0.saturating_add(other.bytes.0);
    }
}

/// Sends and receives without a partner.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmatched {
    /// Sends without a receive.
    pub sends: u64,
    /// Receives that a call waited for, without a send.
    pub receives: u64,
    /// The first of each kind by task that differ, at most five.
    pub first: Vec<UnmatchedMessage>,
}

/// A send or a receive without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnmatchedMessage {
    /// Which of the two.
    pub kind: UnmatchedKind,
    /// Its task.
    pub task: Rank,
    /// The other end; `None`: any source.
    pub peer: Option<Rank>,
    /// Its tag; `None`: any.
    pub tag: Option<i32>,
    /// Bytes of a send, or size of a receive's buffer, if known.
    pub bytes: Option<Bytes>,
}

/// A send or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnmatchedKind {
    /// A send.
    Send,
    /// A receive.
    Receive,
}

/// Number of messages that a report lists.
const SHOWN: usize = 5;

impl Unmatched {
    /// Whether all sends and receives have partners.
    pub fn is_empty(&self) -> bool {
        self.sends == 0 && self.receives == 0
    }

    /// Adds `other`, of higher tasks.
    pub(crate) fn merge(&mut self, other: Self) {
        self.sends = self.sends.saturating_add(other.sends);
        self.receives = self.receives.saturating_add(other.receives);
        other.first.into_iter().for_each(|message| self.show(message));
    }

    /// Lists a message behind those of its kind, unless there are enough or it is among them.
    pub(crate) fn show(&mut self, message: UnmatchedMessage) {
        let of_kind = self.first.iter().filter(|known| known.kind == message.kind);
        if of_kind.count() < SHOWN && !self.first.contains(&message) {
            self.first.push(message);
        }
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sends, receives) = (Count(self.sends, "send"), Count(self.receives, "receive"));
        write!(f, "{sends} without receive, {receives} without send")?;
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
            None => write!(f, "any source")?,
        }
        match self.tag {
            Some(tag) => write!(f, " with tag {tag}")?,
            None => write!(f, " with any tag")?,
        }
        match self.bytes {
            Some(bytes) => write!(f, ", {}", Count(bytes.0, "byte")),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Unmatched {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmatched_messages_stay_in_the_order_of_their_tasks() {
        let message =
            |kind, task| UnmatchedMessage { kind, task: Rank(task), peer: None, tag: None, bytes: None };
        let of_task = |task| {
            let first = vec![message(UnmatchedKind::Send, task), message(UnmatchedKind::Receive, task)];
            Unmatched { sends: 1, receives: 1, first }
        };
        let mut of_process = Unmatched::default();
        (0..7).for_each(|task| of_process.merge(of_task(task)));
        let mut all = Unmatched::default();
        all.merge(of_process.clone());
        assert_eq!(all, of_process);
        let tasks: Vec<u32> = all.first.iter().map(|message| message.task.0).collect();
        assert_eq!(tasks, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    /// Fences and windows are named, but move nothing.
    #[test]
    fn calls_without_bytes_move_no_data() {
        let mut summary = Summary { messages: 2, local_collectives: 4, agreements: 3, ..Summary::default() };
        let mut other = |name: &str, count, bytes| {
            summary.not_representable.insert(name.to_owned(), Tally { count, bytes: Bytes(bytes) });
            summary.lacks()
        };
        assert_eq!(other("MPI_Win_fence", 8, 0), ["8 × MPI_Win_fence (0 B)"]);
        assert_eq!(
            other("MPI_Put", 1, 500),
            [
                "1 of 4 calls that move data (25 %): a trace cannot represent them",
                "8 × MPI_Win_fence (0 B)",
                "1 × MPI_Put (500 B)"
            ]
        );
        let accesses = other("MPI_File_write", 6, 1);
        let told = "6 of 10 calls that move data (60 %): accesses to files, which are in it only with vef mix --io-servers K";
        assert_eq!(
            accesses[..2],
            ["1 of 10 calls that move data (10 %): a trace cannot represent them", told]
        );
    }
}
