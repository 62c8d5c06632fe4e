//! Processes of several worlds: spawning, ports and names.

use crate::call::{Hook, Recorded};
use crate::hooks::handles::output;
use mpi_abi::prototypes::{Call, Kind, Name};
use std::borrow::Cow;
use vef_format::capture::event::{Action, Creation, MeetingWay, Origin};
use vef_format::ids::CommId;

/// Functions of the category `Process`. Ports and names are local.
pub(super) const PROCESS: Hook = Hook::after(|call| {
    if let Some(new) = output(call.call(), Kind::CommPtr) {
        meet(call, call.new_handle(new));
    }
});

/// A call that makes the communicator `handle` with processes of another world.
fn meet(call: &mut Recorded, handle: usize) {
    let args = call.args;
    call.forget(Kind::Comm, handle);
    // MPI_Comm_join has none.
    let comm = args.find(Name::Comm).map(|comm| call.comm(args.handle(comm)));
    let way = match args.call {
        Call::MPI_Comm_accept => MeetingWay::Accepted,
        Call::MPI_Comm_connect => MeetingWay::Connected,
        Call::MPI_Comm_join => MeetingWay::Unseen,
        _ => MeetingWay::Spawned,
    };
    let is_root =
        comm.is_some_and(|comm| args.find(Name::Root).is_some_and(|root| args.int(root) == comm.rank));
    let name = match args.find(Name::PortName) {
        _ if !is_root => Cow::Borrowed(""),
        // SAFETY: the call has succeeded, so the root's name is a string.
        Some(port) => unsafe { args.text(port) },
        None => Cow::Borrowed(args.call.name()),
    };
    let meets = (way, comm.map_or(CommId(0), |comm| comm.id), &*name);
    let (slot, origin) = (call.tracer.slot(args.call), Origin::Unseen { ordinal: 0 });
    let made = call.lane().describe_comm((handle, handle), origin, None, slot, Some(meets)).id;
    // Also outside the phase to which recording is restricted: processes that begin have no phase yet, and record their part.
    call.put(&Action::Creation(Creation { comm: made, request: None }));
}
