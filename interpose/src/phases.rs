//! The program's phases, properly nested, for the recorder and the tools.
//!
//! A program names them with the functions of `vef_phase.h`. One that cannot use it may call `MPI_Pcontrol(n)` with n ≥ 3
//! where phase `pcontrol_n` begins and `MPI_Pcontrol(-n)` where it ends; 0, 1 and 2 mean what the standard suggests (off, on,
//! flush), which is the tools' business.

use crate::chain;
use crate::guard::complain;
use crate::machine;
use crate::tracer::Tracer;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

/// The phases that have begun and not ended, the innermost last.
static OPEN: Mutex<Vec<CString>> = Mutex::new(Vec::new());

/// The first level of `MPI_Pcontrol` that stands for a phase.
const FIRST_LEVEL: i32 = 3;

/// A phase begins or ends. One that ends while others are open inside it ends those too; an end without a beginning is nothing
/// but a line on stderr.
pub(crate) fn mark(begin: bool, name: &CStr) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if begin {
        open.push(name.to_owned());
        tell(true, name);
        return;
    }
    let Some(place) = open.iter().rposition(|other| other.as_c_str() == name) else {
        complain(&format!("phase {} ends, but has not begun", name.to_string_lossy()));
        return;
    };
    for ended in open.drain(place..).rev() {
        tell(false, &ended);
    }
}

/// As [`mark`], with a Fortran string.
pub(crate) fn mark_padded(begin: bool, name: &[u8]) {
    if let Ok(name) = CString::new(name.trim_ascii_end()) {
        mark(begin, &name);
    }
}

fn tell(begin: bool, name: &CStr) {
    Tracer::all().for_each(|tracer| tracer.mark_phase(begin, &name.to_string_lossy()));
    chain::phase(begin, name);
}

/// `MPI_Pcontrol`; `next` is the real one.
pub(crate) fn pcontrol(level: i32, next: impl FnOnce() -> i32) -> i32 {
    let _inside = match Starting::enter() {
        Some(inside) => inside,
        // Fortran's calls C's.
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

/// The thread is in a call of which it makes another one that means the same.
pub(crate) struct Starting(());

impl Starting {
    /// `None`: it is already.
    pub(crate) fn enter() -> Option<Self> {
        // SAFETY: the calling thread's own.
        let starting = unsafe { &mut (*machine::thread()).starting };
        (!std::mem::replace(starting, true)).then_some(Self(()))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own.
        unsafe { (*machine::thread()).starting = false };
    }
}
