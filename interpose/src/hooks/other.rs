//! Calls that a trace cannot represent: their name and bytes are recorded.

use crate::call::{Hook, Recorded};
use crate::hooks::handles::output;
use crate::hooks::persistent::keep_template;
use crate::requests::Template;
use mpi_abi::handles::Comm;
use mpi_abi::prototypes::{Kind, Name};
use vef_format::capture::event::Detail;
use vef_format::units::Bytes;

/// Spawning, neighbourhood collectives, `MPI_Pready` and its variants.
pub(super) struct Other;

impl Hook for Other {
    fn after(&self, call: &mut Recorded) {
        let args = call.args;
        // SAFETY: a call that has succeeded has set its flag. Failed polls are counted, not recorded.
        if args.find(Name::Flag).is_some_and(|flag| unsafe { args.int_at(flag, 0) } == 0) {
            return;
        }
        if let Some(new) = output(args.call(), Kind::CommPtr) {
            // SAFETY: the call has set it.
            let handle = unsafe { args.handle_at(new, 0) };
            call.forget(Kind::Comm, handle);
        }
        let bytes = moved(call);
        call.put_other(bytes, Detail::None);
    }
}

/// Persistent neighbourhood collectives and partitioned transfers: each start is recorded under the name of the
/// function that made the request.
pub(super) struct Persistent;

impl Hook for Persistent {
    fn after(&self, call: &mut Recorded) {
        let bytes = moved(call);
        keep_template(call, Template::Other(call.call(), bytes));
    }
}

/// The bytes that this rank sends; for functions that only receive, those received.
fn moved(call: &mut Recorded) -> Bytes {
    let args = call.args;
    let number = |name| args.find(name).map(|place| args.number(place));
    let datatype = args.find(Name::Sendtype).or_else(|| args.find(Name::Datatype));
    let datatype = datatype.map(|place| args.handle(place));
    let Some(counts) = args.find(Name::Sendcounts) else {
        let Some(datatype) = datatype else { return Bytes::ZERO };
        let times = number(Name::Partitions).unwrap_or_else(|| destinations(call) as i64);
        let count = number(Name::Sendcount).or_else(|| number(Name::Count)).unwrap_or(0);
        return call.bytes(count.saturating_mul(times), datatype);
    };
    let types = args.find(Name::Sendtypes);
    (0..destinations(call)).fold(Bytes::ZERO, |sum, i| {
        // SAFETY: the call has succeeded, so its arrays have an element for each neighbour.
        let (count, each) =
            unsafe { (args.number_at(counts, i), types.map(|types| args.handle_at(types, i))) };
        let block = each.or(datatype).map_or(Bytes::ZERO, |datatype| call.bytes(count, datatype));
        Bytes(sum.0.wrapping_add(block.0))
    })
}

/// The number of destinations of this process in the topology of the call's communicator.
fn destinations(call: &mut Recorded) -> usize {
    let Some(comm) = call.args.find(Name::Comm).map(|place| call.args.handle(place)) else { return 0 };
    if let Some(known) = call.comm(comm).destinations {
        return known as usize;
    }
    // SAFETY: a handle that MPI has just accepted from the program.
    let asked = call.tracer.mpi.comm_neighbours(unsafe { Comm::from_word(comm) }).unwrap_or_default().1;
    if let Some(comm) = call.tracer.known().comms.known.get_mut(comm) {
        comm.destinations = Some(asked as u32);
    }
    asked
}
