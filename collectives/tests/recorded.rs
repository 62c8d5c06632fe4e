//! The tables of Open MPI and MPICH against what those libraries were seen to send.
//!
//! `tests/data/{openmpi,mpich}.txt` was recorded below the collectives of Open MPI 4.1.4 and MPICH 4.0.2 by
//! `tests/record/record.sh`, for 2 to 64 ranks. A line: operation, bytes, ranks, root, messages, their bytes, FNV-1a of all pairs. Where the
//! schedules differ is listed here and explained in `docs/collectives.md`; everywhere else every pair of ranks
//! exchanges exactly the recorded number of messages and bytes. Where the two libraries are installed, they are recorded anew for a few ranks.

use collectives::between::{Move, Party, Peer, Role, creation};
use collectives::choose::Table;
use collectives::creations::Library;
use collectives::windows::OneSided;
use collectives::{Algorithm as A, Choice, Counts, Member, Operation, Operation::*, Sizes, Step, steps};
use std::collections::BTreeMap;

/// Operations whose schedules are the nearest there are, not the same: with the algorithm chosen and the number of cases.
type Differences = &'static [(Operation, A, usize)];

const OPENMPI: Differences = &[];
const MPICH: Differences = &[];

#[test]
fn openmpi_sends_these_messages() {
    compare("openmpi", include_str!("data/openmpi.txt"), 4849, OPENMPI);
}

#[test]
fn mpich_sends_these_messages() {
    compare("mpich", include_str!("data/mpich.txt"), 4849, MPICH);
}

#[test]
fn openmpi_as_installed_sends_these_messages() {
    record("openmpi", 10, &[]);
    record("openmpi", 18, &[]);
}

#[test]
fn mpich_as_installed_sends_these_messages() {
    record("mpich", 10, &[]);
    record("mpich", 33, &[]);
}

#[test]
fn mpich_creates_communicators_by_these_messages() {
    creations("mpich", Library::Mpich, include_str!("data/mpich-creations.txt"), &[2, 5, 8]);
}

#[test]
fn openmpi_creates_communicators_by_these_messages() {
    creations("openmpi", Library::OpenMpi, include_str!("data/openmpi-creations.txt"), &[2, 5, 8]);
}

#[test]
fn mpich_as_installed_creates_communicators_by_these_messages() {
    let Some(recorded) = recorded("mpich", &["5", "creations"]) else { return };
    creations("mpich", Library::Mpich, &recorded, &[5]);
}

#[test]
fn openmpi_as_installed_creates_communicators_by_these_messages() {
    let Some(recorded) = recorded("openmpi", &["5", "creations"]) else { return };
    creations("openmpi", Library::OpenMpi, &recorded, &[5]);
}

