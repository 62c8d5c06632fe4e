//! A limit on the memory that a target may hold for an input, enforced where memory is handed out.
//!
//! Exact, unlike a look at the process from time to time: an allocation that a hostile header asks for ends the
//! run even when its pages are never touched.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes more a byte of input.
const EACH: usize = 4;

/// Bytes held at this moment.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// The most that may be held.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Calls `use_it`, which must not hold more than so many megabytes (blocks of readers, tables of fixed size) and four times the
/// input's `length` bytes at once.
pub fn within<R>(megabytes: usize, length: usize, use_it: impl FnOnce() -> R) -> R {
    LIMIT.store(HELD.load(Relaxed) + (megabytes << 20) + EACH * length, Relaxed);
    let result = use_it();
    LIMIT.store(usize::MAX, Relaxed);
    result
}

/// The system's allocator, with a count.
struct Counted;

#[global_allocator]
static COUNTED: Counted = Counted;

impl Counted {
    fn take(&self, bytes: usize) {
        let held = HELD.fetch_add(bytes, Relaxed) + bytes;
        if held > LIMIT.load(Relaxed) {
            LIMIT.store(usize::MAX, Relaxed);
            // A panic could be caught, and cannot leave an allocator.
            let _ = writeln!(std::io::stderr(), "memory limit: {bytes} bytes more would make {held}");
            std::process::abort();
        }
    }
}

// SAFETY: every call is passed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it moves there are two of it.
        self.take(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
