//! Prefetches memory.

/// Prefetches the cache lines of the item at index `at` of `items`, which may be out of range; no-op on processors without
/// such an instruction.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let item = items.as_ptr().wrapping_add(at).cast::<i8>();
        for line in (0..size_of::<T>()).step_by(64) {
            // SAFETY: every x86-64 has the instruction. It accesses no memory architecturally, so any address is valid.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(item.wrapping_add(line)) }
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (items, at);
}
