//! How arguments arrive: in C as words, in Fortran as addresses of what C has, with handles that are integers.

use crate::wrap::Language;
use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::symbols::{self, Function};
use mpi_abi::tables::Flavour;
use std::ffi::CStr;
use std::sync::OnceLock;

/// C.
pub(crate) struct C;

impl Language for C {
    const FIRST_INDEX: i32 = 0;

    #[inline(always)]
    unsafe fn int(word: usize) -> i32 {
        word as u32 as i32
    }

    #[inline(always)]
    unsafe fn long(word: usize) -> i64 {
        word as i64
    }

    #[inline(always)]
    unsafe fn handle(abi: &Abi, _kind: Kind, word: usize) -> usize {
        word & abi.handle_mask()
    }

    #[inline(always)]
    unsafe fn raw_handle(abi: &Abi, word: usize) -> u64 {
        (word & abi.handle_mask()) as u64
    }

    #[inline(always)]
    unsafe fn handle_at(abi: &Abi, _kind: Kind, word: usize, index: usize) -> usize {
        // SAFETY: the contract.
        unsafe {
            match abi.has_int_handles() {
                true => *(word as *const u32).add(index) as usize,
                false => *(word as *const usize).add(index),
            }
        }
    }

    #[inline(always)]
    unsafe fn handles(abi: &Abi, _kind: Kind, word: usize, count: usize, list: &mut Vec<usize>) {
        // As the other languages' but that the width is asked for once.
        // SAFETY: the contract.
        unsafe {
            match abi.has_int_handles() {
                true => list.extend((0..count).map(|i| *(word as *const u32).add(i) as usize)),
                false => list.extend((0..count).map(|i| *(word as *const usize).add(i))),
            }
        }
    }

    #[inline(always)]
    fn ignores_status(abi: &Abi, word: usize) -> bool {
        word == abi.constants.status_ignore
    }

    #[inline(always)]
    fn ignores_statuses(abi: &Abi, word: usize) -> bool {
        word == abi.constants.statuses_ignore
    }

    #[inline(always)]
    fn is_in_place(abi: &Abi, word: usize) -> bool {
        word == abi.constants.in_place
    }
}

/// Fortran: `mpif.h`, `use mpi` and `use mpi_f08`, whose handle types are one `INTEGER` each.
pub(crate) struct Fortran;

impl Language for Fortran {
    const FIRST_INDEX: i32 = 1;

    unsafe fn int(word: usize) -> i32 {
        // SAFETY: the contract: the address of an INTEGER.
        unsafe { *(word as *const i32) }
    }

    unsafe fn long(word: usize) -> i64 {
        // SAFETY: the contract: the address of an eight-byte INTEGER.
        unsafe { *(word as *const i64) }
    }

    unsafe fn handle(abi: &Abi, kind: Kind, word: usize) -> usize {
        // SAFETY: the contract: the address of an INTEGER.
        c_handle(abi, kind, unsafe { *(word as *const i32) })
    }

    unsafe fn raw_handle(_abi: &Abi, word: usize) -> u64 {
        // SAFETY: the contract: the address of an INTEGER.
        u64::from(unsafe { *(word as *const u32) })
    }

    unsafe fn handle_at(abi: &Abi, kind: Kind, word: usize, index: usize) -> usize {
        // SAFETY: the contract: an array of INTEGERs.
        c_handle(abi, kind, unsafe { *(word as *const i32).add(index) })
    }

    fn ignores_status(_abi: &Abi, word: usize) -> bool {
        special_addresses().ignored.contains(&word)
    }

    fn ignores_statuses(abi: &Abi, word: usize) -> bool {
        Self::ignores_status(abi, word)
    }

    fn is_in_place(_abi: &Abi, word: usize) -> bool {
        special_addresses().in_place.contains(&word)
    }
}

