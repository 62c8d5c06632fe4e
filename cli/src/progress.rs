//! Progress bars for jobs of more than two seconds, on terminals only; inside another program, reports to that ([`Watch`]).

use crate::session::{self, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time after which a job shows a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// Templates of a bar for a job of unknown length, for one that counts units, and for one with a total.
const TEMPLATES: [&str; 3] = [
    "{msg} {spinner} {elapsed}",
    "{msg} {spinner} {human_pos} {prefix}, {per_sec}",
    "{msg} {wide_bar} {percent}% {per_sec} {eta} left",
];
const COUNTING: usize = 1;
const WITH_TOTAL: usize = 2;

/// A bar that appears when its job has taken [`PATIENCE`], and ends with this value.
pub struct Bar {
    what: &'static str,
    bar: ProgressBar,
    watch: Watch,
    is_terminal: bool,
    /// The template in use.
    template: AtomicUsize,
    /// Ends the thread that makes the bar appear.
    over: Option<mpsc::Sender<()>>,
    shower: Option<JoinHandle<()>>,
}

impl Bar {
    /// A bar with the label `what`, hidden at first.
    pub fn new(what: &'static str) -> Self {
        Self::watched(what, Watch::current(), std::io::stderr().is_terminal() && !session::is_embedded())
    }

    /// The bar of another phase of the same job, on any thread.
    pub fn next(&self, what: &'static str) -> Self {
        Self::watched(what, self.watch.clone(), self.is_terminal)
    }

    fn watched(what: &'static str, watch: Watch, is_terminal: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(what);
        let (over, is_over) = mpsc::channel();
        let shower = is_terminal.then(|| {
            let bar = bar.clone();
            std::thread::spawn(move || {
                if is_over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(Duration::from_millis(100));
                }
            })
        });
        let template = AtomicUsize::new(WITH_TOTAL);
        let bar = Self { what, bar, watch, is_terminal, template, over: Some(over), shower };
        bar.set_template(0);
        bar.watch.progress(what, 0, None);
        bar
    }

    /// Shows the position of the work next to the bar.
    pub fn at(&self, position: impl std::fmt::Display) {
        if self.shower.is_some() {
            self.bar.set_message(format!("{}: {position}", self.what));
        }
    }

    /// `done` of `total` units are done. Cheap enough for frequent calls from any thread.
    pub fn set(&self, done: u64, total: u64) {
        self.watch.progress(self.what, done, Some(total));
        if self.shower.is_some() {
            self.set_template(WITH_TOTAL);
            self.bar.set_length(total);
            self.bar.set_position(done);
        }
    }

    /// `done` units are done, of an unknown total.
    pub fn count(&self, done: u64, unit: &'static str) {
        self.watch.progress(self.what, done, None);
        if self.shower.is_some() {
            self.set_template(COUNTING);
            self.bar.set_prefix(unit);
            self.bar.set_position(done);
        }
    }

    fn set_template(&self, template: usize) {
        if self.template.swap(template, Ordering::Relaxed) != template
            && let Ok(style) = ProgressStyle::with_template(TEMPLATES[template])
        {
            self.bar.set_style(style);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.over.take();
        if let Some(shower) = self.shower.take() {
            // The thread does not panic.
            let _ = shower.join();
        }
        self.bar.finish_and_clear();
    }
}
