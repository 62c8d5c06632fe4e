//! A benchmark of one size: made ready to run, and verified.

use collectives::{Buffer, Choice, Member, Operation};
use mpi_abi::api::{CallForm, CollectiveData, CollectiveFunction, OwnedCollective};
use mpi_abi::handles::Comm;
use vef_format::operation::Sizing;

use crate::benchmark::{Benchmark, Synthetic};
use crate::error::{Error, Result};
use crate::executor::PreparedSchedule;
use crate::library::{LibraryCall, OwnAlgorithm, OwnOperation};
use crate::messages::MessagePattern;
use crate::numbers::Numbers;
use crate::subject::Subject;
use crate::timer::Timer;
use crate::world::World;

/// What to time, of which size.
#[derive(Clone, Debug)]
pub struct Case {
    /// The operation.
    pub benchmark: Benchmark,
    /// Bytes of a block (of the vector where there are no blocks).
    pub bytes: u64,
    /// Rank that is the root, where there is one.
    pub root: u32,
    /// Sets of buffers used in turn.
    pub copies: usize,
    /// By what each rank's block is larger or smaller, for vector operations.
    pub factors: Option<Vec<f64>>,
    /// Computing between the start of a non-blocking operation and the wait for its end, ns.
    pub compute_ns: f64,
}

/// Makes a case ready to run.
///
/// # Errors
/// What MPI lacks, sizes beyond its counts.
pub fn prepare(world: &World, timer: &Timer, case: &Case) -> Result<Box<dyn Subject>> {
    let Case { benchmark, bytes, root, compute_ns, .. } = case;
    Ok(match benchmark {
        Benchmark::Synthetic(Synthetic::WaitUp) => {
            Box::new(KnownTime { timer: timer.clone(), ns: 1e3 * f64::from(world.rank + 1) })
        }
        Benchmark::Synthetic(Synthetic::WaitNull) => Box::new(KnownTime { timer: timer.clone(), ns: 0.0 }),
        Benchmark::Library(own) => Box::new(own.prepare(world, *root, *bytes)?),
        Benchmark::LibraryAlgorithm(own) => Box::new(library_call(world, own, case)?),
        Benchmark::Synthetic(pattern) => Box::new(MessagePattern::new(world, *pattern, *bytes)?),
        Benchmark::Mpi(collective, form) => {
            let numbers = numbers(benchmark, *bytes);
            let mut call = mpi_call(world, case, (*collective, *form), numbers)?;
            numbers.fill(call.send_mut(), world.rank);
            match *compute_ns > 0.0 {
                true => Box::new(Overlapped { call, timer: timer.clone(), ns: *compute_ns }),
                false => Box::new(call),
            }
        }
        Benchmark::Schedule(operation, choice) => {
            Box::new(program(world, case, (*operation, *choice), numbers(benchmark, *bytes))?)
        }
    })
}

/// A function of MPI with its data.
fn mpi_call(
    world: &World,
    case: &Case,
    (collective, form): (CollectiveFunction, CallForm),
    numbers: Numbers,
) -> Result<OwnedCollective> {
    let elements = case.bytes as usize / numbers.width();
    let block = |factor: &f64| (elements as f64 * factor).round() as usize;
    let counts = case.factors.as_ref().map(|factors| factors.iter().map(block).collect());
    let (datatype, width) = (numbers.datatype(&world.mpi), numbers.width());
    let blocks = CollectiveData { datatype, width, elements, counts, copies: case.copies };
    let comm = if collective.is_neighbourhood() { grid(world)? } else { world.comm };
    Ok(OwnedCollective::new(&world.mpi, collective, form, &blocks, (case.root as i32, comm))?)
}

/// Reductions add doubles where the size allows it; all else moves bytes.
fn numbers(benchmark: &Benchmark, bytes: u64) -> Numbers {
    let reduces = match benchmark {
        Benchmark::Mpi(collective, _) => collective.reduces(),
        Benchmark::Schedule(..)
        | Benchmark::LibraryAlgorithm(_)
        | Benchmark::Library(_)
        | Benchmark::Synthetic(_) => benchmark.operation().is_some_and(Operation::reduces),
    };
    if reduces && bytes.is_multiple_of(8) { Numbers::Doubles } else { Numbers::Bytes }
}

