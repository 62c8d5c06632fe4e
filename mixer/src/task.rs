//! The walk over one task's events, in program order: they become records, and places in channels.
//!
//! Numbers in comments are the rules of `docs/mixing.md`.

use crate::agreement::CallList;
use crate::channels::{Channel, NONE, Side};
use crate::communicators::{Communicators, Group, Identity};
use crate::error::{Call, MixError, Problem};
use crate::lower::Part;
use crate::packed::{After, Body, Packed, Packer, Starts, Stream};
use crate::requests::Requests;
use crate::summary::{Loner, LonerKind, Tally};
use collectives::Step;
use collectives::choose::Table;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::capture::event::{
    Action, Collective, Communicator, Completion, Event, Outcome, PostReceive, Receive, RequestId, Send,
};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::{Bytes, Nanos};

/// What the walk over one task's events gave.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// Its records.
    pub(crate) records: Stream,
    /// When they began.
    pub(crate) starts: Starts,
    /// Its messages, in the order of its records.
    pub(crate) sends: Side,
    /// Its receives, in posting order.
    pub(crate) receives: Side,
    /// For each receive, whether something waited for it.
    pub(crate) waits: Vec<Wait>,
    /// Its calls of collectives, by communicator.
    pub(crate) calls: Vec<Calls>,
    /// At most how many collectives back, the latest being 1, a record's collective is.
    pub(crate) reach: u32,
    /// Whether several records wait for the same message.
    pub(crate) waits_again: bool,
    /// Receives from anybody, or with any tag, that never completed.
    pub(crate) unresolved: Vec<Loner>,
    /// When it entered `MPI_Init`.
    pub(crate) zero: Nanos,
    /// Its counts.
    pub(crate) counts: Counts,
    /// Calls that a trace cannot represent, by name.
    pub(crate) not_representable: BTreeMap<String, Tally>,
    /// Room of every receive, in posting order, if asked for.
    pub(crate) room: Option<Vec<Bytes>>,
}

/// The calls of collectives of one task on one communicator.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Which communicator.
    pub(crate) comm: Identity,
    /// What was called, in order.
    pub(crate) made: CallList,
}

/// Whether something waits for a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing.
    Not,
    /// A call of its task.
    Waited,
    /// And a record of its task comes after that.
    Followed,
}

/// Counts of one task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) marks: u64,
    pub(crate) collectives: u64,
    pub(crate) bytes: u64,
    pub(crate) negative_times: u64,
    pub(crate) unknown_requests: u64,
    pub(crate) finalized: bool,
}

impl Task {
    /// The memory it takes, about.
    pub(crate) fn memory(&self) -> usize {
        let calls: usize = self.calls.iter().map(|calls| calls.made.memory()).sum();
        let sides = self.sends.memory() + self.receives.memory();
        self.records.memory() + self.starts.memory() + sides + self.waits.capacity() + calls
    }
}

/// Walks over the events of one task.
pub(crate) struct Walk<'a> {
    rank: Rank,
    communicators: &'a Communicators,
    manner: Manner<'a>,
    comms: Locals,
    requests: Requests<Pending>,
    /// The event that the next record's time counts from.
    previous: Option<Previous>,
    /// The highest number of a thread so far, plus 1.
    threads: u32,
    packer: Packer,
    task: Task,
}

/// The communicators of this task. Most calls are on the one that was used last.
#[derive(Default)]
struct Locals {
    list: Vec<Local>,
    places: HashMap<CommId, usize>,
    last: Option<(CommId, usize)>,
}

impl Locals {
    #[inline]
    fn get(&mut self, id: CommId) -> Result<&mut Local, Problem> {
        let place = match self.last {
            Some((last, place)) if last == id => place,
            _ => {
                let place = *self.places.get(&id).ok_or(Problem::UnknownCommunicator(id.0))?;
                self.last = Some((id, place));
                place
            }
        };
        Ok(&mut self.list[place])
    }

