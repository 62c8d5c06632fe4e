//! Profile of a capture: the parts of the ranks' time, calls of each MPI function with their time and bytes, messages by pair of ranks, and
//! times by phase of the program.
//!
//! Bytes of messages are those sent and those received; of collectives, those of the buffer that a rank gives (of a vector form: of all
//! blocks). Peers are those that a rank sends to. What a persistent request moves counts where it is started. Shares of MPI are of the time
//! between the end of `MPI_Init` and the start of `MPI_Finalize`, of all threads that make calls.

mod text;
mod time;

pub use text::{SECTIONS, text};

use crate::flow::{Channels, Place};
use crate::report::spent;
use crate::stats::{Adding, Files};
use crate::wildcards::Matched;
use hashbrown::{HashMap, HashSet};
use mpi_abi::prototypes::{Call, Category};
use results::profile::{Function, Pair, Phase, Profile, Rank};
use std::collections::BTreeMap;
use std::path::Path;
use time::{InPhase, TimeOfRank};
use vef_format::account::Account;
use vef_format::capture::event::{
    Action, Collective, DatatypeId, Detail, Event, Neighbourhood, Partitioned, PartitionedId, Send,
    UNRECORDED,
};
use vef_format::capture::{Capture, CaptureError, Ending, Group};
use vef_format::files::FileUses;
use vef_format::ids::{CommId, CommRank, Rank as Task};
use vef_format::operation::Operation;
use vef_format::units::{Bytes, Picos};

/// Makes the profile of the capture in `directory`, or in its sub-directory `profile`.
///
/// # Errors
/// See [`CaptureError`].
pub fn read(directory: &Path) -> Result<Profile, CaptureError> {
    let capture = match Capture::open(directory) {
        Err(CaptureError::NoCapture(_)) if directory.join("profile").is_dir() => {
            Capture::open(&directory.join("profile"))?
        }
        opened => opened?,
    };
    let mut profile = Profile { tasks: capture.tasks(), ..Profile::default() };
    let mut sizes = Sizes::default();
    for rank in (0..capture.tasks()).map(Task) {
        sizes.read(&capture, rank)?;
    }
    let mut sums = Sums::new(capture.tasks());
    for rank in (0..capture.tasks()).map(Task) {
        add(&mut profile, &capture, rank, &sizes, &mut sums)?;
    }
    profile.spent = sums.accounts.finish().map(|accounts| spent(&accounts, Picos(1000)));
    profile.files = sums.files.report(Picos(1000), usize::MAX);
    profile.phases = phases(sums.phases);
    profile.calls = sums.calls.into_values().collect();
    profile.calls.sort_by_key(|call| std::cmp::Reverse(call.ns));
    profile.pairs.sort_by_key(|pair| std::cmp::Reverse((pair.bytes, pair.messages)));
    Ok(profile)
}

