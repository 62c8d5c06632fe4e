//! The proofs: every algorithm, every communicator size up to 65, every root, and lengths from none over fewer
//! bytes than ranks to many; messages and bytes as the textbooks say.
//!
//! Each (size, root) is proven with some of the lengths in turn; `cargo test -p collectives -- --ignored` runs the whole product.

mod prove;
mod waits;

use Algorithm as A;
use Operation::*;
use collectives::{
    Algorithm, Choice, Counts, Error, Member, Operation, Order, Sizes, Step, Tree, choose, steps,
};
use prove::{Case, Flaw, Proof};

const MOST: u32 = 65;

fn prove(
    operation: Operation,
    ranks: u32,
    root: u32,
    unit: u32,
    choice: Choice,
    sizes: &[Sizes<'_>],
) -> Proof {
    let case = Case { operation, ranks, root, unit, choice, sizes };
    let proof = case.prove().unwrap_or_else(|flaw| panic!("{flaw}\nin {case:?}"));
    if choice.keeps_order(operation, root) {
        assert!(proof.ordered, "not in rank order: {case:?}");
    }
    proof
}

fn roots(operation: Operation, ranks: u32) -> std::ops::Range<u32> {
    if operation.is_rooted() { 0..ranks } else { 0..1 }
}

/// The choices of an algorithm's parameters worth a proof.
fn choices(operation: Operation, algorithm: Algorithm) -> Vec<Choice> {
    let plain = Choice::plain(algorithm);
    let with = |fanout, segment| Choice { segment, fanout, ..plain };
    match (operation, algorithm) {
        (Barrier, _) => vec![plain],
        (_, A::Chain) => vec![plain, with(2, 16), with(200, 24)],
        (_, A::Knomial) => vec![plain, with(3, 16), with(4, 0), with(8, 24)],
        (_, A::RingChannels) => vec![plain, with(2, 8), with(3, 0), with(5, 40)],
        (_, A::Binary | A::SplitBinary | A::SegmentedRing | A::LinearSync | A::DoubleTree) => {
            vec![plain, with(0, 8)]
        }
        (Bcast | Reduce | Allreduce, A::Binomial | A::BinomialSpread | A::ReduceBcast) => {
            vec![plain, with(0, 8)]
        }
        (_, A::LinearGatherBcast | A::ReduceThenScatter | A::ReduceThenLinearScatter) => {
            Tree::ALL.iter().map(|&tree| Choice { tree, ..with(4, 0) }).collect()
        }
        (Alltoall | Alltoallv | Alltoallw, A::Linear | A::LinearEmpty) => vec![plain, with(1, 0), with(4, 0)],
        _ => vec![plain],
    }
}

/// (unit, bytes) of vectors or blocks.
fn lengths(operation: Operation, ranks: u32) -> Vec<(u32, u64)> {
    let p = u64::from(ranks);
    match operation {
        Barrier => vec![(1, 0)],
        Bcast | Reduce | Allreduce | Scan | Exscan => {
            vec![
                (1, 0),
                (1, 1),
                (1, p - 1),
                (1, p + 3),
                (8, 8 * (p / 2)),
                (4, 4 * (p / 3 + 2)),
                (if ranks > 33 { 40 } else { 8 }, 1000),
            ]
        }
        _ => vec![(1, 0), (1, 1), (1, 5), (4, 8), (4, 20)],
    }
}

fn is_for(algorithm: Algorithm, ranks: u32) -> bool {
    algorithm != A::NeighborExchange || ranks.is_multiple_of(2)
}

/// Proofs with equal blocks; each (algorithm, size, root) with `most` of its lengths and parameters, in turn.
fn prove_regular(operations: &[Operation], most: usize) {
    let mut turn = 0;
    for &operation in operations {
        for algorithm in Algorithm::of(operation).filter(|&a| a != A::Nothing && !a.sorts()) {
            for ranks in (1..=MOST).filter(|&ranks| is_for(algorithm, ranks)) {
                let (choices, lengths) = (choices(operation, algorithm), lengths(operation, ranks));
                let count = choices.len() * lengths.len();
                for root in roots(operation, ranks) {
                    for _ in 0..most.min(count) {
                        let choice = choices[turn % count / lengths.len()];
                        let (unit, bytes) = lengths[turn % lengths.len()];
                        let proof = prove(operation, ranks, root, unit, choice, &[Sizes::Bytes(bytes)]);
                        check_formula(operation, choice, (ranks, root), unit, bytes, &proof);
                        turn += 1;
                    }
                }
            }
        }
    }
}

const ROOTED: &[Operation] = &[Bcast, Reduce];
const BLOCKS: &[Operation] = &[Gather, Scatter, Gatherv, Scatterv];
const UNROOTED: &[Operation] = &[
    Allreduce,
    Allgather,
    Allgatherv,
    Barrier,
    Alltoall,
    Alltoallv,
    Alltoallw,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Exscan,
];

#[test]
fn rooted_vectors() {
    prove_regular(ROOTED, 1);
}

#[test]
fn rooted_blocks() {
    prove_regular(BLOCKS, 1);
}

#[test]
fn unrooted() {
    prove_regular(UNROOTED, 3);
}

#[test]
#[ignore = "minutes: every length and parameter at every root"]
fn everything() {
    prove_regular(ROOTED, usize::MAX);
    prove_regular(BLOCKS, usize::MAX);
    prove_regular(UNROOTED, usize::MAX);
}

/// Messages and bytes of all ranks, as `docs/collectives.md` states them.
fn check_formula(
    operation: Operation,
    choice: Choice,
    (ranks, root): (u32, u32),
    unit: u32,
    bytes: u64,
    proof: &Proof,
) {
    let p = u64::from(ranks);
    let (n, b) = (bytes, bytes);
    let core = 1u64 << ranks.ilog2();
    let (log, surplus) = (u64::from(ranks.ilog2()), p - core);
    let rounds = u64::from(u32::BITS - (ranks - 1).leading_zeros());
    // Blocks · hops on the way up or down a binomial tree: Σ popcount(v).
    let hops: u64 = (0..p).map(|v| u64::from(v.count_ones())).sum();
    let segments = |len: u64| match choice.segment {
        0 => 1,
        segment => len.div_ceil((segment / u64::from(unit)).max(1) * u64::from(unit)).max(1),
    };
    let tree = ((p - 1) * segments(n), (p - 1) * n);
    let doubling = core * log + 2 * surplus;
    // Ranks that have a partner at distance 2ᵏ; and those that have none although their neighbouring tree is only cut short.
    let partners = |k: u64| (0..p).filter(|v| v ^ (1 << k) < p).count() as u64;
    let without = |k: u64| if p % (2 << k) > 1 << k { (2 << k) - p % (2 << k) } else { 0 };
    let expected = match (operation, choice.algorithm) {
        (Reduce, A::Linear) => (p - 1, (p - 1) * n),
        (Allreduce, A::Linear) => (p - 1 + tree.0, 2 * (p - 1) * n),
        (Bcast, A::SplitBinary) => {
            let half = (n / u64::from(unit)).div_ceil(2) * u64::from(unit);
            ((p - 1) * segments(half) + (p - 1), (p - 1) * n)
        }
        (Bcast, A::ScatterRing | A::ScatterDoubling) => {
            let piece = (n / u64::from(unit)).div_ceil(p) * u64::from(unit);
            let piece = |v: u64| n.min((v + 1) * piece) - n.min(v * piece);
            let scatter: u64 = (0..p).map(|v| u64::from(v.count_ones()) * piece(v)).sum();
            let messages = match choice.algorithm {
                A::ScatterRing => p * (p - 1),
                _ => (0..rounds).map(|k| partners(k) + without(k)).sum(),
            };
            (p - 1 + messages, scatter + (p - 1) * n)
        }
        (Reduce, A::Rabenseifner) => {
            if !(n / u64::from(unit)).is_multiple_of(core) {
                return; // The gather's bytes depend on which pieces are the longer ones.
            }
            // A root that has handed over gets the first piece before the others.
            let handed = u64::from(root % 2 == 1 && u64::from(root) < 2 * surplus);
            let messages = surplus + core * log + core - 1 + handed;
            (messages, surplus * n + (core - 1) * n + n * log / 2 + handed * n / core)
        }
        (Bcast | Reduce, _) => tree,
        (Allreduce, A::ReduceBcast) => (2 * tree.0, 2 * tree.1),
        (Allreduce, A::RecursiveDoubling) => (doubling, doubling * n),
        (Allreduce, A::Rabenseifner) => (2 * core * log + 2 * surplus, 2 * (core - 1 + surplus) * n),
        (Allreduce, A::RabenseifnerHalves) => {
            let right = (n / u64::from(unit)).div_ceil(2) * u64::from(unit);
            (2 * core * log + 4 * surplus, 2 * (core - 1) * n + surplus * (2 * n + right))
        }
        (Allreduce, A::Ring) => (2 * p * (p - 1), 2 * (p - 1) * n),
        (Allreduce, A::SegmentedRing) => {
            // As many laps as the longest piece could need, whose elements are one more than p go into the vector.
            let longest = (n / u64::from(unit) / p + 1) * u64::from(unit);
            ((segments(longest) + 1) * p * (p - 1), 2 * (p - 1) * n)
        }
        (Allreduce, A::DoubleTree) => {
            let larger = (n / u64::from(unit)).div_ceil(2) * u64::from(unit);
            let of_half = |half: u64| if half == 0 { 0 } else { segments(half) };
            // Unsegmented, the smaller half is one segment as well.
            (2 * (p - 1) * (of_half(larger) + of_half(n - larger)), 2 * (p - 1) * n)
        }
        (Allreduce | Allgather | ReduceScatterBlock, A::RingChannels) => {
            let (vector, turns) = if operation == Allreduce { (n, 2) } else { (n * p, 1) };
            let (elements, channels) = (vector / u64::from(unit), u64::from(choice.fanout.max(1)));
            let share = |of: u64, i: u64, parts: u64| of * (i + 1) / parts - of * i / parts;
            let piece = |i: u64| elements / p + u64::from(i < elements % p);
            let messages = |part: u64| if part == 0 { 0 } else { segments(part * u64::from(unit)) };
            let of_piece =
                |i: u64| (0..channels).map(|c| messages(share(piece(i), c, channels))).sum::<u64>();
            let all: u64 = (0..p).map(of_piece).sum();
            (turns * (p - 1) * all, turns * (p - 1) * vector)
        }
        (Gather | Gatherv | Scatter | Scatterv, A::Linear) => (p - 1, (p - 1) * b),
        (Gather | Gatherv, A::LinearSync) => (3 * (p - 1), (p - 1) * b),
        (Gather | Gatherv | Scatter | Scatterv, A::Binomial) => (p - 1, hops * b),
        (Gatherv | Scatterv, A::Traff) => {
            // Of equal blocks a binomial tree; where p is no power of two, of which ranks depends on the root.
            assert!(((p - 1) * b..=(p - 1) * rounds * b).contains(&proof.bytes), "{}", proof.bytes);
            if !ranks.is_power_of_two() {
                assert_eq!(proof.messages, p - 1);
                return;
            }
            (p - 1, hops * b)
        }
        (Allgather | Allgatherv, A::Ring) => (p * (p - 1), p * (p - 1) * b),
        (Allgather | Allgatherv, A::Bruck) => (p * rounds, p * (p - 1) * b),
        (Allgather | Allgatherv, A::RecursiveDoubling) => (doubling, p * (p - 1) * b),
        (Allgather | Allgatherv, A::NeighborExchange) => (p * p / 2, p * (p - 1) * b),
        (Allgather | Allgatherv, A::GatherBcast) => (2 * (p - 1), hops * b + (p - 1) * p * b),
        (Allgather | Allgatherv, A::LinearGatherBcast) => (2 * (p - 1), (p - 1) * (p + 1) * b),
        (Allgatherv, A::SegmentedRing) => (if b == 0 { 0 } else { p * (p - 1) }, p * (p - 1) * b),
        (Alltoall | Alltoallv | Alltoallw, A::Linear | A::LinearEmpty | A::Pairwise) => {
            (p * (p - 1), p * (p - 1) * b)
        }
        (Alltoall, A::Bruck) => (p * rounds, p * hops * b),
        (ReduceScatter | ReduceScatterBlock, A::Ring | A::Pairwise) => (p * (p - 1), p * (p - 1) * b),
        (ReduceScatter | ReduceScatterBlock, A::RecursiveHalving) => {
            (doubling, (core - 1 + surplus) * p * b + surplus * b)
        }
        (ReduceScatterBlock, A::RecursiveDoubling) => {
            // The blocks outside of the sender's tree; to a rank without partner, those outside of the tree that is cut short.
            let outside = |v: u64, k: u64| p - ((v >> k << k) + (1 << k)).min(p) + (v >> k << k);
            let exchanged = |k: u64| (0..p).filter(|v| v ^ (1 << k) < p).map(|v| outside(v, k)).sum::<u64>();
            let blocks = (0..rounds).map(|k| exchanged(k) + without(k) * outside(p - 1, k)).sum::<u64>();
            ((0..rounds).map(|k| partners(k) + without(k)).sum(), blocks * b)
        }
        (ReduceScatter | ReduceScatterBlock, A::ReduceThenScatter) => {
            (2 * (p - 1), (p - 1) * p * b + hops * b)
        }
        (ReduceScatter | ReduceScatterBlock, A::ReduceThenLinearScatter) => {
            (2 * (p - 1), (p - 1) * (p + 1) * b)
        }
        (ReduceScatter | ReduceScatterBlock, A::Butterfly) => {
            let is_mirrored = |&c: &u64| log == 0 || c.reverse_bits() >> (64 - log) == c;
            let moved = match operation {
                ReduceScatterBlock if surplus == 0 => 0,
                _ => core - (0..core).filter(is_mirrored).count() as u64,
            };
            (core * log + 2 * surplus + moved, (core - 1 + surplus) * p * b + (surplus + moved) * b)
        }
        (Scan | Exscan, A::Linear) => (p - 1, (p - 1) * n),
        (Scan | Exscan, A::RecursiveDoubling) => {
            let exchanges: u64 =
                (0..rounds).map(|k| (0..p).filter(|rank| rank ^ (1 << k) < p).count() as u64).sum();
            (exchanges, exchanges * n)
        }
        (Barrier, A::Linear | A::Binomial) => (2 * (p - 1), 0),
        (Barrier, A::Dissemination) => (p * rounds, 0),
        (Barrier, A::RecursiveDoubling) => (doubling, 0),
        other => panic!("no formula for {other:?}"),
    };
    assert_eq!((proof.messages, proof.bytes), expected, "{operation} {choice:?} p={ranks} bytes={bytes}");
}

/// Unequal counts with many zeros and equal values.
fn uneven(ranks: u32, seed: u32) -> Vec<u64> {
    (0..ranks).map(|rank| u64::from((rank * 7 + seed * 3 + rank * rank) % 11 % (seed % 9 + 2))).collect()
}

#[test]
fn unequal_blocks() {
    for operation in [Gatherv, Scatterv, Allgatherv, ReduceScatter] {
        for algorithm in Algorithm::of(operation).filter(|&a| a != A::Nothing) {
            for ranks in (1..=MOST).filter(|&ranks| is_for(algorithm, ranks)) {
                for root in roots(operation, ranks) {
                    let order = if root % 2 == 0 { Order::Ascending } else { Order::Descending };
                    let bytes = uneven(ranks, root + ranks);
                    let (total, root_bytes): (u64, u64) = (bytes.iter().sum(), bytes[root as usize]);
                    let counts = Counts::new(bytes).and_then(|counts| counts.sorted(root, order)).unwrap();
                    let proof =
                        prove(operation, ranks, root, 1, Choice::plain(algorithm), &[Sizes::Blocks(&counts)]);
                    let p = u64::from(ranks);
                    let least = match operation {
                        Gatherv | Scatterv => total - root_bytes,
                        _ => (p - 1) * total,
                    };
                    assert!(proof.bytes >= least, "{operation} {algorithm} {ranks} moves too little");
                    let is_direct = matches!(
                        algorithm,
                        A::Linear | A::SortedLinear | A::LinearSync | A::Ring | A::Bruck | A::Pairwise
                    );
                    if is_direct || algorithm == A::NeighborExchange {
                        assert_eq!(proof.bytes, least, "{operation} {algorithm} {ranks}");
                    }
                }
            }
        }
    }
}

#[test]
fn sorted_binomial_moves_large_blocks_once() {
    // One huge block: at the end of the descending order it is a child of the root in every size.
    for ranks in 2..=33 {
        let bytes: Vec<u64> = (0..ranks).map(|rank| if rank == ranks - 1 { 1000 } else { 1 }).collect();
        let counts = Counts::new(bytes).unwrap();
        let descending = counts.clone().sorted(0, Order::Descending).unwrap();
        for algorithm in [A::SortedBinomial, A::Traff] {
            let proof = prove(Gatherv, ranks, 0, 1, Choice::plain(algorithm), &[Sizes::Blocks(&descending)]);
            assert!((1000..2000).contains(&proof.bytes), "{algorithm} {ranks}: {}", proof.bytes);
        }
    }
}

/// `keeps_order` holds for exactly the choices that reduce in rank order for every number of ranks tried.
#[test]
fn the_order_of_ranks_is_kept_exactly_where_it_is_promised() {
    for &operation in Operation::ALL {
        for algorithm in Algorithm::of(operation).filter(|&a| a != A::Nothing && !a.sorts()) {
            for choice in choices(operation, algorithm) {
                for is_first in [true, false] {
                    let root = |ranks| if is_first || !operation.is_rooted() { 0 } else { ranks / 2 };
                    let is_ordered = |ranks| {
                        let sizes = [Sizes::Bytes(40)];
                        prove(operation, ranks, root(ranks), 1, choice, &sizes).ordered
                    };
                    let ordered = !operation.reduces()
                        || (2..=9).filter(|&ranks| is_for(algorithm, ranks)).all(is_ordered);
                    let promised = choice.keeps_order(operation, root(2));
                    assert_eq!(promised, ordered, "{operation} {choice:?} {is_first}");
                }
            }
        }
    }
}

/// Smallest block first, or largest; the lower rank first where blocks are equal.
#[test]
fn a_sorted_root_serves_the_others_in_the_order_of_their_blocks() {
    let bytes = [5, 3, 9, 3, 7];
    for (order, served) in [(Order::Ascending, [1, 3, 0, 4]), (Order::Descending, [4, 0, 1, 3])] {
        let counts = Counts::new(bytes).unwrap().sorted(2, order).unwrap();
        for operation in [Gatherv, Scatterv] {
            let member = Member { operation, ranks: 5, rank: 2, root: 2, unit: 1 };
            let peer = |step| match step {
                Step::Send { to: peer, .. } | Step::Recv { from: peer, .. } => Some(peer),
                Step::Wait | Step::Local { .. } => None,
            };
            let peers = |algorithm| -> Vec<u32> {
                let steps = steps(member, Choice::plain(algorithm), Sizes::Blocks(&counts)).unwrap();
                steps.filter_map(peer).collect()
            };
            assert_eq!(peers(A::SortedLinear), served, "{operation} {order:?}");
            assert_eq!(peers(A::Linear), [0, 1, 3, 4], "{operation}");
        }
    }
}

/// Equal blocks give a schedule for every algorithm that does not sort, and an error for those that do.
#[test]
fn only_algorithms_that_sort_need_counts_of_equal_blocks() {
    for &operation in Operation::ALL {
        for algorithm in Algorithm::of(operation) {
            let member = Member { operation, ranks: 4, rank: 1, root: 0, unit: 1 };
            let schedule = steps(member, Choice::plain(algorithm), Sizes::Bytes(0)).map(|_| ());
            let needs_counts = matches!(schedule, Err(Error::NeedsCounts { .. }));
            assert_eq!(algorithm.sorts(), needs_counts, "{operation} {algorithm}: {schedule:?}");
        }
    }
}

/// Each block takes p − 1 hops, in segments at least as long as the shortest block.
#[test]
fn a_segmented_ring_of_unequal_blocks_never_cuts_the_shortest_one() {
    let counts = Counts::new([12, 10, 25]).unwrap();
    for (segment, messages) in [(4, 2 + 1 + 3), (10, 2 + 1 + 3), (12, 1 + 1 + 3), (30, 3)] {
        let choice = Choice::plain(A::SegmentedRing).segmented(segment);
        let proof = prove(Allgatherv, 3, 0, 1, choice, &[Sizes::Blocks(&counts)]);
        assert_eq!(proof.messages, 2 * messages, "{segment}");
    }
}

#[test]
fn unequal_pairs() {
    for operation in [Alltoallv, Alltoallw] {
        for algorithm in [A::Linear, A::LinearEmpty, A::Pairwise] {
            for ranks in 1..=MOST {
                let matrix: Vec<Vec<u64>> = (0..ranks).map(|rank| uneven(ranks, rank + ranks)).collect();
                let send: Vec<Counts> =
                    matrix.iter().map(|row| Counts::new(row.iter().copied()).unwrap()).collect();
                let recv: Vec<Counts> = (0..ranks as usize)
                    .map(|rank| Counts::new(matrix.iter().map(|row| row[rank])).unwrap())
                    .collect();
                let sizes: Vec<Sizes<'_>> =
                    send.iter().zip(&recv).map(|(send, recv)| Sizes::Pairs { send, recv }).collect();
                let proof = prove(operation, ranks, 0, 1, Choice::plain(algorithm), &sizes);
                for (a, row) in matrix.iter().enumerate() {
                    for (b, &bytes) in row.iter().enumerate().filter(|&(b, _)| b != a) {
                        let messages = u64::from(bytes > 0 || algorithm != A::Linear);
                        assert_eq!(proof.pairs[a * ranks as usize + b], (messages, bytes));
                    }
                }
            }
        }
    }
}

#[test]
fn sums_are_kept() {
    for operation in [Gatherv, Scatterv, Allgatherv, ReduceScatter, Alltoallv, Alltoallw] {
        for algorithm in Algorithm::of(operation).filter(|&a| a != A::Nothing && !a.sorts()) {
            for ranks in (2..=33).filter(|&ranks| is_for(algorithm, ranks)) {
                let root = ranks / 3;
                let bytes = uneven(ranks, ranks);
                let total: u64 = bytes.iter().sum();
                let others = total - bytes[root as usize];
                let sizes: Vec<Sizes<'_>> = (0..ranks)
                    .map(|rank| match (operation, bytes[rank as usize]) {
                        (Gatherv, _) if rank == root => Sizes::Sums { send: 0, recv: others },
                        (Gatherv, own) => Sizes::Sums { send: own, recv: 0 },
                        (Scatterv, _) if rank == root => Sizes::Sums { send: others, recv: 0 },
                        (Scatterv, own) => Sizes::Sums { send: 0, recv: own },
                        (ReduceScatter, own) => Sizes::Sums { send: total, recv: own },
                        (_, own) => Sizes::Sums { send: own, recv: total },
                    })
                    .collect();
                let choice = Choice::plain(algorithm);
                let case = Case { operation, ranks, root, unit: 1, choice, sizes: &sizes };
                let is_linear = matches!(algorithm, A::Linear | A::LinearSync);
                let proof = match case.prove() {
                    Err(Flaw::NoSchedule { error: Error::NeedsCounts { .. }, .. })
                        if matches!(operation, Gatherv | Scatterv) && !is_linear =>
                    {
                        continue;
                    }
                    proof => proof.unwrap_or_else(|flaw| panic!("{flaw} in {case:?}")),
                };
                let p = u64::from(ranks);
                match operation {
                    Gatherv | Scatterv => assert_eq!(proof.bytes, others),
                    Alltoallv | Alltoallw => {
                        // All but the parts kept: at most one p-th of each sum, rounded up.
                        assert!(proof.bytes <= total && proof.bytes + total / p + p >= total);
                    }
                    _ => assert!(proof.bytes >= (p - 1) * total),
                }
            }
        }
    }
}

#[test]
fn what_tables_choose_can_be_proven() {
    for name in choose::Table::BUILTIN {
        let table = choose::Table::builtin(name).unwrap();
        for &operation in Operation::ALL {
            for ranks in 1..=17 {
                for bytes in [0, 1, 8, 200] {
                    let sizes = Sizes::Bytes(if operation == Barrier { 0 } else { bytes });
                    let root = ranks - 1;
                    let member = Member { operation, ranks, rank: 0, root, unit: 1 };
                    let choice = table.choose(&member, sizes);
                    if choice.algorithm == A::Nothing {
                        assert_eq!(bytes, 0);
                    } else {
                        prove(operation, ranks, root, 1, choice, &[sizes]);
                    }
                }
            }
        }
    }
}
