//! Windows pass stations, and threads share the work there. What goes on from the window before is done in the order of
//! windows, by one thread if it has much at hand for that, which then stays in its core's cache; all else is done by
//! whichever thread is free.

use crate::error::MixError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

type Outcome = Result<(), MixError>;

/// A place where windows, of type `W`, are worked on.
pub(crate) enum Station<'a, W> {
    /// One after the other; all by that thread (modulo their number), if one is named.
    InOrder { work: Mutex<InOrder<'a, W>>, thread: Option<usize> },
    /// All at once.
    Anyhow(Anyhow<'a, W>),
}

/// Is told the number of the window.
type InOrder<'a, W> = Box<dyn FnMut(usize, &mut W) -> Outcome + Send + 'a>;
type Anyhow<'a, W> = Box<dyn Fn(&mut W) -> Outcome + Send + Sync + 'a>;

impl<'a, W> Station<'a, W> {
    /// Windows one after the other, all by `thread` (modulo their number).
    pub(crate) fn of_thread(thread: usize, work: impl FnMut(usize, &mut W) -> Outcome + Send + 'a) -> Self {
        Self::InOrder { work: Mutex::new(Box::new(work)), thread: Some(thread) }
    }

    /// Windows one after the other.
    pub(crate) fn in_order(work: impl FnMut(usize, &mut W) -> Outcome + Send + 'a) -> Self {
        Self::InOrder { work: Mutex::new(Box::new(work)), thread: None }
    }

    /// Windows all at once.
    pub(crate) fn anyhow(work: impl Fn(&mut W) -> Outcome + Send + Sync + 'a) -> Self {
        Self::Anyhow(Box::new(work))
    }

    fn work(&self, number: usize, window: &mut W) -> Outcome {
        match self {
            Self::InOrder { work, .. } => {
                (work.lock().unwrap_or_else(PoisonError::into_inner))(number, window)
            }
            Self::Anyhow(work) => work(window),
        }
    }
}

/// Takes `count` windows through all stations, the first of which has an order, with all threads of the pool; as many are under
/// way as there are `windows`, which are used over and over.
pub(crate) fn pass<W: Send>(stations: &[Station<'_, W>], windows: Vec<W>, count: usize) -> Outcome {
    let threads = rayon::current_num_threads();
    let queue = |station: &Station<'_, W>| match station {
        Station::InOrder { thread, .. } => Queue {
            turn: Some(0),
            thread: thread.map(|thread| thread % threads),
            busy: false,
            waiting: Vec::new(),
        },
        Station::Anyhow(_) => Queue { turn: None, thread: None, busy: false, waiting: Vec::new() },
    };
    let queues = stations.iter().map(queue).collect();
    let board = Mutex::new(Board { queues, idle: windows, left: count, failure: None, closed: false });
    let work = Work { stations, count, board, changed: Condvar::new() };
    rayon::broadcast(|thread| work.take_part(thread.index()));
    let board = work.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    board.failure.map_or(Ok(()), Err)
}

struct Work<'a, 'b, W> {
    stations: &'a [Station<'b, W>],
    count: usize,
    board: Mutex<Board<W>>,
    changed: Condvar,
}

/// Where every window is.
struct Board<W> {
    queues: Vec<Queue<W>>,
    /// Windows that are not under way.
    idle: Vec<W>,
    /// How many windows have not come through yet.
    left: usize,
    failure: Option<MixError>,
    /// Nothing goes on.
    closed: bool,
}

/// What is in front of a station.
struct Queue<W> {
    /// The number of the window whose turn it is, or will be if one is there now; `None`: there is no order.
    turn: Option<usize>,
    busy: bool,
    /// Who alone works there.
    thread: Option<usize>,
    /// Windows and their numbers, in no order.
    waiting: Vec<(usize, W)>,
}

impl<W> Board<W> {
    /// A window that may go on with `thread`: at which station, its number, itself.
    fn find(&mut self, thread: usize, count: usize) -> Option<(usize, usize, W)> {
        // The last stations first: what is nearly done makes room.
        for (at, queue) in self.queues.iter_mut().enumerate().rev() {
            if queue.busy || queue.thread.is_some_and(|other| other != thread) {
                continue;
            }
            let found = match queue.turn {
                Some(number) if at == 0 && number < count => self.idle.pop().map(|window| (number, window)),
                turn => {
                    let place = queue
                        .waiting
                        .iter()
                        .position(|&(waiting, _)| turn.is_none_or(|turn| turn == waiting));
                    place.map(|place| queue.waiting.swap_remove(place))
                }
            };
            if let Some((number, window)) = found {
                queue.busy = queue.turn.is_some();
                return Some((at, number, window));
            }
        }
        None
    }

    /// The window has gone through the station `at`.
    fn passed(&mut self, at: usize, number: usize, window: W) {
        let queue = &mut self.queues[at];
        queue.busy = false;
        queue.turn = queue.turn.map(|_| number + 1);
        match self.queues.get_mut(at + 1) {
            Some(queue) => queue.waiting.push((number, window)),
            None => {
                self.left -= 1;
                self.idle.push(window);
            }
        }
    }
}

impl<W> Work<'_, '_, W> {
    /// What one thread does.
    fn take_part(&self, thread: usize) {
        let _guard = Guard(self);
        let mut board = self.board();
        while !board.closed && board.left > 0 {
            let Some((at, number, mut window)) = board.find(thread, self.count) else {
                board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(board);
            let outcome = self.stations[at].work(number, &mut window);
            board = self.board();
            match outcome {
                Ok(()) => board.passed(at, number, window),
                Err(error) => {
                    board.failure.get_or_insert(error);
                    board.closed = true;
                }
            }
            self.changed.notify_all();
        }
    }

    /// A thread that panicked has closed it, or soon will.
    fn board(&self) -> MutexGuard<'_, Board<W>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of a thread at work: should it panic, the others do not wait for it.
struct Guard<'a, 'b, 'c, W>(&'c Work<'a, 'b, W>);

impl<W> Drop for Guard<'_, '_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.board().closed = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 500 windows through four stations with so many threads and windows; the third may fail at one.
    fn take(threads: usize, windows: usize, fails: Option<usize>) -> (Vec<usize>, Outcome) {
        let (mut first, mut last) = (0, Vec::new());
        let stations = [
            Station::of_thread(0, |number, window: &mut Vec<usize>| {
                assert_eq!(number, first);
                first += 1;
                window.clear();
                window.push(number);
                Ok(())
            }),
            Station::anyhow(|window: &mut Vec<usize>| {
                window.push(7);
                Ok(())
            }),
            Station::of_thread(3, |number, _| match Some(number) == fails {
                true => Err(MixError::TooMany("tests")),
                false => Ok(()),
            }),
            Station::in_order(|number, window: &mut Vec<usize>| {
                assert_eq!(*window, [number, 7]);
                last.push(number);
                Ok(())
            }),
        ];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let outcome = pool.install(|| pass(&stations, vec![Vec::new(); windows], 500));
        drop(stations);
        (last, outcome)
    }

    #[test]
    fn windows_pass_each_station_in_their_order() {
        for (threads, windows) in [(1, 1), (2, 4), (4, 2), (3, 9)] {
            let (passed, outcome) = take(threads, windows, None);
            assert!(outcome.is_ok() && passed.into_iter().eq(0..500));
        }
    }

    #[test]
    fn a_failure_ends_all() {
        for threads in [1, 3] {
            let (passed, outcome) = take(threads, 4, Some(200));
            assert!(matches!(outcome, Err(MixError::TooMany("tests"))));
            assert!(passed.len() <= 200 && passed.is_sorted());
        }
    }
}
