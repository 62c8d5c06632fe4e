//! `x.veft`: the calls of a task, forty bytes each.

use super::communicators::Communicators;
use super::{LegacyError, Main, Problem};
use crate::capture::event::{
    Action, CallSlot, Collective, Completion, Completions, DatatypeId, Event, Outcome, PostReceive, Receive,
    RequestId, Send, SendMode,
};
use crate::capture::layout::{u32_at, u64_at};
use crate::error::Place;
use crate::ids::{CommRank, Rank};
use crate::operation::{Amounts, OpCode, OpCodes, Operation};
use crate::units::{Bytes, Nanos};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// Bytes of a record.
const RECORD: usize = 40;
/// Bytes read at a time.
const BLOCK: usize = 4096 * RECORD;

/// A record of the file.
#[derive(Clone, Copy, Debug)]
struct Raw {
    /// Nanoseconds, monotonic.
    start: u64,
    /// Nanoseconds, monotonic.
    end: u64,
    /// World rank of the destination or source (−1 in a posted receive: any source); root, assumed to be a communicator rank.
    peer: i32,
    /// Bytes sent or received, or size of the buffer.
    bytes: i32,
    /// Tag of a point-to-point call (meaningless in waits), communicator of a collective one.
    tag: i32,
    /// Links a non-blocking call to its wait; 0: no wait; undefined for blocking calls.
    request: u32,
    event: u16,
}

impl Raw {
    /// Parses a record. Every bit pattern is valid; the six bytes behind the fields are undefined.
    fn parse(record: &[u8]) -> Self {
        let i32_at = |at| u32_at(record, at) as i32;
        Self {
            start: u64_at(record, 0),
            end: u64_at(record, 8),
            peer: i32_at(16),
            bytes: i32_at(20),
            tag: i32_at(24),
            request: u32_at(record, 28),
            event: u32_at(record, 32) as u16,
        }
    }
}

/// The event types of point-to-point and other calls that occur in real captures. Collectives have the codes of the trace
/// ([`OpCodes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum EventType {
    /// `MPI_Send`.
    Send = 100,
    /// `MPI_Recv`.
    Receive = 109,
    /// `MPI_Irecv`.
    PostReceive = 111,
    /// The wait for an `MPI_Irecv`.
    WaitReceive = 151,
    /// `MPI_Init`.
    Init = 200,
    /// `MPI_Finalize`.
    Finalize = 202,
}

impl EventType {
    fn of(code: u16) -> Option<Self> {
        use EventType::*;
        let all = [Send, Receive, PostReceive, WaitReceive, Init, Finalize];
        all.into_iter().find(|&known| known as u16 == code)
    }
}

/// How to treat unknown event types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnknownEvents {
    /// Return an error.
    #[default]
    Refuse,
    /// Skip and count them.
    Skip,
}

/// Options for the older layout.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How to treat unknown event types.
    pub unknown: UnknownEvents,
    /// Codes of collectives; by default only the verified ones (Bcast, Allreduce, Barrier).
    pub op_codes: Option<OpCodes>,
}

/// The events of one task: communicators first, then calls.
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    input: File,
    block: Vec<u8>,
    at: usize,
    filled: usize,
    /// Number of records read.
    records: u64,
    tasks: u32,
    /// Start of `MPI_Init`, the time of communicator events.
    init: Nanos,
    communicators: Communicators,
    communicators_given: usize,
    unknown: UnknownEvents,
    op_codes: OpCodes,
    /// Pending requests by number in the file, and the tags of their receives.
    requests: HashMap<u32, (RequestId, Option<i32>)>,
    requests_started: u64,
    completion: [Completion; 1],
    finished: bool,
    skipped: BTreeMap<u16, u64>,
}

impl Events {
    /// Opens `<rank>.veft` and `<rank>.comm` of the capture `main`; `rank` must be one of its tasks.
    pub fn open(main: &Main, rank: Rank, options: &Options) -> Result<Self, LegacyError> {
        let tasks = main.tasks.len() as u32;
        let Some(task) = main.tasks.get(rank.index()) else {
            let problem = Problem::Task { task: rank.0.into(), tasks, wrong: "is out of range" };
            return Err(LegacyError { place: Place::file(&main.path), problem });
        };
        let communicators = Communicators::open(&main.beside(rank, "comm"), rank, tasks)?;
        let path = main.beside(rank, "veft");
        let input = File::open(&path)
            .map_err(|error| LegacyError { place: Place::file(&path), problem: Problem::Io(error) })?;
        let request = RequestId { thread: 0, number: 0 };
        Ok(Self {
            path,
            input,
            block: vec![0; BLOCK],
            at: 0,
            filled: 0,
            records: 0,
            tasks,
            init: task.init,
            communicators,
            communicators_given: 0,
            unknown: options.unknown,
            op_codes: options.op_codes.clone().unwrap_or_else(OpCodes::verified),
            requests: HashMap::new(),
            requests_started: 0,
            completion: [Completion { request, outcome: Outcome::Done }],
            finished: false,
            skipped: BTreeMap::new(),
        })
    }

