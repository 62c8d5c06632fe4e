//! Profile of a capture: calls of each MPI function with their time and bytes, and messages by pair of ranks; sums over all ranks.
//!
//! Bytes of messages are those sent and those received; of collectives, those of the buffer that a rank gives (of a vector form: of all
//! blocks). Peers are those that a rank sends to. What a persistent request moves counts where it is started. Shares of MPI are of the time
//! between the end of `MPI_Init` and the start of `MPI_Finalize`, of all threads that make calls.

use crate::flow::{Channels, Place};
use crate::wildcards::Matched;
use hashbrown::HashMap;
use mpi_abi::prototypes::{Call, Category};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use vef_format::capture::event::{Action, Collective, DatatypeId, Event, Send};
use vef_format::capture::{Capture, CaptureError, Group};
use vef_format::ids::{CommId, CommRank, Rank as Task};
use vef_format::operation::Operation;
use vef_format::units::{Bytes, Grouped};

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Number of ranks.
    pub tasks: u32,
    /// Time in MPI of all ranks together, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time from the end of `MPI_Init` to the start of `MPI_Finalize` of all ranks together, ns.
    pub wall_ns: u64,
    /// The same of all threads that make calls, of which `mpi_ns` is a share, ns.
    pub thread_ns: u64,
    /// By function, the one that took longest first.
    pub calls: Vec<Function>,
    /// By rank, in order.
    pub ranks: Vec<Rank>,
    /// Messages by sender and receiver, the pair with most bytes first.
    pub pairs: Vec<Pair>,
}

/// A function in all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its C name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// Time of all calls, ns.
    pub ns: u64,
    /// Time of the rank that it took longest, ns.
    pub longest_rank_ns: u64,
    /// Bytes sent and received in messages, and of the buffers given to collectives and other calls.
    pub bytes: u64,
    /// How many returned an error.
    pub errors: u64,
    /// Whether a VEF trace has records for it.
    pub representable: bool,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// Its calls of MPI.
    pub calls: u64,
    /// Time in them, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time from the end of `MPI_Init` to the start of `MPI_Finalize`, ns.
    pub wall_ns: u64,
    /// Number of threads that make calls.
    pub threads: u32,
    /// Messages that it sent.
    pub messages: u64,
    /// Bytes that it sent in them.
    pub bytes: u64,
}

