//! Which send met which receive, and whether all members of a communicator called the same collectives.
//!
//! Both sides of a channel look each other up once a channel, not once a message, and each side writes only what
//! is its own; so all tasks are matched at once.

use crate::channels::{Channel, NONE, Side};
use crate::communicators::Known;
use crate::error::{Call, Disagreement};
use crate::packed::{Body, Unpacker};
use crate::summary::{Loner, LonerKind, SHOWN, Unmatched};
use crate::task::Task;
use rayon::prelude::*;
use std::collections::BTreeMap;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its reception is waited for.
    Awaited,
    /// It was received, and nobody waited for that.
    Unawaited,
    /// It stands not in the trace.
    Dropped,
}

/// The other halves of one task's messages and receives.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    /// For each receive the number of the message among its sender's; [`NONE`]: it met none.
    pub(crate) messages: Vec<u32>,
    /// For each message what became of it.
    pub(crate) fates: Vec<Fate>,
    /// How many messages have a partner.
    pub(crate) matched: u64,
    /// How many messages were cancelled.
    pub(crate) cancelled: u64,
    /// How many messages to the task itself stand not in the trace because they look like marks.
    pub(crate) empty_self: u64,
    /// Payload of the messages that stand not in the trace.
    pub(crate) dropped_bytes: u64,
    /// What has no partner.
    pub(crate) unmatched: Unmatched,
}

/// Matches all messages. `room(task, receive)` finds out what room a receive has, for the report.
pub(crate) fn match_messages(
    tasks: &[Task],
    room: &(dyn Fn(Rank, u32) -> Option<Bytes> + Sync),
) -> Vec<Partners> {
    let grouped: Vec<_> = tasks.par_iter().map(|task| (task.sends.group(), task.receives.group())).collect();
    // The channel seen from the other end, where it has the number that is looked up in `side`.
    let other_end = |own: usize, channel: Channel, side: fn(&Task) -> &Side| {
        let peer = channel.peer.index();
        let mirrored = Channel { peer: Rank(own as u32), ..channel };
        tasks.get(peer).and_then(|task| side(task).find(&mirrored)).map(|number| (peer, number))
    };
    let partners = |(own, task): (usize, &Task)| {
        let mut partners = Partners {
            messages: vec![NONE; task.receives.len()],
            fates: vec![Fate::Dropped; task.sends.len()],
            ..Partners::default()
        };
        let mut lonely_sends = 0;
        for (number, channel) in task.sends.channels() {
            let mine = grouped[own].0.of(number);
            let theirs = other_end(own, channel, |task| &task.receives);
            let theirs = theirs.map_or((0, &[][..]), |(peer, number)| (peer, grouped[peer].1.of(number)));
            for (&message, &receive) in mine.iter().zip(theirs.1) {
                let awaited = tasks[theirs.0].awaited[receive as usize];
                partners.fates[message as usize] = if awaited { Fate::Awaited } else { Fate::Unawaited };
            }
            partners.matched += mine.len().min(theirs.1.len()) as u64;
            lonely_sends += mine.len().saturating_sub(theirs.1.len()) as u64;
        }
        partners.cancelled = task.sends.len() as u64 - partners.matched - lonely_sends;
        let mut lonely_receives = 0;
        for (number, channel) in task.receives.channels() {
            let mine = grouped[own].1.of(number);
            let theirs = other_end(own, channel, |task| &task.sends);
            let theirs = theirs.map_or(&[][..], |(peer, number)| grouped[peer].0.of(number));
            for (&receive, &message) in mine.iter().zip(theirs) {
                partners.messages[receive as usize] = message;
            }
            lonely_receives += mine.len().saturating_sub(theirs.len()) as u64;
        }
        let to_itself = task.sends.channels().any(|(_, channel)| channel.peer.index() == own);
        if to_itself || partners.cancelled > 0 || lonely_sends > 0 {
            look_at_messages(Rank(own as u32), task, &mut partners);
        }
        partners.unmatched.sends = lonely_sends;
        partners.unmatched.receives = lonely_receives + task.unresolved.len() as u64;
        if partners.unmatched.receives > 0 {
            let lonely = (0..task.receives.len() as u32)
                .filter(|&receive| partners.messages[receive as usize] == NONE)
                .filter_map(|receive| Some((receive, task.receives.of(receive)?)))
                .take(if lonely_receives > 0 { SHOWN } else { 0 });
            let shown = lonely.map(|(receive, channel)| Loner {
                kind: LonerKind::Receive,
                task: Rank(own as u32),
                peer: Some(channel.peer),
                tag: Some(channel.tag),
                bytes: room(Rank(own as u32), receive),
            });
            let shown: Vec<_> = shown.chain(task.unresolved.iter().copied()).take(SHOWN).collect();
            partners.unmatched.first.extend(shown);
        }
        partners
    };
    tasks.par_iter().enumerate().map(partners).collect()
}

