//! The measurements behind a calibration, by two ranks.

use mpi_abi::api::{Element, Envelope, Mpi};
use sim_example::quantity::{parse_bytes, parse_time};
use vef_format::units::Picos;

use crate::error::Result;
use crate::stats::median;
use crate::timer::{Timer, TimerKind};
use crate::world::World;

/// What to measure; also the options of `vef bench calibrate`.
#[derive(Clone, Debug, clap::Args)]
pub struct MessagePlan {
    /// Largest message
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = largest)]
    pub largest: u64,
    /// Pause in front of every measurement, for buckets to fill and queues to drain
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = parse_time)]
    pub pause: Picos,
    /// Repetitions of every measurement
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub repetitions: usize,
    /// Source of time
    #[arg(long, value_name = "TIMER", value_enum, default_value_t)]
    pub timer: TimerKind,
}

impl MessagePlan {
    fn pause_ns(&self) -> f64 {
        self.pause.0 as f64 / 1e3
    }

    fn repetitions(&self) -> usize {
        self.repetitions.max(3)
    }
}

fn largest(text: &str) -> std::result::Result<u64, &'static str> {
    let bytes = parse_bytes(text).ok().map(|bytes| bytes.0).filter(|bytes| (4096..=1 << 30).contains(bytes));
    bytes.ok_or("from 4K to 1G")
}

/// A train of messages, timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Train {
    /// Bytes of each message.
    pub bytes: u64,
    /// Messages.
    pub count: u32,
    /// Time until the last one is received, ns: the median over repetitions.
    pub ns: f64,
    /// Half the interval of that median, ns.
    pub half_width: f64,
}

/// All that is measured between two ranks; at rank 0.
#[derive(Clone, Debug, Default)]
pub(super) struct PairTimes {
    /// Trains of one message of each size.
    pub alone: Vec<Train>,
    /// Trains of several.
    pub trains: Vec<Train>,
    /// Time of a send of a small message within a spaced train, each repetition, ns.
    pub send_overheads: Vec<f64>,
    /// Time of a receive of a small message that is there, ns.
    pub receive_overheads: Vec<f64>,
    /// Time between small messages sent without pause, ns.
    pub gaps: Vec<f64>,
    /// Largest message that is sent without a receive.
    pub eager_limit: Option<u64>,
    /// One way of a small message among others, without pauses: half of each round trip, ns.
    pub small: Vec<f64>,
    /// Both ways at once: bytes of each, and the time, ns.
    pub both_ways: (u64, f64),
}

const DATA: i32 = 21;
const REPLY: i32 = 22;

struct PairMeasurement<'w> {
    world: &'w World,
    timer: &'w Timer,
    plan: &'w MessagePlan,
    peer: u32,
    buffer: Vec<u8>,
}

/// Measures between rank 0 and `peer`; the others wait at the end. Collective.
pub(super) fn pair(world: &World, timer: &Timer, plan: &MessagePlan, peer: u32) -> Result<PairTimes> {
    let mut measurement =
        PairMeasurement { world, timer, plan, peer, buffer: vec![1; plan.largest as usize] };
    let mut measured = PairTimes::default();
    if world.rank == 0 || world.rank == peer {
        // Connections are made, pages touched, registered.
        for bytes in [1, plan.largest] {
            measurement.train(bytes, 2, 3, 0.0)?;
        }
        let alone: Vec<u64> = sizes(plan.largest);
        let one_way = |train: Train, reply: f64| Train { ns: train.ns - reply, ..train };
        measured.small = measurement.ping_pong()?;
        let reply = measurement.train(1, 1, plan.repetitions(), 0.0)?.ns / 2.0;
        for &bytes in &alone {
            measured.alone.push(one_way(measurement.train(bytes, 1, plan.repetitions(), 0.0)?, reply));
        }
        for &(bytes, count) in
            &[(1, 32), (64, 32), (1024, 8), (1024, 32), (1024, 96), (8192, 4), (8192, 12), (8192, 32)]
        {
            measured
                .trains
                .push(one_way(measurement.train(bytes, count, plan.repetitions().min(9), 0.0)?, reply));
        }
        measurement.overheads(&mut measured)?;
        measured.eager_limit = measurement.eager_limit()?;
        measured.both_ways = measurement.both_ways()?;
    }
    world.barrier()?;
    Ok(measured)
}

