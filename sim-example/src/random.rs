//! Random numbers that depend on their purpose, not on the number of draws before: each message gets the same
//! numbers in any order of events.

/// Mixes the bits of `value` (the finaliser of splitmix64).
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Combines two numbers into one that depends on both.
#[inline]
pub(crate) const fn combine(a: u64, b: u64) -> u64 {
    mix(a.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(3) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A number below `limit` from random bits; `limit` is at least 1.
#[inline]
pub(crate) const fn below(bits: u32, limit: u32) -> u32 {
    ((bits as u64 * limit as u64) >> 32) as u32
}

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Sequence `number` of a seed.
    pub(crate) const fn new(seed: u64, number: u64) -> Self {
        Self(combine(seed, number))
    }

    /// 64 random bits.
    #[inline]
    pub(crate) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which is at least 1.
    #[inline]
    pub(crate) const fn below(&mut self, limit: u32) -> u32 {
        below((self.bits() >> 32) as u32, limit)
    }

    /// Puts items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// A number in (0, 1].
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// An exponentially distributed number of mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_and_of_mean_one() {
        let mut random = Random::new(1, 2);
        let mut counts = [0u32; 7];
        let mut sum = 0.0;
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
            sum += random.exponential();
        }
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert!((0.98..1.02).contains(&(sum / 70_000.0)));
        assert_ne!(Random::new(1, 2).bits(), Random::new(2, 1).bits());
        assert_ne!(combine(0, 0), combine(0, 1));
    }
}