/// What the recorder says of an MPI, if that is installed.
fn recorded(mpi: &str, arguments: &[&str]) -> Option<String> {
    if !skipping::installed(&format!("mpicc.{mpi}")) {
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/record/record.sh");
    let recorded = std::process::Command::new(script).arg(mpi).args(arguments).output().unwrap();
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    Some(String::from_utf8(recorded.stdout).unwrap())
}

/// Compares the creations of communicators, and the opening, viewing and closing of a file, by an MPI of so many ranks. A call sends what the
/// collectives of its agreement do, by the algorithms that the library's own code uses.
fn creations(mpi: &str, library: Library, recorded: &str, of_ranks: &[u32]) {
    let table = Table::builtin(mpi).unwrap();
    let algorithms = |function: &str, (operation, bytes), ranks| match (library, operation, function) {
        // Of an id, a non-blocking collective in a binomial tree.
        (Library::OpenMpi, Allreduce, function) if bytes == 4 && !function.starts_with("File_") => {
            vec![(Reduce, Choice::plain(A::Binomial)), (Bcast, Choice::plain(A::BinomialSpread))]
        }
        // Code of their own.
        (Library::Mpich, Allreduce, "Comm_create_group" | "Comm_idup") => {
            vec![(Allreduce, Choice::plain(A::RecursiveDoubling))]
        }
        _ => {
            let member = Member { operation, ranks, rank: 0, root: 0, unit: 4 };
            vec![(operation, table.choose(&member, Sizes::Bytes(bytes)))]
        }
    };
    for &ranks in of_ranks {
        let of_ranks = |words: &Vec<&str>| words[2].parse() == Ok(ranks);
        let lines: Vec<_> = recorded.lines().map(|line| line.split(' ').collect()).filter(of_ranks).collect();
        assert_eq!(lines.len(), 29, "{recorded}");
        for words in lines {
            let line = words.join(" ");
            let [messages, total, digest] = [4, 5, 6].map(|at| words[at].parse::<u64>().unwrap());
            let mut parts = library.agreement(&format!("MPI_{}", words[0])).to_vec();
            // Within the new communicator, which has all ranks here.
            if library == Library::Mpich && ["Comm_split", "Cart_sub", "Comm_split_type"].contains(&words[0])
            {
                parts.push((Bcast, 4));
            }
            let mut pairs = Pairs::new();
            for (operation, bytes) in parts {
                for (operation, choice) in algorithms(words[0], (operation, bytes), ranks) {
                    add(&mut pairs, operation, choice, (ranks, 0, 4), |_| Sizes::Bytes(bytes));
                }
            }
            let ours = pairs.values().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            let accesses = words[0].ends_with("_all") || words[0].ends_with("_ordered");
            if words[0] == "File_open" || accesses && library == Library::OpenMpi {
                // And more, which depends on the file's system; for two ranks no agreement on accesses.
                let fewer = ours.0 < messages && ours.1 <= total || accesses && ranks == 2;
                assert!(ours.0 > 0 && fewer, "{mpi}: {line}: {ours:?}");
                continue;
            }
            if words[0] == "Dist_graph_create" {
                // And the edges.
                assert!(ours.0 > 0 && ours.0 < messages && ours.1 < total, "{mpi}: {line}: {ours:?}");
                continue;
            }
            if (library, words[0]) == (Library::OpenMpi, "File_preallocate") {
                // Of a file that is long enough, the first broadcast alone.
                let others = u64::from(ranks) - 1;
                assert_eq!((messages, total), (others, 8 * others), "{mpi}: {line}");
                assert!(ours.0 > messages && ours.1 > total, "{mpi}: {line}: {ours:?}");
                continue;
            }
            assert_eq!(ours, (messages, total), "{mpi}: {line}");
            // Open MPI's code for groups has another tree.
            if (library, words[0]) != (Library::OpenMpi, "Comm_create_group") {
                assert_eq!(fnv1a(&pairs), digest, "{mpi}: {line}: {pairs:?}");
            }
        }
    }
}

#[test]
fn mpich_synchronises_windows_by_these_messages() {
    windows("mpich", OneSided::Mpich, MPICH_WINDOWS, 9);
}

#[test]
fn openmpi_synchronises_windows_by_these_messages() {
    windows("openmpi", OneSided::Pt2pt, PT2PT_WINDOWS, 8);
    windows("openmpi", OneSided::Ucx, UCX_WINDOWS, 8);
    // Whichever component has the other windows, shared memory is that of `sm`.
    let shared = include_str!("data/openmpi-sm-windows.txt").lines();
    let shared: String =
        shared.filter(|line| !line.starts_with("Win_allocate ")).map(|line| format!("{line}\n")).collect();
    windows("openmpi", OneSided::Pt2pt, &shared, 2);
}

const MPICH_WINDOWS: &str = include_str!("data/mpich-windows.txt");
const PT2PT_WINDOWS: &str = include_str!("data/openmpi-pt2pt-windows.txt");
const UCX_WINDOWS: &str = include_str!("data/openmpi-ucx-windows.txt");

/// What is not collective too.
#[test]
fn installed_libraries_synchronise_windows_by_the_same_messages() {
    let all = [
        ("mpich", &["5", "windows"][..], MPICH_WINDOWS),
        ("openmpi", &["5", "windows", "pt2pt"], PT2PT_WINDOWS),
        ("openmpi", &["5", "windows", "ucx"], UCX_WINDOWS),
    ];
    for (mpi, arguments, known) in all {
        let Some(recorded) = recorded(mpi, arguments) else { continue };
        let known = known.lines().filter(|line| line.split(' ').nth(2) == Some("5"));
        // UCX may say in between that it does not reach a process that has ended.
        assert!(recorded.lines().filter(|line| !line.starts_with('[')).eq(known), "{mpi}: {recorded}");
    }
}

/// Compares so many kinds of collective synchronisations of windows, among 2, 5 and 8 ranks.
fn windows(mpi: &str, code: OneSided, recorded: &str, kinds: usize) {
    let table = Table::builtin(mpi).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let mut puts = false;
    for line in recorded.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [ranks, messages, total, digest] = [2, 4, 5, 6].map(|at| words[at].parse::<u64>().unwrap());
        let ranks = ranks as u32;
        // With `MPI_MODE_NOPRECEDE` a fence of `pt2pt` is its last collective alone, which traces do not follow.
        let (name, is_short) = match words[0].strip_suffix("_noprecede") {
            Some(name) => (name, true),
            None => (words[0].trim_end_matches("_nosucceed"), false),
        };
        let made = name.starts_with("Win_create") || name.starts_with("Win_allocate");
        if !made && !["Win_set_info", "Win_fence", "Win_free"].contains(&name) {
            puts = name == "Put_ring";
            continue;
        }
        let mut parts = code.agreement(&format!("MPI_{name}"));
        if is_short {
            parts = &parts[parts.len() - 1..];
        }
        let mut pairs = Pairs::new();
        for (place, &(operation, bytes)) in parts.iter().enumerate() {
            // The larger memory and its rank are one element.
            let unit = match bytes {
                12 => 12,
                bytes if bytes % 4 == 0 => 4,
                _ => 1,
            };
            let member = Member { operation, ranks, rank: 0, root: 0, unit };
            let choices = match code {
                // Of the ids of communicators, non-blocking collectives in a binomial tree.
                OneSided::Pt2pt | OneSided::Ucx if made && place < 3 => {
                    vec![(Reduce, Choice::plain(A::Binomial)), (Bcast, Choice::plain(A::BinomialSpread))]
                }
                _ => vec![(operation, table.choose(&member, Sizes::Bytes(bytes)))],
            };
            for (operation, choice) in choices {
                add(&mut pairs, operation, choice, (ranks, 0, unit), |_| Sizes::Bytes(bytes));
            }
        }
        // The puts have waited for it: 100 bytes each, with headers of 52.
        if std::mem::take(&mut puts) && code == OneSided::Pt2pt {
            for rank in 0..ranks {
                let pair = pairs.entry((rank, (rank + 1) % ranks)).or_default();
                *pair = (pair.0 + 1, pair.1 + 152);
            }
        }
        let ours = pairs.values().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        assert_eq!((ours, fnv1a(&pairs)), ((messages, total), digest), "{code:?}: {line}: {pairs:?}");
        seen.insert(words[0]);
    }
    assert_eq!(seen.len(), kinds, "{seen:?}");
}

