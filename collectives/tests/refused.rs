//! Requests without a schedule, each with its error; and the sizes of the buffers of requests that have one.

use collectives::{
    Algorithm, Buffer, Choice, Counts, Cursor, Data, Error, Layout, MAX_RANKS, Member, Operation,
    Operation::*, Order, Sizes, Tree, steps,
};

/// The error for a member of a communicator with root 1, if there is one.
fn error(
    operation: Operation,
    algorithm: Algorithm,
    (rank, ranks, unit): (u32, u32, u32),
    sizes: Sizes<'_>,
) -> Option<Error> {
    let member = Member { operation, ranks, rank, root: 1, unit };
    Cursor::new(member, Choice::plain(algorithm), sizes).err()
}

#[test]
fn members_outside_a_communicator_are_refused() {
    let of =
        |operation, rank, ranks| error(operation, Algorithm::Binomial, (rank, ranks, 1), Sizes::Bytes(0));
    assert_eq!(of(Bcast, 0, 0), Some(Error::Ranks { ranks: 0 }));
    assert_eq!(of(Bcast, 0, MAX_RANKS), None);
    assert_eq!(of(Bcast, 0, MAX_RANKS + 1), Some(Error::Ranks { ranks: u64::from(MAX_RANKS) + 1 }));
    assert_eq!(of(Bcast, 3, 4), None);
    assert_eq!(of(Bcast, 4, 4), Some(Error::RankOutside { rank: 4, ranks: 4 }));
    // There is no rank 1 to be the root; a barrier has no root.
    assert_eq!(of(Bcast, 0, 1), Some(Error::RankOutside { rank: 1, ranks: 1 }));
    assert_eq!(of(Barrier, 0, 1), None);
}

#[test]
fn algorithms_that_do_not_fit_the_request_are_refused() {
    let of = |algorithm, ranks, bytes| error(Allgather, algorithm, (0, ranks, 1), Sizes::Bytes(bytes));
    let neighbours = |ranks| of(Algorithm::NeighborExchange, ranks, 8);
    assert_eq!([1, 2, 4].map(neighbours), [None, None, None]);
    assert_eq!(neighbours(3), Some(Error::OddRanks { algorithm: "neighbor-exchange", ranks: 3 }));
    // Sends no message, which is right without bytes and with a single rank.
    assert_eq!(of(Algorithm::Nothing, 4, 0), None);
    assert_eq!(of(Algorithm::Nothing, 1, 8), None);
    assert!(matches!(of(Algorithm::Nothing, 2, 1), Some(Error::NeedsCounts { .. })));
    let algorithm = "dissemination";
    let none = Error::NoSuchAlgorithm { operation: Allgather, algorithm };
    assert_eq!(of(Algorithm::Dissemination, 2, 0), Some(none));
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let four = Counts::new([1, 2, 3, 14]).unwrap();
    let sums = Sizes::Sums { send: 6, recv: 6 };
    let pairs = Sizes::Pairs { send: &four, recv: &four };
    let of = |operation, ranks, sizes| error(operation, Algorithm::Linear, (0, ranks, 1), sizes);
    for (operation, sizes, form) in [
        (Gather, Sizes::Blocks(&four), "blocks"),
        (Alltoallv, Sizes::Blocks(&four), "blocks"),
        (Gatherv, pairs, "pairs"),
        (Bcast, sums, "sums"),
    ] {
        assert_eq!(of(operation, 4, sizes), Some(Error::WrongSizes { operation, sizes: form }));
    }
    for (operation, sizes) in [(Gatherv, Sizes::Blocks(&four)), (Alltoallv, pairs)] {
        assert_eq!(of(operation, 4, sizes), None);
        assert_eq!(of(operation, 5, sizes), Some(Error::CountsMismatch { counts: 4, ranks: 5 }));
    }
    assert_eq!(of(Gather, 2, Sizes::Bytes(u64::MAX / 2 + 1)), Some(Error::TooLarge));
    // Unsorted counts, and counts sorted for root 1, the right one, and for root 2.
    for root in [None, Some(1), Some(2)] {
        let sorted = root.map(|root| four.clone().sorted(root, Order::Ascending).unwrap());
        let counts = sorted.unwrap_or_else(|| four.clone());
        let refused = error(Gatherv, Algorithm::SortedLinear, (0, 4, 1), Sizes::Blocks(&counts));
        assert_eq!(matches!(refused, Some(Error::NeedsCounts { .. })), root != Some(1), "{refused:?}");
        assert_eq!(refused.is_none(), root == Some(1), "{refused:?}");
    }

    let vector = |unit, bytes| error(Bcast, Algorithm::Linear, (0, 2, unit), Sizes::Bytes(bytes));
    assert_eq!(vector(8, 24), None);
    assert_eq!(vector(8, 20), Some(Error::Unit { bytes: 20, unit: 8 }));
    assert_eq!(vector(0, 24), Some(Error::Unit { bytes: 24, unit: 0 }));

    let member = Member { operation: Bcast, ranks: 2, rank: 0, root: 0, unit: 1 };
    let segmented = |bytes| {
        let choice = Choice::plain(Algorithm::Binomial).segmented(1);
        Cursor::new(member, choice, Sizes::Bytes(bytes)).err()
    };
    assert_eq!(segmented(1 << 30), None);
    assert_eq!(segmented((1 << 30) + 1), Some(Error::TooManySegments { bytes: (1 << 30) + 1, segment: 1 }));
}

