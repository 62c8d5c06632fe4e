//! Prefetches memory.

/// Prefetches the cache line at index `at` of `bytes`, which may be out of range; no-op on processors without such an
/// instruction.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction. It accesses no memory architecturally, so any address is valid.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, at);
}
