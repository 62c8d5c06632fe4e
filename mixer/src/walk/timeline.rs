//! Sets the dependency and the time of each record of one task.
//!
//! Each thread has its own timeline: its records depend on its own events only (`docs/mixing.md`, "Several threads").

use super::polls::{Polled, UsualPoll, waits_by_polls};
use crate::counts::add_to;
use crate::records::{After, Body, Record};
use crate::task::{Fate, Task};
use vef_format::capture::event::{Action, CallSlot, Event};
use vef_format::units::Nanos;

/// The events from which the next records' times count.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The latest event of each thread that a record can depend on.
    previous: Vec<Option<Previous>>,
    /// From which on the task's computing counts.
    zero: Option<Nanos>,
    /// Of tasks with several threads: records that begin later than their call, by start. Records of other threads may precede
    /// them.
    delayed: Vec<(u64, Record)>,
    /// Duration of each thread's failed polls since its `previous`; empty before the first.
    polled: Vec<Polled>,
    usual_poll: UsualPoll,
    /// Factor of MPI's own work, if it is not 1.
    own_work: Option<f64>,
    /// Of each thread, its time in calls without a record since its `previous`; empty if there is no factor.
    worked: Vec<u64>,
    /// The threads that have a mark in front of that of `MPI_Finalize`.
    joined: Vec<u16>,
}

/// An event that the thread's next record depends on.
#[derive(Clone, Copy, Debug)]
struct Previous {
    /// Its end, and as much later as the thread had no core or waited for its sends since then.
    end: Nanos,
    after: After,
}

/// The records of one call so far: what the next one depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain(Option<After>);

impl Timeline {
    /// With this factor of MPI's own work.
    pub(super) fn new(own_work: Option<f64>) -> Self {
        Self { own_work, ..Self::default() }
    }

    /// What the trace has of so much of MPI's own work.
    pub(super) fn of_own_work(&self, time: u64) -> u64 {
        self.own_work.map_or(time, |factor| (time as f64 * factor).round() as u64)
    }

    /// A call without a record took so long.
    pub(super) fn worked(&mut self, thread: u16, took: u64) {
        if self.own_work.is_some() {
            let thread = usize::from(thread);
            if thread >= self.worked.len() {
                self.worked.resize(thread + 1, 0);
            }
            self.worked[thread] = self.worked[thread].saturating_add(took);
        }
    }

    /// Rule 1: starts the task's time at the end of `event`, or at its start if it is to be kept, unless it has started before.
    pub(super) fn begin(&mut self, task: &mut Task, event: &Event<'_>, keep: bool) {
        if self.zero.is_none() {
            (self.zero, task.zero) = (Some(if keep { event.start } else { event.end }), event.start);
        }
    }

    /// Adds a record of the call `event`; what follows depends on `after`. The call's first record begins with it, and is timed
    /// from the thread's previous event. The further ones begin at `later`, and each depends on the one before.
    #[inline(always)]
    pub(super) fn record(
        &mut self,
        task: &mut Task,
        event: &Event<'_>,
        later: Nanos,
        chain: &mut Chain,
        body: Body,
        after: After,
    ) {
        let (start, time, previous) = match chain.0 {
            None => {
                let (time, previous) = self.since_previous(task, event);
                (event.start, time, previous)
            }
            Some(previous) => (later, 0, previous),
        };
        self.add(task, event, start, Record { thread: event.thread, body, after: previous, time });
        chain.0 = Some(after);
    }

    /// Ends a call: its thread's next record depends on its last one. Returns `false` if it made no record.
    #[inline(always)]
    pub(super) fn end(&mut self, event: &Event<'_>, chain: &Chain) -> bool {
        let Some(after) = chain.0 else { return false };
        *self.previous(event.thread) = Some(Previous { end: event.end, after });
        true
    }

    /// The latest event of `thread`.
    #[inline(always)]
    fn previous(&mut self, thread: u16) -> &mut Option<Previous> {
        let thread = usize::from(thread);
        if thread >= self.previous.len() {
            self.previous.resize(thread + 1, None);
        }
        &mut self.previous[thread]
    }

