//! What the table of prototypes gives to the chain: for each function what a wrapper calls on to, how the program's call
//! enters, how the recorder is one of the tools, and the last step, to MPI.

use super::{Seat, close, head};
use crate::hooks;
use crate::wrappers::{self, c_name, with_hook};
use mpi_abi::prototypes::Call;
use mpi_abi::symbols::{Function, Words};
use mpi_abi::tool::{AnyCall, Cell, Layer};
use mpi_abi::{ERR_NO_SUCH_FUNCTION, for_each_mpi_function};
use std::ffi::{c_char, c_void};
use std::ptr::{NonNull, null_mut};

/// An address in a table of constants.
#[derive(Clone, Copy)]
struct Address(*const c_void);
// SAFETY: addresses of code.
unsafe impl Sync for Address {}

thread_local! {
    /// Whether this thread's call is in the chain already: what MPI and the tools call by name goes past it.
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The program's call enters the chain.
macro_rules! entry {
    ($call:ident ($($a:ident),*)) => {
        pub(super) unsafe extern "C" fn $call($($a: usize),*) -> i32 {
            let real = &REAL[Call::$call as usize];
            if INSIDE.with(|inside| inside.replace(true)) {
                // SAFETY: the prototype of the table, and the caller's arguments.
                return unsafe { real.call_or([$($a),*], ERR_NO_SUCH_FUNCTION) };
            }
            let code = match head(Call::$call) {
                // SAFETY: a handler takes its layer, then what the function takes.
                Some(cell) => unsafe { [cell.layer as usize $(, $a)*].pass_to(cell.function) },
                // SAFETY: as above.
                None => unsafe { real.call_or([$($a),*], ERR_NO_SUCH_FUNCTION) },
            };
            INSIDE.with(|inside| inside.set(false));
            if const { matches!(Call::$call, Call::MPI_Finalize) } {
                close();
            }
            code
        }
    };
}

/// The end of the chain.
macro_rules! last {
    ($call:ident ($($a:ident),*)) => {
        pub(super) unsafe extern "C" fn $call(_layer: usize $(, $a: usize)*) -> i32 {
            // It does not return.
            if const { matches!(Call::$call, Call::MPI_Abort) } {
                close();
            }
            if let Some(code) = super::super::fortran::end_of(Call::$call) {
                return code;
            }
            // SAFETY: the prototype of the table, and the arguments of the program or a tool.
            unsafe { REAL[Call::$call as usize].call_or([$($a),*], ERR_NO_SUCH_FUNCTION) }
        }
    };
}

/// Calls the handler behind `layer`.
macro_rules! go_on {
    ($layer:ident $call:ident $($a:ident)*) => { {
        // SAFETY: the layer that this handler is of, whose table has every function.
        let cell = unsafe { *(*$layer).next.add(Call::$call as usize) };
        // SAFETY: a handler takes its layer, then what the function takes.
        unsafe { [cell.layer as usize $(, $a)*].pass_to(cell.function) }
    } };
}

/// The recorder as one of the tools.
macro_rules! recorder {
    ($hook:ident $cells:ident $layer:ident $call:ident ($($a:ident : $k:ident),*)) => {
        unsafe extern "C" fn $call(layer: *mut Layer $(, $a: usize)*) -> i32 {
            wrappers::$call::record([$($a),*], &mut |[$($a),*]| go_on!(layer $call $($a)*))
        }
        $cells[Call::$call as usize] = cell($call as *const c_void, $layer);
    };
}

macro_rules! functions {
    ($($name:ident)*) => { [$(Function::named(c_name(concat!(stringify!($name), "\0")))),*] };
}

macro_rules! tables {
    (calls { $($call:ident $stem:literal $category:ident ($($a:ident : $k:ident),*) [$($length:ident)*];)* }
     large { $($large:ident $large_stem:literal $large_category:ident ($($large_a:ident : $large_k:ident),*) [$($large_length:ident)*];)* }
     c_only { $($c:ident $c_category:ident ($($c_a:ident : $c_k:ident),*);)* }
     others { $($other:ident $other_category:ident $returns:ident ($($other_a:tt)*);)* }) => {
        /// By number, what a wrapper calls on to: the real function, or the chain's entry.
        pub(crate) static NEXT: [Function; Call::COUNT] = functions! { $($call)* $($large)* $($c)* $($other)* };

        /// By number, the real functions.
        pub(super) static REAL: [Function; Call::COUNT] = functions! { $($call)* $($large)* $($c)* $($other)* };

        #[allow(non_snake_case)]
        mod entry {
            use super::*;
            $(entry! { $call ($($a),*) })*
            $(entry! { $large ($($large_a),*) })*
            $(entry! { $c ($($c_a),*) })*
        }

        #[allow(non_snake_case)]
        mod last {
            use super::*;
            $(last! { $call ($($a),*) })*
            $(last! { $large ($($large_a),*) })*
            $(last! { $c ($($c_a),*) })*
        }

        static ENTRIES: [Address; Call::COUNT] = [
            $(Address(entry::$call as *const c_void),)*
            $(Address(entry::$large as *const c_void),)*
            $(Address(entry::$c as *const c_void),)*
            $({ let _ = stringify!($other); Address(null_mut()) },)*
        ];

        static LASTS: [Address; Call::COUNT] = [
            $(Address(last::$call as *const c_void),)*
            $(Address(last::$large as *const c_void),)*
            $(Address(last::$c as *const c_void),)*
            $({ let _ = stringify!($other); Address(null_mut()) },)*
        ];

        /// Puts the recorder, at `layer`, in front of the handlers in `cells`.
        #[allow(non_snake_case)]
        pub(super) fn record_at(cells: &mut [Cell], layer: *mut Layer) {
            $(with_hook! { $category recorder cells layer $call ($($a : $k),*) })*
            $(with_hook! { $large_category recorder cells layer $large ($($large_a : $large_k),*) })*
            cells[Call::MPI_Init as usize] = cell(record_init as *const c_void, layer);
            cells[Call::MPI_Init_thread as usize] = cell(record_init_thread as *const c_void, layer);
        }
    };
}
for_each_mpi_function!(tables);

fn cell(function: *const c_void, layer: *mut Layer) -> Cell {
    // The address of a function in this file is never 0.
    Cell { function: NonNull::new(function.cast_mut()).unwrap_or(NonNull::dangling()), layer: layer.cast() }
}

unsafe extern "C" fn record_init(layer: *mut Layer, argc: usize, argv: usize) -> i32 {
    hooks::initialize(Call::MPI_Init, || go_on!(layer MPI_Init argc argv))
}

unsafe extern "C" fn record_init_thread(
    layer: *mut Layer,
    argc: usize,
    argv: usize,
    required: usize,
    provided: usize,
) -> i32 {
    hooks::initialize(Call::MPI_Init_thread, || go_on!(layer MPI_Init_thread argc argv required provided))
}

/// How the program's calls of this function enter; `None`: no tool can intercept it.
pub(super) fn entrance(call: Call) -> Option<NonNull<c_void>> {
    NonNull::new(ENTRIES[call as usize].0.cast_mut())
}

/// Whether this thread's call is in the chain already.
pub(super) fn is_inside() -> bool {
    INSIDE.with(std::cell::Cell::get)
}

/// From now on the program's calls of this function enter the chain.
pub(super) fn divert(call: Call) {
    if let Some(entry) = entrance(call) {
        // SAFETY: it has the function's prototype, and is part of this library.
        unsafe { NEXT[call as usize].divert(entry) };
    }
}

/// From now on no call does.
pub(super) fn restore() {
    NEXT.iter().for_each(Function::forget);
}

/// The last step of a function; `None`: no tool can intercept it.
pub(super) fn last(call: Call) -> Option<NonNull<c_void>> {
    NonNull::new(LASTS[call as usize].0.cast_mut())
}

/// The table of a chain without tools.
pub(super) fn lasts() -> Box<[Cell]> {
    // Functions that cannot be intercepted are not called through the table either.
    let stand_in = NonNull::new(last::MPI_Initialized as *mut c_void).unwrap_or(NonNull::dangling());
    Call::all().map(|call| Cell { function: last(call).unwrap_or(stand_in), layer: null_mut() }).collect()
}

/// The functions' C names by number.
pub(super) fn names() -> *const *const c_char {
    static NAMES: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();
    NAMES
        .get_or_init(|| REAL.iter().map(|function| function.name().as_ptr() as usize).collect())
        .as_ptr()
        .cast()
}

/// What calls a handler for any function, by the number of the function's arguments.
pub(super) fn any(arguments: usize) -> Option<NonNull<c_void>> {
    NonNull::new(ANY.get(arguments)?.0.cast_mut())
}

macro_rules! any_handlers {
    ($($name:ident($($a:ident)*);)*) => {
        $(
            unsafe extern "C" fn $name(seat: *const Seat $(, $a: usize)*) -> i32 {
                let mut words = [$($a),*];
                // SAFETY: the seat that the cell names lives for ever.
                let seat = unsafe { &*seat };
                let mut call = AnyCall { number: seat.number, count: words.len() as u32, words: words.as_mut_ptr() };
                // SAFETY: the tool's handler and its own layer.
                unsafe { (seat.any)(seat.layer, &raw mut call) }
            }
        )*
        static ANY: &[Address] = &[$(Address($name as *const c_void)),*];
    };
}
any_handlers! {
    any_0();
    any_1(a);
    any_2(a b);
    any_3(a b c);
    any_4(a b c d);
    any_5(a b c d e);
    any_6(a b c d e f);
    any_7(a b c d e f g);
    any_8(a b c d e f g h);
    any_9(a b c d e f g h i);
    any_10(a b c d e f g h i j);
    any_11(a b c d e f g h i j k);
    any_12(a b c d e f g h i j k l);
    any_13(a b c d e f g h i j k l m);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_returns_a_code_has_both_ends_and_a_handler() {
        for call in Call::all() {
            let group = call.prototype().group;
            let interceptable = group != mpi_abi::prototypes::Group::Others;
            assert_eq!(last(call).is_some(), interceptable, "{}", call.name());
            assert_eq!(!ENTRIES[call as usize].0.is_null(), interceptable, "{}", call.name());
            assert!(!interceptable || any(call.prototype().parameters.len()).is_some(), "{}", call.name());
            assert_eq!(REAL[call as usize].name().to_str(), Ok(call.name()));
        }
    }
}
