//! The way of a call into the tools, and what follows if one of them throws an exception.

use super::catch::catching;
use super::handlers::{call_cell, mpi_handler};
use crate::guard::warn;
use crate::machine::{self, Passage};
use mpi_abi::ERR_NO_SUCH_FUNCTION;
use mpi_abi::prototypes::Call;
use mpi_abi::tool::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a tool has thrown an exception.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// A tool has thrown an exception in a call, or in another of its functions: it must not be called any more. As other tools and
/// recorders may be in the middle of the call, the chain ends when the call has left it.
#[cold]
pub(super) fn note_exception(within: &str) {
    if !BROKEN.swap(true, Ordering::AcqRel) {
        warn(&format!(
            "a tool threw an exception in {within}: the program continues without tools and without recording"
        ));
    }
}

/// Whether a tool has thrown an exception.
pub(super) fn is_broken() -> bool {
    BROKEN.load(Ordering::Relaxed)
}

/// Makes a call enter the tools at `head`. If one of them throws an exception, MPI is called directly, unless it has been called.
///
/// # Safety
/// The words must be valid arguments of the function.
pub(super) unsafe fn enter_tools(head: Cell, words: &[usize], call: Call) -> i32 {
    // SAFETY: the calling thread's own, and the contract.
    unsafe {
        let thread = machine::thread();
        (*thread).passage = Passage { call: call as u16, in_mpi: false, has_returned: false, code: 0 };
        if let Some(code) = catching(|| call_cell(head, words, call)) {
            return code;
        }
        note_exception(call.name());
        match (*thread).passage {
            Passage { has_returned: true, code, .. } => code,
            _ => mpi_handler(call).map_or(ERR_NO_SUCH_FUNCTION, |cell| call_cell(cell, words, call)),
        }
    }
}
