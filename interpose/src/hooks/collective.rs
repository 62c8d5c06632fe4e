//! Collective operations: blocking, non-blocking and persistent, regular and vector forms.
//!
//! Amounts are defined by [`Amounts`]. Where the send and receive arguments give the same size (a rank's own block in
//! an Allgather), the receive side is used, because only that one is significant with `MPI_IN_PLACE`.

use crate::call::{Ended, Hook, Recorded};
use crate::comms::Comm;
use crate::hooks::persistent::keep_template;
use crate::known::Type;
use crate::requests::Template;
use mpi_abi::prototypes::{Call, Detail as Way, Name, Operation as Function, Timing};
use vef_format::capture::event::{self, Action, DatatypeId, Detail};
use vef_format::ids::CommRank;
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// The positions of a family's arguments.
macro_rules! places {
    ($($module:ident $model:ident: $($constant:ident = $name:ident),*;)*) => { $(
        mod $module {
            use mpi_abi::prototypes::{Call, Name};
            $(pub(super) const $constant: usize = Call::$model.place(Name::$name);)*
        }
    )* };
}
places! {
    bcast MPI_Bcast: COUNT = Count, TYPE = Datatype;
    reduce MPI_Reduce: COUNT = Count, TYPE = Datatype;
    gather MPI_Gather: COUNT = Sendcount, TYPE = Sendtype, RECV_COUNT = Recvcount, RECV_TYPE = Recvtype;
    gatherv MPI_Gatherv: COUNT = Sendcount, TYPE = Sendtype, RECV_COUNTS = Recvcounts, RECV_TYPE = Recvtype;
    scatterv MPI_Scatterv: COUNTS = Sendcounts, TYPE = Sendtype, RECV_COUNT = Recvcount, RECV_TYPE = Recvtype;
    allgatherv MPI_Allgatherv: RECV_COUNTS = Recvcounts, RECV_TYPE = Recvtype;
    alltoallv MPI_Alltoallv: SENDBUF = Sendbuf, COUNTS = Sendcounts, TYPE = Sendtype, RECV_COUNTS = Recvcounts,
        RECV_TYPE = Recvtype;
    alltoallw MPI_Alltoallw: SENDBUF = Sendbuf, COUNTS = Sendcounts, TYPES = Sendtypes, RECV_COUNTS = Recvcounts,
        RECV_TYPES = Recvtypes;
    reduce_scatter MPI_Reduce_scatter: RECV_COUNTS = Recvcounts, TYPE = Datatype;
    reduce_scatter_block MPI_Reduce_scatter_block: RECV_COUNT = Recvcount, TYPE = Datatype;
}

/// The operation of a collective function.
fn operation(call: Call) -> Operation {
    macro_rules! same {
        ($($name:ident)*) => {
            match call.detail() {
                $(Way::Collective(Function::$name) => Operation::$name,)*
                _ => Operation::Barrier,
            }
        };
    }
    same!(Bcast Reduce Allreduce Gather Scatter Allgather Barrier Alltoall Gatherv Scatterv Allgatherv Alltoallv
        Alltoallw ReduceScatter ReduceScatterBlock Scan Exscan)
}

/// All collective functions.
pub(super) struct Collective;

impl Hook for Collective {
    fn after(&self, call: &mut Recorded, ended: Ended) {
        if ended.is_success() {
            record(call);
        }
    }
}

