//! Which algorithm of collectives is the fastest on a network: those of the libraries, by message size, between the nodes of a trace, with
//! the contention of the algorithm itself. All ranks enter at once; a time is that of the last one.

mod mpich;

pub use mpich::OwnRules;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use collectives::choose::Table;
use collectives::{Algorithm, Choice, Member, Sizes};
use replay::{Engine, Job, Loaded, OpCodes};
use results::table::{Cell, Column, Table as Shown};
use vef_format::operation::{Amounts, Operation, Sizing};
use vef_format::text::Reader;
use vef_format::units::{Bytes, Picos};

use crate::allocation::allocate;
use crate::driver::run;
use crate::error::SimError;
use crate::progress::Progress;
use crate::settings::Settings;

/// A library whose algorithms can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Open MPI 4.1, component `tuned`.
    OpenMpi,
    /// MPICH 4.0.
    Mpich,
    /// NCCL 2.19.
    Nccl,
}

/// An algorithm of a library.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The library.
    pub library: Library,
    /// Its name there, and its parameters if it is without them in another candidate.
    pub name: &'static str,
    /// Its number in Open MPI; 0 elsewhere.
    pub number: u32,
    /// The schedule.
    pub choice: Choice,
}

/// Segments of Open MPI's pipelines.
const SEGMENT: u64 = 32 << 10;
/// Chunks of NCCL's protocol Simple.
const CHUNK: u64 = 512 << 10;
/// Message sizes: 8 B · 4ⁿ.
const LEAST: u64 = 8;
const MOST: u64 = 2 << 20;
/// Most bytes of a rank.
const MOST_OF_RANK: u64 = 16 << 20;

/// The operations that can be tuned.
pub const OPERATIONS: [Operation; 6] = [
    Operation::Allreduce,
    Operation::Alltoall,
    Operation::Allgather,
    Operation::Bcast,
    Operation::Reduce,
    Operation::Barrier,
];

