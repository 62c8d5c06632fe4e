//! The rule for partitioned communication: a message for each partition of the sender, when it is ready.
//!
//! The k-th `MPI_Psend_init` with a peer and tag is the partner of the k-th `MPI_Precv_init` there, and the n-th starts of both are one
//! transfer. The receiver need not have as many partitions as the sender; how many messages it waits for, the sender's
//! capture says ([`Told`](super::transfers::Told)). Each partition of the sender has a channel of its own.

use super::builder::{Builder, Lowered, Pending};
use super::timeline::Chain;
use super::transfers::{MOST, Transfer};
use crate::channels::Channel;
use crate::error::Problem;
use crate::index::{ChannelIndex, CommIndex};
use crate::records::After;
use crate::task::{Fate, PartitionedRequest};
use vef_format::account::TimePart;
use vef_format::capture::event::{Event, Outcome, Partitioned, PartitionedId, PartitionedInit, RequestId};
use vef_format::ids::Rank;
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Rule 17.
    pub(super) fn partitioned(&mut self, event: &Event<'_>, call: &Partitioned) -> Result<(), Problem> {
        match *call {
            Partitioned::Init(ref init) => self.partitioned_init(init),
            Partitioned::Start { id, request } => self.partitioned_start(event, id, request),
            Partitioned::Ready { id, first, count, bytes } => {
                self.partitions_ready(event, id, (first, count), bytes)
            }
            Partitioned::Arrived { id, partition } => self.partition_arrived(event, id, partition),
        }
    }

    fn partitioned_init(&mut self, init: &PartitionedInit) -> Result<(), Problem> {
        let found = self.comms.peer(init.comm, init.peer)?;
        let (comm, peer) = found.unwrap_or((CommIndex::NONE, Rank(0)));
        let made = self.transfers.made.entry((init.sends, comm, peer, init.tag)).or_default();
        let number = *made;
        *made += 1;
        let all = Bytes(init.bytes.0.saturating_mul(init.partitions.into()));
        let own = PartitionedRequest {
            comm,
            peer,
            tag: init.tag,
            sends: init.sends,
            partitions: init.partitions,
            bytes: all,
        };
        let mut messages = init.partitions;
        if let Some(told) = self.transfers.told.filter(|_| !init.sends)
            && let Some(theirs) = told.get(&(comm, peer, init.tag)).and_then(|list| list.get(number as usize))
        {
            messages = theirs.partitions;
            self.task.counts.partitioned_sizes += u64::from(theirs.bytes != all);
        }
        let foreign = found.is_none() || messages > MOST;
        if found.is_some() {
            self.task.partitioned.push(own);
        }
        let (active, sent, awaited) = Default::default();
        let transfer = Transfer { init: *init, comm, peer, number, messages, foreign, active, sent, awaited };
        match self.transfers.all.insert(init.id, transfer) {
            None => Ok(()),
            Some(_) => Err(Problem::Partitioned(init.id.0)),
        }
    }

    fn partitioned_transfer(&mut self, id: PartitionedId) -> Result<&mut Transfer, Problem> {
        self.transfers.all.get_mut(&id).ok_or(Problem::Partitioned(id.0))
    }

    fn partitioned_start(
        &mut self,
        event: &Event<'_>,
        id: PartitionedId,
        request: RequestId,
    ) -> Result<(), Problem> {
        self.end_transfer(id)?;
        let transfer = self.partitioned_transfer(id)?;
        let sends = transfer.init.sends;
        if transfer.foreign {
            let all = transfer.init.bytes.0.saturating_mul(transfer.init.partitions.into());
            self.not_representable(event.call, Bytes(all));
            let part = if sends { TimePart::Send } else { TimePart::Message };
            return self.start(Some(request), Pending::Outside(part));
        }
        transfer.active = true;
        let channels: Vec<Channel> = match sends {
            true => Vec::new(),
            false => (0..transfer.messages).map(|partition| transfer.channel(partition)).collect(),
        };
        let mut awaited = Vec::with_capacity(channels.len());
        for channel in channels {
            self.count_further()?;
            let channel = self.task.receives.channel(channel);
            awaited.push(Some(self.add_receive(event, channel, Fate::Unawaited, Bytes::ZERO)));
        }
        self.partitioned_transfer(id)?.awaited = awaited;
        self.start(Some(request), Pending::Partitioned(id))
    }

    /// Each partition leaves now.
    fn partitions_ready(
        &mut self,
        event: &Event<'_>,
        id: PartitionedId,
        (first, count): (u32, u32),
        bytes: Bytes,
    ) -> Result<(), Problem> {
        let transfer = self.partitioned_transfer(id)?;
        let within = first.checked_add(count).is_some_and(|end| end <= transfer.init.partitions);
        if !within || !transfer.init.sends {
            return Err(Problem::Partition { transfer: id.0, first, count });
        }
        if transfer.foreign {
            return Ok(());
        }
        if !transfer.active {
            // Its receiver need not have started, either.
            self.task.counts.partitions_inactive += u64::from(count);
            return Ok(());
        }
        let mut chain = Chain::default();
        for partition in first..first + count {
            self.count_further()?;
            let channel = self.partitioned_transfer(id)?.channel(partition);
            let channel = self.task.sends.channel(channel);
            let record = self.next_record();
            if let Some(notes) = &mut self.notes {
                notes.detached(record);
            }
            let (message, body) = self.add_message(channel, bytes);
            self.timeline.record(&mut self.task, event, event.start, &mut chain, body, After::Sent);
            self.partitioned_transfer(id)?.sent.push((message, record));
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// A partition of the receiver has arrived, and so have those of the sender that are in it.
    fn partition_arrived(
        &mut self,
        event: &Event<'_>,
        id: PartitionedId,
        partition: u32,
    ) -> Result<(), Problem> {
        let transfer = self.partitioned_transfer(id)?;
        if partition >= transfer.init.partitions || transfer.init.sends {
            return Err(Problem::Partition { transfer: id.0, first: partition, count: 1 });
        }
        let range = transfer.within(partition);
        let receives = transfer.awaited.get_mut(range).unwrap_or_default();
        let receives = receives.iter_mut().filter_map(Option::take).collect();
        let mut chain = Chain::default();
        let part = Lowered { receives, marks_at_end: true, ..Lowered::collective() };
        self.complete_lowered(event, &part, &mut chain);
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Completes the current start of a transfer; returns what a wait for it waits for.
    pub(super) fn complete_partitioned(
        &mut self,
        event: &Event<'_>,
        id: PartitionedId,
        outcome: Outcome,
        chain: &mut Chain,
    ) -> Result<TimePart, Problem> {
        let transfer = self.partitioned_transfer(id)?;
        let part = if transfer.init.sends { TimePart::Send } else { TimePart::Message };
        let (sent, awaited) = (std::mem::take(&mut transfer.sent), std::mem::take(&mut transfer.awaited));
        transfer.active = false;
        if outcome == Outcome::Cancelled {
            sent.iter().for_each(|(message, _)| self.task.sends.assign(message.0, ChannelIndex::NONE));
            let receives = awaited.iter().flatten();
            receives.for_each(|receive| self.task.receives.assign(receive.0, ChannelIndex::NONE));
            return Ok(part);
        }
        self.count_missing(id, sent.len())?;
        let sends = sent.into_iter().map(|(_, record)| record).collect();
        let receives = awaited.into_iter().flatten().collect();
        self.complete_lowered(event, &Lowered { sends, receives, marks_at_end: true, part }, chain);
        Ok(part)
    }

    /// No call will complete the current start of a transfer, if it has been started.
    pub(super) fn end_transfer(&mut self, id: PartitionedId) -> Result<(), Problem> {
        let transfer = self.partitioned_transfer(id)?;
        if std::mem::take(&mut transfer.active) {
            let sent = std::mem::take(&mut transfer.sent).len();
            transfer.awaited = Vec::new();
            self.count_missing(id, sent)?;
        }
        Ok(())
    }

    /// Counts the partitions of a start that never were ready.
    fn count_missing(&mut self, id: PartitionedId, sent: usize) -> Result<(), Problem> {
        let transfer = self.partitioned_transfer(id)?;
        if transfer.init.sends {
            let missing = u64::from(transfer.init.partitions).saturating_sub(sent as u64);
            self.task.counts.partitions_not_ready += missing;
        }
        Ok(())
    }
}