    /// The next event, or `None` after the last complete record.
    #[expect(clippy::should_implement_trait, reason = "the event borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, LegacyError> {
        if self.communicators_given < self.communicators.len() {
            self.communicators_given += 1;
            let communicator = self.communicators.get(self.communicators_given - 1);
            let (start, end) = (self.init, self.init);
            return Ok(communicator.map(|communicator| Event {
                start,
                end,
                thread: 0,
                call: CallSlot::NONE,
                action: Action::Communicator(communicator),
            }));
        }
        while let Some(raw) = self.next_raw()? {
            match self.action(&raw) {
                Ok(action) => {
                    // The completion is stored in the reader, other actions borrow nothing.
                    let action = match action {
                        Meaning::Itself(action) => action,
                        Meaning::Completion(completion) => {
                            self.completion = [completion];
                            Action::Complete(Completions::List(&self.completion))
                        }
                    };
                    return Ok(Some(Event {
                        start: Nanos(raw.start),
                        end: Nanos(raw.end),
                        thread: 0,
                        call: CallSlot::NONE,
                        action,
                    }));
                }
                Err(Problem::UnknownEvent(event)) if self.unknown == UnknownEvents::Skip => {
                    *self.skipped.entry(event).or_default() += 1;
                }
                Err(problem) => return Err(self.error(problem)),
            }
        }
        Ok(None)
    }

    /// Whether the last record was `MPI_Finalize`; otherwise the task was killed, or the file is truncated.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Bytes of an incomplete record at the end; valid after [`Events::next`] has returned `None`.
    pub fn lost_bytes(&self) -> u64 {
        (self.filled - self.at) as u64
    }

    /// Number of complete records read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The event types that were skipped, and how often.
    pub fn skipped(&self) -> &BTreeMap<u16, u64> {
        &self.skipped
    }

    fn next_raw(&mut self) -> Result<Option<Raw>, LegacyError> {
        if self.filled - self.at < RECORD && !self.refill()? {
            return Ok(None);
        }
        let raw = Raw::parse(&self.block[self.at..self.at + RECORD]);
        self.at += RECORD;
        self.records += 1;
        Ok(Some(raw))
    }

    /// Fills the block with at least one record; `false` at the end of the file.
    #[cold]
    fn refill(&mut self) -> Result<bool, LegacyError> {
        self.block.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        while self.filled < RECORD {
            match self.input.read(&mut self.block[self.filled..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = Place::offset(&self.path, self.records * RECORD as u64);
                    return Err(LegacyError { place, problem: Problem::Io(error) });
                }
            }
        }
        Ok(true)
    }

    /// An error in the record that was read last.
    #[cold]
    fn error(&self, problem: Problem) -> LegacyError {
        let number = self.records - 1;
        LegacyError { place: Place::record(&self.path, number, number * RECORD as u64), problem }
    }

    fn action(&mut self, raw: &Raw) -> Result<Meaning, Problem> {
        if raw.end < raw.start {
            return Err(Problem::Backwards { start: raw.start, end: raw.end });
        }
        let event = match EventType::of(raw.event) {
            Some(event) => event,
            None => return self.collective(raw).map(Meaning::Itself),
        };
        let comm = self.communicators.world();
        let datatype = DatatypeId::default();
        self.finished = event == EventType::Finalize;
        Ok(Meaning::Itself(match event {
            EventType::Init => Action::Init,
            EventType::Finalize => Action::Finalize,
            EventType::Send => Action::Send(Send {
                comm,
                dest: self.peer(raw, "the destination")?,
                tag: raw.tag,
                bytes: bytes(raw)?,
                datatype,
                mode: SendMode::Standard,
                request: None,
            }),
            EventType::Receive => Action::Receive(Receive {
                comm,
                source: self.peer(raw, "the source")?,
                tag: raw.tag,
                any_source: false,
                any_tag: false,
                bytes: bytes(raw)?,
                datatype,
            }),
            EventType::PostReceive => {
                let source = match raw.peer {
                    -1 => None,
                    _ => Some(self.peer(raw, "the source")?),
                };
                let bytes = bytes(raw)?;
                let tag = (raw.tag >= 0).then_some(raw.tag);
                Action::PostReceive(PostReceive {
                    comm,
                    source,
                    tag,
                    bytes,
                    datatype,
                    request: self.start(raw, tag)?,
                })
            }
            EventType::WaitReceive => {
                let source = self.peer(raw, "the source")?;
                let bytes = Some(bytes(raw)?);
                let (request, posted_tag) =
                    self.requests.remove(&raw.request).ok_or(Problem::UnknownRequest(raw.request))?;
                // Real waits have tag 1 here for a receive and a message with tag 0, so the tag is used only for a receive from any tag.
                let tag = posted_tag.unwrap_or(raw.tag);
                let outcome = Outcome::Received { source, tag, bytes };
                return Ok(Meaning::Completion(Completion { request, outcome }));
            }
        }))
    }

    fn collective(&mut self, raw: &Raw) -> Result<Action<'static>, Problem> {
        let code = OpCode(raw.event);
        let operation = self.op_codes.operation(code).ok_or(Problem::UnknownEvent(raw.event))?;
        self.finished = false;
        let comm = self.communicators.find(raw.tag).ok_or(Problem::UnknownCommunicator(raw.tag))?;
        let root = match operation.is_rooted() {
            true => Some(rank_below(comm.size, raw.peer, "the root")?),
            false => None,
        };
        Ok(Action::Collective(Collective {
            operation,
            comm: comm.id,
            root,
            amounts: amounts(operation, bytes(raw)?.0, root == Some(comm.me), comm.size.into()),
            count: 0,
            datatype: DatatypeId::default(),
            recv_datatype: None,
            request: None,
            send_counts: &[],
            recv_counts: &[],
        }))
    }

    /// A new request with the number of `raw`, for a receive with this tag.
    fn start(&mut self, raw: &Raw, tag: Option<i32>) -> Result<RequestId, Problem> {
        let request = RequestId { thread: 0, number: self.requests_started };
        self.requests_started += 1;
        if raw.request != 0 && self.requests.insert(raw.request, (request, tag)).is_some() {
            return Err(Problem::BusyRequest(raw.request));
        }
        Ok(request)
    }

    fn peer(&self, raw: &Raw, field: &'static str) -> Result<CommRank, Problem> {
        rank_below(self.tasks, raw.peer, field)
    }
}

