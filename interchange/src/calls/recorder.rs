//! Writes the calls of one rank as the file of a capture: numbers requests, merges failed polls.

use super::arguments::{BYTE, Collecting, Receiving, Sending, Span, Status, WORLD};
use super::functions::{Called, Functions};
use super::resolved::Comm;
use crate::error::Problem;
use crate::findings::Findings;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::path::Path;
use vef_format::capture::event::{
    Action, CallSlot, Collective, Communicator, Completion, Completions, Creation, Detail, Event, Members,
    Origin, Outcome, PostReceive, Remote, RequestId,
};
use vef_format::capture::{RankInfo, RankWriter};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::{Bytes, Nanos};

/// Failed polls with gaps below this (ns) are one event, as in our own recordings.
const POLL_GAP: u64 = 3_000;
/// Threads of a rank; each has a buffer.
const THREADS: usize = 1024;
/// A request that is pending.
#[derive(Clone, Copy, Debug)]
enum Open {
    /// A receive with a wildcard.
    Wildcard(RequestId),
    /// Another receive.
    Receive(RequestId),
    /// A send or a collective.
    Plain(RequestId),
    /// An operation without an event: to `MPI_PROC_NULL`, or one that a trace cannot represent.
    Nothing,
}

/// A request that is pending, and the call that made it.
#[derive(Clone, Copy, Debug)]
struct Pending {
    open: Open,
    call: u64,
}

impl Pending {
    /// The call that made it, unless it has no events.
    fn call(&self) -> Option<u64> {
        match self.open {
            Open::Wildcard(_) | Open::Receive(_) | Open::Plain(_) => Some(self.call),
            Open::Nothing => None,
        }
    }
}

/// What requests without a completion are called.
const NEVER_COMPLETED: &str = "requests that no call completes";

/// A call in words, by its number in the rank.
fn place(rank: Rank, call: u64) -> String {
    format!("rank {rank}, call {call}")
}

/// A run of failed polls.
#[derive(Clone, Copy, Debug)]
struct Polls {
    start: u64,
    end: u64,
    count: u64,
    call: CallSlot,
}

#[derive(Debug, Default)]
struct Thread {
    /// End of its last event.
    end: u64,
    /// Requests made.
    requests: u64,
    polls: Option<Polls>,
}

/// What a rank's calls were, beyond the events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Calls by function.
    pub(crate) calls: BTreeMap<String, u64>,
    /// Sends of point-to-point calls.
    pub(crate) messages: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// Calls without a counterpart in a trace, by function.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Completed receives with a wildcard whose message the trace does not tell.
    pub(crate) unresolved: u64,
    /// What is wrong in its calls.
    pub(crate) findings: Findings,
}

/// The file of one rank in a capture.
#[derive(Debug)]
pub(crate) struct Recorder {
    writer: RankWriter,
    rank: Rank,
    /// When the rank began, where that is known, if no call has yet begun it.
    starts: Option<u64>,
    /// Start of its first event.
    begin: Option<u64>,
    functions: Functions,
    /// Index of each thread, by its number in the trace.
    numbers: HashMap<u16, u16>,
    threads: Vec<Thread>,
    requests: HashMap<u64, Pending>,
    /// Pending requests that a call cancelled.
    cancelled: HashSet<u64>,
    completions: Vec<Completion>,
    communicators: u32,
    finalized: bool,
    counts: Counts,
}

impl Recorder {
    /// Creates the file of the rank that `info` describes in the directory `capture`.
    pub(crate) fn create(capture: &Path, info: &RankInfo) -> Result<Self, Problem> {
        Ok(Self {
            writer: RankWriter::create(capture, info)?,
            rank: info.rank,
            starts: None,
            begin: None,
            functions: Functions::default(),
            numbers: HashMap::new(),
            threads: Vec::new(),
            requests: HashMap::new(),
            cancelled: HashSet::new(),
            completions: Vec::new(),
            communicators: 0,
            finalized: false,
            counts: Counts::default(),
        })
    }

