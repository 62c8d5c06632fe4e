//! Matches sends with receives.
//!
//! Each end of a channel needs a list from the other end, in posting order: the indices of the messages, or the fates that
//! the receives give them ([`Ends`]). It is looked up once a channel, not once a message, and each task writes only its
//! own results; so all tasks are matched in parallel. If the other end belongs to another part or process
//! ([`crate::parts`]), the lists are exchanged ([`channel_ends`]).

use crate::bytes::{Coded, Encoder, Garbled, Reader, coded};
use crate::channels::{Channel, Grouped, NONE, Side};
use crate::communicators::Identity;
use crate::fit::fit;
use crate::packed::{Body, Cursor};
use crate::summary::{SHOWN, Unmatched, UnmatchedKind, UnmatchedMessage};
use crate::task::{Task, Wait};
use rayon::prelude::*;
use std::ops::Range;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Received; no call waited for it.
    Unawaited,
    /// Received; a call waited for it.
    Awaited,
    /// Received; a call waited for it, and a record depends on that.
    Expected,
    /// Not in the trace.
    Dropped,
}

impl From<Wait> for Fate {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Not => Self::Unawaited,
            Wait::Waited => Self::Awaited,
            Wait::Followed => Self::Expected,
        }
    }
}

/// The partners of one task's receives and messages.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    /// The message that each receive matched.
    pub(crate) senders: Vec<Sender>,
    /// The receiver of each message.
    pub(crate) receivers: Vec<Rank>,
    /// The fate of each message; empty if all are [`Fate::Expected`].
    pub(crate) fates: Vec<Fate>,
}

/// The message that a receive matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) source: Rank,
    /// Index of the message in the source; [`NONE`]: no message.
    pub(crate) message: u32,
}

/// [`Partners`] without their tasks, which the channels have.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// For each receive, the index of its message in the sender; [`NONE`]: no message.
    messages: Vec<u32>,
    /// The fate of each message; empty if all are [`Fate::Expected`].
    pub(crate) fates: Vec<Fate>,
}

impl Partners {
    /// The partners of `task`, whose sides are freed.
    pub(crate) fn of(task: &mut Task, Matches { messages, fates }: Matches) -> Self {
        let (sends, receives) = (std::mem::take(&mut task.sends), std::mem::take(&mut task.receives));
        task.waits = Vec::new();
        let sender = |(source, message)| Sender { source, message };
        Self {
            senders: receives.into_peers().into_iter().zip(messages).map(sender).collect(),
            receivers: sends.into_peers(),
            fates,
        }
    }
}

/// Counts of the matching of some tasks.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    /// Messages with a receive.
    pub(crate) matched: u64,
    /// Cancelled messages.
    pub(crate) cancelled: u64,
    /// Dropped messages of a task to itself that would read as marks.
    pub(crate) empty_self: u64,
    /// Payload of the dropped messages.
    pub(crate) dropped_bytes: u64,
    /// Sends and receives without a partner.
    pub(crate) unmatched: Unmatched,
}

impl Matched {
    /// Adds `other`, the counts of higher tasks.
    pub(crate) fn merge(&mut self, other: Self) {
        self.matched = self.matched.saturating_add(other.matched);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.empty_self = self.empty_self.saturating_add(other.empty_self);
        self.dropped_bytes = self.dropped_bytes.saturating_add(other.dropped_bytes);
        self.unmatched.merge(other.unmatched);
    }
}

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sends,
    Receives,
}

impl Kind {
    fn side(self, task: &Task) -> &Side {
        match self {
            Self::Sends => &task.sends,
            Self::Receives => &task.receives,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Sends => Self::Receives,
            Self::Receives => Self::Sends,
        }
    }
}

/// What the other ends of a task's channels need, encoded.
#[derive(Debug)]
pub(crate) struct Ends {
    /// The indices of its messages.
    sends: Lists,
    /// The fates that its receives give.
    receives: Lists,
}

/// A list for each channel of a side.
#[derive(Debug, Default)]
struct Lists {
    encoded: Vec<u8>,
    /// End of each channel's list.
    ends: Vec<usize>,
}

