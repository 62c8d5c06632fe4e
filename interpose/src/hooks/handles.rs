//! Creation of communicators and datatypes, and freeing of any objects.

use crate::call::{Hook, Noted, Recorded};
use crate::shapes::UsedObject;
use crate::tracer::State;
use mpi_abi::prototypes::{Call, Category, Kind, Name};
use vef_format::capture::event::{Action, Creation, Detail, FileId, Origin, Split, WindowId};
use vef_format::ids::CommId;
use vef_format::units::Bytes;

/// The position of the parent in functions that make a communicator from another one.
const PARENT: usize = Call::MPI_Comm_dup.place(Name::Comm);
const TAG: usize = Call::MPI_Comm_create_group.place(Name::Tag);
const COLOR: usize = Call::MPI_Comm_split.place(Name::Color);
const KEY: usize = Call::MPI_Comm_split.place(Name::Key);

/// Functions that make a communicator from another one or from a group.
pub(super) const COMM_CREATE: Hook = Hook::after(create_comm);

fn create_comm(call: &mut Recorded) {
    use Call::*;
    let Some(new) = output(call.call(), Kind::CommPtr) else { return };
    let args = call.args;
    let origin = match args.call {
        // The members have different parents.
        MPI_Intercomm_merge
        | MPI_Intercomm_create
        | MPI_Comm_create_from_group
        | MPI_Intercomm_create_from_groups => Origin::Unseen { ordinal: 0 },
        MPI_Comm_create_group => {
            Origin::Group { parent: call.comm(args.handle(PARENT)).id, tag: args.int(TAG), ordinal: 0 }
        }
        _ => {
            let parent = call.comm(args.handle(PARENT)).id;
            // Counted even if this rank gets no communicator, because the others count this call.
            Origin::Child { parent, ordinal: call.tracer.known(|known| known.comms.count_child(parent)) }
        }
    };
    let parent = if let Origin::Child { parent, .. } = origin { Some(parent) } else { None };
    let handle = call.new_handle(new);
    // A duplicate that is still being made must not be used; its parent has the same members.
    let duplicate = matches!(args.call, MPI_Comm_idup | MPI_Comm_idup_with_info);
    let made = (handle != call.abi().predefined.comm_null).then(|| {
        // The handle may be that of a communicator whose end was not recorded.
        call.forget(Kind::Comm, handle);
        let asked = if duplicate { args.handle(PARENT) } else { handle };
        let split =
            (args.call == MPI_Comm_split).then(|| Split { color: args.int(COLOR), key: args.int(KEY) });
        let slot = call.tracer.slot(args.call);
        call.lane().describe_comm((handle, asked), origin, split, slot, None).id
    });
    // Outside the phase to which recording is restricted, only the definition is needed.
    if call.tracer.state() == State::Recording
        && let Some(comm) = parent.or(made)
    {
        let request = duplicate.then(|| call.next_request());
        call.put(&Action::Creation(Creation { comm, request }));
    }
}

/// `MPI_Comm_free`, `MPI_Comm_disconnect`, `MPI_Type_free`, `MPI_Win_free`, `MPI_File_close`.
pub(super) const FREE: Hook = Hook { before: forget, after: freed, ..Hook::NONE };

/// Removes the object before the call: once it is freed, another thread may get the same handle.
fn forget(call: &mut Recorded) {
    // SAFETY: these functions have one parameter, the address of a handle.
    let handle = unsafe { call.args.handle_at(0, 0) };
    let kind = call.call().parameters()[0].kind.target();
    if let Some(object) = kind.and_then(|kind| call.forget(kind, handle)) {
        call.noted = Noted::Object(object);
    }
}

fn freed(call: &mut Recorded) {
    let detail = match (&call.noted, call.call().category()) {
        (&Noted::Object(UsedObject::Comm(id)), _) => return call.put(&Action::CommunicatorFree(CommId(id))),
        (&Noted::Object(UsedObject::Window(id)), _) => Detail::WindowFree(WindowId(id)),
        (&Noted::Object(UsedObject::File(id)), _) => Detail::FileClose(FileId(id)),
        (_, Category::WinFree | Category::FileClose) => Detail::None,
        _ => return,
    };
    call.put_other(Bytes::ZERO, detail);
}

/// Functions that make a datatype from others: the handle may be that of a datatype whose end was not recorded.
/// Functions without an old type (`MPI_Type_create_f90_real`) return the same datatype each time.
pub(super) const TYPE_CREATE: Hook = Hook::after(|call| {
    let made_of = [Name::Oldtype, Name::ArrayOfTypes].into_iter().find_map(|name| call.args.find(name));
    if let Some(new) = made_of.and_then(|_| output(call.call(), Kind::DatatypePtr)) {
        call.forget(Kind::Datatype, call.new_handle(new));
    }
});

/// The position of the last parameter of a kind.
pub(crate) fn output(call: Call, kind: Kind) -> Option<usize> {
    call.parameters().iter().rposition(|parameter| parameter.kind == kind)
}
