//! What C sees of collectives that the simulator carries out itself.

use crate::border::{self, Failure, Out, Versioned};
use crate::builder::{Builder, describe};
use crate::message::kind;
use crate::status::VEF_ERROR_ARGUMENT;
use replay::{Collective, CollectiveEvents, CommId, EventMember, EventOn, Kind};
use std::ffi::c_int;

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

/// Collectives of all jobs that the simulator carries out itself, as events instead of messages: in-network reduction, multicast by
/// hardware, an algorithm of its own. `kinds` has bit 1 << k for the operation of kind k (`vef_kind_name`); `UINT32_MAX` is all. With
/// `each_entry` 0 a collective is an event when its last member has entered, otherwise for each member that enters. The three functions
/// below restrict it further. Not with `vef_builder_partitions`.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_collective_events(
    builder: *mut Builder,
    kinds: u32,
    each_entry: c_int,
) -> c_int {
    let operations = (1..Kind::COUNT as u32).filter(|number| kinds >> number & 1 != 0).filter_map(kind);
    let operations = operations.filter_map(|kind| match kind {
        Kind::Collective(operation) => Some(operation),
        Kind::PointToPoint => None,
    });
    let (operations, on) =
        (operations.collect(), if each_entry == 0 { EventOn::AllEntered } else { EventOn::EachEntry });
    // SAFETY: the caller's promise.
    unsafe {
        change(builder, |events| {
            events.operations = operations;
            events.on = on;
        })
    }
}

/// Of `vef_builder_collective_events` only those on communicators of `least` to `most` members.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_event_ranks(builder: *mut Builder, least: u32, most: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { change(builder, |events| events.ranks = least..=most) }
}

/// Of `vef_builder_collective_events` only those of `least` to `most` bytes, as a decision table has them (`docs/collectives.md`).
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_event_bytes(builder: *mut Builder, least: u64, most: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { change(builder, |events| events.bytes = least..=most) }
}

/// Of `vef_builder_collective_events` only those on these communicators, by their numbers in the trace. The array is copied.
///
/// # Safety
/// `builder` is null or usable; `communicators` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_event_communicators(
    builder: *mut Builder,
    communicators: *const u32,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let comms = border::array(communicators, count, "communicators")?;
            let comms = comms.iter().copied().map(CommId).collect();
            builder.events.get_or_insert_default().comms = Some(comms);
            Ok(0)
        })
    }
}

/// # Safety
/// As [`describe`].
unsafe fn change(builder: *mut Builder, change: impl FnOnce(&mut CollectiveEvents)) -> c_int {
    let described = |builder: &mut Builder| {
        change(builder.events.get_or_insert_default());
        Ok(0)
    };
    // SAFETY: by this function's own contract.
    unsafe { describe(builder, described) }
}
