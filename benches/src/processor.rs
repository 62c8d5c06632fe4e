//! Time on the processor, so that other programs disturb less.

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

fn used() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
