//! How long a thread is ready to run while others have its core. Between two calls, that is no computing of the program. And how long it sleeps,
//! which between two polls is waiting.
//!
//! The kernel counts the first in `/proc/thread-self/schedstat`, which is read only if the thread was switched since the last time: `getrusage` tells.
//! Both together take about 2 µs, `getrusage` alone 0.3; and it is asked only behind gaps and calls that took long. None of the system calls is a
//! point at which the thread can be cancelled.

use crate::clock;
use crate::output::out_of_the_way;
use rustix::fd::{IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::io::{Errno, pread};
use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::capture::layout::ClockPair;

/// Ticks of gaps that are looked at: 0.25 to 0.5 ms at 2 to 4 GHz. Schedulers seldom take a core for less.
pub(crate) const LONG_GAP: u64 = 1 << 20;

/// The same between polls, where programs sleep for less.
pub(crate) const LONG_BETWEEN_POLLS: u64 = 1 << 17;

/// The same of calls, 16 to 32 µs: they may yield the core again and again, which is to be told from losing it in the gap behind them.
pub(crate) const LONG_CALL: u64 = 1 << 16;

/// Less than this, 16 to 32 µs, is not worth a record.
const LEAST: u64 = 1 << 16;

/// How often the usage is read until nothing else happens meanwhile.
const ATTEMPTS: u32 = 4;

/// Whether the kernel does not tell, or a seccomp filter of the program refuses to ask it.
static UNKNOWN: AtomicBool = AtomicBool::new(false);

/// Watches how a thread uses its core.
pub(crate) struct Preemptions {
    /// When the thread made its first call.
    begin: ClockPair,
    /// The tick of the latest look.
    looked: u64,
    /// The usage at the latest look that found the thread switched.
    usage: Option<Usage>,
    statistics: Option<Statistics>,
}

/// How a thread used its core until now.
#[derive(Clone, Copy)]
struct Usage {
    clock: ClockPair,
    /// How often it had given up or lost its core.
    switches: i64,
    /// For how long it had been running, and ready to run without a core, ns.
    ran: u64,
    waited: u64,
}

/// What happened between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Since {
    /// The tick of the first one.
    looked: u64,
    /// Ticks without a core, and in how many pieces at most.
    lost: u64,
    pieces: u64,
    /// Ticks in which the thread slept.
    slept: u64,
}

impl Preemptions {
    /// Of a thread that makes its first call.
    pub(crate) fn new() -> Self {
        let mut all = Self { begin: clock::pair(), looked: 0, usage: None, statistics: None };
        all.look();
        all
    }

    /// Whether the latest look was a while before `tick`.
    pub(crate) fn are_due(&self, tick: u64) -> bool {
        tick.saturating_sub(self.looked) >= LONG_GAP
    }

    /// Looks, so that what follows counts from here. A look that fails is none.
    pub(crate) fn look(&mut self) -> Since {
        let nothing = Since { looked: self.looked, ..Since::default() };
        if UNKNOWN.load(Ordering::Relaxed) {
            return nothing;
        }
        // SAFETY: the thread's own error number.
        let error = unsafe { *libc::__errno_location() };
        let since = self.since(nothing);
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = error };
        since.unwrap_or_else(|error| {
            let is_final = matches!(error, Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::NOSYS);
            UNKNOWN.fetch_or(is_final, Ordering::Relaxed);
            nothing
        })
    }

    fn since(&mut self, nothing: Since) -> Result<Since, Errno> {
        // The core is often taken at the end of a system call: the usage is that of the tick if nothing happened while it was read.
        let (mut now, mut looked);
        let mut attempts = 0;
        loop {
            let begin = clock::now();
            now = self.read()?;
            looked = clock::now();
            attempts += 1;
            if looked.saturating_sub(begin) < LEAST || attempts == ATTEMPTS {
                break;
            }
        }
        self.looked = looked;
        let Some(then) = self.usage.replace(now) else { return Ok(nothing) };
        let nanos = now.clock.nanos.saturating_sub(then.clock.nanos);
        let [ran, waited] = [now.ran.saturating_sub(then.ran), now.waited.saturating_sub(then.waited)];
        let wall = now.clock.nanos.saturating_sub(self.begin.nanos).max(1);
        let all = now.clock.tick.saturating_sub(self.begin.tick);
        let ticks = |nanos: u64| (u128::from(nanos) * u128::from(all) / u128::from(wall)) as u64;
        let slept = ticks(nanos.saturating_sub(ran).saturating_sub(waited));
        Ok(Since { lost: ticks(waited), pieces: now.switches.abs_diff(then.switches), slept, ..nothing })
    }

    /// The usage now; if the thread was not switched since the latest look, that of then.
    fn read(&mut self) -> Result<Usage, Errno> {
        let switches = switches()?;
        match self.usage {
            Some(usage) if usage.switches == switches => Ok(usage),
            _ => Ok(Usage { switches, waited: self.waited()?, ran: ran()?, clock: clock::pair() }),
        }
    }

    /// For how long the thread was ready without a core, ns.
    fn waited(&mut self) -> Result<u64, Errno> {
        // The program may have closed the descriptor, and its number be that of another file.
        if let Some(lost) = self.statistics.take_if(|statistics| !statistics.are_there()) {
            _ = lost.file.into_raw_fd();
        }
        let statistics = match &mut self.statistics {
            Some(statistics) => statistics,
            none => none.insert(Statistics::open()?),
        };
        statistics.waited()
    }
}

