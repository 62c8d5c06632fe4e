//! Hides exported names that the program's MPI lacks: programs test for them with weak references or `dlsym`.
//!
//! The MPI is not known when this library is loaded; interpreters load it much later. Therefore the symbols of these
//! names become *indirect functions* (`STT_GNU_IFUNC`): whenever the loader binds a reference, it calls a resolver
//! for the address, and the resolver returns null if no loaded object defines the name. In the file the symbols are
//! ordinary functions; this module changes their type in memory, because the loader rejects references to indirect
//! functions of an object that is not relocated yet, and it relocates the libraries of a program before preloaded
//! ones (those libraries do find the names). The program itself is relocated last.

use crate::machine::MARK;
use mpi_abi::symbols::{SymbolTable, search_loaded_objects};
use rustix::mm::{MprotectFlags, mprotect};
use std::ffi::c_void;

unsafe extern "C" {
    /// Defined by the linker: the start of this object and of its dynamic section.
    static __ehdr_start: libc::Elf64_Ehdr;
    static _DYNAMIC: u8;
}

/// Hides names at the program's start, when all that it is linked to is relocated.
pub(crate) extern "C" fn hide_at_start() {
    // Only an MPI has this name. Without one the names stay: what is loaded later may have it.
    if search_loaded_objects(b"PMPI_Init").is_some() {
        hide_missing_names();
    }
}

/// Symbol types.
const FUNCTION: u8 = 2;
const INDIRECT: u8 = 10;

/// Changes the type of symbols whose stubs have a mark. Called by the loader: calls no function outside this library.
pub(crate) fn change_types() {
    each_symbol(FUNCTION, |base, _, symbol| {
        let code = (base + symbol.st_value as usize) as *const u8;
        // SAFETY: a function of this object, longer than the mark and the distance.
        unsafe {
            if (0..MARK.len()).all(|byte| *code.add(byte) == MARK[byte]) {
                symbol.st_value += u64::from(code.add(MARK.len()).cast::<u32>().read_unaligned());
                symbol.st_info = symbol.st_info & !15 | INDIRECT;
            }
        }
    });
}

/// Removes the names that MPI lacks from the symbol table, once MPI is loaded: at the program's start, or when it
/// initialises MPI. Some programs, Python's `ctypes` among them, require that `dlsym` reports an error instead of
/// returning null.
pub(crate) fn hide_missing_names() {
    each_symbol(INDIRECT, |_, table, symbol| {
        if search_loaded_objects(table.name(symbol).to_bytes()).is_none() {
            (symbol.st_value, symbol.st_shndx) = (0, 0);
        }
    });
}

/// Calls a function, which may change the symbol, for each symbol of a type.
fn each_symbol(kind: u8, change: impl Fn(usize, &SymbolTable, &mut libc::Elf64_Sym)) {
    // SAFETY: the linker's own words of this object.
    let (base, table) = unsafe {
        let base = &raw const __ehdr_start as usize;
        (base, SymbolTable::of(base, &raw const _DYNAMIC as usize))
    };
    let Some(table) = table else { return };
    let (symbols, count) = table.defined();
    // The largest page size; the data below in the same page belongs to this object, too.
    const PAGE: usize = 1 << 16;
    let start = (symbols as usize / PAGE * PAGE).max(base);
    let length = symbols.wrapping_add(count) as usize - start;
    // If the pages may contain code, the symbols stay unchanged and the names visible.
    // SAFETY: pages of this object's read-only data. This `mprotect` is a system call without the C library.
    let protect = |flags| unsafe { mprotect(start as *mut c_void, length, flags) };
    if is_executable(base, start) || protect(MprotectFlags::READ | MprotectFlags::WRITE).is_err() {
        return;
    }
    for at in 0..count {
        // SAFETY: one of `count` symbols of this object, writable now.
        let symbol = unsafe { &mut *symbols.add(at) };
        if symbol.st_info & 15 == kind && symbol.st_shndx != 0 {
            change(base, &table, symbol);
        }
    }
    let _ = protect(MprotectFlags::READ);
}

/// Whether the segment at an address may contain code.
fn is_executable(base: usize, address: usize) -> bool {
    // SAFETY: this object's header and the number of program headers that it states.
    unsafe {
        let header = &*(base as *const libc::Elf64_Ehdr);
        let first = (base + header.e_phoff as usize) as *const libc::Elf64_Phdr;
        (0..usize::from(header.e_phnum)).map(|at| &*first.add(at)).any(|segment| {
            let start = base + segment.p_vaddr as usize;
            segment.p_type == libc::PT_LOAD
                && (start..start + segment.p_memsz as usize).contains(&address)
                && segment.p_flags & libc::PF_X != 0
        })
    }
}