impl Lists {
    /// The lists that `put` encodes of the operations of each channel in `grouped`.
    fn of(grouped: &Grouped, put: impl Fn(&[u32], &mut Vec<u8>)) -> Self {
        let mut lists = Self::default();
        for operations in grouped.all() {
            put(operations, &mut lists.encoded);
            lists.ends.push(lists.encoded.len());
        }
        fit(&mut lists.encoded);
        lists
    }
}

impl Ends {
    /// The ends of each of `tasks`.
    pub(crate) fn of(tasks: &[Task]) -> Vec<Self> {
        let of = |task: &Task| Self {
            sends: Lists::of(&task.sends.group(), put_numbers),
            receives: Lists::of(&task.grouped_receives(), |list, encoded| {
                put_waits(list, &task.waits, encoded)
            }),
        };
        tasks.par_iter().map(of).collect()
    }

    /// The list of channel `number` of a side.
    fn list(&self, kind: Kind, number: u32) -> &[u8] {
        let Lists { encoded, ends } = match kind {
            Kind::Sends => &self.sends,
            Kind::Receives => &self.receives,
        };
        let begin = number.checked_sub(1).map_or(0, |before| ends[before as usize]);
        &encoded[begin..ends[number as usize]]
    }
}

/// The matching of consecutive tasks from `first` on.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    first: u32,
    tasks: &'a [Task],
    ends: &'a [Ends],
    /// For each task, lists of channels whose other end is elsewhere.
    imported: Vec<Vec<Imported>>,
}

/// A list of the other end of a channel.
#[derive(Debug)]
struct Imported {
    /// The end here, and its number.
    kind: Kind,
    number: u32,
    list: Vec<u8>,
}

impl<'a> Matching<'a> {
    /// Matches `tasks`, which have `ends`.
    pub(crate) fn new(first: Rank, tasks: &'a [Task], ends: &'a [Ends]) -> Self {
        Self { first: first.0, tasks, ends, imported: tasks.iter().map(|_| Vec::new()).collect() }
    }

    /// Imports the channel ends that other tasks exported; `comm` maps a common communicator number to an own one.
    pub(crate) fn import_peer(
        &mut self,
        ends: &[u8],
        comm: &dyn Fn(u32) -> Option<u32>,
    ) -> Result<(), Garbled> {
        let mut reader = Reader::new(ends);
        while reader.more() {
            let Exported { kind, task: theirs, comm: common, peer: mine, tag, length, list } =
                Coded::get(&mut reader)?;
            let kind = if kind == SENDS { Kind::Receives } else { Kind::Sends };
            let at = mine.0.checked_sub(self.first).ok_or(Garbled)? as usize;
            let task = self.tasks.get(at).ok_or(Garbled)?;
            let Some(comm) = comm(common) else { continue };
            let channel = Channel { comm: Identity(comm), peer: theirs, tag, length };
            if let Some(number) = kind.side(task).find(&channel) {
                self.imported[at].push(Imported { kind, number, list });
            }
        }
        Ok(())
    }

    /// Call after all imports. `room(task, receive)` returns the buffer size of a receive, for the report.
    pub(crate) fn finish(
        self,
        room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
    ) -> (Vec<Matches>, Matched) {
        let all: Vec<_> = (0..self.tasks.len()).into_par_iter().map(|at| self.match_task(at, room)).collect();
        let (mut matches, mut matched) = (Vec::with_capacity(all.len()), Matched::default());
        for (of_task, counts) in all {
            matches.push(of_task);
            matched.merge(counts);
        }
        (matches, matched)
    }

    fn match_task(
        &self,
        at: usize,
        room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
    ) -> (Matches, Matched) {
        let (own, task) = (Rank(self.first + at as u32), &self.tasks[at]);
        let lists = |kind: Kind| {
            let mut lists = vec![List::default(); kind.side(task).channels().len()];
            self.other_ends(at, kind).for_each(|(number, list)| lists[number as usize].rest = list);
            lists
        };
        let mut numbers = lists(Kind::Receives);
        let mut messages = vec![NONE; task.receives.len()];
        let assign = |receive: u32| {
            let list = numbers.get_mut(task.receives.number(receive) as usize);
            messages[receive as usize] = list.and_then(List::number).unwrap_or(NONE);
        };
        match task.postings {
            None => (0..task.receives.len() as u32).for_each(assign),
            Some(_) => task.grouped_receives().all().flatten().copied().for_each(assign),
        }
        let mut waits = lists(Kind::Sends);
        let mut fate = |message| waits.get_mut(task.sends.number(message) as usize)?.fate();
        let fates =
            (0..task.sends.len() as u32).map(|message| fate(message).unwrap_or(Fate::Dropped)).collect();
        let mut matches = Matches { messages, fates };
        let matched = settle(own, task, &mut matches, room);
        if matches.fates.iter().all(|&fate| fate == Fate::Expected) {
            matches.fates = Vec::new();
        }
        (matches, matched)
    }

