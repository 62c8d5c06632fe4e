//! The functions this library defines: one for each row of the table whose category has a hook, in C and in Fortran.

use crate::hooks;
use crate::languages::{C, Fortran};
use crate::wrap::{Row, SUCCESS};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::Call;
use mpi_abi::symbols::Function;
use mpi_abi::{ERR_NO_SUCH_FUNCTION, for_each_mpi_function};
use std::ffi::{CStr, c_char};

/// The C string of a literal with its closing NUL.
const fn c_name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name without an inner NUL"), // at compile time
    }
}

/// Gives each category its hook; those without one are not wrapped at all, so calls that are not of interest cost nothing.
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
    (VectorCollective $do:ident $($row:tt)*) => { $do! { Collective $($row)* } };
    (VectorCollectiveImmediate $do:ident $($row:tt)*) => { $do! { CollectiveImmediate $($row)* } };
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
    ($category:ident $($row:tt)*) => {};
}

/// The row of a function as a type.
macro_rules! row {
    ($call:ident ($($a:ident : $k:ident),*)) => {
        struct This;
        impl Row for This {
            const CALL: Call = Call::$call;
            const NAMES: &'static [&'static str] = &[$(stringify!($a)),*];
            const KINDS: &'static [Kind] = &[$(Kind::$k),*];
        }
    };
}

/// A wrapper for C.
macro_rules! c_wrapper {
    ($hook:ident $call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        /// Recorded by the hook of its category.
        ///
        /// # Safety
        /// As the MPI function of this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $call($($a: usize),*) -> i32 {
            row!($call ($($a : $k),*));
            static NEXT: Function = Function::named(c_name(concat!(stringify!($call), "\0")));
            // SAFETY: the prototype of the table, and the arguments of the program.
            hooks::$hook::<This, C, _>([$($a),*], |words| unsafe { NEXT.call_or(words, ERR_NO_SUCH_FUNCTION) })
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

            fn record(words: [usize; COUNT], next: &mut dyn FnMut([usize; COUNT]) -> i32) {
                row!($call ($($a : $k),*));
                hooks::$hook::<This, Fortran, COUNT>(words, next);
            }

            const COUNT: usize = { let names: &[&str] = &[$(stringify!($a)),*]; names.len() };

            fortran_wrapper! { plain $stem "_" ($($a),*) [$($length)*] }
            fortran_wrapper! { f08 $stem "_f08_" ($($a),*) [$($length)*] }
            fortran_wrapper! { f08ts $stem "_f08ts_" ($($a),*) [$($length)*] }
        }
    };
}

/// As [`fortran_wrappers`], for the forms with large counts, which `mpi_f08` alone has.
macro_rules! fortran_large_wrappers {
    ($hook:ident $call:ident $stem:literal ($($a:ident : $k:ident),*) [$($length:ident)*]) => {
        #[allow(non_snake_case)]
        mod $call {
            use super::*;

            fn record(words: [usize; COUNT], next: &mut dyn FnMut([usize; COUNT]) -> i32) {
                row!($call ($($a : $k),*));
                hooks::$hook::<This, Fortran, COUNT>(words, next);
            }

            const COUNT: usize = { let names: &[&str] = &[$(stringify!($a)),*]; names.len() };

            fortran_wrapper! { f08 $stem "_f08_large_" ($($a),*) [$($length)*] }
            fortran_wrapper! { f08ts $stem "_f08ts_large_" ($($a),*) [$($length)*] }
        }
    };
}

macro_rules! fortran_wrapper {
    ($function:ident $stem:literal $suffix:literal ($($a:ident),*) [$($length:ident)*]) => {
        #[unsafe(export_name = concat!($stem, $suffix))]
        unsafe extern "C" fn $function($($a: usize,)* ierror: usize $(, $length: usize)*) {
            static NEXT: Function = Function::named(c_name(concat!($stem, $suffix, "\0")));
            record([$($a),*], &mut |words| {
                let [$($a),*] = words;
                // SAFETY: the prototype of the table, and the arguments of the program.
                unsafe { NEXT.call::<(), _>([$($a,)* ierror $(, $length)*]) };
                // SAFETY: null, or an INTEGER that the call has set.
                unsafe { (ierror as *const i32).as_ref() }.copied().unwrap_or(SUCCESS)
            });
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

/// Starts tracing.
///
/// # Safety
/// As the MPI function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Init(argc: usize, argv: usize) -> i32 {
    static NEXT: Function = Function::named(c"MPI_Init");
    hooks::initialize(Call::MPI_Init, || {
        // SAFETY: int MPI_Init(int *argc, char ***argv).
        unsafe { NEXT.call_or([argc, argv], ERR_NO_SUCH_FUNCTION) }
    })
}

/// Starts tracing.
///
/// # Safety
/// As the MPI function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Init_thread(argc: usize, argv: usize, required: usize, provided: usize) -> i32 {
    static NEXT: Function = Function::named(c"MPI_Init_thread");
    hooks::initialize(Call::MPI_Init_thread, || {
        // SAFETY: int MPI_Init_thread(int *argc, char ***argv, int required, int *provided).
        unsafe { NEXT.call_or([argc, argv, required, provided], ERR_NO_SUCH_FUNCTION) }
    })
}

/// `MPI_Init` and `MPI_Init_thread` under their Fortran names, whose arguments are not those of C.
macro_rules! fortran_init {
    ($($function:ident $name:literal $call:ident ($($a:ident),*);)*) => { $(
        #[unsafe(export_name = $name)]
        unsafe extern "C" fn $function($($a: usize,)* ierror: usize) {
            static NEXT: Function = Function::named(c_name(concat!($name, "\0")));
            hooks::initialize(Call::$call, || {
                // SAFETY: the arguments of the program.
                unsafe { NEXT.call::<(), _>([$($a,)* ierror]) };
                // SAFETY: null, or an INTEGER that the call has set.
                unsafe { (ierror as *const i32).as_ref() }.copied().unwrap_or(SUCCESS)
            });
        }
    )* };
}
fortran_init! {
    init "mpi_init_" MPI_Init ();
    init_f08 "mpi_init_f08_" MPI_Init ();
    init_thread "mpi_init_thread_" MPI_Init_thread (required, provided);
    init_thread_f08 "mpi_init_thread_f08_" MPI_Init_thread (required, provided);
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
                hooks::phase($begin, &unsafe { CStr::from_ptr(name) }.to_string_lossy());
            }
        }
    )* };
}
phases! {
    vef_phase_begin true;
    vef_phase_end false;
}
