//! Formats numbers, three digits at a time, from tables that fit into the first-level cache. With `itoa`, formatting a line takes
//! 2.5 times as many instructions.

/// Maximum characters of a number: the digits of a `u64` and a blank.
pub(super) const LONGEST: usize = 21;

/// Limit of indices: a power of two, larger than any line, so that masking replaces bounds checks.
const PLACES: usize = 512;
/// Bytes of the buffer.
pub(super) const ROOM: usize = PLACES + 8;

/// A power of two, so that masking replaces bounds checks.
const TABLE: usize = 1024;

/// The text of each number, the first character in the lowest byte, with a blank; the highest byte has the length of both.
static SHORT: [u64; TABLE] = {
    let mut table = [0; TABLE];
    let mut number = 0;
    while number < TABLE {
        let (mut text, mut length, mut left) = (b' ' as u64, 1, number as u64);
        while left > 0 || length == 1 {
            text = text << 8 | (b'0' as u64 + left % 10);
            length += 1;
            left /= 10;
        }
        table[number] = text | length << 56;
        number += 1;
    }
    table
};

/// The last three digits of each number, with leading zeros, and a blank.
static THREE: [[u8; 4]; TABLE] = {
    let mut table = [*b"000 "; TABLE];
    let mut number = 0;
    while number < TABLE {
        let digits = [number / 100 % 10, number / 10 % 10, number % 10];
        table[number] = [b'0' + digits[0] as u8, b'0' + digits[1] as u8, b'0' + digits[2] as u8, b' '];
        number += 1;
    }
    table
};

/// Writes `value` and a blank at `at`; returns the end. Overwrites up to [`LONGEST`] + 8 bytes from `at` on, which must be
/// below 512.
#[inline(always)]
pub(super) fn write(out: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    // Each part overwrites the blank of the part before.
    if value < 1_000 {
        short(out, at, value)
    } else if value < 1_000_000 {
        let at = short(out, at, value / 1_000) - 1;
        three(out, at, value % 1_000)
    } else if value < 1_000_000_000 {
        let at = short(out, at, value / 1_000_000) - 1;
        six(out, at, value % 1_000_000)
    } else {
        write_long(out, at, value)
    }
}

#[cold]
fn write_long(out: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    let at = write(out, at, value / 1_000_000) - 1;
    six(out, at, value % 1_000_000)
}

/// Writes `value`, below 1024, and a blank.
#[inline(always)]
fn short(out: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    let word = SHORT[value as usize % TABLE];
    put(out, at, word.to_le_bytes());
    at + (word >> 56) as usize
}

/// Writes `value`, below 1000, with leading zeros, and a blank.
#[inline(always)]
pub(super) fn three(out: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    put(out, at, THREE[value as usize % TABLE]);
    at + 4
}

/// Writes `value`, below 10^6, with leading zeros, and a blank.
#[inline(always)]
fn six(out: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    put(out, at, THREE[(value / 1_000) as usize % TABLE]);
    three(out, at + 3, value % 1_000)
}

/// Writes up to eight characters at `at`.
#[inline(always)]
pub(super) fn put<const N: usize>(out: &mut [u8; ROOM], at: usize, text: [u8; N]) {
    const { assert!(N <= ROOM - PLACES) };
    let at = at % PLACES;
    out[at..at + N].copy_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The text of `value`, written after a number of `before` digits.
    fn written(value: u64, before: u8) -> String {
        let mut out = [before; ROOM];
        let end = write(&mut out, 7, value);
        assert!(end - 7 <= LONGEST);
        assert!(out[..7].iter().all(|&byte| byte == before));
        assert!(out[end + 8..].iter().all(|&byte| byte == before));
        String::from_utf8(out[7..end].to_vec()).unwrap()
    }

    #[test]
    fn every_number_of_the_tables() {
        for value in 0..1_000 {
            assert_eq!(written(value, b'x'), format!("{value} "));
            let mut out = [0; ROOM];
            assert_eq!(three(&mut out, 0, value), 4);
            assert_eq!(out[..4], *format!("{value:03} ").as_bytes());
        }
    }

    #[test]
    fn borders() {
        for power in 0..20 {
            let ten = 10u64.pow(power);
            for value in [ten - 1, ten, ten + 1, u64::MAX - ten] {
                assert_eq!(written(value, b'9'), format!("{value} "));
            }
        }
        assert_eq!(written(u64::MAX, b'9'), format!("{} ", u64::MAX));
    }

    proptest! {
        #[test]
        fn as_the_standard_library(value: u64, shift in 0u32..64, before: u8) {
            let value = value >> shift;
            prop_assert_eq!(written(value, before), format!("{value} "));
        }
    }
}