    /// The rank.
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// The recorder of a rank that began at this time, if it communicates without `MPI_Init`.
    pub(crate) fn started(self, start: u64) -> Self {
        Self { starts: Some(start), ..self }
    }

    /// Completes the file. `end`: when the rank ended, if all its calls are in the trace; so it did without `MPI_Finalize`, too.
    pub(crate) fn finish(mut self, end: Option<u64>) -> Result<Counts, Problem> {
        if let Some(end) = end.filter(|_| !self.finalized) {
            let thread = self.numbers.iter().find_map(|(&number, &at)| (at == 0).then_some(number));
            let end = self.threads.iter().map(|thread| thread.end).fold(end, u64::max);
            let span = Span { start: end, end, thread: thread.unwrap_or(0) };
            self.predefined(span)?;
            self.put(span, CallSlot::NONE, Action::Finalize)?;
        }
        for thread in 0..self.threads.len() {
            self.flush_polls(thread)?;
        }
        let mut open: Vec<u64> = self.requests.values().filter_map(Pending::call).collect();
        open.sort_unstable();
        for call in open {
            self.counts.findings.warning(NEVER_COMPLETED, || place(self.rank, call));
        }
        self.counts.calls = self.functions.finish(&mut self.writer)?;
        self.writer.finish()?;
        Ok(self.counts)
    }

    /// The function with this name.
    pub(crate) fn function(&mut self, name: &str) -> Result<Called, Problem> {
        self.functions.called(name, &mut self.writer)
    }

    /// The name of a function.
    pub(crate) fn name(&self, called: Called) -> &str {
        self.functions.name(called)
    }

    /// Counts a call. Each call is counted once, whether it has events or not.
    pub(crate) fn count(&mut self, span: Span, called: Called) {
        self.functions.count(span, called);
    }

    /// Calls counted so far.
    pub(crate) fn calls(&self) -> u64 {
        self.functions.calls
    }

    /// `MPI_Init`, and the communicators that it makes.
    pub(crate) fn init(&mut self, span: Span, called: Called) -> Result<(), Problem> {
        self.starts = None;
        self.put(span, self.functions.slot(called), Action::Init)?;
        self.predefined(Span { start: span.end, ..span }).map(drop)
    }

    /// Describes `MPI_COMM_WORLD` and `MPI_COMM_SELF`, once, and returns their numbers.
    pub(crate) fn predefined(&mut self, span: Span) -> Result<[CommId; 2], Problem> {
        if self.communicators == 0 {
            if let Some(start) = self.starts.take() {
                self.put(Span { start, end: start, ..span }, CallSlot::NONE, Action::Init)?;
            }
            self.communicators = 2;
            let itself = [self.rank];
            let predefined =
                [(0, Origin::World, Members::All), (1, Origin::SelfOnly, Members::List(&itself))];
            for (id, origin, members) in predefined {
                self.describe(span, CommId(id), origin, members, false)?;
            }
            let (id, size, contiguous, name) = (BYTE, Bytes(1), true, "MPI_BYTE");
            let datatype = vef_format::capture::event::Datatype { id, size, contiguous, name };
            self.definition(span, Action::Datatype(datatype))?;
        }
        Ok([WORLD, CommId(1)])
    }

    /// A communicator of this rank, which gets a new number.
    pub(crate) fn communicator(
        &mut self,
        span: Span,
        origin: Origin,
        comm: &Comm,
    ) -> Result<CommId, Problem> {
        let id = CommId(self.communicators.max(2));
        self.communicators = id.0 + 1;
        let itself = [self.rank];
        match comm {
            Comm::Of(group) => self.describe(span, id, origin, group.members(), false)?,
            Comm::Foreign(_) => self.describe(span, id, origin, Members::List(&itself), true)?,
        }
        Ok(id)
    }

    fn describe(
        &mut self,
        span: Span,
        id: CommId,
        origin: Origin,
        members: Members<'_>,
        foreign: bool,
    ) -> Result<(), Problem> {
        let remote = Remote::None;
        let communicator = Communicator { id, origin, split: None, members, remote, foreign };
        self.definition(span, Action::Communicator(communicator))
    }

