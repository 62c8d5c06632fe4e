//! Finds the real MPI's functions and data in the process, however it was loaded.
//!
//! Functions are looked up *behind* the object this code is in (`RTLD_NEXT`): a preload library that defines
//! `MPI_Send` finds the one it hides. Data is looked up from the start (`RTLD_DEFAULT`): a program that is not
//! position-independent holds its own copy of `ompi_mpi_comm_world` (a COPY relocation) and the library uses that
//! copy, which `RTLD_NEXT` would skip. Where neither finds anything, the loaded objects are searched one by one:
//! an interpreter opens its MPI module without `RTLD_GLOBAL`, and the linker's global scope never sees it.
//!
//! Nothing happens before the first look-up, so the code is harmless in processes without MPI.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the real MPI, looked up at its first use and remembered.
///
/// Calling it afterwards costs one atomic load and an indirect call. Meant to be a `static` beside the wrapper
/// of the same name; any thread may use it at any time.
pub struct Function {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Function {
    /// The function of this name, not yet looked up.
    pub const fn named(name: &'static CStr) -> Self {
        Function { name, address: AtomicPtr::new(null_mut()) }
    }

    /// The name it is looked up by.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Its address, or `None` where no loaded library has it.
    ///
    /// A failure is not remembered: the library may be loaded later.
    #[inline(always)]
    pub fn get(&self) -> Option<NonNull<c_void>> {
        self.known().or_else(|| self.look_up())
    }

    /// Calls it with arguments as they came; `None` where no loaded library has it.
    ///
    /// # Safety
    /// The function's C prototype must have as many parameters as there are words, each of them an integer or a
    /// pointer, the words must be valid for it, and it must return an `R`.
    #[inline(always)]
    pub unsafe fn call<R, const N: usize>(&self, words: [usize; N]) -> Option<R>
    where
        [usize; N]: Words,
    {
        // SAFETY: the contract.
        self.known().or_else(|| self.look_up()).map(|address| unsafe { words.pass_to(address) })
    }

    /// Calls it with arguments as they came; gives `missing` where no loaded library has it.
    ///
    /// At the end of a wrapper this is a load, a test and a jump: the arguments stay where the caller put them.
    ///
    /// # Safety
    /// As [`Function::call`].
    #[inline(always)]
    pub unsafe fn call_or<R, const N: usize>(&self, words: [usize; N], missing: R) -> R
    where
        [usize; N]: Words,
    {
        match self.known() {
            // SAFETY: the contract.
            Some(address) => unsafe { words.pass_to(address) },
            // SAFETY: the contract.
            None => unsafe { words.look_up_and_pass(self, missing) },
        }
    }

    /// From now on it is this function.
    ///
    /// # Safety
    /// It must have the prototype of the one that the name stands for, and stay loaded.
    pub unsafe fn divert(&self, address: NonNull<c_void>) {
        self.address.store(address.as_ptr(), Ordering::Release);
    }

    /// It is looked up again when it is needed next.
    pub fn forget(&self) {
        self.address.store(null_mut(), Ordering::Release);
    }

    #[inline(always)]
    fn known(&self) -> Option<NonNull<c_void>> {
        // Acquire pairs with the Release below; what is published is only the address of code that the
        // loader made visible before it answered.
        NonNull::new(self.address.load(Ordering::Acquire))
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> Option<NonNull<c_void>> {
        let found = function(self.name)?;
        // Two threads may both get here; they store the same address.
        self.address.store(found.as_ptr(), Ordering::Release);
        Some(found)
    }
}

/// Arguments of a C function, each an integer or a pointer: `[usize; N]`, `N` up to 14.
pub trait Words {
    /// Calls the function at `address` with them.
    ///
    /// # Safety
    /// As [`Function::call`].
    unsafe fn pass_to<R>(self, address: NonNull<c_void>) -> R;

