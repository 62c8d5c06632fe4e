//! What a task's events say of its records that text cannot: collected for a container while they are walked.

use std::borrow::Cow;
use vef_format::capture::event::{Action, Collective, Event, Send, SendMode};
use vef_format::container::{Note, TaskNotes};
use vef_format::units::Ticks;

/// Collects the notes of one task. Places are those of its records, in the order of the walk.
#[derive(Debug, Default)]
pub(super) struct NoteTaker {
    notes: TaskNotes,
    /// When the latest event was over that gave a record or was a wait for sends.
    since: u64,
    /// The records of the sends that the present event completed.
    sent: Vec<u32>,
    tag: Option<i32>,
    call: Cow<'static, str>,
}

impl NoteTaker {
    /// The present event completed the send that gave this record.
    pub(super) fn completed(&mut self, record: u32) {
        self.sent.push(record);
    }

    /// Takes an event, which gave the records from `before` to below `after`.
    pub(super) fn event(&mut self, event: &Event<'_>, before: u64, after: u64) {
        let gave = after > before;
        match &event.action {
            Action::Init => self.since = event.start.0,
            Action::Send(send) if gave => self.send(send, before),
            Action::Exchange { send, .. } if after > before + 1 => self.send(send, before),
            Action::Complete(_) if !self.sent.is_empty() => self.complete(event, gave, after),
            Action::Collective(call) if gave => self.collective(call, after),
            Action::Phase { begin, name } => self.notes.put(after, &Note::Phase { begin: *begin, name }),
            _ => {}
        }
        if gave {
            self.since = event.end.0;
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
        // What a wait took that also gave records is in front of these, or behind them.
        let (mut before, mut took) = match gave {
            true => (0, 0),
            false => (event.start.0.saturating_sub(self.since), event.end.0.saturating_sub(event.start.0)),
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
            // The record of a non-blocking one stands behind its anchor.
            self.notes.put(after - 1, &Note::Counts { sent, received });
        }
    }

    fn called(&mut self, action: &Action<'_>, record: u64) {
        if let Some(name) = name(action)
            && name != self.call
        {
            self.notes.put(record, &Note::Call(&name));
            self.call = name;
        }
    }
}

/// The MPI function behind an event, as far as a capture tells: any wait or test is a wait, and persistent requests
/// are non-blocking ones.
fn name(action: &Action<'_>) -> Option<Cow<'static, str>> {
    let name = match action {
        Action::Send(send) => match (send.mode, send.request.is_some()) {
            (SendMode::Standard, false) => "MPI_Send",
            (SendMode::Standard, true) => "MPI_Isend",
            (SendMode::Buffered, false) => "MPI_Bsend",
            (SendMode::Buffered, true) => "MPI_Ibsend",
            (SendMode::Synchronous, false) => "MPI_Ssend",
            (SendMode::Synchronous, true) => "MPI_Issend",
            (SendMode::Ready, false) => "MPI_Rsend",
            (SendMode::Ready, true) => "MPI_Irsend",
        },
        Action::Receive(_) => "MPI_Recv",
        Action::Exchange { .. } => "MPI_Sendrecv",
        Action::Complete(_) => "MPI_Wait",
        Action::Finalize => "MPI_Finalize",
        Action::Collective(call) => {
            let name = call.operation.name();
            return Some(match call.request {
                None => format!("MPI_{name}").into(),
                Some(_) => format!("MPI_I{}", name.to_ascii_lowercase()).into(),
            });
        }
        _ => return None,
    };
    Some(name.into())
}