/// The algorithms of an operation, of all libraries; none of one that cannot be tuned.
fn candidates(operation: Operation) -> Vec<Candidate> {
    use Algorithm::*;
    let open = |number, name, choice| Candidate { library: Library::OpenMpi, name, number, choice };
    let of = |library, name, choice| Candidate { library, name, number: 0, choice };
    let mpich = |name, algorithm| of(Library::Mpich, name, Choice::plain(algorithm));
    let nccl = |name, algorithm, fanout| {
        of(Library::Nccl, name, Choice { fanout, ..Choice::plain(algorithm).segmented(CHUNK) })
    };
    let plain = Choice::plain;
    let fanned = |algorithm, fanout| Choice { fanout, ..Choice::plain(algorithm) };
    match operation {
        Operation::Allreduce => vec![
            open(1, "basic_linear", plain(Linear)),
            open(2, "nonoverlapping", plain(ReduceBcast)),
            open(3, "recursive_doubling", plain(RecursiveDoubling)),
            open(4, "ring", plain(Ring)),
            open(5, "segmented_ring", plain(SegmentedRing).segmented(SEGMENT)),
            open(6, "rabenseifner", plain(RabenseifnerHalves)),
            mpich("MPIR_Allreduce_intra_recursive_doubling", RecursiveDoubling),
            mpich("MPIR_Allreduce_intra_reduce_scatter_allgather", Rabenseifner),
            nccl("ring", RingChannels, 2),
            nccl("tree", DoubleTree, 0),
        ],
        Operation::Alltoall => vec![
            open(1, "linear", plain(Linear)),
            open(2, "pairwise", plain(Pairwise)),
            open(3, "modified_bruck", plain(Bruck)),
            mpich("MPIR_Alltoall_intra_brucks", Bruck),
            mpich("MPIR_Alltoall_intra_pairwise", Pairwise),
            of(Library::Mpich, "MPIR_Alltoall_intra_scattered", fanned(Linear, 32)),
        ],
        Operation::Allgather => vec![
            open(2, "bruck", plain(Bruck)),
            open(3, "recursive_doubling", plain(RecursiveDoubling)),
            open(4, "ring", plain(Ring)),
            open(5, "neighbor", plain(NeighborExchange)),
            mpich("MPIR_Allgather_intra_brucks", Bruck),
            mpich("MPIR_Allgather_intra_recursive_doubling", RecursiveDoubling),
            mpich("MPIR_Allgather_intra_ring", Ring),
        ],
        Operation::Bcast => vec![
            open(1, "basic_linear", plain(Linear)),
            open(2, "chain", plain(Chain)),
            open(2, "chain 4 segmented", fanned(Chain, 4).segmented(SEGMENT)),
            open(3, "pipeline", fanned(Chain, 1).segmented(SEGMENT)),
            open(4, "split_binary_tree", plain(SplitBinary)),
            open(4, "split_binary_tree segmented", plain(SplitBinary).segmented(SEGMENT)),
            open(5, "binary_tree", plain(Binary)),
            open(5, "binary_tree segmented", plain(Binary).segmented(SEGMENT)),
            open(6, "binomial", plain(BinomialSpread)),
            open(6, "binomial segmented", plain(BinomialSpread).segmented(SEGMENT)),
            open(7, "knomial", fanned(Knomial, 4)),
            open(7, "knomial segmented", fanned(Knomial, 4).segmented(SEGMENT)),
            open(8, "scatter_allgather", plain(ScatterDoubling)),
            open(9, "scatter_allgather_ring", plain(ScatterRing)),
            mpich("MPIR_Bcast_intra_binomial", Binomial),
            mpich("MPIR_Bcast_intra_scatter_recursive_doubling_allgather", ScatterDoubling),
            mpich("MPIR_Bcast_intra_scatter_ring_allgather", ScatterRing),
        ],
        Operation::Reduce => vec![
            open(1, "linear", plain(Linear)),
            open(2, "chain", plain(Chain)),
            open(2, "chain 4 segmented", fanned(Chain, 4).segmented(SEGMENT)),
            open(3, "pipeline", fanned(Chain, 1).segmented(SEGMENT)),
            open(4, "binary", plain(Binary)),
            open(4, "binary segmented", plain(Binary).segmented(SEGMENT)),
            open(5, "binomial", plain(Binomial)),
            open(5, "binomial segmented", plain(Binomial).segmented(SEGMENT)),
            open(7, "rabenseifner", plain(Rabenseifner)),
            mpich("MPIR_Reduce_intra_binomial", Binomial),
            mpich("MPIR_Reduce_intra_reduce_scatter_gather", Rabenseifner),
        ],
        Operation::Barrier => vec![
            open(1, "linear", plain(Linear)),
            open(3, "recursive_doubling", plain(RecursiveDoubling)),
            open(4, "bruck", plain(Dissemination)),
            open(6, "tree", plain(Binomial)),
            mpich("MPIR_Barrier_intra_dissemination", Dissemination),
        ],
        _ => Vec::new(),
    }
}

/// The times of an operation with messages of one size.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The operation.
    pub operation: Operation,
    /// Bytes of the vector, or of a block for each rank.
    pub bytes: u64,
    /// The algorithms that can be used, with their times.
    pub times: Vec<(Candidate, Picos)>,
}

impl Tuned {
    /// The fastest one of a library, the first of equals.
    pub fn fastest(&self, library: Library) -> Option<(Candidate, Picos)> {
        let of_library = self.times.iter().filter(|(candidate, _)| candidate.library == library);
        of_library.min_by_key(|(_, time)| *time).copied()
    }
}

/// The times of all algorithms of operations, for the ranks of a trace.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Ranks.
    pub ranks: u32,
    /// By operation, then by size.
    pub cells: Vec<Tuned>,
}

