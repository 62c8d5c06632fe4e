//! What the rules of the walk share: the task that is being made, its communicators, channels and pending requests.

use super::called::{Agreements, Probes, ends_access};
use super::locals::{Local, Locals};
use super::notes::NoteTaker;
use super::opened::Files;
use super::recent::{Name, Recent};
use super::requested::Answers;
use super::requests::Requests;
use super::timeline::{Chain, Timeline};
use super::transfers::Transfers;
use super::windows::Windows;
use crate::channels::{Channel, Posting, Purpose, Side};
use crate::communicators::Communicators;
use crate::counts::add_to;
use crate::error::{MixError, Problem};
use crate::index::{ChannelIndex, CollectiveIndex, CommIndex, MessageIndex, ReceiveIndex, RecordIndex};
use crate::records::{After, Body, Records};
use crate::summary::Tally;
use crate::task::{Fate, Task};
use crate::two_phase::Plans;
use crate::{Polls, SendWaits, StorageServers};
use ::collectives::choose::Table;
use ::collectives::creations::Library;
use hashbrown::HashMap;
use mpi_abi::account::{Clock, part_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::account::TimePart;
use vef_format::capture::event::{
    Action, CallSlot, Communicator, DatatypeId, Detail, Event, Members, Origin, PartitionedId, RequestId,
    UNRECORDED, moves_nothing,
};
use vef_format::capture::{Ending, Function, Group};
use vef_format::container::Section;
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::{Bytes, Nanos};

/// Options of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkOptions<'a> {
    /// Whether channels differ by message length ([`Channel::length`]), because the capture
    /// has no communicators.
    pub(crate) by_length: bool,
    /// Whether to keep the buffer size of each receive ([`Task::room`]).
    pub(crate) with_room: bool,
    /// Whether to make notes for a container ([`Task::notes`]).
    pub(crate) with_notes: bool,
    /// Whether the first record's time includes `MPI_Init`.
    pub(crate) keep_init: bool,
    pub(crate) without_clocks: bool,
    /// How failed polls count.
    pub(crate) polls: Polls,
    pub(crate) keep_preempted: bool,
    pub(crate) send_waits: SendWaits,
    /// Factor of the time of calls without a record.
    pub(crate) own_work: Option<f64>,
    /// The library whose messages collectives between groups have, and windows.
    pub(crate) library: Library,
    /// The library whose agreements are in the trace; `None`: they are computing.
    pub(crate) creations: Option<Library>,
    /// The decision table, if collectives are to be replaced by messages.
    pub(crate) lower: Option<&'a Table>,
    /// The tasks that stand for storage servers.
    pub(crate) io: Option<StorageServers>,
    /// The first of the tasks that stand for the network interfaces of the capture's tasks, in their order, if these answer one-sided requests.
    pub(crate) interfaces: Option<Rank>,
}

/// Makes a [`Task`].
pub(super) struct Builder<'a> {
    pub(super) rank: Rank,
    pub(super) communicators: &'a Communicators,
    pub(super) options: WalkOptions<'a>,
    pub(super) comms: Locals,
    /// Bytes of data in an element of each datatype.
    pub(super) element_sizes: HashMap<DatatypeId, Bytes>,
    /// Number of duplicates for windows, and for files, of each communicator.
    duplicates: HashMap<(CommId, u32), u32>,
    /// Caches of send and receive channels; not used if channels differ by length.
    recent: [Recent; 2],
    pub(super) requests: Requests<Pending>,
    /// How many of them are no sends of the task.
    pub(super) awaited_of_others: u64,
    /// Pending wildcard receives.
    pub(super) wildcards: HashMap<ReceiveIndex, Wildcard>,
    /// Pending collectives that are messages, and one-sided requests ([`Pending::Lowered`]).
    pub(super) lowered: Vec<Lowered>,
    pub(super) timeline: Timeline,
    pub(super) clock: Clock,
    /// Calls that a trace cannot represent, by function.
    not_representable: BTreeMap<CallSlot, Tally>,
    pub(super) notes: Option<Box<NoteTaker>>,
    pub(super) probes: Probes,
    pub(super) agreements: Agreements,
    pub(super) windows: Windows,
    pub(super) files: Files,
    pub(super) transfers: Transfers<'a>,
    /// The accesses to files in two phases, once they are known.
    pub(super) plans: Option<&'a Plans>,
    pub(super) answers: Answers<'a>,
    /// Whether several threads make calls.
    pub(super) several_threads: bool,
    pub(super) end: RecordingEnd,
    /// Whether the task answers and does nothing else.
    pub(super) serves: bool,

    /// How many events the task may have, less the messages and receives of collectives, and those of probes: so each
    /// message, receive and collective has an index.
    pub(super) most: u64,
    pub(super) task: Task,
}

