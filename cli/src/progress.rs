//! A progress bar for what takes more than two seconds; on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a job may take before it shows a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar that appears once its job has taken [`PATIENCE`].
pub struct Bar {
    what: &'static str,
    started: Instant,
    shown: OnceLock<ProgressBar>,
}

impl Bar {
    /// A bar for `what`, not shown yet.
    pub fn new(what: &'static str) -> Self {
        Self { what, started: Instant::now(), shown: OnceLock::new() }
    }

    /// `done` of `total` units are done. Cheap enough to call often, from any thread.
    pub fn set(&self, done: u64, total: u64) {
        if self.shown.get().is_none() && self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.shown.get_or_init(|| {
            let bar = ProgressBar::with_draw_target(Some(total), target());
            let style = "{msg} {wide_bar} {percent}% {per_sec} {eta} left";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar.set_message(self.what);
            bar
        });
        bar.set_length(total);
        bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.shown.get() {
            bar.finish_and_clear();
        }
    }
}

fn target() -> ProgressDrawTarget {
    match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}
