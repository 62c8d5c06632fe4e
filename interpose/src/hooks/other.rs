//! Calls that a trace cannot represent: their name and bytes are recorded.

use crate::call::{Ended, Hook, Recorded};
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
    fn after(&self, call: &mut Recorded, ended: Ended) {
        let args = call.args;
        // SAFETY: a call that has succeeded has set its flag. Failed polls are counted, not recorded.
        let in_vain = || args.find(Name::Flag).is_some_and(|flag| unsafe { args.int_at(flag, 0) } == 0);
        if !ended.is_success() || in_vain() {
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
    fn after(&self, call: &mut Recorded, ended: Ended) {
        if ended.is_success() {
            let bytes = moved(call);
            keep_template(call, Template::Other(call.call(), bytes));
        }
    }
}

/// The bytes that this rank sends; for functions that only receive, those received.
fn moved(call: &mut Recorded) -> Bytes {
    let args = call.args;
    // SAFETY: the call has succeeded, so its arrays have an element for each neighbour.
    unsafe {
        if let Some((types, counts)) = args.find(Name::Sendtypes).zip(args.find(Name::Sendcounts)) {
            return (0..destinations(call)).fold(Bytes::ZERO, |sum, i| match args.number_at(counts, i) {
                // With a count of 0 the datatype may be invalid.
                0 => sum,
                count => plus(sum, call.datatype(args.handle_at(types, i)).bytes(count)),
            });
        }
        let datatype = args.find(Name::Sendtype).or_else(|| args.find(Name::Datatype));
        let Some(datatype) = datatype.map(|place| args.handle(place)) else { return Bytes::ZERO };
        if let Some(counts) = args.find(Name::Sendcounts) {
            let datatype = call.datatype(datatype);
            let counts = (0..destinations(call)).map(|i| datatype.bytes(args.number_at(counts, i)));
            return counts.fold(Bytes::ZERO, plus);
        }
        let times = match args.find(Name::Partitions) {
            Some(partitions) => args.number(partitions),
            None => destinations(call) as i64,
        };
        let count = args.find(Name::Sendcount).or_else(|| args.find(Name::Count));
        match count.map_or(0, |count| args.number(count)).saturating_mul(times) {
            // With a count of 0 the datatype may be invalid.
            0 => Bytes::ZERO,
            elements => call.datatype(datatype).bytes(elements),
        }
    }
}

fn plus(sum: Bytes, bytes: Bytes) -> Bytes {
    Bytes(sum.0.wrapping_add(bytes.0))
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
