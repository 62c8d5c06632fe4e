//! The calls of a capture, rank after rank, with the times at which they were made.
//!
//! Times count from the first entry of `MPI_Init`, on the clock of rank 0; those of other hosts are aligned with it
//! ([`Capture::clock_shifts`]). A message's arrow leads from the call that began to send it to the call that completed its
//! receive.

use super::drawing::Drawing;
use super::encoder::{Fact, Slice, Track};
use super::settings::{Settings, TimelineError};
use crate::flow::{Channels, Place};
use crate::wildcards::Matched;
use std::collections::{BTreeMap, HashMap};
use vef_format::capture::Capture;
use vef_format::capture::event::{Action, Collective, Event, Partitioned, RequestId};
use vef_format::ids::{CommId, CommRank, Rank};

/// Draws a capture.
pub(super) fn draw(
    capture: &Capture,
    settings: &Settings,
    drawing: &mut Drawing<'_>,
) -> Result<(), TimelineError> {
    let tasks = capture.tasks();
    settings.check_ranks(tasks)?;
    let mut zeros = Vec::new();
    for rank in (0..tasks).map(Rank) {
        zeros.push(zero(capture, rank)?);
    }
    let shifts = capture.clock_shifts(&zeros);
    let aligned = zeros.iter().zip(&shifts).map(|(&zero, &shift)| zero.wrapping_add_signed(shift));
    // A rank that recorded nothing has no time.
    let start =
        aligned.zip(&zeros).filter(|(_, zero)| **zero > 0).map(|(aligned, _)| aligned).min().unwrap_or(0);
    let first = capture.rank(Rank(0)).filter(|info| info.realtime > 0);
    let realtime = first.map(|info| info.realtime.wrapping_sub(zeros[0].wrapping_sub(start)));
    drawing.begin(realtime)?;
    let mut hosts = BTreeMap::new();
    let mut threads = tasks;
    for rank in (0..tasks).map(Rank).filter(|&rank| settings.has(rank)) {
        let host = capture.rank(rank).map_or("", |info| &info.host);
        let process = match hosts.get(host) {
            Some(&process) => process,
            None => {
                let name = if host.is_empty() { "ranks" } else { host };
                *hosts.entry(host).or_insert(drawing.add_process(name.to_owned()))
            }
        };
        let zero = start.wrapping_add_signed(-shifts[rank.index()]);
        let matched = Matched::of_rank(capture, rank)?;
        let mut events = capture.events(rank)?;
        let functions: Vec<String> =
            events.functions().iter().map(|function| function.name.clone()).collect();
        let mut calls = Calls {
            drawing: &mut *drawing,
            functions: &functions,
            matched,
            rank,
            process,
            zero,
            threads: &mut threads,
            tracks: Vec::new(),
            phases: None,
            channels: Channels::new(rank, tasks),
            receives: HashMap::new(),
            end: 0,
            done: Vec::new(),
        };
        events.each(|event| calls.take(event))?;
        calls.finish()?;
    }
    Ok(())
}

/// When a rank entered `MPI_Init`: its first event or, if it recorded none, the time in its file's head.
fn zero(capture: &Capture, rank: Rank) -> Result<u64, TimelineError> {
    /// Stops the reading without an error.
    struct Enough(Option<TimelineError>);
    impl<E: Into<TimelineError>> From<E> for Enough {
        fn from(error: E) -> Self {
            Self(Some(error.into()))
        }
    }
    let mut events = capture.events(rank)?;
    let mut first = events.span().0.0;
    let read = events.each(|event| {
        first = event.start.0;
        Err(Enough(None))
    });
    match read {
        Err(Enough(Some(error))) => Err(error),
        _ => Ok(first),
    }
}

/// The calls of one rank.
struct Calls<'a, 'd> {
    drawing: &'a mut Drawing<'d>,
    functions: &'a [String],
    matched: Matched,
    rank: Rank,
    process: u32,
    /// The timeline's zero on this rank's clock.
    zero: u64,
    /// Number of the next track of a further thread.
    threads: &'a mut u32,
    /// By thread.
    tracks: Vec<Option<u32>>,
    phases: Option<Phases>,
    channels: Channels,
    /// Pending receives, and the ids of their messages.
    receives: HashMap<RequestId, u64>,
    end: u64,
    /// Messages that the current call received.
    done: Vec<u64>,
}

/// Phases of the program that a rank is in, the outermost first, and whether their beginning was drawn.
#[derive(Debug)]
struct Phases {
    track: u32,
    open: Vec<(String, u64, bool)>,
}