/// Simulates all algorithms of the operations between the nodes of the first job, without its messages.
///
/// # Errors
/// The trace has no ranks, or the network is invalid.
pub fn tune(
    settings: &Settings,
    operations: &[Operation],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Tuning, SimError> {
    let jobs = settings.jobs.iter().map(|workload| workload.open()).collect::<Result<Vec<_>, _>>()?;
    let ranks = jobs.first().map_or(0, Job::program_tasks);
    let nodes = allocate(settings, &jobs)?.into_iter().next().unwrap_or_default();
    let of_operation = |&operation: &Operation| {
        let of_size = move |bytes| (operation, bytes, usable(operation, ranks, bytes));
        sizes(operation, ranks).into_iter().map(of_size)
    };
    let open: Vec<_> = operations.iter().flat_map(of_operation).collect();
    let all = open.iter().map(|(_, _, usable)| usable.len() as u64).sum();
    let (mut done, mut cells) = (0, Vec::new());
    for (operation, bytes, usable) in open {
        let trace = trace(operation, ranks, bytes)?;
        let mut times: Vec<(Candidate, Picos)> = Vec::new();
        for candidate in usable {
            progress(done, all);
            done += 1;
            // Of two libraries, the same schedule.
            let known = times.iter().find(|(other, _)| other.choice == candidate.choice);
            let time = match known {
                Some((_, time)) => *time,
                None => time(settings, &nodes, &trace, table(operation, candidate.choice))?,
            };
            times.push((candidate, time));
        }
        cells.push(Tuned { operation, bytes, times });
    }
    Ok(Tuning { ranks, cells })
}

/// The algorithms of an operation that can be used.
fn usable(operation: Operation, ranks: u32, bytes: u64) -> Vec<Candidate> {
    let member = Member { operation, ranks, rank: 0, root: 0, unit: 1 };
    let is_usable = |Candidate { choice, .. }: &Candidate| {
        // Open MPI then uses Bruck's algorithm in its place, and MPICH refuses it.
        let is_refused = operation == Operation::Allgather
            && choice.algorithm == Algorithm::RecursiveDoubling
            && !ranks.is_power_of_two();
        !is_refused && table(operation, *choice).decide(&member, Sizes::Bytes(bytes), |_| true).is_some()
    };
    candidates(operation).into_iter().filter(is_usable).collect()
}

/// The sizes of an operation.
fn sizes(operation: Operation, ranks: u32) -> Vec<u64> {
    let of_rank = |bytes: u64| match operation.sizing() {
        Sizing::None | Sizing::Vector => bytes,
        Sizing::EqualBlocks | Sizing::Blocks | Sizing::EqualPairs | Sizing::Pairs => bytes * u64::from(ranks),
    };
    if operation.sizing() == Sizing::None {
        return vec![0];
    }
    let all = std::iter::successors(Some(LEAST), |bytes| Some(bytes * 4)).take_while(|bytes| *bytes <= MOST);
    all.filter(|bytes| *bytes == LEAST || of_rank(*bytes) <= MOST_OF_RANK).collect()
}

/// The run time of a trace on these nodes, its collectives by a table.
fn time(
    settings: &Settings,
    nodes: &[u32],
    trace: &Arc<Loaded>,
    algorithms: Table,
) -> Result<Picos, SimError> {
    let engine = Engine::builder()
        .send_completion(settings.network.send_completion(settings.send_completion))
        .same_node(settings.same_node)
        .algorithms(algorithms)
        .job(Job::loaded(trace).nodes(nodes.to_vec()))
        .engine()?;
    Ok(Picos(run(engine, &settings.network, &mut |_: Progress| {})?.runtime_ps))
}

/// A table that uses one algorithm.
fn table(operation: Operation, choice: Choice) -> Table {
    let Choice { algorithm, segment, fanout, .. } = choice;
    let rule = format!(
        "{} = [ {{ algorithm = \"{algorithm}\", segment = {segment}, fanout = {fanout} }} ]",
        operation.key()
    );
    Table::from_toml(&rule).unwrap_or_default()
}

/// A trace of one operation.
fn trace(operation: Operation, ranks: u32, bytes: u64) -> Result<Arc<Loaded>, SimError> {
    let mut text = format!("VEF3 {ranks} 0 1 1 {ranks} 0 1000\nC0");
    (0..ranks).for_each(|rank| _ = write!(text, " {rank}"));
    text.push('\n');
    let code = OpCodes::default().code(operation).map_or(0, |code| code.0);
    for rank in 0..ranks {
        let Amounts { send, recv } = amounts(operation, ranks, rank, bytes);
        _ = writeln!(text, "G0 C0 {code} {rank} {} {} 0 0 -1", send.0, recv.0);
    }
    let reader =
        Reader::from_bytes(text.as_bytes(), Path::new("collective")).map_err(replay::LoadError::from)?;
    Ok(Arc::new(Loaded::read(reader, OpCodes::default())?))
}

/// What a rank has, the root being 0.
fn amounts(operation: Operation, ranks: u32, rank: u32, bytes: u64) -> Amounts {
    let all = bytes * u64::from(ranks);
    let (send, recv) = match (operation, rank) {
        (Operation::Bcast, 0) | (Operation::Reduce, 1..) => (bytes, 0),
        (Operation::Bcast, _) | (Operation::Reduce, _) => (0, bytes),
        (Operation::Allgather, _) => (bytes, all),
        (Operation::Alltoall, _) => (all, all),
        _ => (bytes, bytes),
    };
    Amounts { send: Bytes(send), recv: Bytes(recv) }
}

impl Tuning {
    /// A row for each operation, size and algorithm.
    pub fn table(&self) -> Shown {
        let columns = [
            Column::new("operation", "operation"),
            Column::new("bytes", "bytes").means("Of the vector, or of a block for each rank"),
            Column::new("library", "library"),
            Column::new("algorithm", "algorithm"),
            Column::new("time_ps", "time"),
            Column::new("fastest", "fastest").means("Of its library"),
        ];
        let mut table = Shown::new("tuning", "Algorithms", columns);
        for cell in &self.cells {
            for (candidate, time) in &cell.times {
                let fastest =
                    cell.fastest(candidate.library).is_some_and(|(best, _)| best.name == candidate.name);
                table.row([
                    Cell::text(cell.operation.key()),
                    Cell::Bytes(cell.bytes.into()),
                    Cell::text(candidate.library.key()),
                    Cell::text(candidate.name),
                    Cell::Time(time.0.into()),
                    Cell::text(if fastest { "*" } else { "" }),
                ]);
            }
        }
        table
    }

    /// The fastest of a library by size, from each size at which it changes on; of an operation that has any.
    fn choices(&self, library: Library) -> Vec<(Operation, Vec<(u64, Candidate)>)> {
        let mut all: Vec<(Operation, Vec<(u64, Candidate)>)> = Vec::new();
        for cell in &self.cells {
            let Some((fastest, _)) = cell.fastest(library) else { continue };
            if all.last().is_none_or(|(operation, _)| *operation != cell.operation) {
                all.push((cell.operation, Vec::new()));
            }
            let Some((_, choices)) = all.last_mut() else { continue };
            if choices.last().is_none_or(|(_, last)| last.name != fastest.name) {
                choices.push((cell.bytes, fastest));
            }
        }
        all
    }

    /// Rules for Open MPI: `--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE`.
    pub fn openmpi_rules(&self) -> String {
        let choices = self.choices(Library::OpenMpi);
        let mut text = format!("{} # collectives\n", choices.len());
        for (operation, choices) in choices {
            // Open MPI compares the bytes of all blocks together.
            let blocks = match operation.sizing() {
                Sizing::EqualBlocks | Sizing::EqualPairs => u64::from(self.ranks),
                _ => 1,
            };
            let number = open_mpi_number(operation);
            _ = writeln!(text, "{number} # {}\n1 # communicator sizes", operation.key());
            _ = writeln!(text, "{} # ranks\n{} # message sizes", self.ranks, choices.len());
            for (at, (bytes, Candidate { number, name, choice, .. })) in choices.into_iter().enumerate() {
                let from = if at == 0 { 0 } else { bytes * blocks };
                let fanout = choice.fanout;
                _ = writeln!(text, "{from} {number} {fanout} {} # {name}", choice.segment);
            }
        }
        text
    }

    /// Choices for NCCL's example tuner plugin: `NCCL_TUNER_CONFIG_FILE=FILE`.
    pub fn nccl_csv(&self) -> String {
        let mut text =
            "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n".to_owned();
        for (operation, choices) in self.choices(Library::Nccl) {
            for (at, (bytes, candidate)) in choices.iter().enumerate() {
                let from = if at == 0 { 0 } else { *bytes };
                let to = choices.get(at + 1).map_or(u64::from(u32::MAX), |(next, _)| next - 1);
                let (key, name, ranks) = (operation.key(), candidate.name, self.ranks);
                _ = writeln!(text, "{key},{from},{to},{name},simple,-1,-1,{ranks}");
            }
        }
        text
    }
}

impl Library {
    fn key(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Nccl => "nccl",
        }
    }
}