/// Adds a rank.
fn add(
    profile: &mut Profile,
    capture: &Capture,
    rank: Task,
    sizes: &Sizes,
    sums: &mut Sums,
) -> Result<(), CaptureError> {
    let matched = Matched::of_rank(capture, rank)?;
    let mut events = capture.events(rank)?;
    let mut moved = Moved {
        rank,
        tasks: capture.tasks(),
        bytes: vec![0; events.functions().len()],
        sent: BTreeMap::new(),
        transfers: 0,
        comms: HashMap::default(),
        between: HashSet::default(),
        destinations: HashMap::default(),
        receivers: HashMap::default(),
        datatypes: HashMap::default(),
        sizes,
        matched,
        channels: Channels::new(rank, capture.tasks()),
        buffers: 0,
    };
    let mut time = TimeOfRank::new(&events);
    let mut files = FileUses::default();
    let (mut initialised, mut finalised, mut threads, mut is_recorded) = (None, None, 1, true);
    events.each(|event| {
        match event.action {
            Action::Init => initialised = Some(event.end),
            Action::Finalize => finalised = Some(event.start),
            _ => {}
        }
        threads = threads.max(u32::from(event.thread) + 1);
        is_recorded &= !matches!(event.action, Action::Stopped { reason: UNRECORDED });
        moved.event(event);
        time.event(event);
        files.event(event);
        Ok::<_, CaptureError>(())
    })?;
    // That of a rank without MPI_Finalize is known now: it ends with its last event.
    if !is_recorded {
        profile.unrecorded += 1;
        profile.ranks.push(Rank { threads, ..Rank::default() });
        return Ok(());
    }
    let (begin, end) = events.span();
    let (account, phases) = time.finish(events.functions(), (begin, end));
    sums.add(rank, &account, phases);
    files.by_name().for_each(|(name, used)| sums.files.add(rank, name, *used));
    let wall_ns = finalised.unwrap_or(end).0.saturating_sub(initialised.unwrap_or(begin).0);
    let times = account.by_part();
    let (mut made, mpi_ns, thread_ns) = (0u64, times.inside(), times.running());
    for (function, &bytes) in events.functions().iter().zip(&moved.bytes) {
        let call = Call::from_name(&function.name);
        let entries = account.0.iter().filter(|entry| entry.function == function.name);
        let ns = match call.is_some_and(|call| call.category() == Category::Lifecycle) {
            // What these take is not the program's communication, and in no account but for start-up.
            true => function.time.0,
            false => entries.map(|entry| entry.took.0).fold(0, u64::saturating_add),
        };
        made += function.calls;
        let entry = sums.calls.entry(function.name.clone()).or_insert_with(|| Function {
            name: function.name.clone(),
            representable: !call.is_some_and(|call| is_beyond_a_trace(call.category())),
            ..Function::default()
        });
        entry.calls = entry.calls.saturating_add(function.calls);
        entry.ns = entry.ns.saturating_add(ns);
        entry.longest_rank_ns = entry.longest_rank_ns.max(ns);
        entry.bytes = entry.bytes.saturating_add(bytes);
        entry.errors = entry.errors.saturating_add(function.errors);
    }
    let sum = |of: fn(&(u64, u64)) -> u64| moved.sent.values().map(of).fold(0, u64::saturating_add);
    let (messages, bytes) = (sum(|sent| sent.0), sum(|sent| sent.1));
    let transfers = moved.transfers;
    profile.buffers += moved.buffers;
    profile.ranks.push(Rank { calls: made, mpi_ns, wall_ns, threads, messages, bytes, transfers });
    profile.mpi_ns = profile.mpi_ns.saturating_add(mpi_ns);
    profile.wall_ns = profile.wall_ns.saturating_add(wall_ns);
    profile.thread_ns = profile.thread_ns.saturating_add(thread_ns);
    let pair = |(to, (messages, bytes)): (Task, (u64, u64))| Pair { from: rank.0, to: to.0, messages, bytes };
    profile.pairs.extend(moved.sent.into_iter().map(pair));
    Ok(())
}

/// The sums of all ranks so far.
struct Sums {
    calls: BTreeMap<String, Function>,
    accounts: Adding,
    files: Files,
    /// By name: the sums, and the longest time of a rank with that rank.
    phases: BTreeMap<String, (InPhase, u64, Task)>,
}

impl Sums {
    fn new(tasks: u32) -> Self {
        let (accounts, files) = (Adding::new(tasks), Files::default());
        Self { calls: BTreeMap::new(), accounts, files, phases: BTreeMap::new() }
    }

    /// Adds what a rank spent.
    fn add(&mut self, rank: Task, account: &Account, phases: BTreeMap<String, InPhase>) {
        for entry in &account.0 {
            self.accounts.add(rank, &entry.function, entry.part, entry.calls, entry.took.0);
        }
        for (name, InPhase { entries, times }) in phases {
            let (sum, longest, of) = self.phases.entry(name).or_insert((InPhase::default(), 0, rank));
            sum.entries += entries;
            sum.times.merge(&times);
            if times.running() > *longest {
                (*longest, *of) = (times.running(), rank);
            }
        }
    }
}

/// The phases, the longest first; none, if the program has none.
fn phases(sums: BTreeMap<String, (InPhase, u64, Task)>) -> Vec<Phase> {
    if sums.keys().all(String::is_empty) {
        return Vec::new();
    }
    let phase = |(name, (InPhase { entries, times }, longest, of))| {
        let (ns, max_rank): (u64, Task) = (times.running(), of);
        Phase { name, entries, ns, times_ns: times, max_ns: longest, max_rank: max_rank.0 }
    };
    let mut phases: Vec<Phase> = sums.into_iter().map(phase).collect();
    phases.sort_by_key(|phase| std::cmp::Reverse(phase.ns));
    phases
}

/// Whether a VEF trace has no record for calls of this kind.
fn is_beyond_a_trace(category: Category) -> bool {
    use Category::*;
    matches!(category, Io)
}

