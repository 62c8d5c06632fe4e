//! The commands of `vef`, in a thread of their own: the interpreter stays free, Ctrl-C ends them, progress is reported.

use crate::errors;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use vef_cli::embedded::{self, Cancelled, Watcher};

/// How often signals are looked at, and progress is reported.
const PERIOD: Duration = Duration::from_millis(50);

/// Like that of a program's first thread.
const STACK: usize = 8 << 20;

/// `done` of `total` units of a phase.
type Progress = (&'static str, u64, Option<u64>);

/// What the command and the thread that waits for it share.
#[derive(Default)]
struct Shared {
    progress: Mutex<Option<Progress>>,
    cancelled: AtomicBool,
}

impl Watcher for Shared {
    fn progress(&self, phase: &'static str, done: u64, total: Option<u64>) {
        // Who waits looks at it every now and then; a value that is missed does not matter.
        if let Ok(mut progress) = self.progress.try_lock() {
            *progress = Some((phase, done, total));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Runs the command line `words`, without `vef`. Returns whether it would exit with 0, its result, its remarks, and its exception, if any.
///
/// `progress(done, total, phase)` is called every 50 ms while there is progress; an exception from it, or Ctrl-C, ends the command.
#[pyfunction]
#[pyo3(signature = (words, progress=None))]
pub(crate) fn execute(
    py: Python<'_>,
    words: Vec<OsString>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(bool, String, Vec<String>, Option<PyErr>)> {
    let shared = Arc::new(Shared::default());
    let (done, mut is_done) = channel::<()>();
    let watcher = shared.clone();
    let words = std::iter::once(OsString::from("vef")).chain(words).collect();
    let worker = thread::Builder::new().name("vef".into()).stack_size(STACK).spawn(move || {
        // Dropped also when the command unwinds.
        let _done = done;
        let (ended, printed) = embedded::execute(words, watcher);
        (ended.map_err(|error| errors::exception(&*error)), printed)
    })?;
    let mut last: Option<Progress> = None;
    let mut interrupted = None;
    loop {
        // Nothing is sent: the channel closes when the thread ends.
        let waited;
        (waited, is_done) = py.detach(move || (is_done.recv_timeout(PERIOD), is_done));
        if waited != Err(RecvTimeoutError::Timeout) {
            break;
        }
        let mut look = || -> PyResult<()> {
            py.check_signals()?;
            let now = *shared.progress.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(progress), Some((phase, done, total)), true) = (&progress, now, now != last) {
                last = now;
                progress.call1((done, total, phase))?;
            }
            Ok(())
        };
        if let Err(error) = look() {
            shared.cancelled.store(true, Ordering::Relaxed);
            interrupted = Some(error);
            break;
        }
    }
    let ended = py.detach(|| worker.join());
    match (interrupted, ended) {
        (Some(error), _) => Err(error),
        (None, Ok((Ok(success), printed))) => Ok((success, printed.result, printed.remarks, None)),
        (None, Ok((Err(error), printed))) => Ok((false, printed.result, printed.remarks, Some(error))),
        (None, Err(payload)) if payload.is::<Cancelled>() => Err(errors::panicked(&"cancelled by nobody")),
        (None, Err(payload)) => Err(errors::panicked(&*payload)),
    }
}
