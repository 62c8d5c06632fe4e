//! The amounts of collectives: what producers write, and what a trace has.

use super::chunks::UNDEFINED;
use super::events::Collective;
use vef_format::operation::{Amounts, Operation, Root};
use vef_format::units::Bytes;

/// The operations, by number; beyond are windows and handles.
const OPERATIONS: [Operation; 17] = [
    Operation::Barrier,
    Operation::Bcast,
    Operation::Gather,
    Operation::Gatherv,
    Operation::Scatter,
    Operation::Scatterv,
    Operation::Allgather,
    Operation::Allgatherv,
    Operation::Alltoall,
    Operation::Alltoallv,
    Operation::Alltoallw,
    Operation::Allreduce,
    Operation::Reduce,
    Operation::ReduceScatter,
    Operation::Scan,
    Operation::Exscan,
    Operation::ReduceScatterBlock,
];

/// The operation with this number, if it is a collective that moves data.
pub(super) fn operation(number: u8) -> Option<Operation> {
    OPERATIONS.get(usize::from(number)).copied()
}

/// The amounts of a member, and whether they follow from what the file has (else they stand as in the file). `scorep`: Score-P wrote
/// it, which counts the own block and multiplies by the `size` of the communicator.
pub(super) fn amounts(
    operation: Operation,
    part: &Collective,
    is_root: bool,
    size: u64,
    scorep: bool,
) -> (Amounts, bool) {
    use Operation::{Allgather, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast};
    use Operation::{Gather, Gatherv, Reduce, Scatter, Scatterv};
    let known = |bytes: u64| if bytes == UNDEFINED { 0 } else { bytes };
    let (sent, received) = (known(part.sent), known(part.received));
    let divided = sent.is_multiple_of(size).then(|| sent / size);
    let blocks = match (operation, divided) {
        (Barrier, _) => Some((0, 0)),
        (Bcast, _) if scorep => Some((received, 0)),
        (Gather, _) if scorep => sent.checked_mul(size).map(|sum| (sent, sum)),
        (Scatter, _) if scorep => received.checked_mul(size).map(|sum| (received, sum)),
        (Gatherv, _) if scorep && (!is_root || received >= sent) => Some((sent, received)),
        (Scatterv, _) if scorep && (!is_root || sent >= received) => Some((received, sent)),
        (Reduce, _) if scorep => Some((sent, 0)),
        (Allreduce, Some(own)) if scorep => Some((own, 0)),
        (Allgather, Some(own)) if scorep => Some((own, sent)),
        (Alltoall | Alltoallv | Alltoallw, _) => {
            return (Amounts { send: Bytes(sent), recv: Bytes(received) }, scorep);
        }
        _ => None,
    };
    match blocks {
        Some((own, sum)) => (operation.amounts(is_root, Bytes(own), Bytes(sum)), true),
        None => {
            // A root sends or receives, and so do the others.
            let (send, recv) = match operation.root() {
                Some(root) if (root == Root::Sends) == is_root => (sent, 0),
                Some(_) => (0, received),
                None => (sent, received),
            };
            (Amounts { send: Bytes(send), recv: Bytes(recv) }, false)
        }
    }
}

/// What Score-P would have written for the amounts of a member: the inverse of [`amounts`].
pub(super) fn written(operation: Operation, part: Amounts, is_root: bool, size: u64) -> [u64; 2] {
    use Operation::{Allgather, Allreduce, Barrier, Bcast, Gather, Reduce, Scatter};
    let Amounts { send: Bytes(send), recv: Bytes(recv) } = part;
    let sum = |block: u64| block.saturating_mul(size);
    // The blocks of a root but its own.
    let block = |others: u64| others.checked_div(size - 1).unwrap_or(0);
    match operation {
        Barrier => [0, 0],
        Bcast if is_root => [sum(send), send],
        Gather if is_root => [block(recv), sum(block(recv))],
        Scatter if is_root => [sum(block(send)), block(send)],
        Reduce if is_root => [recv, sum(recv)],
        Allreduce => [sum(send), sum(send)],
        Allgather => [recv, recv],
        _ => [send, recv],
    }
}

/// The number of an operation.
pub(super) fn number(operation: Operation) -> u8 {
    OPERATIONS.iter().position(|&known| known == operation).map_or(0, |number| number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Score-P writes for four ranks with blocks of 10 bytes.
    #[test]
    fn amounts_of_score_p() {
        let of = |operation: u8, sent, received, is_root| {
            let part = Collective { operation, comm: 0, root: 0, sent, received };
            let (amounts, sure) = amounts(super::operation(operation).unwrap(), &part, is_root, 4, true);
            assert!(sure);
            (amounts.send.0, amounts.recv.0)
        };
        assert_eq!(of(0, 0, 0, false), (0, 0));
        assert_eq!([of(1, 40, 10, true), of(1, 0, 10, false)], [(10, 0), (0, 10)]);
        assert_eq!([of(2, 10, 40, true), of(2, 10, 0, false)], [(0, 30), (10, 0)]);
        assert_eq!([of(4, 40, 10, true), of(4, 0, 10, false)], [(30, 0), (0, 10)]);
        assert_eq!([of(12, 10, 40, true), of(12, 10, 0, false)], [(0, 10), (10, 0)]);
        assert_eq!(of(11, 40, 40, false), (10, 10));
        assert_eq!(of(6, 40, 40, false), (10, 40));
        assert_eq!(of(8, 40, 40, false), (40, 40));
    }

    /// The amounts of any member come back.
    #[test]
    fn amounts_that_are_written_come_back() {
        for operation in Operation::ALL.iter().copied() {
            for size in [2, 3, 10] {
                for is_root in [false, operation.is_rooted()] {
                    let part = operation.amounts(is_root, Bytes(24), Bytes(24 * size));
                    let [sent, received] = written(operation, part, is_root, size);
                    let file = Collective { operation: number(operation), comm: 0, root: 0, sent, received };
                    let back =
                        amounts(super::operation(file.operation).unwrap(), &file, is_root, size, true).0;
                    assert_eq!(back, part, "{operation} of {size}");
                }
            }
        }
    }

    #[test]
    fn other_amounts_stand_as_they_are() {
        let part = Collective { operation: 11, comm: 0, root: 0, sent: 10, received: 10 };
        let as_they_are = (Amounts { send: Bytes(10), recv: Bytes(10) }, false);
        assert_eq!(amounts(Operation::Allreduce, &part, false, 4, true), as_they_are);
        assert_eq!(amounts(Operation::Allreduce, &part, false, 5, false), as_they_are);
        let bcast = Collective { operation: 1, sent: 10, received: 0, ..part };
        let (amounts, sure) = amounts(Operation::Bcast, &bcast, true, 4, false);
        assert_eq!((amounts.send.0, amounts.recv.0, sure), (10, 0, false));
    }
}
