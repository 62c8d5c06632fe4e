//! A preload library that wraps every MPI function of the table and only hands the call on: what the table and
//! the look-up cost by themselves, and that a real program does not notice. Not linked with an MPI.

#![allow(missing_docs)]

use std::ffi::CStr;

use mpi_abi::detect::Abi;
use mpi_abi::symbols::Function;

macro_rules! wrap {
    ($name:ident($($a:ident),*)) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: usize),*) -> i32 {
            static NEXT: Function = Function::named(
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name without an inner NUL"),
                },
            );
            // SAFETY: the arguments of the program's own call, to the function that it meant.
            unsafe { NEXT.call_or([$($a),*], mpi_abi::ERR_NO_SUCH_FUNCTION) }
        }
    };
}

macro_rules! wrap_all {
    (calls { $($call:ident $call_stem:literal $call_category:ident ($($call_p:ident : $call_k:ident),*) [$($l:ident)*];)* }
     large { $($large:ident $large_stem:literal $large_category:ident ($($large_p:ident : $large_k:ident),*) [$($ll:ident)*];)* }
     c_only { $($c:ident $c_category:ident ($($c_p:ident : $c_k:ident),*);)* }
     others { $($others:tt)* }) => {
        #[allow(non_snake_case, clippy::missing_safety_doc)]
        pub mod wrappers {
            use super::*;
            $(wrap!($call($($call_p),*));)*
            $(wrap!($large($($large_p),*));)*
            $(wrap!($c($($c_p),*));)*
        }
    };
}
mpi_abi::for_each_mpi_function!(wrap_all);

/// What this library, from outside, takes for `MPI_COMM_WORLD`; 0 where there is no MPI.
#[unsafe(no_mangle)]
pub extern "C" fn passthrough_comm_world() -> usize {
    Abi::detect().map_or(0, |abi| abi.comm_world().word())
}
