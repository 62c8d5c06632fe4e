//! The walk over one task's events, in order of their starts. It makes records and channels.
//!
//! Rule numbers are those of `docs/mixing.md`.

mod collective;
mod locals;
mod notes;
mod recent;
mod requests;
mod timeline;

use crate::Polls;
use crate::channels::{Channel, NONE, Posting, Side};
use crate::communicators::{Communicators, Identity};
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
use vef_format::capture::{Consumer, Function};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::{Bytes, Nanos};

/// Options of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkOptions<'a> {
    /// Whether channels differ by message length ([`Channel::length`]), because the capture has no communicators.
    pub(crate) by_length: bool,
    /// Whether to keep the buffer size of each receive ([`Task::room`]).
    pub(crate) with_room: bool,
    /// Whether to make notes for a container ([`Task::notes`]).
    pub(crate) with_notes: bool,
    /// How failed polls count.
    pub(crate) polls: Polls,
    /// The decision table, if collectives are to be replaced by messages.
    pub(crate) lower: Option<&'a Table>,
}

/// Walks over the events of one task.
pub(crate) struct Walk<'a> {
    rank: Rank,
    communicators: &'a Communicators,
    options: WalkOptions<'a>,
    comms: Locals,
    /// Caches of send and receive channels; not used if channels differ by length.
    recent: [Recent; 2],
    requests: Requests<Pending>,
    /// Pending wildcard receives, by index.
    wildcards: HashMap<u32, Wildcard>,
    /// The receives of pending lowered collectives ([`Pending::Lowered`]).
    lowered: Vec<Vec<u32>>,
    timeline: Timeline,
    /// Calls that a trace cannot represent, by function.
    not_representable: BTreeMap<CallSlot, Tally>,
    notes: Option<Box<NoteTaker>>,
    /// How many events the task may have, less the messages and receives of lowered collectives.
    most: u64,
    task: Task,
}

/// Indices of [`Walk::recent`].
const SENDS: usize = 0;
const RECEIVES: usize = 1;

/// A pending request.
#[derive(Clone, Copy, Debug)]
enum Pending {
    /// Its completion makes no record.
    NoCompletionRecord,
    /// A send: index of the message, and of its record.
    Send { message: u32, record: u32 },
    /// A receive, by index.
    Receive(u32),
    /// A collective, by index in its task.
    Collective(u32),
    /// A collective replaced by messages, by index in [`Walk::lowered`].
    Lowered(u32),
}

impl Consumer<MixError> for &mut Walk<'_> {
    #[inline(always)]
    fn take(&mut self, event: &Event<'_>) -> Result<(), MixError> {
        self.count().map_err(|problem| self.error(problem))?;
        self.timeline.release_due(&mut self.task, event);
        let before = self.records();
        let done = match &event.action {
            Action::Send(send) => self.send(event, send).map(|_| ()),
            Action::PostReceive(posted) => self.post(event, posted),
            Action::Complete(completions) => self.complete(event, *completions),
            _ => self.act(event),
        };
        done.map_err(|problem| self.error(problem))?;
        self.note(event, before);
        Ok(())
    }
}

/// The arguments of a wildcard receive.
#[derive(Clone, Copy, Debug)]
struct Wildcard {
    comm: CommId,
    source: Option<Rank>,
    tag: Option<i32>,
    room: Bytes,
}

impl<'a> Walk<'a> {
    /// Begins before the first event of `rank`, whose call table is `functions`; `threads`: several threads make calls. About so many
    /// records are `expected`.
    pub(crate) fn new(
        rank: Rank,
        communicators: &'a Communicators,
        options: WalkOptions<'a>,
        threads: bool,
        functions: &[Function],
        expected: usize,
    ) -> Self {
        let side = || Side::with_capacity(expected / 2);
        let task = Task {
            records: Records::of(rank, threads, expected),
            sends: side(),
            receives: side(),
            waits: Vec::with_capacity(expected / 2),
            postings: threads.then(Vec::new),
            room: options.with_room.then(Vec::new),
            ..Task::default()
        };
        Self {
            rank,
            communicators,
            options,
            comms: Locals::default(),
            recent: Default::default(),
            requests: Requests::new(),
            wildcards: HashMap::new(),
            lowered: Vec::new(),
            timeline: Timeline::default(),
            not_representable: BTreeMap::new(),
            notes: options.with_notes.then(|| Box::new(NoteTaker::new(options.polls, threads, functions))),
            most: u64::from(NONE) - 1,
            task,
        }
    }

    /// Counts an event.
    #[inline(always)]
    fn count(&mut self) -> Result<(), Problem> {
        let before = self.task.counts.events;
        self.task.counts.events += 1;
        // No index of a message, receive or collective reaches NONE.
        if before < self.most { Ok(()) } else { Err(Problem::TooManyEvents) }
    }

