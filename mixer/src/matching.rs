//! Matches sends with receives.
//!
//! Each end of a channel needs a list from the other end, in posting order: the indices of the messages, or the fates that
//! the receives give them ([`Ends`]). It is looked up once a channel, not once a message, and each task writes only its
//! own results; so all tasks are matched in parallel. If the other end belongs to another part or process
//! ([`crate::parts`]), the lists are exported and imported ([`export`]).

use crate::channels::{Channel, Grouped, Purpose, Side};
use crate::error::MixError;
use crate::fit::fit;
use crate::index::{ChannelIndex, CommIndex, MessageIndex};
use crate::prepared::MessageRef;
use crate::records::{Body, Cursor};
use crate::summary::{Unmatched, UnmatchedKind, UnmatchedMessage};
use crate::task::{Fate, Found, Task};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use vef_format::ids::Rank;
use vef_format::units::Bytes;
use vef_format::varint::{self, Source};

/// The partners of one task's receives and messages.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    /// The message that each receive matched; [`MessageIndex::NONE`]: no message.
    pub(crate) senders: Vec<MessageRef>,
    /// The receiver of each message.
    pub(crate) receivers: Vec<Rank>,
    /// The fate of each message; empty if all are [`Fate::HasDependent`].
    pub(crate) fates: Vec<Fate>,
}

/// [`Partners`] without their tasks, which the channels have.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// For each receive, its message; [`MessageIndex::NONE`]: no message.
    messages: Vec<MessageIndex>,
    /// The fate of each message; empty if all are [`Fate::HasDependent`].
    pub(crate) fates: Vec<Fate>,
}

impl Partners {
    /// The partners of `task`, whose sides are freed.
    pub(crate) fn of(task: &mut Task, Matches { messages, fates }: Matches) -> Self {
        let (sends, receives) = (std::mem::take(&mut task.sends), std::mem::take(&mut task.receives));
        task.fates = Vec::new();
        let sender = |(source, message)| MessageRef { source, message };
        let mut senders: Vec<_> = receives.into_peers().into_iter().zip(messages).map(sender).collect();
        // At most one record depends on a message: if a probe found it, the mark of the probe.
        for Found { probe, receive } in std::mem::take(&mut task.found) {
            senders.swap(probe.index(), receive.index());
        }
        Self { senders, receivers: sends.into_peers(), fates }
    }
}

/// Counts of the matching of some tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Matched {
    /// Messages with a receive.
    pub(crate) matched: u64,
    /// Cancelled messages.
    pub(crate) cancelled: u64,
    /// Dropped messages of a task to itself that would read as marks.
    pub(crate) empty_self: u64,
    /// One-sided transfers whose target did not come to the synchronisation that waits for them.
    pub(crate) never_synchronised: u64,
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
        self.never_synchronised = self.never_synchronised.saturating_add(other.never_synchronised);
        self.dropped_bytes = self.dropped_bytes.saturating_add(other.dropped_bytes);
        self.unmatched.merge(other.unmatched);
    }
}

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sends,
    Receives,
}

impl End {
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
            sends: Lists::of(&task.sends.group(), put_messages),
            receives: Lists::of(&task.grouped_receives(), |list, encoded| {
                put_fates(list, &task.fates, encoded)
            }),
        };
        tasks.par_iter().map(of).collect()
    }

    /// The list of a channel.
    fn list(&self, end: End, channel: ChannelIndex) -> &[u8] {
        let Lists { encoded, ends } = match end {
            End::Sends => &self.sends,
            End::Receives => &self.receives,
        };
        let at = channel.index();
        let begin = at.checked_sub(1).map_or(0, |before| ends[before]);
        &encoded[begin..ends[at]]
    }
}

/// The matching of consecutive tasks from `first` on.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    first: u32,
    tasks: &'a [Task],
    ends: &'a [Ends],
    /// For each task, lists of channels whose other end is elsewhere.
    imported: Vec<Vec<Imported<'a>>>,
}

/// A list of the other end of a channel.
#[derive(Debug)]
struct Imported<'a> {
    /// The end here.
    end: End,
    channel: ChannelIndex,
    list: &'a [u8],
}

