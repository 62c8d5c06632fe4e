//! The mapped parts of rank files: another process may truncate a file, and the next access to a page beyond its end raises SIGBUS. A
//! handler then replaces the mapping by anonymous memory and the access is repeated, so that the program continues; the recorder
//! notices the truncation at its next use of the file.
//!
//! Any other SIGBUS gets the action that it had before. A program that sets an action later replaces this one.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{from_ref, null, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A mapping; in a list that only grows, because mappings are never removed.
struct Mapping {
    begin: usize,
    length: usize,
    next: *const Self,
}

/// The latest mapping.
static LATEST: AtomicPtr<Mapping> = AtomicPtr::new(null_mut());

/// Adds a mapping that exists until the end of the process.
pub(crate) fn register(begin: *mut u8, length: usize) {
    let mapping = Box::leak(Box::new(Mapping { begin: begin as usize, length, next: null() }));
    let mut latest = LATEST.load(Ordering::Acquire);
    loop {
        mapping.next = latest;
        match LATEST.compare_exchange_weak(latest, mapping, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(other) => latest = other,
        }
    }
}

/// The mapping that contains an address.
fn mapping_at(address: usize) -> Option<&'static Mapping> {
    // SAFETY: null, or a leaked mapping, which is not changed once it is in the list.
    let first = unsafe { LATEST.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above.
    let mut all = std::iter::successors(first, |mapping| unsafe { mapping.next.as_ref() });
    all.find(|mapping| (mapping.begin..mapping.begin + mapping.length).contains(&address))
}

/// The action before ours; written once, before ours is set.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);
// SAFETY: see above.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::zeroed()));

/// Sets the handler, once.
pub(crate) fn survive_truncation() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an action of zeros is valid; `PREVIOUS` is not used before the handler is set.
        unsafe {
            let previous = (*PREVIOUS.0.get()).as_mut_ptr();
            if libc::sigaction(libc::SIGBUS, null(), previous) != 0 {
                return;
            }
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_sigbus as *const () as usize;
            ours.sa_mask = (*previous).sa_mask;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (*previous).sa_flags & libc::SA_NODEFER;
            libc::sigaction(libc::SIGBUS, &raw const ours, null_mut());
        }
    });
}

unsafe extern "C" fn on_sigbus(signal: c_int, about: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid description. A signal from a process has no address.
    let (address, from_kernel) = unsafe { ((*about).si_addr() as usize, (*about).si_code > 0) };
    if let Some(mapping) = mapping_at(address).filter(|_| from_kernel) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let begin = mapping.begin as *mut c_void;
        // SAFETY: replaces a mapping of the recorder, whose contents are lost in any case, by one of the same size.
        if unsafe { libc::mmap(begin, mapping.length, access, how, -1, 0) } == begin {
            return;
        }
    }
    // SAFETY: written before this handler was set.
    let previous = unsafe { (*PREVIOUS.0.get()).assume_init_ref() };
    let set = |action: &libc::sigaction| {
        // SAFETY: a valid action.
        unsafe { libc::sigaction(signal, from_ref(action), null_mut()) };
    };
    match previous.sa_sigaction {
        libc::SIG_IGN if !from_kernel => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: an action of zeros is the default one. An invalid access is repeated when this handler returns.
            unsafe {
                set(&std::mem::zeroed());
                if !from_kernel {
                    libc::raise(signal);
                }
            }
        }
        handler => {
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                // SAFETY: as above.
                set(&unsafe { std::mem::zeroed() });
            }
            // SAFETY: a handler of the form that its flags say.
            unsafe {
                match previous.sa_flags & libc::SA_SIGINFO != 0 {
                    true => std::mem::transmute::<usize, Handler>(handler)(signal, about, context),
                    false => std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
                }
            }
        }
    }
}

/// A handler with `SA_SIGINFO`.
type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
