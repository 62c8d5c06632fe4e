//! The constants, type layouts and function types in the `mpi.h` of an installed MPI. `tests/` compares the tables of
//! `mpi-abi` with them.

use std::any::type_name;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};

use mpi_abi::prototypes::Call;

/// The types of a function's parameters and of its result, as written in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The fixed parameters, in order.
    pub parameters: Vec<&'static str>,
    /// What it returns.
    pub returns: &'static str,
}

/// A function type with a signature.
pub trait Function {
    /// The types of the parameters and of the result.
    fn signature(self) -> Signature;
}

/// Implements the trait for functions with at most as many parameters as names.
macro_rules! functions {
    ($($first:ident $($rest:ident)*)?) => {
        impl<R, $($first, $($rest),*)?> Function for unsafe extern "C" fn($($first, $($rest),*)?) -> R {
            fn signature(self) -> Signature {
                Signature {
                    parameters: vec![$(type_name::<$first>(), $(type_name::<$rest>()),*)?],
                    returns: type_name::<R>(),
                }
            }
        }
        $(functions!($($rest)*);)?
    };
}
functions!(A B C D E F G H I J K L M);

impl<R, A> Function for unsafe extern "C" fn(A, ...) -> R {
    fn signature(self) -> Signature {
        Signature { parameters: vec![type_name::<A>()], returns: type_name::<R>() }
    }
}

/// The functions of the table that `mpi.h` declares, with their types there.
pub fn signatures() -> Vec<(Call, Signature)> {
    include!(concat!(env!("OUT_DIR"), "/signatures.rs"))
}

#[repr(C)]
struct Entry {
    name: *const c_char,
    value: i64,
}

unsafe extern "C" {
    static oracle_layout: [Entry; 0];
    fn oracle_value(index: c_int, name: *mut *const c_char) -> i64;
}

/// Every constant and predefined handle by its C name, as a signed number.
pub fn constants() -> BTreeMap<&'static str, i64> {
    let mut all = BTreeMap::new();
    for index in 0.. {
        let mut name = std::ptr::null();
        // SAFETY: the C function writes a string literal's address, or null beyond the last.
        let value = unsafe { oracle_value(index, &raw mut name) };
        if name.is_null() {
            break;
        }
        // SAFETY: a string literal of the C file.
        all.insert(unsafe { CStr::from_ptr(name) }.to_str().expect("names are ASCII"), value);
    }
    all
}

/// Sizes and offsets by name; several under `status.hidden`, in the order of the fields.
pub fn layout() -> Vec<(&'static str, usize)> {
    let mut all = Vec::new();
    // SAFETY: the C array ends with a null name; names are string literals.
    unsafe {
        let mut entry = (&raw const oracle_layout).cast::<Entry>();
        while !(*entry).name.is_null() {
            let name = CStr::from_ptr((*entry).name).to_str().expect("names are ASCII");
            all.push((name, usize::try_from((*entry).value).expect("sizes are positive")));
            entry = entry.add(1);
        }
    }
    all
}