/// Most phases that nest: further ones are not drawn.
const MOST_PHASES: usize = 64;

impl Calls<'_, '_> {
    fn take(&mut self, event: &Event<'_>) -> Result<(), TimelineError> {
        let [begin, end] =
            [event.start, event.end].map(|at| (at.0.wrapping_sub(self.zero) as i64).max(0) as u64);
        let end = end.max(begin);
        self.end = self.end.max(end);
        self.done.clear();
        let mut sends = None;
        match &event.action {
            Action::Communicator(communicator) => {
                self.channels.add(communicator);
                // Since version 5 of captures, a creation of communicators is an event of its own.
                if begin == end {
                    return Ok(());
                }
            }
            Action::Send(send) => {
                sends = self.channels.send(send.comm, send.dest, send.tag).map(Place::id);
            }
            Action::Receive(receive) => {
                self.done
                    .extend(self.channels.receive(receive.comm, receive.source, receive.tag).map(Place::id));
            }
            Action::Exchange { send, receive } => {
                sends = self.channels.send(send.comm, send.dest, send.tag).map(Place::id);
                self.done
                    .extend(self.channels.receive(receive.comm, receive.source, receive.tag).map(Place::id));
            }
            Action::PostReceive(posted) => {
                let message = self
                    .matched
                    .of(posted)
                    .and_then(|(source, tag)| self.channels.receive(posted.comm, source, tag));
                self.receives.extend(message.map(|message| (posted.request, message.id())));
            }
            Action::Complete(completions) if !self.receives.is_empty() => {
                self.done.extend(completions.iter().filter_map(|done| self.receives.remove(&done.request)));
            }
            Action::Forget(request) => drop(self.receives.remove(request)),
            &Action::Phase { begin: begins, name } => return self.phase(begin, begins, name),
            _ => {}
        }
        let name = match event.call.index().and_then(|at| self.functions.get(at)) {
            Some(name) => name.as_str(),
            None => match name_of(&event.action) {
                Some(name) => name,
                None => return Ok(()),
            },
        };
        if !self.drawing.shows(begin, end) {
            return Ok(());
        }
        let track = self.track(event.thread);
        let facts = Facts::of(&event.action, &self.channels, &self.done);
        let slice = Slice { begin, end, name, facts: &facts.0, sends, receives: &self.done };
        self.drawing.slice(track, &slice)
    }

    fn track(&mut self, thread: u16) -> u32 {
        let place = usize::from(thread);
        if self.tracks.len() <= place {
            self.tracks.resize(place + 1, None);
        }
        if let Some(track) = self.tracks[place] {
            return track;
        }
        let (number, name) = match thread {
            0 => (self.rank.0, format!("rank {}", self.rank)),
            _ => {
                *self.threads = self.threads.saturating_add(1);
                (*self.threads - 1, format!("rank {} thread {thread}", self.rank))
            }
        };
        let track = Track { process: self.process, thread: number, name, below: None };
        *self.tracks[place].insert(self.drawing.add_track(track))
    }

    /// A phase begins or ends. The ends of phases that were begun within it and never ended are put where its own is.
    fn phase(&mut self, at: u64, begins: bool, name: &str) -> Result<(), TimelineError> {
        let below = self.track(0);
        let (process, rank) = (self.process, self.rank);
        let phases = match &mut self.phases {
            Some(phases) => phases,
            none => {
                let name = format!("rank {rank} phases");
                let track = Track { process, thread: rank.0, name, below: Some(below) };
                none.insert(Phases { track: self.drawing.add_track(track), open: Vec::new() })
            }
        };
        if begins {
            if phases.open.len() < MOST_PHASES {
                phases.open.push((name.to_owned(), at, false));
            }
            return Ok(());
        }
        let Some(place) = phases.open.iter().rposition(|(open, ..)| open == name) else { return Ok(()) };
        phases.end(place, at, self.drawing)
    }

    fn finish(mut self) -> Result<(), TimelineError> {
        match self.phases.take() {
            Some(mut phases) => phases.end(0, self.end, self.drawing),
            None => Ok(()),
        }
    }
}

