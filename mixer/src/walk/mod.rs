//! The walk over one task's events, in program order: they become records, and places in channels.
//!
//! Numbers in comments are the rules of `docs/mixing.md`.

mod collective;
mod locals;
mod notes;
mod recent;
mod requests;
mod timeline;

use crate::Polls;
use crate::channels::{Channel, NONE, Posting};
use crate::communicators::{Communicators, Group, Identity};
use crate::error::{MixError, Problem};
use crate::packed::{After, Body, Records};
use crate::summary::Tally;
use crate::task::{Task, Wait};
use collectives::choose::Table;
use hashbrown::HashMap;
use locals::{Local, Locals};
use notes::NoteTaker;
use recent::{Name, Recent};
use requests::Requests;
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::Timeline;
use vef_format::capture::event::{
    Action, CallSlot, Communicator, Completions, Detail, Event, Io, Outcome, PostReceive, Receive, RequestId,
    Send, Transfer,
};
use vef_format::capture::{Function, Taker};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::Bytes;

/// How to walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner<'a> {
    /// Whether channels tell lengths apart ([`Channel::length`]), because the capture does not tell communicators.
    pub(crate) by_length: bool,
    /// Whether to note the room of every receive ([`Task::room`]).
    pub(crate) with_room: bool,
    /// Whether to collect what a container says beside the records ([`Task::notes`]).
    pub(crate) with_notes: bool,
    /// What failed polls are.
    pub(crate) polls: Polls,
    /// With what table to replace collectives by messages, if at all.
    pub(crate) lower: Option<&'a Table>,
}

/// Walks over the events of one task.
pub(crate) struct Walk<'a> {
    rank: Rank,
    communicators: &'a Communicators,
    manner: Manner<'a>,
    comms: Locals,
    /// Channels of sends, and of receives; not used where channels have lengths.
    recent: [Recent; 2],
    requests: Requests<Pending>,
    /// What receives under way asked for whose channel is not known yet, by their numbers.
    asked: HashMap<u32, Asked>,
    /// The receives that replaced collectives wait for ([`Pending::Lowered`]).
    lowered: Vec<Vec<u32>>,
    timeline: Timeline,
    /// Calls that a trace cannot represent, by function.
    not_representable: BTreeMap<CallSlot, Tally>,
    notes: Option<Box<NoteTaker>>,
    task: Task,
}

/// Places in [`Walk::recent`].
const SENDS: usize = 0;
const RECEIVES: usize = 1;

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
enum Pending {
    /// Its completion gives no record.
    NoCompletionRecord,
    /// A send: the indices of the message and of its record.
    Send { message: u32, record: u32 },
    /// A receive, by its index.
    Receive(u32),
    /// A collective, by its index in its task.
    Collective(u32),
    /// A collective that was replaced by messages, by its index in [`Walk::lowered`].
    Lowered(u32),
}

impl Taker for Walk<'_> {
    type Error = MixError;

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>) -> Result<(), MixError> {
        // Every number a task gives is at most its number of events, and one is kept for `NONE`.
        if self.task.counts.events >= u64::from(NONE - 1) {
            return Err(MixError::TooMany("events of one task"));
        }
        let number = self.task.counts.events;
        self.task.counts.events += 1;
        self.timeline.meet(&mut self.task, event);
        let before = self.records();
        let done = match &event.action {
            Action::Send(send) => self.send(event, send).map(|_| ()),
            Action::PostReceive(posted) => self.post(event, posted),
            Action::Complete(completions) => self.complete(event, *completions),
            _ => self.act(event),
        };
        if let Some(notes) = &mut self.notes {
            notes.event(event, before, self.task.records.len() as u64);
        }
        done.map_err(|problem| MixError::Event { task: self.rank, event: number, problem })
    }
}

/// What a receive asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    comm: CommId,
    source: Option<Rank>,
    tag: Option<i32>,
    room: Bytes,
}

impl<'a> Walk<'a> {
    /// At the front of the events of `rank`, whose calls several threads may make (`threads`).
    pub(crate) fn new(
        rank: Rank,
        communicators: &'a Communicators,
        manner: Manner<'a>,
        threads: bool,
    ) -> Self {
        let records = Records::of(rank, threads);
        let postings = threads.then(Vec::new);
        let task = Task { records, postings, room: manner.with_room.then(Vec::new), ..Task::default() };
        Self {
            rank,
            communicators,
            manner,
            comms: Locals::default(),
            recent: Default::default(),
            requests: Requests::new(),
            asked: HashMap::new(),
            lowered: Vec::new(),
            timeline: Timeline::default(),
            not_representable: BTreeMap::new(),
            notes: manner.with_notes.then(|| Box::new(NoteTaker::new(manner.polls))),
            task,
        }
    }

