//! What a mix did: counts, bytes and times, for people and (by serde) for programs.

use crate::bytes::{Author, Garbled, Reader};
use crate::matching::Matched;
use crate::read::Walked;
use crate::task::Task;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use vef_format::capture::Host;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

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
    /// How long each stage took.
    pub times: Times,
}

impl Summary {
    /// The hosts with more tasks than cores: times of the trace measure their schedulers, too.
    pub fn oversubscribed(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.is_oversubscribed())
    }

    /// Counts what was read of consecutive tasks from `first` on, and gives the tasks.
    pub(crate) fn add_walked(&mut self, first: u32, walked: Vec<Walked>) -> Vec<Task> {
        let mut count = |(rank, walked): (u32, Walked)| {
            let Walked { task, skipped, torn } = walked;
            let counts = task.counts;
            self.events += counts.events;
            self.messages += task.messages();
            self.marks += task.marks();
            self.local_collectives += counts.collectives;
            self.bytes.0 = self.bytes.0.saturating_add(counts.bytes);
            self.threaded += u64::from(task.records.has_threads());
            self.negative_times += counts.negative_times;
            self.unknown_requests += counts.unknown_requests;
            self.never_completed += counts.never_completed;
            self.skipped_unknown += skipped;
            self.torn += torn;
            for (name, &tally) in &task.not_representable {
                self.not_representable.entry(name.clone()).or_default().merge(tally);
            }
            if !counts.finalized {
                self.killed.push(Rank(rank));
            }
            task
        };
        (first..).zip(walked).map(&mut count).collect()
    }

    /// The counts of [`Summary::add_walked`], for another process.
    pub(crate) fn encode_walked(&self) -> Vec<u8> {
        let mut author = Author::default();
        for count in [
            self.events,
            self.messages,
            self.marks,
            self.local_collectives,
            self.bytes.0,
            self.threaded,
            self.negative_times,
            self.unknown_requests,
            self.never_completed,
            self.skipped_unknown,
            self.torn,
            self.not_representable.len() as u64,
        ] {
            author.put(count);
        }
        for (name, tally) in &self.not_representable {
            author.put_bytes(name.as_bytes());
            author.put(tally.count);
            author.put(tally.bytes.0);
        }
        self.killed.iter().for_each(|rank| author.put(rank.0.into()));
        author.0
    }

    /// Adds the counts that a process of higher tasks has encoded.
    pub(crate) fn hear_walked(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        let mut reader = Reader::new(bytes);
        for count in [&mut self.events, &mut self.messages, &mut self.marks, &mut self.local_collectives] {
            *count += reader.get()?;
        }
        self.bytes.0 = self.bytes.0.saturating_add(reader.get()?);
        for count in [
            &mut self.threaded,
            &mut self.negative_times,
            &mut self.unknown_requests,
            &mut self.never_completed,
            &mut self.skipped_unknown,
            &mut self.torn,
        ] {
            *count += reader.get()?;
        }
        for _ in 0..reader.get()? {
            let name = String::from_utf8_lossy(reader.get_bytes()?).into_owned();
            let tally = Tally { count: reader.get()?, bytes: Bytes(reader.get()?) };
            self.not_representable.entry(name).or_default().merge(tally);
        }
        while reader.more() {
            self.killed.push(Rank(reader.get_u32()?));
        }
        Ok(())
    }

    /// Takes over what became of the messages of all tasks.
    pub(crate) fn add_matched(&mut self, matched: Matched) {
        self.matched = matched.matched;
        self.dropped.sends = matched.unmatched.sends;
        self.dropped.cancelled = matched.cancelled;
        self.dropped.empty_self = matched.empty_self;
        self.bytes.0 = self.bytes.0.saturating_sub(matched.dropped_bytes);
        self.unmatched = matched.unmatched;
    }
}

impl Matched {
    /// For another process.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut author = Author::default();
        let Self { matched, cancelled, empty_self, dropped_bytes, unmatched } = self;
        for count in [*matched, *cancelled, *empty_self, *dropped_bytes, unmatched.sends, unmatched.receives]
        {
            author.put(count);
        }
        for loner in &unmatched.first {
            author.put((loner.kind == LonerKind::Receive).into());
            author.put(loner.task.0.into());
            // What is not known is 0, what is is one more.
            author.put(loner.peer.map_or(0, |peer| u64::from(peer.0) + 1));
            author.put(loner.tag.map_or(0, |tag| u64::from(tag as u32) + 1));
            author.put(loner.bytes.map_or(0, |bytes| bytes.0.saturating_add(1)));
        }
        author.0
    }

    /// What another process has encoded.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let mut matched = Self {
            matched: reader.get()?,
            cancelled: reader.get()?,
            empty_self: reader.get()?,
            dropped_bytes: reader.get()?,
            unmatched: Unmatched { sends: reader.get()?, receives: reader.get()?, first: Vec::new() },
        };
        while reader.more() {
            let kind = if reader.get()? == 0 { LonerKind::Send } else { LonerKind::Receive };
            matched.unmatched.first.push(Loner {
                kind,
                task: Rank(reader.get_u32()?),
                peer: reader.get()?.checked_sub(1).map(|peer| Rank(peer as u32)),
                tag: reader.get()?.checked_sub(1).map(|tag| tag as u32 as i32),
                bytes: reader.get()?.checked_sub(1).map(Bytes),
            });
        }
        Ok(matched)
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
    pub first: Vec<Loner>,
}

/// A send or a receive without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Loner {
    /// Which of the two.
    pub kind: LonerKind,
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
pub enum LonerKind {
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
        for kind in [LonerKind::Send, LonerKind::Receive] {
            let room = SHOWN - self.first.iter().filter(|loner| loner.kind == kind).count();
            self.first.extend(other.first.iter().filter(|loner| loner.kind == kind).take(room));
        }
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sends without receive, {} receives without send", self.sends, self.receives)?;
        for (at, loner) in self.first.iter().enumerate() {
            write!(f, "{}{loner}", if at == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Loner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LonerKind::Send => write!(f, "task {} sends to ", self.task)?,
            LonerKind::Receive => write!(f, "task {} receives from ", self.task)?,
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
