//! Runs a GOAL schedule: operations become ready when the operations they require have completed or started.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use results::schedule::{Schedule as Outcome, ScheduleSchema, ScheduledJob};
use results::simulation::{Finish, Performance};
use vef_format::units::{Bytes, Picos};

use super::machine::{Agenda, Costs, Entry, Interface, processor, receiving, sending};
use super::stuck::{NAMED, StuckSchedule, Waiting};
use super::{LogGp, Rendezvous};
use crate::error::SimError;
use interchange::goal::{Operation, Schedule, What};

/// Runs a schedule.
///
/// # Errors
/// The schedule cannot end, or not before the end of time.
pub fn run_schedule(schedule: &Schedule, settings: &LogGp) -> Result<Outcome, SimError> {
    let began = Instant::now();
    let mut run = Run::new(schedule, *settings);
    run.all()?;
    let finish = run.finish();
    let (messages, bytes) = (run.messages.len() as u64, run.bytes.0);
    let mut unreceived = run.messages.iter().filter(|message| message.receive == NONE).peekable();
    let first_unreceived = unreceived.peek().map(|message| run.name(message.send));
    let job = ScheduledJob { trace: None, tasks: schedule.ranks.into(), runtime_ps: finish.max_ps };
    Ok(Outcome {
        schema: ScheduleSchema::default(),
        runtime_ps: finish.max_ps,
        ranks: schedule.ranks,
        operations: schedule.operations.len() as u64,
        messages,
        bytes,
        unreceived: unreceived.count() as u64,
        first_unreceived,
        finish,
        jobs: vec![job],
        loggp: settings.parameters.to_string(),
        performance: Performance::new(began.elapsed(), messages, run.agenda.count()),
    })
}

/// An event to try: an operation, or a message at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Try {
    Operation(u32),
    /// Computing has finished: operations on other processors that depend on it become ready.
    Computed(u32),
    Arrival(u32),
    /// The announcement of a message has arrived at its receiver.
    Announced(u32),
    /// The request for a message has arrived at its sender.
    Asked(u32),
    /// The receiver can request a message.
    Ask(u32),
}

#[derive(Clone, Copy, Debug)]
struct Message {
    send: u32,
    bytes: Bytes,
    /// The receive that it matches.
    receive: u32,
}

const NONE: u32 = u32::MAX;

/// Key of a match: rank, source, tag; `None` for a wildcard.
type Key = (u32, Option<u32>, Option<u32>);

/// Posted receives, or unexpected messages, in order.
#[derive(Debug, Default)]
struct Waitlist {
    lists: HashMap<Key, VecDeque<(u64, u32)>>,
}

struct Run<'a> {
    schedule: &'a Schedule,
    costs: Costs,
    settings: LogGp,
    cpus: Vec<Picos>,
    interfaces: Vec<Interface>,
    cpus_a_rank: u32,
    interfaces_a_rank: u32,
    /// Number of operations that each operation still waits for.
    open: Vec<u32>,
    /// Operations that wait for the completion of each operation, and for its start.
    after_end: Followers,
    after_start: Followers,
    done: Vec<bool>,
    left: u64,
    messages: Vec<Message>,
    bytes: Bytes,
    posted: Waitlist,
    unexpected: Waitlist,
    /// Wildcards in use: any tag, any source, both.
    any_tag: bool,
    any_source: bool,
    any: bool,
    order: u64,
    /// Operations that became ready in this step.
    ready: Vec<u32>,
    agenda: Agenda<Try>,
}

/// A list of operations for each operation.
struct Followers {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Followers {
    fn new(operations: usize, pairs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0u32; operations + 1];
        for &(first, _) in pairs {
            starts[first as usize + 1] += 1;
        }
        for at in 0..operations {
            starts[at + 1] += starts[at];
        }
        let (mut all, mut at) = (vec![0; pairs.len()], starts.clone());
        for &(first, second) in pairs {
            all[at[first as usize] as usize] = second;
            at[first as usize] += 1;
        }
        Self { starts, all }
    }

    fn of(&self, operation: u32) -> std::ops::Range<usize> {
        self.starts[operation as usize] as usize..self.starts[operation as usize + 1] as usize
    }
}