fn record(call: &mut Recorded) {
    let args = call.args;
    let operation = operation(args.call());
    let Some(comm) = args.find(Name::Comm).map(|place| call.comm(args.handle(place))) else { return };
    let root = args.find(Name::Root).map(|place| args.int(place));
    // On an inter-communicator the arguments have another meaning.
    if comm.foreign {
        let bytes = sent_between_groups(call, operation, root);
        return call.put_other(bytes, Detail::None);
    }
    let at_root = root == Some(comm.rank);
    let (mut send_counts, mut recv_counts) =
        (std::mem::take(&mut call.scratch.send_counts), std::mem::take(&mut call.scratch.recv_counts));
    send_counts.clear();
    recv_counts.clear();
    let moved = measure(call, operation, comm, at_root, (&mut send_counts, &mut recv_counts));
    let (count, datatype, recv_datatype) = counted(call, operation, at_root);
    let request = call.next_request();
    let timing = args.call().timing();
    let part = event::Collective::<'static> {
        operation,
        comm: comm.id,
        root: root.map(|root| CommRank(root as u32)),
        amounts: moved.amounts,
        count,
        datatype: datatype.unwrap_or(moved.datatype),
        recv_datatype,
        request: (timing == Timing::Immediate).then_some(request),
        send_counts: &[],
        recv_counts: &[],
    };
    if timing == Timing::Persistent {
        return keep_template(call, Template::Collective(Box::new((part, [send_counts, recv_counts]))));
    }
    let part = event::Collective { send_counts: &send_counts, recv_counts: &recv_counts, ..part };
    call.put_shaped(&Action::Collective(part), 0);
    if let Some(place) = args.find(Name::Request) {
        call.insert_made(place, request, 0);
    }
    (call.scratch.send_counts, call.scratch.recv_counts) = (send_counts, recv_counts);
}

/// The element count of the call, and the datatypes of both sides where they differ from that of the amounts.
fn counted(
    call: &mut Recorded,
    operation: Operation,
    at_root: bool,
) -> (u64, Option<DatatypeId>, Option<DatatypeId>) {
    let args = call.args;
    let elements = |place| u64::try_from(args.number(place)).unwrap_or(0);
    let in_place = args.find(Name::Sendbuf).is_some_and(|place| args.is_in_place(place));
    match operation {
        Operation::Gather | Operation::Allgather | Operation::Alltoall
            if (at_root || operation != Operation::Gather) && !in_place =>
        {
            let sent = call.datatype(args.handle(gather::TYPE)).id;
            let received = call.datatype(args.handle(gather::RECV_TYPE)).id;
            (elements(gather::COUNT), Some(sent), Some(received))
        }
        Operation::Alltoallv if !in_place => {
            let received = call.datatype(args.handle(alltoallv::RECV_TYPE)).id;
            (0, None, Some(received))
        }
        Operation::Gather if at_root => (elements(gather::RECV_COUNT), None, None),
        Operation::Allgather | Operation::Alltoall => (elements(gather::RECV_COUNT), None, None),
        Operation::ReduceScatterBlock => (elements(reduce_scatter_block::RECV_COUNT), None, None),
        Operation::Scatter if !at_root => (elements(gather::RECV_COUNT), None, None),
        Operation::Scatterv if !at_root => (elements(scatterv::RECV_COUNT), None, None),
        _ => {
            let count = args.find(Name::Count).or_else(|| args.find(Name::Sendcount));
            (count.map_or(0, elements), None, None)
        }
    }
}

/// The amounts of this rank, and their datatype.
struct Moved {
    amounts: Amounts,
    datatype: DatatypeId,
}

