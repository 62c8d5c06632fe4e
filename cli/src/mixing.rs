//! Captures become traces: the progress of that, and a trace for the time of one command.

use crate::output::Failure;
use crate::progress::Bar;
use mixer::{Options, Stage};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Mixes a capture to the trace `output`, which one command reads.
///
/// # Errors
/// The capture cannot be mixed.
pub fn mix(capture: &Path, output: &Path) -> Result<(), Failure> {
    let mixed = mixer::mix(capture, output, &Options::default(), &Progress::new());
    mixed.map(drop).map_err(|error| format!("{}: cannot be mixed: {error}", capture.display()).into())
}

/// Shows a bar for each stage.
pub struct Progress {
    stage: Mutex<Bar>,
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// The state before the first stage.
    pub fn new() -> Self {
        let stage = Mutex::new(Bar::new("opening the capture"));
        Self { stage, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }
}

impl mixer::Progress for Progress {
    fn begin(&self, stage: Stage, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        if let Ok(mut bar) = self.stage.lock() {
            *bar = bar.next(match stage {
                Stage::Walk => "reading ranks",
                Stage::Matching => "matching",
                Stage::Output => "writing records",
            });
        }
    }

    fn advance(&self, steps: u64) {
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        if let Ok(bar) = self.stage.try_lock() {
            bar.set(done, self.total.load(Ordering::Relaxed));
        }
    }
}