/// Messages and bytes of one rank.
struct Moved<'a> {
    rank: Task,
    tasks: u32,
    /// By slot of the call table.
    bytes: Vec<u64>,
    /// Messages and bytes by receiver.
    sent: BTreeMap<Task, (u64, u64)>,
    /// One-sided transfers.
    transfers: u64,
    /// Receives whose bytes are those of the buffer.
    buffers: u64,
    comms: HashMap<u32, Group>,
    /// Those of two groups.
    between: HashSet<u32>,
    /// By communicator: for each destination in its topology, whether there is a rank.
    destinations: HashMap<u32, Vec<bool>>,
    /// The receivers of partitioned transfers.
    receivers: HashMap<PartitionedId, Task>,
    /// Sizes of datatypes.
    datatypes: HashMap<u32, u64>,
    sizes: &'a Sizes,
    matched: Matched,
    channels: Channels,
}

/// The sizes of the messages of each channel of the run, in the order in which they were sent.
#[derive(Debug, Default)]
struct Sizes {
    /// By channel: a size, and the number of the last message in succession that has it.
    runs: HashMap<u64, Vec<(Bytes, u64)>>,
    /// Ranks whose recording ended before `MPI_Finalize`: they may have sent more.
    unfinished: HashSet<Task>,
    /// Ranks that were recorded in one phase only: they may have sent more in front of any message.
    of_a_phase: HashSet<Task>,
}

impl Sizes {
    /// Adds the messages that a rank sends.
    fn read(&mut self, capture: &Capture, rank: Task) -> Result<(), CaptureError> {
        let mut channels = Channels::new(rank, capture.tasks());
        let mut events = capture.events(rank)?;
        events.each(|event| {
            match &event.action {
                Action::Communicator(described) => channels.add(described),
                Action::Send(send) | Action::Exchange { send, .. } => {
                    let Some(place) = channels.send(send.comm, send.dest, send.tag) else { return Ok(()) };
                    let runs = self.runs.entry(place.channel).or_default();
                    match runs.last_mut() {
                        Some((size, last)) if *size == send.bytes => *last = place.number,
                        _ => runs.push((send.bytes, place.number)),
                    }
                }
                _ => {}
            }
            Ok::<_, CaptureError>(())
        })?;
        if events.ending() != Ending::Finished {
            self.unfinished.insert(rank);
        }
        if events.only_phase().is_some() {
            self.of_a_phase.insert(rank);
        }
        Ok(())
    }

    /// The bytes of a message; none, if it was not sent. `None`: the send was not recorded.
    fn of(&self, place: Place, sender: Option<Task>) -> Option<Bytes> {
        if sender.is_some_and(|sender| self.of_a_phase.contains(&sender)) {
            return None;
        }
        let runs = self.runs.get(&place.channel)?;
        let at = runs.partition_point(|&(_, last)| last < place.number);
        match runs.get(at) {
            Some(&(size, _)) => Some(size),
            None => sender.is_none_or(|sender| !self.unfinished.contains(&sender)).then_some(Bytes::ZERO),
        }
    }
}

