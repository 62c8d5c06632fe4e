//! Channels: communicator, source, destination and tag. The n-th send of a channel matches its n-th posted receive
//! (MPI's non-overtaking rule).
//!
//! Each task keeps its sends and its receives in posting order, each with the number of its channel. A wildcard receive
//! gets its channel when it completes but keeps its posting position. Grouped by channel, sends and receives are two
//! lists, and a match is the same index in both: no search is necessary.

use crate::fit::fit;
use crate::index::{ChannelIndex, CommIndex};
use hashbrown::DefaultHashBuilder;
use indexmap::IndexSet;
use vef_format::ids::Rank;

/// One end of a channel, as the task that owns the table sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Channel {
    /// The communicator.
    pub(crate) comm: CommIndex,
    /// The task at the other end.
    pub(crate) peer: Rank,
    /// The tag.
    pub(crate) tag: i32,
    /// What its messages belong to.
    pub(crate) purpose: Purpose,
    /// Message length, where the capture does not record communicators; of partitioned transfers, which of them and which
    /// partition; otherwise 0.
    pub(crate) length: u64,
}

/// What messages belong to; receives match only those of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Sends and receives of the program.
    PointToPoint,
    /// Collectives that messages replace.
    Collective,
    /// Neighbourhood collectives.
    Neighbourhood,
    /// Partitioned communication.
    Partitioned,
    /// One-sided transfers for which nothing waits, because a later one of the same task does for it. Nothing receives them.
    Put,
    /// Those that are answered before a flush returns.
    Flush,
    /// One-sided requests.
    Request,
    /// Their answers.
    Answer,
    /// `MPI_Win_post` to `MPI_Win_start`.
    Post,
    /// Those for which `MPI_Win_wait` waits, and messages of `MPI_Win_complete` in their place.
    Complete,
    /// Those for which the fence of their target waits.
    Fence,
    /// Between the members of a file and their aggregators.
    Buffering,
}

impl Channel {
    /// A channel of a window, which has the communicator `comm`.
    pub(crate) fn of_window(comm: CommIndex, peer: Rank, purpose: Purpose) -> Self {
        Self { comm, peer, tag: 0, purpose, length: 0 }
    }
}

impl Purpose {
    /// Whether messages are transfers to a window's memory, which arrive whether or not the target synchronises.
    pub(crate) fn is_transfer(self) -> bool {
        matches!(self, Self::Put | Self::Flush | Self::Complete | Self::Fence)
    }

    /// All, by number.
    const ALL: [Self; 12] = [
        Self::PointToPoint,
        Self::Collective,
        Self::Neighbourhood,
        Self::Partitioned,
        Self::Put,
        Self::Flush,
        Self::Request,
        Self::Answer,
        Self::Post,
        Self::Complete,
        Self::Fence,
        Self::Buffering,
    ];

    /// That with this number.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// All sends, or all receives, of one task. An operation is a send or a receive; its index counts in posting order.
#[derive(Debug, Default)]
pub(crate) struct Side {
    channels: IndexSet<Channel, DefaultHashBuilder>,
    /// Channel of each operation; [`ChannelIndex::NONE`]: unknown.
    of: Vec<ChannelIndex>,
}

/// The operations of a [`Side`] grouped by channel.
#[derive(Debug, Default)]
pub(crate) struct Grouped {
    /// Index in `order` of each channel's first operation, and the total at the end.
    begins: Vec<u32>,
    /// Operations by channel, then in posting order.
    order: Vec<u32>,
}

impl Side {
    /// Without channels, with memory for so many operations.
    pub(crate) fn with_capacity(operations: usize) -> Self {
        Self { of: Vec::with_capacity(operations), ..Self::default() }
    }

    /// The index of `channel`, added if it is new.
    pub(crate) fn channel(&mut self, channel: Channel) -> ChannelIndex {
        ChannelIndex(self.channels.insert_full(channel).0 as u32)
    }

    /// Adds an operation on `channel` ([`ChannelIndex::NONE`]: unknown) and returns its index.
    #[inline]
    pub(crate) fn post(&mut self, channel: ChannelIndex) -> u32 {
        self.of.push(channel);
        self.of.len() as u32 - 1
    }

    /// Sets the channel of an operation.
    #[inline]
    pub(crate) fn assign(&mut self, operation: u32, channel: ChannelIndex) {
        self.of[operation as usize] = channel;
    }

    /// Number of operations.
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    /// The channel of an operation, or [`ChannelIndex::NONE`].
    #[inline]
    pub(crate) fn channel_of(&self, operation: u32) -> ChannelIndex {
        self.of[operation as usize]
    }

    /// The channel of an operation.
    #[inline]
    pub(crate) fn get(&self, operation: u32) -> Option<Channel> {
        self.channels.get_index(self.channel_of(operation).index()).copied()
    }

    /// All channels with their indices.
    pub(crate) fn channels(&self) -> impl ExactSizeIterator<Item = (ChannelIndex, Channel)> {
        self.channels.iter().enumerate().map(|(at, &channel)| (ChannelIndex(at as u32), channel))
    }

    /// The index of `channel`, if it has operations.
    pub(crate) fn find(&self, channel: &Channel) -> Option<ChannelIndex> {
        self.channels.get_index_of(channel).map(|at| ChannelIndex(at as u32))
    }

    /// Replaces the communicators of all channels, which remain different.
    pub(crate) fn rename_communicators(&mut self, names: &[CommIndex]) {
        let renamed = |channel: Channel| Channel { comm: names[channel.comm.index()], ..channel };
        self.channels = std::mem::take(&mut self.channels).into_iter().map(renamed).collect();
    }