/// How the recording of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordingEnd {
    /// With its last complete record: the process was killed, or is still running.
    Cut,
    /// With `MPI_Finalize`.
    Finalized,
    /// The recorder stopped, because of a limit or a failure.
    Stopped,
    /// It was not to be recorded, and has no calls but `MPI_Init`.
    Unrecorded,
    /// It did not begin: the process was killed in `MPI_Init`.
    Unbegun,
}

/// A pending request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    /// The trace cannot represent it, and its completion makes no record; a wait for it counts for this part of the time.
    Outside(TimePart),
    /// The same of what is complete at once.
    Complete(TimePart),
    /// A send.
    Send { message: MessageIndex, record: RecordIndex },
    /// A one-sided transfer without an answer, and its record if it has one.
    Put(Option<RecordIndex>),
    /// A receive.
    Receive(ReceiveIndex),
    /// A collective; a wait for it counts for this part of the time.
    Collective(CollectiveIndex, TimePart),
    /// A collective that is messages, or a one-sided request, by index in [`Builder::lowered`].
    Lowered(usize),
    /// The start of a partitioned transfer.
    Partitioned(PartitionedId),
}

impl Pending {
    fn is_own_send(self) -> bool {
        matches!(self, Self::Send { .. } | Self::Put(_) | Self::Complete(_))
    }
}

/// A collective that is messages, or a one-sided request.
#[derive(Debug)]
pub(super) struct Lowered {
    /// The records of those of its messages for which its end waits.
    pub(super) sends: Vec<RecordIndex>,
    /// Its receives.
    pub(super) receives: Vec<ReceiveIndex>,
    /// Whether the marks behind the first one begin at the end of the call that completes it, when all messages have arrived.
    pub(super) marks_at_end: bool,
    /// The part of the time that a wait for it counts for.
    pub(super) part: TimePart,
}

impl Lowered {
    /// A collective.
    pub(super) fn collective() -> Self {
        Self { sends: Vec::new(), receives: Vec::new(), marks_at_end: false, part: TimePart::Collective }
    }

    /// One-sided requests that `receives` answer.
    pub(super) fn of_window(receives: Vec<ReceiveIndex>) -> Self {
        Self { sends: Vec::new(), receives, marks_at_end: true, part: TimePart::Window }
    }
}

/// The arguments of a wildcard receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wildcard {
    pub(super) comm: CommId,
    pub(super) source: Option<Rank>,
    pub(super) tag: Option<i32>,
    pub(super) room: Bytes,
}

