//! Timers, and what is found out about one before it is trusted.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use mpi_abi::api::Mpi;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A source of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerKind {
    /// `CLOCK_MONOTONIC`, whose rate the system keeps.
    #[default]
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`, the hardware's own rate.
    MonotonicRaw,
    /// `MPI_Wtime`.
    Wtime,
    /// The processor's time stamp counter, read behind `lfence` (not `cpuid`, which costs a virtual machine 10 µs).
    Tsc,
}

impl TimerKind {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            TimerKind::Monotonic => "monotonic",
            TimerKind::MonotonicRaw => "monotonic-raw",
            TimerKind::Wtime => "wtime",
            TimerKind::Tsc => "tsc",
        }
    }
}

impl FromStr for TimerKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [TimerKind::Monotonic, TimerKind::MonotonicRaw, TimerKind::Wtime, TimerKind::Tsc]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| Error::Setting {
                what: "timer",
                given: text.into(),
                reason: "write monotonic, monotonic-raw, wtime or tsc".into(),
            })
    }
}

impl fmt::Display for TimerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
    /// An error put in on purpose, for tests of clock synchronisation: ns, and ns a ns.
    skew: (f64, f64),
    /// Whether waiting gives the core away.
    yields: bool,
}

/// What a look at a timer found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// [`Error::Timer`] where the machine has no such timer.
    pub fn new(kind: TimerKind, mpi: Option<&Mpi>) -> Result<Timer> {
        let mut timer = Timer {
            kind,
            mpi: mpi.cloned(),
            base: 0.0,
            tick: 1.0,
            base_ticks: 0,
            skew: (0.0, 0.0),
            yields: false,
        };
        if kind == TimerKind::Tsc {
            timer.tick = tick_of_counter()?;
            timer.base_ticks = counter();
        }
        if kind == TimerKind::Wtime && mpi.is_none() {
            return Err(Error::Timer { timer: kind.name(), reason: "there is no MPI".into() });
        }
        timer.base = timer.raw();
        Ok(timer)
    }

    /// The same clock, wrong by `offset` ns and `drift` ns a ns: what synchronisation must find out.
    #[must_use]
    pub fn skewed(mut self, offset: f64, drift: f64) -> Timer {
        self.skew = (offset, drift);
        self
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
        let now = self.raw() - self.base;
        now + self.skew.0 + now * self.skew.1
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
    /// [`Error::Timer`] for one that goes backwards, is coarser than a microsecond, or does not keep time.
    pub fn check(&self) -> Result<TimerQuality> {
        const READINGS: usize = 20_000;
        let refused = |reason| Err(Error::Timer { timer: self.kind.name(), reason });
        let (began, wall) = (self.raw(), Instant::now());
        let mut readings = Vec::with_capacity(READINGS);
        for _ in 0..READINGS {
            readings.push(self.raw());
        }
        // Long enough that one interrupt is no rate error.
        while wall.elapsed() < Duration::from_millis(10) {
            std::hint::spin_loop();
        }
        let rate_error = (self.raw() - began) / wall.elapsed().as_nanos() as f64 - 1.0;
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
    let refused = |reason: &str| Err(Error::Timer { timer: TimerKind::Tsc.name(), reason: reason.into() });
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
                "{kind}: {quality:?}"
            );
            let before = timer.now();
            timer.wait_until(before + 400_000.0);
            assert!(timer.now() >= before + 400_000.0);
        }
    }

    #[test]
    fn a_skewed_clock_is_wrong_by_what_was_asked() {
        let timer = Timer::new(TimerKind::Monotonic, None).unwrap();
        let skewed = timer.clone().skewed(5e9, 1e-3);
        let (low, middle, high) = (timer.now(), skewed.now(), timer.now());
        let wrong = |right: f64| right + 5e9 + right * 1e-3;
        assert!(wrong(low) <= middle && middle <= wrong(high), "{low} {middle} {high}");
    }

    #[test]
    fn names() {
        assert_eq!("tsc".parse::<TimerKind>().unwrap(), TimerKind::Tsc);
        assert!("sundial".parse::<TimerKind>().is_err());
        assert!(Timer::new(TimerKind::Wtime, None).is_err());
    }
}