impl Moved<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let bytes = match &event.action {
            Action::Communicator(described) => {
                let peers = Group::new(described.peers(), self.tasks).unwrap_or_default();
                self.comms.insert(described.id.0, peers);
                if described.is_inter() {
                    self.between.insert(described.id.0);
                }
                self.channels.add(described);
                return;
            }
            Action::Topology(described) => {
                let there = described.destinations.iter().map(Option::is_some).collect();
                self.destinations.insert(described.comm.0, there);
                return;
            }
            Action::Datatype(described) => {
                self.datatypes.insert(described.id.0, described.size.0);
                return;
            }
            Action::Send(send) => self.send(send),
            Action::Exchange { send, receive } => {
                let received =
                    self.received(receive.comm, Some((receive.source, receive.tag)), receive.bytes);
                Bytes(self.send(send).0.saturating_add(received.0))
            }
            Action::Receive(receive) => {
                self.received(receive.comm, Some((receive.source, receive.tag)), receive.bytes)
            }
            Action::PostReceive(post) => {
                let (from, is_pending) = (self.matched.of(post), self.matched.is_pending(post));
                let buffer = if is_pending { Bytes::ZERO } else { post.bytes };
                let received = self.received(post.comm, from, buffer);
                if is_pending { Bytes::ZERO } else { received }
            }
            Action::Collective(part) => self.given(part),
            Action::Neighbourhood(part) => self.given_to_neighbours(part),
            Action::Partitioned(Partitioned::Init(init)) => {
                let to = self.comms.get(&init.comm.0).and_then(|comm| comm.get(init.peer));
                self.receivers.extend(to.map(|to| (init.id, to)));
                return;
            }
            Action::Partitioned(Partitioned::Ready { id, count, bytes, .. }) => {
                let bytes = Bytes(bytes.0.saturating_mul((*count).into()));
                if let Some(&to) = self.receivers.get(id) {
                    self.sent_to(to, (*count).into(), bytes);
                }
                bytes
            }
            Action::Other { bytes, detail } => {
                self.transfers += u64::from(matches!(detail, Detail::Transfer(_)));
                *bytes
            }
            _ => return,
        };
        if let Some(sum) = event.call.index().and_then(|slot| self.bytes.get_mut(slot)) {
            *sum = sum.saturating_add(bytes.0);
        }
    }

    /// The bytes of the message that a receive took; of the buffer, if the send was not recorded.
    fn received(&mut self, comm: CommId, from: Option<(CommRank, i32)>, buffer: Bytes) -> Bytes {
        let Some((source, tag)) = from else { return Bytes::ZERO };
        let sender = self.channels.member(comm, source);
        let place = self.channels.receive(comm, source, tag);
        place.and_then(|place| self.sizes.of(place, sender)).unwrap_or_else(|| {
            self.buffers += u64::from(buffer != Bytes::ZERO);
            buffer
        })
    }

    fn send(&mut self, send: &Send) -> Bytes {
        let to = self.comms.get(&send.comm.0).and_then(|comm| comm.get(send.dest));
        if let Some(to) = to {
            self.sent_to(to, 1, send.bytes);
        }
        send.bytes
    }

    fn sent_to(&mut self, to: Task, messages: u64, bytes: Bytes) {
        let sent = self.sent.entry(to).or_default();
        *sent = (sent.0 + messages, sent.1.saturating_add(bytes.0));
    }

    /// The bytes of the blocks that this rank sends in a neighbourhood collective.
    fn given_to_neighbours(&self, part: &Neighbourhood<'_>) -> Bytes {
        let there = self.destinations.get(&part.comm.0).map_or(&[][..], Vec::as_slice);
        let block = |at: usize| part.send_counts.get(at).copied().unwrap_or(part.block.send.0);
        let blocks = there.iter().enumerate().filter(|(_, there)| **there).map(|(at, _)| block(at));
        Bytes(blocks.fold(0, u64::saturating_add))
    }

    /// Adds this rank's part of a collective.
    fn given(&self, part: &Collective<'_>) -> Bytes {
        let sum = |counts: &[u64]| Bytes(counts.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes)));
        let size = |datatype: DatatypeId| self.datatypes.get(&datatype.0).copied().unwrap_or(0);
        let block = Bytes(part.count.saturating_mul(size(part.datatype)));
        if self.between.contains(&part.comm.0) {
            return part.amounts.send;
        }
        let group = self.comms.get(&part.comm.0);
        let own = || part.recv_counts.get(group?.rank_of(self.rank)?.index()).copied();
        match part.operation {
            Operation::Bcast | Operation::Reduce | Operation::Gather => block,
            Operation::Gatherv => own().map_or(block, Bytes),
            Operation::Scatter if part.amounts.send != Bytes::ZERO => {
                Bytes(block.0.saturating_mul(group.map_or(1, Group::count).into()))
            }
            Operation::Scatter => Bytes::ZERO,
            Operation::Scatterv => sum(part.send_counts),
            _ => part.amounts.send,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Section;
    use vef_format::capture::event::{
        CallSlot, Communicator, Completion, Completions, Members, Origin, Outcome, PostReceive, Remote,
        RequestId, SendMode,
    };
    use vef_format::capture::{RankInfo, RankWriter};
    use vef_format::units::Nanos;

    const WORLD: CommId = CommId(0);

    /// The profile of ranks with these calls, by function, of 10 ns each, between `MPI_Init` and an end.
    fn profile(ranks: &[(&[(&str, Action<'_>)], Action<'_>)]) -> Profile {
        profile_in(None, ranks)
    }

    /// The same, recorded in one phase only.
    fn profile_in(phase: Option<&str>, ranks: &[(&[(&str, Action<'_>)], Action<'_>)]) -> Profile {
        let directory = tempfile::tempdir().unwrap();
        for (rank, (calls, end)) in (0u32..).zip(ranks) {
            let only_phase = phase.map(str::to_owned);
            let tasks = ranks.len() as u32;
            let info = RankInfo { rank: Task(rank), tasks, only_phase, ..RankInfo::default() };
            let mut writer = RankWriter::create(directory.path(), &info).unwrap();
            let world = Action::Communicator(Communicator {
                id: WORLD,
                origin: Origin::World,
                split: None,
                members: Members::All,
                remote: Remote::None,
                foreign: false,
            });
            let all = [("", &Action::Init), ("", &world)].into_iter();
            let all = all.chain(calls.iter().map(|(name, action)| (*name, action))).chain([("", end)]);
            for (at, (name, action)) in (0..).zip(all) {
                let call = if name.is_empty() { CallSlot::NONE } else { writer.function(name).unwrap() };
                let (start, end) = (Nanos(100 * at), Nanos(100 * at + 10));
                writer.event(&Event { start, end, thread: 0, call, action: action.clone() }).unwrap();
            }
            for (name, _) in *calls {
                let made = calls.iter().filter(|(other, _)| other == name).count() as u64;
                let time = Nanos(10 * made);
                let of = vef_format::capture::Function { name: (*name).into(), calls: made, errors: 0, time };
                writer.calls(of).unwrap();
            }
            writer.finish().unwrap();
        }
        read(directory.path()).unwrap()
    }

    fn bytes(profile: &Profile, name: &str) -> u64 {
        profile.calls.iter().find(|call| call.name == name).map_or(0, |call| call.bytes)
    }

    #[test]
    fn receives_that_never_completed_received_nothing() {
        let send = Action::Send(Send {
            comm: WORLD,
            dest: CommRank(1),
            tag: 0,
            bytes: Bytes(8),
            datatype: DatatypeId(0),
            mode: SendMode::Standard,
            request: None,
        });
        let request = |number| RequestId { thread: 0, number };
        let post = |number| {
            Action::PostReceive(PostReceive {
                comm: WORLD,
                source: Some(CommRank(0)),
                tag: Some(0),
                bytes: Bytes(1000),
                datatype: DatatypeId(0),
                request: request(number),
            })
        };
        let done = [0, 1].map(|number| Completion { request: request(number), outcome: Outcome::Done });
        let receiver = [
            ("MPI_Irecv", post(0)),
            ("MPI_Irecv", post(1)),
            ("MPI_Irecv", post(2)),
            ("MPI_Waitall", Action::Complete(Completions::List(&done))),
        ];
        let sender = [("MPI_Send", send)];
        let stopped = || Action::Stopped { reason: "the calls to record were made, as asked" };
        // The sender may have sent the second one: that counts with its buffer.
        let partial = profile(&[(&sender, stopped()), (&receiver, stopped())]);
        assert_eq!((bytes(&partial, "MPI_Irecv"), partial.buffers), (8 + 1000, 1));
        let whole = profile(&[(&sender, Action::Finalize), (&receiver, stopped())]);
        assert_eq!((bytes(&whole, "MPI_Irecv"), whole.buffers), (8, 0));
        // The first may have come from in front of the phase.
        let of_phase =
            profile_in(Some("solve"), &[(&sender, Action::Finalize), (&receiver, Action::Finalize)]);
        assert_eq!((bytes(&of_phase, "MPI_Irecv"), of_phase.buffers), (2000, 2));
    }

    #[test]
    fn ranks_that_were_not_recorded_are_in_no_share_and_no_mean() {
        let calls = [("MPI_Barrier", Action::Other { bytes: Bytes(0), detail: Detail::None })];
        let profile = profile(&[
            (&calls, Action::Finalize),
            (&[], Action::Stopped { reason: UNRECORDED }),
            (&calls, Action::Finalize),
        ]);
        assert_eq!((profile.tasks, profile.unrecorded, profile.ranks.len()), (3, 1, 3));
        assert_eq!((profile.thread_ns, profile.ranks[1].wall_ns), (2 * 290, 0));
        let spent = profile.spent.as_ref().unwrap();
        let outside = spent.parts.iter().find(|part| part.part == "outside").unwrap();
        assert_eq!((outside.time_ps.0, outside.mean_ps.0), (2 * 280_000, 280_000));
        for only in [None, Some(Section::Ranks), Some(Section::Time)] {
            let text = text(&profile, only, &results::table::TextStyle::WHOLE);
            let line = "  1 of 3 ranks not recorded: means and shares are those of the others\n";
            assert_eq!(text.matches(line).count(), 1, "{text}");
        }
    }
}
