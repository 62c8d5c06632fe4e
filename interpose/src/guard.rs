//! What must not reach the program: our own panics, and more than one line on stderr.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

/// One line on stderr, without the locks and panics of the ordinary macros.
pub(crate) fn complain(what: &str) {
    let line = format!("vef: {what}\n");
    // SAFETY: the bytes of a live string.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Runs what is ours; `None`: it panicked, silently.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    static SILENT: Once = Once::new();
    // The standard library in here is this library's own: nobody else's panics are meant.
    SILENT.call_once(|| set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// In builds for tests alone: panics as a fault of a hook would, where `VEF_PANIC` names the function.
#[cfg(debug_assertions)]
pub(crate) fn panic_if_asked(function: &str) {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let name = NAME.get_or_init(|| std::env::var("VEF_PANIC").ok());
    assert_ne!(name.as_deref(), Some(function), "asked for");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { panic!("told to nobody") }), None);
    }
}
