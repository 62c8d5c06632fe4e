//! A progress bar for what takes more than two seconds; on a terminal only.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vef_format::units::Grouped;

/// How long a job may take before it shows a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar that appears once its job has taken [`PATIENCE`].
pub struct Bar {
    what: &'static str,
    started: Instant,
    shown: OnceLock<ProgressBar>,
    /// It shows a share of a known total.
    with_total: AtomicBool,
}

/// What a bar shows while the total is not known, and then.
const COUNTING: &str = "{msg} {spinner} {prefix}";
const WITH_TOTAL: &str = "{msg} {wide_bar} {percent}% {rate} {left}";

impl Bar {
    /// A bar for `what`, not shown yet.
    pub fn new(what: &'static str) -> Self {
        Self { what, started: Instant::now(), shown: OnceLock::new(), with_total: AtomicBool::new(false) }
    }

    /// Says beside the bar how far the work is.
    pub fn at(&self, place: impl std::fmt::Display) {
        if let Some(bar) = self.shown.get() {
            bar.set_message(format!("{}: {place}", self.what));
        }
    }

    /// `done` of `total` units are done. Cheap enough to call often, from any thread.
    pub fn set(&self, done: u64, total: u64) {
        if let Some(bar) = self.visible(COUNTING) {
            if !self.with_total.swap(true, Ordering::Relaxed) {
                set_style(bar, WITH_TOTAL);
            }
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    /// `done` units are done, nobody knows of how many.
    pub fn count(&self, done: u64, unit: &str) {
        if let Some(bar) = self.visible(COUNTING) {
            let rate = done as f64 / self.started.elapsed().as_secs_f64();
            bar.set_prefix(format!("{} {unit}, {rate:.0} a second", Grouped(done)));
            bar.tick();
        }
    }

    /// The bar, once its job has taken long enough.
    fn visible(&self, template: &str) -> Option<&ProgressBar> {
        if self.shown.get().is_none() && self.started.elapsed() < PATIENCE {
            return None;
        }
        Some(self.shown.get_or_init(|| {
            let bar = ProgressBar::with_draw_target(None, target()).with_elapsed(self.started.elapsed());
            set_style(&bar, template);
            bar.set_message(self.what);
            bar
        }))
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("rate", show_rate).with_key("left", show_left));
    }
}

/// Done so far, a second. The bar's own rate counts from when it appeared, as if all up to then had taken no time.
fn rate(state: &ProgressState) -> f64 {
    state.pos() as f64 / state.elapsed().as_secs_f64().max(1e-3)
}

fn show_rate(state: &ProgressState, to: &mut dyn Write) {
    // A bar that cannot be drawn is no reason to stop.
    let _ = write!(to, "{}/s", Grouped(rate(state) as u64));
}

fn show_left(state: &ProgressState, to: &mut dyn Write) {
    if state.pos() == 0 {
        return;
    }
    let more = state.len().unwrap_or(0).saturating_sub(state.pos());
    let seconds = more as f64 / rate(state).max(1e-3);
    let _ =
        write!(to, "{:#} left", HumanDuration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)));
}

/// Shows that a job of unknown length goes on, from [`PATIENCE`] after it began until this is dropped.
pub struct Busy {
    over: Option<mpsc::Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl Busy {
    /// Watches over `what`, which begins now.
    pub fn new(what: &'static str) -> Self {
        let (over, is_over) = mpsc::channel();
        let ticker = std::io::stderr().is_terminal().then(|| {
            std::thread::spawn(move || {
                let bar = Bar::new(what);
                while is_over.recv_timeout(Duration::from_millis(100)) == Err(mpsc::RecvTimeoutError::Timeout)
                {
                    if let Some(bar) = bar.visible("{msg} {spinner} {elapsed}") {
                        bar.tick();
                    }
                }
            })
        });
        Self { over: Some(over), ticker }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.take();
        if let Some(ticker) = self.ticker.take() {
            // It cannot panic, and if it did there would be one bar less.
            let _ = ticker.join();
        }
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