/// Computes the amounts of this rank, and its counts by peer.
fn measure(
    call: &mut Recorded,
    operation: Operation,
    comm: Comm,
    at_root: bool,
    (send_counts, recv_counts): (&mut Vec<u64>, &mut Vec<u64>),
) -> Moved {
    let args = call.args;
    let others = i64::from(comm.size) - 1;
    let all = i64::from(comm.size);
    let none = Bytes::ZERO;
    let moved = |datatype: Type, send: Bytes, recv: Bytes| Moved {
        amounts: Amounts { send, recv },
        datatype: datatype.id,
    };
    // The bytes of `times` blocks.
    let mut blocks = |times: i64, count: usize, datatype: usize| {
        let datatype = call.datatype(args.handle(datatype));
        (datatype, datatype.bytes(times.saturating_mul(args.number(count))))
    };
    match operation {
        Operation::Barrier => Moved { amounts: Amounts::default(), datatype: DatatypeId::default() },
        Operation::Bcast => {
            let (datatype, bytes) = blocks(1, bcast::COUNT, bcast::TYPE);
            if at_root { moved(datatype, bytes, none) } else { moved(datatype, none, bytes) }
        }
        Operation::Reduce => {
            let (datatype, bytes) = blocks(1, reduce::COUNT, reduce::TYPE);
            if at_root { moved(datatype, none, bytes) } else { moved(datatype, bytes, none) }
        }
        Operation::Allreduce | Operation::Scan | Operation::Exscan => {
            let (datatype, bytes) = blocks(1, reduce::COUNT, reduce::TYPE);
            moved(datatype, bytes, bytes)
        }
        Operation::Gather if at_root => {
            let (datatype, bytes) = blocks(others, gather::RECV_COUNT, gather::RECV_TYPE);
            moved(datatype, none, bytes)
        }
        Operation::Gather => {
            let (datatype, bytes) = blocks(1, gather::COUNT, gather::TYPE);
            moved(datatype, bytes, none)
        }
        Operation::Gatherv if !at_root => {
            let (datatype, bytes) = blocks(1, gatherv::COUNT, gatherv::TYPE);
            moved(datatype, bytes, none)
        }
        Operation::Gatherv => {
            let datatype = call.datatype(args.handle(gatherv::RECV_TYPE));
            let (sum, own) = fill(call, comm, recv_counts, gatherv::RECV_COUNTS, Element::Of(datatype));
            moved(datatype, none, sum - own)
        }
        Operation::Scatter if at_root => {
            let (datatype, bytes) = blocks(others, gather::COUNT, gather::TYPE);
            moved(datatype, bytes, none)
        }
        Operation::Scatter => {
            let (datatype, bytes) = blocks(1, gather::RECV_COUNT, gather::RECV_TYPE);
            moved(datatype, none, bytes)
        }
        Operation::Scatterv if !at_root => {
            let (datatype, bytes) = blocks(1, scatterv::RECV_COUNT, scatterv::RECV_TYPE);
            moved(datatype, none, bytes)
        }
        Operation::Scatterv => {
            let datatype = call.datatype(args.handle(scatterv::TYPE));
            let (sum, own) = fill(call, comm, send_counts, scatterv::COUNTS, Element::Of(datatype));
            moved(datatype, sum - own, none)
        }
        Operation::Allgather => {
            let (_, block) = blocks(1, gather::RECV_COUNT, gather::RECV_TYPE);
            let (datatype, bytes) = blocks(all, gather::RECV_COUNT, gather::RECV_TYPE);
            moved(datatype, block, bytes)
        }
        Operation::Allgatherv => {
            let datatype = call.datatype(args.handle(allgatherv::RECV_TYPE));
            let (sum, own) = fill(call, comm, recv_counts, allgatherv::RECV_COUNTS, Element::Of(datatype));
            moved(datatype, own, sum)
        }
        Operation::Alltoall => {
            let (datatype, bytes) = blocks(all, gather::RECV_COUNT, gather::RECV_TYPE);
            moved(datatype, bytes, bytes)
        }
        Operation::Alltoallv => {
            let received = call.datatype(args.handle(alltoallv::RECV_TYPE));
            let (recv, _) = fill(call, comm, recv_counts, alltoallv::RECV_COUNTS, Element::Of(received));
            if args.is_in_place(alltoallv::SENDBUF) {
                send_counts.extend_from_slice(recv_counts);
                return moved(received, recv, recv);
            }
            let sent = call.datatype(args.handle(alltoallv::TYPE));
            let (send, _) = fill(call, comm, send_counts, alltoallv::COUNTS, Element::Of(sent));
            moved(sent, send, recv)
        }
        Operation::Alltoallw => {
            let types = Element::Each(alltoallw::RECV_TYPES);
            let (recv, _) = fill(call, comm, recv_counts, alltoallw::RECV_COUNTS, types);
            if args.is_in_place(alltoallw::SENDBUF) {
                send_counts.extend_from_slice(recv_counts);
                let datatype = sparsest(call, comm, alltoallw::RECV_COUNTS, alltoallw::RECV_TYPES);
                return moved(datatype, recv, recv);
            }
            let types = Element::Each(alltoallw::TYPES);
            let (send, _) = fill(call, comm, send_counts, alltoallw::COUNTS, types);
            moved(sparsest(call, comm, alltoallw::COUNTS, alltoallw::TYPES), send, recv)
        }
        Operation::ReduceScatter => {
            let datatype = call.datatype(args.handle(reduce_scatter::TYPE));
            let (sum, own) =
                fill(call, comm, recv_counts, reduce_scatter::RECV_COUNTS, Element::Of(datatype));
            moved(datatype, sum, own)
        }
        Operation::ReduceScatterBlock => {
            let (_, block) = blocks(1, reduce_scatter_block::RECV_COUNT, reduce_scatter_block::TYPE);
            let (datatype, sum) = blocks(all, reduce_scatter_block::RECV_COUNT, reduce_scatter_block::TYPE);
            moved(datatype, sum, block)
        }
    }
}