/// Messages from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// The sender's rank in `MPI_COMM_WORLD`.
    pub from: u32,
    /// The receiver's.
    pub to: u32,
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Profile {
    /// Makes the profile of the capture in `directory`, or in its sub-directory `profile`.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn read(directory: &Path) -> Result<Self, CaptureError> {
        let capture = match Capture::open(directory) {
            Err(CaptureError::NoCapture(_)) if directory.join("profile").is_dir() => {
                Capture::open(&directory.join("profile"))?
            }
            opened => opened?,
        };
        let mut profile = Self { tasks: capture.tasks(), ..Self::default() };
        let mut sizes = Sizes::default();
        for rank in (0..capture.tasks()).map(Task) {
            sizes.read(&capture, rank)?;
        }
        let mut calls = BTreeMap::new();
        for rank in (0..capture.tasks()).map(Task) {
            profile.add(&capture, rank, &sizes, &mut calls)?;
        }
        profile.calls = calls.into_values().collect();
        profile.calls.sort_by_key(|call| std::cmp::Reverse(call.ns));
        profile.pairs.sort_by_key(|pair| std::cmp::Reverse((pair.bytes, pair.messages)));
        Ok(profile)
    }

    fn add(
        &mut self,
        capture: &Capture,
        rank: Task,
        sizes: &Sizes,
        calls: &mut BTreeMap<String, Function>,
    ) -> Result<(), CaptureError> {
        let matched = Matched::of_rank(capture, rank)?;
        let mut events = capture.events(rank)?;
        let mut moved = Moved {
            rank,
            tasks: capture.tasks(),
            bytes: vec![0; events.functions().len()],
            sent: BTreeMap::new(),
            comms: HashMap::default(),
            datatypes: HashMap::default(),
            sizes,
            matched,
            channels: Channels::new(rank, capture.tasks()),
        };
        let (mut initialised, mut finalised, mut threads) = (None, None, 1);
        events.each(|event| {
            match event.action {
                Action::Init => initialised = Some(event.end),
                Action::Finalize => finalised = Some(event.start),
                _ => {}
            }
            threads = threads.max(u32::from(event.thread) + 1);
            moved.event(event);
            Ok::<_, CaptureError>(())
        })?;
        // That of a rank without MPI_Finalize is known now: it ends with its last event.
        let (begin, end) = events.span();
        let wall_ns = finalised.unwrap_or(end).0.saturating_sub(initialised.unwrap_or(begin).0);
        let (mut made, mut mpi_ns) = (0u64, 0u64);
        for (function, &bytes) in events.functions().iter().zip(&moved.bytes) {
            let call = Call::from_name(&function.name);
            let ns = function.time.0;
            made += function.calls;
            // What MPI_Init and MPI_Finalize take is not the program's communication.
            let at_work = call.is_none_or(|call| call.category() != Category::Lifecycle);
            mpi_ns = mpi_ns.saturating_add(if at_work { ns } else { 0 });
            let entry = calls.entry(function.name.clone()).or_insert_with(|| Function {
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
        self.ranks.push(Rank { calls: made, mpi_ns, wall_ns, threads, messages, bytes });
        self.mpi_ns = self.mpi_ns.saturating_add(mpi_ns);
        self.wall_ns = self.wall_ns.saturating_add(wall_ns);
        self.thread_ns = self.thread_ns.saturating_add(wall_ns.saturating_mul(threads.into()));
        let pair =
            |(to, (messages, bytes)): (Task, (u64, u64))| Pair { from: rank.0, to: to.0, messages, bytes };
        self.pairs.extend(moved.sent.into_iter().map(pair));
        Ok(())
    }
}

/// Whether a VEF trace has no record for calls of this kind.
fn is_beyond_a_trace(category: Category) -> bool {
    use Category::*;
    matches!(
        category,
        NeighborCollective
            | Partitioned
            | Rma
            | RmaSync
            | WinCreate
            | WinFree
            | FileOpen
            | FileClose
            | FileSync
            | Io
            | Process
    )
}

/// Messages and bytes of one rank.
struct Moved<'a> {
    rank: Task,
    tasks: u32,
    /// By slot of the call table.
    bytes: Vec<u64>,
    /// Messages and bytes by receiver.
    sent: BTreeMap<Task, (u64, u64)>,
    comms: HashMap<u32, Group>,
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
}

impl Sizes {
    /// Adds the messages that a rank sends.
    fn read(&mut self, capture: &Capture, rank: Task) -> Result<(), CaptureError> {
        let mut channels = Channels::new(rank, capture.tasks());
        capture.events(rank)?.each(|event| {
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
        })
    }

    /// The bytes of a message; none, if it was not sent. `None`: the sender was not recorded.
    fn of(&self, place: Place) -> Option<Bytes> {
        let runs = self.runs.get(&place.channel)?;
        let at = runs.partition_point(|&(_, last)| last < place.number);
        Some(runs.get(at).map_or(Bytes::ZERO, |&(size, _)| size))
    }
}

impl Moved<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let bytes = match &event.action {
            Action::Communicator(described) => {
                let members = Group::new(described.members, self.tasks).unwrap_or_default();
                self.comms.insert(described.id.0, members);
                self.channels.add(described);
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
            Action::PostReceive(post) => self.received(post.comm, self.matched.of(post), post.bytes),
            Action::Collective(part) => self.given(part),
            Action::Other { bytes, .. } => *bytes,
            _ => return,
        };
        if let Some(sum) = event.call.index().and_then(|slot| self.bytes.get_mut(slot)) {
            *sum = sum.saturating_add(bytes.0);
        }
    }

    /// The bytes of the message that a receive took; of the buffer, if the sender was not recorded.
    fn received(&mut self, comm: CommId, from: Option<(CommRank, i32)>, buffer: Bytes) -> Bytes {
        let Some((source, tag)) = from else { return Bytes::ZERO };
        let place = self.channels.receive(comm, source, tag);
        place.and_then(|place| self.sizes.of(place)).unwrap_or(buffer)
    }

    fn send(&mut self, send: &Send) -> Bytes {
        let to = self.comms.get(&send.comm.0).and_then(|comm| comm.get(send.dest));
        if let Some(to) = to {
            let sent = self.sent.entry(to).or_default();
            *sent = (sent.0 + 1, sent.1.saturating_add(send.bytes.0));
        }
        send.bytes
    }

    /// Adds this rank's part of a collective.
    fn given(&self, part: &Collective<'_>) -> Bytes {
        let sum = |counts: &[u64]| Bytes(counts.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes)));
        let size = |datatype: DatatypeId| self.datatypes.get(&datatype.0).copied().unwrap_or(0);
        let block = Bytes(part.count.saturating_mul(size(part.datatype)));
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

