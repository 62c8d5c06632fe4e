//! What C sees of collectives that the simulator carries out itself.

use crate::border::{Failure, Out, Versioned};
use crate::status::VEF_ERROR_ARGUMENT;
use replay::{Collective, EventMember, Kind};

/// A collective to be carried out by the simulator, which reports the completion of each member.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveEvent {
    /// Its id, with `job`, in `vef_replay_members` and `vef_replay_complete_member`.
    pub id: u64,
    /// When the last member entered it, or the one that `member` names; in picoseconds.
    pub at: u64,
    /// Which job, from 0.
    pub job: u32,
    /// The communicator's number in the trace.
    pub communicator: u32,
    /// The operation (`vef_kind_name`).
    pub kind: u32,
    /// The root's rank of the communicator; 0 of an operation without root.
    pub root: u32,
    /// Members of the communicator.
    pub ranks: u32,
    /// The member that enters, by its rank of the communicator; `UINT32_MAX` of a collective that is an event once.
    pub member: u32,
    /// Bytes that this member sends, by its record; of a collective that is an event once, the most that any member sends.
    pub sends: u64,
    /// Bytes that it receives, likewise.
    pub receives: u64,
}

/// A member of such a collective.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberOfEvent {
    /// When it entered, in picoseconds; `UINT64_MAX` if it has not, or is complete.
    pub entered: u64,
    /// Bytes that it sends, by its record.
    pub sends: u64,
    /// Bytes that it receives, by its record.
    pub receives: u64,
    /// Its rank of the job.
    pub rank: u32,
    /// Its end node.
    pub node: u32,
    /// Whether its completion has been reported.
    pub complete: u32,
}

impl Versioned for CollectiveEvent {}
impl Versioned for MemberOfEvent {}

impl From<&Collective> for CollectiveEvent {
    fn from(event: &Collective) -> Self {
        Self {
            id: event.id.0,
            at: event.at.0,
            job: event.job,
            communicator: event.comm.0,
            kind: Kind::Collective(event.operation).index() as u32,
            root: event.root,
            ranks: event.ranks,
            member: event.member.unwrap_or(u32::MAX),
            sends: event.bytes[0].0,
            receives: event.bytes[1].0,
        }
    }
}

impl From<EventMember> for MemberOfEvent {
    fn from(member: EventMember) -> Self {
        let [sends, receives] = member.entered.map_or([0; 2], |(_, amounts)| amounts.map(|bytes| bytes.0));
        Self {
            entered: member.entered.map_or(u64::MAX, |(at, _)| at.0),
            sends,
            receives,
            rank: member.task.0,
            node: member.node,
            complete: member.complete.into(),
        }
    }
}

/// Writes the members of a collective to as many elements as there is room for; returns their number.
///
/// # Safety
/// The first of the three is null, or has room for so many (the second) elements of so many bytes (the third).
pub(crate) unsafe fn write_members(
    members: Option<Vec<EventMember>>,
    (to, room, size): (*mut MemberOfEvent, usize, usize),
) -> Result<isize, Failure> {
    let unknown = || Failure::new(VEF_ERROR_ARGUMENT, "no such collective is an event");
    let members = members.ok_or_else(unknown)?;
    let count = members.len() as isize;
    if room > 0 {
        // SAFETY: the caller's promise, here and below.
        let to = unsafe { Out::new(to, size, "members")? };
        for (rank, member) in members.into_iter().take(room).enumerate() {
            // SAFETY: there is room for `room` of them.
            unsafe { to.write(rank, member.into()) };
        }
    }
    Ok(count)
}
