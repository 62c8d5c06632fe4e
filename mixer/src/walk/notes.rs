//! Makes the notes of a container, which text cannot hold, during the walk.

use super::polls::{Polled, UsualPoll, waits_by_polls};
use crate::Polls;
use crate::function::Function;
use crate::index::RecordIndex;
use crate::thread_notes::{ThreadNotes, UnplacedNotes};
use std::ops::Range;
use vef_format::account::{Account, Entry};
use vef_format::capture;
use vef_format::capture::event::{Action, CallSlot, Collective, Detail, Event, Send, SendMode};
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
    keep_preempted: bool,
    usual_poll: UsualPoll,
    /// Time in calls since the last moment was noted, at most.
    lag: u64,
    files: FileUses,
    /// The functions in the rank's call table.
    called: Vec<Option<Function>>,
}

/// The points from which a thread's computing counts, as much later as it had no core, or waited, since then.
#[derive(Clone, Debug, Default)]
struct Since {
    /// End of its latest event that made a record or waited for sends.
    end: u64,
    /// Its failed polls after that.
    polled: Polled,
    /// End of its latest event that made a record.
    recorded: u64,
    /// The phases that began or ended since then, if it is not known what it computed in front of them.
    phases: Vec<BeforePhase>,
}

/// In front of which record a phase begins or ends, what its thread computed before since the record in front, failed polls included, and these polls.
#[derive(Clone, Copy, Debug)]
struct BeforePhase {
    place: u64,
    computed: u64,
    polled: Polled,
}

impl Since {
    fn at(event: u64) -> Self {
        Self { end: event, recorded: event, ..Self::default() }
    }
}

impl NoteTaker {
    /// Begins before the first event of a rank with these functions in its call table; `threads`: several threads make calls.
    pub(super) fn new(
        polls: Polls,
        keep_init: bool,
        keep_preempted: bool,
        threads: bool,
        functions: &[capture::Function],
    ) -> Self {
        let called = functions.iter().map(|function| Function::named(&function.name)).collect();
        let threads = threads.then(Box::default);
        Self { polls, keep_init, keep_preempted, threads, called, ..Self::default() }
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
        let thread = usize::from(event.thread);
        if thread >= self.since.len() {
            self.since.resize(thread + 1, Since::at(self.begun));
        }
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
            if !self.since[thread].phases.is_empty() {
                self.settle_phases(event.thread, waits_by_polls(&event.action));
            }
            self.since[thread] = Since::at(event.end.0);
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

    /// What a thread computed in front of failed polls of this function is in a mark; they and the `polls` before stay for its next record.
    pub(super) fn marked(&mut self, (thread, call): (u16, CallSlot), start: Nanos, polls: u64) {
        let function = self.function(call, Function::PROBE);
        let since = &mut self.since[usize::from(thread)];
        since.end = start.0.saturating_sub(polls).max(since.end);
        since.recorded = start.0;
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
                self.since[thread] = Since::at(begun);
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
            | Action::Neighbourhood(_)
            | Action::Partitioned(_)
            | Action::Other { .. }
                if !records.is_empty() =>
            {
                for send in std::mem::take(&mut self.detached) {
                    self.put(event.thread, send.0.into(), &Note::Detached);
                }
                self.complete(event, records);
                return Some(Function::GET);
            }
            Action::Polls { .. } if self.polls == Polls::Wait => {
                let polled = self.usual_poll.take(event);
                self.since[thread].polled.add(polled);
                self.lag = self.lag.saturating_add(polled.all);
            }
            Action::Preempted => {
                let took = event.end.0.saturating_sub(event.start.0);
                match self.keep_preempted {
                    true => self.lag = self.lag.saturating_add(took),
                    false => self.leave_out(event.thread, took, 0),
                }
            }
            Action::Phase { begin, name } => {
                self.put(event.thread, records.end, &Note::Phase { begin: *begin, name });
                let since = &mut self.since[thread];
                let computed = event.start.0.saturating_sub(since.recorded);
                since.phases.push(BeforePhase { place: records.end, computed, polled: since.polled });
            }
            Action::Other { detail: Detail::Sync { .. }, .. }
                if self.replayed.is_some() || !self.sent.is_empty() =>
            {
                self.complete(event, records);
            }
            // The call table has the name: without it, there are no records.
            _ if !records.is_empty() => return Some(Function::CREATION),
            _ => {}
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
        for thread in 0..self.since.len() as u16 {
            self.settle_phases(thread, false);
        }
        for (place, (name, used)) in (0..).zip(self.files.by_name()) {
            self.notes.put(place, &Note::File { used: *used, name });
        }
        (self.notes.into_pieces(), self.threads.map(|threads| threads.finish()))
    }

    /// So much of the thread's time since its latest record is not computing, and so long were failed polls that waited.
    fn leave_out(&mut self, thread: u16, took: u64, polls: u64) {
        self.lag = self.lag.saturating_add(took);
        let Since { end, recorded, .. } = &mut self.since[usize::from(thread)];
        let all = took.saturating_add(polls);
        (*end, *recorded) = (end.saturating_add(all), recorded.saturating_add(all));
    }

    /// Notes what the thread computed in front of the phases that began or ended since its latest record, now that it is known whether the failed
    /// polls before them `waited` as a whole.
    fn settle_phases(&mut self, thread: u16, waited: bool) {
        for BeforePhase { place, computed, polled } in
            std::mem::take(&mut self.since[usize::from(thread)].phases)
        {
            let waited = if waited { polled.all } else { polled.beyond };
            self.put(thread, place, &Note::BeforePhase(Ticks(computed.saturating_sub(waited))));
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
    }

    #[inline(always)]
    fn complete(&mut self, event: &Event<'_>, records: &Range<u64>) {
        let lasted = event.end.0.saturating_sub(event.start.0);
        let replayed = self.replayed.take();
        let since = &mut self.since[usize::from(event.thread)];
        let polled = std::mem::take(&mut since.polled);
        let (mut before, mut took) = (0, 0);
        // If the wait made records, its time is in these.
        if records.is_empty() {
            before = event.start.0.saturating_sub(since.end);
            // What the polls took beyond their usual time is in no record; that is computing, or a part of a wait that is computing.
            let (all, beyond) = (polled.all.min(before), polled.beyond.min(before));
            (before, took) = match replayed {
                Some(true) => (before - all, 0),
                Some(false) => (before - beyond, 0),
                None => (before - all, lasted + (all - beyond)),
            };
        }
        if records.is_empty() {
            self.settle_phases(event.thread, replayed == Some(true));
            let polls = if replayed == Some(true) { polled.all } else { polled.beyond };
            self.leave_out(event.thread, if replayed.is_some() { lasted } else { 0 }, polls);
        }
        // Without sends, it waited for requests that the trace cannot represent, or that are complete at once there.
        if self.sent.is_empty() {
            return;
        }
        let since = &mut self.since[usize::from(event.thread)];
        since.end = event.end.0.max(since.end);
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
