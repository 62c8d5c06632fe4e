//! Applies a function to many inputs on several cores.

use crate::session::Watch;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Applies `work` to each input on up to `jobs` threads (default: all cores), calls `done` with each result,
/// one at a time, and returns the results in the order of the inputs. `work` gets who watches the command.
pub fn map<I: Sync, O: Send>(
    inputs: &[I],
    jobs: Option<u16>,
    work: impl Fn(&I, &Watch) -> O + Sync,
    done: impl FnMut(usize, &O) + Send,
) -> Vec<O> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = jobs.map_or_else(cores, usize::from).clamp(1, inputs.len().max(1));
    let next = AtomicUsize::new(0);
    let results: Mutex<(Vec<Option<O>>, _)> = Mutex::new(((0..inputs.len()).map(|_| None).collect(), done));
    let watch = Watch::current();
    std::thread::scope(|scope| {
        let start = |_| {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(input) = inputs.get(at)
                {
                    watch.stop_if_cancelled();
                    let result = work(input, &watch);
                    // No thread panics while it holds the lock.
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    (results.1)(at, &result);
                    results.0[at] = Some(result);
                }
            })
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        for thread in threads {
            // Not the panic of the scope, which hides that of the thread.
            thread.join().unwrap_or_else(|payload| resume_unwind(payload));
        }
    });
    let (results, _) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_come_in_the_order_of_the_inputs() {
        for jobs in [Some(1), Some(3), Some(100), None] {
            let inputs: Vec<u64> = (0..57).collect();
            let mut told = Vec::new();
            let squares =
                super::map(&inputs, jobs, |n, _| n * n, |at, square| told.push((at as u64, *square)));
            assert_eq!(squares, inputs.iter().map(|n| n * n).collect::<Vec<_>>());
            told.sort_unstable();
            assert_eq!(told, inputs.iter().map(|&n| (n, n * n)).collect::<Vec<_>>());
        }
    }
}