/// A schedule with its data.
fn program(
    world: &World,
    case: &Case,
    (operation, choice): (Operation, Choice),
    numbers: Numbers,
) -> Result<PreparedSchedule> {
    let member = Member {
        operation,
        ranks: world.size,
        rank: world.rank,
        root: case.root,
        unit: numbers.width() as u32,
    };
    let bytes = if operation == Operation::Barrier { 0 } else { case.bytes };
    let factors = case.factors.as_ref().filter(|_| operation.sizing() == Sizing::Blocks);
    let sorts = choice.algorithm.sorts();
    let counts = if sorts || factors.is_some() {
        let elements = (bytes / numbers.width() as u64) as f64;
        let factor = |rank: u32| factors.map_or(1.0, |factors| factors[rank as usize]);
        let block = |rank| (elements * factor(rank)).round() as u64 * numbers.width() as u64;
        let all = collectives::Counts::new((0..world.size).map(block))?;
        Some(if sorts { all.sorted(case.root, choice.order)? } else { all })
    } else {
        None
    };
    let sizes = match &counts {
        Some(counts) => collectives::Sizes::Blocks(counts),
        None => collectives::Sizes::Bytes(bytes),
    };
    let types = (numbers.datatype(&world.mpi), world.mpi.sum());
    let mut program = PreparedSchedule::new((&world.mpi, world.comm), member, choice, sizes, types)?;
    if let Some(buffer) = contributed(operation, world, case) {
        numbers.fill(program.buffer(buffer), world.rank);
    }
    Ok(program)
}

/// An algorithm of a library's with its data.
fn library_call(world: &World, own: &'static OwnAlgorithm, case: &Case) -> Result<LibraryCall> {
    let numbers = numbers(&case.benchmark, case.bytes);
    let mut call = own.prepare(world, case.root, case.bytes, numbers)?;
    if let Some(buffer) = contributed(own.operation(), world, case) {
        numbers.fill(call.buffer(buffer), world.rank);
    }
    Ok(call)
}

/// Where what this rank contributes is before a collective, if it contributes anything.
fn contributed(operation: Operation, world: &World, case: &Case) -> Option<Buffer> {
    match operation {
        Operation::Bcast if world.rank == case.root => Some(Buffer::Output),
        Operation::Bcast => None,
        Operation::Scatter | Operation::Scatterv if world.rank != case.root => None,
        _ => Some(Buffer::Input),
    }
}

/// Largest collective, in bytes, that is verified from every root.
const FROM_EVERY_ROOT: u64 = 4096;

/// Runs a collective once, of few bytes from each root, and holds the result against the definition of the operation. Collective.
///
/// # Errors
/// [`Error::Unmeasurable`] at every rank, naming the first wrong element of the lowest rank that has one.
pub fn verify(world: &World, case: &Case) -> Result<()> {
    let operation = match (&case.benchmark, case.benchmark.operation()) {
        (Benchmark::Library(own), _) => return verify_own(world, own, case),
        (Benchmark::Mpi(_, CallForm::NonBlocking | CallForm::Persistent), _) | (_, None) => return Ok(()),
        (_, Some(operation)) => operation,
    };
    let numbers = numbers(&case.benchmark, case.bytes);
    let width = numbers.width() as u64;
    let bytes = case.bytes / width * width;
    let roots = match operation.is_rooted() && bytes <= FROM_EVERY_ROOT {
        true => 0..world.size,
        false => case.root..case.root + 1,
    };
    for root in roots {
        let case = Case { bytes, root, copies: 1, factors: None, ..case.clone() };
        let output = run_once(world, &case, numbers)?;
        let place = (world.rank, world.size, root);
        let wrong = numbers.first_wrong(operation, place, (bytes / width) as usize, &output);
        let own = wrong.map_or([0.0; 4], |(index, found, expected)| [1.0, index as f64, found, expected]);
        let all = world.gather_rows(&[own])?;
        let first = all.iter().zip(0..).find(|(rows, _)| rows[0][0] != 0.0);
        let told =
            first.map_or([-1.0; 4], |(rows, rank)| [f64::from(rank), rows[0][1], rows[0][2], rows[0][3]]);
        let [rank, element, found, expected] = world.share(told)?;
        if rank >= 0.0 {
            let (operation, algorithm) = (case.benchmark.name(), case.benchmark.algorithm());
            return Err(Error::Unmeasurable(format!(
                "{operation} by {algorithm}, root {root}: rank {rank}, element {element} of the result of {bytes} bytes \
                 is {found} instead of {expected}: not timed"
            )));
        }
    }
    Ok(())
}