    /// Whether the thread's latest call that made a record waited for something.
    #[cold]
    pub(super) fn waits(&self, thread: u16) -> bool {
        let previous = self.previous.get(usize::from(thread)).copied().flatten();
        previous.is_some_and(|previous| matches!(previous.after, After::Received(_) | After::Collective(_)))
    }

    /// Rule 7: `event` ends MPI for all threads; the others' previous events get a mark each.
    pub(super) fn join(&mut self, task: &mut Task, event: &Event<'_>) {
        for thread in 0..self.previous.len() as u16 {
            let Some(previous) = self.previous[usize::from(thread)].filter(|_| thread != event.thread) else {
                continue;
            };
            if let After::Received(_) | After::Collective(_) = previous.after {
                let time = event.start.since(previous.end).unwrap_or(0);
                let record = Record { thread, body: Body::Mark, after: previous.after, time };
                self.add(task, event, event.start, record);
                self.joined.push(thread);
            }
        }
    }

    /// The threads of the marks that [`Timeline::join`] made.
    #[inline(always)]
    pub(super) fn joined(&self) -> &[u16] {
        &self.joined
    }

    /// So much of the thread's time since its latest record is not computing.
    pub(super) fn leave_out(&mut self, thread: u16, took: u64) {
        let Some(zero) = self.zero else { return };
        let zero = Previous { end: zero, after: After::Start };
        let previous = self.previous(thread).get_or_insert(zero);
        previous.end.0 = previous.end.0.saturating_add(took);
    }

    /// The thread's failed polls since its latest record.
    pub(super) fn polls(&self, thread: u16) -> u64 {
        self.polled.get(usize::from(thread)).map_or(0, |polled| polled.all)
    }

    /// What a thread has computed before `at` gets a mark there. Its `polls` until then, and those since, are left to its next record, which says
    /// what they were.
    #[cold]
    pub(super) fn mark_computed(&mut self, task: &mut Task, thread: u16, at: Nanos, polls: u64) {
        let zero = Previous { end: *self.zero.get_or_insert(at), after: After::Start };
        let Previous { end, after } = self.previous(thread).unwrap_or(zero);
        // As much earlier as the thread polled.
        let computed = at.0.saturating_sub(polls).max(end.0);
        let record = Record { thread, body: Body::Mark, after, time: computed - end.0 };
        let event = Event { start: at, end: at, thread, call: CallSlot::NONE, action: Action::Preempted };
        self.add(task, &event, at, record);
        *self.previous(thread) = Some(Previous { end: Nanos(computed), after: After::Sent });
    }

    /// Failed polls: they are waiting if the thread's next record completes a receive or a collective, or finds a message; in front
    /// of others, only what they take beyond the usual time of so many.
    /// `for_messages`: they looked for messages.
    pub(super) fn polled(&mut self, event: &Event<'_>, for_messages: bool) {
        let thread = usize::from(event.thread);
        if thread >= self.polled.len() {
            self.polled.resize(thread + 1, Polled::default());
        }
        self.polled[thread].add(Polled { for_messages, ..self.usual_poll.take(event) });
    }

    /// The polls before `event` waited for a request that makes no record, so only what they took beyond their usual time is waiting.
    #[inline(always)]
    pub(super) fn forget_polls(&mut self, task: &mut Task, event: &Event<'_>) {
        if let Some(polled) = self.polled.get_mut(usize::from(event.thread)) {
            let Polled { all, beyond, .. } = *polled;
            add_to(&mut task.counts.spent.polls_kept, all - beyond);
            polled.all = beyond;
        }
    }

    /// Whether some of the thread's failed polls since its latest record looked for messages.
    pub(super) fn looked_for_messages(&self, thread: u16) -> bool {
        self.polled.get(usize::from(thread)).is_some_and(|polled| polled.for_messages)
    }

