//! A model that the simulator does not have: a bus, which carries one message at a time, whatever the topology.
//!
//! `cargo run -p sim-example --example own_model`

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::io::Write;

use replay::{Engine, Job, Picos, Queue};
use sim_example::model::{Carried, Happened, Links, Network, OutOfTime, Setup, Usage};
use sim_example::{NetworkSettings, Observe, run_on};

struct Bus {
    links: Links,
    report_sent: bool,
    /// When the bus is free.
    free: Picos,
    events: Queue<Event>,
    carried: Usage,
}

#[derive(Clone, Copy)]
enum Event {
    Submitted(Carried),
    Sent(Carried),
    /// With the times of its submission and of its first byte on the bus.
    Arrived(Carried, Picos, Picos),
}

impl Bus {
    fn new(setup: &Setup<'_>) -> Self {
        let &Setup { links, report_sent, .. } = setup;
        Self {
            links: *links,
            report_sent,
            free: Picos::ZERO,
            events: Queue::new(),
            carried: Usage::default(),
        }
    }

    /// Puts a message on the bus as soon as it is free.
    fn start(&mut self, message: Carried, now: Picos) -> Option<()> {
        let (start, time) = (now.max(self.free), self.links.bandwidth.time(message.bytes)?);
        self.free = start.checked_add(time)?;
        self.carried.add(message.bytes, time, start.saturating_sub(now));
        if self.report_sent {
            self.events.push(self.free, Event::Sent(message));
        }
        let arrival = self.free.checked_add(self.links.latency)?;
        self.events.push(arrival, Event::Arrived(message, now, start));
        Some(())
    }
}

impl Network for Bus {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        self.events.push(at, Event::Submitted(message));
        Ok(())
    }

    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        while let Some((now, event)) = self.events.pop(limit) {
            return Ok(Some(match event {
                Event::Submitted(message) => {
                    self.start(message, now).ok_or(OutOfTime { bytes: message.bytes })?;
                    continue;
                }
                Event::Sent(Carried { tag, .. }) => (now, Happened::Sent { tag }),
                Event::Arrived(Carried { tag, .. }, submitted, start) => {
                    let latency = now.saturating_sub(submitted);
                    (now, Happened::Delivered { tag, latency, queued: start.saturating_sub(submitted) })
                }
            }));
        }
        Ok(None)
    }

    /// The first link stands for the bus.
    fn usage(&self) -> Vec<Usage> {
        vec![self.carried]
    }

    fn events(&self) -> u64 {
        self.carried.count
    }
}

/// Four nodes send 1000 bytes to each other at once.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut trace = tempfile::NamedTempFile::new()?;
    writeln!(trace, "VEF3 4 4 0 0 0 0 1000")?;
    for from in 0..4 {
        writeln!(trace, "{from} {from} {} 1000 0 0 -1", (from + 1) % 4)?;
    }
    let engine = Engine::builder().job(Job::open(trace.path())?).engine()?;
    let network = NetworkSettings::default();
    let build = |setup: Setup<'_>| -> Result<Box<dyn Network>, _> { Ok(Box::new(Bus::new(&setup))) };
    let report = run_on(engine, &network, build, Observe::default(), &mut |_| {})?;
    println!("{} messages in {}", report.messages, report.runtime_ps);
    // 800 ns each at 10 Gbit/s, one after the other, and 500 ns of latency.
    assert_eq!(report.runtime_ps, 4 * 800_000 + 500_000);
    assert_eq!(report.latency.max_ps, report.runtime_ps);
    Ok(())
}
