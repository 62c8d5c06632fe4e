//! Parses decimal text, eight digits at a time: a word holds eight characters, and a few multiplications convert it without
//! a branch for each digit. With `atoi_simd`, reading a trace takes 1.2 times as many instructions.

/// `'0'` in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The high bit of every byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Ten to the power of 0…8.
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The high bits of those of eight characters (the first in the lowest byte) that are not digits. Bits behind the first one
/// that is set may be wrong.
#[inline(always)]
fn others(word: u64) -> u64 {
    let values = word ^ ZEROS;
    // A byte above 9 sets its high bit; carries affect only later bytes.
    (values.wrapping_add(0x7676_7676_7676_7676) | values) & HIGH
}

/// The value of the digits in front of the first non-digit in `others`, which must not be 0, and eight times their number.
#[inline(always)]
fn short(word: u64, others: u64) -> (u64, u32) {
    let high_bit = others.trailing_zeros();
    // Pads with leading zeros to eight digits. Two shifts, because one by 64 is undefined.
    let eight = (word ^ ZEROS) << 8 << (63 ^ high_bit);
    (join(eight), high_bit & !7)
}

/// The value of eight digits.
#[inline(always)]
fn eight_at_once(word: u64) -> u64 {
    join(word ^ ZEROS)
}

/// The value of eight digit values (0 to 9), the first in the lowest byte: combines neighbours, pairs, fours.
#[inline(always)]
fn join(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// The value of the digits at the front of eight characters, and their number.
#[inline(always)]
fn leading(word: u64) -> (u64, usize) {
    match others(word) {
        0 => (eight_at_once(word), 8),
        others => {
            let (value, bits) = short(word, others);
            (value, bits as usize / 8)
        }
    }
}

/// Eight characters of `text` from `at` on; zero bytes behind its end.
#[inline(always)]
fn word(text: &[u8], at: usize) -> u64 {
    match text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => tail(text, at),
    }
}

#[cold]
fn tail(text: &[u8], at: usize) -> u64 {
    let mut chunk = [0; 8];
    for (to, from) in chunk.iter_mut().zip(text.get(at..).unwrap_or_default()) {
        *to = *from;
    }
    u64::from_le_bytes(chunk)
}

/// The number that begins at `at`, and its end. `None`: no digit, or more than a `u64` holds.
#[inline(always)]
pub(super) fn parse(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, count) = leading(word(text, at));
    match count {
        0 => None,
        8 => parse_long(text, at + 8, value),
        _ => Some((value, at + count)),
    }
}

/// [`parse`] for numbers of at least eight digits; `value` is that of the digits in front of `at`.
#[inline]
fn parse_long(text: &[u8], mut at: usize, mut value: u64) -> Option<(u64, usize)> {
    loop {
        let (next, count) = leading(word(text, at));
        value = value.checked_mul(POWERS[count])?.checked_add(next)?;
        at += count;
        if count < 8 {
            return Some((value, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn borders() {
        for power in 0..20 {
            let ten = 10u64.pow(power);
            for value in [ten - 1, ten, ten + 1, u64::MAX - ten] {
                assert_eq!(parse(value.to_string().as_bytes(), 0), Some((value, value.to_string().len())));
            }
        }
        assert_eq!(parse(b"18446744073709551615", 0), Some((u64::MAX, 20)));
        assert_eq!(parse(b"18446744073709551616", 0), None);
        assert_eq!(parse(b"99999999999999999999", 0), None);
        assert_eq!(parse(b"184467440737095516150", 0), None);
        assert_eq!(parse(b"00000000000000000000000000000017 ", 0), Some((17, 32)));
    }

    #[test]
    fn a_number_ends_at_any_other_byte() {
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            for digits in 0..18 {
                let mut text = b"123456789012345678"[..digits].to_vec();
                text.push(byte);
                text.extend_from_slice(b"99999999");
                let want = std::str::from_utf8(&text[..digits]).unwrap().parse().ok();
                assert_eq!(
                    parse(&text, 0),
                    want.map(|value: u64| (value, digits)),
                    "{byte:#x} after {digits}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn round_trip(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let text = value.to_string();
            prop_assert_eq!(parse(text.as_bytes(), 0), Some((value, text.len())));
        }

        #[test]
        fn any_bytes_as_the_standard_library(text in proptest::collection::vec(prop_oneof![b'0'..=b'9', any::<u8>()], 0..30)) {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let want = std::str::from_utf8(&text[..digits]).unwrap().parse::<u64>().ok();
            prop_assert_eq!(parse(&text, 0), want.map(|value| (value, digits)));
        }
    }
}