#[test]
fn mpich_sends_these_messages_between_groups() {
    // Its Ibcast spreads the data in the other group from another rank than the one that has it, if the root's rank is not 0; where nothing
    // is to be spread, Iallgatherv sends empty messages.
    between("mpich", Library::Mpich, MPICH_BETWEEN, &[("Iallgatherv", 10), ("Ibcast", 10)]);
}

#[test]
fn openmpi_sends_these_messages_between_groups() {
    // The ranks that gather here do not know the sizes that they pass on.
    let known = &[("allgatherv", 48), ("gatherv", 48), ("scatterv", 48)];
    between("openmpi", Library::OpenMpi, OPENMPI_BETWEEN, known);
}

/// Lines of the recorder behind the size of the first group.
const MPICH_BETWEEN: &str = include_str!("data/mpich-between.txt");
const OPENMPI_BETWEEN: &str = include_str!("data/openmpi-between.txt");

#[test]
fn installed_libraries_send_the_same_between_groups() {
    for (mpi, known) in [("mpich", MPICH_BETWEEN), ("openmpi", OPENMPI_BETWEEN)] {
        let Some(recorded) = recorded(mpi, &["5", "between", "2"]) else { continue };
        // The creations depend on the name of the host.
        let known = known.lines().filter_map(|line| line.strip_prefix("2 "));
        let is_collective = |line: &&str| !line.starts_with("Intercomm");
        assert!(recorded.lines().filter(is_collective).eq(known.filter(is_collective)), "{mpi}: {recorded}");
    }
}