    /// Adds one, unless `id` is another already.
    fn add(&mut self, id: CommId, local: Local) -> Result<(), Problem> {
        let place = *self.places.entry(id).or_insert(self.list.len());
        match self.list.get(place) {
            None => self.list.push(local),
            Some(known) if known.identity == local.identity => {}
            Some(_) => return Err(Problem::DescribedTwice(id.0)),
        }
        Ok(())
    }
}

/// How to walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner<'a> {
    /// Whether channels tell lengths apart ([`Channel::length`]), because the capture does not tell communicators.
    pub(crate) by_length: bool,
    /// Whether to note the room of every receive ([`Task::room`]).
    pub(crate) with_room: bool,
    /// With what table to replace collectives by messages, if at all.
    pub(crate) lower: Option<&'a Table>,
}

/// A communicator as this task knows it.
struct Local {
    identity: Identity,
    group: Arc<Group>,
    foreign: bool,
    /// Its place in [`Task::calls`], once it has one.
    slot: u32,
    /// This task's rank there, once it has a slot.
    rank: CommRank,
}

/// The latest event that matters to what follows.
#[derive(Clone, Copy)]
struct Previous {
    end: Nanos,
    after: After,
    thread: u16,
    /// Whether a record counts from it already.
    used: bool,
}

/// A request that is under way.
enum Pending {
    /// Nobody learns anything from its completion.
    Quiet,
    Send(u32),
    Receive {
        number: u32,
        comm: CommId,
        source: Option<Rank>,
        tag: Option<i32>,
        room: Bytes,
    },
    Collective(u32),
    /// A collective that was replaced by messages: the receives it waits for.
    Lowered(Vec<u32>),
}

impl Previous {
    /// The front of the task's time.
    fn zero(event: &Event<'_>) -> Self {
        Self { end: event.start, after: After::Start, thread: event.thread, used: false }
    }
}

