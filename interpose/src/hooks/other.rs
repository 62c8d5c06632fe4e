//! Calls that a trace cannot represent: their name and bytes are recorded.

use crate::call::{Hook, Recorded};
use crate::hooks::collective::blocks;
use crate::hooks::handles::output;
use crate::hooks::persistent::keep_template;
use crate::places::ArgumentPlaces;
use crate::requests::Template;
use mpi_abi::handles::Comm;
use mpi_abi::prototypes::{Kind, Name};
use vef_format::capture::event::Detail;
use vef_format::units::Bytes;

/// Spawning, neighbourhood collectives, `MPI_Pready` and its variants.
pub(super) const OTHER: Hook = Hook::after(|call| {
    // Failed polls are counted, not recorded.
    if call.is_failed_poll() {
        return;
    }
    if let Some(new) = output(call.call(), Kind::CommPtr) {
        call.forget(Kind::Comm, call.new_handle(new));
    }
    let bytes = moved(call);
    call.put_other(bytes, Detail::None);
});

/// Persistent neighbourhood collectives and partitioned transfers: each start is recorded under the name of the
/// function that made the request.
pub(super) const PERSISTENT: Hook = Hook::after(|call| {
    let bytes = moved(call);
    keep_template(call, Template::Other(call.call(), bytes));
});

/// The bytes that this rank sends; for functions that only receive, those received.
fn moved(call: &mut Recorded) -> Bytes {
    let blocks_sent = match call.args.find(Name::Partitions) {
        Some(partitions) => call.args.int(partitions) as u32,
        None => destinations(call),
    };
    if blocks_sent == 0 {
        return Bytes::ZERO;
    }
    let mut list = std::mem::take(&mut call.scratch.counts[0]);
    list.clear();
    let at = call.args.at;
    let bytes = blocks(call, (0, blocks_sent), &at.send, &mut list).1;
    call.scratch.counts[0] = list;
    bytes
}

/// The number of destinations of this process in the topology of the call's communicator.
fn destinations(call: &mut Recorded) -> u32 {
    let ArgumentPlaces { comm, send, .. } = call.args.at;
    let Some(comm) = comm.get().filter(|_| send.datatype.get().is_some()) else { return 0 };
    let comm = call.args.handle(comm);
    if let Some(known) = call.comm(comm).destinations {
        return known;
    }
    // SAFETY: a handle that MPI has just accepted from the program.
    let asked =
        call.tracer.mpi.comm_neighbours(unsafe { Comm::from_word(comm) }).unwrap_or_default().1 as u32;
    call.tracer.known(|known| {
        if let Some(comm) = known.comms.known.get_mut(comm) {
            comm.destinations = Some(asked);
        }
    });
    asked
}
