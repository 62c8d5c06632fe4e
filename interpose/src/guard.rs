//! Catches the recorder's own panics, and prints its warnings.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;
use vef_format::units::Printable;

/// Prints one line on stderr, without the locks and panics of the standard macros.
pub(crate) fn warn(what: &str) {
    // Names of files may have any characters.
    let line = format!("vef: {}\n", Printable(what).to_string().replace('\n', "\\n"));
    // SAFETY: the bytes of a live string.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Runs a part of the recorder; returns `None` if it panics. No panic message is printed.
pub(crate) fn catching_panics<T>(run: impl FnOnce() -> T) -> Option<T> {
    static SILENT: Once = Once::new();
    // Affects only this library, which has its own copy of the standard library.
    SILENT.call_once(|| set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// Test builds only: panics if `VEF_PANIC` names the function.
#[cfg(debug_assertions)]
pub(crate) fn panic_if_asked(function: &str) {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let name = NAME.get_or_init(|| std::env::var("VEF_PANIC").ok());
    assert_ne!(name.as_deref(), Some(function), "requested by VEF_PANIC");
}