/// Bytes of rank i's block in the vector forms, as the recorder has it.
fn block_of(i: u32, bytes: u64) -> u64 {
    bytes * u64::from(i % 3)
}

/// The part of a rank of `MPI_COMM_WORLD` in a recorded collective between the `first` ranks and the others.
fn party(
    operation: Operation,
    blocking: bool,
    n: u64,
    (rank, first, ranks, root): (u32, u32, u32, u32),
    lists: &mut [Vec<u64>; 2],
) -> Party<'_> {
    let is_low = |rank: u32| rank < first;
    let number = |rank: u32| if is_low(rank) { rank } else { rank - first };
    let (low, own) = (is_low(rank), number(rank));
    let (size, others) = if low { (first, ranks - first) } else { (ranks - first, first) };
    let role = match operation {
        Bcast | Reduce | Gather | Scatter | Gatherv | Scatterv if rank == root => Role::Root,
        Bcast | Reduce | Gather | Scatter | Gatherv | Scatterv if low == is_low(root) => Role::Beside,
        Bcast | Reduce | Gather | Scatter | Gatherv | Scatterv => Role::Opposite(number(root)),
        _ => Role::Rootless,
    };
    let (size64, others64) = (u64::from(size), u64::from(others));
    let theirs: Vec<u64> = (0..others).map(|i| block_of(i, n)).collect();
    let sum = theirs.iter().sum();
    let is_root = role == Role::Root;
    let is_opposite = matches!(role, Role::Opposite(_));
    let if_root = |bytes: u64| if is_root { bytes } else { 0 };
    let if_opposite = |bytes: u64| if is_opposite { bytes } else { 0 };
    let (send, recv) = match operation {
        Bcast => (if_root(n), if_opposite(n)),
        Reduce => (if_opposite(n), if_root(n)),
        Allreduce => (n, n),
        Gather => (if_opposite(n), if_root(n * others64)),
        Scatter => (if_root(n * others64), if_opposite(n)),
        Allgather => {
            let (send, recv) = if low { (n, 2 * n) } else { (2 * n, n) };
            (send, recv * others64)
        }
        Alltoall => {
            let (send, recv) = if low { (n, 2 * n) } else { (2 * n, n) };
            (send * others64, recv * others64)
        }
        Gatherv => (if_opposite(block_of(own, n)), if_root(sum)),
        Scatterv => (if_root(sum), if_opposite(block_of(own, n))),
        Allgatherv => (block_of(own, n), sum),
        Alltoallv | Alltoallw => {
            let row: Vec<u64> = (0..others).map(|i| block_of(i + own, n)).collect();
            *lists = [row.clone(), row.clone()];
            (row.iter().sum(), row.iter().sum())
        }
        ReduceScatter => {
            let mut blocks: Vec<u64> = (0..size).map(|i| block_of(i, n)).collect();
            let rest = n * size64 * others64 - blocks.iter().sum::<u64>();
            *blocks.last_mut().unwrap() += rest;
            lists[1] = blocks;
            (n * size64 * others64, lists[1][own as usize])
        }
        ReduceScatterBlock => (n * size64 * others64, n * others64),
        _ => (0, 0),
    };
    match operation {
        Gatherv | Allgatherv => lists[1] = theirs,
        Scatterv => lists[0] = theirs,
        _ => {}
    }
    let [send_counts, recv_counts] = lists;
    Party {
        operation,
        blocking,
        rank: own,
        own: size,
        others,
        role,
        send,
        recv,
        unit: 1,
        send_counts,
        recv_counts,
    }
}

