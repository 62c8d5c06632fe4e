//! Receives with a wildcard whose message the trace does not tell.
//!
//! When every other receive of the rank has its message, what remains was received by these: a wildcard that only one channel
//! (source, tag) with messages left can have served gets one of its messages, until no more can be told. What is ambiguous is
//! never guessed: not what a rank sent whose calls end early, because the message may be one of those that are not there.

use crate::error::Problem;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use vef_format::capture::event::{
    Action, Communicator, Completion, Completions, Event, Origin, Outcome, RequestId,
};
use vef_format::capture::layout::rank_path;
use vef_format::capture::{Capture, CaptureError, Group, RankWriter};
use vef_format::ids::{CommId, CommRank, Rank};

/// Rounds over all wildcards; each has to tell some that the rounds before did not.
const ROUNDS: usize = 16;

/// A communicator of the run: an index that all its members find.
type Index = u32;

/// Messages left, by tag and source.
type Left = BTreeMap<(i32, u32), i64>;

/// A wildcard that completed without telling its message.
#[derive(Debug)]
struct Open {
    request: RequestId,
    comm: Index,
    source: Option<u32>,
    tag: Option<i32>,
    /// Whether its message may be from another rank whose calls end early.
    from_cut: bool,
    found: Option<(u32, i32)>,
}

/// The communicators of one rank.
#[derive(Debug, Default)]
struct Local(HashMap<CommId, (Index, Arc<Group>)>);

#[derive(Debug, Default)]
struct Communicators(HashMap<(Origin<Index>, Arc<Group>), Index>);

impl Local {
    fn define(&mut self, described: &Communicator<'_>, tasks: u32, all: &mut Communicators) {
        let parent = |comm: CommId| self.0.get(&comm).map(|known| known.0).ok_or(());
        let (Some(group), Ok(origin)) =
            (Group::new(described.members, tasks), described.origin.with_parent(parent))
        else {
            return;
        };
        let (group, next) = (Arc::new(group), all.0.len() as Index);
        let index = *all.0.entry((origin, group.clone())).or_insert(next);
        self.0.insert(described.id, (index, group));
    }
}

/// Gives each wildcard of the ranks `unresolved` of a capture its message, where it is the only one possible; otherwise an error,
/// or with `partial` the receive is left out. The calls of the ranks `cut` end early. Returns the number of those that were told, and left out.
pub(crate) fn resolve(
    directory: &Path,
    unresolved: &[u32],
    cut: &BTreeSet<u32>,
    partial: bool,
) -> Result<(u64, u64), Problem> {
    if unresolved.is_empty() {
        return Ok((0, 0));
    }
    let capture = Capture::open(directory)?;
    let tasks = capture.tasks();
    let mut left: HashMap<u32, HashMap<Index, Left>> =
        unresolved.iter().map(|&rank| (rank, HashMap::new())).collect();
    let (mut all, mut open) = (Communicators::default(), BTreeMap::new());
    for rank in 0..tasks {
        let wildcards = count(&capture, Rank(rank), cut, &mut all, &mut left)?;
        if left.contains_key(&rank) {
            open.insert(rank, wildcards);
        }
    }
    let (mut told, mut dropped) = (0, 0);
    for (rank, mut wildcards) in open {
        eliminate(&mut wildcards, left.get_mut(&rank).unwrap_or(&mut HashMap::new()));
        let unknown = wildcards.iter().filter(|open| open.found.is_none()).count() as u64;
        if let Some(first) = wildcards.iter().find(|open| open.found.is_none())
            && !partial
        {
            let any = |what: Option<String>| what.unwrap_or_else(|| "any".to_owned());
            return Err(Problem::Invalid(format!(
                "rank {rank}: the trace does not tell which message {unknown} receives with a wildcard got, and it does not \
                 follow from the others (the first: source {}, tag {}); vef import --partial leaves them out",
                any(first.source.map(|source| source.to_string())),
                any(first.tag.map(|tag| tag.to_string())),
            )));
        }
        (told, dropped) = (told + wildcards.len() as u64 - unknown, dropped + unknown);
        rewrite(&capture, directory, Rank(rank), &wildcards)?;
    }
    Ok((told, dropped))
}