/// One of the task's sides, and the index of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SideOf {
    Sends = 0,
    Receives = 1,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        rank: Rank,
        communicators: &'a Communicators,
        options: WalkOptions<'a>,
        several_threads: bool,
        notes: Option<Box<NoteTaker>>,
        (clock, probes, agreements, windows, answers): (Clock, Probes, Agreements, Windows, Answers<'a>),
        expected: usize,
    ) -> Self {
        let side = || Side::with_capacity(expected / 2);
        let threads = several_threads || !answers.are_given();
        let task = Task {
            records: Records::of(rank, threads, expected),
            sends: side(),
            receives: side(),
            fates: Vec::with_capacity(expected / 2),
            postings: threads.then(Vec::new),
            room: options.with_room.then(Vec::new),
            ..Task::default()
        };
        Self {
            rank,
            communicators,
            options,
            comms: Locals::default(),
            element_sizes: HashMap::new(),
            duplicates: HashMap::new(),
            recent: Default::default(),
            requests: Requests::new(),
            awaited_of_others: 0,
            wildcards: HashMap::new(),
            lowered: Vec::new(),
            timeline: Timeline::new(options.own_work),
            clock,
            not_representable: BTreeMap::new(),
            notes,
            probes,
            agreements,
            windows,
            files: Files::default(),
            transfers: Transfers::default(),
            plans: None,
            answers,
            several_threads,
            end: RecordingEnd::Cut,
            serves: false,
            most: MessageIndex::NONE.0.into(),
            task,
        }
    }

    /// Begins an event.
    #[inline(always)]
    pub(super) fn enter(&mut self, event: &Event<'_>) -> Result<(), Problem> {
        self.task.counts.events += 1;
        let unrecorded = self.clock.event(event);
        if unrecorded > 0 {
            self.leave_out(event.thread, unrecorded);
        }
        self.timeline.release_due(&mut self.task, event);
        self.has_indices()
    }

    /// Counts a message or receive that is not the only one of its call.
    pub(super) fn count_further(&mut self) -> Result<(), Problem> {
        self.most = self.most.saturating_sub(1);
        self.has_indices()
    }

    /// Ends an event; if it `has_record`, it made those from `before` on.
    #[inline(always)]
    pub(super) fn leave(&mut self, event: &Event<'_>, before: usize, has_record: bool) {
        if !has_record {
            self.without_record(event);
        }
        if let Some(notes) = &mut self.notes {
            let after = self.task.records.len() + self.timeline.delayed();
            notes.event(event, before as u64..after as u64, self.timeline.joined());
        }
    }

    /// The time of a call that made no record is in the next one, but for those outside the phase of a capture of one phase, and for synchronisations of windows,
    /// polls and completions; these two are counted where they are. Where servers keep files, the first half of a split access has waited for them.
    #[inline(never)]
    fn without_record(&mut self, event: &Event<'_>) {
        let is_outside = !self.clock.is_recorded();
        let is_synchronisation = matches!(event.action, Action::Other { detail: Detail::Sync { .. }, .. });
        let part = part_of(&event.action).filter(|&part| part != TimePart::Polling);
        let ends_something = matches!(event.action, Action::CommunicatorFree(_) | Action::Forget(_));
        let takes_time = part.is_some() && !(is_synchronisation && self.replays(event, false));
        let took = event.end.0.saturating_sub(event.start.0);
        if is_outside && (takes_time || ends_something) {
            self.leave_out(event.thread, took);
        } else if takes_time && self.options.io.is_some() && self.agreements.are_of_ending(event.call) {
            self.timeline.waited(event, false);
        } else if takes_time {
            add_to(&mut self.task.counts.spent.calls_kept, self.timeline.of_own_work(took));
            self.timeline.worked(event.thread, took);
        }
    }

    /// The replay decides how long `event`, which has no record, waits for the task's own data to leave, and, if so told, how long the polls before
    /// it do; `false`: it is computing.
    pub(super) fn replays(&mut self, event: &Event<'_>, with_polls: bool) -> bool {
        let is_replayed = self.options.send_waits == SendWaits::Replay;
        if is_replayed {
            self.timeline.waited(event, with_polls);
            if let Some(notes) = &mut self.notes {
                notes.replayed(with_polls);
            }
        }
        is_replayed
    }

    /// The error for `problem` in the current event.
    #[cold]
    pub(super) fn error(&self, problem: Problem) -> MixError {
        MixError::Event { task: self.rank, event: self.task.counts.events.saturating_sub(1), problem }
    }

    #[inline(always)]
    fn has_indices(&self) -> Result<(), Problem> {
        if self.task.counts.events <= self.most { Ok(()) } else { Err(Problem::TooManyEvents) }
    }

    /// Number of records so far.
    #[inline(always)]
    pub(super) fn records(&self) -> usize {
        self.task.records.len() + self.timeline.delayed()
    }

    /// Index of the next record.
    #[inline(always)]
    pub(super) fn next_record(&self) -> RecordIndex {
        RecordIndex(self.records() as u32)
    }

    /// Makes the only record of the call `event`; what follows the call depends on `after`.
    #[inline(always)]
    pub(super) fn record(&mut self, event: &Event<'_>, body: Body, after: After) {
        let mut chain = Chain::default();
        self.timeline.record(&mut self.task, event, event.start, &mut chain, body, after);
        self.timeline.end(event, &chain);
    }

    /// Keeps what the completion of `request` needs, if the call starts one.
    #[inline(always)]
    pub(super) fn start(&mut self, request: Option<RequestId>, pending: Pending) -> Result<(), Problem> {
        let Some(request) = request else { return Ok(()) };
        self.awaited_of_others += u64::from(!pending.is_own_send());
        match self.requests.insert(request, pending) {
            true => Ok(()),
            false => Err(Problem::Request { thread: request.thread, number: request.number }),
        }
    }

    /// Takes the pending request `request`.
    #[inline(always)]
    pub(super) fn take_request(&mut self, request: RequestId) -> Option<Pending> {
        let pending = self.requests.remove(request)?;
        self.awaited_of_others -= u64::from(!pending.is_own_send());
        Some(pending)
    }

    /// Adds a message; returns its index and the body of its record.
    #[inline(always)]
    pub(super) fn add_message(&mut self, channel: ChannelIndex, bytes: Bytes) -> (MessageIndex, Body) {
        let counts = &mut self.task.counts;
        counts.bytes = counts.bytes.saturating_add(bytes.0);
        (MessageIndex(self.task.sends.post(channel)), Body::Message(bytes))
    }

    /// Adds a receive that `event` posts; `fate` is what is known so far.
    #[inline(always)]
    pub(super) fn add_receive(
        &mut self,
        event: &Event<'_>,
        channel: ChannelIndex,
        fate: Fate,
        room: Bytes,
    ) -> ReceiveIndex {
        if let Some(postings) = &mut self.task.postings {
            postings.push(Posting { start: event.start.0, end: event.end.0, done: u64::MAX });
        }
        self.task.fates.push(fate);
        if let Some(rooms) = &mut self.task.room {
            rooms.push(room);
        }
        ReceiveIndex(self.task.receives.post(channel))
    }

    /// The call `event` waited for a receive.
    #[inline(always)]
    pub(super) fn completed_receive(&mut self, event: &Event<'_>, receive: ReceiveIndex) {
        self.task.fates[receive.index()] = Fate::Awaited;
        if let Some(postings) = &mut self.task.postings {
            postings[receive.index()].done = event.end.0;
        }
    }

    /// The channel of a send or receive; `None` if the trace cannot represent its communicator.
    #[inline(always)]
    pub(super) fn channel(
        &mut self,
        side: SideOf,
        name: Name,
        bytes: Bytes,
    ) -> Result<Option<ChannelIndex>, Problem> {
        match self.recent[side as usize].find(name) {
            Some(channel) => Ok(Some(channel)),
            None => self.look_up(side, name, bytes),
        }
    }

    /// [`Builder::channel`] of one that is not in the cache.
    #[inline(never)]
    fn look_up(&mut self, side: SideOf, name: Name, bytes: Bytes) -> Result<Option<ChannelIndex>, Problem> {
        let (comm, rank, tag) = name;
        let Some((comm, peer)) = self.comms.peer(comm, rank)? else { return Ok(None) };
        let length = if self.options.by_length { bytes.0 } else { 0 };
        let channel = Channel { comm, peer, tag, purpose: Purpose::PointToPoint, length };
        let index = match side {
            SideOf::Sends => self.task.sends.channel(channel),
            SideOf::Receives => self.task.receives.channel(channel),
        };
        if !self.options.by_length {
            self.recent[side as usize].remember(name, index);
        }
        Ok(Some(index))
    }

    /// Interns a communicator of the task.
    pub(super) fn communicator(&mut self, described: &Communicator<'_>) -> Result<(), Problem> {
        let Communicator { id, origin, members, foreign, .. } = *described;
        let parent = |comms: &mut Locals, comm| comms.get(comm).ok().map(|local| local.index);
        let local = if foreign {
            // The members may belong to another `MPI_COMM_WORLD`, so they are not recorded.
            Local { foreign, ..Local::of_tasks(CommIndex::NONE, Arc::default()) }
        } else if described.is_inter() {
            let group = |members| self.communicators.group(id.0, members).map(Arc::new);
            let (group, peers) = (group(members)?, group(described.peers())?);
            // Both groups know it as the same one.
            let is_behind = peers.get(CommRank(0)) < group.get(CommRank(0));
            let (first, second) = if is_behind { (&peers, &group) } else { (&group, &peers) };
            let all: Vec<Rank> = first.iter().chain(second.iter()).collect();
            let (index, _) = self.intern(id.0, origin, Members::List(&all), parent)?;
            Local { peers, inter: true, ..Local::of_tasks(index, group) }
        } else {
            let (index, group) = self.intern(id.0, origin, members, parent)?;
            Local::of_tasks(index, group)
        };
        self.comms.add(id, local)
    }

    /// Interns the communicator with the task's `number`; `parent` returns the index of an earlier one.
    pub(super) fn intern(
        &mut self,
        number: u32,
        origin: Origin,
        members: Members<'_>,
        parent: impl Fn(&mut Locals, CommId) -> Option<CommIndex>,
    ) -> Result<(CommIndex, Arc<Group>), Problem> {
        let Self { rank, communicators, comms, .. } = self;
        communicators.intern(*rank, number, origin, members, |comm| parent(comms, comm))
    }

    /// The duplicate of a communicator on which MPI makes a window or opens a file; `kind` with the task's number for that is the
    /// communicator's. `None`: the trace cannot represent it.
    pub(super) fn duplicate(
        &mut self,
        of: CommId,
        kind: u32,
        number: u32,
    ) -> Result<Option<(CommId, CommIndex, Arc<Group>)>, Problem> {
        let local = self.comms.get(of)?;
        if local.foreign || local.inter {
            return Ok(None);
        }
        let (parent, group) = (local.index, local.group.clone());
        let made = self.duplicates.entry((of, kind)).or_default();
        let origin = Origin::Child { parent: of, ordinal: kind | *made };
        *made += 1;
        let own = CommId(kind | number);
        let (index, group) = self.intern(own.0, origin, group.members(), |_, _| Some(parent))?;
        self.comms.add(own, Local::of_tasks(index, group.clone()))?;
        Ok(Some((own, index, group)))
    }

    /// Rule 1.
    pub(super) fn begin(&mut self, event: &Event<'_>) {
        self.timeline.begin(&mut self.task, event, self.options.keep_init);
        self.clock.begin(event);
    }

    /// Failed polls have no record: the next record's time contains them, unless they were waiting.
    pub(super) fn polled(&mut self, event: &Event<'_>) {
        self.clock.polled(event);
        if self.options.polls == Polls::Wait {
            self.timeline.polled(event, self.probes.look_for_messages(event.call));
        }
    }

    /// The thread had no core: that time is not the program's.
    pub(super) fn preempted(&mut self, event: &Event<'_>) {
        let took = self.clock.preempted(event);
        match self.options.keep_preempted {
            true => {
                add_to(&mut self.task.counts.spent.preempted_kept, took);
                if let Some(notes) = &mut self.notes {
                    notes.lags(took);
                }
            }
            false => self.leave_out(event.thread, took),
        }
    }

    /// So much of the thread's time since its latest record is not computing.
    fn leave_out(&mut self, thread: u16, took: u64) {
        self.timeline.leave_out(thread, took);
        if let Some(notes) = &mut self.notes {
            notes.leave_out(thread, took);
        }
    }

    /// Rule 7.
    pub(super) fn finalize(&mut self, event: &Event<'_>) {
        self.end = RecordingEnd::Finalized;
        self.clock.end(event);
        self.timeline.join(&mut self.task, event);
        self.record(event, Body::Mark, After::Sent);
    }

    #[cold]
    pub(super) fn stopped(&mut self, reason: &str) {
        if self.end != RecordingEnd::Finalized {
            self.end = if reason == UNRECORDED { RecordingEnd::Unrecorded } else { RecordingEnd::Stopped };
        }
    }

    /// The file says how its recording ended, also where no event does.
    pub(super) fn ended(&mut self, ending: Ending) {
        self.end = match (self.end, ending) {
            (RecordingEnd::Cut, Ending::Stopped) => RecordingEnd::Stopped,
            (RecordingEnd::Cut, Ending::Unbegun) => RecordingEnd::Unbegun,
            (end, _) => end,
        };
    }

    #[cold]
    pub(super) fn not_representable(&mut self, call: CallSlot, bytes: Bytes) {
        self.not_representable.entry(call).or_default().add(bytes);
    }

    /// Completes the task; `functions` is the capture's call table, and `span` when its recording began and ended.
    pub(super) fn finish(mut self, functions: &[Function], span: (Nanos, Nanos)) -> Task {
        self.timeline.release(&mut self.task, u64::MAX, None);
        let Self { mut task, not_representable, mut notes, clock, several_threads, .. } = self;
        let has_servers = self.options.io.is_some();
        let account = clock.account(functions, span);
        // Nothing is known of the time of a rank that was not recorded.
        if !matches!(self.end, RecordingEnd::Unrecorded | RecordingEnd::Unbegun) {
            task.counts.spent.times = account.by_part();
            if let Some(notes) = &mut notes {
                notes.account(&account);
            }
        }
        let counts = &mut task.counts;
        for (call, tally) in not_representable {
            let function = call.index().and_then(|at| functions.get(at));
            let name = function.map_or("calls between communicators", |function| &function.name);
            // With servers, accesses that these calls end are in the trace.
            if moves_nothing(name) || has_servers && ends_access(name) {
                continue;
            }
            counts.not_representable.insert(name.to_owned(), tally);
        }
        let shared = functions.iter().filter(|function| function.name.starts_with("MPI_Win_allocate_shared"));
        counts.shared_windows = shared.map(|function| function.calls).sum();
        counts.messages = task.sends.len() as u64;
        counts.local_collectives = task.collectives.into();
        counts.marks = task.records.len() as u64 - counts.messages - counts.local_collectives;
        counts.threaded = several_threads.into();
        counts.answering = (task.records.has_threads() && !several_threads).into();
        if self.end != RecordingEnd::Finalized {
            counts.killed.push(self.rank);
        }
        match self.end {
            RecordingEnd::Finalized | RecordingEnd::Cut => {}
            RecordingEnd::Stopped => counts.stopped.push(self.rank),
            RecordingEnd::Unrecorded => counts.unrecorded.push(self.rank),
            RecordingEnd::Unbegun => counts.unbegun.push(self.rank),
        }
        if let Some(notes) = notes {
            (task.notes, task.unplaced_notes) = notes.finish();
            if self.options.without_clocks {
                let of_clocks = [Section::Spans, Section::Times, Section::Moments];
                task.notes.retain(|(section, _)| !of_clocks.contains(section));
            }
        }
        task.shrink();
        task
    }
}