    /// Looks the function up and calls it with them; gives `missing` where no loaded library has it.
    ///
    /// # Safety
    /// As [`Function::call`].
    unsafe fn look_up_and_pass<R>(self, function: &Function, missing: R) -> R;
}

macro_rules! words {
    ($($count:literal: $($word:ident)*;)*) => { $(
        impl Words for [usize; $count] {
            #[inline(always)]
            unsafe fn pass_to<R>(self, address: NonNull<c_void>) -> R {
                let [$($word),*] = self;
                // SAFETY: by the contract this is the function's type, as far as the calling convention sees.
                unsafe {
                    let function: unsafe extern "C" fn($(word!($word)),*) -> R = std::mem::transmute(address.as_ptr());
                    function($($word),*)
                }
            }

            #[inline(always)]
            unsafe fn look_up_and_pass<R>(self, function: &Function, missing: R) -> R {
                // Out of line, and with the words one by one: they are in the right registers already, and
                // the caller need not keep them anywhere.
                #[cold]
                #[inline(never)]
                unsafe extern "C" fn pass<R>($($word: usize,)* function: &Function, missing: R) -> R {
                    match function.look_up() {
                        // SAFETY: the contract.
                        Some(address) => unsafe { [$($word),*].pass_to(address) },
                        None => missing,
                    }
                }
                let [$($word),*] = self;
                // SAFETY: the contract.
                unsafe { pass($($word,)* function, missing) }
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
    14: a b c d e f g h i j k l m n;
}

/// Calls the function at `address` with as many words as there are; `None`: more than 14.
///
/// # Safety
/// As [`Function::call`], for a function that returns an `i32`, or nothing: then what is given means nothing.
#[inline]
pub unsafe fn call_with(address: NonNull<c_void>, words: &[usize]) -> Option<i32> {
    macro_rules! by_count {
        ($($count:literal)*) => {
            match words.len() {
                $($count => {
                    let words: &[usize; $count] = words.first_chunk()?;
                    // SAFETY: the contract.
                    Some(unsafe { words.pass_to(address) })
                })*
                _ => None,
            }
        };
    }
    by_count!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
}

/// Looks a function up behind this object, then in every loaded object.
pub fn function(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: `name` is a valid C string; RTLD_NEXT is a valid pseudo-handle in any dynamic program.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) })
        .or_else(|| search_loaded_objects(name))
}

/// Looks a function up in the object that `known` is in, and in what that depends on.
pub fn function_beside(known: NonNull<c_void>, name: &CStr) -> Option<NonNull<c_void>> {
    let path = described(known.as_ptr())?.dli_fname;
    if path.is_null() {
        return None;
    }
    // SAFETY: a path of the loader's; RTLD_NOLOAD only finds what is loaded already.
    let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: `handle` was opened above; `name` is a valid C string.
    let found = NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) });
    // SAFETY: closes the reference taken above; the object is in use by the one who knows a function of it.
    unsafe { libc::dlclose(handle) };
    found
}

/// Looks data up from the start of the global scope, then in every loaded object.
pub fn data(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: as in `function`.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
        .or_else(|| search_loaded_objects(name))
}

/// Searches every loaded object (with what it depends on) but the one this code is in: those loaded after it first.
///
/// What was loaded before may be another preload library, which calls us as its next; calling it back would never
/// end.
fn search_loaded_objects(name: &CStr) -> Option<NonNull<c_void>> {
    let own = object_of(own_address());
    let mut objects = loaded_objects();
    let place = objects.iter().position(|object| object.base == own as usize);
    objects.rotate_left(place.map_or(0, |place| place + 1));
    objects.iter().filter(|object| !object.path.is_empty()).find_map(|object| {
        // SAFETY: a valid C string; RTLD_NOLOAD only finds what is loaded already.
        let handle = unsafe { libc::dlopen(object.path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: `handle` was opened above and is not closed yet; `name` is a valid C string.
        let found = NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) });
        // The reference of the object that holds the answer is kept, or the program could unload it under us.
        let found = found.filter(|address| object_of(address.as_ptr()) != own);
        if found.is_none() {
            // SAFETY: closes the reference taken above.
            unsafe { libc::dlclose(handle) };
        }
        found
    })
}

/// A loaded object; the program itself has no path.
struct Object {
    base: usize,
    path: CString,
}