    /// Approximate allocated bytes.
    pub(crate) fn memory(&self) -> usize {
        // A hash and two numbers beside each channel.
        let each = size_of::<Channel>() + 3 * size_of::<usize>();
        size_of::<ChannelIndex>() * self.of.capacity() + each * self.channels.capacity()
    }

    /// Groups the operations by channel, in linear time.
    pub(crate) fn group(&self) -> Grouped {
        let mut begins = vec![0u32; self.channels.len() + 1];
        for channel in &self.of {
            // NONE has no entry.
            if let Some(begin) = begins.get_mut(channel.index()) {
                *begin += 1;
            }
        }
        let mut sum = 0;
        for begin in &mut begins {
            sum += *begin;
            *begin = sum;
        }
        // Filling backwards moves each entry of `begins` from its channel's end to its start.
        let mut order = vec![0; sum as usize];
        for (operation, channel) in self.of.iter().enumerate().rev() {
            if let Some(begin) = begins.get_mut(channel.index()) {
                *begin -= 1;
                order[*begin as usize] = operation as u32;
            }
        }
        Grouped { begins, order }
    }

    /// The task at the other end of each operation; `u32::MAX`: unknown.
    pub(crate) fn into_peers(self) -> Vec<Rank> {
        let peer = |at: ChannelIndex| {
            self.channels.get_index(at.index()).map_or(Rank(u32::MAX), |channel| channel.peer)
        };
        // In place.
        self.of.into_iter().map(peer).collect()
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        fit(&mut self.of);
        self.channels.shrink_to_fit();
    }
}

impl Grouped {
    /// The operations of each channel.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u32]> {
        self.begins.windows(2).map(|bounds| &self.order[bounds[0] as usize..bounds[1] as usize])
    }
}

/// The times of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// Start of the posting call.
    pub(crate) start: u64,
    /// End of the posting call.
    pub(crate) end: u64,
    /// End of the call that completed it; `u64::MAX`: none.
    pub(crate) done: u64,
}

impl Grouped {
    /// Orders receives that several threads posted concurrently. The capture does not record MPI's order, but each receive
    /// matched a message sent before the receive completed. Earliest completion first, subject to the order of receives
    /// that were not concurrent (earliest deadline first), gives such an order whenever one exists.
    pub(crate) fn order_concurrent(&mut self, postings: &[Posting]) {
        for bounds in self.begins.windows(2) {
            let channel = &mut self.order[bounds[0] as usize..bounds[1] as usize];
            let posting = |receive: u32| postings[receive as usize];
            // Sorted by start, so comparing neighbours suffices.
            if channel.windows(2).all(|pair| posting(pair[0]).end < posting(pair[1]).start) {
                continue;
            }
            // A receive's deadline is no later than the deadlines of all receives that began after it ended.
            let mut due = vec![u64::MAX; channel.len() + 1];
            let mut first_due = due.clone();
            for at in (0..channel.len()).rev() {
                let Posting { end, done, .. } = posting(channel[at]);
                let behind = channel.partition_point(|&other| posting(other).start <= end);
                due[at] = done.min(first_due[behind.max(at + 1)]);
                first_due[at] = due[at].min(first_due[at + 1]);
            }
            let mut order: Vec<(u64, u32)> = due.into_iter().zip(channel.iter().copied()).collect();
            order.sort_unstable();
            channel.iter_mut().zip(order).for_each(|(place, (_, receive))| *place = receive);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_receives_are_ordered_by_when_they_were_over() {
        let one =
            Channel { comm: CommIndex(0), peer: Rank(1), tag: 5, purpose: Purpose::PointToPoint, length: 0 };
        let order = |postings: &[(u64, u64, u64)]| {
            let mut side = Side::default();
            let channel = side.channel(one);
            for _ in postings {
                side.post(channel);
            }
            let mut grouped = side.group();
            let posting = |&(start, end, done)| Posting { start, end, done };
            grouped.order_concurrent(&postings.iter().map(posting).collect::<Vec<_>>());
            grouped.order
        };
        // One thread: posting order, whatever the completion order.
        assert_eq!(order(&[(1, 2, 90), (3, 4, 80), (5, 6, u64::MAX)]), [0, 1, 2]);
        // Two threads in MPI_Recv: the second completed first.
        assert_eq!(order(&[(1, 90, 90), (2, 50, 50)]), [1, 0]);
        // The third began when the second had completed, and completed before the first.
        assert_eq!(order(&[(1, 90, 90), (2, 50, 50), (51, 60, 60)]), [1, 2, 0]);
        // A receive that was posted before the first to complete precedes it.
        assert_eq!(order(&[(1, 100, 100), (2, 3, 95), (4, 60, 60)]), [1, 2, 0]);
        assert_eq!(order(&[(1, 2, 95), (1, 70, 70), (4, 60, 60)]), [0, 2, 1]);
    }

    #[test]
    fn a_receive_keeps_the_place_where_it_was_posted() {
        let channel = |peer| Channel {
            comm: CommIndex(0),
            peer: Rank(peer),
            tag: 5,
            purpose: Purpose::PointToPoint,
            length: 0,
        };
        let mut side = Side::default();
        let wildcard = side.post(ChannelIndex::NONE);
        let never = side.post(ChannelIndex::NONE);
        let one = side.channel(channel(1));
        let direct = side.post(one);
        let other = side.channel(channel(2));
        let third = side.post(other);
        let last = side.post(one);
        let resolved = side.channel(channel(1));
        side.assign(wildcard, resolved);
        let grouped = side.group();
        assert_eq!((one, other), (ChannelIndex(0), ChannelIndex(1)));
        assert!(grouped.all().eq([&[wildcard, direct, last][..], &[third]]));
        assert_eq!(side.get(never), None);
        assert_eq!(side.get(third), Some(channel(2)));
        assert_eq!(side.find(&channel(3)), None);
    }
}