    fn definition(&mut self, span: Span, action: Action<'_>) -> Result<(), Problem> {
        self.put(Span { end: span.start, ..span }, CallSlot::NONE, action)
    }

    /// `MPI_Finalize`. Nothing may follow it.
    pub(crate) fn finalize(&mut self, span: Span, called: Called) -> Result<(), Problem> {
        if !std::mem::replace(&mut self.finalized, true) {
            self.event(span, called, Action::Finalize)?;
        }
        Ok(())
    }

    /// A call that creates a communicator from `parent`.
    pub(crate) fn creation(&mut self, span: Span, called: Called, parent: CommId) -> Result<(), Problem> {
        self.event(span, called, Action::Creation(Creation { comm: parent, request: None }))
    }

    /// A communicator is freed.
    pub(crate) fn free(&mut self, span: Span, called: Called, comm: CommId) -> Result<(), Problem> {
        self.event(span, called, Action::CommunicatorFree(comm))
    }

    /// A send; with the trace's number of its request if it is not blocking.
    pub(crate) fn send(
        &mut self,
        span: Span,
        called: Called,
        sending: Sending,
        request: Option<u64>,
    ) -> Result<(), Problem> {
        self.counts.messages += 1;
        self.counts.bytes = self.counts.bytes.saturating_add(sending.bytes);
        let request = match request {
            Some(key) => Some(self.open(span.thread, key, Open::Plain)?),
            None => None,
        };
        self.event(span, called, Action::Send(sending.action(request)))
    }

    /// A receive is posted; `request` is the trace's number of its request.
    pub(crate) fn post(
        &mut self,
        span: Span,
        called: Called,
        receiving: Receiving,
        request: u64,
    ) -> Result<(), Problem> {
        let Receiving { comm, source, tag, bytes } = receiving;
        let wildcard = source.is_none() || tag.is_none();
        let kind = if wildcard { Open::Wildcard } else { Open::Receive };
        let request = self.open(span.thread, request, kind)?;
        let (source, bytes) = (source.map(CommRank), Bytes(bytes));
        let posted = PostReceive { comm, source, tag, bytes, datatype: BYTE, request };
        self.event(span, called, Action::PostReceive(posted))
    }

    /// A blocking receive, with the message that it got where the trace tells. Without that, a receive with a wildcard is one that
    /// is posted and completed in the same call.
    pub(crate) fn receive(
        &mut self,
        span: Span,
        called: Called,
        receiving: Receiving,
        got: Option<Status>,
    ) -> Result<(), Problem> {
        match receiving.action(got) {
            Some(receive) => self.event(span, called, Action::Receive(receive)),
            None => {
                const KEY: u64 = u64::MAX;
                self.post(Span { end: span.start, ..span }, called, receiving, KEY)?;
                self.complete(span, called, [(KEY, got)])
            }
        }
    }

    /// A call that sends and receives.
    pub(crate) fn exchange(
        &mut self,
        span: Span,
        called: Called,
        sending: Sending,
        receiving: Receiving,
        got: Option<Status>,
    ) -> Result<(), Problem> {
        let Some(receive) = receiving.action(got) else {
            self.send(Span { end: span.start, ..span }, called, sending, None)?;
            return self.receive(span, called, receiving, got);
        };
        self.counts.messages += 1;
        self.counts.bytes = self.counts.bytes.saturating_add(sending.bytes);
        self.event(span, called, Action::Exchange { send: sending.action(None), receive })
    }