impl<'a> Walk<'a> {
    /// At the front of the events of `rank`.
    pub(crate) fn new(rank: Rank, communicators: &'a Communicators, manner: Manner<'a>) -> Self {
        let task = Task { room: manner.with_room.then(Vec::new), ..Task::default() };
        Self {
            rank,
            communicators,
            manner,
            comms: Locals::default(),
            requests: Requests::new(),
            previous: None,
            threads: 0,
            packer: Packer::default(),
            task,
        }
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Result<(), MixError> {
        // Every number a task gives is at most its number of events, and one is kept for `NONE`.
        if self.task.counts.events >= u64::from(NONE - 1) {
            return Err(MixError::TooMany("events of one task"));
        }
        let number = self.task.counts.events;
        self.task.counts.events += 1;
        self.threads = self.threads.max(u32::from(event.thread) + 1);
        self.act(event).map_err(|problem| MixError::Event { task: self.rank, event: number, problem })
    }

    /// Ends the walk.
    pub(crate) fn finish(mut self) -> Task {
        let mut open: Vec<_> = self.requests.drain().collect();
        open.sort_unstable_by_key(|pending| match pending {
            Pending::Receive { number, .. } => *number,
            _ => NONE,
        });
        for pending in open {
            self.abandon(pending);
        }
        let mut task = self.task;
        task.records = self.packer.finish();
        task.starts.shrink();
        task.sends.shrink();
        task.receives.shrink();
        task.waits.shrink_to_fit();
        task.calls.iter_mut().for_each(|calls| calls.made.shrink());
        task
    }

    #[inline]
    fn act(&mut self, event: &Event<'_>) -> Result<(), Problem> {
        match &event.action {
            Action::Init => {
                // Rule 1.
                let zero = Previous::zero(event);
                if self.previous.is_none() {
                    self.previous = Some(zero);
                    self.task.zero = event.start;
                }
                Ok(())
            }
            Action::Finalize => {
                // Rule 7.
                self.task.counts.finalized = true;
                self.place(event, Body::Mark);
                self.done(event, After::Sent);
                Ok(())
            }
            Action::Communicator(communicator) => self.communicator(communicator),
            Action::Send(send) => {
                if self.send(event, send)? {
                    self.done(event, After::Sent);
                }
                Ok(())
            }
            Action::Receive(receive) => {
                if let Some(number) = self.receive(receive)? {
                    self.place(event, Body::Mark);
                    self.done(event, After::Received(number));
                }
                Ok(())
            }
            Action::PostReceive(posted) => self.post(posted),
            Action::Exchange { send, receive } => {
                // Rule 8. Both halves begin at once, so the receive takes its place in its channel here.
                let sent = self.send(event, send)?;
                match self.receive(receive)? {
                    Some(number) if sent => {
                        self.push(event.start, 0, After::Sent, Body::Mark);
                        self.done(event, After::Received(number));
                    }
                    Some(number) => {
                        self.place(event, Body::Mark);
                        self.done(event, After::Received(number));
                    }
                    None if sent => self.done(event, After::Sent),
                    None => {}
                }
                Ok(())
            }
            Action::Complete(completions) => self.complete(event, completions),
            Action::Forget(request) => {
                match self.requests.remove(*request) {
                    Some(pending) => self.abandon(pending),
                    None => self.task.counts.unknown_requests += 1,
                }
                Ok(())
            }
            Action::Collective(collective) => self.collective(event, collective),
            Action::Other { name, bytes } => {
                self.not_representable(name, *bytes);
                Ok(())
            }
            Action::Datatype(_)
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
            .add(told.id, Local { identity, group, foreign: told.foreign, slot: NONE, rank: CommRank(0) })
    }

    /// Rule 3. Says whether it gave a record.
    fn send(&mut self, event: &Event<'_>, send: &Send) -> Result<bool, Problem> {
        let Some((comm, peer)) = self.peer(send.comm, send.dest)? else {
            self.not_representable("point-to-point between communicators", send.bytes);
            self.start(send.request, Pending::Quiet)?;
            return Ok(false);
        };
        let length = if self.manner.by_length { send.bytes.0 } else { 0 };
        let (number, body) = self.message(Channel { comm, peer, tag: send.tag, length }, send.bytes);
        self.start(send.request, Pending::Send(number))?;
        self.place(event, body);
        Ok(true)
    }

    /// A message takes its place: its number, and its record.
    #[inline]
    fn message(&mut self, channel: Channel, bytes: Bytes) -> (u32, Body) {
        let number = self.task.sends.channel(channel);
        let number = self.task.sends.post(number);
        self.task.counts.bytes = self.task.counts.bytes.saturating_add(bytes.0);
        (number, Body::Message { dst: channel.peer, bytes })
    }

    /// A receive that is over: its number in posting order, unless its communicator has no place in a trace.
    fn receive(&mut self, receive: &Receive) -> Result<Option<u32>, Problem> {
        let Some((comm, peer)) = self.peer(receive.comm, receive.source)? else { return Ok(None) };
        let length = if self.manner.by_length { receive.bytes.0 } else { 0 };
        let channel = self.task.receives.channel(Channel { comm, peer, tag: receive.tag, length });
        Ok(Some(self.posted(channel, Wait::Waited, receive.bytes)))
    }

    /// Rule 2.
    fn post(&mut self, posted: &PostReceive) -> Result<(), Problem> {
        let anybody = CommRank(0);
        let Some((comm, peer)) = self.peer(posted.comm, posted.source.unwrap_or(anybody))? else {
            return self.start(Some(posted.request), Pending::Quiet);
        };
        let source = posted.source.map(|_| peer);
        let channel = match (source, posted.tag) {
            (Some(peer), Some(tag)) if !self.manner.by_length => {
                self.task.receives.channel(Channel { comm, peer, tag, length: 0 })
            }
            _ => NONE,
        };
        let number = self.posted(channel, Wait::Not, posted.bytes);
        let pending =
            Pending::Receive { number, comm: posted.comm, source, tag: posted.tag, room: posted.bytes };
        self.start(Some(posted.request), pending)
    }

    /// Rules 4, 5 and, for non-blocking collectives, 9: a mark for each receive and collective, the first with
    /// the time, each behind the one before.
    fn complete(&mut self, event: &Event<'_>, completions: &[Completion]) -> Result<(), Problem> {
        // The first mark stands where the call begins, the others where it ends: before that, by the clocks, the
        // messages that they wait for may not even be sent. Not so if calls of other threads came in between.
        let later = if self.threads > 1 { event.start } else { event.end };
        let mut chained = None;
        for completion in completions {
            let after = match self.requests.remove(completion.request) {
                Some(Pending::Receive { number, comm, source, tag, .. }) => match completion.outcome {
                    Outcome::Cancelled => {
                        self.task.receives.assign(number, NONE);
                        continue;
                    }
                    outcome => {
                        self.resolve(number, comm, source, tag, outcome)?;
                        self.task.waits[number as usize] = Wait::Waited;
                        After::Received(number)
                    }
                },
                Some(Pending::Collective(number)) => After::Collective(number),
                Some(Pending::Lowered(mut receives)) => {
                    self.collect(event, &mut receives, &mut chained);
                    continue;
                }
                Some(Pending::Send(number)) => {
                    if completion.outcome == Outcome::Cancelled {
                        self.task.sends.assign(number, NONE);
                    }
                    continue;
                }
                Some(Pending::Quiet) => continue,
                None => {
                    self.task.counts.unknown_requests += 1;
                    continue;
                }
            };
            self.chain(event, later, &mut chained, Body::Mark, after);
        }
        if let Some(after) = chained {
            self.done(event, after);
        }
        Ok(())
    }

    /// Gives a completed receive its channel, if its posting could not.
    fn resolve(
        &mut self,
        number: u32,
        comm: CommId,
        source: Option<Rank>,
        tag: Option<i32>,
        outcome: Outcome,
    ) -> Result<(), Problem> {
        let Outcome::Received { source: from, tag: with, bytes } = outcome else {
            return if self.task.receives.number(number) == NONE { Err(Problem::Unresolved) } else { Ok(()) };
        };
        let Some((comm, peer)) = self.peer(comm, from)? else { return Ok(()) };
        if source.is_some_and(|source| source != peer) || tag.is_some_and(|tag| tag != with) {
            return Err(Problem::OtherMessage);
        }
        if self.task.receives.number(number) == NONE {
            let length = match bytes {
                Some(bytes) if self.manner.by_length => bytes.0,
                _ => 0,
            };
            let channel = self.task.receives.channel(Channel { comm, peer, tag: with, length });
            self.task.receives.assign(number, channel);
        }
        Ok(())
    }

    /// Rule 6, and 9 for the non-blocking ones.
    fn collective(&mut self, event: &Event<'_>, call: &Collective<'_>) -> Result<(), Problem> {
        let local = self.comms.get(call.comm)?;
        if local.foreign {
            self.not_representable("collective between communicators", call.amounts.send);
            return self.start(call.request, Pending::Quiet);
        }
        let size = local.group.count();
        if let Some(root) = call.root.filter(|root| root.0 >= size) {
            return Err(Problem::Peer { comm: call.comm.0, size, rank: root.0 });
        }
        if call.root.is_some() != call.operation.is_rooted() {
            return Err(Problem::Root(call.operation));
        }
        if size == 1 {
            return self.start(call.request, Pending::Quiet);
        }
        if local.slot == NONE {
            let rank = local.group.rank_of(self.rank).ok_or(Problem::NotAMember(call.comm.0))?;
            (local.slot, local.rank) = (self.task.calls.len() as u32, rank);
            self.task.calls.push(Calls { comm: local.identity, made: CallList::default() });
        }
        let slot = local.slot;
        let made = &mut self.task.calls[slot as usize].made;
        made.push(Call { operation: call.operation, root: call.root.map(|root| root.0) });
        if let Some(table) = self.manner.lower {
            let part = Part::new(table, call, size, local.rank.0)
                .map_err(|error| Problem::Schedule(call.operation, error))?;
            // Those that overlap do not come in the same order everywhere, so each has a tag of its own.
            let tag = if call.request.is_some() { made.len() as i32 } else { 0 };
            let (comm, group) = (local.identity.lowered(), local.group.clone());
            let channel = |rank: u32| match group.get(CommRank(rank)) {
                Some(peer) => Ok(Channel { comm, peer, tag, length: 0 }),
                None => Err(Problem::Peer { comm: call.comm.0, size, rank }),
            };
            return self.lowered(event, call.request, part, channel);
        }
        let number = self.task.counts.collectives as u32;
        self.task.counts.collectives += 1;
        let body = Body::Collective { slot, operation: call.operation, amounts: call.amounts };
        if call.request.is_some() {
            self.start(call.request, Pending::Collective(number))?;
            self.place(event, Body::Mark);
            self.push(event.start, 0, After::Sent, body);
            self.done(event, After::Sent);
        } else {
            self.place(event, body);
            self.done(event, After::Collective(number));
        }
        Ok(())
    }

    /// A collective as messages, `channel` giving that with each of its ranks. A non-blocking one sends all of them at
    /// once and waits for what it receives when it is waited for: in between, nothing that the program does would
    /// wait for the rounds of the algorithm.
    #[cold]
    fn lowered(
        &mut self,
        event: &Event<'_>,
        request: Option<RequestId>,
        mut part: Part,
        channel: impl Fn(u32) -> Result<Channel, Problem>,
    ) -> Result<(), Problem> {
        let (mut chained, mut receives) = (None, Vec::new());
        while let Some(step) = part.next() {
            match step {
                Step::Send { to, data } => {
                    let (_, body) = self.message(channel(to)?, Bytes(data.len));
                    self.chain(event, event.start, &mut chained, body, After::Sent);
                }
                Step::Recv { from, data, .. } => {
                    let number = self.task.receives.channel(channel(from)?);
                    receives.push(self.posted(number, Wait::Not, Bytes(data.len)));
                }
                Step::Wait if request.is_none() => self.collect(event, &mut receives, &mut chained),
                Step::Wait | Step::Local { .. } => {}
            }
        }
        if request.is_none() {
            self.collect(event, &mut receives, &mut chained);
        }
        if let Some(after) = chained {
            self.done(event, after);
        }
        self.start(request, Pending::Lowered(receives))
    }

    /// Waits for `receives` within the call `event`.
    fn collect(&mut self, event: &Event<'_>, receives: &mut Vec<u32>, chained: &mut Option<After>) {
        for number in receives.drain(..) {
            self.task.waits[number as usize] = Wait::Waited;
            self.chain(event, event.start, chained, Body::Mark, After::Received(number));
        }
    }

    /// The communicator, and the task that is `rank` there; `None` if it has no place in a trace.
    #[inline]
    fn peer(&mut self, comm: CommId, rank: CommRank) -> Result<Option<(Identity, Rank)>, Problem> {
        let local = self.comms.get(comm)?;
        if local.foreign {
            return Ok(None);
        }
        match local.group.get(rank) {
            Some(peer) => Ok(Some((local.identity, peer))),
            None => Err(Problem::Peer { comm: comm.0, size: local.group.count(), rank: rank.0 }),
        }
    }

    /// A receive takes its place.
    #[inline]
    fn posted(&mut self, channel: u32, wait: Wait, room: Bytes) -> u32 {
        self.task.waits.push(wait);
        if let Some(rooms) = &mut self.task.room {
            rooms.push(room);
        }
        self.task.receives.post(channel)
    }

    #[inline]
    fn start(&mut self, request: Option<RequestId>, pending: Pending) -> Result<(), Problem> {
        let Some(request) = request else { return Ok(()) };
        match self.requests.insert(request, pending) {
            true => Ok(()),
            false => Err(Problem::Request { thread: request.thread, number: request.number }),
        }
    }

    /// Nobody will wait for `pending`; a receive from anybody that is not resolved yet never will be.
    fn abandon(&mut self, pending: Pending) {
        let Pending::Receive { number, comm, source, tag, room } = pending else { return };
        if self.task.receives.number(number) != NONE {
            return;
        }
        match (source, tag, self.comms.get(comm)) {
            (Some(peer), Some(tag), Ok(local)) => {
                let channel = Channel { comm: local.identity, peer, tag, length: room.0 };
                let channel = self.task.receives.channel(channel);
                self.task.receives.assign(number, channel);
            }
            _ => {
                let kind = LonerKind::Receive;
                let loner = Loner { kind, task: self.rank, peer: source, tag, bytes: Some(room) };
                self.task.unresolved.push(loner);
            }
        }
    }

    /// One of several records of `event`, each behind the one before (`chained`): the first has the time, the turn of
    /// the others comes `later`.
    #[inline]
    fn chain(
        &mut self,
        event: &Event<'_>,
        later: Nanos,
        chained: &mut Option<After>,
        body: Body,
        after: After,
    ) {
        match *chained {
            None => self.place(event, body),
            Some(previous) => self.push(later, 0, previous, body),
        }
        *chained = Some(after);
    }

    /// A record at the start of `event`, timed from the previous event.
    #[inline]
    fn place(&mut self, event: &Event<'_>, body: Body) {
        let zero = Previous::zero(event);
        let previous = self.previous.get_or_insert(zero);
        let again = std::mem::replace(&mut previous.used, true);
        let previous = *previous;
        self.task.waits_again |= again && matches!(previous.after, After::Received(_));
        match event.start.since(previous.end) {
            Some(time) => self.push(event.start, time, previous.after, body),
            None => {
                self.task.counts.negative_times += 1;
                // A call of another thread that is not over yet cannot have been waited for; what this record
                // surely follows is the record in front of it.
                let own = previous.thread == event.thread;
                let any = self.task.counts.messages + self.task.counts.marks > 0;
                let after = match previous.after {
                    after if own => after,
                    _ if any => After::Sent,
                    _ => After::Start,
                };
                self.push(event.start, 0, after, body);
            }
        }
    }

    #[inline]
    fn push(&mut self, start: Nanos, time: u64, after: After, body: Body) {
        match body {
            Body::Mark => self.task.counts.marks += 1,
            Body::Message { .. } => self.task.counts.messages += 1,
            Body::Collective { .. } => {}
        }
        match after {
            After::Start | After::Sent => {}
            After::Received(number) => self.task.waits[number as usize] = Wait::Followed,
            After::Collective(number) => {
                self.task.reach = self.task.reach.max(self.task.counts.collectives as u32 - number);
            }
        }
        self.task.starts.push(start.0);
        self.packer.push(&Packed { body, after, time });
    }

    /// `event` is over, and what follows it waits for `after`; of several threads the latest end counts.
    #[inline]
    fn done(&mut self, event: &Event<'_>, after: After) {
        let latest = match self.previous {
            Some(previous) => previous.thread == event.thread || event.end >= previous.end,
            None => true,
        };
        if latest {
            self.previous = Some(Previous { end: event.end, after, thread: event.thread, used: false });
        }
    }

    #[cold]
    fn not_representable(&mut self, name: &str, bytes: Bytes) {
        match self.task.not_representable.get_mut(name) {
            Some(tally) => tally.add(bytes),
            None => {
                self.task.not_representable.insert(name.to_owned(), Tally { count: 1, bytes });
            }
        }
    }
}
