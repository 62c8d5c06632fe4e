//! Where threads that advance partitions meet, and leave messages for each other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
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

/// Looks at the count of arrivals before a thread sleeps: some 50 µs, a few times what windows differ by. A thread that went on
/// looking would take the processor from the thread for which it waits, where there are more threads than processors.
const LOOKS: u32 = 2000;

impl<T> Exchange<T> {
    /// For so many partitions.
    pub fn new(parts: usize) -> Self {
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
        let Exchange { parts, arrived, left, falling_asleep, changed, .. } = self.exchange;
        let moments = &self.exchange.first[self.round % 2];
        moments[self.part].0.store(first.map_or(NEVER, |first| first.0), Ordering::Relaxed);
        self.round += 1;
        let all = self.round * parts;
        if arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == all {
            self.exchange.wake_others();
        }
        let must_wait = || arrived.0.load(Ordering::Acquire) < all && left.load(Ordering::Acquire) == 0;
        let mut looks = 0;
        while must_wait() && looks < LOOKS {
            looks += 1;
            std::hint::spin_loop();
        }
        if looks == LOOKS {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_thread_ends_the_rounds_of_all() {
        let exchange = Exchange::<u32>::new(3);
        let [mut first, mut second, third] = [0, 1, 2].map(|part| exchange.seat(part));
        std::thread::scope(|scope| {
            let waiting = [
                scope.spawn(move || first.meet(Some(Picos(7)))),
                scope.spawn(move || second.meet(Some(Picos(5)))),
            ];
            drop(third);
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), None);
            }
        });
    }

    #[test]
    fn letters_arrive_in_the_next_round() {
        let exchange = Exchange::new(2);
        let sums: Vec<u32> = std::thread::scope(|scope| {
            let run = |part: usize| {
                let mut seat = exchange.seat(part);
                scope.spawn(move || {
                    let mut sum = 0;
                    for round in 0..1000 {
                        seat.letters_to(1 - part).push(round);
                        assert_eq!(
                            seat.meet(Some(Picos(u64::from(round) + part as u64))),
                            Some(Picos(round.into()))
                        );
                        for letter in seat.letters_from(1 - part).drain(..) {
                            assert_eq!(letter, round);
                            sum += letter;
                        }
                    }
                    assert_eq!(seat.meet(None), None);
                    sum
                })
            };
            let threads = [run(0), run(1)];
            threads.map(|thread| thread.join().unwrap()).to_vec()
        });
        assert_eq!(sums, [499_500, 499_500]);
    }
}
