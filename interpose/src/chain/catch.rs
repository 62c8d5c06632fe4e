//! Exceptions that a tool throws must not reach the program, which called MPI and does not know of the tool.
//!
//! `catch_unwind` aborts the process on exceptions of another run time: C++'s, and panics of a tool that has its own copy of Rust's
//! standard library. So one frame of this module has a personality routine of its own, which stops the unwinding. It lets pass the
//! exceptions of the program's callbacks, which MPI calls, and forced unwinding (`pthread_exit`, cancellation).

use crate::machine;
use mpi_abi::symbols::Function;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Calls a tool's function. `None`: the tool has thrown an exception, which is caught.
pub(super) fn catching<T, F: FnOnce() -> T>(run: F) -> Option<T> {
    struct CaughtCall<T, F> {
        run: Option<F>,
        result: Option<T>,
    }
    unsafe extern "C-unwind" fn invoke<T, F: FnOnce() -> T>(task: *mut c_void) -> *mut c_void {
        // SAFETY: the task below, which outlives the call.
        let task = unsafe { &mut *task.cast::<CaughtCall<T, F>>() };
        task.result = task.run.take().map(|run| run());
        null_mut()
    }
    let mut task = CaughtCall { run: Some(run), result: None };
    // SAFETY: `invoke` takes this task.
    let exception = unsafe { call_catching(invoke::<T, F>, (&raw mut task).cast()) };
    if !exception.is_null() {
        // SAFETY: the personality routine's result.
        unsafe { discard(exception) };
    }
    task.result
}

/// Ends a caught exception. C++'s run time counts it as uncaught until then. A panic's memory is leaked: freeing it from outside its
/// run time aborts.
///
/// # Safety
/// The exception must have been caught, and not be used any more.
unsafe fn discard(exception: *mut c_void) {
    const CPP: u64 = u64::from_be_bytes(*b"GNUCC++\0");
    static BEGIN: Function = Function::named(c"__cxa_begin_catch");
    static END: Function = Function::named(c"__cxa_end_catch");
    // SAFETY: an exception object begins with its class; C++'s functions take such an object, and nothing.
    unsafe {
        if *exception.cast::<u64>() == CPP && BEGIN.call::<usize, 1>([exception as usize]).is_some() {
            END.call::<(), 0>([]);
        }
    }
}

/// Calls a function with one argument and returns its result, or the exception that it has thrown: [`personality`] resumes behind the
/// call with the exception in the register of the result.
#[unsafe(naked)]
unsafe extern "C-unwind" fn call_catching(
    _function: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    _argument: *mut c_void,
) -> *mut c_void {
    std::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        #[cfg(target_arch = "x86_64")]
        "sub rsp, 8
        .cfi_def_cfa_offset 16
        mov rax, rdi
        mov rdi, rsi
        call rax
        add rsp, 8
        .cfi_def_cfa_offset 8
        ret",
        #[cfg(target_arch = "aarch64")]
        "stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov x9, x0
        mov x0, x1
        blr x9
        ldp x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        ret",
        ".cfi_endproc",
        personality = sym personality,
    )
}

unsafe extern "C" {
    /// Of the unwinder: sets a register, by its number in DWARF, of the frame to resume.
    fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
}

/// The unwinder asks this whether [`call_catching`] handles an exception, first while it searches for a handler, then on its way there.
unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    const SEARCH: c_int = 1;
    const IS_HANDLER: c_int = 4;
    const FORCED: c_int = 8;
    const HANDLER_FOUND: c_int = 6;
    const RESUME: c_int = 7;
    const CONTINUE: c_int = 8;
    /// The register of a function's result: `rax`, `x0`.
    const RESULT: c_int = 0;
    if actions & FORCED != 0 {
        return CONTINUE;
    }
    if actions & SEARCH != 0 {
        return if machine::thread().chained.get().in_mpi { CONTINUE } else { HANDLER_FOUND };
    }
    if actions & IS_HANDLER == 0 {
        return CONTINUE;
    }
    // SAFETY: the unwinder's context of the frame that resumes.
    unsafe { _Unwind_SetGR(context, RESULT, exception as usize) };
    RESUME
}
