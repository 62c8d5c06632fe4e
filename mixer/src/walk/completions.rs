//! The rules for calls that complete requests.

use super::builder::{Builder, Lowered, Pending};
use super::timeline::Chain;
use crate::counts::add_to;
use crate::error::Problem;
use crate::index::ChannelIndex;
use crate::records::{After, Body};
use crate::summary::Spent;
use mpi_abi::account::of_all;
use vef_format::account::TimePart;
use vef_format::capture::event::{Completion, Completions, Event, Outcome, RequestId};

impl Builder<'_> {
    /// Rules 4, 5 and 9: a mark for each completed receive and collective. The first has the time; each further mark depends
    /// on the one before.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        event: &Event<'_>,
        completions: Completions<'_>,
    ) -> Result<(), Problem> {
        let mut chain = Chain::default();
        let (mut waited, mut outside) = (TimePart::Own, false);
        match completions {
            Completions::Run { first: RequestId { thread, number }, count } => {
                for number in number..number + count {
                    let request = RequestId { thread, number };
                    let (part, is_outside) = self.completed(event, request, Outcome::Done, &mut chain)?;
                    (waited, outside) = (of_all(waited, part), outside | is_outside);
                }
            }
            Completions::List(list) => {
                for completion in list {
                    let Completion { request, outcome } = *completion;
                    let (part, is_outside) = self.completed(event, request, outcome, &mut chain)?;
                    (waited, outside) = (of_all(waited, part), outside | is_outside);
                }
            }
        }
        self.clock.completed(event, waited);
        if !self.timeline.end(event, &chain) {
            self.completed_without_record(event, waited, outside);
        }
        Ok(())
    }

    /// Rule 5: a wait for the task's own sends alone, or also for what the trace cannot represent.
    #[inline(never)]
    fn completed_without_record(&mut self, event: &Event<'_>, waited: TimePart, outside: bool) {
        // Polls of the test family, if the task has nothing but sends that they can have been for.
        let with_polls = self.awaited_of_others == 0 && !self.timeline.looked_for_messages(event.thread);
        let is_replayed = !outside && self.replays(event, with_polls);
        if !(is_replayed && with_polls) {
            self.timeline.forget_polls(&mut self.task, event);
        }
        if is_replayed {
            return;
        }
        let took = event.end.0.saturating_sub(event.start.0);
        let Spent { send_waits, calls_kept, .. } = &mut self.task.counts.spent;
        add_to(if waited == TimePart::Send { send_waits } else { calls_kept }, took);
    }

    /// Completes one request of `event`, which has made the records of `chain`; returns the part of the time that a wait
    /// for it counts for, and whether the trace cannot represent it.
    #[inline(always)]
    fn completed(
        &mut self,
        event: &Event<'_>,
        request: RequestId,
        outcome: Outcome,
        chain: &mut Chain,
    ) -> Result<(TimePart, bool), Problem> {
        let (after, part) = match self.take_request(request) {
            Some(Pending::Receive(receive)) if outcome == Outcome::Cancelled => {
                self.wildcards.remove(&receive);
                self.task.receives.assign(receive.0, ChannelIndex::NONE);
                return Ok((TimePart::Message, true));
            }
            Some(Pending::Receive(receive)) => {
                self.resolve(receive, outcome)?;
                self.completed_receive(event, receive);
                (After::Received(receive), TimePart::Message)
            }
            Some(Pending::Collective(collective, part)) => (After::Collective(collective), part),
            Some(Pending::Lowered(at)) => {
                let part = std::mem::replace(&mut self.lowered[at], Lowered::collective());
                self.complete_lowered(event, &part, chain);
                return Ok((part.part, false));
            }
            Some(Pending::Partitioned(id)) => {
                return Ok((self.complete_partitioned(event, id, outcome, chain)?, false));
            }
            Some(Pending::Send { message, record }) => {
                match &mut self.notes {
                    _ if outcome == Outcome::Cancelled => {
                        self.task.sends.assign(message.0, ChannelIndex::NONE);
                    }
                    Some(notes) => notes.completed(record),
                    None => {}
                }
                return Ok((TimePart::Send, false));
            }
            Some(Pending::Put(record)) => {
                if let (Some(notes), Some(record)) = (&mut self.notes, record) {
                    notes.completed(record);
                }
                return Ok((TimePart::Window, false));
            }
            Some(Pending::Outside(part)) => return Ok((part, true)),
            Some(Pending::Complete(part)) => return Ok((part, false)),
            None => {
                self.task.counts.unknown_requests += 1;
                return Ok((TimePart::Own, true));
            }
        };
        // The further marks begin at the end of the call: at its start, by the clocks, their messages may not have been sent.
        self.timeline.record(&mut self.task, event, event.end, chain, Body::Mark, after);
        Ok((part, false))
    }
}
