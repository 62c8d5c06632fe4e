//! Time on the processor, so that other programs disturb less.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time that this thread has had on the processor; time that has passed where the system does not tell.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    since: Instant,
    used: Option<Duration>,
}

impl Clock {
    /// Begins to count.
    pub fn start() -> Self {
        Self { since: Instant::now(), used: used() }
    }

    /// Since [`Clock::start`].
    pub fn elapsed(self) -> Duration {
        match (self.used, used()) {
            (Some(before), Some(now)) => now - before,
            _ => self.since.elapsed(),
        }
    }
}

/// Times `run` on what `make` makes, as often as criterion wants.
pub fn timed<T, U>(iterations: u64, make: impl Fn() -> T, run: impl Fn(T) -> U) -> Duration {
    let one = || {
        let made = make();
        let clock = Clock::start();
        black_box(run(made));
        clock.elapsed()
    };
    (0..iterations).map(|_| one()).sum()
}

fn used() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
