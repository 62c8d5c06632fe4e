//! A pipeline of stations. Each thread takes one window through all stations, so that the window stays in its core's
//! cache. Sequential stations take the windows in order; their state is small compared with a window.

use crate::error::MixError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

type Outcome = Result<(), MixError>;

/// A step of work on windows of type `W`.
pub(crate) enum Station<'a, W> {
    /// One window at a time, in order.
    Sequential(Mutex<Sequential<'a, W>>),
    /// Any number of windows at once.
    Parallel(Parallel<'a, W>),
}

/// The first argument is the index of the window.
type Sequential<'a, W> = Box<dyn FnMut(usize, &mut W) -> Outcome + Send + 'a>;
type Parallel<'a, W> = Box<dyn Fn(&mut W) -> Outcome + Send + Sync + 'a>;

impl<'a, W> Station<'a, W> {
    /// A station that takes one window at a time, in order.
    pub(crate) fn sequential(work: impl FnMut(usize, &mut W) -> Outcome + Send + 'a) -> Self {
        Self::Sequential(Mutex::new(Box::new(work)))
    }

    /// A station that takes windows in parallel.
    pub(crate) fn parallel(work: impl Fn(&mut W) -> Outcome + Send + Sync + 'a) -> Self {
        Self::Parallel(Box::new(work))
    }
}

/// Maximum number of threads: more would only wait for the sequential stations, each with a window in memory.
pub(crate) const MOST: usize = 8;

/// Takes `count` windows through all stations with the threads of the pool, at most [`MOST`]. Each thread reuses one
/// window made by `window`.
pub(crate) fn pass<W: Send>(
    stations: &[Station<'_, W>],
    window: impl Fn() -> W + Sync,
    count: usize,
) -> Outcome {
    let turns = stations.iter().map(|_| Turn::default()).collect();
    let work =
        Work { stations, turns, count, begun: AtomicUsize::new(0), failed: AtomicUsize::new(usize::MAX) };
    let outcomes = rayon::broadcast(|thread| match thread.index() < MOST {
        true => work.run_thread(window()),
        false => Ok(()),
    });
    // The error of the first window is returned, not the earliest.
    let failures = outcomes.into_iter().filter_map(Result::err);
    failures.min_by_key(|&(number, _)| number).map_or(Ok(()), |(_, error)| Err(error))
}

struct Work<'a, 'b, W> {
    stations: &'a [Station<'b, W>],
    /// One for each station.
    turns: Vec<Turn>,
    count: usize,
    /// Number of windows begun.
    begun: AtomicUsize,
    /// The first window that failed.
    failed: AtomicUsize,
}

/// The next window of a station.
#[derive(Default)]
struct Turn {
    number: Mutex<usize>,
    changed: Condvar,
}

impl Turn {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of window `number`; `false`: an earlier window failed.
    fn wait(&self, number: usize, failed: &AtomicUsize) -> bool {
        let mut turn = self.lock();
        while *turn != number {
            if failed.load(Ordering::Acquire) < number {
                return false;
            }
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Passes the turn to the next window.
    fn pass(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Wakes all threads that wait.
    fn wake(&self) {
        // A thread that is about to sleep holds the lock until it sleeps.
        drop(self.lock());
        self.changed.notify_all();
    }
}

impl<W> Work<'_, '_, W> {
    /// The work of one thread.
    fn run_thread(&self, mut window: W) -> Result<(), (usize, MixError)> {
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if number >= self.count || number > self.failed.load(Ordering::Acquire) {
                return Ok(());
            }
            let guard = Guard { work: self, number };
            for (station, turn) in self.stations.iter().zip(&self.turns) {
                match station {
                    Station::Parallel(work) => work(&mut window).map_err(|error| (number, error))?,
                    Station::Sequential(work) => {
                        if !turn.wait(number, &self.failed) {
                            return Ok(());
                        }
                        let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
                        work(number, &mut window).map_err(|error| (number, error))?;
                        drop(work);
                        turn.pass();
                    }
                }
            }
            std::mem::forget(guard);
        }
    }
}

/// Marks the window as failed if its thread returns an error or panics, so that later windows stop. Earlier windows
/// continue, so the error that is returned does not depend on timing.
struct Guard<'a, 'b, 'c, W> {
    work: &'c Work<'a, 'b, W>,
    number: usize,
}

impl<W> Drop for Guard<'_, '_, '_, W> {
    fn drop(&mut self) {
        self.work.failed.fetch_min(self.number, Ordering::AcqRel);
        self.work.turns.iter().for_each(Turn::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 500 windows through four stations; the third fails at window `fails`.
    fn take(threads: usize, fails: Option<usize>) -> (Vec<usize>, Outcome) {
        let (mut first, mut last) = (0, Vec::new());
        let stations = [
            Station::sequential(|number, window: &mut Vec<usize>| {
                assert_eq!(number, first);
                first += 1;
                window.clear();
                window.push(number);
                Ok(())
            }),
            Station::parallel(|window: &mut Vec<usize>| {
                window.push(7);
                Ok(())
            }),
            Station::sequential(|number, _| match Some(number) == fails {
                true => Err(MixError::TooMany("tests")),
                false => Ok(()),
            }),
            Station::sequential(|number, window: &mut Vec<usize>| {
                assert_eq!(*window, [number, 7]);
                last.push(number);
                Ok(())
            }),
        ];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let outcome = pool.install(|| pass(&stations, Vec::new, 500));
        drop(stations);
        (last, outcome)
    }

    #[test]
    fn windows_pass_each_station_in_their_order() {
        for threads in 1..5 {
            let (passed, outcome) = take(threads, None);
            assert!(outcome.is_ok() && passed.into_iter().eq(0..500));
        }
    }

    #[test]
    fn a_failure_ends_all() {
        for threads in [1, 3] {
            let (passed, outcome) = take(threads, Some(200));
            assert!(matches!(outcome, Err(MixError::TooMany("tests"))));
            assert!(passed.len() <= 200 && passed.is_sorted());
        }
    }

    #[test]
    fn the_first_window_that_fails_tells_why() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for round in 0..200 {
            let stations = [
                Station::sequential(|number, window: &mut usize| {
                    *window = number;
                    Ok(())
                }),
                // Later windows fail sooner.
                Station::parallel(|window: &mut usize| match *window {
                    number if number > 20 + round % 7 => Err(MixError::TooMany("late windows")),
                    _ => Ok(()),
                }),
                Station::sequential(|number, _| match number == 20 {
                    true => Err(MixError::TooMany("first windows")),
                    false => Ok(()),
                }),
            ];
            let outcome = pool.install(|| pass(&stations, || 0, 100));
            assert!(matches!(outcome, Err(MixError::TooMany("first windows"))), "{outcome:?}");
        }
    }
}
