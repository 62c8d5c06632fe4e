//! Ways to time what all ranks do together.
//!
//! - [`Method::Window`]: ranks start each run at an instant agreed beforehand on synchronised clocks. No barrier
//!   disturbs the run, and the time is from the common start to the end of the last rank. Runs that began late or did not
//!   end within their window are thrown away, and the window is widened.
//! - [`Method::Max`]: two barriers in front; the time is the largest of the ranks' own.
//! - [`Method::Root`]: run and barrier at rank 0, less the mean time of a barrier.
//! - [`Method::Global`]: two barriers in front; from rank 0's start to the last rank's end on synchronised clocks.
//! - [`Method::Replies`]: for operations that spread from a root: for each other rank the time until its empty reply is
//!   back, less half an empty round trip; the largest.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::clock::{GlobalClock, Sync};
use crate::error::{Error, Result};
use crate::stats::{Precision, mean, median};
use crate::subject::Subject;
use crate::timer::Timer;
use crate::world::World;

/// How runs are started and their time is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Started at agreed instants.
    Window(Sync),
    /// Largest of the ranks' own times.
    Max,
    /// At rank 0, with a barrier behind.
    Root,
    /// From rank 0's start to the last end.
    Global(Sync),
    /// By replies to the root.
    Replies,
}

impl Default for Method {
    fn default() -> Self {
        Method::Window(Sync::default())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, sync) = text.split_once(':').map_or((text, None), |(name, sync)| (name, Some(sync)));
        let sync_of = || sync.map_or(Ok(Sync::default()), str::parse);
        match (name, sync) {
            ("window", _) => Ok(Method::Window(sync_of()?)),
            ("global", _) => Ok(Method::Global(sync_of()?)),
            ("max", None) => Ok(Method::Max),
            ("root", None) => Ok(Method::Root),
            ("replies", None) => Ok(Method::Replies),
            _ => Err(Error::Setting {
                what: "method",
                given: text.into(),
                reason: "write window, max, root, global or replies; window and global also :linear, :ring or :drift".into(),
            }),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sync = |sync: &Sync| format!("{sync:?}").to_lowercase();
        match self {
            Method::Window(by) => write!(f, "window:{}", sync(by)),
            Method::Global(by) => write!(f, "global:{}", sync(by)),
            Method::Max => f.write_str("max"),
            Method::Root => f.write_str("root"),
            Method::Replies => f.write_str("replies"),
        }
    }
}

/// What a measurement gave; at rank 0 only, elsewhere without samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Times of the good runs, ns.
    pub samples: Vec<f64>,
    /// Each rank's own times of the same runs, ns: the largest is not always the sample (clocks, late starts).
    pub by_rank: Vec<Vec<f64>>,
    /// Runs thrown away because a rank began late.
    pub late: usize,
    /// Runs thrown away because they did not end in their window.
    pub too_long: usize,
    /// Seconds it took.
    pub seconds: f64,
}

/// The means to time: ranks, clocks, rules.
pub struct Stopwatch<'w> {
    world: &'w World,
    timer: Timer,
    clock: Option<GlobalClock>,
    method: Method,
    precision: Precision,
    /// Idle time between runs, ns.
    gap: f64,
    /// What reading the timer adds to every time, ns.
    reading: f64,
}

/// Runs of a stage: as many are timed before ranks speak with each other again.
const STAGE: usize = 8;
/// A share of bad runs in a stage above which the window is widened.
const MOST_BAD: f64 = 0.25;

impl<'w> Stopwatch<'w> {
    /// Synchronises clocks if the method needs it. Collective.
    ///
    /// # Errors
    /// MPI's.
    pub fn new(
        world: &'w World,
        timer: Timer,
        method: Method,
        precision: Precision,
        gap: f64,
    ) -> Result<Stopwatch<'w>> {
        let clock = match method {
            Method::Window(sync) | Method::Global(sync) => {
                Some(GlobalClock::new(world, timer.clone(), sync)?)
            }
            _ => None,
        };
        let began = timer.now();
        for _ in 0..999 {
            timer.now();
        }
        let reading = (timer.now() - began) / 1e3;
        Ok(Stopwatch { world, timer, clock, method, precision, gap, reading })
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The synchronised clock, if the method has one.
    pub fn clock(&self) -> Option<&GlobalClock> {
        self.clock.as_ref()
    }

