//! Windows pass stations, and threads share the work there: each takes a window through all of them, so that the window stays in
//! its core's cache. What goes on from the window before is done in the order of windows; its state is small beside a window.

use crate::error::MixError;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::yield_now;

type Outcome = Result<(), MixError>;

/// A place where windows, of type `W`, are worked on.
pub(crate) enum Station<'a, W> {
    /// One after the other.
    Sequential(Mutex<Sequential<'a, W>>),
    /// All at once.
    Parallel(Parallel<'a, W>),
}

/// Is told the number of the window.
type Sequential<'a, W> = Box<dyn FnMut(usize, &mut W) -> Outcome + Send + 'a>;
type Parallel<'a, W> = Box<dyn Fn(&mut W) -> Outcome + Send + Sync + 'a>;

impl<'a, W> Station<'a, W> {
    /// Windows one after the other.
    pub(crate) fn sequential(work: impl FnMut(usize, &mut W) -> Outcome + Send + 'a) -> Self {
        Self::Sequential(Mutex::new(Box::new(work)))
    }

    /// Windows all at once.
    pub(crate) fn parallel(work: impl Fn(&mut W) -> Outcome + Send + Sync + 'a) -> Self {
        Self::Parallel(Box::new(work))
    }
}

/// At most so many threads take part: more would only wait for their turns, each with a window in memory.
pub(crate) const MOST: usize = 8;

/// Takes `count` windows through all stations with the threads of the pool, up to [`MOST`] of them. Each has a window of its own,
/// made by `window` and used over and over.
pub(crate) fn pass<W: Send>(
    stations: &[Station<'_, W>],
    window: impl Fn() -> W + Sync,
    count: usize,
) -> Outcome {
    let turns = stations.iter().map(|_| Turn::default()).collect();
    let work =
        Work { stations, turns, count, begun: AtomicUsize::new(0), failed: AtomicUsize::new(usize::MAX) };
    let outcomes = rayon::broadcast(|thread| match thread.index() < MOST {
        true => work.take_part(window()),
        false => Ok(()),
    });
    // The first error by window, whichever comes first by time.
    let failures = outcomes.into_iter().filter_map(Result::err);
    failures.min_by_key(|&(number, _)| number).map_or(Ok(()), |(_, error)| Err(error))
}

struct Work<'a, 'b, W> {
    stations: &'a [Station<'b, W>],
    /// Of each station.
    turns: Vec<Turn>,
    count: usize,
    /// How many windows were begun.
    begun: AtomicUsize,
    /// The first window that failed.
    failed: AtomicUsize,
}

/// Whose turn it is.
#[derive(Default)]
struct Turn {
    /// The number of the window.
    number: AtomicUsize,
    /// Held where `number` is told to those who sleep.
    asleep: Mutex<()>,
    changed: Condvar,
}

/// So often a thread looks whether its turn has come: at once, then letting others run in between, some milliseconds in all.
/// Then it sleeps: to be woken may take longer than the turn that it waits for.
const LOOKS: (usize, usize) = (200, 5000);

impl Turn {
    /// Waits for the turn of the window `number`; `false`: it will not come, because an earlier window failed.
    fn wait(&self, number: usize, failed: &AtomicUsize) -> bool {
        let has_come = || self.number.load(Ordering::Acquire) == number;
        for look in 0..LOOKS.1 {
            if has_come() {
                return true;
            }
            match look < LOOKS.0 {
                true => spin_loop(),
                false => yield_now(),
            }
        }
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        while !has_come() {
            if failed.load(Ordering::Acquire) < number {
                return false;
            }
            asleep = self.changed.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// It is the next one's turn.
    fn pass(&self) {
        self.number.fetch_add(1, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // Whoever has looked, and goes to sleep, holds this until it sleeps.
        drop(self.asleep.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl<W> Work<'_, '_, W> {
    /// What one thread does.
    fn take_part(&self, mut window: W) -> Result<(), (usize, MixError)> {
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

/// Of a thread at work on a window: should it fail or panic, later windows do not wait for it. Earlier ones come to their end, so that
/// it does not depend on chance which of several errors is told.
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

    /// Takes 500 windows through four stations with so many threads; the third may fail at one.
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