    /// The lists of the other ends of a task's channels, by channel.
    fn other_ends(&self, at: usize, kind: Kind) -> impl Iterator<Item = (u32, &[u8])> {
        let own = Rank(self.first + at as u32);
        let here = kind.side(&self.tasks[at]).channels().filter_map(move |(number, channel)| {
            let peer = channel.peer.0.checked_sub(self.first)? as usize;
            let mirrored = Channel { peer: own, ..channel };
            let theirs = kind.other().side(self.tasks.get(peer)?).find(&mirrored)?;
            Some((number, self.ends[peer].list(kind.other(), theirs)))
        });
        let of_kind = self.imported[at].iter().filter(move |imported| imported.kind == kind);
        here.chain(of_kind.map(|imported| (imported.number, &*imported.list)))
    }
}

const SENDS: u32 = 0;
const RECEIVES: u32 = 1;

/// An end of a channel for the task at the other end.
struct Exported {
    /// [`SENDS`] or [`RECEIVES`].
    kind: u32,
    task: Rank,
    /// The communicator.
    comm: u32,
    /// The task at the other end.
    peer: Rank,
    tag: i32,
    length: u64,
    /// What the other end needs.
    list: Vec<u8>,
}

coded!(Exported { kind, task, comm, peer, tag, length, list });

/// Exports the channel ends of `tasks`, the first of which is `first`, for each of the ascending ranges `to`; `comm`
/// maps an own communicator number to its common number.
pub(crate) fn channel_ends(
    first: Rank,
    tasks: &[Task],
    ends: &[Ends],
    to: &[Range<u32>],
    comm: &dyn Fn(u32) -> u32,
) -> Vec<Vec<u8>> {
    let mut exported: Vec<Encoder> = to.iter().map(|_| Encoder::default()).collect();
    for ((own, task), ends) in (first.0..).zip(tasks).zip(ends) {
        for (code, kind) in [(SENDS, Kind::Sends), (RECEIVES, Kind::Receives)] {
            for (number, channel) in kind.side(task).channels() {
                let at = to.partition_point(|range| range.end <= channel.peer.0);
                if !to.get(at).is_some_and(|range| range.contains(&channel.peer.0)) {
                    continue;
                }
                let end = Exported {
                    kind: code,
                    task: Rank(own),
                    comm: comm(channel.comm.0),
                    peer: channel.peer,
                    tag: channel.tag,
                    length: channel.length,
                    list: ends.list(kind, number).to_vec(),
                };
                end.put(&mut exported[at]);
            }
        }
    }
    exported.into_iter().map(|encoder| encoder.0).collect()
}

/// Appends what [`channel_ends`] encoded, with the communicator numbers that `comm` returns.
pub(crate) fn put_renamed(
    ends: &[u8],
    comm: &dyn Fn(u32) -> u32,
    encoder: &mut Encoder,
) -> Result<(), Garbled> {
    let mut reader = Reader::new(ends);
    while reader.more() {
        let end = Exported::get(&mut reader)?;
        Exported { comm: comm(end.comm), ..end }.put(encoder);
    }
    Ok(())
}

/// Appends indices of messages: the distance of each from the one before, as a byte, or as [`LONG`] and four bytes.
fn put_numbers(messages: &[u32], encoded: &mut Vec<u8>) {
    let mut last = 0;
    for &message in messages {
        let step = message - last;
        last = message;
        encoded.push(step.min(LONG.into()) as u8);
        if step >= LONG.into() {
            encoded.extend(step.to_le_bytes());
        }
    }
}

const LONG: u8 = u8::MAX;

