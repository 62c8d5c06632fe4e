//! Timers, and what is found out about one before it is trusted.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use mpi_abi::api::Mpi;
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A source of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TimerKind {
    // `CLOCK_MONOTONIC`, whose rate the system keeps.
    #[default]
    Monotonic,
    // `CLOCK_MONOTONIC_RAW`, the hardware's own rate.
    MonotonicRaw,
    // `MPI_Wtime`.
    Wtime,
    // The processor's time stamp counter, read behind `lfence` (not `cpuid`, which costs a virtual machine 10 µs).
    Tsc,
}

impl TimerKind {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn refused(self, reason: impl std::fmt::Display) -> Error {
        Error::Local(format!("timer {}: {reason}", self.name()))
    }
}

/// A timer in nanoseconds since it was made.
#[derive(Clone, Debug)]
pub struct Timer {
    kind: TimerKind,
    mpi: Option<Mpi>,
    base: f64,
    /// Nanoseconds of a tick of the counter.
    tick: f64,
    base_ticks: u64,
    /// Whether waiting gives the core away.
    yields: bool,
}

/// What a look at a timer found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerQuality {
    /// Smallest step between two readings that differ, ns.
    pub resolution_ns: f64,
    /// Median time of one reading, ns.
    pub cost_ns: f64,
    /// Readings before the one in front of them.
    pub steps_back: u32,
    /// Against `CLOCK_MONOTONIC` over the test: relative error of the rate.
    pub rate_error: f64,
}

/// A timer coarser than this measures no collective.
const COARSEST_NS: f64 = 1_000.0;

impl Timer {
    /// A timer of this kind. `mpi` is needed for [`TimerKind::Wtime`] alone.
    ///
    /// # Errors
    /// The machine has no such timer.
    pub fn new(kind: TimerKind, mpi: Option<&Mpi>) -> Result<Timer> {
        let mut timer = Timer { kind, mpi: mpi.cloned(), base: 0.0, tick: 1.0, base_ticks: 0, yields: false };
        if kind == TimerKind::Tsc {
            timer.tick = tick_of_counter()?;
            timer.base_ticks = counter();
        }
        if kind == TimerKind::Wtime && mpi.is_none() {
            return Err(kind.refused("there is no MPI"));
        }
        timer.base = timer.raw();
        Ok(timer)
    }

    /// Waits by giving the core away again and again: for ranks that share cores.
    #[must_use]
    pub fn yielding(mut self, yields: bool) -> Timer {
        self.yields = yields;
        self
    }

    /// Its kind.
    pub fn kind(&self) -> TimerKind {
        self.kind
    }

    /// Nanoseconds since the timer was made.
    #[inline]
    pub fn now(&self) -> f64 {
        self.raw() - self.base
    }

    #[inline]
    fn raw(&self) -> f64 {
        match self.kind {
            TimerKind::Monotonic => system(ClockId::Monotonic),
            TimerKind::MonotonicRaw => system(ClockId::MonotonicRaw),
            // `new` refuses it without an MPI, and every MPI has the function.
            TimerKind::Wtime => self.mpi.as_ref().and_then(|mpi| mpi.wtime().ok()).unwrap_or(0.0) * 1e9,
            TimerKind::Tsc => counter().wrapping_sub(self.base_ticks) as f64 * self.tick,
        }
    }

    /// A reading of `CLOCK_MONOTONIC` and one of this timer, right after each other: taken again if the process was
    /// interrupted between them, as on a busy machine.
    pub fn beside_monotonic(&self) -> (Instant, f64) {
        const BRIEF: Duration = Duration::from_micros(50);
        let both = || {
            let instant = Instant::now();
            let own = self.now();
            (instant.elapsed(), instant, own)
        };
        let mut best = both();
        for _ in 0..100 {
            if best.0 < BRIEF {
                break;
            }
            let again = both();
            if again.0 < best.0 {
                best = again;
            }
        }
        (best.1, best.2)
    }

