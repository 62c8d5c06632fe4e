//! The functions this library defines: in C one for each row of the table that returns an error code, in Fortran one for
//! each whose category has a hook. Those without one go straight on, to MPI or to the tools.

use crate::chain::entries::NEXT;
use crate::chain::{self, Recorder};
use crate::hooks;
use crate::lane;
use crate::languages::{C, Fortran};
use crate::phases;
use crate::wrap::{Row, SUCCESS};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::Call;
use mpi_abi::symbols::Function;
use mpi_abi::{ERR_NO_SUCH_FUNCTION, for_each_mpi_function};
use std::ffi::{CStr, c_char};

/// The C string of a literal with its closing NUL.
pub(crate) const fn c_name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name without an inner NUL"), // at compile time
    }
}

/// Gives each category its hook; of those without one only C is wrapped, for tools' sake, by a jump.
macro_rules! with_hook {
    (Send $do:ident $($row:tt)*) => { $do! { Send $($row)* } };
    (SendImmediate $do:ident $($row:tt)*) => { $do! { SendImmediate $($row)* } };
    (SendPersistent $do:ident $($row:tt)*) => { $do! { SendPersistent $($row)* } };
    (Recv $do:ident $($row:tt)*) => { $do! { Recv $($row)* } };
    (RecvImmediate $do:ident $($row:tt)*) => { $do! { RecvImmediate $($row)* } };
    (RecvPersistent $do:ident $($row:tt)*) => { $do! { RecvPersistent $($row)* } };
    (SendRecv $do:ident $($row:tt)*) => { $do! { SendRecv $($row)* } };
    (SendRecvImmediate $do:ident $($row:tt)*) => { $do! { SendRecvImmediate $($row)* } };
    (Probe $do:ident $($row:tt)*) => { $do! { Probe $($row)* } };
    (Wait $do:ident $($row:tt)*) => { $do! { Wait $($row)* } };
    (Test $do:ident $($row:tt)*) => { $do! { Test $($row)* } };
    (Start $do:ident $($row:tt)*) => { $do! { Start $($row)* } };
    (RequestFree $do:ident $($row:tt)*) => { $do! { RequestFree $($row)* } };
    (Collective $do:ident $($row:tt)*) => { $do! { Collective $($row)* } };
    (CollectiveImmediate $do:ident $($row:tt)*) => { $do! { CollectiveImmediate $($row)* } };
    (CollectivePersistent $do:ident $($row:tt)*) => { $do! { CollectivePersistent $($row)* } };
    (VectorCollective $do:ident $($row:tt)*) => { $do! { VectorCollective $($row)* } };
    (VectorCollectiveImmediate $do:ident $($row:tt)*) => { $do! { VectorCollectiveImmediate $($row)* } };
    (VectorCollectivePersistent $do:ident $($row:tt)*) => { $do! { CollectivePersistent $($row)* } };
    (NeighborCollective $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (NeighborCollectiveImmediate $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (NeighborCollectivePersistent $do:ident $($row:tt)*) => { $do! { OtherPersistent $($row)* } };
    (Partitioned $do:ident $($row:tt)*) => { $do! { Partitioned $($row)* } };
    (CommCreate $do:ident $($row:tt)*) => { $do! { CommCreate $($row)* } };
    (CommFree $do:ident $($row:tt)*) => { $do! { CommFree $($row)* } };
    (TypeFree $do:ident $($row:tt)*) => { $do! { TypeFree $($row)* } };
    (Rma $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (RmaRequest $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (RmaSync $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (WinCreate $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (WinFree $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (FileOpen $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (Io $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (IoImmediate $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (Process $do:ident $($row:tt)*) => { $do! { Other $($row)* } };
    (Lifecycle $do:ident $($row:tt)*) => { $do! { Lifecycle $($row)* } };
    ($category:ident c_wrapper $($row:tt)*) => { c_passage! { $($row)* } };
    ($category:ident fortran_wrappers $($row:tt)*) => { fortran_passages! { $($row)* } };
    ($category:ident fortran_large_wrappers $($row:tt)*) => { fortran_large_passages! { $($row)* } };
    ($category:ident $($row:tt)*) => {};
}
pub(crate) use with_hook;

/// A wrapper for C that only goes on.
macro_rules! c_passage {
    ($call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        /// Not recorded.
        ///
        /// # Safety
        /// As the MPI function of this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $call($($a: usize),*) -> i32 {
            // SAFETY: the prototype of the table, and the arguments of the program.
            unsafe { NEXT[Call::$call as usize].call_or([$($a),*], ERR_NO_SUCH_FUNCTION) }
        }
    };
}

/// The row of a function as a type.
macro_rules! row {
    ($call:ident ($($a:ident : $k:ident),*)) => {
        /// What the table says of the function.
        pub(crate) struct This;
        impl Row for This {
            const CALL: Call = Call::$call;
            const NAMES: &'static [&'static str] = &[$(stringify!($a)),*];
            const KINDS: &'static [Kind] = &[$(Kind::$k),*];
        }
        /// How many arguments it has.
        pub(crate) const COUNT: usize = <This as Row>::NAMES.len();
    };
}

/// A wrapper for C, and what it and the recorder as one of the tools share.
macro_rules! c_wrapper {
    ($hook:ident $call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        #[allow(non_snake_case)]
        pub(crate) mod $call {
            use super::*;

            row!($call ($($a : $k),*));

            /// A call that does not go the short way.
            #[inline(never)]
            pub(crate) fn record(words: [usize; COUNT], next: &mut dyn FnMut([usize; COUNT]) -> i32) -> i32 {
                hooks::$hook::<This, C, COUNT>(words, next)
            }
        }

        /// Recorded by the hook of its category.
        ///
        /// # Safety
        /// As the MPI function of this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $call($($a: usize),*) -> i32 {
            // SAFETY: the prototype of the table, and the arguments of the program.
            let next = |words| unsafe { NEXT[Call::$call as usize].call_or(words, ERR_NO_SUCH_FUNCTION) };
            if let Some(code) = hooks::again::<$call::This, C, _>([$($a),*], next) {
                return code;
            }
            #[inline(never)]
            extern "C" fn usual($($a: usize),*) -> i32 {
                // SAFETY: as above.
                let mut next = |words| unsafe { NEXT[Call::$call as usize].call_or(words, ERR_NO_SUCH_FUNCTION) };
                if lane::is_behind_tools() {
                    return next([$($a),*]);
                }
                $call::record([$($a),*], &mut next)
            }
            // With the arguments where they are.
            usual($($a),*)
        }
    };
}

/// The wrappers for a function's Fortran names: the same arguments by reference, then `ierror` (which `mpi_f08` may leave
/// out), then the lengths of strings. They differ in what they call on to, so they share one recording.
macro_rules! fortran_wrappers {
    ($hook:ident $call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        #[allow(non_snake_case)]
        mod $call {
            use super::*;
            use super::super::$call::{COUNT, This};

            fn record(words: [usize; COUNT], next: &mut dyn FnMut([usize; COUNT]) -> i32) {
                if hooks::again::<This, Fortran, COUNT>(words, &mut *next).is_none() {
                    hooks::$hook::<This, Fortran, COUNT>(words, next);
                }
            }

            fn as_c(words: &[usize], descriptors: bool) -> Option<i32> {
                let wrapper = super::super::$call as *const std::ffi::c_void;
                chain::fortran::call_as_c(Call::$call, words, descriptors, wrapper)
            }

            fortran_wrapper! { plain $stem "_" false ($($a),*) [$($length)*] }
            fortran_wrapper! { f08 $stem "_f08_" false ($($a),*) [$($length)*] }
            fortran_wrapper! { f08ts $stem "_f08ts_" true ($($a),*) [$($length)*] }
        }
    };
}

/// As [`fortran_wrappers`], for the forms with large counts, which `mpi_f08` alone has.
macro_rules! fortran_large_wrappers {
    ($hook:ident $call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        #[allow(non_snake_case)]
        mod $call {
            use super::*;
            use super::super::$call::{COUNT, This};

            fn record(words: [usize; COUNT], next: &mut dyn FnMut([usize; COUNT]) -> i32) {
                if hooks::again::<This, Fortran, COUNT>(words, &mut *next).is_none() {
                    hooks::$hook::<This, Fortran, COUNT>(words, next);
                }
            }

            fn as_c(words: &[usize], descriptors: bool) -> Option<i32> {
                let wrapper = super::super::$call as *const std::ffi::c_void;
                chain::fortran::call_as_c(Call::$call, words, descriptors, wrapper)
            }

            fortran_wrapper! { f08 $stem "_f08_large_" false ($($a),*) [$($length)*] }
            fortran_wrapper! { f08ts $stem "_f08ts_large_" true ($($a),*) [$($length)*] }
        }
    };
}

macro_rules! fortran_wrapper {
    ($function:ident $stem:literal $suffix:literal $descriptors:literal ($($a:ident),*) [$($length:ident)*]) => {
        #[unsafe(export_name = concat!($stem, $suffix))]
        unsafe extern "C" fn $function($($a: usize,)* ierror: usize $(, $length: usize)*) {
            if chain::active()
                && let Some(code) = as_c(&[$($a),*], $descriptors)
            {
                // SAFETY: null, or the program's INTEGER for it.
                unsafe { (ierror as *mut i32).as_mut() }.into_iter().for_each(|place| *place = code);
                return;
            }
            static NEXT: Function = Function::named(c_name(concat!($stem, $suffix, "\0")));
            record([$($a),*], &mut |words| {
                let mut real = || {
                    let [$($a),*] = words;
                    // SAFETY: the prototype of the table, and the arguments of the program.
                    unsafe { NEXT.call::<(), _>([$($a,)* ierror $(, $length)*]) };
                    // SAFETY: null, or an INTEGER that the call has set.
                    unsafe { (ierror as *const i32).as_ref() }.copied().unwrap_or(SUCCESS)
                };
                match chain::active() {
                    true => chain::fortran::show(This::CALL, &words, &[$($length),*], $descriptors, &mut real),
                    false => real(),
                }
            });
        }
    };
}

/// Wrappers for the Fortran names of a function that is not recorded.
macro_rules! fortran_passages {
    ($call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        #[allow(non_snake_case)]
        mod $call {
            use super::*;
            fortran_passage! { $call plain $stem "_" false ($($a),*) [$($length)*] }
            fortran_passage! { $call f08 $stem "_f08_" false ($($a),*) [$($length)*] }
            fortran_passage! { $call f08ts $stem "_f08ts_" true ($($a),*) [$($length)*] }
        }
    };
}

/// As [`fortran_passages`], for the forms with large counts.
macro_rules! fortran_large_passages {
    ($call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        #[allow(non_snake_case)]
        mod $call {
            use super::*;
            fortran_passage! { $call f08 $stem "_f08_large_" false ($($a),*) [$($length)*] }
            fortran_passage! { $call f08ts $stem "_f08ts_large_" true ($($a),*) [$($length)*] }
        }
    };
}

macro_rules! fortran_passage {
    ($call:ident $function:ident $stem:literal $suffix:literal $descriptors:literal ($($a:ident),*) [$($length:ident)*]) => {
        #[unsafe(export_name = concat!($stem, $suffix))]
        unsafe extern "C" fn $function($($a: usize,)* ierror: usize $(, $length: usize)*) {
            static NEXT: Function = Function::named(c_name(concat!($stem, $suffix, "\0")));
            // SAFETY: the prototype of the table, and the arguments of the program.
            unsafe {
                match chain::active() {
                    true => {
                        let words = [$($a,)* ierror $(, $length)*];
                        chain::fortran::pass(Call::$call, &NEXT, &words, $descriptors);
                    }
                    false => NEXT.call_or([$($a,)* ierror $(, $length)*], ()),
                }
            }
        }
    };
}

macro_rules! define {
    (calls { $($call:ident $stem:literal $category:ident ($($a:tt)*) [$($length:ident)*];)* }
     large { $($large:ident $large_stem:literal $large_category:ident ($($large_a:tt)*) [$($large_length:ident)*];)* }
     c_only { $($c_only:tt)* } others { $($others:tt)* }) => {
        $(with_hook! { $category c_wrapper $call $stem ($($a)*) [$($length)*] })*
        $(with_hook! { $large_category c_wrapper $large $large_stem ($($large_a)*) [$($large_length)*] })*
        mod fortran {
            use super::*;
            $(with_hook! { $category fortran_wrappers $call $stem ($($a)*) [$($length)*] })*
            $(with_hook! { $large_category fortran_large_wrappers $large $large_stem ($($large_a)*) [$($large_length)*] })*
        }
    };
}
for_each_mpi_function!(define);

/// Loads the tools and starts tracing.
///
/// # Safety
/// As the MPI function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Init(argc: usize, argv: usize) -> i32 {
    // SAFETY: int MPI_Init(int *argc, char ***argv).
    initialize(Call::MPI_Init, || unsafe {
        NEXT[Call::MPI_Init as usize].call_or([argc, argv], ERR_NO_SUCH_FUNCTION)
    })
}

/// Loads the tools and starts tracing.
///
/// # Safety
/// As the MPI function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Init_thread(argc: usize, argv: usize, required: usize, provided: usize) -> i32 {
    let words = [argc, argv, required, provided];
    // SAFETY: int MPI_Init_thread(int *argc, char ***argv, int required, int *provided).
    initialize(Call::MPI_Init_thread, || unsafe {
        NEXT[Call::MPI_Init_thread as usize].call_or(words, ERR_NO_SUCH_FUNCTION)
    })
}

/// `next` is the real function, or leads to it through the tools.
fn initialize(call: Call, next: impl FnOnce() -> i32) -> i32 {
    chain::build();
    match chain::recorder() {
        Recorder::First => hooks::initialize(call, next),
        Recorder::Behind | Recorder::Absent => next(),
    }
}

/// `MPI_Init` and `MPI_Init_thread` under their Fortran names, whose arguments are not those of C.
macro_rules! fortran_init {
    ($($function:ident $name:literal $call:ident ($($a:ident),*) => $as_c:expr;)*) => { $(
        #[unsafe(export_name = $name)]
        unsafe extern "C" fn $function($($a: usize,)* ierror: usize) {
            static NEXT: Function = Function::named(c_name(concat!($name, "\0")));
            let real = || {
                // SAFETY: the arguments of the program.
                unsafe { NEXT.call::<(), _>([$($a,)* ierror]) };
                // SAFETY: null, or an INTEGER that the call has set.
                unsafe { (ierror as *const i32).as_ref() }.copied().unwrap_or(SUCCESS)
            };
            chain::build();
            if chain::active() {
                chain::fortran::ending_in(Call::$call, real, || $as_c);
            } else {
                initialize(Call::$call, real);
            }
        }
    )* };
}
fortran_init! {
    init "mpi_init_" MPI_Init () => init_as_c();
    init_f08 "mpi_init_f08_" MPI_Init () => init_as_c();
    init_thread "mpi_init_thread_" MPI_Init_thread (required, provided) => init_thread_as_c(required, provided);
    init_thread_f08 "mpi_init_thread_f08_" MPI_Init_thread (required, provided)
        => init_thread_as_c(required, provided);
}

/// `MPI_Init` as the chain knows it.
fn init_as_c() -> i32 {
    // SAFETY: both arguments may be null.
    unsafe { MPI_Init(0, 0) }
}

/// `MPI_Init_thread` as the chain knows it, of the program's INTEGERs.
fn init_thread_as_c(required: usize, provided: usize) -> i32 {
    // SAFETY: the addresses of two INTEGERs, the first of which is set.
    unsafe { MPI_Init_thread(0, 0, *(required as *const i32) as usize, provided) }
}

/// Tells every tool, and the phases.
///
/// # Safety
/// As the MPI function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Pcontrol(level: usize, a: usize, b: usize, c: usize, d: usize, e: usize) -> i32 {
    phases::pcontrol(level as i32, || {
        // SAFETY: int MPI_Pcontrol(const int level, ...); see mpi_abi on what follows.
        unsafe { NEXT[Call::MPI_Pcontrol as usize].call_or([level, a, b, c, d, e], ERR_NO_SUCH_FUNCTION) }
    })
}

macro_rules! fortran_pcontrol {
    ($($function:ident $name:literal)*) => { $(
        #[unsafe(export_name = $name)]
        unsafe extern "C" fn $function(level: usize, ierror: usize) {
            static NEXT: Function = Function::named(c_name(concat!($name, "\0")));
            // SAFETY: the program's INTEGER.
            phases::pcontrol(unsafe { *(level as *const i32) }, || {
                // SAFETY: the arguments of the program.
                unsafe { NEXT.call::<(), _>([level, ierror]) };
                SUCCESS
            });
        }
    )* };
}
fortran_pcontrol! {
    pcontrol "mpi_pcontrol_"
    pcontrol_f08 "mpi_pcontrol_f08_"
}

macro_rules! phases {
    ($($name:ident $begin:literal;)*) => { $(
        /// Marks a phase of the program, by name.
        ///
        /// # Safety
        /// `name` must be a C string, or null.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(name: *const c_char) {
            if !name.is_null() {
                // SAFETY: not null, so a C string.
                phases::mark($begin, unsafe { CStr::from_ptr(name) });
            }
        }
    )* };
}
// What programs call, and (`tracer`) what the definitions of `vef_phase.h` inside a program look for.
phases! {
    vef_phase_begin true;
    vef_phase_end false;
    mini_annotate_phase_start true;
    mini_annotate_phase_end false;
    vef_tracer_phase_begin true;
    vef_tracer_phase_end false;
}

macro_rules! fortran_phases {
    ($($function:ident $name:literal $begin:literal;)*) => { $(
        /// As in C, with a blank-padded string.
        ///
        /// # Safety
        /// `name` must be `length` characters.
        #[unsafe(export_name = $name)]
        unsafe extern "C" fn $function(name: *const u8, length: usize) {
            // SAFETY: the contract.
            phases::mark_padded($begin, unsafe { std::slice::from_raw_parts(name, length) });
        }
    )* };
}
fortran_phases! {
    phase_begin "vef_phase_begin_" true;
    phase_end "vef_phase_end_" false;
    mini_phase_start "mini_annotate_phase_start_" true;
    mini_phase_end "mini_annotate_phase_end_" false;
}
