//! What follows from the sums that traces have of a call, and what lists of counts may be.

use collectives::choose::{Table, common_bytes};
use collectives::creations::Library;
use collectives::{
    Algorithm, Choice, Counts, Error, MAX_RANKS, Member, Operation, Operation::*, Sizes, Step, steps,
};

/// Four ranks with blocks of 6 bytes, vectors of 24: (bytes sent, received), as each call counts them.
#[test]
fn sums_of_equal_blocks_give_the_block() {
    let block = |operation, ranks, send, recv| match Sizes::from_sums(operation, ranks, send, recv) {
        Sizes::Bytes(bytes) => bytes,
        other => panic!("{operation}: {other:?}"),
    };
    for (operation, send, recv, bytes) in [
        (Barrier, 0, 0, 0),
        (Bcast, 24, 0, 24),
        (Bcast, 0, 24, 24),
        (Allreduce, 24, 24, 24),
        // The root, which does not count its own block, and another rank.
        (Gather, 0, 18, 6),
        (Gather, 6, 0, 6),
        (Scatter, 18, 0, 6),
        (Scatter, 0, 6, 6),
        (Allgather, 6, 24, 6),
        (ReduceScatterBlock, 24, 6, 6),
        (Alltoall, 24, 24, 6),
    ] {
        assert_eq!(block(operation, 4, send, recv), bytes, "{operation} {send} {recv}");
    }
    assert!(matches!(Sizes::from_sums(Gatherv, 4, 0, 18), Sizes::Sums { send: 0, recv: 18 }));
    // Alone, a root has nothing of others; a communicator without ranks, which no trace has, is taken as one rank.
    assert_eq!(block(Gather, 1, 0, 6), 6);
    assert_eq!(block(Alltoall, 0, 6, 6), 6);
}

/// The sender decides how long a message is; a rank of four that obtains 40 bytes expects a fourth of them from each.
#[test]
fn receives_of_which_only_the_sum_is_known_are_equal_shares() {
    let sizes = Sizes::Sums { send: 20, recv: 40 };
    for algorithm in [Algorithm::Linear, Algorithm::LinearEmpty, Algorithm::Pairwise] {
        let member = Member { operation: Alltoallv, ranks: 4, rank: 1, root: 0, unit: 1 };
        let steps = steps(member, Choice::plain(algorithm), sizes).unwrap();
        let mut blocks: Vec<_> = steps
            .filter_map(|step| match step {
                Step::Recv { from, data, .. } => Some((from, data.offset, data.len)),
                _ => None,
            })
            .collect();
        blocks.sort_unstable();
        assert_eq!(blocks, [(0, 0, 10), (2, 20, 10), (3, 30, 10)], "{algorithm}");
    }
}

/// Bytes for each of four ranks, and of all, as far as every member knows them from its own sums.
#[test]
fn members_agree_on_the_bytes_that_rules_compare() {
    let sums = |send, recv| Sizes::Sums { send, recv };
    let counts = Counts::new([1, 2, 3, 14]).unwrap();
    for (operation, sizes, known) in [
        (ReduceScatter, sums(20, 3), (5, 20)),
        (Allgatherv, sums(3, 20), (5, 20)),
        (Gatherv, sums(3, 20), (0, 0)),
        (Scatterv, sums(20, 3), (0, 0)),
        (Alltoallv, sums(20, 20), (0, 0)),
        (Gatherv, Sizes::Blocks(&counts), (5, 20)),
        (Alltoallv, Sizes::Pairs { send: &counts, recv: &counts }, (0, 0)),
        (Allgather, Sizes::Bytes(6), (6, 24)),
        (Allreduce, Sizes::Bytes(6), (6, 6)),
    ] {
        let member = Member { operation, ranks: 4, rank: 0, root: 0, unit: 1 };
        assert_eq!(common_bytes(&member, sizes), known, "{operation}");
    }
}

