//! Decimal text as numbers, eight digits at a time: a machine word holds eight characters, and a few multiplications
//! turn them into a number without a branch a digit.

/// `'0'` in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The high bit of every byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Ten to the power of 0…8.
pub(super) const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// What [`others`] has when already the first character is no digit, and when the last is none.
pub(super) const FIRST: u64 = 0x80;
pub(super) const LAST: u64 = FIRST << 56;

/// Of eight characters (the first in the lowest byte), which are no digits: their high bits. The characters behind
/// the first such one may be told wrongly.
#[inline(always)]
pub(super) fn others(word: u64) -> u64 {
    let values = word ^ ZEROS;
    // A byte above 9 sets its high bit; carries reach only bytes behind the first such one.
    (values.wrapping_add(0x7676_7676_7676_7676) | values) & HIGH
}

/// The digits in front of the first of the characters that are `others` (not none): their value, and eight times
/// their number.
#[inline(always)]
pub(super) fn short(word: u64, others: u64) -> (u64, u32) {
    let high_bit = others.trailing_zeros();
    // Leading zeros in front make it eight digits. In two steps, because it may be all eight that come.
    let eight = (word ^ ZEROS) << 8 << (63 ^ high_bit);
    (join(eight), high_bit & !7)
}

/// The value of eight digits.
#[inline(always)]
pub(super) fn eight_at_once(word: u64) -> u64 {
    join(word ^ ZEROS)
}

/// The number of eight digits (0 to 9) of which the lowest byte is the first: neighbours joined, pairs, fours.
#[inline(always)]
fn join(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// The digits at the front of eight characters: their value and how many.
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

/// The number that begins at `at`, and where it ends. `None`: no digit there, or more than a `u64` holds.
#[inline(always)]
pub(super) fn parse(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, count) = leading(word(text, at));
    match count {
        0 => None,
        8 => parse_long(text, at + 8, value),
        _ => Some((value, at + count)),
    }
}

/// [`parse`] for numbers of eight digits and more; `value` are those in front of `at`.
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
