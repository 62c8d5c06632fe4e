//! A run of failed polls (`MPI_Test`, `MPI_Iprobe` and the like), which becomes one record.
//!
//! Polls with short gaps between them are one run. A longer gap is computing beside communication, unless the thread had no core in
//! it. Where a host has more ranks than cores that is frequent, and only there the thread's processor time is read, between runs.

use crate::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::capture::event::CallSlot;

/// Polls with fewer ticks between them are one run: 2–4 µs at 2–4 GHz.
const GAP: u64 = 1 << 13;

/// A longer gap is none if the thread had its core for less than this, or for less than 1 / [`SHARE`] of it: losing the core and getting
/// it back takes some µs, or some tens of them, of the thread's time.
const USED: u64 = 4 * GAP;
const SHARE: u64 = 16;

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
    /// Ticks in polls since `used` was read in which the core may have been taken from the thread.
    long: u64,
    /// The thread's processor time behind the first poll or that behind the latest long gap, where cores are shared.
    used: Option<Used>,
}

impl Polls {
    /// A run that begins with a poll, `behind` which the program is now.
    pub(crate) fn new(call: CallSlot, start: u64, behind: Reading) -> Self {
        let Reading { at: end, used } = behind;
        Self { call, count: 1, start, end, long: 0, used }
    }

    /// Whether a call that begins at `start` follows at once.
    #[inline(always)]
    pub(crate) fn goes_on(&self, start: u64) -> bool {
        start.wrapping_sub(self.end) < GAP
    }

    /// Adds a poll.
    #[inline(always)]
    pub(crate) fn add(&mut self, (start, end): (u64, u64)) {
        self.count += 1;
        self.end = end;
        self.long += end.saturating_sub(start).saturating_sub(GAP);
    }

    /// Adds a poll behind a gap without a core, which has just ended.
    pub(crate) fn resume(&mut self, behind: Reading) {
        self.count += 1;
        (self.end, self.long, self.used) = (behind.at, 0, behind.used);
    }

    /// Whether the core was taken from the thread for all of the gap up to `start`, where a call begins that has just ended.
    pub(crate) fn lost_core_until(&self, start: u64, behind: &Reading) -> bool {
        let (Some(then), Some(now)) = (&self.used, &behind.used) else { return false };
        // What may be without a core outside of the gap.
        let long = self.long.saturating_add(now.tick.saturating_sub(start));
        let without = now.without_core_since(then).saturating_sub(long);
        let gap = start.saturating_sub(self.end);
        gap.saturating_sub(without) < USED.max(gap / SHARE)
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
        let used = CORES_ARE_SHARED.load(Ordering::Relaxed).then(Used::now);
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
    fn now() -> Self {
        // SAFETY: zero is a value of this struct of integers, and it is written by the call.
        let waits = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage.ru_nvcsw
        };
        // The core is often taken at the end of a system call: of those that are read without one, the later ones.
        let processor = clock::read(libc::CLOCK_THREAD_CPUTIME_ID);
        Self { processor, waits, wall: clock::read(libc::CLOCK_MONOTONIC), tick: clock::now() }
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

    #[test]
    fn a_gap_without_a_core_is_none() {
        // A run up to 1 000 000 ticks, with one poll that takes 20 000 more than usual, and a call from 3 000 000 to 3 010 000.
        let lost = |without: u64, waits: i64| {
            let used = Used { tick: 100_000, wall: 50_000, processor: 7_000, waits: 3 };
            let mut polls = Polls::new(CallSlot(0), 90_000, Reading { at: 100_000, used: Some(used) });
            polls.add((110_000, 130_000 + GAP));
            polls.add((999_000, 1_000_000));
            // Two ticks are a nanosecond.
            let wall = (3_010_000 - 100_000) / 2;
            let now = Used {
                tick: 3_010_000,
                wall: 50_000 + wall,
                processor: 7_000 + wall - without / 2,
                waits: 3 + waits,
            };
            polls.lost_core_until(3_000_000, &Reading { at: 3_010_000, used: Some(now) })
        };
        // All of the gap, with what may have been in the long poll and the call; nearly all but a sixteenth of it; half of it.
        let all = 2_030_000;
        assert_eq!([all, all - 124_000, all / 2].map(|without| lost(without, 0)), [true, true, false]);
        assert!(!lost(all - 125_000, 0), "it may have been computing");
        assert!(!lost(all, 1), "it has slept");
        assert!(!lost(0, 0), "it has computed");
        let alone = Polls::new(CallSlot(0), 0, Reading { at: 1, used: None });
        assert!(
            !alone.lost_core_until(3_000_000, &Reading { at: 3_000_001, used: None }),
            "nobody shares its core"
        );
    }
}
