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
use vef_format::capture::event::{Completions, Event, Outcome, RequestId};

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
        let mut waited = TimePart::Own;
        match completions {
            Completions::Run { first: RequestId { thread, number }, count } => {
                for number in number..number + count {
                    let request = RequestId { thread, number };
                    let part = self.completed(event, request, Outcome::Done, &mut chain)?;
                    waited = of_all(waited, part);
                }
            }
            Completions::List(list) => {
                for completion in list {
                    let part = self.completed(event, completion.request, completion.outcome, &mut chain)?;
                    waited = of_all(waited, part);
                }
            }
        }
        self.clock.completed(event, waited);
        if !self.timeline.end(event, &chain) {
            self.completed_without_record(event, waited);
        }
        Ok(())
    }

    /// Rule 5: a wait for the task's own sends alone, or for what a trace cannot represent.
    #[inline(never)]
    fn completed_without_record(&mut self, event: &Event<'_>, waited: TimePart) {
        let took = event.end.0.saturating_sub(event.start.0);
        if matches!(waited, TimePart::Send | TimePart::Window) && self.replays(event) {
            return;
        }
        self.timeline.forget_polls(&mut self.task, event);
        let Spent { send_waits, calls_kept, .. } = &mut self.task.counts.spent;
        add_to(if waited == TimePart::Send { send_waits } else { calls_kept }, took);
    }

    /// Completes one request of `event`, which has made the records of `chain`; returns the part of the time that a wait
    /// for it counts for.
    #[inline(always)]
    fn completed(
        &mut self,
        event: &Event<'_>,
        request: RequestId,
        outcome: Outcome,
        chain: &mut Chain,
    ) -> Result<TimePart, Problem> {
        let (after, part) = match self.requests.remove(request) {
            Some(Pending::Receive(receive)) if outcome == Outcome::Cancelled => {
                self.wildcards.remove(&receive);
                self.task.receives.assign(receive.0, ChannelIndex::NONE);
                return Ok(TimePart::Message);
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
                return Ok(part.part);
            }
            Some(Pending::Partitioned(id)) => return self.complete_partitioned(event, id, outcome, chain),
            Some(Pending::Send { message, record }) => {
                match &mut self.notes {
                    _ if outcome == Outcome::Cancelled => {
                        self.task.sends.assign(message.0, ChannelIndex::NONE);
                    }
                    Some(notes) => notes.completed(record),
                    None => {}
                }
                return Ok(TimePart::Send);
            }
            Some(Pending::NoCompletionRecord(part)) => return Ok(part),
            None => {
                self.task.counts.unknown_requests += 1;
                return Ok(TimePart::Own);
            }
        };
        // The further marks begin at the end of the call: at its start, by the clocks, their messages may not have been sent.
        self.timeline.record(&mut self.task, event, event.end, chain, Body::Mark, after);
        Ok(part)
    }
}
