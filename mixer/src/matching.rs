//! Which send met which receive.
//!
//! Both sides of a channel look each other up once a channel, not once a message, and each side writes only what
//! is its own; so all tasks are matched at once. Where the other side is not here ([`crate::parts`]), each sends the
//! other what it must know: the numbers of its messages, or what became of its receives, in posting order ([`ends`]).

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

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was received, and nobody waited for that.
    Unawaited,
    /// Its reception is waited for.
    Awaited,
    /// And some record comes after that.
    Expected,
    /// It stands not in the trace.
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

/// The other halves of one task's messages and receives.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    /// For each receive the number of the message among its sender's; [`NONE`]: it met none.
    pub(crate) messages: Vec<u32>,
    /// For each message what became of it.
    pub(crate) fates: Vec<Fate>,
}

/// What is to be said of the matching of some tasks.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    /// How many messages have a partner.
    pub(crate) matched: u64,
    /// How many messages were cancelled.
    pub(crate) cancelled: u64,
    /// How many messages of a task to itself stand not in the trace because they look like marks.
    pub(crate) empty_self: u64,
    /// Payload of the messages that stand not in the trace.
    pub(crate) dropped_bytes: u64,
    /// What has no partner.
    pub(crate) unmatched: Unmatched,
}

impl Matched {
    /// Counts all of `other`, which is of later tasks.
    pub(crate) fn merge(&mut self, other: Self) {
        self.matched += other.matched;
        self.cancelled += other.cancelled;
        self.empty_self += other.empty_self;
        self.dropped_bytes = self.dropped_bytes.saturating_add(other.dropped_bytes);
        self.unmatched.merge(other.unmatched);
    }
}

/// The matching of consecutive tasks, the first of them `first`.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    first: u32,
    tasks: &'a [Task],
    /// The sends and the receives of each task by channel.
    grouped: Vec<(Grouped, Grouped)>,
    partners: Vec<Partners>,
}

impl<'a> Matching<'a> {
    /// Matches `tasks` among themselves.
    pub(crate) fn new(first: Rank, tasks: &'a [Task]) -> Self {
        let first = first.0;
        let grouped: Vec<_> = group(tasks);
        let partners = |(at, task): (usize, &Task)| {
            let mut partners = Partners {
                messages: vec![NONE; task.receives.len()],
                fates: vec![Fate::Dropped; task.sends.len()],
            };
            // The channel seen from the other end, where it has the number that is looked up in `side`.
            let other_end = |channel: Channel, side: fn(&Task) -> &Side| {
                let peer = channel.peer.0.checked_sub(first)? as usize;
                let mirrored = Channel { peer: Rank(first + at as u32), ..channel };
                Some((peer, side(tasks.get(peer)?).find(&mirrored)?))
            };
            for (number, channel) in task.sends.channels() {
                let Some((peer, theirs)) = other_end(channel, |task| &task.receives) else { continue };
                let waits = &tasks[peer].waits;
                for (&message, &receive) in grouped[at].0.of(number).iter().zip(grouped[peer].1.of(theirs)) {
                    partners.fates[message as usize] = waits[receive as usize].into();
                }
            }
            for (number, channel) in task.receives.channels() {
                let Some((peer, theirs)) = other_end(channel, |task| &task.sends) else { continue };
                for (&receive, &message) in grouped[at].1.of(number).iter().zip(grouped[peer].0.of(theirs)) {
                    partners.messages[receive as usize] = message;
                }
            }
            partners
        };
        let partners = tasks.par_iter().enumerate().map(partners).collect();
        Self { first, tasks, grouped, partners }
    }

    /// What other tasks have to say to these; `comm` finds one's own number of a communicator that all know by one.
    pub(crate) fn import_peer(
        &mut self,
        ends: &[u8],
        comm: &dyn Fn(u32) -> Option<u32>,
    ) -> Result<(), Garbled> {
        let mut reader = Reader::new(ends);
        while reader.more() {
            let (kind, theirs, comm) = (reader.get()?, reader.get_u32()?, comm(reader.get_u32()?));
            let (mine, tag, length) = (reader.get_u32()?, reader.get_signed()? as i32, reader.get()?);
            let told = Reader::new(reader.get_bytes()?);
            let at = mine.checked_sub(self.first).ok_or(Garbled)? as usize;
            let task = self.tasks.get(at).ok_or(Garbled)?;
            let Some(comm) = comm else { continue };
            let channel = Channel { comm: Identity(comm), peer: Rank(theirs), tag, length };
            let (sends, receives) = &self.grouped[at];
            let partners = &mut self.partners[at];
            if kind == SENDS {
                let Some(number) = task.receives.find(&channel) else { continue };
                hear_numbers(told, receives.of(number), &mut partners.messages)?;
            } else {
                let Some(number) = task.sends.find(&channel) else { continue };
                hear_waits(told, sends.of(number), &mut partners.fates)?;
            }
        }
        Ok(())
    }

    /// After all have been heard. `room(task, receive)` finds out what room a receive has, for the report.
    pub(crate) fn finish(
        self,
        room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
    ) -> (Vec<Partners>, Matched) {
        let Self { first, tasks, mut partners, .. } = self;
        let settle = |(at, (task, partners)): (usize, (&Task, &mut Partners))| {
            settle(Rank(first + at as u32), task, partners, room)
        };
        let all: Vec<_> = tasks.par_iter().zip(&mut partners).enumerate().map(settle).collect();
        let mut matched = Matched::default();
        all.into_iter().for_each(|one| matched.merge(one));
        (partners, matched)
    }
}

fn group(tasks: &[Task]) -> Vec<(Grouped, Grouped)> {
    tasks.par_iter().map(|task| (task.sends.group(), task.grouped_receives())).collect()
}

