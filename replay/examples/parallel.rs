//! A parallel simulator: one thread a partition, in windows as wide as the latency of the network.
//!
//!     cargo run --release -p replay --example parallel -- TRACE [THREADS]
//!
//! Every message takes 1 µs + bytes / 10 Gbit/s. What happens at one node so reaches no other before 1 µs has passed: from the first moment at which
//! anything is to happen anywhere, all threads may go on for that long without hearing from each other. Then they exchange the messages that go from one's
//! nodes to another's. The result is that of one thread, to the picosecond.
#![allow(clippy::print_stdout)]

use replay::{
    Builder, Engine, Job, Link, LiveId, Message, Next, Parcel, Picos, Queue, ReplayError, Sink, Wake,
};
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[allow(dead_code, reason = "a test includes this file")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let trace = arguments.first().ok_or("which trace?")?;
    let threads = arguments.get(1).map_or(Ok(2), |threads| threads.parse())?;
    let job = Job::open(Path::new(trace))?;
    let nodes = job.tasks();
    let begin = std::time::Instant::now();
    let engines =
        run(Engine::builder().job(job), nodes, threads, &Link::new(Picos(1_000_000), 10_000_000_000)?)?;
    let seconds = begin.elapsed().as_secs_f64();
    for engine in &engines {
        if let Some(stuck) = engine.stuck() {
            println!("{stuck}");
        }
    }
    let messages: u64 = engines.iter().map(|engine| engine.stats().total().messages).sum();
    let finish = engines.iter().map(Engine::finish).max().unwrap_or_default();
    let rate = messages as f64 / seconds / 1e6;
    println!(
        "{messages} messages, done after {finish}; {threads} threads, {seconds:.3} s, {rate:.2} M messages/s"
    );
    Ok(())
}

/// The partitions at their end; or the error of the first that had one.
type Outcome = Result<Vec<Engine>, Failure>;
type Failure = Box<dyn Error + Send + Sync>;

/// Replays jobs on `nodes` nodes with so many threads, of which each has as many nodes as the others, side by side.
pub(crate) fn run(builder: Builder, nodes: u32, threads: u32, link: &Link) -> Outcome {
    let part_of = |node: u32| (u64::from(node) * u64::from(threads) / u64::from(nodes.max(1))) as usize;
    let engines = builder.partitions(threads, |node| part_of(node) as u32)?;
    let exchange = Exchange::new(threads as usize);
    std::thread::scope(|scope| {
        let start = |(part, engine)| {
            let (exchange, part_of) = (&exchange, &part_of);
            scope.spawn(move || {
                let outcome = run_partition(engine, part, part_of, link, exchange);
                if outcome.is_err() {
                    exchange.leave();
                }
                outcome
            })
        };
        let running: Vec<_> = engines.into_iter().enumerate().map(start).collect();
        let end = |thread: std::thread::ScopedJoinHandle<'_, Result<Engine, Failure>>| {
            thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))
        };
        running.into_iter().map(end).collect()
    })
}

/// What a thread has to do at some moment.
#[derive(Clone, Copy)]
enum Event {
    Arrival(LiveId),
    Wake(Wake),
}

/// A thread's part of the network: what happens there, and the messages that leave it.
struct Network<'a, F> {
    part: usize,
    part_of: &'a F,
    link: &'a Link,
    events: Queue<Event>,
    /// By the partition to which they go.
    leaving: Vec<Vec<(Picos, LiveId)>>,
    /// The first message that would arrive past the end of time.
    late: Option<LiveId>,
}

impl<F: Fn(u32) -> usize> Sink for Network<'_, F> {
    fn take(&mut self, next: Next) {
        match next {
            Next::Wake(wake) => self.events.push(wake.at, Event::Wake(wake)),
            Next::Message(Message { id, start, bytes, dst_node, .. })
            | Next::Inside { message: Message { id, start, bytes, dst_node, .. }, .. } => {
                match self.link.time(bytes).and_then(|took| start.checked_add(took)) {
                    None => drop(self.late.get_or_insert(id)),
                    Some(at) => match (self.part_of)(dst_node) {
                        to if to == self.part => self.events.push(at, Event::Arrival(id)),
                        to => self.leaving[to].push((at, id)),
                    },
                }
            }
        }
    }
}

