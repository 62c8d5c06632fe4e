//! The order in which ranks have their actions, such that SimGrid's replay ends if that of the trace does.
//!
//! In SimGrid a rank waits in each collective. In a trace it waits only in the record that depends on the collective, and records in between
//! may be what other members wait for before they call it: answers to one-sided requests, or what follows a non-blocking collective. So the
//! ranks are carried out together. A collective is written for all members at once, when the last one has called it; each member waits at its
//! call until then, unless nothing else can happen: then it continues, and the collective stands behind the records that follow its call. If
//! a member must leave a collective before others call it, as the root of a Bcast can, the collective becomes messages.
//!
//! The lines of each rank are thus a part of one sequence of all lines, in which each message is sent before it is waited for, and a
//! collective of SimGrid is one place: the replay cannot be stuck.

use super::lines::Actions;
use crate::export::{
    After, COLLECTIVES, CollectiveIndex, Export, ExportProblem, Loaded, MessageIndex, Part, Record, Step,
    What,
};
use hashbrown::HashMap;
use vef_format::ids::Rank;
use vef_format::operation::Amounts;

/// All ranks.
pub(super) struct Run<'a> {
    export: &'a Export<'a>,
    pub(super) actions: Actions<'a>,
    tasks: Vec<Task<'a>>,
    messages: Vec<State>,
    collectives: Vec<Entered>,
    /// Ranks that can continue.
    ready: Vec<u32>,
    /// Parts of collectives whose next step may be possible.
    steps: Vec<(u32, CollectiveIndex)>,
    /// Messages of such collectives on their way: how many, by collective, sender and receiver.
    sent: HashMap<(CollectiveIndex, u32, u32), u32>,
    /// Number of ranks that have ended.
    ended: u32,
    /// Parts of collectives that stand behind records that follow their calls.
    pub(super) late: u64,
    /// Parts of collectives that block at their calls, although a record behind does not wait for them.
    pub(super) blocking: u64,
    /// Collectives that became messages because some members must leave them before others call them.
    pub(super) in_steps: u64,
}

/// What has happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unsent,
    Sent,
    Received,
}

/// What has happened to a collective.
#[derive(Clone, Copy, Debug, Default)]
struct Entered {
    members: u32,
    /// Its members carry out its steps as they can, not all at once.
    in_steps: bool,
}

/// A rank.
#[derive(Default)]
struct Task<'a> {
    /// The next record.
    next: usize,
    waits: Waits,
    /// Parts of collectives that have been called and are not written.
    parts: Vec<Called<'a>>,
}

/// What a rank waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waits {
    #[default]
    Nothing,
    Message(MessageIndex),
    /// A collective that it has just called, or that its next record depends on.
    Collective(CollectiveIndex),
    /// All that it has called.
    End,
}

/// A rank's part of a collective.
struct Called<'a> {
    index: CollectiveIndex,
    /// The number of its record.
    number: u64,
    amounts: Amounts,
    steps: Option<Box<Steps<'a>>>,
}

