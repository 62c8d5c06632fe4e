//! What the events of a location mean: calls of its rank.
//!
//! A call is a region of MPI; nested ones belong to the outermost. The records of messages and collectives stand within it. A record
//! that posts a receive, or starts a collective, has a request only; source, tag and communicator stand where it completes. So a
//! location is read twice: first for these ([`Posted`]).

use super::amounts::{amounts, operation};
use super::definitions::{Definitions, Local, Who};
use super::events::{Collective, Event, Events, Message};
use super::stated::{Channel, End};
use crate::calls::arguments::{Collecting, Receiving, Sending, Span, WORLD};
use crate::calls::functions::Called;
use crate::calls::recorder::Recorder;
use crate::calls::resolved::{Comm, Why};
use crate::error::{ImportError, Problem, Result};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::capture::Group;
use vef_format::capture::event::{Members, Origin, SendMode};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::Operation;

/// Index of the communicators of one rank each, beyond that of any whose group is listed.
const SELF_ORDINAL: u32 = 1 << 31;
/// Keys of requests of each thread.
const THREAD_SHIFT: u32 = 48;

/// What is wrong: requests whose completion is not in the trace, so that nothing else is known of them.
const NEVER_COMPLETED: &str = "receives and collectives left out: they never complete";
/// What is wrong: the measurement was off for some time.
const SWITCHED_OFF: &str = "times that the measurement was switched off, which count as computing";

/// What the requests of a location turned out to be, in the order of their records.
#[derive(Debug, Default)]
pub(super) struct Posted {
    receives: Vec<Option<Message>>,
    /// Those that were cancelled, by index.
    cancelled: HashSet<usize>,
    collectives: Vec<Option<Collective>>,
    /// Time of the first event, ticks.
    pub(super) first: Option<u64>,
    /// Events that are whole.
    pub(super) events: u64,
    /// The byte at which the whole ones end, and why.
    pub(super) cut: Option<(u64, ImportError)>,
}

impl Posted {
    /// Reads all events.
    pub(super) fn read(mut events: Events) -> Self {
        let mut posted = Self::default();
        let (mut receives, mut collectives) = (HashMap::new(), HashMap::new());
        loop {
            let event = match events.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    posted.cut = Some((events.chunks.offset(), error));
                    break;
                }
            };
            posted.first.get_or_insert(events.time);
            match event {
                Event::IrecvRequest(request) => {
                    receives.insert(request, posted.receives.len());
                    posted.receives.push(None);
                }
                Event::Irecv(message, request) => {
                    if let Some(at) = receives.remove(&request) {
                        posted.receives[at] = Some(message);
                    }
                }
                Event::RequestCancelled(request) => {
                    posted.cancelled.extend(receives.remove(&request));
                }
                Event::CollectiveRequest(request) => {
                    collectives.insert(request, posted.collectives.len());
                    posted.collectives.push(None);
                }
                Event::CollectiveComplete(collective, request) => {
                    if let Some(at) = collectives.remove(&request) {
                        posted.collectives[at] = Some(collective);
                    }
                }
                _ => {}
            }
        }
        posted.events = events.number;
        posted
    }
}

/// A communicator as the rank sees it.
#[derive(Clone, Debug)]
struct Known {
    id: CommId,
    group: std::result::Result<Arc<Group>, Why>,
}

/// A rank and its communicators.
pub(super) struct RankCalls<'a> {
    pub(super) recorder: Recorder,
    /// Time of the last event so far, ns.
    pub(super) end: u64,
    /// Collectives whose amounts stand as in the file, by operation.
    pub(super) as_they_are: BTreeMap<&'static str, u64>,
    /// The ends of its messages.
    pub(super) ends: Vec<End>,
    definitions: &'a Definitions,
    communicators: &'a HashMap<u64, Who>,
    tasks: u32,
    known: HashMap<u64, Known>,
    functions: HashMap<u64, Option<Called>>,
    scorep: bool,
}

/// A call that is under way.
struct Call {
    called: Called,
    start: u64,
    /// Regions entered within it.
    nested: u32,
    items: Vec<Item>,
}

/// What belongs to a call.
#[derive(Clone, Copy, Debug)]
enum Item {
    Record(Event),
    /// A receive is posted, which will get this message.
    Post(Message, u64),
    /// A non-blocking collective starts, which will turn out to be this one.
    Start(Collective, u64),
}

