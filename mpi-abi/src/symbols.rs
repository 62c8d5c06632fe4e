//! Finds the real MPI's functions and data in the process, however it was loaded.
//!
//! Functions are looked up in the objects *after* this one (`RTLD_NEXT`), so that a preload library that defines `MPI_Send` finds
//! the function that it hides. Data is looked up in the global scope (`RTLD_DEFAULT`): a program that is not position-independent
//! has its own copy of `ompi_mpi_comm_world` (a COPY relocation), which the library uses and `RTLD_NEXT` would skip. If both fail,
//! the loaded objects are searched one by one, because an interpreter may have opened its MPI module without `RTLD_GLOBAL`.
//!
//! Nothing happens before the first look-up, so this code is harmless in processes without MPI.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the real MPI, looked up at its first use.
///
/// After that a call costs one atomic load and an indirect call. Intended as a `static`; any thread may use it at any time.
pub struct Function {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Function {
    /// A function with this name, not looked up yet.
    pub const fn named(name: &'static CStr) -> Self {
        Function { name, address: AtomicPtr::new(null_mut()) }
    }

    /// The address; `None` if no loaded library has the function. A failure is not stored, because the library may be loaded later.
    #[inline(always)]
    pub fn get(&self) -> Option<NonNull<c_void>> {
        // Acquire pairs with the Release below. Only the address of code is published, which the loader made visible before.
        NonNull::new(self.address.load(Ordering::Acquire)).or_else(|| self.look_up())
    }

    /// Calls the function; `None` if no loaded library has it.
    ///
    /// # Safety
    /// The function's prototype must have as many parameters as there are words, all integers or pointers; the words
    /// must be valid arguments; it must return an `R`.
    #[inline(always)]
    pub unsafe fn call<R, const N: usize>(&self, words: [usize; N]) -> Option<R>
    where
        [usize; N]: Words,
    {
        // SAFETY: the contract.
        self.get().map(|address| unsafe { words.pass_to(address) })
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> Option<NonNull<c_void>> {
        let found = function(self.name)?;
        // Threads that race here store the same address.
        self.address.store(found.as_ptr(), Ordering::Release);
        Some(found)
    }
}

/// Arguments of a C function, all integers or pointers.
pub trait Words {
    /// Calls the function at `address`. Exceptions pass through.
    ///
    /// # Safety
    /// As [`Function::call`]; there may be more words than parameters.
    unsafe fn pass_to<R>(self, address: NonNull<c_void>) -> R;
}

macro_rules! words {
    ($($count:literal: $($word:ident)*;)*) => { $(
        impl Words for [usize; $count] {
            #[inline(always)]
            unsafe fn pass_to<R>(self, address: NonNull<c_void>) -> R {
                let [$($word),*] = self;
                // SAFETY: by the contract, the calling convention treats the function as one of this type.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($(word!($word)),*) -> R =
                        std::mem::transmute(address.as_ptr());
                    function($($word),*)
                }
            }
        }
    )* };
}
macro_rules! word {
    ($name:ident) => {
        usize
    };
}
words! {
    0: ;
    1: a;
    2: a b;
    3: a b c;
    4: a b c d;
    5: a b c d e;
    6: a b c d e f;
    7: a b c d e f g;
    8: a b c d e f g h;
    9: a b c d e f g h i;
    10: a b c d e f g h i j;
    11: a b c d e f g h i j k;
    12: a b c d e f g h i j k l;
    13: a b c d e f g h i j k l m;
    15: a b c d e f g h i j k l m n o;
}

/// The largest number of words of an MPI function, Fortran forms included.
pub const MOST_WORDS: usize = 15;

/// Calls the function at `address` with at least the first `count` words.
///
/// # Safety
/// As [`Function::call`], for a function that returns an `i32` or nothing; in the latter case the result is undefined.
#[inline(always)]
pub unsafe fn call_with(address: NonNull<c_void>, words: &[usize; MOST_WORDS], count: usize) -> i32 {
    // Surplus words cost little, those in registers nothing.
    let [a, b, c, d, e, f, g, h, i, j, ..] = *words;
    // SAFETY: the contract.
    unsafe {
        match count {
            0..=6 => [a, b, c, d, e, f].pass_to(address),
            7 => [a, b, c, d, e, f, g].pass_to(address),
            8..=10 => [a, b, c, d, e, f, g, h, i, j].pass_to(address),
            _ => words.pass_to(address),
        }
    }
}

/// Looks a function up in the objects after this one, then in every loaded object.
pub fn function(name: &CStr) -> Option<NonNull<c_void>> {
    look_up(libc::RTLD_NEXT, name)
}

/// Looks data up in the global scope, then in every loaded object.
pub fn data(name: &CStr) -> Option<NonNull<c_void>> {
    look_up(libc::RTLD_DEFAULT, name)
}

fn look_up(scope: *mut c_void, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: `name` is a C string; both scopes are valid pseudo-handles in any dynamic program.
    NonNull::new(unsafe { libc::dlsym(scope, name.as_ptr()) })
        .or_else(|| search_loaded_objects(name.to_bytes()))
}

/// Looks a name up in the symbol tables of all loaded objects except this one, in those loaded later first.
///
/// An object loaded earlier may be another preload library that calls this one as its next; calling it back would
/// recurse forever. This function does not allocate and calls only `dl_iterate_phdr`, so the loader may call it.
pub fn search_loaded_objects(name: &[u8]) -> Option<NonNull<c_void>> {
    let own = function as fn(&CStr) -> Option<NonNull<c_void>> as usize;
    let (mut is_after_own, mut before, mut after) = (false, None, None);
    each_loaded_object(&mut |object| {
        if object.segments(libc::PT_LOAD).any(|segment| segment.contains(&own)) {
            is_after_own = true;
            return false;
        }
        // SAFETY: the dynamic section of a loaded object.
        let table = object
            .segments(libc::PT_DYNAMIC)
            .find_map(|section| unsafe { SymbolTable::of(object.base(), section.start) });
        let place = if is_after_own { &mut after } else { &mut before };
        *place = place.or(table.and_then(|table| table.find(name)));
        after.is_some()
    });
    after.or(before)
}

/// An object that the loader has loaded.
#[derive(Debug)]
pub struct LoadedObject<'a>(&'a libc::dl_phdr_info);

