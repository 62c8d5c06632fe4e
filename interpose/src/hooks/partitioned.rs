//! Partitioned communication: the requests, and the partitions that are ready or have arrived.

use crate::call::{Hook, Recorded};
use crate::hooks::persistent::keep_template;
use crate::requests::Template;
use mpi_abi::prototypes::Name;
use vef_format::capture::event::{Action, Partitioned, PartitionedId, PartitionedInit};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// `MPI_Psend_init`, `MPI_Precv_init`.
pub(super) const INIT: Hook = Hook::after(init);

fn init(call: &mut Recorded) {
    let args = call.args;
    let sends = args.find(Name::Dest).is_some();
    let peer = args.find(Name::Dest).or_else(|| args.find(Name::Source));
    let (Some(peer), Some(tag), Some(comm), Some(partitions), Some(count), Some(datatype)) = (
        peer,
        args.find(Name::Tag),
        args.find(Name::Comm),
        args.find(Name::Partitions),
        args.find(Name::Count),
        args.find(Name::Datatype),
    ) else {
        return;
    };
    let peer = args.int(peer);
    if peer == call.abi().constants.proc_null {
        return keep_template(call, Template::Unrecorded);
    }
    let comm = call.comm(args.handle(comm));
    let partitions = u32::try_from(args.int(partitions)).unwrap_or(0);
    let bytes = call.bytes(args.number(count), args.handle(datatype));
    let datatype = call.datatype(args.handle(datatype)).id;
    let id = PartitionedId(call.tracer.known(|known| known.next_partitioned()));
    let (comm, peer, tag) = (comm.id, CommRank(peer as u32), args.int(tag));
    let init = PartitionedInit { id, sends, comm, peer, tag, partitions, bytes, datatype };
    call.put(&Action::Partitioned(Partitioned::Init(init)));
    keep_template(call, Template::Partitioned(id, bytes));
}

/// The transfer of the request of a call, and the bytes of a partition; `None`: it has no record.
fn transfer(call: &Recorded) -> Option<(PartitionedId, Bytes)> {
    let handle = call.args.handle(call.args.find(Name::Request)?);
    call.tracer.known(|known| match known.templates.get(&handle) {
        Some(&Template::Partitioned(id, bytes)) => Some((id, bytes)),
        _ => None,
    })
}

/// `MPI_Pready`, `MPI_Pready_range`, `MPI_Pready_list`.
pub(super) const READY: Hook = Hook::after(ready);

fn ready(call: &mut Recorded) {
    let Some((id, bytes)) = transfer(call) else { return };
    let args = call.args;
    let int = |name| args.find(name).map(|place| args.int(place));
    let mut put = |first: i32, count: u32| {
        let first = u32::try_from(first).unwrap_or(0);
        call.put(&Action::Partitioned(Partitioned::Ready { id, first, count, bytes }));
    };
    if let Some(partition) = int(Name::Partition) {
        put(partition, 1);
    } else if let (Some(low), Some(high)) = (int(Name::PartitionLow), int(Name::PartitionHigh)) {
        put(low, u32::try_from(i64::from(high) - i64::from(low) + 1).unwrap_or(0));
    } else if let (Some(length), Some(list)) = (int(Name::Length), args.find(Name::ArrayOfPartitions)) {
        // SAFETY: the call has succeeded, so the list is as long as it says.
        let at = |place: usize| unsafe { args.number_at(list, place) } as i32;
        let list: Vec<i32> = (0..usize::try_from(length).unwrap_or(0)).map(at).collect();
        for run in list.chunk_by(|one, next| one.checked_add(1) == Some(*next)) {
            put(run[0], run.len() as u32);
        }
    }
}

/// `MPI_Parrived`.
pub(super) const ARRIVED: Hook = Hook::after(arrived);

fn arrived(call: &mut Recorded) {
    if call.is_failed_poll() {
        return call.record_failed_poll();
    }
    let (Some((id, _)), Some(partition)) = (transfer(call), call.args.find(Name::Partition)) else { return };
    let partition = u32::try_from(call.args.int(partition)).unwrap_or(0);
    call.put(&Action::Partitioned(Partitioned::Arrived { id, partition }));
}