/// The element type of a block.
#[derive(Clone, Copy)]
enum Element {
    /// The same datatype for all peers.
    Of(Type),
    /// A datatype per peer: the position of their array.
    Each(usize),
}

/// Fills a list with the bytes for each member, from the array of counts; returns their sum and this rank's part.
fn fill(
    call: &mut Recorded,
    comm: Comm,
    list: &mut Vec<u64>,
    counts: usize,
    element: Element,
) -> (Bytes, Bytes) {
    let args = call.args;
    list.extend((0..comm.size as usize).map(|i| {
        // SAFETY: the call has succeeded, so its arrays have an element for each member.
        let count = unsafe { args.number_at(counts, i) };
        match element {
            Element::Of(datatype) => datatype.bytes(count).0,
            // With a count of 0 the datatype may be invalid.
            Element::Each(_) if count == 0 => 0,
            // SAFETY: as above.
            Element::Each(types) => call.datatype(unsafe { args.handle_at(types, i) }).bytes(count).0,
        }
    }));
    let own = list.get(comm.rank as usize).copied().unwrap_or(0);
    (Bytes(list.iter().fold(0, |sum, &bytes| sum.wrapping_add(bytes))), Bytes(own))
}

/// Of the datatypes with a count above 0, the first that has gaps, else the last.
fn sparsest(call: &mut Recorded, comm: Comm, counts: usize, types: usize) -> Type {
    let args = call.args;
    let mut found = Type::default();
    for i in 0..comm.size as usize {
        // SAFETY: as in `fill`.
        unsafe {
            if !found.sparse && args.number_at(counts, i) != 0 {
                found = call.datatype(args.handle_at(types, i));
            }
        }
    }
    found
}

/// The bytes that this rank sends in a collective on an inter-communicator, as far as its own arguments tell: one block.
fn sent_between_groups(call: &mut Recorded, operation: Operation, root: Option<i32>) -> Bytes {
    let args = call.args;
    let sends = match root {
        None => true,
        // The root passes MPI_ROOT, its group MPI_PROC_NULL, the other group the root's rank.
        Some(root) if matches!(operation, Operation::Bcast | Operation::Scatter) => {
            root == call.abi().constants.root
        }
        Some(root) => root >= 0,
    };
    let either = |first, second| args.find(first).or_else(|| args.find(second));
    let block = either(Name::Count, Name::Sendcount).zip(either(Name::Datatype, Name::Sendtype));
    match block {
        Some((count, datatype)) if sends && args.number(count) != 0 => {
            call.datatype(args.handle(datatype)).bytes(args.number(count))
        }
        _ => Bytes::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::prototypes::Category;

    #[test]
    fn every_collective_function_has_its_operation_and_its_arguments_in_place() {
        use mpi_abi::prototypes::Name::{Count, Datatype, Recvcount, Recvtype, Sendcount, Sendtype};
        for call in Call::all().filter(|call| call.category() == Category::Collective) {
            let operation = operation(call);
            let stem = call.name().trim_end_matches("_c").trim_end_matches("_init").to_lowercase();
            let plain = operation.name().to_lowercase();
            assert!(stem == format!("mpi_{plain}") || stem == format!("mpi_i{plain}"), "{}", call.name());
            let like = |model: Call, names: &[Name]| assert!(call.is_like(model, names), "{}", call.name());
            match operation {
                Operation::Allreduce | Operation::Scan | Operation::Exscan => {
                    like(Call::MPI_Reduce, &[Count, Datatype]);
                }
                Operation::Gather | Operation::Scatter | Operation::Allgather | Operation::Alltoall => {
                    like(Call::MPI_Gather, &[Sendcount, Sendtype, Recvcount, Recvtype]);
                }
                _ => {}
            }
        }
    }
}