    /// How many records the events so far gave.
    pub(crate) fn records(&self) -> u64 {
        self.task.records.len() as u64
    }

    /// Ends the walk over events whose functions are these.
    pub(crate) fn finish(mut self, functions: &[Function]) -> Task {
        self.timeline.release(&mut self.task, u64::MAX, None);
        for (call, tally) in std::mem::take(&mut self.not_representable) {
            let function = call.index().and_then(|at| functions.get(at));
            let name = function.map_or("calls between communicators", |function| &function.name);
            self.task.not_representable.insert(name.to_owned(), tally);
        }
        let open: Vec<_> = self.requests.drain().collect();
        self.task.counts.never_completed = open.len() as u64;
        let receive = |pending| if let Pending::Receive(number) = pending { Some(number) } else { None };
        let mut open: Vec<_> = open.into_iter().filter_map(receive).collect();
        open.sort_unstable();
        open.into_iter().for_each(|number| self.abandon(number));
        self.task.notes = self.notes.map(|notes| notes.finish().into_pieces()).unwrap_or_default();
        self.task.shrink();
        self.task
    }

    /// Takes an event of the kinds that are not most of all.
    #[inline(never)]
    fn act(&mut self, event: &Event<'_>) -> Result<(), Problem> {
        match &event.action {
            Action::Init => {
                // Rule 1.
                if self.timeline.begin(event) {
                    self.task.zero = event.start;
                }
                Ok(())
            }
            Action::Finalize => {
                // Rule 7.
                self.task.counts.finalized = true;
                self.timeline.join(&mut self.task, event);
                self.place(event, Body::Mark, After::Sent);
                Ok(())
            }
            Action::Communicator(communicator) => self.communicator(communicator),
            Action::Receive(receive) => {
                if let Some(number) = self.receive(event, receive)? {
                    self.place(event, Body::Mark, After::Received(number));
                }
                Ok(())
            }
            Action::Exchange { send, receive } => self.exchange(event, send, receive),
            Action::Forget(request) => {
                match self.requests.remove(*request) {
                    Some(Pending::Receive(number)) => self.abandon(number),
                    Some(_) => {}
                    None => self.task.counts.unknown_requests += 1,
                }
                Ok(())
            }
            Action::Collective(collective) => self.collective(event, collective),
            Action::Polls { .. } => {
                if self.manner.polls == Polls::Wait {
                    self.timeline.polled(event);
                }
                Ok(())
            }
            Action::Other { bytes, detail } => {
                self.not_representable(event.call, *bytes);
                match detail {
                    Detail::Transfer(Transfer { request, .. }) | Detail::Io(Io { request, .. }) => {
                        self.start(*request, Pending::NoCompletionRecord)
                    }
                    _ => Ok(()),
                }
            }
            Action::Send(_)
            | Action::PostReceive(_)
            | Action::Complete(_)
            | Action::Datatype(_)
            | Action::CommunicatorFree(_)
            | Action::Probe { .. }
            | Action::Phase { .. }
            | Action::Abort { .. }
            | Action::Stopped { .. } => Ok(()),
        }
    }

    fn communicator(&mut self, told: &Communicator<'_>) -> Result<(), Problem> {
        let (identity, group) = if told.foreign {
            // Only its own task's table needs it; its members may be of another world.
            (Identity(NONE), Arc::new(Group::Strided { first: 0, stride: 1, count: 0 }))
        } else {
            let parent = |comm| self.comms.get(comm).ok().map(|local| local.identity);
            self.communicators.intern(self.rank, told.id.0, told.origin, told.members, parent)?
        };
        self.comms
            .add(told.id, Local { identity, group, foreign: told.foreign, slot: None, rank: CommRank(0) })
    }

    /// Rule 3. Says whether it gave a record.
    #[inline(always)]
    fn send(&mut self, event: &Event<'_>, send: &Send) -> Result<bool, Problem> {
        let name = (send.comm, send.dest, send.tag);
        let Some(channel) = self.channel(SENDS, name, send.bytes)? else {
            self.not_representable(event.call, send.bytes);
            self.start(send.request, Pending::NoCompletionRecord)?;
            return Ok(false);
        };
        let (message, body) = self.message(channel, send.bytes);
        self.start(send.request, Pending::Send { message, record: self.records() as u32 })?;
        self.place(event, body, After::Sent);
        Ok(true)
    }

    /// The channel of a send or receive of so many bytes; `None`: its communicator has no place in a trace.
    #[inline(always)]
    fn channel(&mut self, side: usize, name: Name, bytes: Bytes) -> Result<Option<u32>, Problem> {
        match self.recent[side].find(name) {
            Some(number) => Ok(Some(number)),
            None => self.look_up(side, name, bytes),
        }
    }