impl<'a> Run<'a> {
    fn new(schedule: &'a Schedule, settings: LogGp) -> Self {
        let operations = &schedule.operations;
        let most = |of: fn(&Operation) -> u32| operations.iter().map(of).max().unwrap_or(0) + 1;
        let (cpus_a_rank, interfaces_a_rank) =
            (most(|operation| operation.cpu), most(|operation| operation.nic));
        let mut open = vec![0; operations.len()];
        for &(_, second) in schedule.requires.iter().chain(&schedule.starts) {
            open[second as usize] += 1;
        }
        let receives = || {
            operations.iter().filter_map(|operation| match operation.what {
                What::Receive { from, tag, .. } => Some((from.is_some(), tag.is_some())),
                _ => None,
            })
        };
        Self {
            schedule,
            costs: Costs::new(settings),
            settings,
            cpus: vec![Picos::ZERO; schedule.ranks as usize * cpus_a_rank as usize],
            interfaces: vec![Interface::default(); schedule.ranks as usize * interfaces_a_rank as usize],
            cpus_a_rank,
            interfaces_a_rank,
            open,
            after_end: Followers::new(operations.len(), &schedule.requires),
            after_start: Followers::new(operations.len(), &schedule.starts),
            done: vec![false; operations.len()],
            left: operations.len() as u64,
            messages: Vec::new(),
            bytes: Bytes::ZERO,
            posted: Waitlist::default(),
            unexpected: Waitlist::default(),
            any_tag: receives().any(|known| known == (true, false)),
            any_source: receives().any(|known| known == (false, true)),
            any: receives().any(|known| known == (false, false)),
            order: 0,
            ready: Vec::new(),
            agenda: Agenda::new(),
        }
    }

    fn all(&mut self) -> Result<(), SimError> {
        self.ready = (0..self.open.len() as u32).filter(|&at| self.open[at as usize] == 0).collect();
        self.sort_ready();
        for operation in std::mem::take(&mut self.ready) {
            self.agenda.ready(Picos::ZERO, Try::Operation(operation));
        }
        while let Some((t, entry)) = self.agenda.next(|_| {}) {
            match entry.what {
                Try::Operation(operation) => self.operation(t, operation, entry)?,
                Try::Computed(operation) => self.computed(operation),
                Try::Arrival(message) => self.arrival(t, message, entry)?,
                Try::Announced(message) => self.announced(message),
                Try::Ask(message) => self.ask(t, message, entry)?,
                Try::Asked(message) => self.asked(t, message, entry)?,
            }
            if !self.ready.is_empty() {
                self.start_ready(t);
            }
        }
        if self.left > 0 { Err(SimError::StuckSchedule(Box::new(self.stuck()))) } else { Ok(()) }
    }

    /// Sorts by rank; within a rank, sends, then receives, then computing.
    fn sort_ready(&mut self) {
        let operations = &self.schedule.operations;
        self.ready.sort_by_key(|&at| {
            let operation = &operations[at as usize];
            let kind = match operation.what {
                What::Send { .. } => 0,
                What::Receive { .. } => 1,
                What::Compute { .. } => 2,
            };
            (operation.rank, kind, at)
        });
    }

    /// Operations that became ready in this step are first tried when their processor, and interface, are
    /// free.
    fn start_ready(&mut self, t: Picos) {
        if self.ready.len() > 1 {
            self.sort_ready();
        }
        let mut ready = std::mem::take(&mut self.ready);
        for &operation in &ready {
            let (cpu, interface) = self.places(operation);
            let at = match self.schedule.operations[operation as usize].what {
                What::Send { .. } => self.cpus[cpu].max(self.interfaces[interface].out),
                _ => self.cpus[cpu],
            };
            // In LogGOPSim this may be in the past if a rank has several processors.
            let at = if self.settings.compat { at } else { at.max(t) };
            self.agenda.ready(at, Try::Operation(operation));
        }
        ready.clear();
        self.ready = ready;
    }

    /// The processor and the interface of an operation.
    fn places(&self, operation: u32) -> (usize, usize) {
        let of = &self.schedule.operations[operation as usize];
        self.places_of(of.rank, of.cpu, of.nic)
    }

    fn places_of(&self, rank: u32, cpu: u32, nic: u32) -> (usize, usize) {
        let place = |a_rank: u32, number: u32| rank as usize * a_rank as usize + number as usize;
        (place(self.cpus_a_rank, cpu), place(self.interfaces_a_rank, nic))
    }

