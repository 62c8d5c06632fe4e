//! Replays as whole processes: how many messages a second, how long a message takes, and how much memory.
//!
//! ```text
//! cargo run --release -p vef-benches --example replay -- make ring 256 20000 RING.vefx
//! cargo run --release -p vef-benches --example replay -- make barriers 1024 200 BARRIERS.vefx
//! cargo run --release -p vef-benches --example replay -- repeat LAMMPS.vef 1000 LAMMPS.vefx
//! cargo run --release -p vef-benches --example replay -- run RING.vefx [REPETITIONS]
//! cargo run --release -p vef-benches --example replay -- memory RING.vefx
//! cargo run --release -p vef-benches --example replay -- delays RING.vefx
//! ```
//!
//! A name in `.vefx` makes a container (without compression), any other text. `repeat` makes a long trace of a real one, in text:
//! every task does the same so many times. `run` delivers every message when it is
//! handed out, message by message and in batches; its time is that on the processor, opening the trace included. `delays` times each message by itself, from asking for it to the return from its delivery.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use replay::{Engine, Job, LiveId, Loaded, Next, Picos, Queue, Replay, ReplayError, Sink, Wake};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use vef_benches::memory;
use vef_benches::processor::Clock;
use vef_benches::traces::Trace;
use vef_format::container::Settings;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["make", kind, tasks, times, path] => make(kind, tasks.parse()?, times.parse()?, Path::new(path)),
        ["repeat", trace, times, path] => {
            write(&Trace::repeated(Path::new(trace), times.parse()?)?, Path::new(path))
        }
        ["run", path] => run(path, 1, false),
        ["run", path, repetitions] => run(path, repetitions.parse()?, false),
        ["memory", path] => run(path, 1, true),
        ["memory", path, repetitions] => run(path, repetitions.parse()?, true),
        ["delays", path] => delays(Path::new(path)),
        _ => Err("make ring|barriers|halo TASKS TIMES FILE, repeat TRACE TIMES FILE, run FILE [N], memory FILE [N] or delays FILE".into()),
    }
}

fn make(kind: &str, tasks: u32, times: u32, path: &Path) -> Outcome {
    let trace = match kind {
        "ring" => Trace::Ring { tasks, messages: times },
        "barriers" => Trace::Barriers { tasks, rounds: times },
        "halo" => Trace::Halo { tasks, rounds: times },
        _ => return Err("ring, barriers or halo".into()),
    };
    write(&trace, path)
}

fn write(trace: &Trace, path: &Path) -> Outcome {
    match path.extension().is_some_and(|suffix| suffix == "vefx") {
        true => trace.write_container(path, Settings { compress: false, keep_order: true })?,
        false => trace.write_text(path)?,
    }
    println!("{} messages", trace.messages());
    Ok(())
}

/// A way of calling the engine, which returns the number of messages.
type Way = fn(Job) -> Result<u64, Box<dyn Error>>;

/// Something that is to be told to the engine: every message arrives when it starts.
#[derive(Clone, Copy)]
enum Event {
    Arrival(LiveId),
    Wake(Wake),
}

impl Event {
    #[inline(always)]
    fn of(next: Next) -> (Picos, Self) {
        match next {
            Next::Message(message) => (message.start, Event::Arrival(message.id)),
            Next::Inside { message, arrives } => (arrives, Event::Arrival(message.id)),
            Next::Wake(wake) => (wake.at, Event::Wake(wake)),
        }
    }
}

/// Events in the order in which they come: all that a task needs whose messages all come from one other.
#[derive(Default)]
struct InTurn {
    /// Of these the first `taken` have been taken.
    events: Vec<PlainEvent>,
    taken: usize,
    later: Vec<PlainEvent>,
}

impl InTurn {
    #[inline(always)]
    fn pop(&mut self) -> Option<(Picos, Event)> {
        let event = match self.events.get(self.taken) {
            Some(event) => *event,
            None => self.turn()?,
        };
        self.taken += 1;
        Some((event.at, event.event()))
    }

    #[cold]
    fn turn(&mut self) -> Option<PlainEvent> {
        std::mem::swap(&mut self.events, &mut self.later);
        self.later.clear();
        self.taken = 0;
        self.events.first().copied()
    }
}

/// An [`Event`] and its time as plain numbers.
#[derive(Clone, Copy)]
struct PlainEvent {
    at: Picos,
    raw: u64,
    is_wake: bool,
}

impl PlainEvent {
    #[inline(always)]
    fn event(self) -> Event {
        match self.is_wake {
            true => Event::Wake(Wake::from_raw(self.at, self.raw)),
            false => Event::Arrival(LiveId::from_raw(self.raw)),
        }
    }
}

impl Sink for InTurn {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        let (at, event) = Event::of(next);
        self.later.push(match event {
            Event::Arrival(id) => PlainEvent { at, raw: id.to_raw(), is_wake: false },
            Event::Wake(wake) => PlainEvent { at, raw: wake.to_raw().1, is_wake: true },
        });
    }
}

