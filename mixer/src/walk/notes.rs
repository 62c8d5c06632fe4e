//! Makes the notes of a container, which text cannot hold, during the walk.

use crate::Polls;
use std::ops::Range;
use vef_format::capture::event::{Action, Collective, Event, Send, SendMode};
use vef_format::container::{Note, TaskNotes};
use vef_format::operation::Operation;
use vef_format::units::Ticks;

/// Makes the notes of one task, which refer to records by their index in the walk.
#[derive(Debug, Default)]
pub(super) struct NoteTaker {
    notes: TaskNotes,
    /// End of the latest event that made a record or waited for sends.
    since: u64,
    /// Records of the sends that the current event completes.
    sent: Vec<u32>,
    tag: Option<i32>,
    call: Option<Function>,
    /// When the task entered `MPI_Init`.
    zero: Option<u64>,
    polls: Polls,
    /// Duration of failed polls since `since`.
    polled: u64,
}

impl NoteTaker {
    /// Begins before the first event.
    pub(super) fn new(polls: Polls) -> Self {
        Self { polls, ..Self::default() }
    }

    /// The current event completes the send of `record`.
    #[inline(always)]
    pub(super) fn completed(&mut self, record: u32) {
        self.sent.push(record);
    }

    /// Takes an event that made `records`.
    #[inline(always)]
    pub(super) fn event(&mut self, event: &Event<'_>, records: Range<u64>) {
        let function = match &event.action {
            Action::Send(send) => {
                if !records.is_empty() {
                    self.send(send, records.start);
                }
                Function::send(send)
            }
            Action::Complete(_) => {
                self.complete(event, &records);
                Function::WAIT
            }
            // A copy, so that the events above can be in registers.
            _ => match self.other(&event.clone(), &records) {
                Some(function) => function,
                None => return,
            },
        };
        if !records.is_empty() {
            (self.since, self.polled) = (event.end.0, 0);
            if self.call != Some(function) {
                self.call = Some(function);
                self.notes.call(records.start, function.0.into(), || function.name());
            }
        }
    }

    /// Takes an event of the less frequent kinds; returns its function if it may make records.
    #[inline(never)]
    fn other(&mut self, event: &Event<'_>, records: &Range<u64>) -> Option<Function> {
        match &event.action {
            Action::Init if self.zero.is_none() => {
                (self.zero, self.since) = (Some(event.start.0), event.start.0);
                self.notes.put(0, &Note::Initialised(Ticks(event.end.0.saturating_sub(event.start.0))));
            }
            Action::Finalize => {
                if let Some(zero) = self.zero {
                    self.notes.put(0, &Note::Finalised(Ticks(event.start.0.saturating_sub(zero))));
                }
                return Some(Function::FINALIZE);
            }
            Action::Receive(_) => return Some(Function::RECEIVE),
            Action::Exchange { send, .. } => {
                if records.end > records.start + 1 {
                    self.send(send, records.start);
                }
                return Some(Function::EXCHANGE);
            }
            Action::Collective(call) => {
                if !records.is_empty() {
                    self.collective(call, records.end);
                }
                return Some(Function::collective(call));
            }
            Action::Polls { .. } if self.polls == Polls::Wait => {
                self.polled = self.polled.saturating_add(event.end.0.saturating_sub(event.start.0));
            }
            Action::Phase { begin, name } => {
                self.notes.put(records.end, &Note::Phase { begin: *begin, name })
            }
            _ => {}
        }
        None
    }

    /// The notes of all events.
    pub(super) fn finish(self) -> TaskNotes {
        self.notes
    }

    #[inline(always)]
    fn send(&mut self, send: &Send, record: u64) {
        if self.tag != Some(send.tag) {
            self.tag = Some(send.tag);
            self.notes.put(record, &Note::Tag(send.tag));
        }
        if send.request.is_some() || send.mode == SendMode::Buffered {
            self.notes.put(record, &Note::Detached);
        }
    }

    #[inline(always)]
    fn complete(&mut self, event: &Event<'_>, records: &Range<u64>) {
        // Without sends, the polls waited for requests that the trace cannot represent.
        let polled = std::mem::take(&mut self.polled);
        if self.sent.is_empty() {
            return;
        }
        let (mut before, mut took) = (0, 0);
        // If the wait made records, its time is in these.
        if records.is_empty() {
            before = event.start.0.saturating_sub(self.since);
            let polled = polled.min(before);
            (before, took) = (before - polled, event.end.0.saturating_sub(event.start.0) + polled);
        }
        self.since = event.end.0.max(self.since);
        for &send in &self.sent {
            let wait = Note::SendWait { send: send.into(), before: Ticks(before), took: Ticks(took) };
            self.notes.put(records.end, &wait);
            (before, took) = (0, 0);
        }
        self.sent.clear();
    }

    fn collective(&mut self, call: &Collective<'_>, after: u64) {
        let (sent, received) = (call.send_counts, call.recv_counts);
        if !sent.is_empty() || !received.is_empty() {
            // The record of a non-blocking collective is behind its mark.
            self.notes.put(after - 1, &Note::Counts { sent, received });
        }
    }
}

/// The MPI function of an event, as far as a capture distinguishes: all waits and tests are `MPI_Wait`, and persistent
/// requests are non-blocking. Twice the index of its name, plus one if it is non-blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function(u8);

/// The first names: those of sends, by mode, then four others. Those of collectives follow, by operation.
const NAMES: [&str; 8] = ["Send", "Bsend", "Ssend", "Rsend", "Recv", "Sendrecv", "Wait", "Finalize"];

impl Function {
    const RECEIVE: Self = Self(2 * 4);
    const EXCHANGE: Self = Self(2 * 5);
    const WAIT: Self = Self(2 * 6);
    const FINALIZE: Self = Self(2 * 7);

    #[inline(always)]
    fn send(send: &Send) -> Self {
        Self(2 * send.mode as u8 + u8::from(send.request.is_some()))
    }

    fn collective(call: &Collective<'_>) -> Self {
        Self(2 * (NAMES.len() as u8 + call.operation as u8) + u8::from(call.request.is_some()))
    }

    fn name(self) -> String {
        let at = usize::from(self.0 / 2);
        let name = NAMES.get(at).copied().unwrap_or_else(|| Operation::ALL[at - NAMES.len()].name());
        match self.0 % 2 {
            0 => format!("MPI_{name}"),
            _ => format!("MPI_I{}", name.to_ascii_lowercase()),
        }
    }
}
