//! What several threads may only do one after the other, in the order of windows: each thread takes a window through all
//! stages, and passes through a gate where a stage goes on from the window before.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Lets windows to `T` in their order.
#[derive(Debug)]
pub(crate) struct Gate<T> {
    state: Mutex<State<T>>,
    moved: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// The window whose turn it is; [`CLOSED`]: of none ever again.
    next: usize,
    value: T,
}

const CLOSED: usize = usize::MAX;

impl<T> Gate<T> {
    /// Open for window 0.
    pub(crate) fn new(value: T) -> Self {
        Self { state: Mutex::new(State { next: 0, value }), moved: Condvar::new() }
    }

    /// Does `work` when all windows before `window` have passed. `None`: the gate was closed.
    pub(crate) fn pass<R>(&self, window: usize, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let waits = |state: &mut State<T>| state.next != window && state.next != CLOSED;
        let mut state = self.moved.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if state.next == CLOSED {
            return None;
        }
        let result = work(&mut state.value);
        state.next = window + 1;
        drop(state);
        self.moved.notify_all();
        Some(result)
    }

    /// Nobody passes any more.
    pub(crate) fn close(&self) {
        self.lock().next = CLOSED;
        self.moved.notify_all();
    }

    /// What all windows have passed.
    pub(crate) fn into_inner(self) -> T {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).value
    }

    /// Who panicked in `work` has closed the gate, or soon will: what is left there is of no use to anybody.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn windows_pass_in_their_order() {
        let (gate, next) = (Gate::new(Vec::new()), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let window = next.fetch_add(1, Ordering::Relaxed);
                        if window >= 1000 {
                            break;
                        }
                        assert_eq!(gate.pass(window, |passed| passed.push(window)), Some(()));
                    }
                });
            }
        });
        assert!(gate.into_inner().into_iter().eq(0..1000));
    }

    #[test]
    fn who_waits_at_a_gate_that_closes_goes() {
        let gate = Gate::new(());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| gate.pass(1, |()| ()));
            gate.close();
            assert_eq!(waits.join().ok(), Some(None));
        });
        assert_eq!(gate.pass(0, |()| ()), None);
    }
}
