//! Makes the notes of a container, which text cannot hold, during the walk.

use crate::Polls;
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
    pub(super) fn completed(&mut self, record: u32) {
        self.sent.push(record);
    }

    /// Takes an event that made the records from `before` to below `after`.
    pub(super) fn event(&mut self, event: &Event<'_>, before: u64, after: u64) {
        let gave = after > before;
        match &event.action {
            Action::Init if self.zero.is_none() => {
                (self.zero, self.since) = (Some(event.start.0), event.start.0);
                self.notes.put(0, &Note::Initialised(Ticks(event.end.0.saturating_sub(event.start.0))));
            }
            Action::Finalize => {
                if let Some(zero) = self.zero {
                    self.notes.put(0, &Note::Finalised(Ticks(event.start.0.saturating_sub(zero))));
                }
            }
            Action::Send(send) if gave => self.send(send, before),
            Action::Exchange { send, .. } if after > before + 1 => self.send(send, before),
            Action::Complete(_) if !self.sent.is_empty() => self.complete(event, gave, after),
            // The polls waited for requests that the trace cannot represent.
            Action::Complete(_) if !gave => self.polled = 0,
            Action::Collective(call) if gave => self.collective(call, after),
            Action::Polls { .. } if self.polls == Polls::Wait => {
                self.polled = self.polled.saturating_add(event.end.0.saturating_sub(event.start.0));
            }
            Action::Phase { begin, name } => self.notes.put(after, &Note::Phase { begin: *begin, name }),
            _ => {}
        }
        if gave {
            (self.since, self.polled) = (event.end.0, 0);
            self.called(&event.action, before);
        }
    }

    /// The notes of all events.
    pub(super) fn finish(self) -> TaskNotes {
        self.notes
    }

    fn send(&mut self, send: &Send, record: u64) {
        if self.tag != Some(send.tag) {
            self.tag = Some(send.tag);
            self.notes.put(record, &Note::Tag(send.tag));
        }
        if send.request.is_some() || send.mode == SendMode::Buffered {
            self.notes.put(record, &Note::Detached);
        }
    }

    fn complete(&mut self, event: &Event<'_>, gave: bool, after: u64) {
        // If the wait also made records, its time is in these.
        let (mut before, mut took) = match gave {
            true => (0, 0),
            false => {
                let before = event.start.0.saturating_sub(self.since);
                let polled = std::mem::take(&mut self.polled).min(before);
                (before - polled, event.end.0.saturating_sub(event.start.0) + polled)
            }
        };
        for send in self.sent.drain(..) {
            let wait = Note::SendWait { send: send.into(), before: Ticks(before), took: Ticks(took) };
            self.notes.put(after, &wait);
            (before, took) = (0, 0);
        }
        self.since = event.end.0.max(self.since);
    }

    fn collective(&mut self, call: &Collective<'_>, after: u64) {
        let (sent, received) = (call.send_counts, call.recv_counts);
        if !sent.is_empty() || !received.is_empty() {
            // The record of a non-blocking collective is behind its mark.
            self.notes.put(after - 1, &Note::Counts { sent, received });
        }
    }

    #[inline]
    fn called(&mut self, action: &Action<'_>, record: u64) {
        let function = Function::of(action);
        if function.is_some() && function != self.call {
            self.call = function;
            self.note_call(record);
        }
    }

    fn note_call(&mut self, record: u64) {
        let Some(function) = self.call else { return };
        self.notes.put(record, &Note::Call(&function.name()));
    }
}

/// The MPI function of an event, as far as a capture distinguishes: all waits and tests are `MPI_Wait`, and persistent
/// requests are non-blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Send { mode: SendMode, blocking: bool },
    Receive,
    Exchange,
    Wait,
    Finalize,
    Collective { operation: Operation, blocking: bool },
}

impl Function {
    #[inline]
    fn of(action: &Action<'_>) -> Option<Self> {
        Some(match action {
            Action::Send(send) => Self::Send { mode: send.mode, blocking: send.request.is_none() },
            Action::Receive(_) => Self::Receive,
            Action::Exchange { .. } => Self::Exchange,
            Action::Complete(_) => Self::Wait,
            Action::Finalize => Self::Finalize,
            Action::Collective(call) => {
                Self::Collective { operation: call.operation, blocking: call.request.is_none() }
            }
            _ => return None,
        })
    }

    fn name(self) -> String {
        let name = match self {
            Self::Send { mode, blocking } => match (mode, blocking) {
                (SendMode::Standard, true) => "MPI_Send",
                (SendMode::Standard, false) => "MPI_Isend",
                (SendMode::Buffered, true) => "MPI_Bsend",
                (SendMode::Buffered, false) => "MPI_Ibsend",
                (SendMode::Synchronous, true) => "MPI_Ssend",
                (SendMode::Synchronous, false) => "MPI_Issend",
                (SendMode::Ready, true) => "MPI_Rsend",
                (SendMode::Ready, false) => "MPI_Irsend",
            },
            Self::Receive => "MPI_Recv",
            Self::Exchange => "MPI_Sendrecv",
            Self::Wait => "MPI_Wait",
            Self::Finalize => "MPI_Finalize",
            Self::Collective { operation, blocking: true } => return format!("MPI_{}", operation.name()),
            Self::Collective { operation, blocking: false } => {
                return format!("MPI_I{}", operation.name().to_ascii_lowercase());
            }
        };
        name.to_owned()
    }
}
