//! Progress bars for jobs of more than two seconds, on terminals only.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vef_format::units::Grouped;

/// Time after which a job shows a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar that appears when its job has taken [`PATIENCE`].
pub struct Bar {
    what: &'static str,
    started: Instant,
    shown: OnceLock<ProgressBar>,
    /// Whether the bar shows a share of a known total.
    with_total: AtomicBool,
}

/// Template of a bar without a known total.
const COUNTING: &str = "{msg} {spinner} {prefix}";
const WITH_TOTAL: &str = "{msg} {wide_bar} {percent}% {rate} {left}";

impl Bar {
    /// A bar with the label `what`, hidden at first.
    pub fn new(what: &'static str) -> Self {
        Self { what, started: Instant::now(), shown: OnceLock::new(), with_total: AtomicBool::new(false) }
    }

    /// Shows the position of the work next to the bar.
    pub fn at(&self, place: impl std::fmt::Display) {
        if let Some(bar) = self.shown.get() {
            bar.set_message(format!("{}: {place}", self.what));
        }
    }

    /// `done` of `total` units are done. Cheap enough for frequent calls from any thread.
    pub fn set(&self, done: u64, total: u64) {
        if let Some(bar) = self.visible(COUNTING) {
            if !self.with_total.swap(true, Ordering::Relaxed) {
                set_style(bar, WITH_TOTAL);
            }
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    /// `done` units are done, of an unknown total.
    pub fn count(&self, done: u64, unit: &str) {
        if let Some(bar) = self.visible(COUNTING) {
            let rate = done as f64 / self.started.elapsed().as_secs_f64();
            bar.set_prefix(format!("{} {unit}, {rate:.0} a second", Grouped(done)));
            bar.tick();
        }
    }

    /// The bar, if its job has taken long enough.
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

/// Mean rate in units per second. The bar's own rate only counts from its appearance.
fn rate(state: &ProgressState) -> f64 {
    state.pos() as f64 / state.elapsed().as_secs_f64().max(1e-3)
}

fn show_rate(state: &ProgressState, to: &mut dyn Write) {
    // A bar that cannot be drawn is ignored.
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

/// Shows that a job of unknown length is running, until this value is dropped.
pub struct Busy {
    over: Option<mpsc::Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl Busy {
    /// Starts with the label `what`.
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
            // The thread does not panic.
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