/// The messages of each pair of ranks, and number and bytes of all, when all ranks make their moves; the first group has the ranks below `first`.
/// Every receive has its message, which comes before its receiver waits for it.
fn played(first: u32, ranks: u32, moves: impl Fn(u32) -> Vec<Move>) -> (Pairs, (u64, u64)) {
    let (mut pairs, mut receives) = (Pairs::new(), Pairs::new());
    let mut left: Vec<_> = (0..ranks).map(|rank| moves(rank).into_iter().peekable()).collect();
    let mut goes_on = true;
    while std::mem::take(&mut goes_on) {
        for (rank, left) in (0..).zip(&mut left) {
            let (own, other) = if rank < first { (0, first) } else { (first, 0) };
            let world = |peer: Peer| match peer {
                Peer::Own(peer) => peer + own,
                Peer::Other(peer) => peer + other,
            };
            let has_come = |pairs: &Pairs, receives: &Pairs| {
                let mut own = receives.iter().filter(|((_, to), _)| *to == rank);
                own.all(|(pair, receives)| pairs.get(pair).is_some_and(|sent| sent.0 >= receives.0))
            };
            while let Some(step) = left.next_if(|&step| step != Move::Wait || has_come(&pairs, &receives)) {
                goes_on = true;
                match step {
                    Move::Send(to, bytes) => {
                        let pair = pairs.entry((rank, world(to))).or_default();
                        *pair = (pair.0 + 1, pair.1 + bytes);
                    }
                    Move::Receive(from) => receives.entry((world(from), rank)).or_default().0 += 1,
                    Move::Wait => {}
                }
            }
        }
    }
    assert!(left.iter_mut().all(|left| left.peek().is_none()), "a message does not come: {receives:?}");
    let sent: BTreeMap<_, _> = pairs.iter().map(|(pair, sum)| (*pair, sum.0)).collect();
    assert_eq!(sent, receives.iter().map(|(pair, sum)| (*pair, sum.0)).collect());
    let all = pairs.values().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    (pairs, all)
}

/// Compares collectives between groups of 1 and 1, 2 and 3, 5 and 1, 4 and 5 ranks.
fn between(mpi: &str, library: Library, recorded: &str, known: &[(&str, u32)]) {
    let table = Table::builtin(mpi).unwrap();
    let mut different: BTreeMap<String, u32> = BTreeMap::new();
    let (mut alike, mut creations_recorded) = (0, 0);
    for line in recorded.lines() {
        let (first, line) = line.split_once(' ').unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let (first, ranks) = (first.parse().unwrap(), words[2].parse().unwrap());
        if words[0].starts_with("Intercomm_") {
            creations_recorded += 1;
            created_between(library, &table, (first, ranks), &words);
            continue;
        }
        let [n, root, messages, total, digest] = [1, 3, 4, 5, 6].map(|at| words[at].parse::<u64>().unwrap());
        // Of nothing some of MPICH send empty messages, some do not.
        if n == 0 && library == Library::Mpich && !words[0].ends_with("barrier") {
            continue;
        }
        let blocking = !words[0].starts_with('I');
        let operation = Operation::named(words[0].trim_start_matches('I')).unwrap();
        let (pairs, ours) = played(first, ranks, |rank| {
            let mut lists = [Vec::new(), Vec::new()];
            let who = (rank, first, ranks, root as u32);
            party(operation, blocking, n, who, &mut lists).moves(library, &table).unwrap()
        });
        match (ours, fnv1a(&pairs)) == ((messages, total), digest) {
            true => alike += 1,
            false => *different.entry(words[0].to_owned()).or_default() += 1,
        }
    }
    let unlike: u32 = different.values().sum();
    // Two barriers, and 28 calls with 5 sizes, or 6 with none, and 2 roots.
    let sizes = if library == Library::Mpich { 5 } else { 6 };
    assert_eq!((alike + unlike, creations_recorded), (4 * (2 + 28 * sizes * 2), 4 * 2));
    let known = known.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
    assert_eq!(different, known);
}

