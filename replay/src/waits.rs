//! Who waits for whom in a replay: each wait, divided by its cause.
//!
//! A simulator, or whoever watches one, passes on what an engine tells its [`Sink`](crate::Sink). A wait begins when the record before has started (there
//! is no computing in front of it) and ends when what it waits for has come:
//!
//! ```text
//! reception    |--- the sender has not sent yet ---|--- the message is under way ---|
//! collective   |--- another member has not entered yet ---|--- messages are under way ---|
//! send         |--- its receiver computes ---|--- the message is under way ---|
//! ```

use crate::engine::Engine;
use crate::labels::Labels;
use crate::message::{Left, Met, Started};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use vef_format::ids::Rank;
use vef_format::raw::{AWAITED, COLLECTIVE, KIND, MESSAGE};
use vef_format::units::Picos;
use vef_format::waits::{Cause, WaitingFor, WaitingIn};

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
    /// For which other task, if for a single one: the sender, the receiver, or the last member that entered.
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
    /// The number of the record behind.
    next: u64,
    /// Collectives that it has left.
    left: Vec<Leaving>,
    /// Its sends that have waited for their receiver: when they left, and whose receiver that was.
    met: Vec<(u64, Picos, Rank)>,
}

/// A task leaves a collective.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    id: u64,
    /// When.
    at: Picos,
    /// Until when it waited for a member, and for which one.
    late: Picos,
    by: Rank,
}

/// Collectives that a task has left, and sends that left late, for which no record has waited yet, at most.
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
        let &Started { job, task, number, record, dependency, after, released, at } = started;
        let own = &mut self.tasks[job as usize][task.index()];
        let from = std::mem::replace(&mut own.last, at);
        own.next = number + u64::from(record.is_some());
        let mut parts = |[late_cause, cause]: [Cause; 2], late: Option<(Picos, Rank)>, on| {
            let (late, by) = late.map_or((from, None), |(late, by)| (late, Some(by)));
            divide((job, task, number), (late_cause, by, late), (cause, on), from..released, &mut see);
        };
        match dependency {
            2 => {
                let sent = self.sends.remove(&(job, after));
                let on = sent.map(|(by, _)| by);
                parts([Cause::LateSender, Cause::Message], sent.map(|(by, at)| (at, by)), on);
            }
            3 => {
                let place = own.left.iter().position(|left| left.id == after);
                let left = place.map(|place| own.left.remove(place));
                parts([Cause::LateMember, Cause::Collective], left.map(|left| (left.late, left.by)), None);
            }
            _ => {
                let place = own.met.iter().position(|&(line, ..)| line == after);
                let met = place.map(|place| own.met.remove(place));
                parts([Cause::LateReceiver, Cause::Send], met.map(|(_, at, by)| (at, by)), None);
            }
        }
        let Some(record) = record else { return };
        match record.tag & KIND {
            MESSAGE if record.tag & AWAITED != 0 => drop(self.sends.insert((job, record.id), (task, at))),
            COLLECTIVE => drop(self.collectives.entry((job, record.id)).or_default().insert((at, task))),
            _ => {}
        }
    }

    /// A message leaves that had waited for its receiver.
    pub fn met(&mut self, met: &Met) {
        let Some(line) = met.line else { return };
        let own = &mut self.tasks[met.job as usize][met.src.index()].met;
        if own.len() == MOST_LEFT {
            own.remove(0);
        }
        own.push((line, met.at, met.dst));
    }

    /// A task's part of a collective is complete.
    pub fn left(&mut self, left: &Left) {
        let &Left { job, task, id, at, last: is_over } = left;
        let own = &mut self.tasks[job as usize][task.index()].left;
        let Some(entries) = self.collectives.get(&(job, id.0)) else { return };
        // Where this is the task itself there is no wait for a member.
        let Some(&(late, by)) = entries.range(..=(at, Rank(u32::MAX))).next_back() else { return };
        // Members may have left before others enter, such as the root of a broadcast.
        if is_over {
            self.collectives.remove(&(job, id.0));
        }
        if own.len() == MOST_LEFT {
            own.remove(0);
        }
        own.push(Leaving { id: id.0, at, late, by });
    }

    /// Nothing starts any more: `see` gets the waits behind the last records, for collectives that no record waits for.
    pub fn end(&mut self, mut see: impl FnMut(&Wait)) {
        for (job, tasks) in (0..).zip(&mut self.tasks) {
            for (task, own) in (0..).map(Rank).zip(tasks) {
                let Some(last) = own.left.drain(..).max_by_key(|left| left.at) else { continue };
                let (place, late) = ((job, task, own.next), (Cause::LateMember, Some(last.by), last.late));
                divide(place, late, (Cause::Collective, None), own.last..last.at, &mut see);
            }
        }
    }
}

