//! Collectives that the simulator carries out itself: in-network reduction, multicast by hardware, an algorithm of its own.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::Operation;
use vef_format::units::{Bytes, Picos};

/// Which collectives are events for the simulator ([`Sink::collective`](crate::Sink::collective)), not messages: those for which all that is said here holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveEvents {
    /// The operations.
    pub operations: Vec<Operation>,
    /// Members of the communicator.
    pub ranks: RangeInclusive<u32>,
    /// Bytes, as a decision table has them (`docs/collectives.md`).
    pub bytes: RangeInclusive<u64>,
    /// The communicators, by their numbers in the trace; all if `None`.
    pub comms: Option<Vec<CommId>>,
    /// When they are events.
    pub on: EventOn,
}

/// When a collective is an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventOn {
    /// Once, when the last member has entered.
    #[default]
    AllEntered,
    /// For each member, when it enters.
    EachEntry,
}

impl Default for CollectiveEvents {
    /// All collectives, when all members have entered.
    fn default() -> Self {
        Self {
            operations: Operation::ALL.to_vec(),
            ranks: 0..=u32::MAX,
            bytes: 0..=u64::MAX,
            comms: None,
            on: EventOn::AllEntered,
        }
    }
}

impl CollectiveEvents {
    /// Whether a collective is an event.
    pub(crate) fn include(&self, operation: Operation, ranks: u32, bytes: u64, comm: CommId) -> bool {
        self.operations.contains(&operation)
            && self.ranks.contains(&ranks)
            && self.bytes.contains(&bytes)
            && self.comms.as_ref().is_none_or(|comms| comms.contains(&comm))
    }
}

/// A collective to be carried out by the simulator, which then reports the completion of each member
/// ([`Engine::complete_member`](crate::Engine::complete_member)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// Which of the traces, from 0.
    pub job: u32,
    /// Which collective of that trace.
    pub id: CollectiveId,
    /// Its communicator.
    pub comm: CommId,
    /// The operation.
    pub operation: Operation,
    /// The root, a rank of the communicator; 0 of an operation without one.
    pub root: u32,
    /// Members of the communicator.
    pub ranks: u32,
    /// When the last member entered it or, under [`EventOn::EachEntry`], this one.
    pub at: Picos,
    /// Under [`EventOn::EachEntry`] the member that enters, by its rank of the communicator.
    pub member: Option<u32>,
    /// The end node of that member.
    pub node: Option<u32>,
    /// What that member sends and receives by its record; without one, the most that any member does.
    pub bytes: [Bytes; 2],
}

/// A member of a collective that is an event ([`Engine::members`](crate::Engine::members)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMember {
    /// The task of its job.
    pub task: Rank,
    /// Its end node.
    pub node: u32,
    /// When it entered, and what it sends and receives by its record; `None` if it has not.
    pub entered: Option<(Picos, [Bytes; 2])>,
    /// Whether its completion has been reported.
    pub complete: bool,
}

/// What is kept of a collective that is an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    on: EventOn,
    entered: u32,
    latest: Picos,
    most: [Bytes; 2],
}

impl Event {
    pub(crate) fn new(on: EventOn) -> Self {
        Self { on, entered: 0, latest: Picos::ZERO, most: [Bytes::ZERO; 2] }
    }

    /// A member of so many enters at `at`, with these bytes: when that is an event, of which member, and with which bytes.
    pub(crate) fn enter(
        &mut self,
        member: u32,
        ranks: u32,
        at: Picos,
        bytes: [Bytes; 2],
    ) -> Option<(Picos, Option<u32>, [Bytes; 2])> {
        self.entered += 1;
        self.latest = self.latest.max(at);
        self.most = [self.most[0].max(bytes[0]), self.most[1].max(bytes[1])];
        match self.on {
            EventOn::EachEntry => Some((at, Some(member), bytes)),
            EventOn::AllEntered => (self.entered == ranks).then_some((self.latest, None, self.most)),
        }
    }
}