/// Pairs and ranks in the text form, at most.
const SHOWN: usize = 16;

impl fmt::Display for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        let share = |part: u64, whole: u64| format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64);
        writeln!(
            out,
            "{} ranks, {} ms of all threads from MPI_Init to MPI_Finalize, {} ms of them ({} %) in MPI\n",
            self.tasks,
            ms(self.thread_ns),
            ms(self.mpi_ns),
            share(self.mpi_ns, self.thread_ns)
        )?;
        writeln!(
            out,
            "{:<28}{:>12}{:>14}{:>14}{:>18}{:>8}",
            "function", "calls", "ms", "longest rank", "bytes", "errors"
        )?;
        let mut beyond = Vec::new();
        for call in &self.calls {
            let mut name = call.name.clone();
            let [calls, bytes, errors] = [call.calls, call.bytes, call.errors].map(Grouped);
            if !call.representable {
                beyond.push(format!("{calls} × {name}"));
                name += " *";
            }
            let [time, longest] = [call.ns, call.longest_rank_ns].map(ms);
            writeln!(out, "{name:<28}{calls:>12}{time:>14}{longest:>14}{bytes:>18}{errors:>8}")?;
        }
        match beyond.is_empty() {
            true => writeln!(out, "\nAll of it can be represented in a VEF trace.\n")?,
            false => writeln!(out, "\n* A VEF trace cannot represent: {}.\n", beyond.join(", "))?,
        }
        writeln!(
            out,
            "{:>8}{:>12}{:>14}{:>10}{:>12}{:>18}",
            "rank", "calls", "MPI ms", "%", "messages", "bytes sent"
        )?;
        for (number, rank) in self.ranks.iter().enumerate().take(SHOWN) {
            let [calls, messages, bytes] = [rank.calls, rank.messages, rank.bytes].map(Grouped);
            let threads = rank.wall_ns.saturating_mul(rank.threads.into());
            let (time, share) = (ms(rank.mpi_ns), share(rank.mpi_ns, threads));
            writeln!(out, "{number:>8}{calls:>12}{time:>14}{share:>10}{messages:>12}{bytes:>18}")?;
        }
        more(out, self.ranks.len())?;
        writeln!(out)?;
        writeln!(out, "{:>8}{:>8}{:>12}{:>18}", "from", "to", "messages", "bytes")?;
        for &Pair { from, to, messages, bytes } in self.pairs.iter().take(SHOWN) {
            writeln!(out, "{from:>8}{to:>8}{:>12}{:>18}", Grouped(messages), Grouped(bytes))?;
        }
        more(out, self.pairs.len())
    }
}

fn more(out: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    match all.checked_sub(SHOWN) {
        Some(rest @ 1..) => writeln!(out, "     … and {rest} more (--json has all)"),
        _ => Ok(()),
    }
}