/// Divides a wait of a task (in a job, in front of a record): until something came late, if that is within the wait, and behind that.
fn divide(
    (job, task, record): (u32, Rank, u64),
    (late_cause, late_on, late): (Cause, Option<Rank>, Picos),
    (cause, on): (Cause, Option<Rank>),
    wait: Range<Picos>,
    see: &mut impl FnMut(&Wait),
) {
    let late = late.clamp(wait.start, wait.end.max(wait.start));
    for (cause, on, from, to) in [(late_cause, late_on, wait.start, late), (cause, on, late, wait.end)] {
        if from < to {
            see(&Wait { job, task, record, cause, on, from, to });
        }
    }
}

/// A number of waits, and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    waits: u64,
    /// Saturates.
    time: Picos,
}

impl Sum {
    fn add(&mut self, wait: &Wait) {
        self.waits += 1;
        self.time = Picos(self.time.0.saturating_add(wait.to.0 - wait.from.0));
    }
}

/// Why a task waits, in which MPI function and phase.
type Place = (Cause, Option<Arc<str>>, Option<Arc<str>>);
/// Which task of which trace waits for which other one, and why.
type Pair = (u32, Rank, Rank, Cause);

/// Who waits for whom, and why: the waits of the program's tasks in a replay, added up.
#[derive(Debug)]
pub struct WaitSums {
    waits: Waits,
    sums: Sums,
}

#[derive(Debug)]
struct Sums {
    /// What the traces say of their records; by job.
    labels: Vec<Option<Labels>>,
    /// Number of tasks that ran the program, by job.
    program_tasks: Vec<u32>,
    places: HashMap<Place, Sum>,
    pairs: HashMap<Pair, Sum>,
    /// Waits of pairs beyond the limit.
    others: u64,
}

/// Pairs of tasks and causes that are kept apart.
const MOST_PAIRS: usize = 1 << 20;

impl WaitSums {
    /// For an engine that has not begun; `labels` are those of its jobs' traces. Where the notes of a container cannot be read, waits have
    /// no function and phase.
    pub fn new(engine: &Engine, labels: Vec<Option<Labels>>) -> Self {
        let program_tasks = (0..engine.jobs()).map(|job| engine.program_tasks(job)).collect();
        let (places, pairs) = (HashMap::new(), HashMap::new());
        let sums = Sums { labels, program_tasks, places, pairs, others: 0 };
        Self { waits: Waits::new(engine), sums }
    }

    /// A record starts.
    pub fn started(&mut self, started: &Started) {
        let Self { waits, sums } = self;
        waits.started(started, |wait| sums.add(wait));
    }

    /// A message leaves that had waited for its receiver.
    pub fn met(&mut self, met: &Met) {
        self.waits.met(met);
    }

    /// A task's part of a collective is complete.
    pub fn left(&mut self, left: &Left) {
        self.waits.left(left);
    }

    /// Nothing starts any more.
    pub fn end(&mut self) {
        let Self { waits, sums } = self;
        waits.end(|wait| sums.add(wait));
    }

    /// By place, over all jobs: most time first.
    pub fn places(&self) -> Vec<WaitingIn> {
        let row = |((cause, function, phase), sum): (&Place, Sum)| WaitingIn {
            cause: *cause,
            function: function.as_deref().map(str::to_owned),
            phase: phase.as_deref().map(str::to_owned),
            waits: sum.waits,
            time_ps: sum.time.0,
        };
        sorted(&self.sums.places).map(row).collect()
    }

    /// By pair, most time first; and the number of waits of pairs that were too many to keep apart.
    pub fn pairs(&self) -> (Vec<WaitingFor>, u64) {
        let row = |(&(job, task, on, cause), sum): (&Pair, Sum)| WaitingFor {
            job,
            task: task.0,
            on_task: on.0,
            cause,
            waits: sum.waits,
            time_ps: sum.time.0,
        };
        (sorted(&self.sums.pairs).map(row).collect(), self.sums.others)
    }
}

impl Sums {
    /// Adds a wait; those of a task in their order.
    fn add(&mut self, wait: &Wait) {
        if self.program_tasks.get(wait.job as usize).is_some_and(|&tasks| wait.task.0 >= tasks) {
            return;
        }
        let labels = self.labels.get_mut(wait.job as usize).and_then(Option::as_mut);
        let at = wait.record.checked_sub(1).zip(labels);
        let label = at.and_then(|(call, labels)| labels.of(wait.task, call).ok()).unwrap_or_default();
        self.places.entry((wait.cause, label.function, label.phase)).or_default().add(wait);
        let Some(on) = wait.on else { return };
        let pair = (wait.job, wait.task, on, wait.cause);
        match self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
            true => self.pairs.entry(pair).or_default().add(wait),
            false => self.others += 1,
        }
    }
}

/// The sums with most time first.
fn sorted<K: Ord>(sums: &HashMap<K, Sum>) -> impl Iterator<Item = (&K, Sum)> {
    let mut sums: Vec<(&K, Sum)> = sums.iter().map(|(key, sum)| (key, *sum)).collect();
    sums.sort_by(|one, other| (other.1.time, one.0).cmp(&(one.1.time, other.0)));
    sums.into_iter()
}
