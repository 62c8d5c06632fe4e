//! Makes the notes of a container, which text cannot hold, during the walk.

use super::polls::{Polled, UsualPoll, waits_by_polls};
use crate::Polls;
use crate::function::Function;
use crate::index::RecordIndex;
use crate::thread_notes::{ThreadNotes, UnplacedNotes};
use std::ops::Range;
use vef_format::account::{Account, Entry};
use vef_format::capture;
use vef_format::capture::event::{Action, CallSlot, Collective, Event, Send, SendMode};
use vef_format::container::{Note, Section, TaskNotes};
use vef_format::files::FileUses;
use vef_format::units::{Nanos, Ticks};

/// Makes the notes of one task, which refer to records by their index in the walk.
#[derive(Debug, Default)]
pub(super) struct NoteTaker {
    notes: TaskNotes,
    /// Of a task with several threads: the notes of single threads.
    threads: Option<Box<ThreadNotes>>,
    /// By thread: since when it computes.
    since: Vec<Since>,
    /// How many phases have begun or ended.
    marks: u64,
    /// The last of these, behind which no record was made.
    pending: Vec<PhaseMark>,
    /// Records of the sends that the current event completes.
    sent: Vec<RecordIndex>,
    /// If the replay decides how long the current event waits, which has no record: whether it also does of the polls before.
    replayed: Option<bool>,
    /// Records of the sends, of a collective or one-sided, that the current event makes without waiting for each.
    detached: Vec<RecordIndex>,
    /// Whether the collective of the current event is messages between groups.
    as_messages: bool,
    tag: Option<i32>,
    call: Option<Function>,
    /// When the task entered `MPI_Init`.
    zero: Option<u64>,
    /// From when on its computing counts: then, or from the return of `MPI_Init` on.
    begun: u64,
    keep_init: bool,
    polls: Polls,
    usual_poll: UsualPoll,
    /// Time in calls since the last moment was noted, at most.
    lag: u64,
    files: FileUses,
    /// The functions in the rank's call table.
    called: Vec<Option<Function>>,
}

/// From when on a thread's computing counts.
#[derive(Clone, Debug, Default)]
struct Since {
    /// End of its latest event that made a record or waited for sends, and as much later as it had no core, or waited, since then.
    end: u64,
    /// End of its latest event that made a record.
    recorded: u64,
    /// Its failed polls in front of `end` of which the next record says whether they waited.
    before_end: Polled,
    /// What of its time since then is no computing: ascending by number of marks.
    left_out: Vec<LeftOut>,
}

/// Time of a thread that is no computing, between two of the task's phase marks.
#[derive(Clone, Copy, Debug, Default)]
struct LeftOut {
    /// How many marks are in front of it.
    marks: u64,
    /// Without a core, in waits without a record, and in polls before these.
    took: u64,
    /// Failed polls after these: what of them is no computing depends on the thread's next event.
    polled: Polled,
}

/// Where a phase begins or ends.
#[derive(Clone, Copy, Debug)]
struct PhaseMark {
    at: u64,
    thread: u16,
    /// The next record in the order of the walk.
    place: u64,
}

impl Since {
    fn at(event: u64) -> Self {
        Self { end: event, recorded: event, before_end: Polled::default(), left_out: Vec::new() }
    }

    /// An event with records ends.
    #[inline(always)]
    fn restart(&mut self, event: u64) {
        (self.end, self.recorded, self.before_end) = (event, event, Polled::default());
        self.left_out.clear();
    }

    /// What is left out from now on, behind so many `marks`.
    #[inline]
    fn left_out(&mut self, marks: u64) -> &mut LeftOut {
        if self.left_out.last().is_none_or(|last| last.marks < marks) {
            self.left_out.push(LeftOut { marks, ..LeftOut::default() });
        }
        let last = self.left_out.len() - 1;
        &mut self.left_out[last]
    }

    /// Its failed polls since its latest record, but for those that have been settled.
    fn open_polls(&self) -> Polled {
        let mut sum = Polled::default();
        self.left_out.iter().for_each(|left_out| sum.add(left_out.polled));
        sum
    }

    /// The polls so far `waited` as a whole, or beyond their usual time.
    fn settle_polls(&mut self, waited: bool) {
        let passed = std::mem::take(&mut self.before_end).waiting(waited);
        for LeftOut { took, polled, .. } in &mut self.left_out {
            let polls = std::mem::take(polled).waiting(waited);
            (*took, self.end) = (took.saturating_add(polls), self.end.saturating_add(polls));
        }
        self.end = self.end.saturating_sub(passed);
    }