impl LoadedObject<'_> {
    /// The address to which addresses in the file are relative.
    fn base(&self) -> usize {
        self.0.dlpi_addr as usize
    }

    /// The file's name; empty for the program.
    pub fn name(&self) -> &CStr {
        // SAFETY: null, or a C string of the loader's.
        if self.0.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(self.0.dlpi_name) } }
    }

    /// The addresses of the segments of a type.
    pub fn segments(&self, kind: u32) -> impl Iterator<Item = Range<usize>> {
        // SAFETY: as many headers as the loader says.
        let headers = unsafe { std::slice::from_raw_parts(self.0.dlpi_phdr, self.0.dlpi_phnum.into()) };
        headers.iter().filter(move |header| header.p_type == kind).map(|header| {
            let start = self.base() + header.p_vaddr as usize;
            start..start + header.p_memsz as usize
        })
    }
}

/// Calls a function for each loaded object, in the order of loading, until it returns true.
pub fn each_loaded_object(mut visit: &mut dyn FnMut(&LoadedObject<'_>) -> bool) {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, visit: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info` and the pointer given below.
        unsafe {
            c_int::from((*visit.cast::<&mut dyn FnMut(&LoadedObject<'_>) -> bool>())(&LoadedObject(&*info)))
        }
    }
    // SAFETY: `look` has the prototype that the loader calls, and `visit` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut visit).cast()) };
}

/// The symbol table of a loaded object.
#[derive(Clone, Copy, Debug)]
pub struct SymbolTable {
    base: usize,
    strings: usize,
    symbols: *mut libc::Elf64_Sym,
    /// The GNU hash table, which all current linkers write.
    hash: *const u32,
}

impl SymbolTable {
    /// The table of the object at `base` with this dynamic section.
    ///
    /// # Safety
    /// The object must be loaded and stay loaded.
    pub unsafe fn of(base: usize, dynamic: usize) -> Option<Self> {
        /// An entry of a dynamic section.
        #[repr(C)]
        struct Dynamic {
            tag: i64,
            value: usize,
        }
        const END: i64 = 0;
        const STRINGS: i64 = 5;
        const SYMBOLS: i64 = 6;
        const GNU_HASH: i64 = 0x6fff_fef5;
        let (mut strings, mut symbols, mut hash) = (0, 0, 0);
        let mut at = dynamic as *const Dynamic;
        // SAFETY: the section ends with an entry that says so.
        while let Some(entry) = unsafe { at.as_ref() }.filter(|entry| entry.tag != END) {
            // Some loaders relocate these addresses in memory.
            let address = if entry.value < base { base + entry.value } else { entry.value };
            match entry.tag {
                STRINGS => strings = address,
                SYMBOLS => symbols = address,
                GNU_HASH => hash = address,
                _ => {}
            }
            at = at.wrapping_add(1);
        }
        let found = Self { base, strings, symbols: symbols as *mut _, hash: hash as *const u32 };
        (strings != 0 && symbols != 0 && hash != 0).then_some(found)
    }

    /// The number of buckets, the first hashed symbol, and the arrays of buckets and chains.
    fn parts(&self) -> (usize, usize, *const u32, *const u32) {
        // SAFETY: a header of four words, then the filter, whose words have 64 bits.
        let [buckets, first, words] = [0, 1, 2].map(|at| unsafe { *self.hash.add(at) } as usize);
        let bucket = self.hash.wrapping_add(4 + 2 * words);
        (buckets, first, bucket, bucket.wrapping_add(buckets))
    }

    /// The hashed symbols, which are the defined ones. Calls no other function.
    pub fn defined(&self) -> (*mut libc::Elf64_Sym, usize) {
        let (buckets, first, bucket, chain) = self.parts();
        // SAFETY: within the tables; the last chain ends with an odd word.
        unsafe {
            let mut last = 0;
            for at in 0..buckets {
                last = last.max(*bucket.add(at) as usize);
            }
            if last < first {
                return (self.symbols, 0);
            }
            while *chain.add(last - first) & 1 == 0 {
                last += 1;
            }
            (self.symbols.add(first), last + 1 - first)
        }
    }

    /// The name of a symbol.
    pub fn name(&self, symbol: &libc::Elf64_Sym) -> &CStr {
        // SAFETY: in the table of names, which are C strings.
        unsafe { CStr::from_ptr((self.strings + symbol.st_name as usize) as *const c_char) }
    }

    /// The address of the symbol with this name, if it is defined.
    fn find(&self, name: &[u8]) -> Option<NonNull<c_void>> {
        let (buckets, first, bucket, chain) = self.parts();
        let hash = name.iter().fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        // SAFETY: within the tables.
        let mut index = unsafe { *bucket.add((hash as usize).checked_rem(buckets)?) } as usize;
        while index >= first {
            // SAFETY: as above.
            let (symbol, other) = unsafe { (&*self.symbols.add(index), *chain.add(index - first)) };
            if hash | 1 == other | 1 && self.name(symbol).to_bytes() == name {
                let is_defined = symbol.st_shndx != 0 && symbol.st_value != 0;
                let address = (self.base + symbol.st_value as usize) as *mut c_void;
                return is_defined.then(|| NonNull::new(address)).flatten();
            }
            if other & 1 == 1 {
                break;
            }
            index += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbol_tables_are_searched_as_the_loader_does() {
        for name in [c"getpid", c"dlsym", c"pthread_create", c"environ"] {
            // SAFETY: a C string.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            assert_eq!(search_loaded_objects(name.to_bytes()), NonNull::new(address), "{name:?}");
        }
        assert_eq!(search_loaded_objects(b"getpi"), None);
    }
}