/// A part that has become messages.
struct Steps<'a> {
    part: Part<'a>,
    /// Posted receives: the source, and the number of lines.
    posted: Vec<(u32, usize)>,
    /// Whether it waits for these.
    waits: bool,
    ended: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(export: &'a Export<'a>, actions: Actions<'a>) -> Self {
        let trace = export.trace;
        let ranks = trace.header.tasks;
        Self {
            export,
            actions,
            tasks: std::iter::repeat_with(Task::default).take(ranks as usize).collect(),
            messages: vec![State::Unsent; trace.messages.len()],
            collectives: vec![Entered::default(); trace.collectives.len()],
            ready: (0..ranks).rev().collect(),
            steps: Vec::new(),
            sent: HashMap::new(),
            ended: 0,
            late: 0,
            blocking: 0,
            in_steps: 0,
        }
    }

    /// Continues one rank as far as it comes; whether there was something to do.
    pub(super) fn advance(&mut self) -> Result<bool, ExportProblem> {
        if let Some((task, index)) = self.steps.pop() {
            self.carry_out(task, index)?;
        } else if let Some(task) = self.ready.pop() {
            self.continue_task(task)?;
            self.export.progress.set(self.ended.into(), self.tasks.len() as u64);
        } else if self.ended as usize == self.tasks.len() {
            return Ok(false);
        } else if !self.let_wait_less() && !self.let_leave_early() {
            return Err(self.stuck());
        }
        Ok(true)
    }

    fn continue_task(&mut self, task: u32) -> Result<(), ExportProblem> {
        let trace: &'a Loaded = self.export.trace;
        loop {
            let state = &mut self.tasks[task as usize];
            let (number, called) = (state.next, &state.parts);
            let Some(record) = trace.tasks[task as usize].get(number) else { return self.end(task) };
            state.waits = match record.after {
                After::Received(index) if self.messages[index.0 as usize] == State::Unsent => {
                    Waits::Message(index)
                }
                After::Collective(index) if called.iter().any(|part| part.index == index) => {
                    Waits::Collective(index)
                }
                _ => Waits::Nothing,
            };
            if state.waits != Waits::Nothing {
                return Ok(());
            }
            state.next += 1;
            if number == 0 {
                self.actions.line(task, "init", []);
            }
            if let After::Received(index) = record.after
                && std::mem::replace(&mut self.messages[index.0 as usize], State::Received) == State::Sent
            {
                self.actions.receive(index);
            }
            let picos = record.time.0.checked_mul(trace.header.clock.0).ok_or(ExportProblem::Times(task))?;
            if picos > 0 {
                self.actions.sleep(task, picos);
            }
            match record.what {
                What::Mark => {}
                What::Send(index) => {
                    let message = *trace.message(index);
                    self.actions.send(task, message.dst.0, message.number % COLLECTIVES, message.bytes);
                    self.messages[index.0 as usize] = State::Sent;
                    let receiver = message.dst.0;
                    if self.tasks[receiver as usize].waits == Waits::Message(index) {
                        self.wake(receiver);
                    }
                }
                What::Collective(index, amounts) => {
                    let part = Called { index, number: number as u64, amounts, steps: None };
                    let state = &mut self.tasks[task as usize];
                    state.parts.push(part);
                    state.waits = Waits::Collective(index);
                    return self.enter(task, index);
                }
            }
        }
    }

    /// A rank has had its last record.
    fn end(&mut self, task: u32) -> Result<(), ExportProblem> {
        let trace: &'a Loaded = self.export.trace;
        let state = &mut self.tasks[task as usize];
        if !state.parts.is_empty() {
            state.waits = Waits::End;
            return Ok(());
        }
        if state.next == 0 {
            self.actions.line(task, "init", []);
        }
        for &index in &trace.unawaited[task as usize] {
            let message = *trace.message(index);
            self.actions.post(task, message.src.0, message.number % COLLECTIVES, message.bytes);
        }
        self.actions.line(task, "waitall", []);
        self.actions.line(task, "finalize", []);
        self.ended += 1;
        Ok(())
    }

    fn wake(&mut self, task: u32) {
        self.tasks[task as usize].waits = Waits::Nothing;
        self.ready.push(task);
    }

    /// A rank calls a collective.
    fn enter(&mut self, task: u32, index: CollectiveIndex) -> Result<(), ExportProblem> {
        let trace: &'a Loaded = self.export.trace;
        let all = trace.collective(index);
        let members = trace.members.get(&all.comm).map_or(0, Vec::len);
        let entered = &mut self.collectives[index.0 as usize];
        entered.members += 1;
        if entered.in_steps {
            return self.carry_out(task, index);
        }
        // Each task whose part is in the trace; an invalid trace lacks some, or has some twice.
        if entered.members as usize == members.max(all.parts.len()) {
            for &(Rank(member), _) in &all.parts {
                self.carry_out(member, index)?;
            }
        }
        Ok(())
    }

    /// Writes a rank's part of a collective: all of it, or in steps as far as it comes.
    fn carry_out(&mut self, task: u32, index: CollectiveIndex) -> Result<(), ExportProblem> {
        let Export { trace, options, .. } = *self.export;
        let in_steps = self.collectives[index.0 as usize].in_steps;
        let state = &mut self.tasks[task as usize];
        let Some(place) = state.parts.iter().position(|part| part.index == index) else { return Ok(()) };
        let mut called = state.parts.swap_remove(place);
        let behind = called.number as usize + 1;
        let is_late = behind < state.next;
        let waits = |next: &Record| next.after == After::Collective(index);
        let overlaps = !is_late && trace.tasks[task as usize].get(behind).is_some_and(|next| !waits(next));
        let mut steps = match called.steps.take() {
            Some(steps) => steps,
            None => {
                self.blocking += u64::from(overlaps);
                let Called { number, amounts, .. } = called;
                let part = Part::new(trace, (Rank(task), number), index, amounts, &options.algorithms)?;
                let is_world = trace.is_world(trace.collective(index).comm);
                if !in_steps && is_world && self.actions.collective(task, &part, amounts) {
                    self.leave(task, index, is_late);
                    return Ok(());
                }
                self.actions.exported.expanded += u64::from(part.member.rank == 0);
                Box::new(Steps { part, posted: Vec::new(), waits: false, ended: false })
            }
        };
        let tag = COLLECTIVES + (trace.collective(index).id.0 % u64::from(COLLECTIVES)) as u32;
        loop {
            if steps.waits {
                while let Some(&(from, lines)) = steps.posted.first() {
                    if in_steps {
                        match self.sent.get_mut(&(index, from, task)) {
                            Some(sent) if *sent > 0 => *sent -= 1,
                            _ => {
                                called.steps = Some(steps);
                                self.tasks[task as usize].parts.push(called);
                                return Ok(());
                            }
                        }
                    }
                    self.actions.wait(task, from, tag, lines);
                    steps.posted.remove(0);
                }
                steps.waits = false;
                if steps.ended {
                    self.leave(task, index, is_late);
                    return Ok(());
                }
            }
            match steps.part.next() {
                Some(Step::Send { to, bytes }) => {
                    self.actions.send(task, to, tag, bytes);
                    if in_steps {
                        *self.sent.entry((index, task, to)).or_default() += 1;
                        self.steps.push((to, index));
                    }
                }
                Some(Step::Receive { from, bytes }) => {
                    let lines = self.actions.post(task, from, tag, bytes);
                    steps.posted.push((from, lines));
                }
                step @ (Some(Step::Wait) | None) => (steps.waits, steps.ended) = (true, step.is_none()),
            }
        }
    }

    /// A rank's part of a collective has been written.
    fn leave(&mut self, task: u32, index: CollectiveIndex, is_late: bool) {
        self.late += u64::from(is_late);
        let state = &self.tasks[task as usize];
        if state.waits == Waits::Collective(index) || (state.waits == Waits::End && state.parts.is_empty()) {
            self.wake(task);
        }
    }

    /// The collective that a rank has called and could leave behind: its next record does not depend on it.
    fn could_continue(&self, task: u32) -> bool {
        let state = &self.tasks[task as usize];
        let next = self.export.trace.tasks[task as usize].get(state.next);
        match (state.waits, next) {
            (Waits::Collective(index), Some(next)) => next.after != After::Collective(index),
            _ => false,
        }
    }

    /// Nothing can happen: ranks that wait in collectives continue behind their calls, if others wait for messages of them, else all that
    /// can. Whether there are any.
    fn let_wait_less(&mut self) -> bool {
        let trace: &'a Loaded = self.export.trace;
        let sender = |task: &Task<'_>| match task.waits {
            Waits::Message(index) => Some(trace.message(index).src.0),
            _ => None,
        };
        let mut ranks: Vec<u32> = self.tasks.iter().filter_map(sender).collect();
        ranks.retain(|&task| self.could_continue(task));
        if ranks.is_empty() {
            ranks = (0..self.tasks.len() as u32).filter(|&task| self.could_continue(task)).collect();
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks.iter().rev().for_each(|&task| self.wake(task));
        !ranks.is_empty()
    }

    /// Nothing can happen, although no rank waits without need: the collectives that ranks wait for become messages, so that each member
    /// leaves when it has its own. Whether there are any.
    fn let_leave_early(&mut self) -> bool {
        let before = self.in_steps;
        for task in 0..self.tasks.len() {
            let index = match (self.tasks[task].waits, self.tasks[task].parts.first()) {
                (Waits::Collective(index), _) => index,
                (Waits::End, Some(part)) => part.index,
                _ => continue,
            };
            if !std::mem::replace(&mut self.collectives[index.0 as usize].in_steps, true) {
                self.in_steps += 1;
                let parts = &self.export.trace.collective(index).parts;
                self.steps.extend(parts.iter().map(|&(Rank(member), _)| (member, index)));
            }
        }
        self.in_steps > before
    }

    /// The first rank that waits for what never comes.
    fn stuck(&self) -> ExportProblem {
        let trace = self.export.trace;
        let waits = |task: &Task<'_>| match (task.waits, task.parts.first()) {
            (Waits::Message(index), _) => {
                let message = trace.message(index);
                Some(format!("message {} of task {} to it", message.number, message.src.0))
            }
            (Waits::Collective(index), _) => Some(format!("collective G{}", trace.collective(index).id.0)),
            (Waits::End, Some(part)) => Some(format!("collective G{}", trace.collective(part.index).id.0)),
            _ => None,
        };
        let all = (0..).zip(&self.tasks);
        let first = all.filter_map(|(task, state)| waits(state).map(|what| (task, what))).next();
        let (task, what) = first.unwrap_or((0, "nothing".to_owned()));
        ExportProblem::Stuck { task, what }
    }
}