    /// A call that completed the requests with these numbers of the trace, and the messages that they received.
    pub(crate) fn complete(
        &mut self,
        span: Span,
        called: Called,
        requests: impl IntoIterator<Item = (u64, Option<Status>)>,
    ) -> Result<(), Problem> {
        let mut list = std::mem::take(&mut self.completions);
        list.clear();
        for (key, status) in requests {
            // Other fields of the status are not defined for a send, and this one only for a request that was cancelled.
            let cancelled =
                self.cancelled.remove(&key) && status.is_none_or(|status: Status| status.cancelled);
            let (request, outcome) = match self.requests.remove(&key).map(|pending| pending.open) {
                Some(Open::Nothing) => continue,
                Some(Open::Plain(request) | Open::Receive(request) | Open::Wildcard(request))
                    if cancelled =>
                {
                    (request, Outcome::Cancelled)
                }
                Some(Open::Plain(request) | Open::Receive(request)) => (request, Outcome::Done),
                Some(Open::Wildcard(request)) => (request, self.wildcard(status)),
                None => {
                    self.found("completed requests that no call in the trace made");
                    continue;
                }
            };
            list.push(Completion { request, outcome });
        }
        let put = match list.is_empty() {
            true => Ok(()),
            false => self.event(span, called, Action::Complete(Completions::List(&list))),
        };
        self.completions = list;
        put
    }

    fn wildcard(&mut self, status: Option<Status>) -> Outcome {
        match status {
            // The receive was from `MPI_PROC_NULL`, whose number was that of a wildcard.
            Some(Status { source: ..0, bytes: None | Some(0), .. }) => Outcome::Cancelled,
            Some(Status { source: source @ 0.., tag, bytes, .. }) => {
                Outcome::Received { source: CommRank(source as u32), tag, bytes: bytes.map(Bytes) }
            }
            _ => {
                self.counts.unresolved += 1;
                Outcome::Done
            }
        }
    }

    /// A request without events.
    pub(crate) fn open_nothing(&mut self, request: u64) {
        self.requests.insert(request, Pending { open: Open::Nothing, call: self.functions.calls });
    }

    /// A request ends without any call that completes it (`MPI_Request_free`).
    pub(crate) fn forget(&mut self, span: Span, called: Called, request: u64) -> Result<(), Problem> {
        match self.requests.remove(&request).map(|pending| pending.open) {
            Some(Open::Plain(request) | Open::Receive(request) | Open::Wildcard(request)) => {
                self.event(span, called, Action::Forget(request))
            }
            Some(Open::Nothing) | None => Ok(()),
        }
    }

    /// `MPI_Cancel`: the status of the call that completes the request says whether it came in time; without one it did.
    pub(crate) fn cancel(&mut self, request: u64) {
        if self.is_pending(request) {
            self.cancelled.insert(request);
        }
    }

    /// The active requests, by their numbers in the trace.
    pub(crate) fn pending(&self) -> impl ExactSizeIterator<Item = u64> {
        self.requests.keys().copied()
    }

    /// Whether an active request has this number of the trace.
    pub(crate) fn is_pending(&self, request: u64) -> bool {
        self.requests.contains_key(&request)
    }

    /// A probe found a message.
    pub(crate) fn probe(
        &mut self,
        span: Span,
        called: Called,
        comm: CommId,
        source: u32,
        tag: i32,
    ) -> Result<(), Problem> {
        self.event(span, called, Action::Probe { comm, source: CommRank(source), tag })
    }

    /// A poll failed.
    pub(crate) fn poll(&mut self, span: Span, called: Called) -> Result<(), Problem> {
        self.predefined(Span { end: span.start, ..span })?;
        let thread = self.thread(span.thread)?;
        let call = self.functions.slot(called);
        match &mut self.threads[usize::from(thread)].polls {
            Some(run) if span.start >= run.end && span.start - run.end < POLL_GAP => {
                run.end = span.end.max(run.end);
                run.count += 1;
                return Ok(());
            }
            _ => {}
        }
        self.flush_polls(usize::from(thread))?;
        let run = Polls { start: span.start, end: span.end, count: 1, call };
        self.threads[usize::from(thread)].polls = Some(run);
        Ok(())
    }