    /// What it computed from its latest record to `mark`, the one with that number (from 0), if the polls before its next record `waited`.
    fn computed(&self, mark: PhaseMark, number: u64, waited: bool) -> u64 {
        let before = self.left_out.iter().take_while(|left_out| left_out.marks <= number);
        let left_out = before.map(|left_out| left_out.took.saturating_add(left_out.polled.waiting(waited)));
        mark.at.saturating_sub(self.recorded).saturating_sub(left_out.fold(0, u64::saturating_add))
    }
}

impl NoteTaker {
    /// Begins before the first event of a rank with these functions in its call table; `threads`: several threads make calls.
    pub(super) fn new(polls: Polls, keep_init: bool, threads: bool, functions: &[capture::Function]) -> Self {
        let called = functions.iter().map(|function| Function::named(&function.name)).collect();
        let threads = threads.then(Box::default);
        Self { polls, keep_init, threads, called, ..Self::default() }
    }

    /// The current event completes the send of `record`.
    #[inline(always)]
    pub(super) fn completed(&mut self, record: RecordIndex) {
        self.sent.push(record);
    }

    /// The task's answer to a one-sided request, by the thread `agent`, is the latest record. It is given in the latest call.
    pub(super) fn answered(&mut self, agent: u16) {
        if let Some(threads) = &mut self.threads {
            threads.made(agent);
            threads.made_by(self.call.unwrap_or(Function::GET));
        }
    }

    /// The function of an event that makes records: that in the call table, else the one that follows from its kind.
    fn function(&self, call: CallSlot, of_kind: Function) -> Function {
        let called = call.index().and_then(|slot| *self.called.get(slot)?);
        called.unwrap_or(of_kind)
    }

    /// The current event has no record, and the replay decides how long it waits, and perhaps how long the polls before it do.
    pub(super) fn replayed(&mut self, with_polls: bool) {
        self.replayed = Some(with_polls);
    }

    /// The current event makes the send of `record` without waiting for it.
    pub(super) fn detached(&mut self, record: RecordIndex) {
        self.detached.push(record);
    }

    /// The collective of the current event is messages between groups.
    pub(super) fn as_messages(&mut self) {
        self.as_messages = true;
    }

    /// Takes an event that made `records`; those in front of its own are marks of the threads `joined`.
    #[inline(always)]
    pub(super) fn event(&mut self, event: &Event<'_>, records: Range<u64>, joined: &[u16]) {
        self.see(event.thread);
        let thread = usize::from(event.thread);
        if let Some(threads) = &mut self.threads {
            let joined = if let Action::Finalize = event.action { joined } else { &[] };
            for (_, at) in records.clone().zip(0..) {
                threads.made(joined.get(at).copied().unwrap_or(event.thread));
            }
        }
        let function = match &event.action {
            Action::Send(send) => {
                if !records.is_empty() {
                    self.send(event.thread, send, records.start);
                }
                Function::send(send)
            }
            Action::Complete(_) => {
                if self.files.are_pending() {
                    self.files.event(event);
                }
                self.complete(event, &records);
                Function::WAIT
            }
            _ => match self.other(event, &records) {
                Some(function) => function,
                None => return,
            },
        };
        if !records.is_empty() {
            let function = self.function(event.call, function);
            if !self.pending.is_empty() {
                let first = if let Action::Finalize = event.action { joined.first() } else { None };
                let waited = waits_by_polls(&event.action);
                self.settle_phases(*first.unwrap_or(&event.thread), u64::MAX, waited);
            }
            self.since[thread].restart(event.end.0);
            if self.threads.is_none() {
                self.moment(event, records.start);
            }
            let before = self.call.replace(function);
            match &mut self.threads {
                Some(threads) => threads.made_by(function),
                None if before == Some(function) => {}
                None => {
                    self.notes.call(records.start, function.number(), || function.name());
                }
            }
        }
    }

    /// A thread that is new computes since the task does.
    #[inline(always)]
    fn see(&mut self, thread: u16) {
        if usize::from(thread) >= self.since.len() {
            self.since.resize(usize::from(thread) + 1, Since::at(self.begun));
        }
    }

