//! Asks the processor for memory that will be read soon.

/// Lets the cache line at that place of `bytes`, or behind them, be brought near; nothing where the processor has no such
/// instruction.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: the instruction, which every x86-64 has, reads nothing and may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, at);
}