    /// Times `subject` until the precision asked for is reached. Collective.
    ///
    /// # Errors
    /// MPI's; [`Error::Collapsed`] where hardly any run of the window method is good; [`Error::Jumped`].
    pub fn time(&mut self, subject: &mut dyn Subject) -> Result<Measured> {
        let (began, began_own) = (Instant::now(), self.timer.now());
        let measured = match self.method {
            Method::Window(_) => self.window(subject),
            Method::Replies => self.replies(subject),
            _ => self.barriers(subject),
        };
        // A jump also makes the window method collapse; report the jump, which is the cause.
        if let Ok(_) | Err(Error::Collapsed { .. }) = measured {
            self.check_timer(began, began_own)?;
        }
        let mut measured = measured?;
        measured.seconds = began.elapsed().as_secs_f64();
        Ok(measured)
    }

    /// Holds what the timer counted since `began` against `CLOCK_MONOTONIC`, at all ranks.
    fn check_timer(&self, began: Instant, began_own: f64) -> Result<()> {
        // Beyond any drift of a clock, and what may lie between the two readings of an interrupted process.
        const MOST_DRIFT: f64 = 0.01;
        const INTERRUPTED_NS: f64 = 50e6;
        let before = Instant::now();
        let own = self.timer.now() - began_own;
        let true_ns = before.duration_since(began).as_nanos() as f64;
        let jump = own - true_ns;
        let is_jump = jump.abs() > MOST_DRIFT * true_ns + INTERRUPTED_NS;
        let jumped = |jump: f64| if is_jump { jump.max(0.0) } else { 0.0 };
        let (forth, back) = (self.world.largest(jumped(jump))?, self.world.largest(jumped(-jump))?);
        if forth == 0.0 && back == 0.0 {
            return Ok(());
        }
        let jump_ns = if forth >= back { forth } else { -back };
        Err(Error::Jumped { timer: self.timer.kind().name(), jump_ms: jump_ns / 1e6 })
    }

    /// Whether rank 0 has enough; the same answer at all.
    fn enough(&self, measured: &Measured, began: Instant) -> Result<bool> {
        let met = self.precision.is_met(&measured.samples, began.elapsed().as_secs_f64());
        Ok(self.world.share([f64::from(u8::from(met))])?[0] != 0.0)
    }

    fn run_once(&self, subject: &mut dyn Subject) -> Result<f64> {
        let began = self.timer.now();
        subject.run()?;
        let took = self.timer.now() - began;
        subject.prepare_next()?;
        Ok(took)
    }

    /// Up to four runs whose times count for nothing but a first idea: the mean of the slowest rank.
    fn throw_away(&self, subject: &mut dyn Subject) -> Result<f64> {
        self.world.barrier()?;
        let (mut total, mut runs) = (0.0, 0.0);
        while runs < 4.0 && total < self.precision.seconds * 1e9 / 4.0 {
            total += self.world.largest(self.run_once(subject)?)?;
            runs += 1.0;
        }
        Ok(total / runs)
    }