    /// `event` waited for what the replay decides on; `with_polls`: so did the polls before it.
    pub(super) fn waited(&mut self, event: &Event<'_>, with_polls: bool) {
        if let Some(polled) = self.polled.get_mut(usize::from(event.thread)).filter(|_| with_polls) {
            polled.beyond = polled.all;
        }
        self.leave_out(event.thread, event.end.0.saturating_sub(event.start.0));
    }

    /// Time and dependency of a record at the start of `event`.
    #[inline(always)]
    fn since_previous(&mut self, task: &mut Task, event: &Event<'_>) -> (u64, After) {
        let previous = match self.previous.get(usize::from(event.thread)) {
            Some(&Some(previous)) => previous,
            _ => Previous { end: *self.zero.get_or_insert(event.start), after: After::Start },
        };
        match event.start.since(previous.end) {
            Some(time) if self.polled.is_empty() && self.worked.is_empty() => (time, previous.after),
            Some(time) => {
                (self.computed(task, event.thread, waits_by_polls(&event.action), time), previous.after)
            }
            None => {
                if let Some(polled) = self.polled.get_mut(usize::from(event.thread)) {
                    *polled = Polled::default();
                }
                if let Some(worked) = self.worked.get_mut(usize::from(event.thread)) {
                    *worked = 0;
                }
                task.counts.negative_times += 1;
                (0, previous.after)
            }
        }
    }

    /// What of `time`, before an event, is computing: not that in which the thread waited by polling, for what the event `receives` or for
    /// nothing else; MPI's own work with its factor.
    #[inline(never)]
    fn computed(&mut self, task: &mut Task, thread: u16, receives: bool, time: u64) -> u64 {
        let polled = self.polled.get_mut(usize::from(thread)).map_or(Polled::default(), std::mem::take);
        let waited = polled.waiting(receives).min(time);
        let kept = polled.all.min(time) - waited;
        let spent = &mut task.counts.spent;
        add_to(&mut spent.awaited, waited);
        add_to(
            &mut spent.polls_kept,
            self.own_work.map_or(kept, |factor| (kept as f64 * factor).round() as u64),
        );
        let worked = self.worked.get_mut(usize::from(thread)).map_or(0, std::mem::take);
        let (time, worked) = (time - waited, kept.saturating_add(worked));
        match self.own_work {
            Some(factor) => {
                let worked = worked.min(time);
                (time - worked).saturating_add((worked as f64 * factor).round() as u64)
            }
            None => time,
        }
    }

    /// Adds a record that begins at `start`, or later than the start of `event`.
    #[inline(always)]
    fn add(&mut self, task: &mut Task, event: &Event<'_>, start: Nanos, record: Record) {
        match record.after {
            After::Start | After::Sent => {}
            After::Received(receive) => task.fates[receive.index()] = Fate::HasDependent,
            After::Collective(collective) => {
                task.reach = task.reach.max(task.collectives - collective.0);
            }
        }
        if start > event.start && task.records.has_threads() {
            let at = self.delayed.partition_point(|&(other, _)| other <= start.0);
            self.delayed.insert(at, (start.0, record));
        } else {
            task.records.push(start.0, &record);
        }
    }

    /// Call first for each event.
    #[inline(always)]
    pub(super) fn release_due(&mut self, task: &mut Task, event: &Event<'_>) {
        if !self.delayed.is_empty() {
            self.release(task, event.start.0, Some(event.thread));
        }
    }

    /// Adds the delayed records that begin by `now`, or belong to `thread`.
    #[cold]
    pub(super) fn release(&mut self, task: &mut Task, now: u64, thread: Option<u16>) {
        let due = |(start, record): &(u64, Record)| *start <= now || Some(record.thread) == thread;
        let end = self.delayed.iter().rposition(due).map_or(0, |last| last + 1);
        for (start, record) in self.delayed.drain(..end) {
            task.records.push(start, &record);
        }
    }

    /// Number of delayed records.
    #[inline(always)]
    pub(super) fn delayed(&self) -> usize {
        self.delayed.len()
    }
}
