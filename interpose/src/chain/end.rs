//! The last step of a Fortran call in the chain: Fortran's own function, not C's.

use mpi_abi::prototypes::Call;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call that ends in a function of Fortran's, and that function.
type End = (Call, *mut dyn FnMut() -> i32);

thread_local!(static END: Cell<Option<End>> = const { Cell::new(None) });

/// Whether there was any on any thread.
static ENDS: AtomicBool = AtomicBool::new(false);

/// When a call is over, also by an exception: the one that it was made from ends as before.
struct Restore(Option<End>);

impl Drop for Restore {
    fn drop(&mut self) {
        END.set(self.0);
    }
}

/// Runs `enter`, a C call that enters the chain, whose last step is `real`.
pub(super) fn ending_in<T>(call: Call, mut real: impl FnMut() -> i32, enter: impl FnOnce() -> T) -> T {
    let real: &mut dyn FnMut() -> i32 = &mut real;
    // SAFETY: only the lifetime is forgotten; it is taken back before `real` ends.
    let real: *mut (dyn FnMut() -> i32 + 'static) = unsafe { std::mem::transmute(real) };
    ENDS.store(true, Ordering::Relaxed);
    let _restore = Restore(END.replace(Some((call, real))));
    enter()
}

/// The last step of a call of this thread, if it is Fortran's.
#[inline(always)]
pub(super) fn end_of(call: Call) -> Option<i32> {
    if ENDS.load(Ordering::Relaxed) { run_end(call) } else { None }
}

fn run_end(call: Call) -> Option<i32> {
    let end = END.get();
    let (_, real) = end.filter(|(of, _)| *of == call)?;
    // What is called on the way does not end there.
    let _restore = Restore(END.replace(None));
    // SAFETY: set by `ending_in` on this thread, which has not returned.
    Some(unsafe { (*real)() })
}