    /// What a thread computed in front of failed polls of this function, or another call without a record, is in a mark; they and the `polls` before stay for its next record.
    pub(super) fn marked(&mut self, (thread, call): (u16, CallSlot), start: Nanos, polls: u64) {
        let function = self.function(call, Function::PROBE);
        self.see(thread);
        self.settle_phases(thread, start.0, true);
        let since = &mut self.since[usize::from(thread)];
        since.end = start.0.saturating_sub(polls).max(since.end);
        since.recorded = since.end;
        since.left_out.iter_mut().for_each(|left_out| left_out.took = 0);
        self.call = Some(function);
        if let Some(threads) = &mut self.threads {
            threads.made(thread);
            threads.made_by(function);
        }
    }

    /// Notes when the first record of an event began, if that does not follow from the computing times.
    #[inline(always)]
    fn moment(&mut self, event: &Event<'_>, record: u64) {
        if self.lag >= Note::LAG {
            self.lag = 0;
            self.notes.put(record, &Note::Moment(Ticks(event.start.0.saturating_sub(self.begun))));
        }
        self.lag += event.end.0.saturating_sub(event.start.0);
    }

    #[inline(always)]
    fn put(&mut self, thread: u16, place: u64, note: &Note<'_>) {
        match &mut self.threads {
            None => self.notes.put(place, note),
            Some(threads) => threads.put(thread, place, note),
        }
    }

    /// Takes an event of the less frequent kinds; returns its function if it may make records.
    #[inline(never)]
    fn other(&mut self, event: &Event<'_>, records: &Range<u64>) -> Option<Function> {
        let thread = usize::from(event.thread);
        let as_messages = std::mem::take(&mut self.as_messages);
        self.files.event(event);
        match &event.action {
            Action::Init if self.zero.is_none() => {
                let took = Ticks(event.end.0.saturating_sub(event.start.0));
                let (note, begun) = match self.keep_init {
                    true => (Note::Initialised(took), event.start.0),
                    false => (Note::StartUp(took), event.end.0),
                };
                (self.zero, self.begun) = (Some(event.start.0), begun);
                self.since[thread].restart(begun);
                self.notes.put(0, &note);
                if let Some(threads) = &mut self.threads {
                    threads.begun(begun);
                }
            }
            Action::Finalize => {
                if let Some(zero) = self.zero {
                    self.notes.put(0, &Note::Finalised(Ticks(event.start.0.saturating_sub(zero))));
                }
                // The last record's moment is noted in any case.
                self.lag = Note::LAG;
                return Some(Function::FINALIZE);
            }
            Action::Receive(_) => return Some(Function::RECEIVE),
            Action::Probe { .. } | Action::PostReceive(_) => return Some(Function::PROBE),
            Action::Exchange { send, .. } => {
                if !records.is_empty() {
                    self.send(event.thread, send, records.start);
                }
                return Some(Function::EXCHANGE);
            }
            Action::Collective(call) if !as_messages => {
                if !records.is_empty() {
                    self.collective(event.thread, call, records.end);
                }
                return Some(Function::collective(call));
            }
            Action::Collective(_)
            | Action::Creation(_)
            | Action::CommunicatorFree(_)
            | Action::Neighbourhood(_)
            | Action::Partitioned(_)
            | Action::Other { .. } => {
                for send in std::mem::take(&mut self.detached) {
                    self.put(event.thread, send.0.into(), &Note::Detached);
                }
                self.complete(event, records);
                return Some(Function::GET);
            }
            Action::Polls { .. } if self.polls == Polls::Wait => {
                let polled = self.usual_poll.take(event);
                self.since[thread].left_out(self.marks).polled.add(polled);
                self.lag = self.lag.saturating_add(polled.all);
            }
            Action::Phase { begin, name } => {
                let (at, thread) = (event.start.0, event.thread);
                match &mut self.threads {
                    None => self.notes.put(records.end, &Note::Phase { begin: *begin, name }),
                    Some(threads) => threads.phase(thread, at, *begin, name),
                }
                self.pending.push(PhaseMark { at, thread, place: records.end });
                self.marks += 1;
            }
            // The call table has the name: without it, there are no records.
            _ => return Some(Function::CREATION),
        }
        None
    }

    /// The task's account of its time.
    pub(super) fn account(&mut self, account: &Account) {
        for (place, Entry { function, part, calls, took }) in (0..).zip(&account.0) {
            self.notes.put(place, &Note::Time { part: *part, calls: *calls, took: *took, function });
        }
    }

