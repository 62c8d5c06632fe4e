//! A trace as a container: the records of its text, and beside them what the captures know and text cannot say.
//!
//! The events are walked once more, by the same walk: it counts the records that each event gave, and so tells to
//! which record a tag, a wait or a call belongs.

use crate::communicators::Communicators;
use crate::error::MixError;
use crate::output::Output;
use crate::summary::{Dropped, Summary};
use crate::walk::{Manner, Walk};
use crate::{Options, Progress, Stage};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::fs::File;
use std::io::Seek;
use std::path::Path;
use vef_format::capture::Taker;
use vef_format::capture::event::{
    Action, Completion, Completions, Event, Outcome, RequestId, Send, SendMode,
};
use vef_format::capture::{Capture, Layout};
use vef_format::container::{About, ContainerWriteError, Note, Settings, Writer};
use vef_format::ids::Rank;
use vef_format::text::{Line, Reader};
use vef_format::units::Ticks;

/// After so many lines there is progress.
const OFTEN: u64 = 1 << 14;

/// Whether a trace of this name is to be a container.
pub(crate) fn named(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("vefx"))
}

/// Writes the container `output` of the text in `draft`, which was mixed from `capture`; it has not its name yet. Where
/// records of the walk were dropped, places of the others are not known: what is said of single records is left out.
pub(crate) fn write(
    capture: &Capture,
    draft: &Output,
    output: &Output,
    options: &Options,
    summary: &Summary,
    progress: &dyn Progress,
) -> Result<(), MixError> {
    // The places of threads' records are not known, either.
    let walked = summary.dropped == Dropped::default() && summary.threaded == 0;
    progress.begin(Stage::Container, summary.records * if walked { 2 } else { 1 });
    let failed = |error: ContainerWriteError| output.error(error);
    let mut text = draft.file();
    text.rewind().map_err(|error| output.error(error))?;
    let mut text = Reader::new(text, output.path()).map_err(|error| output.error(error))?;
    let about = About { op_codes: options.op_codes.clone(), origin: origin(capture, summary) };
    let mut writer =
        Writer::new(output.file(), text.header(), &about, Settings::default()).map_err(failed)?;
    placement(capture, &mut writer).map_err(failed)?;
    if walked {
        let manner = Manner {
            by_length: capture.layout() == Layout::Prospector,
            with_room: false,
            lower: options.lower_collectives.as_ref(),
        };
        let communicators = Communicators::new(capture.tasks());
        for rank in (0..capture.tasks()).map(Rank) {
            let mut events = capture.events(rank)?;
            let mut walk = Walk::new(rank, &communicators, manner, events.has_many_threads());
            let mut author = Author::new(rank, &mut writer);
            events.each(|event| {
                let before = walk.records();
                walk.take(event)?;
                author.event(event, before, walk.records()).map_err(failed)
            })?;
            progress.advance(walk.records());
        }
    }
    let mut lines = 0u64;
    while let Some(line) = text.next().map_err(|error| output.error(error))? {
        lines += 1;
        if lines.is_multiple_of(OFTEN) {
            progress.advance(OFTEN);
        }
        match line {
            Line::Communicator { id, members } => writer.communicator(id, members),
            Line::Message(message) => writer.message(&message),
            Line::Collective(part) => writer.collective(&part),
        }
        .map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    Ok(())
}

/// Where the trace comes from, as task 0 tells it, and what a reader should know of the capture.
fn origin(capture: &Capture, summary: &Summary) -> Vec<(String, String)> {
    let mut origin = Vec::new();
    let mut tell = |name: &str, value: &str| {
        if !value.is_empty() {
            origin.push((name.to_owned(), value.to_owned()));
        }
    };
    if let Some(info) = capture.rank(Rank(0)) {
        tell("program", info.program.first().map_or("", String::as_str));
        tell("command", &info.program.join(" "));
        tell("host", &info.host);
        tell("mpi", &info.mpi);
        tell("library", &info.library);
    }
    for host in summary.oversubscribed() {
        tell("oversubscribed", &host.to_string());
    }
    for (name, tally) in &summary.not_representable {
        tell("not representable", &format!("{name}: {} calls, {}", tally.count, tally.bytes));
    }
    if !summary.killed.is_empty() {
        tell("killed", &format!("{} tasks without MPI_Finalize", summary.killed.len()));
    }
    tell("version", concat!("vef ", env!("CARGO_PKG_VERSION")));
    origin
}

/// Which task ran where, if all captures say so.
fn placement(capture: &Capture, writer: &mut Writer<&File>) -> Result<(), ContainerWriteError> {
    let host =
        |rank: u32| capture.rank(Rank(rank)).map(|info| info.host.as_str()).filter(|host| !host.is_empty());
    if (0..capture.tasks()).any(|rank| host(rank).is_none()) {
        return Ok(());
    }
    let mut last = None;
    for rank in 0..capture.tasks() {
        let here = host(rank);
        if let Some(name) = here.filter(|_| here != last) {
            writer.note(None, rank.into(), &Note::Host(name))?;
        }
        last = here;
    }
    Ok(())
}

/// Writes the notes of one task.
struct Author<'w, 'f> {
    writer: &'w mut Writer<&'f File>,
    task: Rank,
    /// When the latest event was over that gave a record or was a wait for sends.
    since: u64,
    /// The records of sends under way.
    sends: HashMap<RequestId, u64>,
    tag: Option<i32>,
    call: Cow<'static, str>,
}

impl<'w, 'f> Author<'w, 'f> {
    fn new(task: Rank, writer: &'w mut Writer<&'f File>) -> Self {
        Self { writer, task, since: 0, sends: HashMap::new(), tag: None, call: Cow::default() }
    }

    /// Takes an event, which gave the records from `before` to below `after`.
    fn event(&mut self, event: &Event<'_>, before: u64, after: u64) -> Result<(), ContainerWriteError> {
        let gave = after > before;
        match &event.action {
            Action::Init => self.since = event.start.0,
            Action::Send(send) if gave => self.send(send, before)?,
            Action::Exchange { send, .. } if after > before + 1 => self.send(send, before)?,
            Action::Complete(completions) => self.complete(event, *completions, gave, after)?,
            Action::Forget(request) => drop(self.sends.remove(request)),
            Action::Collective(call) if gave => {
                let (sent, received) = (call.send_counts, call.recv_counts);
                if !sent.is_empty() || !received.is_empty() {
                    // The record of a non-blocking one stands behind its anchor.
                    self.note(after - 1, &Note::Counts { sent, received })?;
                }
            }
            Action::Phase { begin, name } => self.note(after, &Note::Phase { begin: *begin, name })?,
            _ => {}
        }
        if gave {
            self.since = event.end.0;
            self.called(&event.action, before)?;
        }
        Ok(())
    }

    fn note(&mut self, place: u64, note: &Note<'_>) -> Result<(), ContainerWriteError> {
        self.writer.note(Some(self.task), place, note)
    }

    fn send(&mut self, send: &Send, record: u64) -> Result<(), ContainerWriteError> {
        if self.tag != Some(send.tag) {
            self.tag = Some(send.tag);
            self.note(record, &Note::Tag(send.tag))?;
        }
        if let Some(request) = send.request {
            self.sends.insert(request, record);
        }
        match send.request.is_some() || send.mode == SendMode::Buffered {
            true => self.note(record, &Note::Detached),
            false => Ok(()),
        }
    }

    fn complete(
        &mut self,
        event: &Event<'_>,
        completions: Completions<'_>,
        gave: bool,
        after: u64,
    ) -> Result<(), ContainerWriteError> {
        // What a wait took that also gave records is in front of these, or behind them.
        let (mut before, mut took) = match gave {
            true => (0, 0),
            false => (event.start.0.saturating_sub(self.since), event.end.0.saturating_sub(event.start.0)),
        };
        for Completion { request, outcome } in completions.iter() {
            let Some(send) = self.sends.remove(&request) else { continue };
            if outcome == Outcome::Cancelled {
                continue;
            }
            let wait = Note::SendWait { send, before: Ticks(before), took: Ticks(took) };
            self.note(after, &wait)?;
            (before, took) = (0, 0);
            self.since = event.end.0.max(self.since);
        }
        Ok(())
    }

    fn called(&mut self, action: &Action<'_>, record: u64) -> Result<(), ContainerWriteError> {
        match name(action) {
            Some(name) if name != self.call => {
                self.note(record, &Note::Call(&name))?;
                self.call = name;
                Ok(())
            }
            _ => Ok(()),
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
