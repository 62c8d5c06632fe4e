//! Collective operations: blocking, non-blocking and persistent, regular and vector forms.
//!
//! Amounts are defined by [`Amounts`]. Where the send and receive arguments give the same size (a rank's own block in
//! an Allgather), the receive side is used, because only that one is significant with `MPI_IN_PLACE`.

use crate::call::{Hook, Recorded};
use crate::comms::Comm;
use crate::hooks::persistent::keep_template;
use crate::known::KnownType;
use crate::places::Side;
use crate::requests::Template;
use mpi_abi::prototypes::{Call, CallDetail, Timing};
use vef_format::capture::event::{Action, Collective, DatatypeId};
use vef_format::ids::CommRank;
use vef_format::operation::{Amounts, Operation, Root, Sizing};
use vef_format::units::Bytes;

/// The operation of a function of this hook.
fn operation(call: Call) -> Operation {
    if let CallDetail::Collective(operation) = call.detail() { operation } else { Operation::Barrier }
}

pub(super) const COLLECTIVE: Hook = Hook::after(record);

fn record(call: &mut Recorded) {
    let args = call.args;
    let operation = operation(args.call);
    let at = args.at;
    let comm = call.comm(args.handle(at.comm.place()));
    let root = at.root.get().map(|root| args.int(root));
    let mut lists = std::mem::take(&mut call.scratch.counts);
    lists.iter_mut().for_each(Vec::clear);
    if comm.remote > 0 {
        // The arguments have another meaning.
        let (root, amounts, datatype) = measure_between(call, operation, comm, root, &mut lists);
        return put(call, comm, lists, (operation, root), (amounts, 0, datatype, None));
    }
    let at_root = root == Some(comm.rank);
    let in_place = at.sendbuf.get().is_some_and(|buffer| args.is_in_place(buffer));
    let (amounts, datatype, recv_datatype) = measure(call, operation, comm, (at_root, in_place), &mut lists);
    let Side { count, .. } = match operation {
        Operation::Gather | Operation::Allgather | Operation::Alltoall if in_place => at.recv,
        Operation::Scatter | Operation::Scatterv if !at_root => at.recv,
        Operation::ReduceScatterBlock => at.recv,
        _ => at.send,
    };
    let count = count.get().filter(|_| !count.is_array());
    let count = count.map_or(0, |count| u64::try_from(args.number(count)).unwrap_or(0));
    let root = root.map(|root| CommRank(root as u32));
    put(call, comm, lists, (operation, root), (amounts, count, datatype, recv_datatype));
}

/// Records the call, or keeps its template; `lists`: the bytes by peer.
#[inline]
fn put(
    call: &mut Recorded,
    comm: Comm,
    lists: [Vec<u64>; 2],
    (operation, root): (Operation, Option<CommRank>),
    (amounts, count, datatype, recv_datatype): (Amounts, u64, DatatypeId, Option<DatatypeId>),
) {
    let (args, at) = (call.args, call.args.at);
    let request = call.next_request();
    let timing = args.call.timing();
    let part = Collective::<'static> {
        operation,
        comm: comm.id,
        root,
        amounts,
        count,
        datatype,
        recv_datatype,
        request: (timing == Timing::Immediate).then_some(request),
        send_counts: &[],
        recv_counts: &[],
    };
    if timing == Timing::Persistent {
        let comm = call.comm_of_persistent(args.handle(at.comm.place()), comm);
        return keep_template(call, Template::Collective(Box::new((Collective { comm, ..part }, lists))));
    }
    let [send_counts, recv_counts] = &lists;
    call.put_shaped(&Action::Collective(Collective { send_counts, recv_counts, ..part }));
    call.scratch.counts = lists;
}

/// The amounts of this rank and their datatype; if both sides have a datatype of their own, also that of the receiving side.
/// In vector forms the lists get the bytes by peer: those sent and those received.
fn measure(
    call: &mut Recorded,
    operation: Operation,
    comm: Comm,
    (at_root, in_place): (bool, bool),
    [send_counts, recv_counts]: &mut [Vec<u64>; 2],
) -> (Amounts, DatatypeId, Option<DatatypeId>) {
    let at = call.args.at;
    let members = (comm.rank, comm.size);
    // One side is significant, except in all-to-all operations.
    let sends = match (operation.root(), operation.sizing()) {
        (Some(Root::Sends), _) => at_root,
        (Some(Root::Receives), _) => !at_root,
        (None, _) => false,
    } || operation.sizing() == Sizing::Vector;
    let (own, sum, datatype) = match sends {
        true => blocks(call, members, &at.send, send_counts),
        false => blocks(call, members, &at.recv, recv_counts),
    };
    let mut amounts = operation.amounts(at_root, own, sum);
    if let Sizing::EqualPairs | Sizing::Pairs = operation.sizing() {
        if in_place {
            send_counts.extend_from_slice(recv_counts);
            return (amounts, datatype, None);
        }
        let (_, sent, sent_datatype) = blocks(call, members, &at.send, send_counts);
        amounts.send = sent;
        return (amounts, sent_datatype, (operation != Operation::Alltoallw).then_some(datatype));
    }
    match at.send.datatype.get() {
        Some(sent)
            if !in_place
                && (operation == Operation::Allgather || operation == Operation::Gather && at_root) =>
        {
            (amounts, call.datatype(call.args.handle(sent)).id, Some(datatype))
        }
        _ => (amounts, datatype, None),
    }
}