    /// [`Walk::channel`] of one that was not met lately.
    #[inline(never)]
    fn look_up(&mut self, side: usize, name: Name, bytes: Bytes) -> Result<Option<u32>, Problem> {
        let (comm, rank, tag) = name;
        let Some((comm, peer)) = self.comms.peer(comm, rank)? else { return Ok(None) };
        let length = if self.manner.by_length { bytes.0 } else { 0 };
        let channel = Channel { comm, peer, tag, length };
        let number = match side {
            SENDS => self.task.sends.channel(channel),
            _ => self.task.receives.channel(channel),
        };
        if !self.manner.by_length {
            self.recent[side].remember(name, number);
        }
        Ok(Some(number))
    }

    /// A message takes its place: its number, and its record.
    #[inline(always)]
    fn message(&mut self, channel: u32, bytes: Bytes) -> (u32, Body) {
        let number = self.task.sends.post(channel);
        self.task.counts.bytes = self.task.counts.bytes.saturating_add(bytes.0);
        (number, Body::Message(bytes))
    }

    /// A receive that is over: its number in posting order, unless its communicator has no place in a trace.
    fn receive(&mut self, event: &Event<'_>, receive: &Receive) -> Result<Option<u32>, Problem> {
        let name = (receive.comm, receive.source, receive.tag);
        let Some(channel) = self.channel(RECEIVES, name, receive.bytes)? else { return Ok(None) };
        let number = self.posted(event, channel, Wait::Waited, receive.bytes);
        self.received(event, number);
        Ok(Some(number))
    }

    /// Rule 8. Both halves begin at once, so the receive takes its place in its channel here.
    fn exchange(&mut self, event: &Event<'_>, send: &Send, receive: &Receive) -> Result<(), Problem> {
        let sent = self.send(event, send)?;
        let Some(number) = self.receive(event, receive)? else { return Ok(()) };
        let after = After::Received(number);
        if sent {
            self.timeline.follow(&mut self.task, event, Body::Mark);
            self.timeline.done(event, after);
        } else {
            self.place(event, Body::Mark, after);
        }
        Ok(())
    }

    /// Rule 2.
    #[inline(always)]
    fn post(&mut self, event: &Event<'_>, posted: &PostReceive) -> Result<(), Problem> {
        let pending = match (posted.source, posted.tag) {
            (Some(source), Some(tag)) if !self.manner.by_length => {
                match self.channel(RECEIVES, (posted.comm, source, tag), posted.bytes)? {
                    Some(channel) => Pending::Receive(self.posted(event, channel, Wait::Not, posted.bytes)),
                    None => Pending::NoCompletionRecord,
                }
            }
            _ => self.ask(event, posted)?,
        };
        self.start(Some(posted.request), pending)
    }

    /// A receive is posted whose channel its completion will tell.
    #[inline(never)]
    fn ask(&mut self, event: &Event<'_>, posted: &PostReceive) -> Result<Pending, Problem> {
        let anybody = CommRank(0);
        let Some((_, peer)) = self.comms.peer(posted.comm, posted.source.unwrap_or(anybody))? else {
            return Ok(Pending::NoCompletionRecord);
        };
        let number = self.posted(event, NONE, Wait::Not, posted.bytes);
        let source = posted.source.map(|_| peer);
        self.asked.insert(number, Asked { comm: posted.comm, source, tag: posted.tag, room: posted.bytes });
        Ok(Pending::Receive(number))
    }

    /// Rules 4, 5 and, for non-blocking collectives, 9: a mark for each receive and collective, the first with
    /// the time, each behind the one before.
    #[inline(always)]
    fn complete(&mut self, event: &Event<'_>, completions: Completions<'_>) -> Result<(), Problem> {
        let mut chained = None;
        match completions {
            Completions::Run { first: RequestId { thread, number }, count } => {
                for number in number..number + count {
                    let request = RequestId { thread, number };
                    self.completed(event, request, Outcome::Done, &mut chained)?;
                }
            }
            Completions::List(list) => {
                for completion in list {
                    self.completed(event, completion.request, completion.outcome, &mut chained)?;
                }
            }
        }
        match chained {
            Some(after) => self.timeline.done(event, after),
            None => self.timeline.forget_polls(event),
        }
        Ok(())
    }