    /// The processor and the interface at the receiver of a message: those with the numbers of the sender's.
    fn places_at_receiver(&self, message: u32) -> (usize, usize) {
        let send = &self.schedule.operations[self.messages[message as usize].send as usize];
        let What::Send { to, .. } = send.what else { unreachable!("a message is sent by a send") };
        self.places_of(to, send.cpu, send.nic)
    }

    fn operation(&mut self, t: Picos, operation: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let (cpu, interface) = self.places(operation);
        match self.schedule.operations[operation as usize].what {
            What::Compute { time } => {
                if self.cpus[cpu] > t {
                    self.agenda.wait(processor(cpu as u32), self.cpus[cpu], entry);
                    return Ok(());
                }
                let bytes = Bytes::ZERO;
                self.cpus[cpu] = t.checked_add(time).ok_or(crate::model::OutOfTime { bytes })?;
                self.started(operation);
                self.computing(operation, self.cpus[cpu]);
            }
            What::Send { bytes, .. } => {
                if self.waits_to_send(t, (cpu, interface), entry) {
                    return Ok(());
                }
                self.started(operation);
                let message = self.messages.len() as u32;
                self.messages.push(Message { send: operation, bytes, receive: NONE });
                self.bytes = Bytes(self.bytes.0.saturating_add(bytes.0));
                if self.settings.rendezvous == Rendezvous::Handshake && !self.costs.is_eager(bytes) {
                    let at = self.costs.control(t, &mut self.cpus[cpu])?;
                    self.agenda.ready(at, Try::Announced(message));
                    return Ok(());
                }
                self.send(t, message)?;
                if self.costs.is_eager(bytes) {
                    self.ended(operation);
                }
            }
            What::Receive { from, tag, .. } => {
                self.started(operation);
                let rank = self.schedule.operations[operation as usize].rank;
                match self
                    .unexpected
                    .first((rank, from, tag), |message| self.messages[message as usize].receive == NONE)
                {
                    Some(message) => self.matched(t, message, operation),
                    None => {
                        self.order += 1;
                        self.posted.add((rank, from, tag), self.order, operation);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a send at `t` must wait for its processor or interface, in whose line `entry` is then.
    fn waits_to_send(&mut self, t: Picos, (cpu, interface): (usize, usize), entry: Entry<Try>) -> bool {
        let (cpu_free, out) = (self.cpus[cpu], self.interfaces[interface].out);
        let waits = cpu_free.max(out) > t;
        if waits {
            let resource = if cpu_free >= out { processor(cpu as u32) } else { sending(interface as u32) };
            self.agenda.wait(resource, cpu_free.max(out), entry);
        }
        waits
    }

    /// Sends a message at `t`.
    fn send(&mut self, t: Picos, message: u32) -> Result<(), SimError> {
        let Message { send, bytes, .. } = self.messages[message as usize];
        let (cpu, interface) = self.places(send);
        let at = self.costs.send(t, bytes, &mut self.cpus[cpu], &mut self.interfaces[interface])?;
        self.agenda.ready(at, Try::Arrival(message));
        Ok(())
    }

    fn arrival(&mut self, t: Picos, message: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let (cpu, interface) = self.places_at_receiver(message);
        let (cpu_free, into) = (self.cpus[cpu], self.interfaces[interface].into);
        if cpu_free.max(into) > t {
            let resource = if cpu_free >= into { processor(cpu as u32) } else { receiving(interface as u32) };
            self.agenda.wait(resource, cpu_free.max(into), entry);
            return Ok(());
        }
        let Message { send, bytes, receive } = self.messages[message as usize];
        self.costs.take(t, bytes, &mut self.cpus[cpu], &mut self.interfaces[interface])?;
        match receive {
            NONE => self.find_receive(t, message),
            // The message was requested.
            receive => {
                self.ended(receive);
                self.ended(send);
            }
        }
        Ok(())
    }

    /// A message has arrived: matches it with the first posted receive, or queues it.
    fn find_receive(&mut self, t: Picos, message: u32) {
        let send = &self.schedule.operations[self.messages[message as usize].send as usize];
        let What::Send { to, tag, .. } = send.what else { unreachable!("a message is sent by a send") };
        let from = send.rank;
        let keys = [
            (true, (to, Some(from), Some(tag))),
            (self.any_tag, (to, Some(from), None)),
            (self.any_source, (to, None, Some(tag))),
            (self.any, (to, None, None)),
        ];
        let keys = || keys.into_iter().filter(|(used, _)| *used).map(|(_, key)| key);
        match keys().filter_map(|key| self.posted.peek(key).map(|first| (first, key))).min() {
            Some(((_, receive), key)) => {
                self.posted.remove_first(key);
                self.matched(t, message, receive);
            }
            None => {
                self.order += 1;
                keys().for_each(|key| self.unexpected.add(key, self.order, message));
            }
        }
    }

    /// Matches a message with a receive at `t`.
    fn matched(&mut self, t: Picos, message: u32, receive: u32) {
        self.messages[message as usize].receive = receive;
        let Message { send, bytes, .. } = self.messages[message as usize];
        if self.costs.is_eager(bytes) {
            return self.ended(receive);
        }
        if self.settings.rendezvous == Rendezvous::Handshake {
            return self.agenda.ready(t, Try::Ask(message));
        }
        self.ended(receive);
        let (cpu, interface) = self.places(send);
        self.cpus[cpu] = self.cpus[cpu].max(t);
        self.interfaces[interface].out = self.interfaces[interface].out.max(t);
        self.ended(send);
    }

    /// The announcement of a message has arrived, which takes no time of the receiver.
    fn announced(&mut self, message: u32) {
        // A match of an announced message does not complete here, so the time is not used.
        self.find_receive(self.agenda.now(), message);
    }

    /// The receiver requests a message.
    fn ask(&mut self, t: Picos, message: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let (cpu, _) = self.places(self.messages[message as usize].receive);
        if self.cpus[cpu] > t {
            self.agenda.wait(processor(cpu as u32), self.cpus[cpu], entry);
            return Ok(());
        }
        let at = self.costs.control(t, &mut self.cpus[cpu])?;
        self.agenda.ready(at, Try::Asked(message));
        Ok(())
    }

    /// Sends a message that was requested.
    fn asked(&mut self, t: Picos, message: u32, entry: Entry<Try>) -> Result<(), SimError> {
        let (cpu, interface) = self.places(self.messages[message as usize].send);
        if self.waits_to_send(t, (cpu, interface), entry) {
            return Ok(());
        }
        self.send(t, message)
    }

    fn started(&mut self, operation: u32) {
        for at in self.after_start.of(operation) {
            self.free(self.after_start.all[at]);
        }
    }

    fn ended(&mut self, operation: u32) {
        self.done[operation as usize] = true;
        self.left -= 1;
        for at in self.after_end.of(operation) {
            self.free(self.after_end.all[at]);
        }
    }

    /// An operation computes until `end`; later operations on the same processor wait for it in any case.
    fn computing(&mut self, operation: u32, end: Picos) {
        if self.settings.compat || self.cpus_a_rank == 1 {
            return self.ended(operation);
        }
        self.done[operation as usize] = true;
        self.left -= 1;
        let cpu = self.schedule.operations[operation as usize].cpu;
        let mut elsewhere = false;
        for at in self.after_end.of(operation) {
            let follower = self.after_end.all[at];
            match self.schedule.operations[follower as usize].cpu == cpu {
                true => self.free(follower),
                false => elsewhere = true,
            }
        }
        if elsewhere {
            self.agenda.ready(end, Try::Computed(operation));
        }
    }

    fn computed(&mut self, operation: u32) {
        let cpu = self.schedule.operations[operation as usize].cpu;
        for at in self.after_end.of(operation) {
            let follower = self.after_end.all[at];
            if self.schedule.operations[follower as usize].cpu != cpu {
                self.free(follower);
            }
        }
    }

    /// An operation waits for one operation less.
    fn free(&mut self, operation: u32) {
        self.open[operation as usize] -= 1;
        if self.open[operation as usize] == 0 {
            self.ready.push(operation);
        }
    }

    fn finish(&self) -> Finish {
        let of_rank = |cpus: &[Picos]| cpus.iter().max().map_or(0, |at| at.0);
        let ranks: Vec<u64> = self.cpus.chunks(self.cpus_a_rank as usize).map(of_rank).collect();
        Finish::of(ranks, |_| true)
    }

    #[cold]
    fn stuck(&self) -> StuckSchedule {
        let operations = &self.schedule.operations;
        let waits = |at: u32| self.open[at as usize] > 0;
        let undone = || (0..operations.len() as u32).filter(|&at| !self.done[at as usize]);
        let sent: std::collections::HashSet<u32> = self.messages.iter().map(|message| message.send).collect();
        // Operations that have started but cannot end; if there is none, a cycle.
        let mut first: Vec<Waiting> = undone()
            .filter(|&at| !waits(at))
            .take(NAMED)
            .map(|at| {
                let why = match operations[at as usize].what {
                    What::Receive { .. } => self.why_nothing_comes(at),
                    What::Send { .. } if sent.contains(&at) => "waits for a receive that never comes".into(),
                    _ => "never starts".into(),
                };
                Waiting { operation: self.name(at), why }
            })
            .collect();
        if first.is_empty() {
            first = self.circle(undone().next());
        }
        StuckSchedule { operations: self.left, first }
    }

    /// An operation, for messages.
    fn name(&self, at: u32) -> String {
        let Operation { rank, what, .. } = &self.schedule.operations[at as usize];
        format!("rank {rank}, {}: {what}", self.schedule.place(at))
    }

    /// Why the message of a receive does not come.
    fn why_nothing_comes(&self, receive: u32) -> String {
        let operations = &self.schedule.operations;
        let Operation { rank, what: What::Receive { from, tag, .. }, .. } = operations[receive as usize]
        else {
            unreachable!("the operation is a receive")
        };
        let sends = |of: &Operation| match of.what {
            What::Send { to, tag: sent, .. } => {
                to == rank && from.is_none_or(|from| from == of.rank) && tag.is_none_or(|tag| tag == sent)
            }
            _ => false,
        };
        let send = (0..operations.len() as u32)
            .find(|&at| self.open[at as usize] > 0 && sends(&operations[at as usize]));
        match send.and_then(|send| Some((send, self.awaited_by(send)?))) {
            None => "waits for a message that is never sent".to_owned(),
            Some((send, awaited)) => format!(
                "waits for that of {} of rank {}, which requires that of {}",
                self.schedule.place(send),
                operations[send as usize].rank,
                self.schedule.place(awaited)
            ),
        }
    }

    /// An operation that is not done and that another one requires.
    fn awaited_by(&self, operation: u32) -> Option<u32> {
        let required = self.schedule.requires.iter().chain(&self.schedule.starts);
        let mut awaited = required.filter(|(_, second)| *second == operation).map(|(first, _)| *first);
        awaited.find(|&first| !self.done[first as usize])
    }

    /// A cycle of operations that wait for each other.
    fn circle(&self, from: Option<u32>) -> Vec<Waiting> {
        let awaited: HashMap<u32, u32> = self
            .schedule
            .requires
            .iter()
            .chain(&self.schedule.starts)
            .filter(|(first, _)| !self.done[*first as usize])
            .map(|&(first, second)| (second, first))
            .collect();
        let (mut seen, mut at) = (std::collections::HashSet::new(), from);
        while let Some(operation) = at.filter(|&operation| seen.insert(operation)) {
            at = awaited.get(&operation).copied();
        }
        let Some(start) = at else { return Vec::new() };
        let mut circle = Vec::new();
        let mut operation = start;
        while circle.len() < NAMED {
            let Some(&next) = awaited.get(&operation) else { break };
            let why = format!("requires that of {}, in a circle", self.schedule.place(next));
            circle.push(Waiting { operation: self.name(operation), why });
            operation = next;
            if operation == start {
                break;
            }
        }
        circle
    }
}

impl Waitlist {
    fn add(&mut self, key: Key, order: u64, what: u32) {
        self.lists.entry(key).or_default().push_back((order, what));
    }

    fn peek(&self, key: Key) -> Option<(u64, u32)> {
        self.lists.get(&key)?.front().copied()
    }

    fn remove_first(&mut self, key: Key) {
        if let Some(list) = self.lists.get_mut(&key) {
            list.pop_front();
        }
    }

    /// Removes and returns the first entry that is still valid: an entry may be in several lists.
    fn first(&mut self, key: Key, is_there: impl Fn(u32) -> bool) -> Option<u32> {
        let list = self.lists.get_mut(&key)?;
        while let Some((_, what)) = list.pop_front() {
            if is_there(what) {
                return Some(what);
            }
        }
        None
    }
}
