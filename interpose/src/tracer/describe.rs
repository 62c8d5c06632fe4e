//! Communicators and datatypes as MPI describes them, for the records that define them.

use super::{ThreadLane, Tracer};
use crate::comms::{self, Comm, Meets, Membership, Outsiders};
use mpi_abi::handles;
use std::sync::PoisonError;
use vef_format::capture::event::{Action, CallSlot, Datatype, Meeting, MeetingWay, Origin, Split, Tile};
use vef_format::ids::{CommId, Rank};
use vef_format::units::Bytes;

impl Tracer {
    /// The members of a communicator; `meets`: processes meet by it.
    pub(crate) fn membership(&self, comm: usize, meets: bool) -> Membership {
        // SAFETY: a valid handle: MPI returned it to the program or accepted it from it.
        Membership::ask(&self.world(), unsafe { handles::Comm::from_word(comm) }, &self.outsiders(), meets)
    }

    /// The known members of a group.
    pub(crate) fn group_members(&self, group: usize) -> Vec<Rank> {
        // SAFETY: a handle that MPI has accepted from the program.
        comms::group_members(&self.world(), unsafe { handles::Group::from_word(group) }, &self.outsiders())
    }

    /// Gives ranks to members that are not known; returns the first of them and their number.
    fn name_outsiders(&'static self, members: &mut Membership, comm: handles::Comm) -> Option<(Rank, u32)> {
        let count = members.unknown();
        if count == 0 {
            return None;
        }
        let next = self.known(|known| {
            let next = self.tasks.saturating_add(known.comms.outside);
            known.comms.outside += count;
            next
        });
        let outsiders = members.name(&self.world(), comm, next);
        self.outsiders.lock().unwrap_or_else(PoisonError::into_inner).extend(outsiders);
        Some((Rank(next), count))
    }

    /// A copy of the list, because MPI may call the program while it is asked about a group.
    fn outsiders(&self) -> Vec<Outsiders> {
        self.outsiders.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Describes `MPI_COMM_WORLD`, even for programs that only use sessions: other communicators are described by its ranks.
    pub(crate) fn describe_world(&'static self, lane: &mut ThreadLane) -> CommId {
        let members = Membership::world(self.tasks, self.rank);
        let handle = self.abi().predefined.comm_world;
        let (comm, origin) = self.known(|known| known.comms.add(handle, &members, Origin::World));
        members.describe(comm.id, origin, None, self.tasks, &mut |described| {
            lane.writer.define(described, CallSlot::NONE);
        });
        comm.id
    }

    /// Describes the communicator with the processes that spawned this one, if there is one; returns it.
    pub(crate) fn describe_parents(&'static self, lane: &mut ThreadLane, world: CommId) -> Option<CommId> {
        let handle = self.mpi.parent().ok().flatten()?.word();
        // Open MPI's port of the root that spawned it.
        let root = std::env::var("OMPI_PARENT_PORT").unwrap_or_default();
        let meets = (MeetingWay::Parents, world, &*root);
        let origin = Origin::Unseen { ordinal: 0 };
        Some(lane.describe_comm((handle, handle), origin, None, CallSlot::NONE, Some(meets)).id)
    }

    /// Queries the properties of a datatype; its number is assigned later.
    pub(crate) fn ask_datatype(&'static self, handle: usize) -> Datatype<'static> {
        let abi = self.abi();
        let name = abi.basic.named().find(|(_, word)| **word == Some(handle)).map_or("", |(name, _)| name);
        let (size, contiguous) = if handle == abi.predefined.datatype_null {
            // Passed where a datatype is not significant.
            (0, true)
        } else {
            // SAFETY: the program passed the handle to a call that succeeded.
            let datatype = unsafe { handles::Datatype::from_word(handle) };
            let layout = self.mpi.type_layout(datatype).ok().flatten();
            layout.map_or((0, false), |layout| (layout.size, layout.is_contiguous()))
        };
        Datatype { id: Default::default(), size: Bytes(size), contiguous, name }
    }

    /// What a view with this file type repeats, if that has gaps.
    pub(crate) fn ask_tile(&'static self, handle: usize) -> Option<Tile> {
        // SAFETY: the program passed the handle to a call that succeeded.
        let datatype = unsafe { handles::Datatype::from_word(handle) };
        let layout = self.mpi.type_layout(datatype).ok().flatten()?;
        let bytes = |number| u64::try_from(number).ok().map(Bytes);
        let [extent, first, span] = [layout.extent, layout.true_lower, layout.true_extent].map(bytes);
        let tile = Tile { size: Bytes(layout.size), extent: extent?, first: first?, span: span? };
        let has_gaps = !layout.is_contiguous() || tile.first > Bytes::ZERO;
        (has_gaps && layout.size > 0).then_some(tile)
    }
}

impl ThreadLane {
    /// Numbers and describes the communicator of a handle, which `call` made. The second handle is of a communicator with the same members,
    /// because a duplicate that is still being made must not be used. `meets`: how processes meet by it that have not met before.
    #[cold]
    #[inline(never)]
    pub(crate) fn describe_comm(
        &mut self,
        (handle, asked): (usize, usize),
        origin: Origin,
        split: Option<Split>,
        call: CallSlot,
        meets: Option<Meets<'_>>,
    ) -> Comm {
        let (tracer, mut members) = (self.tracer, self.tracer.membership(asked, meets.is_some()));
        // SAFETY: a valid handle: MPI returned it to the program or accepted it from it.
        let comm = unsafe { handles::Comm::from_word(asked) };
        while let Some(met) = tracer.name_outsiders(&mut members, comm) {
            let (way, comm, name) = meets.unwrap_or((MeetingWay::Unseen, CommId(0), ""));
            let meeting = Meeting { first: met.0, count: met.1, way, comm, name };
            self.writer.define(&Action::Meeting(meeting), CallSlot::NONE);
        }
        let (comm, added) = tracer.known(|known| match known.comms.known.get(handle) {
            // Another thread has added it meanwhile.
            Some(comm) => (comm, None),
            None => {
                let (comm, origin) = known.comms.add(handle, &members, origin);
                (comm, Some(origin))
            }
        });
        if let Some(origin) = added {
            members.describe(comm.id, origin, split, tracer.tasks, &mut |described| {
                self.writer.define(described, call);
            });
        }
        comm
    }
}
