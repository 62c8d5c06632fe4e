//! The rule for answers to requests of other tasks, of which the target's own calls say nothing.

use super::builder::{Builder, RecordingEnd};
use super::requested::{Answer, LatestPolls};
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::records::{After, Body, Record};
use crate::task::Fate;
use vef_format::capture::event::{Action, CallSlot, Event};
use vef_format::units::{Bytes, Nanos};

/// The highest of the threads of a task that answer: in the trace they are further threads, which wait for nothing but requests.
const AGENT: u16 = u16::MAX;
/// Threads of a storage server, a network interface, or a task, that answer. Origins share them, so that one whose request comes later than it seems to, or whose
/// clock disagrees, delays its answers alone.
const SERVING: u32 = 256;

impl Builder<'_> {
    /// Rule 15, before `event`: requests that came while the task waited are answered, and those whose answers came before `event`. The
    /// last call answers all.
    #[cold]
    pub(super) fn answer_before(&mut self, event: &Event<'_>) -> Result<(), Problem> {
        let until = match event.action {
            Action::Finalize => u64::MAX,
            _ if self.several_threads => event.start.0,
            _ => self.answers.waited_until.min(event.start.0),
        };
        self.answer(event, |answer| answer.at <= until || answer.before <= event.start.0)
    }

    /// A call of windows, files and the like without a record, in which requests are answered, gets a mark, so that what its thread computed in
    /// front of the call is in front of the answers. What the call itself takes is in the next record, as without the mark.
    #[cold]
    pub(super) fn begin_answering(&mut self, event: &Event<'_>) {
        if self.comes_before_the_end_of(event) && matches!(event.action, Action::Other { .. }) {
            let polls = self.timeline.polls(event.thread);
            self.mark_computed(event.thread, event.call, event.start, polls);
        }
    }

    /// Makes a mark in front of failed polls or another call, behind what their thread has computed.
    fn mark_computed(&mut self, thread: u16, call: CallSlot, start: Nanos, polls: u64) {
        self.timeline.mark_computed(&mut self.task, thread, start, polls);
        if let Some(notes) = &mut self.notes {
            notes.marked((thread, call), start, polls);
        }
    }

    /// Requests may be answered in failed polls, too. The latest ones before the answer get such a mark.
    #[cold]
    pub(super) fn may_answer_in(&mut self, event: &Event<'_>) {
        if self.comes_before_the_end_of(event) {
            let polls = self.timeline.polls(event.thread);
            let (thread, call, start) = (event.thread, event.call, event.start);
            self.answers.polled = Some(LatestPolls { thread, call, start, polls });
        }
    }

    fn comes_before_the_end_of(&self, event: &Event<'_>) -> bool {
        !self.several_threads && self.answers.rest.first().is_some_and(|first| first.at <= event.end.0)
    }

    /// Rule 15, behind `event`, which has records: if it waits, requests that came before it are answered in it.
    #[cold]
    pub(super) fn answer_after(&mut self, event: &Event<'_>) -> Result<(), Problem> {
        self.answers.polled = None;
        if self.timeline.waits(event.thread) && !self.several_threads {
            self.answer(event, |answer| answer.at <= event.start.0)?;
            self.answers.waited_until = self.answers.waited_until.max(event.end.0);
        }
        Ok(())
    }

    /// Answers what is left when the events end without `MPI_Finalize`.
    pub(super) fn answer_rest(&mut self) -> Result<(), Problem> {
        let now = Nanos(self.answers.waited_until);
        let event = Event { start: now, end: now, thread: 0, call: CallSlot::NONE, action: Action::Finalize };
        self.answer(&event, |_| true)
    }

    /// Answers each request when it comes, between a mark at the beginning and one at the end.
    pub(super) fn answer_all(&mut self) -> Result<(), Problem> {
        (self.end, self.serves) = (RecordingEnd::Finalized, true);
        let end = self.answers.rest.last().map_or(0, |last| last.at);
        let mark = |after| Record { thread: AGENT, body: Body::Mark, after, time: 0 };
        self.task.records.push(0, &mark(After::Start));
        while let Some(first) = self.answers.rest.first() {
            let now = Nanos(first.at);
            let event =
                Event { start: now, end: now, thread: 0, call: CallSlot::NONE, action: Action::Finalize };
            self.answer(&event, |answer| answer.at <= now.0)?;
        }
        self.task.records.push(end, &mark(After::Sent));
        Ok(())
    }

    /// Answers the first requests for which `is_due` holds.
    fn answer(&mut self, event: &Event<'_>, is_due: impl Fn(&Answer) -> bool) -> Result<(), Problem> {
        while let Some((answer, rest)) = self.answers.rest.split_first().filter(|(first, _)| is_due(first)) {
            let &Answer { comm, origin, at, asked, answered, bytes, transfer, .. } = answer;
            self.answers.rest = rest;
            let outside = self.answers.returned <= asked && answered <= event.start.0;
            self.task.counts.answered_outside += u64::from(outside && !self.serves && !self.several_threads);
            if let Some(LatestPolls { thread, call, start, polls }) = self.answers.polled.take() {
                self.mark_computed(thread, call, start, polls);
            }
            self.count_further()?;
            let purpose = if transfer { Purpose::Flush } else { Purpose::Request };
            let request = self.task.receives.channel(Channel::of_window(comm, origin, purpose));
            let request = self.add_receive(event, request, Fate::HasDependent, Bytes::ZERO);
            let answer = self.task.sends.channel(Channel::of_window(comm, origin, Purpose::Answer));
            let (_, body) = self.add_message(answer, bytes);
            let of_origin = (origin.0 % SERVING) as u16;
            let thread = if self.serves { of_origin } else { AGENT - of_origin };
            let record = Record { thread, body, after: After::Received(request), time: 0 };
            self.task.records.push(at.min(event.start.0), &record);
            if let Some(notes) = &mut self.notes {
                notes.answered(thread);
            }
        }
        Ok(())
    }
}
