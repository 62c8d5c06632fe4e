//! Neighbourhood collectives: blocking, non-blocking and persistent, regular and vector forms. The neighbours are recorded once for each
//! communicator.

use crate::call::{Hook, Recorded};
use crate::hooks::collective::blocks;
use crate::hooks::persistent::keep_template;
use crate::requests::Template;
use mpi_abi::handles::Comm;
use mpi_abi::prototypes::Timing;
use vef_format::capture::event::{Action, CallSlot, Neighbourhood, Topology};
use vef_format::ids::CommRank;
use vef_format::operation::Amounts;
use vef_format::units::Bytes;

pub(super) const NEIGHBOURHOOD: Hook = Hook::after(record);

fn record(call: &mut Recorded) {
    let (args, at, timing) = (call.args, call.args.at, call.args.call.timing());
    let handle = args.handle(at.comm.place());
    let comm = call.comm(handle);
    let (sources, destinations) = comm.neighbours.unwrap_or_else(|| describe(call, handle));
    let mut lists = std::mem::take(&mut call.scratch.counts);
    lists.iter_mut().for_each(Vec::clear);
    let (sent, _, datatype) = blocks(call, (0, destinations), &at.send, &mut lists[0]);
    let (received, ..) = blocks(call, (0, sources), &at.recv, &mut lists[1]);
    let block = |bytes, list: &[u64]| if list.is_empty() { bytes } else { Bytes::ZERO };
    let block = Amounts { send: block(sent, &lists[0]), recv: block(received, &lists[1]) };
    let request = (timing == Timing::Immediate).then(|| call.next_request());
    let part = Neighbourhood::<'static> {
        comm: comm.id,
        block,
        datatype,
        request,
        send_counts: &[],
        recv_counts: &[],
    };
    match timing {
        Timing::Persistent => {
            return keep_template(call, Template::Neighbourhood(call.call(), Box::new((part, lists))));
        }
        _ => {
            let [send_counts, recv_counts] = &lists;
            call.put_shaped(&Action::Neighbourhood(Neighbourhood { send_counts, recv_counts, ..part }));
        }
    }
    call.scratch.counts = lists;
}

/// Records the neighbours of this process in the topology of a communicator; returns the number of sources and of destinations.
#[cold]
fn describe(call: &mut Recorded, handle: usize) -> (u32, u32) {
    // SAFETY: a handle that MPI has just accepted from the program.
    let asked = call.tracer.mpi.comm_neighbours(unsafe { Comm::from_word(handle) }).unwrap_or_default();
    let ranks = |list: Vec<Option<i32>>| -> Vec<Option<CommRank>> {
        list.into_iter().map(|peer| peer.and_then(|rank| u32::try_from(rank).ok()).map(CommRank)).collect()
    };
    let [sources, destinations] = asked.map(ranks);
    let counts = (sources.len() as u32, destinations.len() as u32);
    let described = call.tracer.known(|known| {
        let comm = known.comms.known.get_mut(handle)?;
        comm.neighbours.replace(counts).is_none().then_some(comm.id)
    });
    if let Some(comm) = described {
        let topology = Topology { comm, sources: &sources, destinations: &destinations };
        call.lane().writer.define(&Action::Topology(topology), CallSlot::NONE);
    }
    counts
}
