//! What a thread's lane records: calls by words and by contents, polls, the times around calls, and phases.

use super::{State, ThreadLane, Tracer};
use crate::clock;
use crate::preempted::LONG_CALL;
use crate::requests::PendingRequest;
use mpi_abi::prototypes::Call;
use std::sync::atomic::Ordering;
use vef_format::account::TimePart;
use vef_format::capture::encode::Content;
use vef_format::capture::event::{Action, CallSlot, Completion, Completions, Outcome, RequestId};
use vef_format::capture::word::Head;

impl ThreadLane {
    /// Keeps the handles of the run, because a nested call may change the list that it refers to.
    pub(crate) fn park_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.parked = Some(self.tracer.known(|known| known.requests.handles_of(run).to_vec()));
        }
    }

    /// Registers a request that a call has made, under its handle; `None`: the call has completed it. If the request has no
    /// record, its handle is marked, too. If another thread gets the same handle before the completion is recorded, the
    /// handle has both requests.
    #[inline(always)]
    pub(crate) fn insert_request(
        &mut self,
        made: PendingRequest,
        handle: Option<usize>,
        call: Call,
        times: (u64, u64),
    ) {
        match handle {
            Some(handle) => self.tracer.known_fast(|known| known.requests.insert(handle, made)),
            None if made.has(PendingRequest::UNRECORDED) => {}
            None => self.put_done(made, call, times),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_done(&mut self, made: PendingRequest, call: Call, times: (u64, u64)) {
        let done = Completion { request: made.request(), outcome: Outcome::Done };
        self.put_completed(times, &[done], None, call);
    }

    /// Records what a word with this head says.
    #[inline(always)]
    pub(crate) fn put_word(&mut self, times: (u64, u64), head: Head, call: Call) {
        if !self.writer.put_word(times, head) {
            self.put(times, Content::Word(head), call);
        }
    }

    /// Records the completion of `count` consecutive requests of the thread, which made `after` more before this call.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_run(&mut self, times: (u64, u64), count: u64, after: u64, call: Call) {
        let next = self.writer.next_request().request();
        let first = RequestId { number: next.number - count - after, ..next };
        self.put(times, Content::Completions(Completions::Run { first, count }), call);
    }

    /// Records completions of the thread. `completer`: the function's code in records of one word, if it has one.
    pub(crate) fn put_completed(
        &mut self,
        times: (u64, u64),
        list: &[Completion],
        completer: Option<u8>,
        call: Call,
    ) {
        let next = self.writer.next_request().request();
        match Content::completed(Completions::List(list), completer, next) {
            Content::Word(head) => self.put_word(times, head, call),
            content => self.put(times, content, call),
        }
    }

    #[inline(never)]
    fn put(&mut self, times: (u64, u64), content: Content<'_>, call: Call) {
        self.writer.put(times, content, self.tracer.slot(call));
        self.check();
    }

    /// This call begins now. Returns the tick.
    #[inline(always)]
    pub(crate) fn begin_call(&mut self, call: Call) -> u64 {
        let start = clock::now();
        if self.writer.is_long_gap(start) { self.end_gap(start, call) } else { start }
    }

    #[cold]
    #[inline(never)]
    fn end_gap(&mut self, start: u64, call: Call) -> u64 {
        match self.tracer.state() {
            State::Recording => self.writer.end_gap(start, || call.time_part() == TimePart::Polling),
            _ => start,
        }
    }

    /// This call, which began at `start`, ends now. Returns the tick; what the recorder looks up belongs to the call.
    #[inline(always)]
    pub(crate) fn end_call(&mut self, call: Call, start: u64) -> u64 {
        let end = clock::now();
        if end.wrapping_sub(start) < LONG_CALL { end } else { self.end_long_call(call, (start, end)) }
    }

    #[cold]
    #[inline(never)]
    fn end_long_call(&mut self, call: Call, times: (u64, u64)) -> u64 {
        match call.time_part() {
            TimePart::Own => self.writer.end_own_call(times),
            _ => self.writer.look(),
        }
    }

    /// Records a poll that found nothing.
    #[inline(always)]
    pub(crate) fn poll(&mut self, call: Call, times: (u64, u64)) {
        let tracer = self.tracer;
        if tracer.state() == State::Recording {
            self.writer.poll(times, || tracer.slot(call));
            self.check();
        }
    }

    /// Stops the recording if a write has failed, or as it was asked to. Records of one word do without: their windows are soon full.
    #[inline(always)]
    pub(crate) fn check(&mut self) {
        if let Some(reason) = self.writer.failed.take() {
            self.tracer.stop(self, &reason);
        }
        if let Some(after) = self.tracer.stop_after
            && let Some(reason) = self.tracer.asked_to_stop(after)
        {
            self.tracer.stop_quietly(self, reason);
        }
    }
}

impl Tracer {
    /// Records the begin or end of a phase.
    pub(crate) fn mark_phase(&'static self, begin: bool, name: &str) {
        let Some(mut lane) = self.lane() else { return };
        let only = self.phase.as_ref().filter(|(only, _)| only == name);
        let lane = lane.get();
        if begin && only.is_some_and(|(_, depth)| depth.fetch_add(1, Ordering::AcqRel) == 0) {
            self.change_state(State::Paused, State::Recording);
            _ = lane.writer.look();
        }
        if self.state() == State::Recording {
            let now = lane.begin_call(Call::MPI_Pcontrol);
            lane.writer.put((now, now), Content::Action(&Action::Phase { begin, name }), CallSlot::NONE);
            lane.check();
        }
        let ended = |depth: u32| depth.checked_sub(1);
        // An end without a begin is ignored.
        if let Some((_, depth)) = only.filter(|_| !begin)
            && depth.fetch_update(Ordering::AcqRel, Ordering::Acquire, ended) == Ok(1)
        {
            self.change_state(State::Recording, State::Paused);
        }
    }
}