/// Four sizes an octave... of powers of two: 1, and from 64 on with one size between.
fn sizes(largest: u64) -> Vec<u64> {
    let mut sizes = vec![1, 8];
    let mut size = 64;
    while size <= largest {
        sizes.push(size);
        if size >= 1024 && size * 3 / 2 <= largest {
            sizes.push(size * 3 / 2);
        }
        size *= 2;
    }
    sizes
}

impl PairMeasurement<'_> {
    fn data(&self, to: u32) -> Envelope {
        Envelope::new(to as i32, DATA, self.world.comm)
    }

    /// Halves of round trips of 8 bytes, so few at a time that no bucket runs empty; the first of each series counts for nothing.
    fn ping_pong(&self) -> Result<Vec<f64>> {
        let mut halves = Vec::new();
        for _ in 0..self.plan.repetitions() {
            let now = self.timer.now();
            self.timer.wait_until(now + self.plan.pause_ns());
            for trip in 0..10 {
                let began = self.timer.now();
                if self.world.rank == 0 {
                    self.world.send_number(self.peer, 0.0)?;
                    self.world.receive_number(self.peer)?;
                    if trip > 1 {
                        halves.push((self.timer.now() - began) / 2.0);
                    }
                } else {
                    self.world.receive_number(0)?;
                    self.world.send_number(0, 0.0)?;
                }
            }
        }
        Ok(halves)
    }

    /// `count` messages to the peer, spaced by `wait` ns, and its small reply. The other rank gets what it needs to know here, too.
    fn train(&mut self, bytes: u64, count: u32, repetitions: usize, wait: f64) -> Result<Train> {
        let (mpi, comm) = (&self.world.mpi, self.world.comm);
        let mut times = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            if self.world.rank == 0 {
                // Both are there, then quiet.
                self.world.send_number(self.peer, 0.0)?;
                self.world.receive_number(self.peer)?;
                self.timer.wait_until(self.timer.now() + self.plan.pause_ns());
                let began = self.timer.now();
                for number in 0..count {
                    if number > 0 && wait > 0.0 {
                        self.timer.wait_until(self.timer.now() + wait);
                    }
                    mpi.send(&self.buffer[..bytes as usize], self.data(self.peer))?;
                }
                mpi.recv(&mut [0u8], Envelope::new(self.peer as i32, REPLY, comm))?;
                times.push(self.timer.now() - began);
            } else {
                self.world.receive_number(0)?;
                self.world.send_number(0, 0.0)?;
                for _ in 0..count {
                    let from = self.data(0);
                    mpi.recv(&mut self.buffer[..bytes as usize], from)?;
                }
                mpi.send(&[0u8], Envelope::new(0, REPLY, comm))?;
            }
        }
        let middle = median(&times);
        let spread: Vec<f64> = times.iter().map(|time| (time - middle).abs()).collect();
        // 1.48 times the median deviation is the standard deviation of what a few interruptions do not spoil.
        let half_width = 2.0 * 1.2533 * 1.4826 * median(&spread) / (times.len() as f64).sqrt();
        Ok(Train { bytes, count, ns: middle, half_width })
    }

    /// o_s from spaced trains, o_r from receives of what is there, g from trains without pause.
    fn overheads(&mut self, measured: &mut PairTimes) -> Result<()> {
        const COUNT: u32 = 12;
        let mpi = self.world.mpi.clone();
        for _ in 0..self.plan.repetitions().min(11) {
            let alone = self.train(8, 1, 1, 0.0)?.ns;
            let spaced = self.train(8, COUNT, 1, alone)?.ns;
            let dense = self.train(8, COUNT, 1, 0.0)?.ns;
            let each = f64::from(COUNT - 1);
            measured.send_overheads.push(((spaced - alone) / each - alone).max(0.0));
            measured.gaps.push(((dense - alone) / each).max(0.0));
        }
        // The receiver tells how long it was in receives of messages that had long arrived.
        for _ in 0..self.plan.repetitions().min(11) {
            if self.world.rank == 0 {
                for _ in 0..COUNT {
                    mpi.send(&[1u8; 8], self.data(self.peer))?;
                }
                measured.receive_overheads.push(self.world.receive_number(self.peer)?);
            } else {
                mpi.probe(self.data(0))?;
                self.timer.wait_until(self.timer.now() + 3e6);
                let mut took = Vec::new();
                for _ in 0..COUNT {
                    let begun = self.timer.now();
                    mpi.recv(&mut [0u8; 8], self.data(0))?;
                    took.push(self.timer.now() - begun);
                }
                self.world.send_number(0, median(&took))?;
            }
        }
        Ok(())
    }

    /// Whether a blocking send of so many bytes returns while nobody receives: the receiver posts only after a while.
    fn is_eager(&mut self, bytes: u64) -> Result<bool> {
        let wait = 30e6;
        if self.world.rank == 0 {
            self.world.send_number(self.peer, 0.0)?;
            self.world.receive_number(self.peer)?;
            let began = self.timer.now();
            self.world.mpi.send(&self.buffer[..bytes as usize], self.data(self.peer))?;
            let took = self.timer.now() - began;
            let eager = took < wait / 2.0;
            self.world.send_number(self.peer, f64::from(u8::from(eager)))?;
            Ok(eager)
        } else {
            self.world.receive_number(0)?;
            self.world.send_number(0, 0.0)?;
            self.timer.wait_until(self.timer.now() + wait);
            let from = self.data(0);
            self.world.mpi.recv(&mut self.buffer[..bytes as usize], from)?;
            Ok(self.world.receive_number(0)? != 0.0)
        }
    }

    /// The largest size sent eagerly: doubling, then bisection. `None`: the largest message still is.
    fn eager_limit(&mut self) -> Result<Option<u64>> {
        let (mut eager, mut not) = (0, 1u64);
        while self.is_eager(not)? {
            eager = not;
            if not >= self.plan.largest {
                return Ok(None);
            }
            not = (2 * not).min(self.plan.largest);
        }
        while not - eager > (eager / 256).max(1) {
            let middle = eager + (not - eager) / 2;
            if self.is_eager(middle)? {
                eager = middle;
            } else {
                not = middle;
            }
        }
        Ok(Some(eager))
    }

    fn both_ways(&mut self) -> Result<(u64, f64)> {
        let bytes = self.plan.largest / 4;
        let other = if self.world.rank == 0 { self.peer } else { 0 };
        let (mut times, mut incoming) = (Vec::new(), vec![0u8; bytes as usize]);
        for _ in 0..5 {
            self.world.send_number(other, 0.0)?;
            self.world.receive_number(other)?;
            self.timer.wait_until(self.timer.now() + self.plan.pause_ns());
            let began = self.timer.now();
            let (mpi, envelope) = (&self.world.mpi, self.data(other));
            // SAFETY: both buffers outlive the wait below, and each request is waited for once.
            unsafe {
                let receive = mpi.irecv(&mut incoming[..], envelope)?;
                let send = mpi.isend(&self.buffer[..bytes as usize], envelope)?;
                mpi.wait_all(&[receive, send])?;
            }
            times.push(self.timer.now() - began);
        }
        Ok((bytes, median(&times)))
    }
}

/// What adding up doubles costs this MPI, ns a byte.
pub(super) fn reduction(mpi: &Mpi, timer: &Timer) -> Result<f64> {
    const COUNT: usize = 32_768;
    let (from, mut into) = (vec![1.0f64; COUNT], vec![1.0f64; COUNT]);
    let types = (f64::datatype(mpi.abi()), mpi.sum());
    let mut times = Vec::new();
    for _ in 0..15 {
        let began = timer.now();
        // SAFETY: both hold COUNT doubles and are apart.
        unsafe { mpi.reduce_local(from.as_ptr().cast(), into.as_mut_ptr().cast(), COUNT, types)? };
        times.push(timer.now() - began);
    }
    Ok(median(&times) / (8 * COUNT) as f64)
}
