//! Matches sends with receives.
//!
//! Each task looks up the other end of a channel once a channel, not once a message, and writes only its own results; so
//! all tasks are matched in parallel. If the other end belongs to another part or process ([`crate::parts`]), both ends
//! exchange what the other needs, in posting order: the indices of the messages, or the fates that the receives give
//! them ([`channel_ends`]).

use crate::bytes::{Encoder, Garbled, Reader};
use crate::channels::{Channel, Grouped, NONE, Side};
use crate::communicators::Identity;
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
    pub(crate) receivers: Vec<Receiver>,
}

/// The message that a receive matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) source: Rank,
    /// Index of the message in the source; [`NONE`]: no message.
    pub(crate) message: u32,
}

/// The receiver of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    pub(crate) dst: Rank,
    pub(crate) fate: Fate,
}

/// [`Partners`] without their tasks, which the channels have.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// For each receive, the index of its message in the sender; [`NONE`]: no message.
    messages: Vec<u32>,
    /// The fate of each message.
    pub(crate) fates: Vec<Fate>,
}

impl Partners {
    /// The partners of `task`, whose sides are freed.
    pub(crate) fn of(task: &mut Task, Matches { messages, fates }: Matches) -> Self {
        let (sends, receives) = (std::mem::take(&mut task.sends), std::mem::take(&mut task.receives));
        task.waits = Vec::new();
        let peer = |channel: Option<Channel>| channel.map_or(Rank(NONE), |channel| channel.peer);
        let sender = |(receive, message)| Sender { source: peer(receives.of(receive)), message };
        let receiver = |(message, fate)| Receiver { dst: peer(sends.of(message)), fate };
        Self {
            senders: (0..).zip(messages).map(sender).collect(),
            receivers: (0..).zip(fates).map(receiver).collect(),
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

/// The matching of consecutive tasks from `first` on.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    first: u32,
    tasks: &'a [Task],
    /// Sends and receives of each task by channel.
    grouped: Vec<(Grouped, Grouped)>,
    matches: Vec<Matches>,
}

impl<'a> Matching<'a> {
    /// Matches `tasks` with each other.
    pub(crate) fn new(first: Rank, tasks: &'a [Task]) -> Self {
        let first = first.0;
        let grouped: Vec<_> = group(tasks);
        let matches = |(at, task): (usize, &Task)| {
            let mut matches = Matches {
                messages: vec![NONE; task.receives.len()],
                fates: vec![Fate::Dropped; task.sends.len()],
            };
            // The peer's index, and its number of the channel in `side`.
            let other_end = |channel: Channel, side: fn(&Task) -> &Side| {
                let peer = channel.peer.0.checked_sub(first)? as usize;
                let mirrored = Channel { peer: Rank(first + at as u32), ..channel };
                Some((peer, side(tasks.get(peer)?).find(&mirrored)?))
            };
            for (number, channel) in task.sends.channels() {
                let Some((peer, theirs)) = other_end(channel, |task| &task.receives) else { continue };
                let waits = &tasks[peer].waits;
                for (&message, &receive) in grouped[at].0.of(number).iter().zip(grouped[peer].1.of(theirs)) {
                    matches.fates[message as usize] = waits[receive as usize].into();
                }
            }
            for (number, channel) in task.receives.channels() {
                let Some((peer, theirs)) = other_end(channel, |task| &task.sends) else { continue };
                for (&receive, &message) in grouped[at].1.of(number).iter().zip(grouped[peer].0.of(theirs)) {
                    matches.messages[receive as usize] = message;
                }
            }
            matches
        };
        let matches = tasks.par_iter().enumerate().map(matches).collect();
        Self { first, tasks, grouped, matches }
    }

    /// Imports the channel ends that other tasks exported; `comm` maps a common communicator number to an own one.
    pub(crate) fn import_peer(
        &mut self,
        ends: &[u8],
        comm: &dyn Fn(u32) -> Option<u32>,
    ) -> Result<(), Garbled> {
        let mut reader = Reader::new(ends);
        while reader.more() {
            let (kind, theirs, comm) = (reader.get()?, reader.get_u32()?, comm(reader.get_u32()?));
            let (mine, tag, length) = (reader.get_u32()?, reader.get_signed()? as i32, reader.get()?);
            let exported = Reader::new(reader.get_bytes()?);
            let at = mine.checked_sub(self.first).ok_or(Garbled)? as usize;
            let task = self.tasks.get(at).ok_or(Garbled)?;
            let Some(comm) = comm else { continue };
            let channel = Channel { comm: Identity(comm), peer: Rank(theirs), tag, length };
            let (sends, receives) = &self.grouped[at];
            let matches = &mut self.matches[at];
            if kind == SENDS {
                let Some(number) = task.receives.find(&channel) else { continue };
                import_numbers(exported, receives.of(number), &mut matches.messages)?;
            } else {
                let Some(number) = task.sends.find(&channel) else { continue };
                import_waits(exported, sends.of(number), &mut matches.fates)?;
            }
        }
        Ok(())
    }

    /// Call after all imports. `room(task, receive)` returns the buffer size of a receive, for the report.
    pub(crate) fn finish(
        self,
        room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
    ) -> (Vec<Matches>, Matched) {
        let Self { first, tasks, mut matches, .. } = self;
        let settle = |(at, (task, matches)): (usize, (&Task, &mut Matches))| {
            settle(Rank(first + at as u32), task, matches, room)
        };
        let all: Vec<_> = tasks.par_iter().zip(&mut matches).enumerate().map(settle).collect();
        let mut matched = Matched::default();
        all.into_iter().for_each(|one| matched.merge(one));
        (matches, matched)
    }
}

fn group(tasks: &[Task]) -> Vec<(Grouped, Grouped)> {
    tasks.par_iter().map(|task| (task.sends.group(), task.grouped_receives())).collect()
}

const SENDS: u64 = 0;
const RECEIVES: u64 = 1;

/// Exports the channel ends of `tasks`, the first of which is `first`, for each of the ascending ranges `to`; `comm`
/// maps an own communicator number to its common number.
pub(crate) fn channel_ends(
    first: Rank,
    tasks: &[Task],
    to: &[Range<u32>],
    comm: &dyn Fn(u32) -> u32,
) -> Vec<Vec<u8>> {
    let mut exported: Vec<Encoder> = to.iter().map(|_| Encoder::default()).collect();
    for (own, task) in (first.0..).zip(tasks) {
        type Group<'a> = &'a dyn Fn() -> Grouped;
        let mut export = |kind: u64, side: &Side, group: Group<'_>, list: &dyn Fn(&[u32], &mut Encoder)| {
            let mut grouped = None;
            for (number, channel) in side.channels() {
                let at = to.partition_point(|range| range.end <= channel.peer.0);
                if !to.get(at).is_some_and(|range| range.contains(&channel.peer.0)) {
                    continue;
                }
                let encoder = &mut exported[at];
                encoder.put(kind);
                encoder.put(own.into());
                encoder.put(comm(channel.comm.0).into());
                encoder.put(channel.peer.0.into());
                encoder.put_signed(channel.tag.into());
                encoder.put(channel.length);
                let mut inner = Encoder::default();
                list(grouped.get_or_insert_with(group).of(number), &mut inner);
                encoder.put_bytes(&inner.0);
            }
        };
        export(SENDS, &task.sends, &|| task.sends.group(), &put_numbers);
        let put_waits = |receives: &[u32], encoder: &mut Encoder| put_waits(receives, &task.waits, encoder);
        export(RECEIVES, &task.receives, &|| task.grouped_receives(), &put_waits);
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
        // Kind and task; behind the communicator: peer, tag and length.
        encoder.put(reader.get()?);
        encoder.put(reader.get()?);
        encoder.put(comm(reader.get_u32()?).into());
        for _ in 0..3 {
            encoder.put(reader.get()?);
        }
        encoder.put_bytes(reader.get_bytes()?);
    }
    Ok(())
}

/// Indices of messages, delta-coded.
fn put_numbers(messages: &[u32], encoder: &mut Encoder) {
    let mut last = 0;
    for &message in messages {
        encoder.put((message - last).into());
        last = message;
    }
}

fn import_numbers(mut exported: Reader<'_>, receives: &[u32], messages: &mut [u32]) -> Result<(), Garbled> {
    let mut number = 0u32;
    for &receive in receives {
        if !exported.more() {
            break;
        }
        number = number.checked_add(exported.get_u32()?).ok_or(Garbled)?;
        messages[receive as usize] = number;
    }
    Ok(())
}

/// Fates of receives, run-length coded.
fn put_waits(receives: &[u32], waits: &[Wait], encoder: &mut Encoder) {
    for run in receives.chunk_by(|&a, &b| waits[a as usize] == waits[b as usize]) {
        encoder.put(run.len() as u64 * 3 + waits[run[0] as usize] as u64);
    }
}

fn import_waits(mut exported: Reader<'_>, sends: &[u32], fates: &mut [Fate]) -> Result<(), Garbled> {
    let mut sends = sends.iter();
    while exported.more() {
        let run = exported.get()?;
        let fate = [Fate::Unawaited, Fate::Awaited, Fate::Expected][(run % 3) as usize];
        for &message in sends.by_ref().take(usize::try_from(run / 3).map_err(|_| Garbled)?) {
            fates[message as usize] = fate;
        }
    }
    Ok(())
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
    let mut records = Cursor::default();
    let mut message = 0u32;
    while let Some(entry) = records.next(&task.records, u64::MAX) {
        let Body::Message(bytes) = entry.body() else { continue };
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