/// Appends fates of receives: a byte for each run of at most [`RUN`] equal ones.
fn put_waits(receives: &[u32], waits: &[Wait], encoded: &mut Vec<u8>) {
    for run in receives.chunk_by(|&a, &b| waits[a as usize] == waits[b as usize]) {
        let fate = waits[run[0] as usize] as u8;
        encoded.extend(run.chunks(RUN).map(|run| run.len() as u8 * 3 + fate));
    }
}

const RUN: usize = 84;

/// The rest of a list that [`put_numbers`] or [`put_waits`] wrote.
#[derive(Clone, Copy, Debug, Default)]
struct List<'a> {
    rest: &'a [u8],
    /// The last index, or the rest of a run.
    state: u32,
}

impl List<'_> {
    /// The next index, if there are more.
    #[inline(always)]
    fn number(&mut self) -> Option<u32> {
        let mut step = u32::from(*self.rest.split_off_first()?);
        if step == LONG.into() {
            step = u32::from_le_bytes(*self.rest.split_off(..4)?.first_chunk()?);
        }
        self.state = self.state.wrapping_add(step);
        Some(self.state)
    }

    /// The next fate, if there are more.
    #[inline(always)]
    fn fate(&mut self) -> Option<Fate> {
        if self.state < 3 {
            self.state = u32::from(*self.rest.split_off_first()?);
        }
        let fate = [Fate::Unawaited, Fate::Awaited, Fate::Expected][(self.state % 3) as usize];
        self.state = self.state.saturating_sub(3);
        Some(fate)
    }
}

/// Counts what matching left over of the task `own`.
fn settle(
    own: Rank,
    task: &Task,
    matches: &mut Matches,
    room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
) -> Matched {
    let mut settled = Matched::default();
    let lost = matches.fates.iter().filter(|&&fate| fate == Fate::Dropped).count() as u64;
    settled.matched = task.sends.len() as u64 - lost;
    if lost > 0 || task.sends.channels().any(|(_, channel)| channel.peer == own) {
        settle_messages(own, task, matches, &mut settled);
    }
    let mut unmatched = Vec::new();
    if matches.messages.contains(&NONE) {
        // A receive that no call waited for is counted under `never_completed`.
        let unmatched_receives = (0..task.receives.len() as u32)
            .filter(|&receive| matches.messages[receive as usize] == NONE)
            .filter(|&receive| task.waits[receive as usize] != Wait::Not)
            .filter_map(|receive| Some((receive, task.receives.of(receive)?)));
        for (receive, channel) in unmatched_receives {
            settled.unmatched.receives += 1;
            if unmatched.len() < SHOWN {
                unmatched.push((receive, channel));
            }
        }
    }
    let shown = unmatched.into_iter().map(|(receive, channel)| UnmatchedMessage {
        kind: UnmatchedKind::Receive,
        task: own,
        peer: Some(channel.peer),
        tag: Some(channel.tag),
        bytes: room(own, receive),
    });
    settled.unmatched.first.extend(shown);
    settled
}

/// Reads the records of `task` again for decisions that depend on message sizes: empty messages to itself, and the
/// report of unmatched sends.
fn settle_messages(own: Rank, task: &Task, matches: &mut Matches, settled: &mut Matched) {
    let mut records = Cursor::new(&task.records);
    let mut message = 0u32;
    while let Some((_, record)) = records.next(u64::MAX) {
        let Body::Message(bytes) = record.body else { continue };
        let channel = task.sends.of(message);
        let to_itself = channel.is_some_and(|channel| channel.peer == own);
        let fate = &mut matches.fates[message as usize];
        if *fate == Fate::Unawaited && to_itself && bytes == Bytes::ZERO {
            *fate = Fate::Dropped;
            settled.empty_self += 1;
        } else if *fate == Fate::Dropped {
            settled.dropped_bytes = settled.dropped_bytes.saturating_add(bytes.0);
            match channel {
                // A cancelled send has no channel.
                None => settled.cancelled += 1,
                Some(channel) => {
                    settled.unmatched.sends += 1;
                    if settled.unmatched.first.len() < SHOWN {
                        settled.unmatched.first.push(UnmatchedMessage {
                            kind: UnmatchedKind::Send,
                            task: own,
                            peer: Some(channel.peer),
                            tag: Some(channel.tag),
                            bytes: Some(bytes),
                        });
                    }
                }
            }
        }
        message += 1;
    }
}