    fn window(&mut self, subject: &mut dyn Subject) -> Result<Measured> {
        let world = self.world;
        // How long it takes until all know what rank 0 says.
        let mut slowest = 0.0f64;
        for _ in 0..4 {
            world.barrier()?;
            let began = self.timer.now();
            world.share([0.0; 3])?;
            slowest = self.timer.now() - began;
        }
        let announce = 4.0 * world.largest(slowest)? + 20_000.0;
        // Discarded runs: they cover late set-up and estimate the time. A clock that jumps there would make the window an hour long.
        let (stage, stage_own) = (Instant::now(), self.timer.now());
        let mut window = 1.1 * self.throw_away(subject)? + 1_000.0;
        self.check_timer(stage, stage_own)?;

        let began = Instant::now();
        let (mut measured, mut runs) = (Measured::default(), 0);
        measured.by_rank.resize(if world.is_root() { world.size as usize } else { 0 }, Vec::new());
        let most_runs = 2 * self.precision.max_reps.max(STAGE);
        loop {
            let clock = self.clock.as_mut().ok_or_else(|| Error::Timer {
                timer: self.timer.kind().name(),
                reason: "the window method needs synchronised clocks".into(),
            })?;
            clock.refresh(world)?;
            // A stage lasts no longer than what is left of the budget, but has one run at least.
            let step = window + self.gap;
            let fitting = (self.precision.seconds * 1e9 / step) as usize;
            let runs_now = STAGE.min(fitting.max(1));
            let [start, step] = world.share([clock.now() + announce, step])?;
            let mut own = Vec::with_capacity(3 * STAGE);
            let (stage, stage_own) = (Instant::now(), self.timer.now());
            for run in 0..runs_now {
                let planned = clock.own(start + run as f64 * step);
                let now = self.timer.now();
                let late = now > planned;
                // A rank would wait longer only if a clock has jumped.
                self.timer.wait_until(planned.min(now + 2.0 * (announce + runs_now as f64 * step)));
                let begun = self.timer.now();
                subject.run()?;
                let ended = self.timer.now();
                subject.prepare_next()?;
                own.extend([
                    if late { f64::INFINITY } else { begun - planned },
                    ended - planned - self.reading,
                    ended - begun - self.reading,
                ]);
            }
            let all = world.gather(&own)?;
            // Times of this stage may widen the window.
            self.check_timer(stage, stage_own)?;
            let mut widened = 0.0;
            if world.is_root() {
                let of = |rank: usize, run: usize, what: usize| all[3 * (rank * runs_now + run) + what];
                let ranks = world.size as usize;
                let largest =
                    |run: usize, what: usize| (0..ranks).map(|rank| of(rank, run, what)).fold(0.0, f64::max);
                let mut bad = 0;
                for run in 0..runs_now {
                    let time = largest(run, 1);
                    let tolerated = (0.02 * time).max(1_000.0);
                    if largest(run, 0) > tolerated {
                        (bad, measured.late) = (bad + 1, measured.late + 1);
                    } else if time > step {
                        (bad, measured.too_long) = (bad + 1, measured.too_long + 1);
                    } else {
                        measured.samples.push(time);
                        for (rank, times) in measured.by_rank.iter_mut().enumerate() {
                            times.push(of(rank, run, 2));
                        }
                    }
                }
                if bad as f64 > MOST_BAD * runs_now as f64 {
                    // The longest run, and room for the next: times that vary need more than the mean.
                    let longest = (0..runs_now).map(|run| largest(run, 2)).fold(0.0, f64::max);
                    widened = (1.1 * longest).max(1.2 * window);
                }
                runs += runs_now;
            }
            let given_up =
                runs >= most_runs || (began.elapsed().as_secs_f64() > 2.0 * self.precision.seconds);
            let [wider, given_up] = world.share([widened, f64::from(u8::from(given_up))])?;
            if wider > 0.0 {
                window = wider;
            }
            if self.enough(&measured, began)? || given_up != 0.0 {
                break;
            }
        }
        // Less than a fifth of the runs is a choice of lucky ones.
        let (good, bad) = (measured.samples.len(), measured.late + measured.too_long);
        let collapsed = world.is_root() && (good < 3.min(runs) || 4 * good < bad);
        let [collapsed, good, runs] =
            world.share([f64::from(u8::from(collapsed)), good as f64, runs as f64])?;
        if collapsed != 0.0 {
            let why = format!("{} late, {} too long at rank 0's count", measured.late, measured.too_long);
            return Err(Error::Collapsed { good: good as usize, runs: runs as usize, why });
        }
        Ok(measured)
    }