impl<'a> Matching<'a> {
    /// Matches `tasks`, which have `ends`, with each other and with those that [exported](export) `imports`.
    pub(crate) fn new<'i: 'a>(
        first: Rank,
        tasks: &'a [Task],
        ends: &'a [Ends],
        imports: impl Iterator<Item = &'i [u8]>,
    ) -> Result<Self, MixError> {
        let mut imported: Vec<Vec<_>> = tasks.iter().map(|_| Vec::new()).collect();
        for import in imports {
            let mut source = Source::new(import, 0);
            while source.remaining() > 0 {
                let [end, theirs, comm, own, tag, purpose, length] = source.fields::<7, 0>()?;
                let list = source.text()?;
                let at = own.checked_sub(first.0.into()).ok_or(MixError::Garbled)? as usize;
                let end = if end == End::Sends as u64 { End::Receives } else { End::Sends };
                let (comm, peer) = (CommIndex(comm as u32), Rank(theirs as u32));
                let purpose = Purpose::from_number(purpose).ok_or(MixError::Garbled)?;
                let channel = Channel { comm, peer, tag: tag as u32 as i32, purpose, length };
                if let Some(channel) = end.side(tasks.get(at).ok_or(MixError::Garbled)?).find(&channel) {
                    imported[at].push(Imported { end, channel, list });
                }
            }
        }
        Ok(Self { first: first.0, tasks, ends, imported })
    }

    /// Matches. `room(task, receive)` returns the buffer size of a receive, for the report.
    pub(crate) fn run(self, room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync)) -> (Vec<Matches>, Matched) {
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
        let lists = |end: End| {
            let mut lists = vec![List::default(); end.side(task).channels().len()];
            self.other_ends(at, end).for_each(|(channel, list)| lists[channel.index()].rest = list);
            lists
        };
        let mut sent = lists(End::Receives);
        let mut messages = vec![MessageIndex::NONE; task.receives.len()];
        let assign = |receive: u32| {
            let list = sent.get_mut(task.receives.channel_of(receive).index());
            messages[receive as usize] = list.and_then(List::message).unwrap_or(MessageIndex::NONE);
        };
        match task.postings {
            None => (0..task.receives.len() as u32).for_each(assign),
            Some(_) => task.grouped_receives().all().flatten().copied().for_each(assign),
        }
        let mut received = lists(End::Sends);
        let mut fate = |message| received.get_mut(task.sends.channel_of(message).index())?.fate();
        let without_receive = |message| match task.sends.get(message) {
            Some(channel) if channel.purpose.is_transfer() => Fate::Unawaited,
            _ => Fate::Dropped,
        };
        let fates = (0..task.sends.len() as u32)
            .map(|message| fate(message).unwrap_or_else(|| without_receive(message)))
            .collect();
        let mut matches = Matches { messages, fates };
        let matched = settle(own, task, &mut matches, room);
        if matches.fates.iter().all(|&fate| fate == Fate::HasDependent) {
            matches.fates = Vec::new();
        }
        (matches, matched)
    }

    /// The lists of the other ends of a task's channels, by channel.
    fn other_ends(&self, at: usize, end: End) -> impl Iterator<Item = (ChannelIndex, &[u8])> {
        let own = Rank(self.first + at as u32);
        let here = end.side(&self.tasks[at]).channels().filter_map(move |(index, channel)| {
            let peer = channel.peer.0.checked_sub(self.first)? as usize;
            let mirrored = Channel { peer: own, ..channel };
            let theirs = end.other().side(self.tasks.get(peer)?).find(&mirrored)?;
            Some((index, self.ends[peer].list(end.other(), theirs)))
        });
        let of_end = self.imported[at].iter().filter(move |imported| imported.end == end);
        here.chain(of_end.map(|imported| (imported.channel, imported.list)))
    }
}

/// Encodes the channel ends of `tasks`, the first of which is `first`, for each of the ascending ranges `to`.
pub(crate) fn export(first: Rank, tasks: &[Task], ends: &[Ends], to: &[Range<u32>]) -> Vec<Vec<u8>> {
    let mut exported: Vec<Vec<u8>> = to.iter().map(|_| Vec::new()).collect();
    for ((own, task), ends) in (first.0..).zip(tasks).zip(ends) {
        for end in [End::Sends, End::Receives] {
            for (index, Channel { comm, peer, tag, purpose, length }) in end.side(task).channels() {
                let at = to.partition_point(|range| range.end <= peer.0);
                if !to.get(at).is_some_and(|range| range.contains(&peer.0)) {
                    continue;
                }
                let (out, list) = (&mut exported[at], ends.list(end, index));
                for field in [end as u32, own, comm.0, peer.0, tag as u32, purpose as u32] {
                    varint::put(out, field.into());
                }
                varint::put(out, length);
                varint::put(out, list.len() as u64);
                out.extend_from_slice(list);
            }
        }
    }
    exported
}

