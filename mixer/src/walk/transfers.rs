//! The partitioned transfers of one task.

use crate::channels::{Channel, Purpose};
use crate::index::{CommIndex, MessageIndex, ReceiveIndex, RecordIndex};
use crate::task::PartitionedRequest;
use hashbrown::HashMap;
use vef_format::capture::event::{PartitionedId, PartitionedInit};
use vef_format::ids::Rank;

/// The requests of `MPI_Psend_init` by communicator, sender and tag, in the order in which they were made.
pub(crate) type Told = HashMap<(CommIndex, Rank, i32), Vec<PartitionedRequest>>;

/// Transfers with more partitions are counted: few bytes of a capture must not make millions of records.
pub(super) const MOST: u32 = 1 << 16;

/// The partitioned transfers of one task.
#[derive(Debug, Default)]
pub(super) struct Transfers<'a> {
    pub(super) all: HashMap<PartitionedId, Transfer>,
    /// How many there are, by whether they send, communicator, peer and tag.
    pub(super) made: HashMap<(bool, CommIndex, Rank, i32), u32>,
    /// Where the task receives: the senders, if they are known.
    pub(super) told: Option<&'a Told>,
}

/// A partitioned transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) init: PartitionedInit,
    pub(super) comm: CommIndex,
    pub(super) peer: Rank,
    /// Its number among those with the same communicator, peer and tag.
    pub(super) number: u32,
    /// The partitions of its sender.
    pub(super) messages: u32,
    /// Whether the trace cannot represent it.
    pub(super) foreign: bool,
    /// Whether it has been started and not completed.
    pub(super) active: bool,
    /// Of the current start: the messages of a sender.
    pub(super) sent: Vec<(MessageIndex, RecordIndex)>,
    /// Of the current start: the receives of a receiver that no call has waited for, by partition of the sender.
    pub(super) awaited: Vec<Option<ReceiveIndex>>,
}

impl Transfer {
    pub(super) fn channel(&self, partition: u32) -> Channel {
        let length = u64::from(self.number) << 32 | u64::from(partition);
        let (comm, peer, tag) = (self.comm, self.peer, self.init.tag);
        Channel { comm, peer, tag, purpose: Purpose::Partitioned, length }
    }

    /// The partitions of the sender that are in one of the receiver, whose partitions are as many parts of the same data.
    pub(super) fn within(&self, partition: u32) -> std::ops::Range<usize> {
        let (own, theirs) = (u64::from(self.init.partitions.max(1)), u64::from(self.messages));
        let begin = u64::from(partition) * theirs / own;
        let end = ((u64::from(partition) + 1) * theirs).div_ceil(own);
        begin as usize..end.min(self.awaited.len() as u64) as usize
    }
}
