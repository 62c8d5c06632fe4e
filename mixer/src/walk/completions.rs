//! The rules for calls that complete requests.

use super::builder::{Builder, Pending};
use super::timeline::Chain;
use crate::error::Problem;
use crate::index::ChannelIndex;
use crate::records::{After, Body};
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
        match completions {
            Completions::Run { first: RequestId { thread, number }, count } => {
                for number in number..number + count {
                    let request = RequestId { thread, number };
                    self.completed(event, request, Outcome::Done, &mut chain)?;
                }
            }
            Completions::List(list) => {
                for completion in list {
                    self.completed(event, completion.request, completion.outcome, &mut chain)?;
                }
            }
        }
        if !self.timeline.end(event, &chain) {
            self.timeline.forget_polls(event);
            let sum = &mut self.task.counts.spent.send_waits;
            *sum = sum.saturating_add(event.end.0.saturating_sub(event.start.0));
        }
        Ok(())
    }

    /// Completes one request of `event`, which has made the records of `chain`.
    #[inline(always)]
    fn completed(
        &mut self,
        event: &Event<'_>,
        request: RequestId,
        outcome: Outcome,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let after = match self.requests.remove(request) {
            Some(Pending::Receive(receive)) if outcome == Outcome::Cancelled => {
                self.wildcards.remove(&receive);
                self.task.receives.assign(receive.0, ChannelIndex::NONE);
                return Ok(());
            }
            Some(Pending::Receive(receive)) => {
                self.resolve(receive, outcome)?;
                self.completed_receive(event, receive);
                After::Received(receive)
            }
            Some(Pending::Collective(collective)) => After::Collective(collective),
            Some(Pending::Lowered(at)) => {
                let receives = std::mem::take(&mut self.lowered[at]);
                self.collect(event, &receives, chain);
                return Ok(());
            }
            Some(Pending::Send { message, record }) => {
                match &mut self.notes {
                    _ if outcome == Outcome::Cancelled => {
                        self.task.sends.assign(message.0, ChannelIndex::NONE);
                    }
                    Some(notes) => notes.completed(record),
                    None => {}
                }
                return Ok(());
            }
            Some(Pending::NoCompletionRecord) => return Ok(()),
            None => {
                self.task.counts.unknown_requests += 1;
                return Ok(());
            }
        };
        // The further marks begin at the end of the call: at its start, by the clocks, their messages may not have been sent.
        self.timeline.record(&mut self.task, event, event.end, chain, Body::Mark, after);
        Ok(())
    }
}
