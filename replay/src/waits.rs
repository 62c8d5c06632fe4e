//! Who waits for whom in a replay: each wait, divided by its cause.
//!
//! A simulator, or whoever watches one, passes on what an engine tells its [`Sink`](crate::Sink). A wait begins when the record before has started (there
//! is no computing in front of it) and ends when what it waits for has come:
//!
//! ```text
//! reception    |--- the sender has not sent yet ---|--- the message is under way ---|
//! collective   |--- another member has not entered yet ---|--- messages are under way ---|
//! ```

use crate::engine::Engine;
use crate::labels::Labels;
use crate::message::{Left, Started};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use vef_format::ids::Rank;
use vef_format::raw::{AWAITED, COLLECTIVE, DEPENDENCY, KIND, MESSAGE};
use vef_format::units::Picos;

/// Why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The sender of the message for which it waits has not sent it yet.
    LateSender,
    /// The message for which it waits is under way.
    Message,
    /// Another member has not entered the collective yet.
    LateMember,
    /// All members that it waits for have entered the collective; its messages are under way.
    Collective,
    /// A send of its own is not complete.
    Send,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 5] =
        [Self::LateSender, Self::Message, Self::LateMember, Self::Collective, Self::Send];
}

/// A wait, or the part of it that has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Which of the traces, from 0.
    pub job: u32,
    /// The task that waits.
    pub task: Rank,
    /// The number of its record that waits, from 0: the call in which it waits is that of the record before.
    pub record: u64,
    /// Why.
    pub cause: Cause,
    /// For which other task, if for a single one: the sender, or the last member that entered.
    pub on: Option<Rank>,
    /// Its beginning.
    pub from: Picos,
    /// Its end.
    pub to: Picos,
}

/// Divides the waits of a replay by cause.
#[derive(Debug)]
pub struct Waits {
    /// By job and rank.
    tasks: Vec<Vec<Task>>,
    /// When the sends started for which a record is still to wait, by job and line, and by whom.
    sends: HashMap<(u32, u64), (Rank, Picos)>,
    /// When members entered the collectives in progress, by job and id.
    collectives: HashMap<(u32, u64), BTreeSet<(Picos, Rank)>>,
}

#[derive(Clone, Debug, Default)]
struct Task {
    /// The start of its last record.
    last: Picos,
    /// Collectives that it has entered and not left.
    inside: Vec<(u64, Picos)>,
    /// Collectives that it has left: until when it waited for which member.
    left: Vec<(u64, Picos, Option<Rank>)>,
}

/// Collectives that a task has left and that no record has waited for yet, at most.
const MOST_LEFT: usize = 64;

impl Waits {
    /// For an engine that has not begun.
    pub fn new(engine: &Engine) -> Self {
        let mut number = 0;
        let jobs = (0..engine.jobs()).map(|job| {
            let tasks = (0..engine.tasks(job)).map(|_| {
                let last = engine.reached(number).unwrap_or_default();
                number += 1;
                Task { last, ..Task::default() }
            });
            tasks.collect()
        });
        Self { tasks: jobs.collect(), sends: HashMap::new(), collectives: HashMap::new() }
    }

    /// A record starts; `see` gets the parts of the wait in front of it, in their order.
    pub fn started(&mut self, started: &Started, mut see: impl FnMut(&Wait)) {
        let &Started { job, task, number, record, released, at } = started;
        let own = &mut self.tasks[job as usize][task.index()];
        let from = std::mem::replace(&mut own.last, at);
        let mut part = |cause, on, from: Picos, to: Picos| {
            if from < to {
                see(&Wait { job, task, record: number, cause, on, from, to });
            }
        };
        let Some(record) = record else { return part(Cause::Send, None, from, released) };
        match record.tag & DEPENDENCY {
            2 => {
                let sent = self.sends.remove(&(job, record.after));
                let (on, late) = sent.map_or((None, from), |(by, at)| (Some(by), at));
                let late = late.clamp(from, released.max(from));
                part(Cause::LateSender, on, from, late);
                part(Cause::Message, on, late, released);
            }
            3 => {
                let place = own.left.iter().position(|&(id, ..)| id == record.after);
                let (_, late, on) = place.map_or((0, from, None), |place| own.left.remove(place));
                let late = late.clamp(from, released.max(from));
                part(Cause::LateMember, on, from, late);
                part(Cause::Collective, None, late, released);
            }
            _ => part(Cause::Send, None, from, released),
        }
        match record.tag & KIND {
            MESSAGE if record.tag & AWAITED != 0 => drop(self.sends.insert((job, record.id), (task, at))),
            COLLECTIVE => {
                own.inside.push((record.id, at));
                self.collectives.entry((job, record.id)).or_default().insert((at, task));
            }
            _ => {}
        }
    }