    /// A collective; with the trace's number of its request if it is not blocking.
    pub(crate) fn collective(
        &mut self,
        span: Span,
        called: Called,
        collecting: &Collecting<'_>,
        request: Option<u64>,
    ) -> Result<(), Problem> {
        let &Collecting { operation, comm, root, amounts, send_counts, recv_counts } = collecting;
        let request = match request {
            Some(key) => Some(self.open(span.thread, key, Open::Plain)?),
            None => None,
        };
        let action = Action::Collective(Collective {
            operation,
            comm,
            root: root.map(CommRank),
            amounts,
            count: amounts.send.0.max(amounts.recv.0),
            datatype: BYTE,
            recv_datatype: None,
            request,
            send_counts,
            recv_counts,
        });
        self.event(span, called, action)
    }

    /// A call that a trace cannot represent.
    pub(crate) fn other(&mut self, span: Span, called: Called, bytes: u64) -> Result<(), Problem> {
        self.skip(called);
        self.event(span, called, Action::Other { bytes: Bytes(bytes), detail: Detail::None })
    }

    /// Notes something wrong in the current call.
    pub(crate) fn found(&mut self, what: &str) {
        self.counts.findings.warning(what, || place(self.rank, self.functions.calls));
    }

    /// Counts a call that is left out.
    pub(crate) fn skip(&mut self, called: Called) {
        let name = self.functions.name(called);
        match self.counts.skipped.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.counts.skipped.insert(name.to_owned(), 1)),
        }
    }

    /// A new request.
    fn open(
        &mut self,
        thread: u16,
        key: u64,
        kind: impl FnOnce(RequestId) -> Open,
    ) -> Result<RequestId, Problem> {
        let thread = self.thread(thread)?;
        let request = RequestId { thread, number: self.threads[usize::from(thread)].requests };
        let pending = Pending { open: kind(request), call: self.functions.calls };
        if let Some(call) = self.requests.insert(key, pending).and_then(|lost| lost.call()) {
            self.counts.findings.warning(NEVER_COMPLETED, || place(self.rank, call));
        }
        Ok(request)
    }

    fn thread(&mut self, number: u16) -> Result<u16, Problem> {
        if let Some(&thread) = self.numbers.get(&number) {
            return Ok(thread);
        }
        if self.threads.len() == THREADS {
            return Err(Problem::TooLarge(format!("the number of threads of rank {}", self.rank)));
        }
        let thread = self.threads.len() as u16;
        self.numbers.insert(number, thread);
        self.threads.push(Thread::default());
        Ok(thread)
    }

    fn event(&mut self, span: Span, called: Called, action: Action<'_>) -> Result<(), Problem> {
        self.predefined(Span { end: span.start, ..span })?;
        self.put(span, self.functions.slot(called), action)
    }

    fn put(&mut self, span: Span, call: CallSlot, action: Action<'_>) -> Result<(), Problem> {
        let thread = self.thread(span.thread)?;
        self.flush_polls(usize::from(thread))?;
        self.write(thread, (span.start, span.end), call, action)
    }

    fn flush_polls(&mut self, thread: usize) -> Result<(), Problem> {
        match self.threads[thread].polls.take() {
            Some(Polls { start, end, count, call }) => {
                self.write(thread as u16, (start, end), call, Action::Polls { count })
            }
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        thread: u16,
        (start, end): (u64, u64),
        call: CallSlot,
        action: Action<'_>,
    ) -> Result<(), Problem> {
        let state = &mut self.threads[usize::from(thread)];
        if start < state.end || end < start {
            return Err(Problem::Invalid(format!(
                "the clock of rank {} goes back: a call from {start} to {end} ns follows one that ended at {} ns",
                self.rank, state.end
            )));
        }
        state.end = end;
        // A trace has times in picoseconds.
        const LONGEST: u64 = u64::MAX / 1000;
        let run = end.saturating_sub(*self.begin.get_or_insert(start));
        if run > LONGEST {
            return Err(Problem::TooLarge(format!("the run of rank {}, {run} ns,", self.rank)));
        }
        let makes = match &action {
            Action::PostReceive(_) => true,
            Action::Send(send) => send.request.is_some(),
            Action::Collective(collective) => collective.request.is_some(),
            _ => false,
        };
        state.requests += u64::from(makes);
        Ok(self.writer.event(&Event { start: Nanos(start), end: Nanos(end), thread, call, action })?)
    }
}
