//! The last step of a call from Fortran that is only shown to tools: the Fortran function instead of C's.

use mpi_abi::prototypes::Call;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call whose last step is a Fortran function, and that function.
type End = (Call, *mut dyn FnMut() -> i32);

thread_local!(static END: Cell<Option<End>> = const { Cell::new(None) });

/// Whether any thread has ever had such a call.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Restores the last step of the enclosing call, also during unwinding.
struct Restore(Option<End>);

impl Drop for Restore {
    fn drop(&mut self) {
        END.set(self.0);
    }
}

/// Runs `enter`, which passes a C call through the chain; the last step is `real`.
pub(super) fn ending_in<T>(call: Call, mut real: impl FnMut() -> i32, enter: impl FnOnce() -> T) -> T {
    let real: &mut dyn FnMut() -> i32 = &mut real;
    // SAFETY: only the lifetime changes; the pointer is removed before `real` is dropped.
    let real: *mut (dyn FnMut() -> i32 + 'static) = unsafe { std::mem::transmute(real) };
    ENDS.store(true, Ordering::Relaxed);
    let _restore = Restore(END.replace(Some((call, real))));
    enter()
}

/// For tools (`vef_tool.h`): whether the call of this thread ends in a Fortran function, whatever a tool passes on.
#[unsafe(no_mangle)]
extern "C" fn vef_call_is_shown() -> c_int {
    c_int::from(ENDS.load(Ordering::Relaxed) && END.get().is_some())
}

/// Runs the Fortran function, if it is the last step of this call.
#[inline(always)]
pub(super) fn end_of(call: Call) -> Option<i32> {
    if ENDS.load(Ordering::Relaxed) { run_end(call) } else { None }
}

fn run_end(call: Call) -> Option<i32> {
    let end = END.get();
    let (_, real) = end.filter(|(of, _)| *of == call)?;
    // Nested calls end in C's functions.
    let _restore = Restore(END.replace(None));
    // SAFETY: set on this thread by `ending_in`, which has not returned.
    Some(unsafe { (*real)() })
}
