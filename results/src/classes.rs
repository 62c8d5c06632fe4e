//! Classes of numbers: by powers of two, and 128 times finer ones.

/// The power of two of a number: class 0 is 0, class k from 2^(k−1) to 2^k − 1.
#[inline]
pub const fn power(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// The least and the greatest number of a [`power`].
pub const fn ends(power: u32) -> (u64, u64) {
    match power {
        0 => (0, 0),
        _ => (1 << (power - 1), u64::MAX >> (u64::BITS - power)),
    }
}

/// Fine classes of a power of two.
const FINE: usize = 1 << FINE_BITS;
const FINE_BITS: u32 = 7;

/// The fine class of a number: numbers below 256 have their own, then there are 128 a power of two.
#[inline]
pub const fn fine(value: u64) -> usize {
    let shift = power(value).saturating_sub(FINE_BITS + 1);
    shift as usize * FINE + (value >> shift) as usize
}

/// The greatest number of a fine class: at most 1/128 above all others in it.
pub const fn greatest(fine: usize) -> u64 {
    let shift = (fine / FINE).saturating_sub(1);
    let front = (fine - shift * FINE) as u64;
    front << shift | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_in_its_classes(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let (least, most) = ends(power(value));
            prop_assert!(least <= value && value <= most);
            let end = greatest(fine(value));
            prop_assert!(end >= value && end - value <= value / 128, "{value} {end}");
            prop_assert_eq!(fine(end), fine(value));
            if end < u64::MAX {
                prop_assert_eq!(fine(end + 1), fine(end) + 1);
            }
        }
    }
}