/// Runs an operation of a library's once and lets it check the result.
fn verify_own(world: &World, own: &'static OwnOperation, case: &Case) -> Result<()> {
    let mut prepared = own.prepare(world, case.root, case.bytes)?;
    prepared.run()?;
    let fault = prepared.fault();
    let faulty = world.gather(&[f64::from(u8::from(fault.is_some()))])?;
    let texts = world.gather_text(&fault.unwrap_or_default())?;
    let first = faulty.iter().position(|&faulty| faulty != 0.0);
    if !world.agree(first.is_some())? {
        return Ok(());
    }
    // Rank 0 alone has the text; it is the one that prints.
    let (rank, reason) = first.map_or((0, ""), |rank| (rank, texts.get(rank).map_or("", String::as_str)));
    Err(Error::Unmeasurable(format!("{}: rank {rank}: {reason}: not timed", own.name())))
}

fn run_once(world: &World, case: &Case, numbers: Numbers) -> Result<Vec<u8>> {
    match &case.benchmark {
        Benchmark::Mpi(collective, form) => {
            let mut call = mpi_call(world, case, (*collective, *form), numbers)?;
            if collective.name() != "Bcast" || world.rank == case.root {
                numbers.fill(call.send_mut(), world.rank);
            }
            call.run()?;
            Ok(call.received().to_vec())
        }
        Benchmark::LibraryAlgorithm(own) => {
            let mut call = library_call(world, own, case)?;
            call.run()?;
            Ok(call.buffer(Buffer::Output).to_vec())
        }
        Benchmark::Schedule(operation, choice) => {
            let mut program = program(world, case, (*operation, *choice), numbers)?;
            program.run()?;
            Ok(program.buffer(Buffer::Output).to_vec())
        }
        Benchmark::Library(_) | Benchmark::Synthetic(_) => Ok(Vec::new()),
    }
}

/// A periodic grid of all ranks, as square as possible, in two dimensions.
fn grid(world: &World) -> Result<Comm> {
    let size = world.size as i32;
    let rows = (1..=size).take_while(|rows| rows * rows <= size).filter(|rows| size % rows == 0).last();
    let rows = rows.unwrap_or(1);
    Ok(world.mpi.cart_create(world.comm, &[rows, size / rows])?)
}

impl Subject for OwnedCollective {
    #[inline]
    fn run(&mut self) -> Result<()> {
        Ok(OwnedCollective::run(self)?)
    }

    fn prepare_next(&mut self) -> Result<()> {
        Ok(OwnedCollective::prepare_next(self)?)
    }
}

/// A non-blocking collective, with computing before the wait.
struct Overlapped {
    call: OwnedCollective,
    timer: Timer,
    ns: f64,
}

impl Subject for Overlapped {
    fn run(&mut self) -> Result<()> {
        let Self { call, timer, ns } = self;
        Ok(call.run_with(|| spin(timer, *ns))?)
    }

    fn prepare_next(&mut self) -> Result<()> {
        Ok(self.call.prepare_next()?)
    }
}

struct KnownTime {
    timer: Timer,
    ns: f64,
}

impl Subject for KnownTime {
    #[inline]
    fn run(&mut self) -> Result<()> {
        if self.ns > 0.0 {
            spin(&self.timer, self.ns);
        }
        Ok(())
    }
}

/// Computes for some nanoseconds.
fn spin(timer: &Timer, ns: f64) {
    let end = timer.now() + ns;
    while timer.now() < end {}
}