/// What converts the handles of each kind: the C library has a pair of functions for each.
macro_rules! conversions {
    ($($($kind:ident)|+: $from:literal $to:literal;)*) => {
        fn converters(kind: Kind) -> Option<(&'static Function, &'static Function)> {
            match kind {
                $($(Kind::$kind)|+ => {
                    static FROM: Function = Function::named($from);
                    static TO: Function = Function::named($to);
                    Some((&FROM, &TO))
                })*
                _ => None,
            }
        }
    };
}
conversions! {
    Comm | CommPtr: c"PMPI_Comm_f2c" c"PMPI_Comm_c2f";
    Datatype | DatatypePtr | DatatypeArray: c"PMPI_Type_f2c" c"PMPI_Type_c2f";
    Message | MessagePtr: c"PMPI_Message_f2c" c"PMPI_Message_c2f";
    Request | RequestPtr | RequestArray: c"PMPI_Request_f2c" c"PMPI_Request_c2f";
    Op | OpPtr: c"PMPI_Op_f2c" c"PMPI_Op_c2f";
    Group | GroupPtr: c"PMPI_Group_f2c" c"PMPI_Group_c2f";
    Win | WinPtr: c"PMPI_Win_f2c" c"PMPI_Win_c2f";
    File | FilePtr: c"PMPI_File_f2c" c"PMPI_File_c2f";
    Info | InfoPtr | InfoArray: c"PMPI_Info_f2c" c"PMPI_Info_c2f";
    Errhandler | ErrhandlerPtr: c"PMPI_Errhandler_f2c" c"PMPI_Errhandler_c2f";
}

/// Whether the handles of Fortran and C are the same integers.
fn are_integers(abi: &Abi, kind: Kind) -> bool {
    abi.flavour == Flavour::Mpich && !matches!(kind, Kind::File | Kind::FilePtr)
}

/// The C handle of a Fortran one.
pub(crate) fn c_handle(abi: &Abi, kind: Kind, handle: i32) -> usize {
    if are_integers(abi, kind) {
        return handle as u32 as usize;
    }
    let Some((from, _)) = converters(kind) else { return 0 };
    // SAFETY: these take an int and return a handle, which is a pointer in the ABIs other than MPICH's.
    unsafe { from.call_or([handle as usize], 0) }
}

/// The Fortran handle of a C one.
pub(crate) fn fortran_handle(abi: &Abi, kind: Kind, handle: usize) -> i32 {
    if are_integers(abi, kind) {
        return handle as u32 as i32;
    }
    // SAFETY: these take a handle and return an int.
    converters(kind).map_or(0, |(_, to)| unsafe { to.call_or([handle], 0) })
}

/// Whether the address of a buffer is `MPI_BOTTOM`.
pub(crate) fn is_bottom(address: usize) -> bool {
    special_addresses().bottom.contains(&address)
}

/// Addresses that mean something by themselves.
#[derive(Debug, Default)]
struct Special {
    /// `MPI_STATUS_IGNORE`, `MPI_STATUSES_IGNORE`.
    ignored: Vec<usize>,
    /// `MPI_IN_PLACE`.
    in_place: Vec<usize>,
    /// `MPI_BOTTOM`.
    bottom: Vec<usize>,
}

/// Looked up once: there are several because each Fortran interface has its own variables.
fn special_addresses() -> &'static Special {
    static SPECIAL: OnceLock<Special> = OnceLock::new();
    SPECIAL.get_or_init(|| {
        let variables = |names: &[&CStr]| -> Vec<usize> {
            names
                .iter()
                .filter_map(|name| symbols::data(name))
                .map(|address| address.as_ptr() as usize)
                .collect()
        };
        // These are pointers to the variables.
        let behind = |names: &[&CStr]| -> Vec<usize> {
            // SAFETY: each is a pointer variable of the MPI library.
            variables(names).into_iter().map(|address| unsafe { *(address as *const usize) }).collect()
        };
        let mut special = Special {
            ignored: variables(&[
                c"mpi_fortran_status_ignore_",
                c"mpi_fortran_statuses_ignore_",
                c"MPIR_F08_MPI_STATUS_IGNORE_OBJ",
                c"MPIR_F08_MPI_STATUSES_IGNORE_OBJ",
            ]),
            in_place: variables(&[c"mpi_fortran_in_place_", c"MPIR_F08_MPI_IN_PLACE"]),
            bottom: variables(&[c"mpi_fortran_bottom_", c"MPIR_F08_MPI_BOTTOM"]),
        };
        special.ignored.extend(behind(&[c"MPI_F_STATUS_IGNORE", c"MPI_F_STATUSES_IGNORE"]));
        special.in_place.extend(behind(&[c"MPIR_F_MPI_IN_PLACE"]));
        special.bottom.extend(behind(&[c"MPIR_F_MPI_BOTTOM"]));
        special.ignored.retain(|address| *address != 0);
        special.in_place.retain(|address| *address != 0);
        special.bottom.retain(|address| *address != 0);
        special
    })
}
