//! What is timed: an MPI collective, a schedule of ours, a message pattern, a function of the user's, or a known time.

use collectives::{Algorithm, Buffer, Choice, Member, Operation};
use mpi_abi::api::{Blocks, Collective, Envelope, Form, OwnedCollective};
use mpi_abi::handles::Comm;
use vef_format::operation::Sizing;

use crate::error::{Error, Result};
use crate::executor::Program;
use crate::library::{Call, Libraries, OwnAlgorithm, OwnOperation, Prepared};
use crate::timer::Timer;
use crate::verify::Numbers;
use crate::world::World;

/// Something that all ranks do together.
pub trait Subject {
    /// Does it once; this is timed.
    ///
    /// # Errors
    /// MPI's.
    fn run(&mut self) -> Result<()>;

    /// Between two runs, untimed.
    ///
    /// # Errors
    /// MPI's.
    fn prepare_next(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What to time, of which size.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation.
    pub task: Task,
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

/// An operation and how it is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// A function of the MPI.
    Mpi(Collective, Form),
    /// A schedule of ours over its messages.
    Schedule(Operation, Choice),
    /// An operation of a library of the user's.
    Library(&'static OwnOperation),
    /// An algorithm of a library of the user's for a collective.
    LibraryAlgorithm(&'static OwnAlgorithm),
    /// A message pattern between pairs.
    Pattern(Pattern),
    /// Rank i spins i + 1 µs: the true time is known, n µs.
    WaitUp,
    /// Nothing: the true time is 0.
    WaitNull,
}

/// Message patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A round trip between ranks 0 and 1; the others are idle.
    PingPong,
    /// Ranks 0 and 1 send to each other at the same time.
    Exchange,
    /// Everybody exchanges with everybody, in n − 1 rounds of disjoint pairs (circle method).
    AllPairs,
}

impl Task {
    /// The name in tables.
    pub fn name(&self) -> String {
        match self {
            Task::Mpi(collective, form) => {
                let name = collective.name().to_ascii_lowercase().replace('_', "-");
                match form {
                    Form::Blocking => name,
                    Form::NonBlocking => format!("i{name}"),
                    Form::Persistent => format!("{name}-init"),
                }
            }
            Task::Schedule(operation, _) => operation.key().to_owned(),
            Task::Library(own) => own.name().to_owned(),
            Task::LibraryAlgorithm(own) => own.operation().key().to_owned(),
            Task::Pattern(Pattern::PingPong) => "ping-pong".into(),
            Task::Pattern(Pattern::Exchange) => "exchange".into(),
            Task::Pattern(Pattern::AllPairs) => "all-pairs".into(),
            Task::WaitUp => "wait-up".into(),
            Task::WaitNull => "wait-null".into(),
        }
    }

    /// The algorithm's name in tables: `mpi` for the MPI's own choice.
    pub fn algorithm(&self) -> String {
        match self {
            Task::Mpi(..) => "mpi".into(),
            Task::Library(_) => "library".into(),
            Task::LibraryAlgorithm(own) => own.name().to_owned(),
            Task::Schedule(_, Choice { algorithm, segment, fanout, .. }) => {
                let mut name = algorithm.name().to_owned();
                if *segment > 0 {
                    name += &format!(":{segment}");
                }
                if *fanout > 0 {
                    name += &format!("/{fanout}");
                }
                name
            }
            _ => "-".into(),
        }
    }

    /// As [`Task::named`], where names that libraries have registered come first.
    ///
    /// # Errors
    /// As [`Task::named`].
    pub fn known(name: &str, algorithm: &str, libraries: &Libraries) -> Result<Task> {
        let own = libraries.operation(name).filter(|_| algorithm == "mpi").map(Task::Library);
        let of = |operation| libraries.algorithm(operation, algorithm).map(Task::LibraryAlgorithm);
        match own.or_else(|| Operation::named(name).and_then(of)) {
            Some(task) => Ok(task),
            None => Task::named(name, algorithm),
        }
    }

    /// A task by its name, done by an algorithm of ours or (`mpi`) the MPI's: `allreduce`, `iallreduce`, `allreduce-init`.
    ///
    /// # Errors
    /// [`Error::Setting`] for names that nobody knows.
    pub fn named(name: &str, algorithm: &str) -> Result<Task> {
        let unknown = |reason: String| Error::Setting { what: "operation", given: name.into(), reason };
        let simple = match name {
            "ping-pong" => Some(Task::Pattern(Pattern::PingPong)),
            "exchange" => Some(Task::Pattern(Pattern::Exchange)),
            "all-pairs" => Some(Task::Pattern(Pattern::AllPairs)),
            "wait-up" => Some(Task::WaitUp),
            "wait-null" => Some(Task::WaitNull),
            _ => None,
        };
        if let Some(task) = simple {
            return Ok(task);
        }
        if algorithm != "mpi" {
            let operation = Operation::named(name).ok_or_else(|| {
                unknown("there are no schedules for it; algorithms need a collective of MPI".into())
            })?;
            return Ok(Task::Schedule(operation, parse_choice(operation, algorithm)?));
        }
        let blocking = |name: &str, form| Collective::named(name).map(|known| Task::Mpi(known, form));
        blocking(name, Form::Blocking)
            .or_else(|| blocking(name.strip_prefix(['i', 'I'])?, Form::NonBlocking))
            .or_else(|| blocking(name.strip_suffix("-init")?, Form::Persistent))
            .ok_or_else(|| {
                unknown("write a collective like allreduce, iallreduce or allreduce-init, or ping-pong, exchange, all-pairs".into())
            })
    }

    /// Whether other work can be done between its start and its end.
    pub fn can_overlap(&self) -> bool {
        matches!(self, Task::Mpi(_, Form::NonBlocking | Form::Persistent))
    }

    /// Whether it can have blocks of several sizes, or has no blocks by rank.
    pub fn takes_factors(&self) -> bool {
        match self {
            Task::Schedule(operation, _) => operation.sizing() != Sizing::Pairs,
            Task::LibraryAlgorithm(own) => {
                !matches!(own.operation().sizing(), Sizing::Blocks | Sizing::Pairs)
            }
            _ => true,
        }
    }

    /// The collective operation behind it, as schedules know them.
    pub fn operation(&self) -> Option<Operation> {
        match self {
            Task::Mpi(collective, _) => Operation::named(collective.name()),
            Task::Schedule(operation, _) => Some(*operation),
            Task::LibraryAlgorithm(own) => Some(own.operation()),
            _ => None,
        }
    }
}

fn parse_choice(operation: Operation, text: &str) -> Result<Choice> {
    let wrong = || {
        let known: Vec<_> = Algorithm::of(operation).map(Algorithm::name).collect();
        Error::Setting {
            what: "algorithm",
            given: text.into(),
            reason: format!(
                "{} has mpi, {} (as NAME, NAME:SEGMENT_BYTES or NAME/FANOUT)",
                operation.key(),
                known.join(", ")
            ),
        }
    };
    let (rest, fanout) = match text.split_once('/') {
        Some((rest, fanout)) => (rest, fanout.parse().map_err(|_| wrong())?),
        None => (text, 0),
    };
    let (name, segment) = match rest.split_once(':') {
        Some((name, segment)) => (name, crate::sizes::parse_bytes(segment).ok_or_else(wrong)?),
        None => (rest, 0),
    };
    let algorithm = Algorithm::from_name(name)
        .filter(|known| Algorithm::of(operation).any(|other| other == *known))
        .ok_or_else(wrong)?;
    Ok(Choice { segment, fanout, ..Choice::plain(algorithm) })
}

/// What a request becomes: ready to run. `None` in a second place: sizes this operation does not have (a barrier's).
///
/// # Errors
/// What MPI lacks, sizes beyond its counts.
pub fn prepare(world: &World, timer: &Timer, request: &Request) -> Result<Box<dyn Subject>> {
    let Request { task, bytes, root, compute_ns, .. } = request;
    Ok(match task {
        Task::WaitUp => Box::new(Wait { timer: timer.clone(), ns: 1e3 * f64::from(world.rank + 1) }),
        Task::WaitNull => Box::new(Wait { timer: timer.clone(), ns: 0.0 }),
        Task::Library(own) => Box::new(own.prepare(world, *root, *bytes)?),
        Task::LibraryAlgorithm(own) => Box::new(library_call(world, own, request)?),
        Task::Pattern(pattern) => Box::new(Messages::new(world, *pattern, *bytes)?),
        Task::Mpi(collective, form) => {
            let numbers = numbers(task, *bytes);
            let mut call = mpi_call(world, request, (*collective, *form), numbers)?;
            numbers.fill(call.send_mut(), world.rank);
            match *compute_ns > 0.0 {
                true => Box::new(Overlapped { call, timer: timer.clone(), ns: *compute_ns }),
                false => Box::new(call),
            }
        }
        Task::Schedule(..) => Box::new(program(world, request, numbers(task, *bytes))?),
    })
}

/// A function of MPI with its data.
fn mpi_call(
    world: &World,
    request: &Request,
    (collective, form): (Collective, Form),
    numbers: Numbers,
) -> Result<OwnedCollective> {
    let elements = request.bytes as usize / numbers.width();
    let block = |factor: &f64| (elements as f64 * factor).round() as usize;
    let counts = request.factors.as_ref().map(|factors| factors.iter().map(block).collect());
    let (datatype, width) = (numbers.datatype(&world.mpi), numbers.width());
    let blocks = Blocks { datatype, width, elements, counts, copies: request.copies };
    let comm = if collective.is_neighbourhood() { grid(world)? } else { world.comm };
    Ok(OwnedCollective::new(&world.mpi, collective, form, &blocks, (request.root as i32, comm))?)
}

/// Reductions add doubles where the size allows it; all else moves bytes.
fn numbers(task: &Task, bytes: u64) -> Numbers {
    let reduces = match task {
        Task::Mpi(collective, _) => collective.reduces(),
        Task::Schedule(operation, _) => operation.reduces(),
        Task::LibraryAlgorithm(own) => own.operation().reduces(),
        _ => false,
    };
    if reduces && bytes.is_multiple_of(8) { Numbers::Doubles } else { Numbers::Bytes }
}

fn program(world: &World, request: &Request, numbers: Numbers) -> Result<Program> {
    let Task::Schedule(operation, choice) = request.task else { unreachable!("called for schedules") };
    let member = Member {
        operation,
        ranks: world.size,
        rank: world.rank,
        root: request.root,
        unit: numbers.width() as u32,
    };
    let bytes = if operation == Operation::Barrier { 0 } else { request.bytes };
    let factors = request.factors.as_ref().filter(|_| operation.sizing() == Sizing::Blocks);
    let sorts = choice.algorithm.sorts();
    let counts = if sorts || factors.is_some() {
        let elements = (bytes / numbers.width() as u64) as f64;
        let factor = |rank: u32| factors.map_or(1.0, |factors| factors[rank as usize]);
        let block = |rank| (elements * factor(rank)).round() as u64 * numbers.width() as u64;
        let all = collectives::Counts::new((0..world.size).map(block))?;
        Some(if sorts { all.sorted(request.root, choice.order)? } else { all })
    } else {
        None
    };
    let sizes = match &counts {
        Some(counts) => collectives::Sizes::Blocks(counts),
        None => collectives::Sizes::Bytes(bytes),
    };
    let types = (numbers.datatype(&world.mpi), world.mpi.sum());
    let mut program = Program::new((&world.mpi, world.comm), member, choice, sizes, types)?;
    if let Some(buffer) = contributed(operation, world, request) {
        numbers.fill(program.buffer(buffer), world.rank);
    }
    Ok(program)
}

/// An algorithm of a library's with its data.
fn library_call(world: &World, own: &'static OwnAlgorithm, request: &Request) -> Result<Call> {
    let numbers = numbers(&request.task, request.bytes);
    let mut call = own.prepare(world, request.root, request.bytes, numbers)?;
    if let Some(buffer) = contributed(own.operation(), world, request) {
        numbers.fill(call.buffer(buffer), world.rank);
    }
    Ok(call)
}

/// Where what this rank contributes is before a collective, if it contributes anything.
fn contributed(operation: Operation, world: &World, request: &Request) -> Option<Buffer> {
    match operation {
        Operation::Bcast if world.rank == request.root => Some(Buffer::Output),
        Operation::Bcast => None,
        Operation::Scatter | Operation::Scatterv if world.rank != request.root => None,
        _ => Some(Buffer::Input),
    }
}

/// Runs a collective once from each root and holds the result against the definition of the operation. Collective.
///
/// # Errors
/// [`Error::Wrong`] at every rank, naming the first wrong element of the lowest rank that has one.
pub fn verify(world: &World, request: &Request) -> Result<()> {
    if let Task::Library(own) = request.task {
        return verify_own(world, own, request);
    }
    let Some(operation) = request.task.operation() else { return Ok(()) };
    let blocking = match request.task {
        Task::Mpi(_, form) => form == Form::Blocking,
        _ => true,
    };
    if !blocking {
        return Ok(());
    }
    // Enough to cut in pieces, little enough to do from every root.
    let numbers = numbers(&request.task, request.bytes);
    let width = numbers.width() as u64;
    let bytes = request.bytes.min(4096) / width * width;
    for root in 0..if operation.is_rooted() { world.size } else { 1 } {
        let request = Request { bytes, root, copies: 1, factors: None, ..request.clone() };
        let output = run_once(world, &request, numbers)?;
        let place = (world.rank, world.size, root);
        let wrong = numbers.first_wrong(operation, place, (bytes / width) as usize, &output);
        let own = wrong.map_or([0.0; 4], |(index, found, expected)| [1.0, index as f64, found, expected]);
        let all = world.gather(&own)?;
        let first = all.chunks(4).position(|of| of[0] != 0.0);
        let told = match first {
            Some(rank) => [1.0, rank as f64, all[4 * rank + 1], all[4 * rank + 2], all[4 * rank + 3]],
            None => [0.0; 5],
        };
        let [bad, rank, element, found, expected] = world.share(told)?;
        if bad != 0.0 {
            let subject = format!("{} by {}, root {root}", request.task.name(), request.task.algorithm());
            return Err(Error::Wrong {
                subject,
                rank: rank as u32,
                element: element as usize,
                found,
                expected,
            });
        }
    }
    Ok(())
}

/// Runs an operation of a library's once and lets it check the result.
fn verify_own(world: &World, own: &'static OwnOperation, request: &Request) -> Result<()> {
    let mut prepared = own.prepare(world, request.root, request.bytes.min(4096))?;
    prepared.run()?;
    let fault = prepared.fault();
    let faulty = world.gather(&[f64::from(u8::from(fault.is_some()))])?;
    let texts = world.gather_text(&fault.unwrap_or_default())?;
    let first = faulty.iter().position(|&faulty| faulty != 0.0);
    let [bad, rank] = world.share(first.map_or([0.0; 2], |rank| [1.0, rank as f64]))?;
    if bad == 0.0 {
        return Ok(());
    }
    let rank = rank as usize;
    // The text is at rank 0 only, which is the one that speaks.
    let reason = texts.get(rank).cloned().unwrap_or_default();
    Err(Error::Check { subject: own.name().to_owned(), rank, reason })
}

fn run_once(world: &World, request: &Request, numbers: Numbers) -> Result<Vec<u8>> {
    match &request.task {
        Task::Mpi(collective, form) => {
            let mut call = mpi_call(world, request, (*collective, *form), numbers)?;
            if collective.name() != "Bcast" || world.rank == request.root {
                numbers.fill(call.send_mut(), world.rank);
            }
            call.run()?;
            Ok(call.received().to_vec())
        }
        Task::LibraryAlgorithm(own) => {
            let mut call = library_call(world, own, request)?;
            call.run()?;
            Ok(call.buffer(Buffer::Output).to_vec())
        }
        _ => {
            let mut program = program(world, request, numbers)?;
            Program::run(&mut program)?;
            Ok(program.buffer(Buffer::Output).to_vec())
        }
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

impl Subject for Prepared {
    #[inline]
    fn run(&mut self) -> Result<()> {
        Prepared::run(self)
    }
}

impl Subject for Call {
    #[inline]
    fn run(&mut self) -> Result<()> {
        Call::run(self)
    }
}

impl Subject for Program {
    #[inline]
    fn run(&mut self) -> Result<()> {
        Program::run(self)
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

struct Wait {
    timer: Timer,
    ns: f64,
}

impl Subject for Wait {
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

struct Messages {
    world: World,
    pattern: Pattern,
    send: Vec<u8>,
    receive: Vec<u8>,
}

impl Messages {
    fn new(world: &World, pattern: Pattern, bytes: u64) -> Result<Messages> {
        if world.size < 2 {
            return Err(Error::Setting {
                what: "operation",
                given: "messages".into(),
                reason: "needs 2 ranks at least".into(),
            });
        }
        let buffer = || vec![1; bytes as usize];
        Ok(Messages { world: world.clone(), pattern, send: buffer(), receive: buffer() })
    }

    fn exchange(&mut self, peer: u32) -> Result<()> {
        let envelope = Envelope::new(peer as i32, 12, self.world.comm);
        let mpi = &self.world.mpi;
        // SAFETY: both buffers are borrowed from here to the wait, and each request is waited for once.
        unsafe {
            let receive = mpi.irecv(&mut self.receive, envelope)?;
            let send = mpi.isend(&self.send, envelope)?;
            mpi.wait_all(&[receive, send])?;
        }
        Ok(())
    }
}

impl Subject for Messages {
    fn run(&mut self) -> Result<()> {
        let World { rank, size, .. } = self.world;
        let with = |peer: u32| Envelope::new(peer as i32, 12, self.world.comm);
        match self.pattern {
            Pattern::PingPong if rank == 0 => {
                self.world.mpi.send(&self.send, with(1))?;
                self.world.mpi.recv(&mut self.receive, with(1))?;
            }
            Pattern::PingPong if rank == 1 => {
                self.world.mpi.recv(&mut self.receive, with(0))?;
                self.world.mpi.send(&self.send, with(0))?;
            }
            Pattern::Exchange if rank < 2 => self.exchange(1 - rank)?,
            Pattern::AllPairs => {
                for round in 0..rounds(size) {
                    if let Some(peer) = circle(size, round, rank) {
                        self.exchange(peer)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Rounds in which everybody meets everybody.
pub fn rounds(ranks: u32) -> u32 {
    if ranks.is_multiple_of(2) { ranks.saturating_sub(1) } else { ranks }
}

/// Whom `rank` meets in a round of the circle method; `None`: it rests (odd number of ranks).
pub fn circle(ranks: u32, round: u32, rank: u32) -> Option<u32> {
    let turning = rounds(ranks).max(1);
    // The last place stands still where ranks are even, and is nobody where they are odd.
    if rank == turning {
        return Some(meets_fixed(turning, round));
    }
    let peer = (2 * turning + round - rank) % turning;
    if peer != rank {
        Some(peer)
    } else if ranks.is_multiple_of(2) {
        Some(turning)
    } else {
        None
    }
}

/// Who meets the place that stands still: 2·r ≡ round (mod turning), turning odd.
fn meets_fixed(turning: u32, round: u32) -> u32 {
    if round.is_multiple_of(2) { round / 2 } else { (round + turning) / 2 % turning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_meets_everybody_once_and_nobody_twice_at_a_time() {
        for ranks in 2..40u32 {
            let mut met = vec![0; (ranks * ranks) as usize];
            for round in 0..rounds(ranks) {
                for rank in 0..ranks {
                    if let Some(peer) = circle(ranks, round, rank) {
                        assert_ne!(peer, rank);
                        assert_eq!(circle(ranks, round, peer), Some(rank), "{ranks} {round} {rank}");
                        met[(rank * ranks + peer) as usize] += 1;
                    }
                }
            }
            for a in 0..ranks {
                for b in 0..ranks {
                    assert_eq!(met[(a * ranks + b) as usize], u32::from(a != b), "{ranks}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn tasks_by_name() {
        let name = |name, algorithm| Task::named(name, algorithm).map(|task| (task.name(), task.algorithm()));
        let ok = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(name("allreduce", "mpi").unwrap(), ok("allreduce", "mpi"));
        assert_eq!(name("iallreduce", "mpi").unwrap(), ok("iallreduce", "mpi"));
        assert_eq!(name("Allreduce-init", "mpi").unwrap_or(ok("", "")).1, "mpi");
        assert_eq!(name("bcast", "chain:8K/4").unwrap(), ok("bcast", "chain:8192/4"));
        assert_eq!(name("reduce-scatter", "mpi").unwrap().0, "reduce-scatter");
        assert!(name("allreduce", "magic").is_err() && name("ponder", "mpi").is_err());
        assert!(name("comm-dup", "ring").is_err());
    }
}
