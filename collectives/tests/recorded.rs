//! The tables of Open MPI and MPICH against what those libraries were seen to send.
//!
//! `tests/data/{openmpi,mpich}.txt` was recorded below the collectives of Open MPI 4.1.4 and MPICH 4.0.2 by
//! `tests/record/record.c`. A line: operation, bytes, ranks, root, messages, their bytes, FNV-1a of all pairs. Where the
//! schedules differ is listed here and explained in `docs/collectives.md`; everywhere else every pair of ranks
//! exchanges exactly the recorded number of messages and bytes.

use collectives::choose::Table;
use collectives::{Algorithm as A, Counts, Operation, Operation::*, Shape, Sizes, Step, steps};
use std::collections::BTreeMap;

/// Operations whose schedules are the nearest there are, not the same: with the algorithm chosen and the number of cases.
type Differences = &'static [(Operation, A, usize)];

const OPENMPI: Differences = &[
    (Allreduce, A::Rabenseifner, 47),
    (Allgatherv, A::GatherBcast, 67),
    (Alltoallv, A::Linear, 168),
    (ReduceScatter, A::ReduceThenScatter, 4),
    (ReduceScatter, A::RecursiveHalving, 2),
    (ReduceScatterBlock, A::ReduceThenScatter, 26),
    (ReduceScatterBlock, A::RecursiveHalving, 21),
];
const MPICH: Differences = &[(Reduce, A::Rabenseifner, 18), (Allgatherv, A::Ring, 56)];

#[test]
fn openmpi_sends_these_messages() {
    compare("openmpi", include_str!("data/openmpi.txt"), OPENMPI);
}

#[test]
fn mpich_sends_these_messages() {
    compare("mpich", include_str!("data/mpich.txt"), MPICH);
}

fn compare(name: &str, recorded: &str, known: Differences) {
    let table = Table::builtin(name).unwrap();
    let mut different: BTreeMap<(Operation, A), usize> = BTreeMap::new();
    let mut cases = 0;
    for line in recorded.lines() {
        let mut words = line.split(' ');
        let operation = Operation::from_name(words.next().unwrap()).unwrap();
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        let &[bytes, ranks, root, messages, total, digest] = numbers.as_slice() else { panic!("{line}") };
        let (algorithm, pairs) = scheduled(&table, operation, bytes, ranks as u32, root as u32);
        let ours = pairs.values().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        if (ours, fnv1a(&pairs)) != ((messages, total), digest) {
            *different.entry((operation, algorithm)).or_default() += 1;
        }
        cases += 1;
    }
    assert!(cases > 2000, "{cases}");
    let known: BTreeMap<_, _> =
        known.iter().map(|&(operation, algorithm, n)| ((operation, algorithm), n)).collect();
    assert_eq!(different, known, "of {cases} cases");
}

type Pairs = BTreeMap<(u32, u32), (u64, u64)>;

/// Messages and bytes from rank to rank.
fn scheduled(table: &Table, operation: Operation, bytes: u64, ranks: u32, root: u32) -> (A, Pairs) {
    let row = |rank: u32| Counts::new((0..ranks).map(|i| bytes * u64::from((i + rank) % 3))).unwrap();
    let rows: Vec<Counts> = (0..ranks).map(row).collect();
    let sizes_of = |rank: u32| match operation {
        Gatherv | Scatterv | Allgatherv | ReduceScatter => Sizes::Blocks(&rows[0]),
        // Symmetric: what i sends to j is what j sends to i.
        Alltoallv | Alltoallw => Sizes::Pairs { send: &rows[rank as usize], recv: &rows[rank as usize] },
        _ => Sizes::Bytes(bytes),
    };
    let choice = table.choose(&Shape { operation, ranks, rank: 0, root, unit: 1 }, sizes_of(0));
    let mut pairs = Pairs::new();
    for rank in 0..ranks {
        let shape = Shape { operation, ranks, rank, root, unit: 1 };
        for step in steps(shape, choice, sizes_of(rank)).unwrap() {
            if let Step::Send { to, data } = step {
                let pair = pairs.entry((rank, to)).or_default();
                *pair = (pair.0 + 1, pair.1 + data.len);
            }
        }
    }
    (choice.algorithm, pairs)
}

fn fnv1a(pairs: &Pairs) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (&(from, to), &(messages, bytes)) in pairs {
        for byte in format!("{from}:{to}:{messages}:{bytes} ").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