    /// One of the requests that `event` completed, behind those that gave `chained`.
    #[inline(always)]
    fn completed(
        &mut self,
        event: &Event<'_>,
        request: RequestId,
        outcome: Outcome,
        chained: &mut Option<After>,
    ) -> Result<(), Problem> {
        let after = match self.requests.remove(request) {
            Some(Pending::Receive(number)) if outcome == Outcome::Cancelled => {
                self.asked.remove(&number);
                self.task.receives.assign(number, NONE);
                return Ok(());
            }
            Some(Pending::Receive(number)) => {
                self.resolve(number, outcome)?;
                self.received(event, number);
                self.task.waits[number as usize] = Wait::Waited;
                After::Received(number)
            }
            Some(Pending::Collective(number)) => After::Collective(number),
            Some(Pending::Lowered(number)) => {
                let receives = std::mem::take(&mut self.lowered[number as usize]);
                self.collect(event, &receives, chained);
                return Ok(());
            }
            Some(Pending::Send { message, record }) => {
                match &mut self.notes {
                    _ if outcome == Outcome::Cancelled => self.task.sends.assign(message, NONE),
                    Some(notes) => notes.completed(record),
                    None => {}
                }
                return Ok(());
            }
            Some(Pending::NoCompletionRecord) => return Ok(()),
            None => {
                self.task.counts.unknown_requests += 1;
                return Ok(());
            }
        };
        // The turn of the further marks comes when the call ends: before that, by the clocks, the messages that they wait for may
        // not even be sent.
        self.timeline.chain(&mut self.task, event, event.end, chained, (Body::Mark, after));
        Ok(())
    }

    /// A receive is over; it gets its channel, if its posting could not give it one.
    #[inline(always)]
    fn resolve(&mut self, number: u32, outcome: Outcome) -> Result<(), Problem> {
        match outcome {
            Outcome::Received { source, tag, bytes } => self.met(number, source, tag, bytes),
            _ if self.task.receives.number(number) == NONE => Err(Problem::Unresolved),
            _ => Ok(()),
        }
    }

    /// A receive met a message from `source` with `tag`.
    fn met(&mut self, number: u32, source: CommRank, tag: i32, bytes: Option<Bytes>) -> Result<(), Problem> {
        if let Some(channel) = self.task.receives.of(number) {
            let same = self.comms.rank_of(channel.comm, source) == Some(channel.peer) && tag == channel.tag;
            return if same { Ok(()) } else { Err(Problem::OtherMessage) };
        }
        let asked = self.asked.remove(&number).ok_or(Problem::Unresolved)?;
        let Some((_, peer)) = self.comms.peer(asked.comm, source)? else { return Ok(()) };
        if asked.source.is_some_and(|asked| asked != peer) || asked.tag.is_some_and(|asked| asked != tag) {
            return Err(Problem::OtherMessage);
        }
        if let Some(channel) = self.channel(RECEIVES, (asked.comm, source, tag), bytes.unwrap_or_default())? {
            self.task.receives.assign(number, channel);
        }
        Ok(())
    }

    /// A receive takes its place.
    #[inline(always)]
    fn posted(&mut self, event: &Event<'_>, channel: u32, wait: Wait, room: Bytes) -> u32 {
        if let Some(postings) = &mut self.task.postings {
            postings.push(Posting { start: event.start.0, end: event.end.0, done: u64::MAX });
        }
        self.task.waits.push(wait);
        if let Some(rooms) = &mut self.task.room {
            rooms.push(room);
        }
        self.task.receives.post(channel)
    }

    /// A receive is over.
    #[inline(always)]
    fn received(&mut self, event: &Event<'_>, number: u32) {
        if let Some(postings) = &mut self.task.postings {
            postings[number as usize].done = event.end.0;
        }
    }

    #[inline(always)]
    fn start(&mut self, request: Option<RequestId>, pending: Pending) -> Result<(), Problem> {
        let Some(request) = request else { return Ok(()) };
        match self.requests.insert(request, pending) {
            true => Ok(()),
            false => Err(Problem::Request { thread: request.thread, number: request.number }),
        }
    }

    /// Nobody will wait for a receive; one from anybody that is not resolved yet never will be.
    fn abandon(&mut self, number: u32) {
        let Some(Asked { comm, source, tag, room }) = self.asked.remove(&number) else { return };
        if let (Some(peer), Some(tag), Ok(local)) = (source, tag, self.comms.get(comm)) {
            let channel = Channel { comm: local.identity, peer, tag, length: room.0 };
            let channel = self.task.receives.channel(channel);
            self.task.receives.assign(number, channel);
        }
    }

    /// A record at the start of `event`; what follows the event waits for `after`.
    #[inline(always)]
    fn place(&mut self, event: &Event<'_>, body: Body, after: After) {
        self.timeline.place(&mut self.task, event, body);
        self.timeline.done(event, after);
    }

    #[cold]
    fn not_representable(&mut self, call: CallSlot, bytes: Bytes) {
        self.not_representable.entry(call).or_default().add(bytes);
    }
}