/// The number of an operation in Open MPI's rules (`COLLTYPE_T`).
fn open_mpi_number(operation: Operation) -> u32 {
    match operation {
        Operation::Allgather => 0,
        Operation::Allgatherv => 1,
        Operation::Allreduce => 2,
        Operation::Alltoall => 3,
        Operation::Alltoallv => 4,
        Operation::Alltoallw => 5,
        Operation::Barrier => 6,
        Operation::Bcast => 7,
        Operation::Exscan => 8,
        Operation::Gather => 9,
        Operation::Gatherv => 10,
        Operation::Reduce => 11,
        Operation::ReduceScatter => 12,
        Operation::ReduceScatterBlock => 13,
        Operation::Scan => 14,
        Operation::Scatter => 15,
        Operation::Scatterv => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Workload;

    fn tuned(ranks: u32, operations: &[Operation]) -> Tuning {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace.vef");
        let mut text = format!("VEF3 {ranks} {ranks} 0 0 0 0 1000\n");
        (0..ranks).for_each(|rank| text += &format!("{rank} {rank} {rank} 0 0 0 -1\n"));
        std::fs::write(&trace, text).unwrap();
        let settings = Settings { jobs: vec![Workload::new(&trace)], ..Settings::default() };
        tune(&settings, operations, &mut |_, _| {}).unwrap()
    }

    /// Times by hand on one switch: 1 µs and 800 ps a byte for a message.
    #[test]
    fn the_fastest_follow_from_the_network() {
        let tuning = tuned(4, &[Operation::Allreduce, Operation::Barrier]);
        let time = |cell: &Tuned, name: &str| {
            cell.times.iter().find(|(candidate, _)| candidate.name == name).map(|(_, time)| time.0)
        };
        // Two rounds; and three steps with a quarter of the vector for each of two phases.
        let first = &tuning.cells[0];
        assert_eq!(first.bytes, 8);
        assert_eq!(time(first, "recursive_doubling"), Some(2 * (1_000_000 + 8 * 800)));
        assert_eq!(time(first, "ring"), Some(6 * (1_000_000 + 2 * 800)));
        let large = &tuning.cells[9];
        assert_eq!(large.bytes, 2 << 20);
        assert_eq!(time(large, "ring"), Some(6 * (1_000_000 + (2 << 18) * 800)));
        let barrier = tuning.cells.last().unwrap();
        assert_eq!((barrier.bytes, time(barrier, "recursive_doubling")), (0, Some(2_000_000)));

        assert_eq!(first.fastest(Library::OpenMpi).unwrap().0.name, "recursive_doubling");
        assert_ne!(large.fastest(Library::OpenMpi).unwrap().0.name, "recursive_doubling");
        let rules = tuning.openmpi_rules();
        assert!(
            rules.starts_with("2 # collectives\n2 # allreduce\n1 # communicator sizes\n4 # ranks\n"),
            "{rules}"
        );
        assert!(rules.contains(" # message sizes\n0 3 0 0 # recursive_doubling\n"), "{rules}");
        assert!(
            rules.contains("6 # barrier\n1 # communicator sizes\n4 # ranks\n1 # message sizes\n0 "),
            "{rules}"
        );
        let csv = tuning.nccl_csv();
        assert!(csv.lines().skip(1).all(|line| line.starts_with("allreduce,") && line.ends_with(",-1,-1,4")));
    }

    /// What a library does by itself is a candidate, so that the fastest is never slower.
    #[test]
    fn every_choice_of_a_library_is_a_candidate() {
        let libraries = [Library::OpenMpi, Library::Mpich]
            .map(|library| (library, Table::builtin(library.key()).unwrap()));
        for operation in OPERATIONS {
            for ranks in (2..70).chain([128, 200, 256, 300, 600, 1024, 3000, 4096, 8192]) {
                for bytes in sizes(operation, ranks) {
                    let member = Member { operation, ranks, rank: 0, root: 0, unit: 1 };
                    for (library, table) in &libraries {
                        let choice = table.choose(&member, Sizes::Bytes(bytes));
                        let is_there = |of: &Candidate| of.library == *library && of.choice == choice;
                        assert!(
                            usable(operation, ranks, bytes).iter().any(is_there),
                            "{operation} of {ranks} ranks, {bytes} bytes: {choice:?} of {library:?}"
                        );
                    }
                }
            }
            let mut names: Vec<_> =
                candidates(operation).iter().map(|of| (of.library.key(), of.name)).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{operation}");
        }
    }

    /// The times, too.
    #[test]
    fn the_fastest_is_not_slower_than_what_a_library_does() {
        let ranks = 9;
        let tuning = tuned(ranks, &OPERATIONS);
        let nodes: Vec<u32> = (0..ranks).collect();
        for cell in &tuning.cells {
            let trace = trace(cell.operation, ranks, cell.bytes).unwrap();
            for library in [Library::OpenMpi, Library::Mpich] {
                let by_itself = Table::builtin(library.key()).unwrap();
                let by_itself = time(&Settings::default(), &nodes, &trace, by_itself).unwrap();
                let (fastest, best) = cell.fastest(library).unwrap();
                let Tuned { operation, bytes, .. } = cell;
                assert!(
                    best <= by_itself,
                    "{operation}, {bytes} bytes, {fastest:?}: {best:?}, {by_itself:?}"
                );
            }
        }
    }

    /// Algorithms that cannot be used are left out, and Open MPI's sizes are those of all blocks.
    #[test]
    fn rules_are_for_what_can_be_used() {
        let tuning = tuned(3, &[Operation::Allgather]);
        for cell in &tuning.cells {
            assert!(
                cell.times
                    .iter()
                    .all(|(candidate, _)| !["neighbor", "recursive_doubling"].contains(&candidate.name))
            );
        }
        let sizes: Vec<u64> = tuning.cells.iter().map(|cell| cell.bytes).collect();
        assert_eq!(sizes, [8, 32, 128, 512, 2048, 8192, 32_768, 131_072, 524_288, 2_097_152]);
        let tuning = tuned(4, &[Operation::Alltoall]);
        for (from, candidate) in &tuning.choices(Library::OpenMpi)[0].1[1..] {
            let line = format!("\n{} {} 0 0 # {}\n", 4 * from, candidate.number, candidate.name);
            assert!(tuning.openmpi_rules().contains(&line), "{line}");
        }
        assert_eq!(candidates(Operation::Scan).len(), 0);
        for operation in OPERATIONS {
            for Candidate { choice, name, .. } in candidates(operation) {
                let rules = table(operation, choice);
                assert_eq!(rules.rules(operation)[0].choice(), choice, "{name}");
            }
        }
    }
}