    /// A task's part of a collective is complete.
    pub fn left(&mut self, left: &Left) {
        let &Left { job, task, id, at, last: is_over } = left;
        let own = &mut self.tasks[job as usize][task.index()];
        let Some(place) = own.inside.iter().position(|&(inside, _)| inside == id.0) else { return };
        let (_, entered) = own.inside.remove(place);
        let Some(entries) = self.collectives.get(&(job, id.0)) else { return };
        let last = entries.range(..=(at, Rank(u32::MAX))).next_back();
        let (late, on) = match last {
            Some(&(last, by)) if last > entered && by != task => (last, Some(by)),
            _ => (entered, None),
        };
        // Members may have left before others enter, such as the root of a broadcast.
        if is_over {
            self.collectives.remove(&(job, id.0));
        }
        if own.left.len() == MOST_LEFT {
            own.left.remove(0);
        }
        own.left.push((id.0, late, on));
    }
}

/// A number of waits, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    /// Waits, or parts of them with one cause.
    pub waits: u64,
    /// Their time, in picoseconds; saturates.
    pub time: u64,
}

impl WaitSum {
    fn add(&mut self, wait: &Wait) {
        self.waits += 1;
        self.time = self.time.saturating_add(wait.to.0 - wait.from.0);
    }
}

/// Where in a program a task waits, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitPlace {
    /// Why.
    pub cause: Cause,
    /// The MPI function in which it waits, if the trace tells.
    pub function: Option<Arc<str>>,
    /// The innermost phase in which that is called.
    pub phase: Option<Arc<str>>,
}

/// Who waits for whom, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitPair {
    /// Which of the traces, from 0.
    pub job: u32,
    /// The task that waits.
    pub task: Rank,
    /// The task that it waits for.
    pub on: Rank,
    /// Why.
    pub cause: Cause,
}

/// Waits, added up.
#[derive(Debug, Default)]
pub struct WaitSums {
    /// What the traces say of their records; by job.
    labels: Vec<Option<Labels>>,
    places: HashMap<WaitPlace, WaitSum>,
    pairs: HashMap<WaitPair, WaitSum>,
    /// Waits of pairs beyond the limit.
    others: WaitSum,
}

/// Pairs of tasks and causes that are kept apart.
const MOST_PAIRS: usize = 1 << 20;

impl WaitSums {
    /// Of replays with these labels, by job.
    pub fn new(labels: Vec<Option<Labels>>) -> Self {
        Self { labels, ..Self::default() }
    }

    /// Adds a wait; those of a task in their order. Where the notes of a container cannot be read, the wait has no function and phase.
    pub fn add(&mut self, wait: &Wait) {
        let labels = self.labels.get_mut(wait.job as usize).and_then(Option::as_mut);
        let at = wait.record.checked_sub(1).zip(labels);
        let label = at.and_then(|(call, labels)| labels.of(wait.task, call).ok()).unwrap_or_default();
        let place = WaitPlace { cause: wait.cause, function: label.function, phase: label.phase };
        self.places.entry(place).or_default().add(wait);
        let Some(on) = wait.on else { return };
        let pair = WaitPair { job: wait.job, task: wait.task, on, cause: wait.cause };
        match self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
            true => self.pairs.entry(pair).or_default().add(wait),
            false => self.others.add(wait),
        }
    }

    /// By place, over all jobs: most time first.
    pub fn places(&self) -> Vec<(WaitPlace, WaitSum)> {
        sorted(self.places.clone())
    }

    /// By pair, most time first; and the waits of pairs that were too many to keep apart.
    pub fn pairs(&self) -> (Vec<(WaitPair, WaitSum)>, WaitSum) {
        (sorted(self.pairs.clone()), self.others)
    }
}

fn sorted<K: Ord>(sums: HashMap<K, WaitSum>) -> Vec<(K, WaitSum)> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|one, other| (other.1.time, &one.0).cmp(&(one.1.time, &other.0)));
    sums
}