/// The root of a collective between groups, the amounts of this rank and their datatype. The lists are as in [`measure`].
#[cold]
fn measure_between(
    call: &mut Recorded,
    operation: Operation,
    comm: Comm,
    root: Option<i32>,
    [send_counts, recv_counts]: &mut [Vec<u64>; 2],
) -> (Option<CommRank>, Amounts, DatatypeId) {
    let (at, constants) = (call.args.at, &call.abi().constants);
    let root = root.map(|root| match root {
        _ if root == constants.root => CommRank::ROOT,
        _ if root == constants.proc_null => CommRank::BESIDE_ROOT,
        _ => CommRank(root as u32),
    });
    // Whether this rank gives, and whether it gets; the other arguments are not significant.
    let (gives, gets) = match (operation.root(), root) {
        (None, _) => (true, true),
        (Some(Root::Sends), Some(CommRank::ROOT)) => (true, false),
        (Some(Root::Receives), Some(CommRank::ROOT)) => (false, true),
        (_, None | Some(CommRank::BESIDE_ROOT)) => (false, false),
        (Some(Root::Sends), _) => (false, true),
        (Some(Root::Receives), _) => (true, false),
    };
    let at_root = root == Some(CommRank::ROOT);
    let vector = operation.sizing() == Sizing::Vector;
    let mut datatype = DatatypeId::default();
    let mut side = |call: &mut Recorded, members, side: &Side, list: &mut Vec<u64>| {
        let (block, sum, of) = blocks(call, members, side, list);
        datatype = of;
        (block, sum)
    };
    let others = (0, comm.remote);
    let mut amounts = Amounts::default();
    if operation.reduces() && !vector {
        // Of its own group: the blocks of the vector.
        let (block, sum) = side(call, (comm.rank, comm.size), &at.recv, recv_counts);
        return (root, Amounts { send: sum, recv: block }, datatype);
    }
    if gets {
        let (block, sum) = side(call, others, if vector { &at.send } else { &at.recv }, recv_counts);
        let from_all = operation.root().is_none() || at_root;
        amounts.recv = if from_all && !vector { sum } else { block };
    }
    if gives {
        let (block, sum) = side(call, others, &at.send, send_counts);
        let to_all = match operation.sizing() {
            Sizing::EqualPairs | Sizing::Pairs => true,
            Sizing::EqualBlocks | Sizing::Blocks => at_root,
            Sizing::None | Sizing::Vector => false,
        };
        amounts.send = if to_all { sum } else { block };
    }
    (root, amounts, datatype)
}

/// The bytes of the block of member `own`, those of the blocks of all `members`, and their datatype. In vector forms `list`
/// gets the bytes for each member. If there is a datatype for each member: of those with a count above 0, the first that has
/// gaps, else the last.
#[inline]
pub(super) fn blocks(
    call: &mut Recorded,
    (own, members): (i32, u32),
    side: &Side,
    list: &mut Vec<u64>,
) -> (Bytes, Bytes, DatatypeId) {
    let args = call.args;
    let (Some(counts), Some(types)) = (side.count.get(), side.datatype.get()) else {
        return (Bytes::ZERO, Bytes::ZERO, DatatypeId::default());
    };
    let (by_peer, each) = (side.count.is_array(), side.datatype.is_array());
    let mut datatype = if each { KnownType::default() } else { call.datatype(args.handle(types)) };
    if !by_peer {
        let count = args.number(counts);
        let sum = datatype.bytes(count.saturating_mul(members.into()));
        return (datatype.bytes(count), sum, datatype.id);
    }
    list.extend((0..members as usize).map(|i| {
        // SAFETY: the call has succeeded, so its arrays have an element for each member.
        let count = unsafe { args.number_at(counts, i) };
        // With a count of 0 the datatype may be invalid.
        if !each || count == 0 {
            return datatype.bytes(count).0;
        }
        // SAFETY: as above.
        let own = call.datatype(unsafe { args.handle_at(types, i) });
        datatype = if datatype.sparse { datatype } else { own };
        own.bytes(count).0
    }));
    let own = list.get(own as usize).copied().unwrap_or(0);
    let sum = list.iter().fold(0, |sum: u64, &bytes| sum.wrapping_add(bytes));
    (Bytes(own), Bytes(sum), datatype.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::prototypes::Category;

    #[test]
    fn every_collective_function_has_its_operation() {
        for call in Call::all().filter(|call| call.category() == Category::Collective) {
            let operation = operation(call);
            let stem = call.name().trim_end_matches("_c").trim_end_matches("_init").to_lowercase();
            let plain = operation.name().to_lowercase();
            assert!(stem == format!("mpi_{plain}") || stem == format!("mpi_i{plain}"), "{}", call.name());
        }
    }
}
