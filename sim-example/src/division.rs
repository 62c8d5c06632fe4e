//! Division by an invariant divisor as a multiplication, for routing, which divides at every hop.
//!
//! With `m = ⌈2⁶⁴ / d⌉`, `⌊n / d⌋ = ⌊m · n / 2⁶⁴⌋` for every 32-bit `n` and `d` (T. Granlund, P. L. Montgomery, "Division by
//! Invariant Integers using Multiplication", PLDI 1994): the error `n · (m·d − 2⁶⁴) / (d · 2⁶⁴)` is below `n / 2⁶⁴ < 1 / d`.

/// A 32-bit divisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    divisor: u32,
    /// `⌈2⁶⁴ / divisor⌉`; 0 stands for 2⁶⁴, of the divisor 1.
    reciprocal: u64,
}

impl Divisor {
    /// # Panics
    /// If `divisor` is 0.
    pub(crate) const fn new(divisor: u32) -> Self {
        // ⌊(2⁶⁴ − 1) / d⌋ + 1 = ⌈2⁶⁴ / d⌉; of 1 it wraps to 0.
        Self { divisor, reciprocal: (u64::MAX / divisor as u64).wrapping_add(1) }
    }

    /// The divisor.
    #[inline(always)]
    pub(crate) const fn get(self) -> u32 {
        self.divisor
    }

    /// `⌊n / divisor⌋`.
    #[inline(always)]
    pub(crate) const fn quotient(self, n: u32) -> u32 {
        if self.reciprocal == 0 {
            return n;
        }
        ((self.reciprocal as u128 * n as u128) >> 64) as u32
    }

    /// Quotient and remainder.
    #[inline(always)]
    pub(crate) const fn divide(self, n: u32) -> (u32, u32) {
        let quotient = self.quotient(n);
        (quotient, n - quotient * self.divisor)
    }

    /// `n mod divisor`.
    #[inline(always)]
    pub(crate) const fn remainder(self, n: u32) -> u32 {
        self.divide(n).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides(n: u32, divisor in prop_oneof![1u32.., 1u32..100, Just(u32::MAX), (0u32..32).prop_map(|b| 1 << b)]) {
            for n in [n, 0, divisor, divisor - 1, divisor.wrapping_mul(n), u32::MAX] {
                let by = Divisor::new(divisor);
                prop_assert_eq!(by.divide(n), (n / divisor, n % divisor));
                prop_assert_eq!((by.quotient(n), by.remainder(n)), (n / divisor, n % divisor));
            }
        }
    }
}
