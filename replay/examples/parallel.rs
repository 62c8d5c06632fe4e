//! A parallel simulator: one thread a partition, in windows as wide as the latency of the network.
//!
//!     cargo run --release -p replay --example parallel -- TRACE [THREADS]
//!
//! Every message takes 1 µs + bytes / 10 Gbit/s. What happens at one node so reaches no other before 1 µs has passed: from the first moment at which
//! anything is to happen anywhere, all threads may go on for that long without hearing from each other. Then they exchange the messages that go from one's
//! nodes to another's. The result is that of one thread, to the picosecond.
#![allow(clippy::print_stdout)]

use replay::{
    Builder, Engine, Exchange, Job, Link, LiveId, Message, Next, Parcel, Picos, Queue, ReplayError, Seat,
    Sink, Wake,
};
use std::error::Error;
use std::path::Path;

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
            let (seat, part_of) = (exchange.seat(part), &part_of);
            scope.spawn(move || run_partition(engine, part_of, link, seat))
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
    late: Option<Message>,
}

impl<F: Fn(u32) -> usize> Sink for Network<'_, F> {
    fn take(&mut self, next: Next) {
        match next {
            Next::Wake(wake) => self.events.push(wake.at, Event::Wake(wake)),
            Next::Message(message) | Next::Inside { message, .. } => {
                let Message { id, start, bytes, dst_node, .. } = message;
                match self.link.time(bytes).and_then(|took| start.checked_add(took)) {
                    None => drop(self.late.get_or_insert(message)),
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
    part_of: &impl Fn(u32) -> usize,
    link: &Link,
    mut seat: Seat<'_, (Picos, Parcel)>,
) -> Result<Engine, Failure> {
    let leaving = vec![Vec::new(); seat.parts()];
    let mut network = Network { part: seat.part(), part_of, link, events: Queue::new(), leaving, late: None };
    engine.begin(&mut network)?;
    loop {
        if let Some(Message { src, dst, bytes, .. }) = network.late {
            return Err(ReplayError::Arrival { src, dst, bytes }.into());
        }
        // What leaves goes to the others, who may go on only to its arrival.
        let mut first = network.events.next();
        for (to, messages) in network.leaving.iter_mut().enumerate() {
            let mut letters = seat.letters_to(to);
            for (at, id) in messages.drain(..) {
                first = Some(first.map_or(at, |first| first.min(at)));
                letters.push((at, engine.export(id)?));
            }
        }
        let Some(first) = seat.meet(first) else { break };
        for from in 0..seat.parts() {
            for (at, parcel) in seat.letters_from(from).drain(..) {
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
