//! How long a thread is ready to run while others have its core. Between two calls, that is no computing of the program.
//!
//! The kernel counts it in `/proc/thread-self/schedstat`. To read that file takes some microseconds, so it is read only if the thread was
//! switched since the last time, which `getrusage` tells in 0.3 µs; and that is asked only behind what took [`LONG`]: gaps and calls.

use crate::clock;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::capture::layout::ClockPair;

/// Ticks of gaps and calls that are looked at: 0.25 to 0.5 ms at 2 to 4 GHz. Schedulers seldom take a core for less.
pub(crate) const LONG: u64 = 1 << 20;

/// Less than this, 16 to 32 µs, is not worth a record.
const LEAST: u64 = 1 << 16;

/// Whether the kernel does not tell, or a seccomp filter of the program refuses to ask it.
static UNKNOWN: AtomicBool = AtomicBool::new(false);

/// A thread's times without a core.
pub(crate) struct Preemptions {
    begin: ClockPair,
    /// The tick of the latest look.
    looked: u64,
    /// Until then, how often the thread had given up or lost its core, and for how long it had been ready without one, ns.
    switches: i64,
    waited: u64,
}

/// What happened between two looks.
pub(crate) struct Since {
    looked: u64,
    /// Ticks without a core, and whether they were in one piece.
    lost: u64,
    at_once: bool,
}

impl Preemptions {
    /// Of a thread that makes its first call.
    pub(crate) fn new() -> Self {
        let mut all = Self { begin: clock::pair(), looked: 0, switches: -1, waited: 0 };
        all.look();
        all
    }

    /// Looks in front of a call that begins at `start`: the ticks without a core since `previous`, the end of the call before. What may as well have
    /// been lost in front of that does not count.
    pub(crate) fn between(&mut self, previous: u64, start: u64) -> Option<u64> {
        let since = self.look();
        let before = previous.saturating_sub(since.looked);
        let lost = match since.at_once && since.lost > before {
            true => since.lost,
            false => since.lost.saturating_sub(before),
        };
        Some(lost.min(start.saturating_sub(previous))).filter(|&lost| lost >= LEAST)
    }

    /// Looks, so that what follows counts from here.
    #[cold]
    #[inline(never)]
    pub(crate) fn look(&mut self) -> Since {
        let looked = std::mem::replace(&mut self.looked, clock::now());
        let nothing = Since { looked, lost: 0, at_once: false };
        if UNKNOWN.load(Ordering::Relaxed) {
            return nothing;
        }
        // SAFETY: the thread's own error number.
        let error = unsafe { *libc::__errno_location() };
        let since = self.ask(looked).unwrap_or_else(|| {
            UNKNOWN.store(true, Ordering::Relaxed);
            nothing
        });
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = error };
        since
    }

    /// `None`: there is no answer.
    fn ask(&mut self, looked: u64) -> Option<Since> {
        let switches = switches()?;
        let times = switches - std::mem::replace(&mut self.switches, switches);
        if times == 0 {
            return Some(Since { looked, lost: 0, at_once: false });
        }
        let waited = waited()?;
        let nanos = waited.saturating_sub(std::mem::replace(&mut self.waited, waited));
        let now = clock::pair();
        let (ticks, wall) = (now.tick - self.begin.tick, now.nanos.saturating_sub(self.begin.nanos));
        let lost = u128::from(nanos) * u128::from(ticks) / u128::from(wall.max(1));
        Some(Since { looked, lost: lost as u64, at_once: times == 1 })
    }
}

/// How often the thread has given up or lost its core.
fn switches() -> Option<i64> {
    // SAFETY: a struct of integers, for which zero is a value, and its address.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) == 0)
            .then_some(usage.ru_nvcsw + usage.ru_nivcsw)
    }
}

/// For how long the thread was ready without a core, ns.
fn waited() -> Option<u64> {
    let mut text = [0; 80];
    let read = File::open("/proc/thread-self/schedstat").ok()?.read(&mut text).ok()?;
    std::str::from_utf8(&text[..read]).ok()?.split(' ').nth(1)?.parse().ok()
}