/// Four ranks with blocks of 6 bytes, or of 1, 2, 3 and 14, of which rank 2 has the third: bytes of MPI's send and receive buffers.
#[test]
fn buffers_have_the_sizes_that_mpi_says() {
    let counts = Counts::new([1, 2, 3, 14]).unwrap();
    let received = Counts::new([2, 2, 2, 2]).unwrap();
    let (block, blocks) = (Sizes::Bytes(6), Sizes::Blocks(&counts));
    for (operation, sizes, input, output) in [
        (Bcast, block, 6, 6),
        (Allreduce, block, 6, 6),
        (Gather, block, 6, 24),
        (Allgather, block, 6, 24),
        (Scatter, block, 24, 6),
        (ReduceScatterBlock, block, 24, 6),
        (Alltoall, block, 24, 24),
        (Gatherv, blocks, 3, 20),
        (Allgatherv, blocks, 3, 20),
        (Scatterv, blocks, 20, 3),
        (ReduceScatter, blocks, 20, 3),
        (Alltoallv, Sizes::Pairs { send: &counts, recv: &received }, 20, 8),
        (Allgatherv, Sizes::Sums { send: 3, recv: 20 }, 3, 20),
        (ReduceScatter, Sizes::Sums { send: 20, recv: 3 }, 20, 3),
    ] {
        let member = Member { operation, ranks: 4, rank: 2, root: 0, unit: 1 };
        let bytes = [Buffer::Input, Buffer::Output].map(|buffer| member.buffer_bytes(buffer, sizes));
        assert_eq!(bytes, [input, output], "{operation} {sizes:?}");
    }
}

/// Pieces are never empty, so data that does not fit has fewer bytes than it says.
#[test]
fn data_has_no_pieces_in_an_empty_buffer() {
    let data = Data { buffer: Buffer::Output, offset: 0, len: 5, layout: Layout::Cyclic };
    assert_eq!(data.pieces(0).next(), None);
}

/// Numbers that no library uses, as a table may have them: `fanout` and `segment` of every algorithm.
#[test]
fn schedules_with_any_fanout_and_segment_are_short_or_refused() {
    let extremes = [0, 1, 2, 129, u32::MAX];
    for &operation in Operation::ALL {
        let of_each = |algorithm| {
            let trees = Tree::ALL.iter().map(move |&tree| Choice { tree, ..Choice::plain(algorithm) });
            let fanouts = trees.flat_map(|choice| extremes.map(|fanout| Choice { fanout, ..choice }));
            fanouts.flat_map(|choice| {
                [0, 1, u32::MAX.into(), u64::MAX].map(|segment| Choice { segment, ..choice })
            })
        };
        for choice in Algorithm::of(operation).flat_map(of_each) {
            for (ranks, bytes) in [1, 2, 7, 8].into_iter().flat_map(|ranks| [(ranks, 0), (ranks, 40)]) {
                for rank in 0..ranks {
                    let member = Member { operation, ranks, rank, root: 0, unit: 1 };
                    let case = format!("{operation} {choice:?} {member:?} {bytes}");
                    match steps(member, choice, Sizes::Bytes(bytes)) {
                        // Two buffers of 8 ranks in segments of a byte, each with a send, a receipt and a wait, take less.
                        Ok(steps) => assert!(steps.take(10_000).count() < 10_000, "{case}"),
                        Err(Error::TooManyChannels { channels }) => {
                            assert_eq!(choice.algorithm, Algorithm::RingChannels, "{case}");
                            assert_eq!(channels, choice.fanout, "{case}");
                            assert!(channels > 128, "{case}");
                        }
                        Err(Error::OddRanks { .. } | Error::NeedsCounts { .. }) => {}
                        Err(error) => panic!("{case}: {error}"),
                    }
                }
            }
        }
    }
    let member = Member { operation: Allreduce, ranks: 7, rank: 0, root: 0, unit: 1 };
    let channels = |fanout| {
        let choice = Choice { fanout, ..Choice::plain(Algorithm::RingChannels) };
        Cursor::new(member, choice, Sizes::Bytes(1000)).err()
    };
    assert_eq!(channels(128), None);
    assert_eq!(channels(129), Some(Error::TooManyChannels { channels: 129 }));
}

#[test]
fn there_are_2_to_the_30_segments_at_most() {
    let counted = |operation, algorithm, sizes: Sizes<'_>| {
        let member = Member { operation, ranks: 8, rank: 3, root: 0, unit: 1 };
        steps(member, Choice::plain(algorithm).segmented(1), sizes).map(|steps| steps.take(1000).count())
    };
    let refused = Err(Error::TooManySegments { bytes: (1 << 30) + 1, segment: 1 });
    let of_halves = |bytes: u64| counted(Allreduce, Algorithm::DoubleTree, Sizes::Bytes(2 * bytes));
    assert_eq!([of_halves(1 << 30), of_halves((1 << 30) + 1)], [Ok(1000), refused.clone()]);
    let of_blocks = |bytes| {
        let counts = Counts::new([1, 2, 3, bytes, 1, 1, 1, 1]).unwrap();
        counted(Allgatherv, Algorithm::SegmentedRing, Sizes::Blocks(&counts))
    };
    assert_eq!([of_blocks(1 << 30), of_blocks((1 << 30) + 1)], [Ok(1000), refused]);
}
