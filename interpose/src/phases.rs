//! Phases of the program, properly nested, for the recorder and the tools.
//!
//! Programs mark phases with the functions of `vef_phase.h`, or with `MPI_Pcontrol(n)`, n ≥ 3, at the begin and
//! `MPI_Pcontrol(-n)` at the end of phase `pcontrol_n`. Levels 0, 1 and 2 have the meaning that the standard suggests
//! (off, on, flush) and are left to the tools.

use crate::chain;
use crate::guard::warn;
use crate::machine;
use crate::tracer::Tracer;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

/// The open phases, innermost last.
static OPEN: Mutex<Vec<CString>> = Mutex::new(Vec::new());

const FIRST_LEVEL: i32 = 3;

/// Marks the begin or end of a phase. The end of a phase also ends the phases inside it. An end without a begin is
/// reported on stderr and ignored.
pub(crate) fn mark(begin: bool, name: &CStr) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if begin {
        open.push(name.to_owned());
        announce(true, name);
        return;
    }
    let Some(place) = open.iter().rposition(|other| other.as_c_str() == name) else {
        warn(&format!("phase {} ends without a begin", name.to_string_lossy()));
        return;
    };
    for ended in open.drain(place..).rev() {
        announce(false, &ended);
    }
}

/// [`mark`] for a blank-padded Fortran string.
pub(crate) fn mark_padded(begin: bool, name: &[u8]) {
    if let Ok(name) = CString::new(name.trim_ascii_end()) {
        mark(begin, &name);
    }
}

fn announce(begin: bool, name: &CStr) {
    Tracer::all().for_each(|tracer| tracer.mark_phase(begin, &name.to_string_lossy()));
    chain::phase(begin, name);
}

/// Handles `MPI_Pcontrol`; `next` is the real function.
pub(crate) fn pcontrol(level: i32, next: impl FnOnce() -> i32) -> i32 {
    let _inside = match Starting::enter() {
        Some(inside) => inside,
        // MPI's Fortran function calls the C function.
        None => return next(),
    };
    chain::pcontrol(level);
    if level.unsigned_abs() >= FIRST_LEVEL as u32
        && let Ok(name) = CString::new(format!("pcontrol_{}", level.unsigned_abs()))
    {
        mark(level > 0, &name);
    }
    next()
}

/// Marks that the thread is in a call that may call itself by another name.
pub(crate) struct Starting(());

impl Starting {
    /// Returns `None` if the thread is in such a call already.
    pub(crate) fn enter() -> Option<Self> {
        (!machine::thread().starting.replace(true)).then_some(Self(()))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        machine::thread().starting.set(false);
    }
}
