//! Where threads that advance partitions meet, and leave messages for each other.

use crate::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use std::sync::PoisonError;
use vef_format::units::Picos;

/// Joins the threads of a parallel simulator, one a partition: in rounds, each leaves letters of type `T` for the others, and all learn
/// the first moment at which any of them has something to do.
///
/// `examples/parallel.rs` shows the use. The end of a thread, also by an error or a panic, ends the rounds of all.
#[derive(Debug)]
pub struct Exchange<T> {
    parts: usize,
    /// By sender and receiver; twice, as all that follows: while one thread takes the letters of a round, another may write those of the next.
    letters: [Vec<Mutex<Vec<T>>>; 2],
    /// The first moment at which each thread has something to do.
    first: [Vec<Alone<AtomicU64>>; 2],
    /// Threads that have come, over all rounds.
    arrived: Alone<AtomicUsize>,
    left: AtomicUsize,
    /// Held by a thread between its last look at the two counts and its sleep.
    falling_asleep: Mutex<()>,
    changed: Condvar,
    /// Looks at the count of arrivals before a thread sleeps.
    spins: u32,
}

/// The place of one thread in an [`Exchange`].
#[derive(Debug)]
#[must_use = "the rounds end when a seat is dropped"]
pub struct Seat<'a, T> {
    exchange: &'a Exchange<T>,
    part: usize,
    round: usize,
}

/// A value in cache lines of its own, so that who writes it does not slow down who reads its neighbours.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// Nothing to do.
const NEVER: u64 = u64::MAX;

/// Looks at the count of arrivals before a thread sleeps: some 50 µs, in which most windows of the other threads end. A thread that went on
/// looking would take the processor from the thread for which it waits, where there are more threads than processors.
const SPINS: u32 = 2000;

impl<T> Exchange<T> {
    /// For so many partitions.
    pub fn new(parts: usize) -> Self {
        Self::with_spins(parts, SPINS)
    }

    pub(crate) fn with_spins(parts: usize, spins: u32) -> Self {
        let letters = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let first = || (0..parts).map(|_| Alone::default()).collect();
        Self {
            parts,
            letters: [letters(), letters()],
            first: [first(), first()],
            arrived: Alone::default(),
            left: AtomicUsize::new(0),
            falling_asleep: Mutex::default(),
            changed: Condvar::new(),
            spins,
        }
    }

    /// The seat of a partition; every partition must have one before rounds can end.
    pub fn seat(&self, part: usize) -> Seat<'_, T> {
        Seat { exchange: self, part, round: 0 }
    }

    fn letters(&self, round: usize, from: usize, to: usize) -> MutexGuard<'_, Vec<T>> {
        self.letters[round % 2][from * self.parts + to].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads that sleep, after a change of what they wait for.
    fn wake_others(&self) {
        drop(self.falling_asleep.lock());
        self.changed.notify_all();
    }
}

impl<T> Seat<'_, T> {
    /// Its partition.
    pub fn part(&self) -> usize {
        self.part
    }

    /// Number of partitions.
    pub fn parts(&self) -> usize {
        self.exchange.parts
    }

    /// What this thread leaves for another one, to be taken after the next meeting.
    pub fn letters_to(&self, part: usize) -> MutexGuard<'_, Vec<T>> {
        self.exchange.letters(self.round, self.part, part)
    }

    /// What another thread has left for this one before the last meeting; it is to be drained.
    pub fn letters_from(&self, part: usize) -> MutexGuard<'_, Vec<T>> {
        self.exchange.letters(self.round.wrapping_sub(1), part, self.part)
    }

    /// Waits for all threads; returns the first moment at which any of them has something to do. `first` is that of this thread, and
    /// of the letters that it has written. `None` if there is none, or if a thread has ended.
    pub fn meet(&mut self, first: Option<Picos>) -> Option<Picos> {
        let Exchange { parts, arrived, left, falling_asleep, changed, spins, .. } = self.exchange;
        let moments = &self.exchange.first[self.round % 2];
        moments[self.part].0.store(first.map_or(NEVER, |first| first.0), Ordering::Relaxed);
        self.round += 1;
        let all = self.round * parts;
        if arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == all {
            self.exchange.wake_others();
        }
        let must_wait = || arrived.0.load(Ordering::Acquire) < all && left.load(Ordering::Acquire) == 0;
        let mut spun = 0;
        while spun < *spins && must_wait() {
            spun += 1;
            std::hint::spin_loop();
        }
        if spun == *spins {
            let mut awake = falling_asleep.lock().unwrap_or_else(PoisonError::into_inner);
            while must_wait() {
                awake = changed.wait(awake).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if arrived.0.load(Ordering::Acquire) < all {
            return None;
        }
        let earliest = moments.iter().map(|first| first.0.load(Ordering::Relaxed)).min();
        earliest.filter(|&earliest| earliest != NEVER).map(Picos)
    }
}

impl<T> Drop for Seat<'_, T> {
    fn drop(&mut self) {
        self.exchange.left.fetch_add(1, Ordering::AcqRel);
        self.exchange.wake_others();
    }
}