fn run_partition(
    mut engine: Engine,
    part: usize,
    part_of: &impl Fn(u32) -> usize,
    link: &Link,
    exchange: &Exchange,
) -> Result<Engine, Failure> {
    let leaving = vec![Vec::new(); exchange.threads];
    let mut network = Network { part, part_of, link, events: Queue::new(), leaving, late: None };
    engine.begin(&mut network)?;
    for round in 0.. {
        if let Some(id) = network.late {
            return Err(ReplayError::Arrival { id }.into());
        }
        // What leaves goes to the others, who may go on only to its arrival.
        let mut first = network.events.next().unwrap_or(Picos::MAX);
        for (to, messages) in network.leaving.iter_mut().enumerate() {
            let mut letters = exchange.letters(round, part, to);
            for (at, id) in messages.drain(..) {
                first = first.min(at);
                letters.push((at, engine.export(id)?));
            }
        }
        let first = exchange.meet(round, part, first);
        if first == Picos::MAX {
            break;
        }
        for from in 0..exchange.threads {
            for (at, parcel) in exchange.letters(round, from, part).drain(..) {
                network.events.push(at, Event::Arrival(engine.import(parcel)?));
            }
        }
        // Up to the first moment, not included, at which anything that another thread does from now on can arrive.
        let last = Picos(first.0.saturating_add(link.latency().0.max(1)) - 1);
        while let Some((now, event)) = network.events.pop(last) {
            match event {
                Event::Arrival(id) => engine.delivered(id, now, &mut network)?,
                Event::Wake(wake) => engine.wake(wake, now, &mut network)?,
            }
        }
    }
    Ok(engine)
}

/// Messages from one thread to another, with the moments of their arrivals.
type Letters = Vec<(Picos, Parcel)>;

/// Where threads meet at the end of each window, and leave messages for each other. Everything is there twice: while one thread still
/// takes what was left in one round, another may leave something in the next.
struct Exchange {
    threads: usize,
    letters: [Vec<Mutex<Letters>>; 2],
    /// The first moment at which a thread has anything to do.
    first: [Vec<Alone<AtomicU64>>; 2],
    /// Threads that have come, over all rounds.
    arrived: Alone<AtomicUsize>,
    left: AtomicUsize,
    /// Held by a thread between its last look at the two counts and its sleep.
    falling_asleep: Mutex<()>,
    changed: Condvar,
}

/// A value in cache lines of its own, so that who writes it does not slow down who reads its neighbours.
#[derive(Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// Looks at the count of arrivals before a thread sleeps: some 50 µs, a few times what the others' windows differ by. A thread that went on looking
/// would take the processor from the thread for which it waits, where there are more threads than processors.
const LOOKS: u32 = 2000;

impl Exchange {
    fn new(threads: usize) -> Self {
        let letters = || (0..threads * threads).map(|_| Mutex::default()).collect();
        let first = || (0..threads).map(|_| Alone::default()).collect();
        Self {
            threads,
            letters: [letters(), letters()],
            first: [first(), first()],
            arrived: Alone::default(),
            left: AtomicUsize::new(0),
            falling_asleep: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn letters(&self, round: usize, from: usize, to: usize) -> MutexGuard<'_, Letters> {
        let slot = self.letters[round % 2][from * self.threads + to].lock();
        slot.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all threads; returns the first moment at which any of them has something to do.
    fn meet(&self, round: usize, part: usize, first: Picos) -> Picos {
        self.first[round % 2][part].0.store(first.0, Ordering::Relaxed);
        let all = (round + 1) * self.threads;
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == all {
            self.wake_others();
        }
        let must_wait =
            || self.arrived.0.load(Ordering::Acquire) < all && self.left.load(Ordering::Acquire) == 0;
        let mut looks = 0;
        while must_wait() && looks < LOOKS {
            looks += 1;
            std::hint::spin_loop();
        }
        if looks == LOOKS {
            let mut awake = self.falling_asleep.lock().unwrap_or_else(PoisonError::into_inner);
            while must_wait() {
                awake = self.changed.wait(awake).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if self.left.load(Ordering::Acquire) > 0 {
            return Picos::MAX;
        }
        let firsts = self.first[round % 2].iter().map(|first| first.0.load(Ordering::Relaxed));
        Picos(firsts.min().unwrap_or(u64::MAX))
    }

    /// A thread ends before its time.
    fn leave(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
        self.wake_others();
    }

    /// Wakes the threads that sleep, after a change of what they wait for.
    fn wake_others(&self) {
        drop(self.falling_asleep.lock());
        self.changed.notify_all();
    }
}
