//! Signals that end a command remove its incomplete directories first.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::new_directory::remove_all;

/// Whether a signal is ending this process.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// From now on, a request to terminate this process removes its temporary and incomplete directories before it ends the process.
pub fn remove_directories() {
    let handled: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    // Without the handler, signals end the process as they are.
    let Ok(mut signals) = Signals::new(handled) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            IS_ENDING.store(true, Ordering::SeqCst);
            remove_all();
            let _ = emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
}

/// Does not return while a signal ends this process: what a command says whose directories disappear is of no use.
pub fn await_removal() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Whether this process was started with the signal ignored.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