/// Appends indices of messages: the distance of each from the one before.
fn put_messages(messages: &[u32], encoded: &mut Vec<u8>) {
    let mut last = 0;
    for &message in messages {
        varint::put(encoded, (message - last).into());
        last = message;
    }
}

/// Appends the fates that receives give: one number for each run of equal ones.
fn put_fates(receives: &[u32], fates: &[Fate], encoded: &mut Vec<u8>) {
    for run in receives.chunk_by(|&a, &b| fates[a as usize] == fates[b as usize]) {
        varint::put(encoded, run.len() as u64 * 4 + fates[run[0] as usize] as u64);
    }
}

/// The rest of a list that [`put_messages`] or [`put_fates`] wrote.
#[derive(Clone, Copy, Debug, Default)]
struct List<'a> {
    rest: &'a [u8],
    /// The last index, or the rest of a run.
    state: u64,
}

impl List<'_> {
    /// The next message, if there are more.
    #[inline(always)]
    fn message(&mut self) -> Option<MessageIndex> {
        self.state = self.state.wrapping_add(varint::take(&mut self.rest)?);
        Some(MessageIndex(self.state as u32))
    }

    /// The next fate, if there are more.
    #[inline(always)]
    fn fate(&mut self) -> Option<Fate> {
        if self.state < 4 {
            self.state = varint::take(&mut self.rest)?;
        }
        let fate =
            [Fate::Unawaited, Fate::Awaited, Fate::HasDependent, Fate::Dropped][(self.state % 4) as usize];
        self.state = self.state.saturating_sub(4);
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
    let has_unawaited = matches.fates.contains(&Fate::Unawaited);
    let concerns = |channel: Channel| channel.peer == own || has_unawaited && awaits_target(channel.purpose);
    if lost > 0 || task.sends.channels().any(|(_, channel)| concerns(channel)) {
        settle_messages(own, task, matches, &mut settled);
    }
    // A receive that no call waited for is counted under `never_completed`.
    let without_message = (0..).zip(&matches.messages).zip(&task.fates);
    let unmatched = without_message
        .filter(|&((_, &message), &fate)| message == MessageIndex::NONE && fate != Fate::Unawaited)
        .filter_map(|((receive, _), _)| Some((receive, task.receives.get(receive)?)));
    for (receive, channel) in unmatched {
        settled.unmatched.receives += 1;
        settled.unmatched.show(UnmatchedMessage {
            kind: UnmatchedKind::Receive,
            task: own,
            peer: Some(channel.peer),
            tag: Some(channel.tag),
            bytes: room(own, receive),
        });
    }
    settled
}

/// Whether the target of a transfer waits for it.
fn awaits_target(purpose: Purpose) -> bool {
    purpose.is_transfer() && purpose != Purpose::Put
}

/// Reads the records of `task` again for decisions that depend on message sizes: empty messages to itself, and the
/// report of unmatched sends and transfers.
fn settle_messages(own: Rank, task: &Task, matches: &mut Matches, settled: &mut Matched) {
    let mut records = Cursor::new(&task.records);
    let mut message = 0u32;
    while let Some((_, record)) = records.next(u64::MAX) {
        let Body::Message(bytes) = record.body else { continue };
        let channel = task.sends.get(message);
        let to_itself = channel.is_some_and(|channel| channel.peer == own);
        let fate = &mut matches.fates[message as usize];
        if *fate == Fate::Unawaited && to_itself && bytes == Bytes::ZERO {
            *fate = Fate::Dropped;
            settled.empty_self += 1;
        } else if *fate == Fate::Unawaited && bytes > Bytes::ZERO {
            let awaits = channel.is_some_and(|channel| awaits_target(channel.purpose));
            settled.never_synchronised += u64::from(awaits);
        } else if *fate == Fate::Dropped {
            settled.dropped_bytes = settled.dropped_bytes.saturating_add(bytes.0);
            match channel {
                // A cancelled send has no channel.
                None => settled.cancelled += 1,
                Some(channel) => {
                    settled.unmatched.sends += 1;
                    settled.unmatched.show(UnmatchedMessage {
                        kind: UnmatchedKind::Send,
                        task: own,
                        peer: Some(channel.peer),
                        tag: Some(channel.tag),
                        bytes: Some(bytes),
                    });
                }
            }
        }
        message += 1;
    }
}