/// Compares the creation of an inter-communicator. What Open MPI says of a process depends on the name of its host, and some of its trees
/// are others, so there the number of messages is compared.
fn created_between(library: Library, table: &Table, (first, ranks): (u32, u32), words: &[&str]) {
    if words[0] == "Intercomm_merge" {
        return;
    }
    let [messages, total, digest] = [4, 5, 6].map(|at| words[at].parse::<u64>().unwrap());
    let (pairs, ours) = played(first, ranks, |rank| {
        let (number, own) = if rank < first { (rank, first) } else { (rank - first, ranks - first) };
        creation(library, table, number, own, ranks - own).unwrap()
    });
    match library {
        Library::Mpich => {
            assert_eq!((ours, fnv1a(&pairs)), ((messages, total), digest), "{words:?}: {pairs:?}");
        }
        Library::OpenMpi => {
            assert_eq!(ours.0, messages, "{words:?}");
            assert!(ours.1.abs_diff(total) * 50 < total, "{words:?}: {ours:?}");
        }
    }
}

/// Records what an MPI sends among so many ranks, in 13 sizes of vectors and 10 of blocks, and compares that.
fn record(mpi: &str, ranks: u32, known: Differences) {
    if let Some(recorded) = recorded(mpi, &[&ranks.to_string(), "1200000", "70000"]) {
        compare(mpi, &recorded, 5 * 13 + 11 * 10 + 1, known);
    }
}

/// Compares so many recorded lines with what a table says.
fn compare(name: &str, recorded: &str, lines: usize, known: Differences) {
    let table = Table::builtin(name).unwrap();
    let mut different: BTreeMap<(Operation, A), Vec<&str>> = BTreeMap::new();
    let mut cases = 0;
    for line in recorded.lines() {
        let mut words = line.split(' ');
        let operation = Operation::named(words.next().unwrap()).unwrap();
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        let &[bytes, ranks, root, messages, total, digest] = numbers.as_slice() else { panic!("{line}") };
        let (algorithm, pairs) = scheduled(&table, operation, bytes, ranks as u32, root as u32);
        let ours = pairs.values().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        if (ours, fnv1a(&pairs)) != ((messages, total), digest) {
            different.entry((operation, algorithm)).or_default().push(line);
        }
        cases += 1;
    }
    assert_eq!(cases, lines);
    let known: BTreeMap<_, _> =
        known.iter().map(|&(operation, algorithm, n)| ((operation, algorithm), n)).collect();
    let counts: BTreeMap<_, _> = different.iter().map(|(&key, lines)| (key, lines.len())).collect();
    assert_eq!(counts, known, "of {cases} cases: {different:#?}");
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
    let choice = table.choose(&Member { operation, ranks, rank: 0, root, unit: 1 }, sizes_of(0));
    let mut pairs = Pairs::new();
    add(&mut pairs, operation, choice, (ranks, root, 1), sizes_of);
    (choice.algorithm, pairs)
}

/// Adds the messages of an operation of all ranks.
fn add<'a>(
    pairs: &mut Pairs,
    operation: Operation,
    choice: Choice,
    (ranks, root, unit): (u32, u32, u32),
    sizes_of: impl Fn(u32) -> Sizes<'a>,
) {
    for rank in 0..ranks {
        let shape = Member { operation, ranks, rank, root, unit };
        for step in steps(shape, choice, sizes_of(rank)).unwrap() {
            if let Step::Send { to, data } = step {
                let pair = pairs.entry((rank, to)).or_default();
                *pair = (pair.0 + 1, pair.1 + data.len);
            }
        }
    }
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
