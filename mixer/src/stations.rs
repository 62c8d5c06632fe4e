//! A pipeline of stations. Each thread takes one window through all stations, so that the window stays in its core's
//! cache. Sequential stations take the windows in order; their state is small compared with a window.

use crate::error::MixError;
#[cfg(test)]
use shuttle::sync;
#[cfg(not(test))]
use std::sync;
use sync::atomic::{AtomicUsize, Ordering};
use sync::{Condvar, Mutex, MutexGuard, PoisonError};

type Outcome = Result<(), MixError>;

/// A step of work on windows of type `W`.
#[cfg_attr(
    test,
    expect(clippy::large_enum_variant, reason = "shuttle's mutex is larger than the standard library's")
)]
pub(crate) enum Station<'a, W> {
    /// One window at a time, in order.
    Sequential(Mutex<Sequential<'a, W>>, Condvar),
    /// Any number of windows at once.
    Parallel(Parallel<'a, W>),
}

/// A sequential station, which waits for the window `next`.
pub(crate) struct Sequential<'a, W> {
    next: usize,
    work: SequentialWork<'a, W>,
}

/// The first argument is the index of the window.
type SequentialWork<'a, W> = Box<dyn FnMut(usize, &mut W) -> Outcome + Send + 'a>;
type Parallel<'a, W> = Box<dyn Fn(&mut W) -> Outcome + Send + Sync + 'a>;

impl<'a, W> Station<'a, W> {
    /// A station that takes one window at a time, in order.
    pub(crate) fn sequential(work: impl FnMut(usize, &mut W) -> Outcome + Send + 'a) -> Self {
        Self::Sequential(Mutex::new(Sequential { next: 0, work: Box::new(work) }), Condvar::new())
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
    let line = Line::new(stations, count);
    first_error(rayon::broadcast(|thread| match thread.index() < MOST {
        true => line.run_thread(window()),
        false => Ok(()),
    }))
}

/// The error of the first window is returned, not the earliest.
fn first_error(outcomes: Vec<Result<(), (usize, MixError)>>) -> Outcome {
    let failures = outcomes.into_iter().filter_map(Result::err);
    failures.min_by_key(|&(number, _)| number).map_or(Ok(()), |(_, error)| Err(error))
}

/// The stations, and how far the windows are.
struct Line<'a, 'b, W> {
    stations: &'a [Station<'b, W>],
    count: usize,
    /// Number of windows begun.
    begun: AtomicUsize,
    /// The first window that failed.
    failed: AtomicUsize,
}

impl<'a, 'b, W> Line<'a, 'b, W> {
    fn new(stations: &'a [Station<'b, W>], count: usize) -> Self {
        Self { stations, count, begun: AtomicUsize::new(0), failed: AtomicUsize::new(usize::MAX) }
    }

    /// The work of one thread.
    fn run_thread(&self, mut window: W) -> Result<(), (usize, MixError)> {
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if number >= self.count || number > self.failed.load(Ordering::Acquire) {
                return Ok(());
            }
            let guard = Guard { line: self, number };
            for station in self.stations {
                match station {
                    Station::Parallel(work) => work(&mut window).map_err(|error| (number, error))?,
                    Station::Sequential(state, changed) => {
                        let mut state = lock(state);
                        while state.next != number {
                            // An earlier window failed, and does not come.
                            if self.failed.load(Ordering::Acquire) < number {
                                return Ok(());
                            }
                            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                        }
                        (state.work)(number, &mut window).map_err(|error| (number, error))?;
                        state.next += 1;
                        drop(state);
                        changed.notify_all();
                    }
                }
            }
            std::mem::forget(guard);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks the window as failed if its thread returns an error or panics, so that later windows stop. Earlier windows
/// continue, so the error that is returned does not depend on timing.
struct Guard<'a, 'b, 'c, W> {
    line: &'c Line<'a, 'b, W>,
    number: usize,
}

impl<W> Drop for Guard<'_, '_, '_, W> {
    fn drop(&mut self) {
        self.line.failed.fetch_min(self.number, Ordering::AcqRel);
        for station in self.line.stations {
            if let Station::Sequential(state, changed) = station {
                // A thread that is about to sleep holds the lock until it sleeps.
                drop(lock(state));
                changed.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes windows through `stations`, with threads in random interleavings.
    fn pass_with<W: Send>(
        threads: usize,
        stations: &[Station<'_, W>],
        window: fn() -> W,
        count: usize,
    ) -> Outcome {
        let line = Line::new(stations, count);
        first_error(shuttle::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| line.run_thread(window()))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        }))
    }

    /// Takes 6 windows through four stations; the third fails at window `fails`.
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
                shuttle::thread::yield_now();
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
        let outcome = pass_with(threads, &stations, Vec::new, 6);
        drop(stations);
        (last, outcome)
    }

    #[test]
    fn windows_pass_each_station_in_their_order() {
        for threads in 1..4 {
            let pass = move || {
                let (passed, outcome) = take(threads, None);
                assert!(outcome.is_ok() && passed.into_iter().eq(0..6));
            };
            shuttle::check_random(pass, 300);
        }
    }

    #[test]
    fn a_failure_ends_all_but_the_windows_before() {
        for threads in 1..4 {
            let pass = move || {
                let (passed, outcome) = take(threads, Some(3));
                assert!(matches!(outcome, Err(MixError::TooMany("tests"))));
                assert!(passed.into_iter().eq(0..3));
            };
            shuttle::check_random(pass, 300);
        }
    }

    #[test]
    fn the_first_window_that_fails_tells_why() {
        let pass = || {
            let stations = [
                Station::sequential(|number, window: &mut usize| {
                    *window = number;
                    Ok(())
                }),
                // Later windows fail sooner.
                Station::parallel(|window: &mut usize| match *window {
                    3.. => Err(MixError::TooMany("late windows")),
                    _ => Ok(()),
                }),
                Station::sequential(|number, _| match number == 2 {
                    true => Err(MixError::TooMany("first windows")),
                    false => Ok(()),
                }),
            ];
            let outcome = pass_with(3, &stations, || 0, 6);
            assert!(matches!(outcome, Err(MixError::TooMany("first windows"))), "{outcome:?}");
        };
        shuttle::check_random(pass, 500);
    }
}