/// Reads the records of `task` once more for what depends on the size of single messages: those to itself that
/// look like marks, and the report of those without a partner.
fn look_at_messages(own: Rank, task: &Task, partners: &mut Partners) {
    let mut records = Unpacker::default();
    let mut message = 0u32;
    while let Some(record) = records.next(&task.records) {
        let Body::Message { dst, bytes } = record.body else { continue };
        let fate = &mut partners.fates[message as usize];
        if *fate == Fate::Unawaited && dst == own && bytes == Bytes::ZERO {
            *fate = Fate::Dropped;
            partners.empty_self += 1;
        } else if *fate == Fate::Dropped {
            partners.dropped_bytes = partners.dropped_bytes.saturating_add(bytes.0);
            // A cancelled one has lost its channel.
            if let Some(channel) = task.sends.of(message)
                && partners.unmatched.first.len() < SHOWN
            {
                partners.unmatched.first.push(Loner {
                    kind: LonerKind::Send,
                    task: own,
                    peer: Some(dst),
                    tag: Some(channel.tag),
                    bytes: Some(bytes),
                });
            }
        }
        message += 1;
    }
}

/// The collective operations of a communicator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operations {
    /// How many operations all members came to.
    pub(crate) complete: u64,
    /// How many parts belong to operations that not all members came to.
    pub(crate) incomplete_parts: u64,
}

/// Compares what the members of every communicator called; the answer is by
/// [`Identity`](crate::communicators::Identity). Unless `lenient`, each member must make as many calls as any other.
pub(crate) fn match_collectives(
    tasks: &[Task],
    known: &[Known],
    lenient: bool,
) -> Result<Vec<Operations>, Box<Disagreement>> {
    let mut members: Vec<Vec<(Rank, &[Call])>> = vec![Vec::new(); known.len()];
    for (rank, task) in tasks.iter().enumerate() {
        for calls in &task.calls {
            members[calls.comm.0 as usize].push((Rank(rank as u32), &calls.made));
        }
    }
    // In the order of a trace, so that the first disagreement is the same one each time.
    let mut order: Vec<usize> = (0..known.len()).filter(|&at| !members[at].is_empty()).collect();
    order.sort_unstable_by_key(|&at| known[at].order);
    let compared: Vec<_> =
        order.par_iter().map(|&at| (at, compare(&known[at], &members[at], lenient))).collect();
    let mut operations = vec![Operations::default(); known.len()];
    for (at, compared) in compared {
        operations[at] = compared?;
    }
    Ok(operations)
}

/// Compares what the members of one communicator called; `calls` is not empty and by ascending task.
fn compare(known: &Known, calls: &[(Rank, &[Call])], lenient: bool) -> Result<Operations, Box<Disagreement>> {
    let size = known.group.count();
    let disagreement = |position: usize, one: (Rank, Call), other: (Rank, Option<Call>)| {
        let members = known.group.iter().take(8).collect();
        Box::new(Disagreement { members, size, position: position as u64, one, other })
    };
    let Some(&(busiest, most)) = calls.iter().rev().max_by_key(|(_, made)| made.len()) else {
        return Ok(Operations::default());
    };
    for &(task, made) in calls {
        if let Some(at) = made.iter().zip(most).position(|(a, b)| a != b) {
            return Err(disagreement(at, (busiest, most[at]), (task, Some(made[at]))));
        }
    }
    let least = calls.iter().min_by_key(|(_, made)| made.len()).map_or(0, |(_, made)| made.len());
    let complete = if calls.len() < size as usize { 0 } else { least };
    if complete < most.len() && !lenient {
        let by_task: BTreeMap<Rank, usize> = calls.iter().map(|&(task, made)| (task, made.len())).collect();
        let made_by = |task: Rank| by_task.get(&task).copied().unwrap_or(0);
        let missing = known.group.iter().find(|&task| made_by(task) == complete).unwrap_or(busiest);
        return Err(disagreement(complete, (busiest, most[complete]), (missing, None)));
    }
    let parts: u64 = calls.iter().map(|(_, made)| made.len() as u64).sum();
    Ok(Operations {
        complete: complete as u64,
        incomplete_parts: parts - complete as u64 * calls.len() as u64,
    })
}
