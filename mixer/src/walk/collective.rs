//! Collective calls: as records, or as the messages that replace them.

use super::{Pending, Walk};
use crate::agreement::{CallList, Calls};
use crate::channels::Channel;
use crate::error::{Call, Problem};
use crate::lower::Steps;
use crate::packed::{After, Body, Part};
use crate::task::Wait;
use collectives::Step;
use vef_format::capture::event::{Collective, Event, RequestId};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

impl Walk<'_> {
    /// Rules 6 and 9.
    pub(super) fn collective(&mut self, event: &Event<'_>, call: &Collective<'_>) -> Result<(), Problem> {
        let local = self.comms.get(call.comm)?;
        if local.foreign {
            self.not_representable(event.call, call.amounts.send);
            return self.start(call.request, Pending::NoCompletionRecord);
        }
        let size = local.group.count();
        if let Some(root) = call.root.filter(|root| root.0 >= size) {
            return Err(Problem::Peer { comm: call.comm.0, size, rank: root.0 });
        }
        if call.root.is_some() != call.operation.is_rooted() {
            return Err(Problem::Root(call.operation));
        }
        if size == 1 {
            return self.start(call.request, Pending::NoCompletionRecord);
        }
        let slot = match local.slot {
            Some(slot) => slot,
            None => {
                local.rank = local.group.rank_of(self.rank).ok_or(Problem::NotAMember(call.comm.0))?;
                self.task.calls.push(Calls { comm: local.identity, made: CallList::default() });
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
            let (comm, group) = (local.identity.lowered(), local.group.clone());
            let channel = |rank: u32| match group.get(CommRank(rank)) {
                Some(peer) => Ok(Channel { comm, peer, tag, length: 0 }),
                None => Err(Problem::Peer { comm: call.comm.0, size, rank }),
            };
            return self.as_messages(event, call.request, steps, channel);
        }
        let number = self.task.counts.collectives as u32;
        self.task.counts.collectives += 1;
        let part = Part { slot, operation: call.operation, amounts: call.amounts };
        let body = Body::Collective(self.task.records.add_part(part));
        if call.request.is_some() {
            self.start(call.request, Pending::Collective(number))?;
            self.timeline.place(&mut self.task, event, Body::Mark);
            self.timeline.follow(&mut self.task, event, body);
            self.timeline.done(event, After::Sent);
        } else {
            self.place(event, body, After::Collective(number));
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
    ) -> Result<(), Problem> {
        let (mut chained, mut receives) = (None, Vec::new());
        while let Some(step) = steps.next() {
            self.count_lowered()?;
            match step {
                Step::Send { to, data } => {
                    let channel = self.task.sends.channel(channel(to)?);
                    let (_, body) = self.message(channel, Bytes(data.len));
                    let record = (body, After::Sent);
                    self.timeline.chain(&mut self.task, event, event.start, &mut chained, record);
                }
                Step::Recv { from, data, .. } => {
                    let number = self.task.receives.channel(channel(from)?);
                    receives.push(self.posted(
                        || (event.start, event.end),
                        number,
                        Wait::Not,
                        Bytes(data.len),
                    ));
                }
                Step::Wait if request.is_none() => {
                    self.collect(event, &receives, &mut chained);
                    receives.clear();
                }
                Step::Wait | Step::Local { .. } => {}
            }
        }
        if request.is_none() {
            self.collect(event, &receives, &mut chained);
        } else {
            self.start(request, Pending::Lowered(self.lowered.len() as u32))?;
            self.lowered.push(receives);
        }
        if let Some(after) = chained {
            self.timeline.done(event, after);
        }
        Ok(())
    }

    /// Completes `receives` within the call `event`.
    pub(super) fn collect(&mut self, event: &Event<'_>, receives: &[u32], chained: &mut Option<After>) {
        for &number in receives {
            self.task.waits[number as usize] = Wait::Waited;
            let record = (Body::Mark, After::Received(number));
            self.timeline.chain(&mut self.task, event, event.start, chained, record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicators::Communicators;
    use crate::error::MixError;
    use crate::walk::WalkOptions;
    use collectives::choose::Table;
    use vef_format::capture::Consumer;
    use vef_format::capture::event::{Action, CallSlot, Communicator, DatatypeId, Members, Origin, Remote};
    use vef_format::ids::{CommId, Rank};
    use vef_format::operation::{Amounts, Operation};
    use vef_format::units::Nanos;

    /// A lowered collective has as many messages and receives as it has peers: far more than a task has events.
    #[test]
    fn messages_of_lowered_collectives_are_counted_before_their_numbers_wrap() {
        let (comm, table) = (CommId(0), Table::builtin("default").unwrap());
        let communicators = Communicators::new(1000);
        let options = WalkOptions { lower: Some(&table), ..WalkOptions::default() };
        let mut walk = Walk::new(Rank(0), &communicators, options, false, &[], 0);
        walk.most = 3500;
        let world = Communicator {
            id: comm,
            origin: Origin::World,
            split: None,
            members: Members::All,
            remote: Remote::None,
            foreign: false,
        };
        let alltoall = Collective {
            operation: Operation::Alltoall,
            comm,
            root: None,
            amounts: Amounts { send: Bytes(1 << 30), recv: Bytes(1 << 30) },
            count: 1,
            datatype: DatatypeId::default(),
            recv_datatype: None,
            request: None,
            send_counts: &[],
            recv_counts: &[],
        };
        let mut take = |action| {
            let (start, end) = (Nanos(1), Nanos(1));
            (&mut walk).take(&Event { start, end, thread: 0, call: CallSlot::NONE, action })
        };
        take(Action::Init).unwrap();
        take(Action::Communicator(world)).unwrap();
        let mut calls = 2;
        let error = loop {
            match take(Action::Collective(alltoall.clone())) {
                Ok(()) => calls += 1,
                Err(error) => break error,
            }
        };
        let expected = matches!(
            error,
            MixError::Event { task: Rank(0), event, problem: Problem::TooManyEvents } if event == calls
        );
        assert!(expected && calls < 5, "{error}, after {calls} events");
        assert!(walk.task.sends.len() + walk.task.receives.len() < 3500);
    }
}
