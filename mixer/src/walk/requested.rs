//! What a task does for one-sided calls of others: the requests that it answers, and the transfers that its fences wait for.

use crate::index::CommIndex;
use crate::task::Reach;
use vef_format::capture::event::CallSlot;
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Nanos};

/// A request of another task, which this one answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The communicator of the window.
    pub(crate) comm: CommIndex,
    /// The task that asks.
    pub(crate) origin: Rank,
    /// When the request came, about, on the clock of this task.
    pub(crate) at: u64,
    /// When it, or one that asked later, had its answer.
    pub(crate) before: u64,
    /// When the origin's call began that asked.
    pub(crate) asked: u64,
    /// When the origin's call returned that waited for the answer; [`u64::MAX`] on another host, whose clock is another.
    pub(crate) answered: u64,
    /// Bytes of the answer.
    pub(crate) bytes: Bytes,
    /// Orders requests of the same time.
    pub(crate) round: u32,
    /// Whether it is a transfer itself that is answered.
    pub(crate) transfer: bool,
}

/// A task that has transfers to this one before a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fenced {
    /// The communicator of the window.
    pub(crate) comm: CommIndex,
    /// Number of the fence among those on the window.
    pub(crate) fence: u32,
    /// The task.
    pub(crate) origin: Rank,
}

/// What a task does for others.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// In the order of the requests.
    pub(crate) answers: Vec<Answer>,
    /// In order.
    pub(crate) fenced: Vec<Fenced>,
    /// Where others made transfers in its windows, by communicator of the window.
    pub(crate) reached: Vec<(CommIndex, Reach)>,
}

/// Failed polls in which a task may have answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatestPolls {
    pub(super) thread: u16,
    pub(super) call: CallSlot,
    pub(super) start: Nanos,
    /// Time of the thread's failed polls before these, since its latest record.
    pub(super) polls: u64,
}

/// The answers that a task has not given yet, in the order of the requests.
#[derive(Debug, Default)]
pub(super) struct Answers<'a> {
    pub(super) rest: &'a [Answer],
    fenced: &'a [Fenced],
    reached: &'a [(CommIndex, Reach)],
    /// When the latest call that waited returned.
    pub(super) waited_until: u64,
    /// When the latest call returned.
    pub(super) returned: u64,
    /// The latest failed polls since the latest record, if requests may have been answered there.
    pub(super) polled: Option<LatestPolls>,
}

impl<'a> Answers<'a> {
    /// All that a task does for others.
    pub(super) fn new(owed: Option<&'a Owed>) -> Self {
        owed.map_or_else(Self::default, |Owed { answers, fenced, reached }| Self {
            rest: answers,
            fenced,
            reached,
            ..Self::default()
        })
    }

    /// The tasks whose transfers that fence waits for.
    pub(super) fn before_fence(&self, comm: CommIndex, fence: u32) -> impl Iterator<Item = Rank> + use<'a> {
        let begins = self.fenced.partition_point(|other| (other.comm, other.fence) < (comm, fence));
        let of_fence = move |other: &&Fenced| (other.comm, other.fence) == (comm, fence);
        self.fenced[begins..].iter().take_while(of_fence).map(|other| other.origin)
    }

    /// How many other tasks made transfers in the window, which has a `size` and a `unit`, where it has no memory.
    pub(super) fn outside(&self, comm: CommIndex, size: Bytes, unit: u32) -> u64 {
        let of_window = self.reached.iter().filter(|(other, _)| *other == comm);
        of_window.filter(|(_, reach)| !reach.is_within(size, unit)).count() as u64
    }

    /// Whether all are given.
    #[inline(always)]
    pub(super) fn are_given(&self) -> bool {
        self.rest.is_empty()
    }
}