fn rank_below(count: u32, found: i32, field: &'static str) -> Result<CommRank, Problem> {
    u32::try_from(found).ok().filter(|&rank| rank < count).map(CommRank).ok_or_else(|| Problem::Value {
        field,
        found: found.into(),
        expected: format!("a rank from 0 to {}", count - 1),
    })
}

/// The meaning of a record.
enum Meaning {
    Itself(Action<'static>),
    Completion(Completion),
}

fn bytes(raw: &Raw) -> Result<Bytes, Problem> {
    u64::try_from(raw.bytes).map(Bytes).map_err(|_| Problem::Value {
        field: "the number of bytes",
        found: raw.bytes.into(),
        expected: "0 or more".to_owned(),
    })
}

/// The amounts of a collective whose record has `block` bytes: verified for Bcast, Allreduce and Barrier; for the others
/// `block` is assumed to be the task's own block, which no available capture confirms.
fn amounts(operation: Operation, block: u64, is_root: bool, members: u64) -> Amounts {
    let others = block * (members - 1);
    let (send, recv) = match (operation, is_root) {
        (Operation::Barrier, _) => (0, 0),
        (Operation::Bcast, true) => (block, 0),
        (Operation::Bcast, false) => (0, block),
        (Operation::Reduce, true) => (0, block),
        (Operation::Reduce, false) => (block, 0),
        (Operation::Gather | Operation::Gatherv, true) => (0, others),
        (Operation::Gather | Operation::Gatherv, false) => (block, 0),
        (Operation::Scatter | Operation::Scatterv, true) => (others, 0),
        (Operation::Scatter | Operation::Scatterv, false) => (0, block),
        (Operation::Allgather | Operation::Allgatherv, _) => (block, block * members),
        (Operation::ReduceScatter | Operation::ReduceScatterBlock, _) => (block * members, block),
        (Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw, _) => {
            (block * members, block * members)
        }
        (Operation::Allreduce | Operation::Scan | Operation::Exscan, _) => (block, block),
    };
    Amounts { send: Bytes(send), recv: Bytes(recv) }
}