    fn barriers(&mut self, subject: &mut dyn Subject) -> Result<Measured> {
        let world = self.world;
        self.throw_away(subject)?;
        let mut barrier = 0.0;
        if self.method == Method::Root {
            world.barrier()?;
            let began = self.timer.now();
            for _ in 0..20 {
                world.barrier()?;
            }
            barrier = (self.timer.now() - began) / 20.0;
        }
        let began = Instant::now();
        let mut measured = Measured::default();
        measured.by_rank.resize(if world.is_root() { world.size as usize } else { 0 }, Vec::new());
        loop {
            if let Some(clock) = &mut self.clock {
                clock.refresh(world)?;
            }
            let mut own = Vec::with_capacity(3 * STAGE);
            for _ in 0..STAGE {
                if self.gap > 0.0 {
                    let now = self.timer.now();
                    self.timer.wait_until(now + self.gap);
                }
                world.barrier()?;
                world.barrier()?;
                let begun = self.timer.now();
                subject.run()?;
                let ended = self.timer.now();
                if self.method == Method::Root {
                    world.barrier()?;
                }
                let after = self.timer.now();
                subject.prepare_next()?;
                let global = |own: f64| self.clock.as_ref().map_or(own, |clock| clock.global(own));
                own.extend([
                    ended - begun - self.reading,
                    after - begun - barrier - self.reading,
                    global(begun),
                    global(ended) - self.reading,
                ]);
            }
            let all = world.gather(&own)?;
            if world.is_root() {
                let of = |rank: usize, run: usize, what: usize| all[4 * (rank * STAGE + run) + what];
                for run in 0..STAGE {
                    let ranks = 0..world.size as usize;
                    let largest =
                        |what: usize| ranks.clone().map(|r| of(r, run, what)).fold(f64::MIN, f64::max);
                    measured.samples.push(match self.method {
                        Method::Root => of(0, run, 1),
                        Method::Global(_) => largest(3) - of(0, run, 2),
                        _ => largest(0),
                    });
                    for (rank, times) in measured.by_rank.iter_mut().enumerate() {
                        times.push(of(rank, run, 0));
                    }
                }
            }
            if self.enough(&measured, began)? {
                return Ok(measured);
            }
        }
    }

    fn replies(&mut self, subject: &mut dyn Subject) -> Result<Measured> {
        let world = self.world;
        let began = Instant::now();
        let mut measured = Measured::default();
        measured.by_rank.resize(if world.is_root() { world.size as usize } else { 0 }, Vec::new());
        self.run_once(subject)?;
        // An empty round trip with each rank, the median of some.
        let mut empty = vec![0.0; world.size as usize];
        for rank in 1..world.size {
            if world.is_root() {
                let trips: Result<Vec<f64>> = (0..STAGE)
                    .map(|_| {
                        let begun = self.timer.now();
                        world.tell(rank, 0.0)?;
                        world.hear(rank)?;
                        Ok(self.timer.now() - begun)
                    })
                    .collect();
                empty[rank as usize] = median(&trips?);
            } else if world.rank == rank {
                for _ in 0..STAGE {
                    world.hear(0)?;
                    world.tell(0, 0.0)?;
                }
            }
        }
        loop {
            let mut slowest = 0.0f64;
            for rank in 1..world.size {
                let mut times = Vec::new();
                for _ in 0..STAGE {
                    world.barrier()?;
                    let begun = self.timer.now();
                    subject.run()?;
                    if world.rank == rank {
                        world.tell(0, 0.0)?;
                    } else if world.is_root() {
                        world.hear(rank)?;
                        times.push(self.timer.now() - begun - empty[rank as usize] / 2.0);
                    }
                    subject.prepare_next()?;
                }
                if world.is_root() {
                    let time = mean(&times);
                    measured.by_rank[rank as usize].push(time);
                    slowest = slowest.max(time);
                }
            }
            if world.is_root() {
                measured.samples.push(slowest);
            }
            if self.enough(&measured, began)? {
                return Ok(measured);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for text in
            ["window:linear", "window:ring", "window:drift", "max", "root", "global:linear", "replies"]
        {
            assert_eq!(text.parse::<Method>().unwrap().to_string(), text);
        }
        assert_eq!("window".parse::<Method>().unwrap(), Method::default());
        for text in ["max:ring", "stopwatch", "window:sundial", ""] {
            assert!(text.parse::<Method>().is_err(), "{text}");
        }
    }
}
