//! A run of failed polls (`MPI_Test`, `MPI_Iprobe` and the like), which becomes one record.
//!
//! Polls with short gaps between them are one run. A longer gap is computing beside communication, unless the thread had no core in
//! it. Where a host has more ranks than cores that is frequent, and only there the thread's processor time is read, between runs.

use crate::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::capture::event::CallSlot;

/// Polls with fewer ticks between them are one run: 2–4 µs at 2–4 GHz.
const GAP: u64 = 1 << 13;

/// The thread has its core for up to so many ticks (0.1 ms), or for 1 / [`SHARE`] of a gap, while it loses it and gets it back: a longer
/// gap with more than that is computing.
const USED: u64 = 1 << 18;
const SHARE: u64 = 64;

/// Ticks after which the thread's processor time is read again. Until then, all time in polls may be without a core.
const AGAIN: u64 = 1 << 18;

/// Whether the host has more ranks than cores.
static CORES_ARE_SHARED: AtomicBool = AtomicBool::new(false);

/// Finds out whether the host has more ranks than cores, from what launchers tell their processes.
pub(crate) fn look_at_host() {
    const RANKS: [&str; 4] =
        ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_TASKS_PER_NODE"];
    let ranks = RANKS.iter().find_map(|name| leading_number(&std::env::var(name).ok()?));
    // SAFETY: a query without arguments in memory.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    CORES_ARE_SHARED.store(ranks.is_some_and(|ranks| ranks > cores && cores > 0), Ordering::Relaxed);
}

