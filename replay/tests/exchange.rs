//! Where the threads of a parallel simulator meet: with threads of the system, and all orders of a few steps with a model checker.

/// The source with the types of the model checker.
#[path = "../src/exchange.rs"]
#[allow(dead_code, unreachable_pub, reason = "not all of it is used here")]
mod exchange;

/// In place of the crate's own `sync`.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use replay::{Exchange, Picos};
use std::sync::Arc;

/// Runs `first` and `second`, each with the seat of its thread, in all orders of their steps that switch between the threads at
/// most so often against their will. A deadlock, as by a wake-up that is lost, fails.
fn in_all_orders(
    spins: u32,
    switches: usize,
    first: fn(exchange::Seat<'_, u32>),
    second: fn(exchange::Seat<'_, u32>),
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(move || {
        let exchange = Arc::new(exchange::Exchange::with_spins(2, spins));
        let other = Arc::clone(&exchange);
        let thread = loom::thread::spawn(move || first(other.seat(0)));
        second(exchange.seat(1));
        thread.join().unwrap();
    });
}

/// Every letter of a round is there after its meeting, none of the next, and both threads learn the first moment.
fn rounds(mut seat: exchange::Seat<'_, u32>) {
    let (part, other) = (seat.part(), 1 - seat.part());
    for round in 0..2 {
        seat.letters_to(other).push(10 * round + part as u32);
        let first = u64::from(round) * 10;
        assert_eq!(seat.meet(Some(Picos(first + part as u64))), Some(Picos(first)));
        assert_eq!(seat.letters_from(other).drain(..).collect::<Vec<_>>(), [10 * round + other as u32]);
    }
}

#[test]
fn rounds_are_complete_in_all_orders() {
    for spins in [0, 1] {
        in_all_orders(spins, 3, rounds, rounds);
    }
}

#[test]
fn the_end_of_a_thread_ends_a_meeting_in_all_orders() {
    for spins in [0, 1] {
        in_all_orders(spins, 3, |mut seat| assert_eq!(seat.meet(Some(Picos(7))), None), |seat| drop(seat));
    }
}

/// The last thread wakes the others when it comes, not only at its next meeting or its end.
#[test]
fn the_last_thread_that_comes_ends_a_meeting_in_all_orders() {
    for spins in [0, 1] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let exchange = Arc::new(exchange::Exchange::<u32>::with_spins(2, spins));
            let other = Arc::clone(&exchange);
            let thread = loom::thread::spawn(move || other.seat(0).meet(Some(Picos(1))));
            let mut seat = exchange.seat(1);
            assert_eq!(seat.meet(Some(Picos(2))), Some(Picos(1)));
            assert_eq!(thread.join().unwrap(), Some(Picos(1)));
            drop(seat);
        });
    }
}

#[test]
fn letters_reach_the_partition_that_they_are_for() {
    const PARTS: usize = 3;
    let exchange = Exchange::new(PARTS);
    std::thread::scope(|scope| {
        for part in 0..PARTS {
            let mut seat = exchange.seat(part);
            scope.spawn(move || {
                assert_eq!((seat.part(), seat.parts()), (part, PARTS));
                for round in 0..10 {
                    (0..PARTS).for_each(|to| seat.letters_to(to).push((round, part, to)));
                    assert_eq!(seat.meet(Some(Picos(round))), Some(Picos(round)));
                    for from in 0..PARTS {
                        let letters: Vec<_> = seat.letters_from(from).drain(..).collect();
                        assert_eq!(letters, [(round, from, part)]);
                    }
                }
            });
        }
    });
}

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