    /// Counts a message or receive of a lowered collective.
    fn count_lowered(&mut self) -> Result<(), Problem> {
        self.most = self.most.checked_sub(1).ok_or(Problem::TooManyEvents)?;
        if self.task.counts.events <= self.most { Ok(()) } else { Err(Problem::TooManyEvents) }
    }

    /// The error for `problem` in the current event.
    #[cold]
    fn error(&self, problem: Problem) -> MixError {
        MixError::Event { task: self.rank, event: self.task.counts.events - 1, problem }
    }

    /// Makes the notes of `event`, which made the records from `before` on.
    #[inline(always)]
    fn note(&mut self, event: &Event<'_>, before: u64) {
        if let Some(notes) = &mut self.notes {
            let after = (self.task.records.len() + self.timeline.delayed()) as u64;
            notes.event(event, before..after, self.timeline.joined());
        }
    }

    /// Number of records so far.
    pub(crate) fn records(&self) -> u64 {
        (self.task.records.len() + self.timeline.delayed()) as u64
    }

    /// Ends the walk; `functions` is the capture's call table.
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
        if let Some((notes, of_threads)) = self.notes.map(|notes| notes.finish()) {
            (self.task.notes, self.task.thread_notes) = (notes.into_pieces(), of_threads);
        }
        self.task.shrink();
        self.task
    }

    /// Takes an event of the less frequent kinds.
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
                if self.options.polls == Polls::Wait {
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

    fn communicator(&mut self, known: &Communicator<'_>) -> Result<(), Problem> {
        let (identity, group) = if known.foreign {
            // The members may belong to another `MPI_COMM_WORLD`, so they are not recorded.
            (Identity(NONE), Arc::default())
        } else {
            let parent = |comm| self.comms.get(comm).ok().map(|local| local.identity);
            self.communicators.intern(self.rank, known.id.0, known.origin, known.members, parent)?
        };
        self.comms
            .add(known.id, Local { identity, group, foreign: known.foreign, slot: None, rank: CommRank(0) })
    }

    /// Rule 3. Returns whether the send made a record.
    #[inline(always)]
    fn send(&mut self, event: &Event<'_>, send: &Send) -> Result<bool, Problem> {
        let name = (send.comm, send.dest, send.tag);
        let Some(channel) = self.channel(SENDS, name, send.bytes)? else {
            self.not_representable(event.call, send.bytes);
            self.start(send.request, Pending::NoCompletionRecord)?;
            return Ok(false);
        };
        self.send_on(channel, event, send)?;
        Ok(true)
    }

    /// Adds the message of `send` on its channel.
    #[inline(always)]
    fn send_on(&mut self, channel: u32, event: &Event<'_>, send: &Send) -> Result<(), Problem> {
        let (message, body) = self.message(channel, send.bytes);
        self.start(send.request, Pending::Send { message, record: self.records() as u32 })?;
        self.place(event, body, After::Sent);
        Ok(())
    }

    /// The channel of a send or receive; `None` if the trace cannot represent its communicator.
    #[inline(always)]
    fn channel(&mut self, side: usize, name: Name, bytes: Bytes) -> Result<Option<u32>, Problem> {
        match self.recent[side].find(name) {
            Some(number) => Ok(Some(number)),
            None => self.look_up(side, name, bytes),
        }
    }

    /// [`Walk::channel`] of one that is not in the cache.
    #[inline(never)]
    fn look_up(&mut self, side: usize, name: Name, bytes: Bytes) -> Result<Option<u32>, Problem> {
        let (comm, rank, tag) = name;
        let Some((comm, peer)) = self.comms.peer(comm, rank)? else { return Ok(None) };
        let length = if self.options.by_length { bytes.0 } else { 0 };
        let channel = Channel { comm, peer, tag, length };
        let number = match side {
            SENDS => self.task.sends.channel(channel),
            _ => self.task.receives.channel(channel),
        };
        if !self.options.by_length {
            self.recent[side].remember(name, number);
        }
        Ok(Some(number))
    }

    /// Adds a message; returns its index and the body of its record.
    #[inline(always)]
    fn message(&mut self, channel: u32, bytes: Bytes) -> (u32, Body) {
        let number = self.task.sends.post(channel);
        self.task.counts.bytes = self.task.counts.bytes.saturating_add(bytes.0);
        (number, Body::Message(bytes))
    }

    /// A blocking receive; returns its index, or `None` if the trace cannot represent its communicator.
    fn receive(&mut self, event: &Event<'_>, receive: &Receive) -> Result<Option<u32>, Problem> {
        let name = (receive.comm, receive.source, receive.tag);
        let Some(channel) = self.channel(RECEIVES, name, receive.bytes)? else { return Ok(None) };
        let number = self.posted(|| (event.start, event.end), channel, Wait::Waited, receive.bytes);
        self.received(event, number);
        Ok(Some(number))
    }

    /// Rule 8. Send and receive begin at the same time, so the receive is posted here.
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
            (Some(source), Some(tag)) if !self.options.by_length => {
                match self.channel(RECEIVES, (posted.comm, source, tag), posted.bytes)? {
                    Some(channel) => Pending::Receive(self.posted(
                        || (event.start, event.end),
                        channel,
                        Wait::Not,
                        posted.bytes,
                    )),
                    None => Pending::NoCompletionRecord,
                }
            }
            _ => self.post_wildcard(event, posted)?,
        };
        self.start(Some(posted.request), pending)
    }

    /// Posts a receive whose channel its completion determines.
    #[inline(never)]
    fn post_wildcard(&mut self, event: &Event<'_>, posted: &PostReceive) -> Result<Pending, Problem> {
        let anybody = CommRank(0);
        let Some((_, peer)) = self.comms.peer(posted.comm, posted.source.unwrap_or(anybody))? else {
            return Ok(Pending::NoCompletionRecord);
        };
        let number = self.posted(|| (event.start, event.end), NONE, Wait::Not, posted.bytes);
        let source = posted.source.map(|_| peer);
        self.wildcards
            .insert(number, Wildcard { comm: posted.comm, source, tag: posted.tag, room: posted.bytes });
        Ok(Pending::Receive(number))
    }

    /// Rules 4, 5 and 9: a mark for each completed receive and collective. The first has the time; each further mark depends
    /// on the one before.
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
            None => {
                self.timeline.forget_polls(event);
                let sum = &mut self.task.counts.send_waits;
                *sum = sum.saturating_add(event.end.0.saturating_sub(event.start.0));
            }
        }
        Ok(())
    }

    /// Completes one request of `event`; `chained` is the dependency that the call's earlier marks leave.
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
                self.wildcards.remove(&number);
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
        // The further marks begin at the end of the call: at its start, by the clocks, their messages may not have been sent.
        self.timeline.chain(&mut self.task, event, event.end, chained, (Body::Mark, after));
        Ok(())
    }

    /// Sets the channel of a completed receive, if posting could not.
    #[inline(always)]
    fn resolve(&mut self, number: u32, outcome: Outcome) -> Result<(), Problem> {
        match outcome {
            Outcome::Received { source, tag, bytes } => self.matched(number, source, tag, bytes),
            _ if self.task.receives.number(number) == NONE => Err(Problem::Unresolved),
            _ => Ok(()),
        }
    }

    /// Sets or checks the channel of a receive that matched a message from `source` with `tag`.
    fn matched(
        &mut self,
        number: u32,
        source: CommRank,
        tag: i32,
        bytes: Option<Bytes>,
    ) -> Result<(), Problem> {
        if let Some(channel) = self.task.receives.of(number) {
            let same = self.comms.rank_of(channel.comm, source) == Some(channel.peer) && tag == channel.tag;
            return if same { Ok(()) } else { Err(Problem::OtherMessage) };
        }
        let posted = self.wildcards.remove(&number).ok_or(Problem::Unresolved)?;
        let Some((_, peer)) = self.comms.peer(posted.comm, source)? else { return Ok(()) };
        if posted.source.is_some_and(|asked| asked != peer) || posted.tag.is_some_and(|asked| asked != tag) {
            return Err(Problem::OtherMessage);
        }
        if let Some(channel) =
            self.channel(RECEIVES, (posted.comm, source, tag), bytes.unwrap_or_default())?
        {
            self.task.receives.assign(number, channel);
        }
        Ok(())
    }

    /// Posts a receive at `times`; returns its index.
    #[inline(always)]
    fn posted(
        &mut self,
        times: impl FnOnce() -> (Nanos, Nanos),
        channel: u32,
        wait: Wait,
        room: Bytes,
    ) -> u32 {
        if let Some(postings) = &mut self.task.postings {
            let (start, end) = times();
            postings.push(Posting { start: start.0, end: end.0, done: u64::MAX });
        }
        self.task.waits.push(wait);
        if let Some(rooms) = &mut self.task.room {
            rooms.push(room);
        }
        self.task.receives.post(channel)
    }

    /// Sets the completion time of a receive.
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

    /// A receive that no call will wait for. Without its source or tag the channel stays unknown.
    fn abandon(&mut self, number: u32) {
        let Some(Wildcard { comm, source, tag, room }) = self.wildcards.remove(&number) else { return };
        if let (Some(peer), Some(tag), Ok(local)) = (source, tag, self.comms.get(comm)) {
            let channel = Channel { comm: local.identity, peer, tag, length: room.0 };
            let channel = self.task.receives.channel(channel);
            self.task.receives.assign(number, channel);
        }
    }

    /// Adds a record at the start of `event`; what follows the event depends on `after`.
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
