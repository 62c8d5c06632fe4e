//! Where schedules wait: textbooks state the length of the longest chain of messages, and segments bound how many messages are pending.

use super::{prove, roots};
use Operation::*;
use collectives::{Algorithm as A, Choice, Operation, Sizes};

/// Every message takes one unit of time; a rank sends and receives any number of them at once.
#[test]
fn the_longest_chain_of_messages_is_that_of_the_textbooks() {
    for ranks in 1..=20u32 {
        let p = u64::from(ranks);
        let rounds = u64::from(u32::BITS - (ranks - 1).leading_zeros());
        let (log, below_log) = (u64::from(ranks.ilog2()), u64::from(!ranks.is_power_of_two()));
        // Doubling among the largest power of two of ranks, between a message from the surplus ranks and a message to them.
        let (folded, others) = (log + 2 * below_log, p - 1);
        let binomial = u64::from((0..ranks).map(u32::count_ones).max().unwrap());
        let any = others.min(1);
        for (operation, algorithm, expected) in [
            (Bcast, A::Linear, any),
            (Bcast, A::Binomial, binomial),
            (Bcast, A::BinomialSpread, binomial),
            (Bcast, A::Chain, others),
            (Bcast, A::Binary, log),
            (Bcast, A::SplitBinary, log + u64::from(ranks > 1)),
            (Reduce, A::Linear, others),
            (Reduce, A::Binomial, binomial),
            (Reduce, A::Chain, others),
            (Reduce, A::Binary, log),
            (Allreduce, A::Linear, others + any),
            (Allreduce, A::ReduceBcast, 2 * binomial),
            (Allreduce, A::RecursiveDoubling, folded),
            (Allreduce, A::Rabenseifner, folded + log),
            // The surplus rank reduces half of the vector, which it then hands over.
            (Allreduce, A::RabenseifnerHalves, folded + log + below_log),
            (Allreduce, A::Ring, 2 * others),
            (Gather, A::Linear, any),
            (Gather, A::LinearSync, 2 * others),
            (Gather, A::Binomial, binomial),
            (Scatter, A::Linear, any),
            (Scatter, A::Binomial, binomial),
            (Allgather, A::Ring, others),
            (Allgather, A::Bruck, rounds),
            (Allgather, A::RecursiveDoubling, folded),
            (Allgather, A::GatherBcast, 2 * binomial),
            (Allgather, A::LinearGatherBcast, any + binomial),
            (Alltoall, A::Linear, any),
            (Alltoall, A::Pairwise, others),
            (Alltoall, A::Bruck, rounds),
            (ReduceScatter, A::Pairwise, others),
            (ReduceScatter, A::Ring, others),
            (ReduceScatter, A::RecursiveHalving, folded),
            (Scan, A::Linear, others),
            (Scan, A::RecursiveDoubling, rounds),
            (Exscan, A::Linear, others),
            (Exscan, A::RecursiveDoubling, rounds),
            (Barrier, A::Linear, 2 * any),
            (Barrier, A::Binomial, 2 * binomial),
            (Barrier, A::Dissemination, rounds),
            (Barrier, A::RecursiveDoubling, folded),
        ] {
            let sizes = Sizes::Bytes(if operation == Barrier { 0 } else { 200 });
            for root in roots(operation, ranks).step_by(5) {
                let proof = prove(operation, ranks, root, 8, Choice::plain(algorithm), &[sizes]);
                assert_eq!(proof.rounds, expected, "{operation} {algorithm} {ranks} {root}");
            }
        }
        if ranks.is_multiple_of(2) {
            let choice = Choice::plain(A::NeighborExchange);
            assert_eq!(prove(Allgather, ranks, 0, 1, choice, &[Sizes::Bytes(8)]).rounds, p / 2);
        }
    }
}

/// The last of s segments starts s − 1 units of time after the first.
#[test]
fn segments_follow_one_another_down_and_up_a_tree() {
    for (ranks, segments) in (2..=13u32).flat_map(|ranks| [2, 7].map(|segments| (ranks, segments))) {
        let binomial = u64::from((0..ranks).map(u32::count_ones).max().unwrap());
        let (log, chain) = (u64::from(ranks.ilog2()), u64::from(ranks) - 1);
        for (operation, algorithm, depth) in [
            (Bcast, A::Binomial, binomial),
            (Bcast, A::Chain, chain),
            (Bcast, A::Binary, log),
            (Reduce, A::Binomial, binomial),
            (Reduce, A::Chain, chain),
            (Reduce, A::Binary, log),
        ] {
            let choice = Choice::plain(algorithm).segmented(8);
            let proof = prove(operation, ranks, ranks / 2, 8, choice, &[Sizes::Bytes(8 * segments)]);
            assert_eq!(proof.rounds, depth + segments - 1, "{operation} {algorithm} {ranks} {segments}");
        }
    }
}

/// The purpose of segments is to bound the number of pending messages.
#[test]
fn the_number_of_pending_messages_does_not_grow_with_the_number_of_segments() {
    for (operation, algorithm) in [
        (Bcast, A::Binomial),
        (Bcast, A::BinomialSpread),
        (Bcast, A::Knomial),
        (Bcast, A::Chain),
        (Bcast, A::Binary),
        (Bcast, A::SplitBinary),
        (Reduce, A::Binomial),
        (Reduce, A::Chain),
        (Reduce, A::Binary),
        (Allreduce, A::ReduceBcast),
        (Allreduce, A::SegmentedRing),
        (Allreduce, A::RingChannels),
        (Allreduce, A::DoubleTree),
    ] {
        for ranks in 2..=10 {
            let pending = |segments| {
                let choice = Choice { fanout: 3, ..Choice::plain(algorithm).segmented(8) };
                let bytes = u64::from(2 * ranks) * 8 * segments;
                prove(operation, ranks, 0, 8, choice, &[Sizes::Bytes(bytes)]).most_pending
            };
            assert_eq!(pending(2), pending(9), "{operation} {algorithm} {ranks}");
        }
    }
}

#[test]
fn a_linear_all_to_all_posts_fanout_exchanges_at_once() {
    for (ranks, fanout) in (2..=12u32).flat_map(|ranks| (1..=12).map(move |fanout| (ranks, fanout))) {
        let choice = Choice { fanout, ..Choice::plain(A::Linear) };
        let proof = prove(Alltoall, ranks, 0, 8, choice, &[Sizes::Bytes(8)]);
        let batches = (ranks - 1).div_ceil(fanout);
        assert_eq!(proof.most_pending as u32, 2 * fanout.min(ranks - 1), "{ranks} {fanout}");
        assert_eq!(proof.rounds, u64::from(batches), "{ranks} {fanout}");
    }
}