/// A location that is read.
pub(super) struct Location<'a> {
    pub(super) events: Events,
    pub(super) local: &'a Local,
    pub(super) posted: &'a Posted,
    pub(super) thread: u16,
    /// First time of the rank, ticks.
    pub(super) zero: u64,
    /// Whether times are corrected by the offsets of the clock.
    pub(super) global: bool,
}

impl Location<'_> {
    fn ticks(&self, time: u64) -> u64 {
        let time = if self.global { self.local.global(time) } else { time };
        time.saturating_sub(self.zero)
    }
}

impl<'a> RankCalls<'a> {
    pub(super) fn new(
        recorder: Recorder,
        definitions: &'a Definitions,
        communicators: &'a HashMap<u64, Who>,
        tasks: u32,
        scorep: bool,
    ) -> Self {
        Self {
            recorder,
            end: 0,
            as_they_are: BTreeMap::new(),
            ends: Vec::new(),
            definitions,
            communicators,
            tasks,
            known: HashMap::new(),
            functions: HashMap::new(),
            scorep,
        }
    }

    /// Reads the calls of a location; those of a cut file that are whole.
    pub(super) fn read(&mut self, location: &mut Location<'_>) -> Result<()> {
        let resolution = u128::from(self.definitions.resolution);
        let (mut call, mut flushed): (Option<Call>, u64) = (None, 0);
        let (mut receives, mut collectives) =
            (location.posted.receives.iter().enumerate(), location.posted.collectives.iter());
        for _ in 0..location.posted.events {
            let Some(event) = location.events.next()? else { break };
            let ticks = location.ticks(location.events.time);
            let nanos = |ticks: u64| u64::try_from(u128::from(ticks) * 1_000_000_000 / resolution);
            let wrong = |problem| location.events.chunks.wrong(problem);
            let too_late = |_| wrong(Problem::TooLarge(format!("the time {ticks}")));
            let now = nanos(ticks.saturating_sub(flushed)).map_err(too_late)?;
            self.end = self.end.max(now);
            let item = match event {
                Event::BufferFlush(end) => {
                    flushed += location.ticks(end).saturating_sub(ticks);
                    continue;
                }
                Event::Measurement(on) => {
                    if !on {
                        self.recorder.found(SWITCHED_OFF);
                    }
                    continue;
                }
                Event::IrecvRequest(request) => match receives.next() {
                    Some((_, &Some(message))) => Item::Post(message, request),
                    Some((at, None)) if location.posted.cancelled.contains(&at) => {
                        self.recorder.open_nothing(key(location.thread, request));
                        continue;
                    }
                    Some((_, None)) | None => {
                        self.recorder.found(NEVER_COMPLETED);
                        continue;
                    }
                },
                Event::CollectiveRequest(request) => match collectives.next().copied().flatten() {
                    Some(collective) => Item::Start(collective, request),
                    None => {
                        self.recorder.found(NEVER_COMPLETED);
                        continue;
                    }
                },
                // Its call is known by its name.
                Event::CollectiveEnd(part) if operation(part.operation).is_none() => continue,
                event => Item::Record(event),
            };
            let span = Span { start: now, end: now, thread: location.thread };
            let done = match (item, &mut call) {
                (Item::Record(Event::Enter(region)), None) => {
                    let called = self.function(location.local.region(region)).map_err(wrong)?;
                    call = called.map(|called| Call { called, start: now, nested: 0, items: Vec::new() });
                    continue;
                }
                (Item::Record(Event::Enter(_)), Some(call)) => {
                    call.nested += 1;
                    continue;
                }
                (Item::Record(Event::Leave(_)), None) => continue,
                (Item::Record(Event::Leave(_)), Some(inside)) if inside.nested > 0 => {
                    inside.nested -= 1;
                    continue;
                }
                (Item::Record(Event::Leave(_)), Some(_)) => call.take().map_or(Ok(()), |call| {
                    let span = Span { start: call.start, ..span };
                    self.recorder.count(span, call.called);
                    self.carry_out(location.local, span, call.called, &call.items)
                }),
                (Item::Record(Event::Other), _) => continue,
                (item, Some(call)) => {
                    call.items.push(item);
                    continue;
                }
                (item, None) => match name_of(&item) {
                    Some(name) => self.recorder.function(&name).and_then(|called| {
                        self.recorder.count(span, called);
                        self.carry_out(location.local, span, called, &[item])
                    }),
                    None => continue,
                },
            };
            done.map_err(|problem| location.events.chunks.wrong(problem))?;
        }
        Ok(())
    }

