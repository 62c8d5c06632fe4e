//! Creation and freeing of communicators and datatypes.

use crate::call::{Ended, Hook, Recorded};
use crate::comms::CommOrigin;
use mpi_abi::prototypes::{Call, Kind, Name};
use vef_format::capture::event::{Action, Split};

/// The position of the parent in functions that make a communicator from another one.
const PARENT: usize = Call::MPI_Comm_dup.place(Name::Comm);
const TAG: usize = Call::MPI_Comm_create_group.place(Name::Tag);
const COLOR: usize = Call::MPI_Comm_split.place(Name::Color);
const KEY: usize = Call::MPI_Comm_split.place(Name::Key);

/// Functions that make a communicator from another one or from a group.
pub(super) struct CommCreate;

impl Hook for CommCreate {
    fn after(&self, call: &mut Recorded, ended: Ended) {
        use Call::*;
        let Some(new) = output(call.call(), Kind::CommPtr).filter(|_| ended.is_success()) else { return };
        let args = call.args;
        let origin = match args.call() {
            // The members have different parents.
            MPI_Intercomm_merge | MPI_Comm_create_from_group | MPI_Intercomm_create_from_groups => {
                CommOrigin::Unseen
            }
            MPI_Comm_create_group => CommOrigin::Group(call.comm(args.handle(PARENT)).id, args.int(TAG)),
            _ => {
                let parent = call.comm(args.handle(PARENT)).id;
                // Counted even if this rank gets no communicator, because the others count this call.
                CommOrigin::Child(parent, call.tracer.known().comms.count_child(parent))
            }
        };
        // SAFETY: the call has succeeded, and so has set it.
        let handle = unsafe { args.handle_at(new, 0) };
        if handle == call.abi().predefined.comm_null {
            return;
        }
        // The handle may be that of a communicator whose end was not recorded.
        call.forget_comm(handle);
        // A duplicate that is still being made must not be used; its parent has the same members.
        let duplicate = matches!(args.call(), MPI_Comm_idup | MPI_Comm_idup_with_info);
        let asked = if duplicate { args.handle(PARENT) } else { handle };
        let split =
            (args.call() == MPI_Comm_split).then(|| Split { color: args.int(COLOR), key: args.int(KEY) });
        call.describe_comm(handle, asked, origin, split, true);
    }
}

/// `MPI_Comm_free`, `MPI_Comm_disconnect`.
pub(super) struct CommFree;

const FREED_COMM: usize = Call::MPI_Comm_free.place(Name::Comm);

impl Hook for CommFree {
    fn before(&self, call: &mut Recorded) {
        // Removed before the call: once it is freed, another thread may get the same handle.
        // SAFETY: the program passed a handle.
        let handle = unsafe { call.args.handle_at(FREED_COMM, 0) };
        if let Some(freed) = call.forget_comm(handle) {
            (call.saved, call.saved_flag) = (freed.id.index(), true);
        }
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        if call.saved_flag && ended.is_success() {
            call.put(&Action::CommunicatorFree(vef_format::ids::CommId(call.saved as u32)));
        }
    }
}

/// `MPI_Type_free`.
pub(super) struct TypeFree;

impl Hook for TypeFree {
    fn before(&self, call: &mut Recorded) {
        const FREED: usize = Call::MPI_Type_free.place(Name::Datatype);
        // SAFETY: the program passed one.
        let handle = unsafe { call.args.handle_at(FREED, 0) };
        call.forget_datatype(handle);
    }
}

/// Functions that make a datatype from others: the handle may be that of a datatype whose end was not recorded.
/// Functions without an old type (`MPI_Type_create_f90_real`) return the same datatype each time.
pub(super) struct TypeCreate;

impl Hook for TypeCreate {
    fn after(&self, call: &mut Recorded, ended: Ended) {
        let made_of = [Name::Oldtype, Name::ArrayOfTypes].into_iter().find_map(|name| call.args.find(name));
        let new = output(call.call(), Kind::DatatypePtr);
        if let Some(new) = new.filter(|_| ended.is_success() && made_of.is_some()) {
            // SAFETY: the call has succeeded, and so has set it.
            let handle = unsafe { call.args.handle_at(new, 0) };
            call.forget_datatype(handle);
        }
    }
}

/// `MPI_Grequest_start`: its request has no record.
pub(super) struct Generalized;

impl Hook for Generalized {}

/// The position of the last parameter of a kind.
pub(crate) fn output(call: Call, kind: Kind) -> Option<usize> {
    call.parameters().iter().rposition(|parameter| parameter.kind == kind)
}
