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

use statrs::statistics::Statistics;

use crate::clock::{GlobalClock, Sync};
use crate::error::{Error, Result};
use crate::stats::{Precision, median};
use crate::subject::Subject;
use crate::timer::Timer;
use crate::world::World;

/// How runs are started and their time is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Method {
    /// Names; of two for one method the first is shown.
    const NAMES: [(&str, Method); 11] = [
        ("window:linear", Method::Window(Sync::Linear)),
        ("window:ring", Method::Window(Sync::Ring)),
        ("window:drift", Method::Window(Sync::Drift)),
        ("global:linear", Method::Global(Sync::Linear)),
        ("global:ring", Method::Global(Sync::Ring)),
        ("global:drift", Method::Global(Sync::Drift)),
        ("window", Method::Window(Sync::Linear)),
        ("global", Method::Global(Sync::Linear)),
        ("max", Method::Max),
        ("root", Method::Root),
        ("replies", Method::Replies),
    ];
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, method)| *method);
        let reason =
            "write window, max, root, global or replies; window and global also :linear, :ring or :drift";
        found.ok_or_else(|| Error::Invalid(reason.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, method)| method == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
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

impl Measured {
    fn new(world: &World) -> Self {
        let ranks = if world.is_root() { world.size as usize } else { 0 };
        Measured { by_rank: vec![Vec::new(); ranks], ..Measured::default() }
    }
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

/// A run in its window, at a rank: how late it began (infinite if the instant had passed before), its end after
/// the planned instant, and the rank's own time, ns.
const LATE: usize = 0;
const END: usize = 1;
const OWN: usize = 2;

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
            Method::Max | Method::Root | Method::Replies => None,
        };
        let began = timer.now();
        for _ in 0..999 {
            timer.now();
        }
        let reading = (timer.now() - began) / 1e3;
        Ok(Stopwatch { world, timer, clock, method, precision, gap, reading })
    }

    /// Times `subject` until the precision asked for is reached. Collective.
    ///
    /// # Errors
    /// MPI's; [`Error::Collapsed`] where hardly any run of the window method is good; [`Error::Unmeasurable`] where
    /// the timer jumps.
    pub fn time(&mut self, subject: &mut dyn Subject) -> Result<Measured> {
        let began = self.timer.beside_monotonic();
        let measured = match self.method {
            Method::Window(_) => self.window(subject),
            Method::Replies => self.replies(subject),
            Method::Max | Method::Root | Method::Global(_) => self.barriers(subject),
        };
        // A jump also makes the window method collapse; report the jump, which is the cause.
        if let Ok(_) | Err(Error::Collapsed { .. }) = measured {
            self.check_timer(began)?;
        }
        let mut measured = measured?;
        measured.seconds = began.0.elapsed().as_secs_f64();
        Ok(measured)
    }

    /// Holds what the timer counted since both were read against `CLOCK_MONOTONIC`, at all ranks.
    fn check_timer(&self, (began, began_own): (Instant, f64)) -> Result<()> {
        // Beyond any drift of a clock, and what lies between two readings in spite of all.
        const MOST_DRIFT: f64 = 0.01;
        const INTERRUPTED_NS: f64 = 50e6;
        let (now, own) = self.timer.beside_monotonic();
        let true_ns = now.duration_since(began).as_nanos() as f64;
        let jump = own - began_own - true_ns;
        let is_jump = jump.abs() > MOST_DRIFT * true_ns + INTERRUPTED_NS;
        let jumped = |jump: f64| if is_jump { jump.max(0.0) } else { 0.0 };
        let (forth, back) = (self.world.largest(jumped(jump))?, self.world.largest(jumped(-jump))?);
        if forth == 0.0 && back == 0.0 {
            return Ok(());
        }
        let (timer, jump_ms) = (self.timer.kind().name(), if forth >= back { forth } else { -back } / 1e6);
        Err(Error::Unmeasurable(format!(
            "timer {timer} jumped by {jump_ms:+.3} ms against CLOCK_MONOTONIC during the measurement: its times are \
             thrown away"
        )))
    }

    /// Whether rank 0 has enough; the same answer at all.
    fn enough(&self, measured: &Measured, began: Instant) -> Result<bool> {
        self.world.agree(self.precision.is_met(&measured.samples, began.elapsed().as_secs_f64()))
    }

    /// All ranks' times of the global clock now.
    fn refresh(&mut self) -> Result<()> {
        self.clock.as_mut().map_or(Ok(()), |clock| clock.refresh(self.world))
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
        let stage = self.timer.beside_monotonic();
        let mut window = 1.1 * self.throw_away(subject)? + 1_000.0;
        self.check_timer(stage)?;

        let began = Instant::now();
        let (mut measured, mut runs) = (Measured::new(world), 0);
        let most_runs = 2 * self.precision.max_reps.max(STAGE);
        loop {
            self.refresh()?;
            // A stage lasts no longer than what is left of the budget, but has one run at least.
            let step = window + self.gap;
            let fitting = (self.precision.seconds * 1e9 / step) as usize;
            let stage = self.timer.beside_monotonic();
            let own = self.stage(subject, announce, step, STAGE.min(fitting.max(1)))?;
            let all = world.gather_rows(&own)?;
            // Times of this stage may widen the window.
            self.check_timer(stage)?;
            runs += own.len();
            let mut widened = 0.0;
            if world.is_root() {
                let largest =
                    |run: usize, what: usize| all.iter().map(|rank| rank[run][what]).fold(0.0, f64::max);
                let mut bad = 0;
                for run in 0..own.len() {
                    let time = largest(run, END);
                    let tolerated = (0.02 * time).max(1_000.0);
                    if largest(run, LATE) > tolerated {
                        (bad, measured.late) = (bad + 1, measured.late + 1);
                    } else if time > step {
                        (bad, measured.too_long) = (bad + 1, measured.too_long + 1);
                    } else {
                        measured.samples.push(time);
                        for (times, rank) in measured.by_rank.iter_mut().zip(&all) {
                            times.push(rank[run][OWN]);
                        }
                    }
                }
                if bad as f64 > MOST_BAD * own.len() as f64 {
                    // The longest run, and room for the next: times that vary need more than the mean.
                    let longest = (0..own.len()).map(|run| largest(run, OWN)).fold(0.0, f64::max);
                    widened = (1.1 * longest).max(1.2 * window);
                }
            }
            let [wider] = world.share([widened])?;
            if wider > 0.0 {
                window = wider;
            }
            let given_up = runs >= most_runs || began.elapsed().as_secs_f64() > 2.0 * self.precision.seconds;
            if self.enough(&measured, began)? || world.agree(given_up)? {
                break;
            }
        }
        // Less than a fifth of the runs is a choice of lucky ones.
        let (good, bad) = (measured.samples.len(), measured.late + measured.too_long);
        let [good_runs] = world.share([good as f64])?;
        if world.agree(good < 3.min(runs) || 4 * good < bad)? {
            let why = format!("{} late, {} too long at rank 0's count", measured.late, measured.too_long);
            return Err(Error::Collapsed { good: good_runs as usize, runs, why });
        }
        Ok(measured)
    }

    /// Runs at instants agreed on, each `step` ns after the one before; the first once all know of it, after
    /// `announce` ns. Returns what this rank measured of each.
    fn stage(
        &self,
        subject: &mut dyn Subject,
        announce: f64,
        step: f64,
        runs: usize,
    ) -> Result<Vec<[f64; 3]>> {
        let Some(clock) = &self.clock else { return Ok(Vec::new()) };
        let [start, step] = self.world.share([clock.now() + announce, step])?;
        let mut own = Vec::with_capacity(runs);
        for run in 0..runs {
            let planned = clock.own(start + run as f64 * step);
            let now = self.timer.now();
            let is_late = now > planned;
            // A rank would wait longer only if a clock has jumped.
            self.timer.wait_until(planned.min(now + 2.0 * (announce + runs as f64 * step)));
            let begun = self.timer.now();
            subject.run()?;
            let ended = self.timer.now();
            subject.prepare_next()?;
            own.push([
                if is_late { f64::INFINITY } else { begun - planned },
                ended - planned - self.reading,
                ended - begun - self.reading,
            ]);
        }
        Ok(own)
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
        let mut measured = Measured::new(world);
        loop {
            self.refresh()?;
            // The rank's own time, that with the barrier, and start and end on the global clock.
            let mut own: Vec<[f64; 4]> = Vec::with_capacity(STAGE);
            for _ in 0..STAGE {
                if self.gap > 0.0 {
                    self.timer.wait_until(self.timer.now() + self.gap);
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
                own.push([
                    ended - begun - self.reading,
                    after - begun - barrier - self.reading,
                    global(begun),
                    global(ended) - self.reading,
                ]);
            }
            let all = world.gather_rows(&own)?;
            for run in 0..if world.is_root() { STAGE } else { 0 } {
                let largest = |what: usize| all.iter().map(|rank| rank[run][what]).fold(f64::MIN, f64::max);
                measured.samples.push(match self.method {
                    Method::Root => all[0][run][1],
                    Method::Global(_) => largest(3) - all[0][run][2],
                    Method::Max | Method::Window(_) | Method::Replies => largest(0),
                });
                for (times, rank) in measured.by_rank.iter_mut().zip(&all) {
                    times.push(rank[run][0]);
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
        let mut measured = Measured::new(world);
        self.run_once(subject)?;
        // An empty round trip with each rank, the median of some.
        let mut empty = vec![0.0; world.size as usize];
        for rank in 1..world.size {
            if world.is_root() {
                let trips: Result<Vec<f64>> = (0..STAGE)
                    .map(|_| {
                        let begun = self.timer.now();
                        world.send_number(rank, 0.0)?;
                        world.receive_number(rank)?;
                        Ok(self.timer.now() - begun)
                    })
                    .collect();
                empty[rank as usize] = median(&trips?);
            } else if world.rank == rank {
                for _ in 0..STAGE {
                    world.receive_number(0)?;
                    world.send_number(0, 0.0)?;
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
                        world.send_number(0, 0.0)?;
                    } else if world.is_root() {
                        world.receive_number(rank)?;
                        times.push(self.timer.now() - begun - empty[rank as usize] / 2.0);
                    }
                    subject.prepare_next()?;
                }
                if world.is_root() {
                    let time = times.as_slice().mean();
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
        assert_eq!("window".parse::<Method>().unwrap(), Method::Window(Sync::Linear));
        for text in ["max:ring", "stopwatch", "window:sundial", ""] {
            assert!(text.parse::<Method>().is_err(), "{text}");
        }
    }
}