const SENDS: u64 = 0;
const RECEIVES: u64 = 1;

/// What `tasks`, the first of them `first`, must tell those of each of the ranges `to`, in ascending order;
/// `comm` gives the number that all know a communicator by.
pub(crate) fn channel_ends(
    first: Rank,
    tasks: &[Task],
    to: &[Range<u32>],
    comm: &dyn Fn(u32) -> u32,
) -> Vec<Vec<u8>> {
    let mut told: Vec<Encoder> = to.iter().map(|_| Encoder::default()).collect();
    for (own, task) in (first.0..).zip(tasks) {
        type Group<'a> = &'a dyn Fn() -> Grouped;
        let mut tell = |kind: u64, side: &Side, group: Group<'_>, list: &dyn Fn(&[u32], &mut Encoder)| {
            let mut grouped = None;
            for (number, channel) in side.channels() {
                let at = to.partition_point(|range| range.end <= channel.peer.0);
                if !to.get(at).is_some_and(|range| range.contains(&channel.peer.0)) {
                    continue;
                }
                let encoder = &mut told[at];
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
        tell(SENDS, &task.sends, &|| task.sends.group(), &put_numbers);
        let put_waits = |receives: &[u32], encoder: &mut Encoder| put_waits(receives, &task.waits, encoder);
        tell(RECEIVES, &task.receives, &|| task.grouped_receives(), &put_waits);
    }
    told.into_iter().map(|encoder| encoder.0).collect()
}

/// Adds to `encoder` what [`ends`] wrote, with the numbers that `comm` gives.
pub(crate) fn put_renamed(
    ends: &[u8],
    comm: &dyn Fn(u32) -> u32,
    encoder: &mut Encoder,
) -> Result<(), Garbled> {
    let mut reader = Reader::new(ends);
    while reader.more() {
        // The kind and the task; behind the communicator the peer, the tag and the length.
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

/// The numbers of messages, each from the one before.
fn put_numbers(messages: &[u32], encoder: &mut Encoder) {
    let mut last = 0;
    for &message in messages {
        encoder.put((message - last).into());
        last = message;
    }
}

fn hear_numbers(mut told: Reader<'_>, receives: &[u32], messages: &mut [u32]) -> Result<(), Garbled> {
    let mut number = 0u32;
    for &receive in receives {
        if !told.more() {
            break;
        }
        number = number.checked_add(told.get_u32()?).ok_or(Garbled)?;
        messages[receive as usize] = number;
    }
    Ok(())
}

/// What became of receives, in runs.
fn put_waits(receives: &[u32], waits: &[Wait], encoder: &mut Encoder) {
    for run in receives.chunk_by(|&a, &b| waits[a as usize] == waits[b as usize]) {
        encoder.put(run.len() as u64 * 3 + waits[run[0] as usize] as u64);
    }
}

fn hear_waits(mut told: Reader<'_>, sends: &[u32], fates: &mut [Fate]) -> Result<(), Garbled> {
    let mut sends = sends.iter();
    while told.more() {
        let run = told.get()?;
        let fate = [Fate::Unawaited, Fate::Awaited, Fate::Expected][(run % 3) as usize];
        for &message in sends.by_ref().take(usize::try_from(run / 3).map_err(|_| Garbled)?) {
            fates[message as usize] = fate;
        }
    }
    Ok(())
}

/// What is left of `own` when all have been matched.
fn settle(
    own: Rank,
    task: &Task,
    partners: &mut Partners,
    room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
) -> Matched {
    let mut settled = Matched::default();
    let lost = partners.fates.iter().filter(|&&fate| fate == Fate::Dropped).count() as u64;
    settled.matched = task.sends.len() as u64 - lost;
    if lost > 0 || task.sends.channels().any(|(_, channel)| channel.peer == own) {
        look_at_messages(own, task, partners, &mut settled);
    }
    let mut lonely = Vec::new();
    if partners.messages.contains(&NONE) {
        // One that nothing waited for is counted among the requests that never completed.
        let unheard = (0..task.receives.len() as u32)
            .filter(|&receive| partners.messages[receive as usize] == NONE)
            .filter(|&receive| task.waits[receive as usize] != Wait::Not)
            .filter_map(|receive| Some((receive, task.receives.of(receive)?)));
        for (receive, channel) in unheard {
            settled.unmatched.receives += 1;
            if lonely.len() < SHOWN {
                lonely.push((receive, channel));
            }
        }
    }
    let shown = lonely.into_iter().map(|(receive, channel)| UnmatchedMessage {
        kind: UnmatchedKind::Receive,
        task: own,
        peer: Some(channel.peer),
        tag: Some(channel.tag),
        bytes: room(own, receive),
    });
    settled.unmatched.first.extend(shown);
    settled
}

/// Reads the records of `task` once more for what depends on the size of single messages: those to itself that
/// look like marks, and the report of those without a partner.
fn look_at_messages(own: Rank, task: &Task, partners: &mut Partners, settled: &mut Matched) {
    let mut records = Cursor::default();
    let mut message = 0u32;
    while let Some(record) = records.next(&task.records) {
        let Body::Message(bytes) = record.body else { continue };
        let channel = task.sends.of(message);
        let to_itself = channel.is_some_and(|channel| channel.peer == own);
        let fate = &mut partners.fates[message as usize];
        if *fate == Fate::Unawaited && to_itself && bytes == Bytes::ZERO {
            *fate = Fate::Dropped;
            settled.empty_self += 1;
        } else if *fate == Fate::Dropped {
            settled.dropped_bytes = settled.dropped_bytes.saturating_add(bytes.0);
            match channel {
                // A cancelled one has lost its channel.
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