/// Counts the messages of a rank for others, and those that its receives take. Returns its wildcards that tell nothing.
fn count(
    capture: &Capture,
    rank: Rank,
    cut: &BTreeSet<u32>,
    all: &mut Communicators,
    left: &mut HashMap<u32, HashMap<Index, Left>>,
) -> Result<Vec<Open>, Problem> {
    let tasks = capture.tasks();
    let mut local = Local::default();
    let mut posted: HashMap<RequestId, (CommId, Option<CommRank>, Option<i32>)> = HashMap::new();
    let mut wildcards = Vec::new();
    let concerned = left.contains_key(&rank.0);
    let is_cut = |sender: Rank| sender != rank && cut.contains(&sender.0);
    let mut with_cut: HashMap<CommId, bool> = HashMap::new();
    let mut add = |local: &Local, to: Option<Rank>, comm: CommId, channel: (u32, i32), by: i64| {
        if let (Some(to), Some(&(index, _))) = (to, local.0.get(&comm))
            && let Some(comms) = left.get_mut(&to.0)
        {
            let (source, tag) = channel;
            *comms.entry(index).or_default().entry((tag, source)).or_default() += by;
        }
    };
    capture.events(rank)?.each(|event: &Event<'_>| -> Result<(), CaptureError> {
        match &event.action {
            Action::Communicator(described) => local.define(described, tasks, all),
            Action::Send(send) | Action::Exchange { send, .. } => {
                if let Some((_, group)) = local.0.get(&send.comm)
                    && let Some(me) = group.rank_of(rank)
                {
                    add(&local, group.get(send.dest), send.comm, (me.0, send.tag), 1);
                }
                if let Action::Exchange { receive, .. } = &event.action {
                    add(&local, Some(rank), receive.comm, (receive.source.0, receive.tag), -1);
                }
            }
            Action::Receive(receive) => {
                add(&local, Some(rank), receive.comm, (receive.source.0, receive.tag), -1);
            }
            Action::PostReceive(post) if concerned => {
                if let (Some(source), Some(tag)) = (post.source, post.tag) {
                    add(&local, Some(rank), post.comm, (source.0, tag), -1);
                }
                posted.insert(post.request, (post.comm, post.source, post.tag));
            }
            Action::Complete(list) if concerned => {
                for Completion { request, outcome } in list.iter() {
                    let Some((comm, source, tag)) = posted.remove(&request) else { continue };
                    match (outcome, source, tag) {
                        (Outcome::Cancelled, Some(source), Some(tag)) => {
                            add(&local, Some(rank), comm, (source.0, tag), 1);
                        }
                        (Outcome::Cancelled, ..) | (Outcome::Done, Some(_), Some(_)) => {}
                        (Outcome::Received { source, tag, .. }, ..) => {
                            add(&local, Some(rank), comm, (source.0, tag), -1);
                        }
                        (Outcome::Done, ..) => {
                            let Some(&(index, ref group)) = local.0.get(&comm) else { continue };
                            let from_cut = match source {
                                Some(source) => group.get(source).is_some_and(is_cut),
                                None => *with_cut.entry(comm).or_insert_with(|| {
                                    let mut cut = cut.iter().map(|&sender| Rank(sender));
                                    cut.any(|sender| is_cut(sender) && group.rank_of(sender).is_some())
                                }),
                            };
                            let source = source.map(|source| source.0);
                            wildcards.push(Open { request, comm: index, source, tag, from_cut, found: None });
                        }
                    }
                }
            }
            Action::Forget(request) => drop(posted.remove(request)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(wildcards)
}

/// Finds the messages of wildcards that can have only one.
fn eliminate(wildcards: &mut [Open], left: &mut HashMap<Index, Left>) {
    for left in left.values_mut() {
        left.retain(|_, &mut messages| messages > 0);
    }
    for _ in 0..ROUNDS {
        let mut progress = false;
        for open in wildcards.iter_mut().filter(|open| open.found.is_none() && !open.from_cut) {
            let Some(left) = left.get_mut(&open.comm) else { continue };
            let tags = open.tag.map_or((i32::MIN, i32::MAX), |tag| (tag, tag));
            let range = left.range((tags.0, 0)..=(tags.1, u32::MAX)).map(|(&channel, _)| channel);
            let mut fits = range.filter(|&(_, source)| open.source.is_none_or(|asked| asked == source));
            let (Some(channel), None) = (fits.next(), fits.next()) else { continue };
            drop(fits);
            if let Some(messages) = left.get_mut(&channel) {
                *messages -= 1;
                if *messages == 0 {
                    left.remove(&channel);
                }
            }
            open.found = Some((channel.1, channel.0));
            progress = true;
        }
        if !progress {
            return;
        }
    }
}

/// Writes the file of a rank anew, with the messages found.
fn rewrite(capture: &Capture, directory: &Path, rank: Rank, wildcards: &[Open]) -> Result<(), Problem> {
    let Some(info) = capture.rank(rank) else { return Ok(()) };
    let found: HashMap<RequestId, Outcome> = wildcards
        .iter()
        .map(|open| {
            let outcome = match open.found {
                Some((source, tag)) => Outcome::Received { source: CommRank(source), tag, bytes: None },
                None => Outcome::Cancelled,
            };
            (open.request, outcome)
        })
        .collect();
    let aside = directory.join("resolved");
    let mut writer = RankWriter::create(&aside, info)?;
    let mut events = capture.events(rank)?;
    for function in events.functions().to_vec() {
        writer.calls(function)?;
    }
    let mut list = Vec::new();
    events.each(|event: &Event<'_>| -> Result<(), CaptureError> {
        let Action::Complete(completions) = event.action else { return writer.event(event) };
        list.clear();
        list.extend(completions.iter().map(|completion| Completion {
            outcome: found.get(&completion.request).copied().unwrap_or(completion.outcome),
            ..completion
        }));
        writer.event(&Event { action: Action::Complete(Completions::List(&list)), ..event.clone() })
    })?;
    writer.finish()?;
    std::fs::rename(rank_path(&aside, rank), rank_path(directory, rank))?;
    std::fs::remove_dir(&aside)?;
    Ok(())
}
