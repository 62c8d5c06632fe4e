//! The recording clock: the processor's cycle counter if it is invariant, else `CLOCK_MONOTONIC`.
//!
//! A capture holds ticks of this clock, and pairs of (tick, `CLOCK_MONOTONIC`) from which readers compute nanoseconds.

use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::capture::layout::ClockPair;

/// Whether ticks are cycles; set before the first record.
static CYCLES: AtomicBool = AtomicBool::new(false);

/// Chooses the clock. `allowed`: the cycle counter may be used.
pub(crate) fn choose(allowed: bool) {
    CYCLES.store(allowed && cycles_are_invariant(), Ordering::Relaxed);
}

/// The current time in ticks. Never 0.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if CYCLES.load(Ordering::Relaxed) {
        // SAFETY: every x86-64 processor has the instruction.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    monotonic()
}

/// `CLOCK_MONOTONIC`, ns.
#[cold]
#[inline(never)]
fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME` at the time of `pair`, in ns since 1970, from the current difference of both clocks.
pub(crate) fn realtime_at(pair: ClockPair) -> u64 {
    let (before, real) = closest(monotonic, || read(libc::CLOCK_REALTIME));
    pair.nanos.wrapping_add(real.wrapping_sub(before))
}

/// Both clocks at nearly the same time.
pub(crate) fn pair() -> ClockPair {
    let (tick, nanos) = closest(now, monotonic);
    ClockPair { tick: tick.max(1), nanos }
}

/// Two clocks at nearly the same time: the closest of four readings.
fn closest(first: fn() -> u64, second: fn() -> u64) -> (u64, u64) {
    let readings = [(); 4].map(|()| {
        let before = first();
        let other = second();
        (first().saturating_sub(before), before, other)
    });
    let (spread, before, other) = readings.into_iter().min().unwrap_or_default();
    (before + spread / 2, other)
}

/// A clock of the system, ns.
pub(crate) fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a place for its time.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the counter runs at a constant rate in all frequency and sleep states, in step on all cores.
#[cfg(target_arch = "x86_64")]
fn cycles_are_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles_are_invariant() -> bool {
    false
}
