//! A place for a value of which a process has one: its address is part of the code, so that what is in it is reached by one
//! instruction.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for a `T` that is made once and lives for ever.
pub(crate) struct Place<T> {
    is_taken: AtomicBool,
    room: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: it gives addresses, no references; what is done there is up to who has them.
unsafe impl<T> Sync for Place<T> {}

impl<T> Place<T> {
    pub(crate) const fn new() -> Self {
        Self { is_taken: AtomicBool::new(false), room: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Puts the value there; gives it back if there is one already.
    pub(crate) fn put(&'static self, value: T) -> Result<NonNull<T>, T> {
        if self.is_taken.swap(true, Ordering::Relaxed) {
            return Err(value);
        }
        // SAFETY: the place is empty, and this call alone fills it.
        unsafe { self.address().write(value) };
        Ok(self.address())
    }

    /// Where the value is, or will be.
    #[inline(always)]
    pub(crate) const fn address(&'static self) -> NonNull<T> {
        // SAFETY: a static is somewhere.
        unsafe { NonNull::new_unchecked(self.room.get().cast()) }
    }
}