/// The loaded objects in load order.
fn loaded_objects() -> Vec<Object> {
    unsafe extern "C" fn remember(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        objects: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid `info`, and `objects` is the vector given below, which nobody else uses.
        let (info, objects) = unsafe { (&*info, &mut *objects.cast::<Vec<Object>>()) };
        let path = match NonNull::new(info.dlpi_name.cast_mut()) {
            // SAFETY: a name that is not null is a C string of the loader's.
            Some(name) => unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned(),
            None => CString::default(),
        };
        objects.push(Object { base: info.dlpi_addr as usize, path });
        0
    }
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: `remember` has the prototype that the loader calls, and `objects` outlives the call. The objects are
    // opened only afterwards because the loader holds its lock during the walk.
    unsafe { libc::dl_iterate_phdr(Some(remember), (&raw mut objects).cast()) };
    objects
}

/// The base of the loaded object that an address is in, or null.
fn object_of(address: *const c_void) -> *mut c_void {
    described(address).map_or(null_mut(), |info| info.dli_fbase)
}

/// What the loader knows of the object that an address is in.
fn described(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr only compares the address, and fills `info` when it returns non-zero.
    match unsafe { libc::dladdr(address, info.as_mut_ptr()) } {
        0 => None,
        // SAFETY: filled, see above.
        _ => Some(unsafe { info.assume_init() }),
    }
}

fn own_address() -> *const c_void {
    function as fn(&CStr) -> Option<NonNull<c_void>> as *const c_void
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_once_and_then_called() {
        static STRLEN: Function = Function::named(c"strlen");
        let text = c"communicator";
        for _ in 0..2 {
            // SAFETY: strlen takes one pointer and returns a size_t.
            let length = unsafe { STRLEN.call::<usize, 1>([text.as_ptr() as usize]) };
            assert_eq!(length, Some(12));
        }
        assert!(!STRLEN.address.load(Ordering::Relaxed).is_null());
    }

    #[test]
    fn a_function_is_found_beside_another() {
        let known = function(c"strlen").expect("the C library");
        assert_eq!(function_beside(known, c"memcpy"), function(c"memcpy"));
        assert_eq!(function_beside(known, c"MPI_Nobody_defines_this"), None);
    }

    #[test]
    fn what_nobody_defines_is_not_found() {
        static ABSENT: Function = Function::named(c"MPI_Nobody_defines_this");
        // SAFETY: no such function, so nothing is called.
        assert_eq!(unsafe { ABSENT.call::<i32, 0>([]) }, None);
        // SAFETY: as above.
        assert_eq!(unsafe { ABSENT.call_or([1, 2], 16) }, 16);
        assert_eq!(data(c"ompi_nobody_defines_this"), None);
    }

    #[test]
    #[allow(clippy::print_stderr)] // a skipped test says so
    fn a_library_opened_without_global_scope_is_searched() {
        // libm's relative that no Rust program links: found only through the loaded objects.
        // SAFETY: opens a library of the C run time, which has no harmful initialisers.
        let handle = unsafe { libc::dlopen(c"libresolv.so.2".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if handle.is_null() {
            eprintln!("SKIPPED: no libresolv.so.2 on this machine");
            return;
        }
        let name = c"ns_name_ntop";
        // SAFETY: valid names and handles.
        let (scoped, direct) =
            unsafe { (libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()), libc::dlsym(handle, name.as_ptr())) };
        if !scoped.is_null() || direct.is_null() {
            eprintln!("SKIPPED: {name:?} is in the global scope, or nowhere, on this machine");
            return;
        }
        assert_eq!(function(name), NonNull::new(direct));
        assert_eq!(data(name), NonNull::new(direct));
    }

    #[test]
    fn the_object_of_this_code_is_among_the_loaded_ones() {
        let own = object_of(own_address()) as usize;
        assert_eq!(loaded_objects().iter().filter(|object| object.base == own).count(), 1);
        assert!(loaded_objects().len() > 1);
    }

    #[test]
    fn many_threads_agree() {
        static GETPID: Function = Function::named(c"getpid");
        let found: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| GETPID.get().map_or(0, |a| a.as_ptr() as usize))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_ne!(found[0], 0);
        assert!(found.iter().all(|address| *address == found[0]));
    }
}