/// The open `schedstat` of a thread.
struct Statistics {
    file: OwnedFd,
    identity: (u64, u64),
}

impl Statistics {
    fn open() -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = out_of_the_way(open("/proc/thread-self/schedstat", flags, Mode::empty())?);
        let about = fstat(&file)?;
        Ok(Self { file, identity: (about.st_dev, about.st_ino) })
    }

    fn are_there(&self) -> bool {
        fstat(&self.file).is_ok_and(|about| (about.st_dev, about.st_ino) == self.identity)
    }

    fn waited(&self) -> Result<u64, Errno> {
        let mut text = [0; 80];
        let read = pread(&self.file, &mut text, 0)?;
        let second =
            std::str::from_utf8(&text[..read]).ok().and_then(|text| text.split(' ').nth(1)?.parse().ok());
        second.ok_or(Errno::NOENT)
    }
}

impl Since {
    /// The ticks without a core from `previous`, the end of a call, to `start`, that of the next one, in front of which was the second look. What may as
    /// well have been lost in front of `previous` does not count: there, each piece was shorter than a gap that is looked at.
    pub(crate) fn lost_between(&self, previous: u64, start: u64) -> Option<u64> {
        let in_front =
            |pieces: u64| pieces.saturating_mul(LONG_GAP).min(previous.saturating_sub(self.looked));
        if self.lost <= in_front(self.pieces) {
            return None;
        }
        // At least one piece was in the gap.
        let lost = self.lost - in_front(self.pieces.saturating_sub(1)).min(self.lost);
        Some(lost.min(start.saturating_sub(previous))).filter(|&lost| lost >= LEAST)
    }

    /// The same of sleep.
    pub(crate) fn slept_between(&self, previous: u64, start: u64) -> u64 {
        let slept = self.slept.saturating_sub(previous.saturating_sub(self.looked));
        slept
            .min(start.saturating_sub(previous))
            .saturating_sub(self.lost_between(previous, start).unwrap_or(0))
    }
}

/// How often the thread has given up or lost its core.
fn switches() -> Result<i64, Errno> {
    // SAFETY: a struct of integers, for which zero is a value, and its address.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        done(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage))?;
        Ok(usage.ru_nvcsw + usage.ru_nivcsw)
    }
}

/// For how long the thread has run, ns.
fn ran() -> Result<u64, Errno> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a place for its time.
    done(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) })?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The error of a function of the C library that returns this.
fn done(returned: i32) -> Result<(), Errno> {
    match returned {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOSYS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_lost_in_front_of_a_gap_does_not_count() {
        let (looked, previous, start) = (1_000_000, 5_000_000, 20_000_000);
        let lost = |lost, pieces| Since { looked, lost, pieces, slept: 0 }.lost_between(previous, start);
        assert_eq!([lost(3_000_000, 1), lost(LONG_GAP, 1)], [Some(3_000_000), None]);
        assert_eq!([lost(8_000_000, 3), lost(3 * LONG_GAP, 3)], [Some(8_000_000 - 2 * LONG_GAP), None]);
        // Many yields fill all of the time in front.
        assert_eq!([lost(8_000_000, 900), lost(4_000_000, 900)], [Some(4_000_000), None]);
        assert_eq!(lost(90_000_000, 1), Some(start - previous), "no more than the gap");
        let slept = |slept| Since { looked, slept, ..Since::default() }.slept_between(previous, start);
        assert_eq!([slept(4_000_000), slept(9_000_000), slept(90_000_000)], [0, 5_000_000, start - previous]);
    }

    #[test]
    fn sleep_is_told_from_running_and_from_lack_of_a_core() {
        let mut watched = Preemptions::new();
        let begin = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (since, wall) = (watched.look(), begin.elapsed().as_nanos() as f64);
        let now = clock::pair();
        let tick = (now.nanos - watched.begin.nanos) as f64 / (now.tick - watched.begin.tick) as f64;
        let slept = since.slept as f64 * tick;
        assert!(
            UNKNOWN.load(Ordering::Relaxed) || (19e6..1.01 * wall).contains(&slept),
            "{slept} of {wall} ns, {since:?}"
        );
    }
}
