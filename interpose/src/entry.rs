//! The names that this library exports, and the functions behind them.

use crate::absent;
use crate::chain::{self, Interposition};
use crate::hooks;
use crate::machine::{self, Entered, Frame, optional_stub, stub, trampoline};
use crate::phases::{self, Starting};
use crate::record::{self, pass};
use crate::tracer::Tracer;
use mpi_abi::prototypes::{Call, Convention, Export};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

macro_rules! stub_of {
    ($symbol:literal $number:literal) => {
        stub! { $symbol $number }
    };
    ($symbol:literal $number:literal optional) => {
        optional_stub! { $symbol $number }
    };
}
mpi_abi::for_each_export!(stub_of);

// An indirect function that this library refers to: the loader calls it after the other relocations of this library.
std::arch::global_asm!(
    ".pushsection .text.vef_early,\"ax\",%progbits",
    ".globl vef_early",
    ".hidden vef_early",
    ".type vef_early, %gnu_indirect_function",
    #[cfg(target_arch = "x86_64")]
    "vef_early: jmp {early}",
    #[cfg(target_arch = "aarch64")]
    "vef_early: b {early}",
    ".popsection",
    early = sym early,
);

/// The reference to it: an entry in the list of constructors, which linkers keep.
#[used]
#[unsafe(link_section = ".init_array")]
static KEEP: unsafe extern "C" fn() = vef_early;

unsafe extern "C" {
    /// The indirect function defined above.
    fn vef_early();
}

/// Called by the loader before anything can call a stub: prepares the stubs. Returns the function that the loader calls later, as a constructor.
extern "C" fn early() -> extern "C" fn() {
    machine::lead_to(enter_first);
    absent::change_types();
    absent::hide_at_start
}

trampoline! {
    /// The entry of calls by a name that has no destination: not yet, or, for a few, never.
    enter_first => entered_first
}

/// Finds the destination of calls by a name, and makes this call.
extern "C-unwind" fn entered_first(number: usize, frame: Frame, lane: *mut c_void) -> i32 {
    let call = Export::get(number).call();
    let Some(real) = machine::real(number) else {
        // This is not stored: the library may be loaded later.
        return mpi_abi::ERR_NO_SUCH_FUNCTION;
    };
    match call {
        _ if chain::is_beginning(call) => return begin(number, frame, lane),
        Call::MPI_Pcontrol => return pcontrol(number, frame),
        _ => {}
    }
    let recorder = || Tracer::at(0).filter(|tracer| tracer.alone && hooks::record(tracer, call));
    let entry: Option<(unsafe extern "C" fn(), Entered)> = match chain::has(call) {
        true => Some((chain::enter, chain::entered)),
        false => recorder().map(|_| (record::enter as _, record::entered as _)),
    };
    let to = entry.map_or(real.as_ptr() as usize, |(enter, _)| enter as usize);
    machine::NEXT[number].store(to, Ordering::Release);
    entry.map_or_else(|| pass(number, frame), |(_, entered)| entered(number, frame, lane))
}

/// `MPI_Init`, `MPI_Init_thread` and `MPI_Session_init`: loads the tools and starts recording.
fn begin(number: usize, frame: Frame, lane: *mut c_void) -> i32 {
    let starting = Starting::enter();
    if starting.is_some() {
        absent::hide_missing_names();
    }
    match (&starting, chain::build()) {
        // MPI's Fortran function calls the C function; only the outer call counts.
        (None, _) | (_, Interposition::Nothing) => pass(number, frame),
        (_, Interposition::Chain) => chain::entered(number, frame, lane),
        (_, Interposition::Recorder(directory)) => {
            hooks::begin(number, frame, (0, directory), true, || pass(number, frame))
        }
    }
}

/// `MPI_Pcontrol`: passes the level to the tools and to the phases.
fn pcontrol(number: usize, frame: Frame) -> i32 {
    let level = match Export::get(number).form {
        Convention::C => frame.word(0) as i32,
        // SAFETY: a level by reference.
        _ => unsafe { *(frame.word(0) as *const i32) },
    };
    phases::pcontrol(level, || pass(number, frame))
}

macro_rules! phases {
    ($begin:literal: $($c:ident)*, $($fortran:ident = $symbol:literal)*) => { $(
        /// Marks a phase of the program, by name.
        ///
        /// # Safety
        /// `name` must be a C string, or null.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $c(name: *const c_char) {
            if !name.is_null() {
                // SAFETY: not null, so a C string.
                phases::mark($begin, unsafe { CStr::from_ptr(name) });
            }
        }
    )* $(
        /// The same for Fortran: `name` is blank-padded.
        ///
        /// # Safety
        /// `name` must be `length` characters.
        #[unsafe(export_name = $symbol)]
        unsafe extern "C" fn $fortran(name: *const u8, length: usize) {
            // SAFETY: the contract.
            phases::mark_padded($begin, unsafe { std::slice::from_raw_parts(name, length) });
        }
    )* };
}
// The functions that programs call. The definitions in `vef_phase.h` look for `vef_tracer_*`.
phases! {
    true: vef_phase_begin mini_annotate_phase_start vef_tracer_phase_begin,
    phase_begin = "vef_phase_begin_" mini_phase_start = "mini_annotate_phase_start_"
}
phases! {
    false: vef_phase_end mini_annotate_phase_end vef_tracer_phase_end,
    phase_end = "vef_phase_end_" mini_phase_end = "mini_annotate_phase_end_"
}
