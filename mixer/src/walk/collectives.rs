//! The rules for collective calls: as records, or as the messages that replace them.

use super::builder::{Builder, Lowered, Pending};
use super::timeline::Chain;
use crate::agreement::{CallList, Calls};
use crate::channels::{Channel, Purpose};
use crate::error::{Call, Problem};
use crate::index::CollectiveIndex;
use crate::lower::Steps;
use crate::records::{After, Body, Part};
use crate::task::Fate;
use ::collectives::Step;
use vef_format::account::TimePart;
use vef_format::capture::event::{Collective, Event, RequestId};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Rules 6 and 9.
    pub(super) fn collective(&mut self, event: &Event<'_>, call: &Collective<'_>) -> Result<(), Problem> {
        let mut chain = Chain::default();
        self.add_collective(event, call, &mut chain)?;
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Adds the records of a collective to those that `event` has made.
    pub(super) fn add_collective(
        &mut self,
        event: &Event<'_>,
        call: &Collective<'_>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let local = self.comms.get(call.comm)?;
        if local.foreign {
            self.not_representable(event.call, call.amounts.send);
            return self.start(call.request, Pending::Outside(TimePart::Collective));
        }
        let size = local.group.count();
        if let Some(root) = call.root.filter(|root| root.0 >= size) {
            return Err(Problem::Peer { comm: call.comm.0, size, rank: root.0 });
        }
        if call.root.is_some() != call.operation.is_rooted() {
            return Err(Problem::Root(call.operation));
        }
        if size == 1 {
            return self.start(call.request, Pending::Complete(TimePart::Collective));
        }
        let slot = match local.slot {
            Some(slot) => slot,
            None => {
                local.rank = local.group.rank_of(self.rank).ok_or(Problem::NotAMember(call.comm.0))?;
                self.task.calls.push(Calls { comm: local.index, made: CallList::default() });
                *local.slot.insert(self.task.calls.len() as u32 - 1)
            }
        };
        let made = &mut self.task.calls[slot as usize].made;
        made.push(Call { operation: call.operation, root: call.root.map(|root| root.0) });
        if let Some(table) = self.options.lower {
            let steps = Steps::new(table, call, size, local.rank.0)
                .map_err(|error| Problem::Schedule(call.operation, error))?;
            // Overlapping non-blocking collectives may be in different order on each member, so each has its own tag.
            let tag = if call.request.is_some() { made.len() as i32 } else { 0 };
            let (comm, group) = (local.index, local.group.clone());
            let channel = |rank: u32| match group.get(CommRank(rank)) {
                Some(peer) => Ok(Channel { comm, peer, tag, purpose: Purpose::Collective, length: 0 }),
                None => Err(Problem::Peer { comm: call.comm.0, size, rank }),
            };
            return self.as_messages(event, call.request, steps, channel, chain);
        }
        let collective = CollectiveIndex(self.task.collectives);
        self.task.collectives += 1;
        let part = Part { slot, operation: call.operation, amounts: call.amounts };
        let body = Body::Collective(self.task.records.add_part(part));
        if call.request.is_none() {
            let after = After::Collective(collective);
            self.timeline.record(&mut self.task, event, event.start, chain, body, after);
            return Ok(());
        }
        let part = match self.agreements.of(event.call) {
            [] => TimePart::Collective,
            _ => TimePart::Communicator,
        };
        self.start(call.request, Pending::Collective(collective, part))?;
        for body in [Body::Mark, body] {
            // What follows depends on the mark.
            self.timeline.record(&mut self.task, event, event.start, chain, body, After::Sent);
        }
        Ok(())
    }

    /// Replaces a collective by messages; `channel` returns the channel with a rank. A non-blocking one sends all its messages
    /// at the call and completes all its receives at its wait, because the program may do anything in between.
    #[cold]
    fn as_messages(
        &mut self,
        event: &Event<'_>,
        request: Option<RequestId>,
        mut steps: Steps,
        channel: impl Fn(u32) -> Result<Channel, Problem>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let mut part = Lowered::collective();
        while let Some(step) = steps.next() {
            self.count_further()?;
            match step {
                Step::Send { to, data } => {
                    let channel = self.task.sends.channel(channel(to)?);
                    let (_, body) = self.add_message(channel, Bytes(data.len));
                    self.timeline.record(&mut self.task, event, event.start, chain, body, After::Sent);
                }
                Step::Recv { from, data, .. } => {
                    let channel = self.task.receives.channel(channel(from)?);
                    part.receives.push(self.add_receive(event, channel, Fate::Unawaited, Bytes(data.len)));
                }
                Step::Wait if request.is_none() => {
                    self.complete_lowered(event, &part, chain);
                    part.receives.clear();
                }
                Step::Wait | Step::Local { .. } => {}
            }
        }
        match request {
            Some(_) => self.start_lowered(request, part),
            None => {
                self.complete_lowered(event, &part, chain);
                Ok(())
            }
        }
    }

    /// Keeps what the completion of a non-blocking collective needs that is messages.
    pub(super) fn start_lowered(&mut self, request: Option<RequestId>, part: Lowered) -> Result<(), Problem> {
        self.start(request, Pending::Lowered(self.lowered.len()))?;
        self.lowered.push(part);
        Ok(())
    }

    /// Completes a collective that is messages within the call `event`.
    pub(super) fn complete_lowered(&mut self, event: &Event<'_>, part: &Lowered, chain: &mut Chain) {
        if let Some(notes) = &mut self.notes {
            part.sends.iter().for_each(|&send| notes.completed(send));
        }
        let later = if part.marks_at_end { event.end } else { event.start };
        for &receive in &part.receives {
            self.completed_receive(event, receive);
            self.windows.answered(&mut self.task.asked, receive, event.end);
            let after = After::Received(receive);
            self.timeline.record(&mut self.task, event, later, chain, Body::Mark, after);
        }
    }
}