impl Phases {
    /// Ends all phases from `place` on; draws their beginnings first, if not yet drawn.
    fn end(&mut self, place: usize, at: u64, drawing: &mut Drawing<'_>) -> Result<(), TimelineError> {
        let first = self.open.get(place).map_or(at, |(_, begin, _)| *begin);
        if drawing.shows(first, at) {
            for (name, begin, drawn) in &mut self.open {
                if !std::mem::replace(drawn, true) {
                    drawing.open(self.track, *begin, name)?;
                }
            }
        }
        for (_, _, drawn) in self.open.drain(place.min(self.open.len())..).rev() {
            if drawn {
                drawing.close(self.track, at)?;
            }
        }
        Ok(())
    }
}

/// The name of a call whose function is unknown; `None`: the event is no call.
fn name_of(action: &Action<'_>) -> Option<&'static str> {
    Some(match action {
        Action::Init => "init",
        Action::Finalize => "finalize",
        Action::Abort { .. } => "abort",
        Action::Send(_) => "send",
        Action::Receive(_) => "receive",
        Action::PostReceive(_) => "post receive",
        Action::Exchange { .. } => "send and receive",
        Action::Complete(_) => "complete",
        Action::Forget(_) => "forget",
        Action::Probe { .. } => "probe",
        Action::Creation(_) => "create communicator",
        Action::Collective(collective) => collective.operation.name(),
        Action::Neighbourhood(_) => "neighbourhood collective",
        Action::Partitioned(part) => match part {
            Partitioned::Init(_) => "partitioned transfer",
            Partitioned::Start { .. } => "start",
            Partitioned::Ready { .. } => "partitions ready",
            Partitioned::Arrived { .. } => "partition arrived",
        },
        Action::Polls { .. } => "polls",
        Action::Preempted => "without a core",
        Action::Other { .. } => "other",
        Action::Communicator(_) | Action::Datatype(_) | Action::CommunicatorFree(_) => return None,
        Action::Topology(_) | Action::Meeting(_) => return None,
        Action::Phase { .. } | Action::Stopped { .. } => return None,
    })
}

/// The annotations of a call.
struct Facts(Vec<(&'static str, Fact<'static>)>);

impl Facts {
    fn of(action: &Action<'_>, channels: &Channels, done: &[u64]) -> Self {
        let mut facts = Self(Vec::new());
        match action {
            Action::Send(send) => {
                facts.peer("to", channels, send.comm, send.dest, send.tag);
                facts.number("bytes", send.bytes.0);
            }
            Action::Receive(receive) => {
                facts.peer("from", channels, receive.comm, receive.source, receive.tag);
                facts.number("bytes", receive.bytes.0);
            }
            Action::PostReceive(posted) => {
                if let Some(source) = posted.source {
                    facts.peer("from", channels, posted.comm, source, posted.tag.unwrap_or(-1));
                }
                facts.number("bytes", posted.bytes.0);
            }
            Action::Exchange { send, receive } => {
                facts.peer("to", channels, send.comm, send.dest, send.tag);
                facts.number("bytes", send.bytes.0);
                let from = channels.member(receive.comm, receive.source);
                facts.number("from", from.map_or(receive.source.0, |rank| rank.0).into());
            }
            Action::Complete(completions) => {
                facts.number("requests", completions.len());
                facts.number("received", done.len() as u64);
            }
            Action::Collective(collective) => facts.collective(collective, channels),
            Action::Partitioned(Partitioned::Ready { first, count, bytes, .. }) => {
                facts.number("partition", (*first).into());
                facts.number("partitions", (*count).into());
                facts.number("bytes", bytes.0.saturating_mul((*count).into()));
            }
            Action::Other { bytes, .. } => facts.number("bytes", bytes.0),
            Action::Polls { count } => facts.number("polls", *count),
            Action::Probe { comm, source, tag } => facts.peer("from", channels, *comm, *source, *tag),
            _ => {}
        }
        facts
    }

    fn number(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Fact::Number(value)));
    }

    /// The peer's rank in `MPI_COMM_WORLD`, if known.
    fn peer(&mut self, name: &'static str, channels: &Channels, comm: CommId, rank: CommRank, tag: i32) {
        self.number(name, channels.member(comm, rank).map_or(rank.0, |rank| rank.0).into());
        self.0.push(("tag", Fact::Signed(tag.into())));
        self.number("communicator", comm.0.into());
    }

    fn collective(&mut self, collective: &Collective<'_>, channels: &Channels) {
        self.number("communicator", collective.comm.0.into());
        self.number("bytes_sent", collective.amounts.send.0);
        self.number("bytes_received", collective.amounts.recv.0);
        if let Some(root) = collective.root {
            self.number("root", channels.member(collective.comm, root).map_or(root.0, |rank| rank.0).into());
        }
    }
}
