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
    const IN_PLACE: bool = true;

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
    unsafe fn handle_at(abi: &Abi, _kind: Kind, word: usize, index: usize) -> usize {
        // SAFETY: the contract.
        unsafe { abi.read_handle((word as *const u8).add(index * abi.handle_size)) }
    }

    #[inline(always)]
    unsafe fn handles(abi: &Abi, _kind: Kind, word: usize, count: usize, list: &mut Vec<usize>) {
        // As the other languages' but that the width is asked for once.
        // SAFETY: the contract.
        unsafe {
            match abi.handle_size {
                4 => list.extend((0..count).map(|i| *(word as *const u32).add(i) as usize)),
                _ => list.extend((0..count).map(|i| *(word as *const usize).add(i))),
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
    const IN_PLACE: bool = false;

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
        to_c(abi, kind, unsafe { *(word as *const i32) })
    }

    unsafe fn handle_at(abi: &Abi, kind: Kind, word: usize, index: usize) -> usize {
        // SAFETY: the contract: an array of INTEGERs.
        to_c(abi, kind, unsafe { *(word as *const i32).add(index) })
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

/// The C handle of a Fortran one.
fn to_c(abi: &Abi, kind: Kind, handle: i32) -> usize {
    // MPICH's handles are the same integers.
    if abi.flavour == Flavour::Mpich {
        return handle as u32 as usize;
    }
    static COMM: Function = Function::named(c"PMPI_Comm_f2c");
    static TYPE: Function = Function::named(c"PMPI_Type_f2c");
    static REQUEST: Function = Function::named(c"PMPI_Request_f2c");
    static MESSAGE: Function = Function::named(c"PMPI_Message_f2c");
    let function = match kind {
        Kind::Comm | Kind::CommPtr => &COMM,
        Kind::Datatype | Kind::DatatypePtr | Kind::DatatypeArray => &TYPE,
        Kind::Message | Kind::MessagePtr => &MESSAGE,
        _ => &REQUEST,
    };
    // SAFETY: these take an int and return a handle, which is a pointer in the ABIs other than MPICH's.
    unsafe { function.call_or([handle as usize], 0) }
}

/// Addresses that mean something by themselves.
#[derive(Debug, Default)]
struct Special {
    /// `MPI_STATUS_IGNORE`, `MPI_STATUSES_IGNORE`.
    ignored: Vec<usize>,
    /// `MPI_IN_PLACE`.
    in_place: Vec<usize>,
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
        };
        special.ignored.extend(behind(&[c"MPI_F_STATUS_IGNORE", c"MPI_F_STATUSES_IGNORE"]));
        special.in_place.extend(behind(&[c"MPIR_F_MPI_IN_PLACE"]));
        special.ignored.retain(|address| *address != 0);
        special.in_place.retain(|address| *address != 0);
        special
    })
}