/// Of `4(x2),3`, as Slurm writes it, the 4.
fn leading_number(text: &str) -> Option<i64> {
    text.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// A run of failed polls that is not written yet.
pub(crate) struct Polls {
    /// The function of the first poll.
    pub(crate) call: CallSlot,
    pub(crate) count: u64,
    pub(crate) start: u64,
    /// The end of the last poll, or of what the recorder did behind it.
    pub(crate) end: u64,
    /// Where cores are shared, the thread's processor time behind one of the polls, the ticks in polls since then, and when it is read again.
    used: Option<Used>,
    in_polls: u64,
    again: u64,
}

impl Polls {
    /// A run that begins with a poll, `behind` which the program is now.
    pub(crate) fn new(call: CallSlot, start: u64, behind: Reading) -> Self {
        let mut polls = Self { call, count: 0, start, end: 0, used: None, in_polls: 0, again: 0 };
        polls.add_and_read(behind);
        polls
    }

    /// Whether a call that begins at `start` follows at once.
    #[inline(always)]
    pub(crate) fn goes_on(&self, start: u64) -> bool {
        start.wrapping_sub(self.end) < GAP
    }

    /// Whether a poll that begins at `start` can be added without a reading.
    #[inline(always)]
    pub(crate) fn takes(&self, start: u64) -> bool {
        self.goes_on(start) && start < self.again
    }

    /// Adds a poll.
    #[inline(always)]
    pub(crate) fn add(&mut self, (start, end): (u64, u64)) {
        self.count += 1;
        self.end = end;
        self.in_polls += end.saturating_sub(start);
    }

    /// Adds a poll, `behind` which the program is now.
    pub(crate) fn add_and_read(&mut self, behind: Reading) {
        self.count += 1;
        self.again = behind.used.as_ref().map_or(u64::MAX, |used| used.tick.saturating_add(AGAIN));
        (self.end, self.in_polls, self.used) = (behind.at, 0, behind.used);
    }

    /// Whether the core was taken from the thread in the gap up to `start`, where a call begins `behind` which the program is now, and it
    /// did nothing else there.
    pub(crate) fn lost_core_until(&self, start: u64, behind: &Reading) -> bool {
        let (Some(then), Some(now)) = (&self.used, &behind.used) else { return false };
        let elsewhere = self.in_polls.saturating_add(now.tick.saturating_sub(start));
        let without = now.without_core_since(then).saturating_sub(elsewhere);
        let gap = start.saturating_sub(self.end);
        without > gap / 2 && gap.saturating_sub(without) < USED.max(gap / SHARE)
    }
}

/// The moment behind a call; where cores are shared behind the reading of the thread's processor time, in which the core is often taken.
pub(crate) struct Reading {
    at: u64,
    used: Option<Used>,
}

impl Reading {
    /// Behind a call that has ended at `end`.
    #[cold]
    pub(crate) fn behind(end: u64) -> Self {
        let used = CORES_ARE_SHARED.load(Ordering::Relaxed).then(Used::now).flatten();
        Self { at: used.as_ref().map_or(end, |used| used.tick), used }
    }
}

/// How much a thread has used its core.
struct Used {
    tick: u64,
    /// `CLOCK_MONOTONIC`, ns.
    wall: u64,
    /// The thread's time on a core, ns.
    processor: u64,
    /// How often it gave up its core, to sleep or wait.
    waits: i64,
}

impl Used {
    /// `None`, from now on: the program's seccomp filter refuses it.
    fn now() -> Option<Self> {
        // SAFETY: structs of integers, for which zero is a value, and their addresses; the thread's own error number.
        let (usage, time) = unsafe {
            let (mut usage, mut time): (libc::rusage, libc::timespec) = std::mem::zeroed();
            let error = *libc::__errno_location();
            // The core is often taken at the end of a system call: what is read without one comes last.
            if libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) != 0
                || libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) != 0
            {
                *libc::__errno_location() = error;
                CORES_ARE_SHARED.store(false, Ordering::Relaxed);
                return None;
            }
            (usage, time)
        };
        Some(Self {
            processor: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
            waits: usage.ru_nvcsw,
            wall: clock::read(libc::CLOCK_MONOTONIC),
            tick: clock::now(),
        })
    }

    /// Ticks since `then` in which the thread was ready without a core; 0 if it has slept, too, which may be its work.
    fn without_core_since(&self, then: &Self) -> u64 {
        if self.waits != then.waits {
            return 0;
        }
        let wall = self.wall.saturating_sub(then.wall);
        let without = wall.saturating_sub(self.processor.saturating_sub(then.processor));
        let ticks = u128::from(self.tick.saturating_sub(then.tick));
        (u128::from(without) * ticks / u128::from(wall.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_names_the_ranks_of_each_node() {
        assert_eq!(["4", "16(x2),3", "", "x"].map(leading_number), [Some(4), Some(16), None, None]);
    }

    /// The reading at this tick, of which two are a nanosecond, of a thread that was `without` a core for so many ticks before and has waited so often.
    fn reading(tick: u64, without: u64, waits: i64) -> Reading {
        let wall = tick / 2;
        Reading { at: tick, used: Some(Used { tick, wall, processor: wall - without / 2, waits }) }
    }

    #[test]
    fn a_gap_without_a_core_is_none() {
        // A run with 30 000 ticks in further polls, a gap from 1 000 000 to 3 000 000, and a call of 10 000.
        let lost = |without: u64, waits: i64| {
            let mut polls = Polls::new(CallSlot(0), 890_000, reading(900_000, 5_000, 3));
            polls.add((910_000, 939_000));
            polls.add((999_000, 1_000_000));
            polls.lost_core_until(3_000_000, &reading(3_010_000, 5_000 + without, 3 + waits))
        };
        // All of the gap, with what may have been in the polls and the call; all but 0.1 ms of it; half of it.
        let all = 2_040_000;
        assert_eq!([all, all - USED + 2, all / 2].map(|without| lost(without, 0)), [true, true, false]);
        assert!(!lost(all - USED, 0), "it may have been computing");
        assert!(!lost(all, 1), "it has slept");
        assert!(!lost(0, 0), "it has computed");
        let alone = Polls::new(CallSlot(0), 0, Reading { at: 1, used: None });
        assert!(alone.takes(5_000) && !alone.takes(10_000));
        let none = Reading { at: 3_000_001, used: None };
        assert!(!alone.lost_core_until(3_000_000, &none), "without a reading a gap is computing");
    }

    /// Each of 500 polls yields the core; then the program computes for 0.5 ms.
    #[test]
    fn polls_without_a_core_do_not_take_computing_away() {
        let mut polls = Polls::new(CallSlot(0), 0, reading(24_000, 23_000, 0));
        let (mut now, mut without) = (24_000, 23_000);
        for _ in 1..500 {
            let start = now + 500;
            (now, without) = (start + 24_000, without + 23_000);
            match polls.takes(start) {
                true => polls.add((start, now)),
                false => polls.add_and_read(reading(now, without, 0)),
            }
        }
        assert_eq!((polls.count, polls.end), (500, now));
        let start = now + 1_200_000;
        assert!(!polls.lost_core_until(start, &reading(start + 24_000, without + 23_000, 0)));
        assert!(polls.lost_core_until(start, &reading(start + 24_000, without + 23_000 + 1_190_000, 0)));
    }
}