    /// The function of a region, if it is one of MPI.
    fn function(&mut self, region: u64) -> std::result::Result<Option<Called>, Problem> {
        if let Some(known) = self.functions.get(&region) {
            return Ok(*known);
        }
        let called = match self.definitions.function(region) {
            Some(name) => Some(self.recorder.function(name)?),
            None => None,
        };
        self.functions.insert(region, called);
        Ok(called)
    }

    /// The communicator with this number of the archive, described at its first use.
    fn communicator(&mut self, span: Span, comm: u64) -> std::result::Result<Known, Problem> {
        if let Some(known) = self.known.get(&comm) {
            return Ok(known.clone());
        }
        let at = Span { end: span.start, ..span };
        self.recorder.predefined(at)?;
        let rank = self.recorder.rank();
        let group = |members: Members<'_>| {
            let outside = || Problem::NoRank { rank: rank.0.into(), ranks: self.tasks };
            Group::new(members, self.tasks).map(Arc::new).ok_or_else(outside)
        };
        let left_out = |recorder: &mut Recorder, why| {
            let origin = Origin::Unseen { ordinal: comm as u32 };
            let id = recorder.communicator(at, origin, &Comm::Foreign(why))?;
            Ok::<_, Problem>(Known { id, group: Err(why) })
        };
        let known = match self.communicators.get(&comm) {
            Some(Who::World) => Known { id: WORLD, group: Ok(group(Members::All)?) },
            Some(Who::Itself(0)) => Known { id: CommId(1), group: Ok(group(Members::List(&[rank]))?) },
            Some(Who::Itself(further)) => {
                let (group, origin) =
                    (group(Members::List(&[rank]))?, Origin::Unseen { ordinal: SELF_ORDINAL + further });
                let id = self.recorder.communicator(at, origin, &Comm::Of(group.clone()))?;
                Known { id, group: Ok(group) }
            }
            Some(Who::Some(group, _)) if group.rank_of(rank).is_none() => {
                let what = format!(
                    "rank {rank} is no member of communicator {comm}, by the definitions of the archive and its location (X/<location>.def)"
                );
                return Err(Problem::Invalid(what));
            }
            Some(Who::Some(group, ordinal)) => {
                let origin = Origin::Unseen { ordinal: *ordinal };
                let id = self.recorder.communicator(at, origin, &Comm::Of(group.clone()))?;
                Known { id, group: Ok(group.clone()) }
            }
            Some(Who::Inter) => left_out(&mut self.recorder, Why::Inter)?,
            Some(Who::Unknown) | None => left_out(&mut self.recorder, Why::Unknown)?,
        };
        self.known.insert(comm, known.clone());
        Ok(known)
    }

    /// A communicator and a peer in it; `None`: its traffic is left out.
    fn peer(
        &mut self,
        local: &Local,
        span: Span,
        message: &Message,
    ) -> std::result::Result<Option<(CommId, u32)>, Problem> {
        let known = self.communicator(span, local.communicator(message.comm))?;
        let group = match known.group {
            Ok(group) => group,
            Err(why) => {
                self.recorder.found(why.finding());
                return Ok(None);
            }
        };
        let peer = u32::try_from(message.peer).ok().filter(|&peer| group.get(CommRank(peer)).is_some());
        let peer = peer.ok_or(Problem::NoRank { rank: message.peer, ranks: group.count() })?;
        Ok(Some((known.id, peer)))
    }

    fn sending(
        &mut self,
        local: &Local,
        span: Span,
        message: &Message,
    ) -> std::result::Result<Option<Sending>, Problem> {
        let (tag, bytes, mode) = (message.tag as i32, message.bytes, SendMode::Standard);
        let to = self.peer(local, span, message)?;
        Ok(to.map(|(comm, dest)| Sending { comm, dest, tag, bytes, mode }))
    }

    fn receiving(
        &mut self,
        local: &Local,
        span: Span,
        message: &Message,
    ) -> std::result::Result<Option<Receiving>, Problem> {
        let (tag, bytes) = (Some(message.tag as i32), message.bytes);
        let from = self.peer(local, span, message)?;
        Ok(from.map(|(comm, source)| Receiving { comm, source: Some(source), tag, bytes }))
    }

    /// Notes the end of a message that a record has, for the comparison with the other end.
    fn note_end(&mut self, local: &Local, span: Span, item: &Item) -> std::result::Result<(), Problem> {
        let (message, sends) = match item {
            Item::Record(Event::Send(message) | Event::Isend(message, _)) => (message, true),
            Item::Record(Event::Recv(message)) | Item::Post(message, _) => (message, false),
            Item::Record(_) | Item::Start(..) => return Ok(()),
        };
        let comm = local.communicator(message.comm);
        let known = self.communicator(span, comm)?;
        let peer = u32::try_from(message.peer).ok().map(CommRank);
        let (Ok(group), Some(peer)) = (known.group, peer) else { return Ok(()) };
        let Some(peer) = group.get(peer) else { return Ok(()) };
        let me = self.recorder.rank();
        let (source, dest) = if sends { (me, peer) } else { (peer, me) };
        let channel = Channel { comm, source, dest, tag: message.tag };
        let (bytes, time, call) = (message.bytes, span.start, self.recorder.calls());
        self.ends.push(End { channel, sends, bytes, time, call });
        Ok(())
    }

    /// Writes the events of a call that had these records.
    fn carry_out(
        &mut self,
        local: &Local,
        span: Span,
        called: Called,
        items: &[Item],
    ) -> std::result::Result<(), Problem> {
        // The call's time is that of its last event; the others are at its start.
        let first = Span { end: span.start, ..span };
        for item in items {
            self.note_end(local, span, item)?;
        }
        let key = |request: u64| key(span.thread, request);
        if let [Item::Record(Event::Send(sent)), Item::Record(Event::Recv(got))]
        | [Item::Record(Event::Recv(got)), Item::Record(Event::Send(sent))] = items
            && let (Some(sending), Some(receiving)) =
                (self.sending(local, span, sent)?, self.receiving(local, span, got)?)
        {
            return self.recorder.exchange(span, called, sending, receiving, None);
        }
        let completes = |item: &Item| match item {
            Item::Record(
                Event::IsendComplete(request)
                | Event::Irecv(_, request)
                | Event::CollectiveComplete(_, request)
                | Event::RequestCancelled(request),
            ) => Some(*request),
            _ => None,
        };
        let completed: Vec<u64> = items.iter().filter_map(completes).map(key).collect();
        let polls = items.iter().any(|item| matches!(item, Item::Record(Event::RequestTest(_))));
        let others = items.iter().filter(|item| completes(item).is_none()).count();
        let mut left = others;
        for item in items {
            if completes(item).is_some() {
                continue;
            }
            left -= 1;
            let at = if left == 0 && completed.is_empty() { span } else { first };
            self.item(local, at, called, item, key)?;
        }
        match () {
            () if !completed.is_empty() => {
                self.recorder.complete(span, called, completed.into_iter().map(|request| (request, None)))
            }
            () if polls => self.recorder.poll(span, called),
            () if others == 0 => self.without_records(span, called),
            () => Ok(()),
        }
    }

    fn item(
        &mut self,
        local: &Local,
        at: Span,
        called: Called,
        item: &Item,
        key: impl Fn(u64) -> u64,
    ) -> std::result::Result<(), Problem> {
        match *item {
            Item::Record(Event::Send(message)) => match self.sending(local, at, &message)? {
                Some(sending) => self.recorder.send(at, called, sending, None),
                None => self.recorder.other(at, called, message.bytes),
            },
            Item::Record(Event::Isend(message, request)) => match self.sending(local, at, &message)? {
                Some(sending) => self.recorder.send(at, called, sending, Some(key(request))),
                None => {
                    self.recorder.open_nothing(key(request));
                    self.recorder.other(at, called, message.bytes)
                }
            },
            Item::Record(Event::Recv(message)) => match self.receiving(local, at, &message)? {
                Some(receiving) => self.recorder.receive(at, called, receiving, None),
                None => self.recorder.other(at, called, 0),
            },
            Item::Post(message, request) => match self.receiving(local, at, &message)? {
                Some(receiving) => self.recorder.post(at, called, receiving, key(request)),
                None => {
                    self.recorder.open_nothing(key(request));
                    self.recorder.other(at, called, 0)
                }
            },
            Item::Record(Event::CollectiveEnd(part)) => self.collective(local, at, called, &part, None),
            Item::Start(part, request) => self.collective(local, at, called, &part, Some(key(request))),
            _ => Ok(()),
        }
    }

    fn collective(
        &mut self,
        local: &Local,
        at: Span,
        called: Called,
        part: &Collective,
        request: Option<u64>,
    ) -> std::result::Result<(), Problem> {
        let Some(operation) = operation(part.operation) else {
            if let Some(request) = request {
                self.recorder.open_nothing(request);
            }
            return self.recorder.other(at, called, 0);
        };
        let known = self.communicator(at, local.communicator(part.comm))?;
        let group = match known.group {
            Ok(group) => group,
            Err(why) => {
                self.recorder.found(why.finding());
                if let Some(request) = request {
                    self.recorder.open_nothing(request);
                }
                return self.recorder.other(at, called, 0);
            }
        };
        let me = group.rank_of(self.recorder.rank()).map(|me| me.0);
        let root = match operation.is_rooted() {
            false => None,
            true => {
                let root = if group.count() == 1 { Some(0) } else { u32::try_from(part.root).ok() };
                let outside = Problem::NoRank { rank: part.root, ranks: group.count() };
                Some(root.filter(|&root| root < group.count()).ok_or(outside)?)
            }
        };
        let is_root = root.is_some() && root == me;
        let (amounts, sure) = amounts(operation, part, is_root, group.count().into(), self.scorep);
        if !sure {
            *self.as_they_are.entry(operation.name()).or_default() += 1;
        }
        let comm = known.id;
        let collecting = Collecting { operation, comm, root, amounts, send_counts: &[], recv_counts: &[] };
        self.recorder.collective(at, called, &collecting, request)
    }

    /// A call without records of its own.
    fn without_records(&mut self, span: Span, called: Called) -> std::result::Result<(), Problem> {
        let name = self.recorder.name(called).to_owned();
        match name.as_str() {
            "MPI_Init" | "MPI_Init_thread" => self.recorder.init(span, called),
            "MPI_Finalize" => self.recorder.finalize(span, called),
            _ if is_left_out(&name) => self.recorder.other(span, called, 0),
            _ => Ok(()),
        }
    }
}