/// Events by time, which is what any trace needs.
#[derive(Default)]
struct ByTime(Queue<Event>);

impl Sink for ByTime {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        let (at, event) = Event::of(next);
        self.0.push(at, event);
    }
}

/// By the engine itself, the events in turn.
fn pushed(job: Job) -> Result<u64, Box<dyn Error>> {
    push(job, InTurn::default(), InTurn::pop)
}

/// By the engine itself, the events by time.
fn pushed_by_time(job: Job) -> Result<u64, Box<dyn Error>> {
    push(job, ByTime::default(), |events| events.0.pop(Picos::MAX))
}

fn push<S: Sink>(
    job: Job,
    mut events: S,
    mut pop: impl FnMut(&mut S) -> Option<(Picos, Event)>,
) -> Result<u64, Box<dyn Error>> {
    let mut engine = Engine::builder().job(job).engine()?;
    engine.begin(&mut events)?;
    while let Some((now, event)) = pop(&mut events) {
        match event {
            Event::Arrival(id) => engine.delivered(id, now, &mut events)?,
            Event::Wake(wake) => engine.wake(wake, now, &mut events)?,
        }
    }
    match engine.stuck() {
        Some(stuck) => Err(stuck.to_string().into()),
        None => Ok(engine.stats().total().messages),
    }
}

/// Messages are asked for, and arrive when they are handed out.
fn one_by_one(job: Job) -> Result<u64, Box<dyn Error>> {
    polled(job, |replay, now| {
        while let Some(message) = replay.pop_ready(now)? {
            replay.delivered(message.id, now)?;
        }
        Ok(())
    })
}

/// All messages of one moment are asked for, then all of them arrive.
fn in_batches(job: Job) -> Result<u64, Box<dyn Error>> {
    let mut ids = Vec::new();
    polled(job, |replay, now| {
        loop {
            ids.clear();
            replay.pop_ready_batch(now, BATCH, |message| ids.push(message.id))?;
            replay.delivered_batch(ids.iter().copied(), now)?;
            if ids.len() < BATCH {
                return Ok(());
            }
        }
    })
}

fn polled(
    job: Job,
    mut at: impl FnMut(&mut Replay, Picos) -> Result<(), ReplayError>,
) -> Result<u64, Box<dyn Error>> {
    let mut replay = Replay::builder().job(job).build()?;
    while let Some(now) = replay.next_ready() {
        at(&mut replay, now)?;
    }
    match replay.stuck() {
        Some(stuck) => Err(stuck.to_string().into()),
        None => Ok(replay.stats().total().messages),
    }
}

/// Messages in a batch, at most.
const BATCH: usize = 64;

fn run(path: &str, repetitions: u32, in_memory: bool) -> Outcome {
    let ways: [(&str, Way); 4] = [
        ("pushed", pushed),
        ("pushed by time", pushed_by_time),
        ("one by one", one_by_one),
        ("in batches", in_batches),
    ];
    let only = std::env::var("VEF_BENCH_WAY").ok();
    let ways = ways.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name));
    let loaded = in_memory.then(|| Loaded::open(Path::new(path)).map(Arc::new)).transpose()?;
    for (name, way) in (0..repetitions).flat_map(|_| ways.clone()) {
        let clock = Clock::start();
        let job = match &loaded {
            Some(loaded) => Job::loaded(loaded),
            None => Job::open(Path::new(path))?,
        };
        let messages = match way(job) {
            Ok(messages) => messages,
            // In turn some task would hear of moments in the wrong order.
            Err(error) if name == "pushed" => {
                eprintln!("pushed: not for this trace: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        let seconds = clock.elapsed().as_secs_f64();
        let rate = messages as f64 / seconds / 1e6;
        let peak =
            memory::peak().map_or("unknown".into(), |bytes| format!("{:.1} MiB", bytes as f64 / 1048576.0));
        println!(
            "{name}: {messages} messages, {seconds:.3} s on the processor, {rate:.2} M messages/s, memory {peak}"
        );
    }
    Ok(())
}

/// Each message by itself. What reading the clock takes is measured beside it and not taken off.
fn delays(path: &Path) -> Outcome {
    let mut replay = Replay::builder().job(Job::open(path)?).build()?;
    let (mut delays, mut clock) = (Vec::new(), Vec::new());
    while let Some(now) = replay.next_ready() {
        loop {
            let begin = Instant::now();
            let Some(message) = replay.pop_ready(now)? else { break };
            replay.delivered(message.id, now)?;
            let end = Instant::now();
            delays.push((end - begin).as_nanos() as u32);
            clock.push(end.elapsed().as_nanos() as u32);
        }
    }
    for (name, mut nanos) in
        [("a message and two readings of the clock", delays), ("two readings of the clock", clock)]
    {
        nanos.sort_unstable();
        let at = |share: f64| nanos.get((nanos.len() as f64 * share) as usize).copied().unwrap_or(0);
        println!(
            "{name}: median {} ns, 90 % {} ns, 99 % {} ns, 99.9 % {} ns, most {} ns",
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0 - 1e-9)
        );
    }
    Ok(())
}