    /// Sleeps, then spins until `end` on this timer; what is left of a wait is spun only below 150 µs, so that waiting
    /// ranks leave their cores to those that work.
    #[inline]
    pub fn wait_until(&self, end: f64) {
        const SPUN: f64 = 150_000.0;
        let left = end - self.now();
        // A timer that jumps back would have its rank wait for ever.
        let (began, patience) = (Instant::now(), Duration::from_nanos(2 * left.max(0.0) as u64 + 10_000_000));
        if left > 2.0 * SPUN {
            std::thread::sleep(Duration::from_nanos((left - SPUN) as u64));
        }
        let mut spins = 0u32;
        while self.now() < end {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(4096) && began.elapsed() > patience {
                return;
            }
            match self.yields {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
    }

    /// Finds out what the timer can do, in a few milliseconds.
    ///
    /// # Errors
    /// It goes backwards, is coarser than a microsecond, or does not keep time.
    pub fn check(&self) -> Result<TimerQuality> {
        const READINGS: usize = 20_000;
        let refused = |reason: String| Err(self.kind.refused(reason));
        let (wall, began) = self.beside_monotonic();
        let mut readings = Vec::with_capacity(READINGS);
        for _ in 0..READINGS {
            readings.push(self.raw());
        }
        // Long enough that one interrupt is no rate error.
        while wall.elapsed() < Duration::from_millis(10) {
            std::hint::spin_loop();
        }
        let (now, ended) = self.beside_monotonic();
        let rate_error = (ended - began) / now.duration_since(wall).as_nanos() as f64 - 1.0;
        let steps = || readings.windows(2).map(|pair| pair[1] - pair[0]);
        let steps_back = steps().filter(|&step| step < 0.0).count() as u32;
        let resolution_ns = steps().filter(|&step| step > 0.0).fold(f64::INFINITY, f64::min);
        let cost_ns = (readings[READINGS - 1] - readings[0]) / (READINGS - 1) as f64;
        let quality = TimerQuality { resolution_ns, cost_ns, steps_back, rate_error };
        if steps_back > 0 {
            return refused(format!(
                "{steps_back} of {READINGS} readings are before the one in front of them"
            ));
        }
        if resolution_ns.is_infinite() || resolution_ns > COARSEST_NS {
            return refused(format!("a resolution of {resolution_ns:.0} ns is too coarse"));
        }
        if rate_error.abs() > 0.01 {
            return refused(format!("runs {:+.1} % against CLOCK_MONOTONIC", rate_error * 100.0));
        }
        Ok(quality)
    }
}

#[inline]
fn system(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn counter() -> u64 {
    // SAFETY: both instructions are in every x86-64 processor and touch no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

/// Nanoseconds of a tick, measured over 50 ms.
fn tick_of_counter() -> Result<f64> {
    let refused = |reason: &str| Err(TimerKind::Tsc.refused(reason));
    if !cfg!(target_arch = "x86_64") {
        return refused("only x86-64 has it");
    }
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !(flags.contains("constant_tsc") && flags.contains("nonstop_tsc")) {
        return refused("this processor's counter changes its rate or stops");
    }
    // Each end is the reading with the least time around it, so that an interrupt spoils neither.
    let end = || {
        (0..50)
            .map(|_| {
                let (before, ticks, after) =
                    (system(ClockId::Monotonic), counter(), system(ClockId::Monotonic));
                (after - before, (before + after) / 2.0, ticks)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or((0.0, 0), |(_, time, ticks)| (time, ticks))
    };
    let first = end();
    std::thread::sleep(Duration::from_millis(50));
    let last = end();
    match last.1.checked_sub(first.1) {
        Some(ticks) if ticks > 0 => Ok((last.0 - first.0) / ticks as f64),
        _ => refused("it does not advance"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_the_system_pass_and_keep_time() {
        for kind in [TimerKind::Monotonic, TimerKind::MonotonicRaw] {
            let timer = Timer::new(kind, None).unwrap();
            let quality = timer.check().unwrap();
            assert!(
                quality.resolution_ns > 0.0 && quality.resolution_ns <= COARSEST_NS,
                "{kind:?}: {quality:?}"
            );
            let before = timer.now();
            timer.wait_until(before + 400_000.0);
            assert!(timer.now() >= before + 400_000.0);
        }
    }

    #[test]
    fn names() {
        assert_eq!(TimerKind::MonotonicRaw.name(), "monotonic-raw");
        assert!(Timer::new(TimerKind::Wtime, None).is_err());
    }
}