    /// The notes of all events: those whose places are known, by section, and the others.
    pub(super) fn finish(mut self) -> (Vec<(Section, Vec<u8>)>, Option<UnplacedNotes>) {
        while let Some(&PhaseMark { thread, at, .. }) = self.pending.first() {
            self.settle_phases(thread, at, false);
        }
        for (place, (name, used)) in (0..).zip(self.files.by_name()) {
            self.notes.put(place, &Note::File { used: *used, name });
        }
        (self.notes.into_pieces(), self.threads.map(|threads| threads.finish()))
    }

    /// A moment that is noted may be late by so much more.
    pub(super) fn lags(&mut self, took: u64) {
        self.lag = self.lag.saturating_add(took);
    }

    /// So much of the thread's time since its latest record is not computing.
    pub(super) fn leave_out(&mut self, thread: u16, took: u64) {
        self.lags(took);
        self.see(thread);
        let since = &mut self.since[usize::from(thread)];
        since.end = since.end.saturating_add(took);
        let left_out = since.left_out(self.marks);
        left_out.took = left_out.took.saturating_add(took);
    }

    /// The next record is of this thread: notes what it computed in front of the marks until then since its latest one, now that it is known
    /// whether the failed polls `waited` as a whole.
    #[cold]
    fn settle_phases(&mut self, thread: u16, until: u64, waited: bool) {
        let first = self.marks - self.pending.len() as u64;
        let due = self.pending.partition_point(|mark| mark.at <= until);
        for (number, mark) in (first..).zip(self.pending.drain(..due).collect::<Vec<_>>()) {
            let computed = self.since[usize::from(thread)].computed(mark, number, waited);
            self.put(thread, mark.place, &Note::BeforePhase(Ticks(computed)));
        }
    }

    #[inline(always)]
    fn send(&mut self, thread: u16, send: &Send, record: u64) {
        if self.tag != Some(send.tag) || self.threads.is_some() {
            self.tag = Some(send.tag);
            self.put(thread, record, &Note::Tag(send.tag));
        }
        if send.request.is_some() || send.mode == SendMode::Buffered {
            self.put(thread, record, &Note::Detached);
        }
        if send.mode == SendMode::Synchronous {
            self.put(thread, record, &Note::Synchronous);
        }
    }

    #[inline(always)]
    fn complete(&mut self, event: &Event<'_>, records: &Range<u64>) {
        let lasted = event.end.0.saturating_sub(event.start.0);
        let replayed = self.replayed.take();
        let (mut before, mut took) = (0, 0);
        // If the wait made records, its time is in these.
        if records.is_empty() {
            let since = &mut self.since[usize::from(event.thread)];
            let (polled, passed) = (since.open_polls(), since.before_end);
            before = event.start.0.saturating_sub(since.end);
            // What the polls took beyond their usual time is in no record; that is computing, or a part of a wait that is computing.
            let (all, beyond) = (polled.all - passed.all, polled.beyond - passed.beyond);
            let (all, beyond) = (all.min(before), beyond.min(before));
            (before, took) = match replayed {
                Some(true) => (before - all, 0),
                Some(false) => (before - beyond, 0),
                None => (before - all, lasted + (all - beyond)),
            };
            // A synchronisation of a window says nothing about the polls before it.
            if let Action::Complete(_) = event.action {
                since.settle_polls(replayed == Some(true));
            }
            self.leave_out(event.thread, if replayed.is_some() { lasted } else { 0 });
        }
        // Without sends, it waited for requests that the trace cannot represent, or that are complete at once there.
        if self.sent.is_empty() {
            return;
        }
        let since = &mut self.since[usize::from(event.thread)];
        since.end = event.end.0.max(since.end);
        since.before_end = since.open_polls();
        for at in 0..self.sent.len() {
            let note =
                Note::SendWait { send: self.sent[at].0.into(), before: Ticks(before), took: Ticks(took) };
            self.put(event.thread, records.end, &note);
            (before, took) = (0, 0);
        }
        self.sent.clear();
    }

    fn collective(&mut self, thread: u16, call: &Collective<'_>, after: u64) {
        let (sent, received) = (call.send_counts, call.recv_counts);
        if !sent.is_empty() || !received.is_empty() {
            // The record of a non-blocking collective is behind its mark.
            self.put(thread, after - 1, &Note::Counts { sent, received });
        }
    }
}