/// The number of a request of a thread.
fn key(thread: u16, request: u64) -> u64 {
    u64::from(thread) << THREAD_SHIFT ^ request
}

/// The function of a record outside of all regions of MPI.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Record(Event::Send(_)) => "Send",
        Item::Record(Event::Isend(..)) => "Isend",
        Item::Record(Event::Recv(_)) => "Recv",
        Item::Post(..) => "Irecv",
        Item::Record(Event::IsendComplete(_) | Event::Irecv(..) | Event::CollectiveComplete(..)) => "Wait",
        Item::Record(Event::CollectiveEnd(part)) => operation(part.operation)?.name(),
        Item::Start(part, _) => {
            return Some(format!("MPI_I{}", operation(part.operation)?.key().replace('-', "_")));
        }
        Item::Record(_) => return None,
    };
    Some(format!("MPI_{name}"))
}

/// Whether a function communicates, but has no records: one-sided, files, communicators, and non-blocking collectives in older
/// archives.
fn is_left_out(name: &str) -> bool {
    let name = name.trim_start_matches("MPI_");
    let is_one = |name: &str| Operation::ALL.iter().any(|known| known.name().eq_ignore_ascii_case(name));
    is_one(name)
        || name.strip_prefix('I').is_some_and(is_one)
        || LEFT_OUT.contains(&name)
        || LEFT_OUT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

const LEFT_OUT: [&str; 11] = [
    "Put",
    "Get",
    "Rput",
    "Rget",
    "Accumulate",
    "Raccumulate",
    "Get_accumulate",
    "Rget_accumulate",
    "Fetch_and_op",
    "Cart_create",
    "Cart_sub",
];
const LEFT_OUT_PREFIXES: [&str; 12] = [
    "Compare_and_swap",
    "Win_",
    "File_",
    "Neighbor_",
    "Ineighbor_",
    "Comm_dup",
    "Comm_idup",
    "Comm_split",
    "Comm_create",
    "Intercomm_",
    "Graph_create",
    "Dist_graph_create",
];
