//! Collectives that the simulator carries out itself: in-network reduction, multicast by hardware, an algorithm of its own.

use super::tables::{NOT_YET, OVER, Open, PartSizes};
use super::{Player, Released};
use crate::error::{EngineResult, ReplayError};
use crate::message::Sink;
use collectives::Sizes;
use std::ops::RangeInclusive;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::Operation;
use vef_format::units::{Bytes, Picos};

/// Which collectives are events for the simulator ([`Sink::collective`]), not messages: those for which all that is said here holds.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub(super) fn include(&self, operation: Operation, ranks: u32, bytes: u64, comm: CommId) -> bool {
        self.operations.contains(&operation)
            && self.ranks.contains(&ranks)
            && self.bytes.contains(&bytes)
            && self.comms.as_ref().is_none_or(|comms| comms.contains(&comm))
    }
}

/// A collective to be carried out by the simulator, which then reports the completion of each member
/// ([`Engine::complete_member`](crate::Engine::complete_member)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) on: EventOn,
    entered: u32,
    latest: Picos,
}

impl Event {
    pub(super) fn new(on: EventOn) -> Self {
        Self { on, entered: 0, latest: Picos::ZERO }
    }
}

impl Player<'_> {
    /// A part of a collective that is an event was entered.
    #[cold]
    pub(super) fn enter_event(&mut self, at: u32, amounts: [Bytes; 2], out: &mut impl Sink) {
        let part = &mut self.collectives.parts[at as usize];
        part.sizes = PartSizes::Own(Sizes::Sums { send: amounts[0].0, recv: amounts[1].0 });
        let (entered_at, rank) = (part.at, part.rank);
        let open = &mut self.collectives.open[part.open as usize];
        let ranks = open.parts.len() as u32;
        let Open { job, id, comm, operation, root, .. } = *open;
        let Some(event) = &mut open.event else { return };
        event.entered += 1;
        event.latest = event.latest.max(entered_at);
        let (at, member) = match event.on {
            EventOn::EachEntry => (entered_at, Some(rank)),
            EventOn::AllEntered if event.entered == ranks => (event.latest, None),
            EventOn::AllEntered => return,
        };
        out.collective(&Collective { job, id, comm, operation, root, ranks, at, member });
    }

    /// The members of a collective that is an event; `None` if there is none of that id.
    pub(crate) fn members(&self, job: u32, id: CollectiveId) -> Option<Vec<EventMember>> {
        let open = self.event(job, id)?;
        let members = &self.collectives.groups[open.group as usize].members;
        let member = |(&part, &task): (&u32, &Rank)| EventMember {
            task,
            node: self.live.nodes[(open.first_task + task.0) as usize],
            entered: match part {
                NOT_YET | OVER => None,
                part => {
                    let part = &self.collectives.parts[part as usize];
                    Some((part.at, part.sizes.sums().map(Bytes)))
                }
            },
            complete: part == OVER,
        };
        Some(open.parts.iter().zip(members).map(member).collect())
    }

    fn event(&self, job: u32, id: CollectiveId) -> Option<&Open> {
        let open = *self.jobs.get(job as usize)?.open.get(&id)?;
        self.collectives.open.get(open as usize).filter(|open| open.event.is_some())
    }

    /// The part, and its task counted over all jobs, of a member that has entered an event and is not complete, and when it entered.
    pub(crate) fn entered(&self, job: u32, id: CollectiveId, member: u32) -> Option<(u32, u32, Picos)> {
        match *self.event(job, id)?.parts.get(member as usize)? {
            NOT_YET | OVER => None,
            at => {
                let part = &self.collectives.parts[at as usize];
                Some((at, part.task, part.at))
            }
        }
    }

    /// A member of an event is complete.
    pub(crate) fn complete_member(
        &mut self,
        part: u32,
        at: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<Released>> {
        self.collectives.parts[part as usize].at = at;
        Ok(self.complete(part, out))
    }
}

/// No member of that rank waits in a collective of that id that is an event.
pub(crate) fn no_member(job: u32, id: CollectiveId, member: u32) -> ReplayError {
    ReplayError::NoMember { job, id, member }
}