/// A binomial tree needs the block of every rank below: of a rooted operation the sums do not tell.
#[test]
fn rules_that_need_counts_are_passed_over_without() {
    let rules = |name: &str| format!("{name} = [{{ algorithm = 'binomial' }}, {{ algorithm = 'linear' }}]");
    let counts = Counts::new([1, 2, 3, 14]).unwrap();
    for (operation, name) in [(Gatherv, "gatherv"), (Scatterv, "scatterv")] {
        let table = Table::from_toml(&rules(name)).unwrap();
        let member = Member { operation, ranks: 4, rank: 0, root: 0, unit: 1 };
        let chosen = |sizes| table.choose(&member, sizes).algorithm.to_string();
        assert_eq!(chosen(Sizes::Blocks(&counts)), "binomial");
        assert_eq!(chosen(Sizes::Sums { send: 6, recv: 6 }), "linear");
    }
    let table = Table::from_toml("allgatherv = [{ algorithm = 'bruck' }, { algorithm = 'ring' }]").unwrap();
    let member = Member { operation: Allgatherv, ranks: 4, rank: 0, root: 0, unit: 1 };
    assert_eq!(table.choose(&member, Sizes::Sums { send: 6, recv: 20 }).algorithm.to_string(), "bruck");
}

#[test]
fn lists_of_counts_have_a_rank_and_not_too_many() {
    assert_eq!(MAX_RANKS, 1_048_576);
    let of = |ranks: usize| Counts::new(std::iter::repeat_n(1, ranks)).map(|counts| counts.ranks());
    assert_eq!(of(1_048_576).unwrap(), 1_048_576);
    for ranks in [0, 1_048_577] {
        let error = of(ranks).unwrap_err();
        assert!(matches!(error, Error::Ranks { ranks: told } if told == ranks as u64), "{error}");
    }
    assert!(matches!(Counts::new([u64::MAX, 1]), Err(Error::TooLarge)));
}

/// As the libraries call themselves.
#[test]
fn libraries_are_told_apart() {
    for (version, library) in [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", Library::OpenMpi),
        ("IBM Spectrum MPI v10.4.0.3", Library::OpenMpi),
        ("MPICH Version:      4.0.2\nMPICH Device:       ch4:ucx", Library::Mpich),
        ("Intel(R) MPI Library 2021.9 for Linux* OS", Library::Mpich),
    ] {
        assert_eq!(Library::named(version), library, "{version}");
    }
    // A file is opened on a duplicate of its communicator.
    for library in [Library::Mpich, Library::OpenMpi] {
        assert_eq!(library.agreement("MPI_File_open"), library.agreement("MPI_Comm_dup"), "{library:?}");
    }
    // Large counts, of the same functions.
    let of = |name| Library::OpenMpi.agreement(name);
    assert_eq!(of("MPI_File_read_all_c"), [(Operation::Allgather, 32)]);
    assert_eq!(of("MPI_Send"), []);
}

/// Of a broadcast from rank 0, a rank's parent is the rank without its lowest digit in base `fanout` that is not 0.
#[test]
fn knomial_trees_of_any_radix_and_size() {
    for (ranks, fanout) in [(40_000, 200), (70_000, 65_536), (MAX_RANKS, MAX_RANKS), (MAX_RANKS, u32::MAX)] {
        let choice = Choice { fanout, ..Choice::plain(Algorithm::Knomial) };
        let of = |rank| {
            let member = Member { operation: Bcast, ranks, rank, root: 0, unit: 1 };
            steps(member, choice, Sizes::Bytes(8)).unwrap()
        };
        let digits = |rank: u32| {
            std::iter::successors(Some(rank), |rest| Some(rest / fanout)).take_while(|&rest| rest > 0)
        };
        for rank in [1, 199, 200, 201, 39_999] {
            let trailing = digits(rank).take_while(|rest| rest.is_multiple_of(fanout)).count() as u32;
            let parent = rank - rank % fanout.saturating_pow(trailing + 1);
            let parents: Vec<u32> = of(rank)
                .filter_map(|step| match step {
                    Step::Recv { from, .. } => Some(from),
                    _ => None,
                })
                .collect();
            assert_eq!(parents, [parent], "{ranks} {fanout} {rank}");
        }
        let children = of(0).filter(|step| matches!(step, Step::Send { .. })).count();
        // Numbers of one digit and zeros.
        let expected = (1..ranks).filter(|&rank| {
            let lowest = digits(rank).find(|rest| !rest.is_multiple_of(fanout)).unwrap_or(0);
            lowest < fanout
        });
        assert_eq!(children, expected.count(), "{ranks} {fanout}");
    }
}
