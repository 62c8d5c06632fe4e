//! Decimal numbers eight digits at a time: a machine word holds eight characters, and a few multiplications
//! turn them into a number or back without a branch a digit.

/// `'0'` in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// The high bit of every byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Ten to the power of 0…8.
pub(super) const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Most digits a `u64` has.
pub(super) const MAX_DIGITS: usize = 20;

/// What [`others`] has when already the first character is no digit, and when the last is none.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) const FIRST: u64 = 0x80;
#[cfg(any(test, not(target_arch = "x86_64")))]
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

/// The four digits of `value` (below 10^4), as [`eight`].
#[inline(always)]
fn four(value: u64) -> u64 {
    let hundreds = value.wrapping_mul(10_486) >> 20;
    let pairs = hundreds | (value - hundreds * 100) << 16;
    let tens = (pairs.wrapping_mul(103) >> 10) & 0x000f_000f;
    tens | (pairs - tens * 10) << 8
}

/// The eight digits of `value` (below 10^8), leading zeros included, one a byte, the first in the lowest.
#[inline(always)]
fn eight(value: u64) -> u64 {
    // Quotients by multiplication, two and four of them in one word: exact for these ranges.
    let halves = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = (halves.wrapping_mul(10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - hundreds * 100) << 16;
    let tens = (pairs.wrapping_mul(103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - tens * 10) << 8
}

/// Places in what a line is written to: a power of two, and far more than any line takes, so that none needs a check.
const PLACES: usize = 512;
/// Its bytes.
pub(super) const ROOM: usize = PLACES + 8;

/// Writes `value` and then the character `end` at `at`; says where that ends. Up to [`MAX_DIGITS`] + 4 bytes from `at` on
/// are overwritten; they must be below 512.
#[inline(always)]
pub(super) fn write(out: &mut [u8; ROOM], at: usize, value: u64, end: u8) -> usize {
    if value < POWERS[7] {
        // The first of the eight digits is a zero; in its place the character fits into the word, behind the others.
        let digits = eight(value) >> 8;
        let zeros = zeros(digits, 6);
        put(out, at, (digits | ZEROS >> 8 | u64::from(end) << 56) >> zeros);
        at + 8 - zeros as usize / 8
    } else {
        write_long(out, at, value, end)
    }
}

/// As [`write`], for values that mostly are below 10^4.
#[inline(always)]
pub(super) fn write_small(out: &mut [u8; ROOM], at: usize, value: u64, end: u8) -> usize {
    if value < POWERS[4] {
        let digits = four(value);
        let zeros = zeros(digits, 3);
        put(out, at, (digits | ZEROS >> 32 | u64::from(end) << 32) >> zeros);
        at + 5 - zeros as usize / 8
    } else {
        write(out, at, value, end)
    }
}

/// [`write`] for values of eight digits and more.
fn write_long(out: &mut [u8; ROOM], at: usize, value: u64, end: u8) -> usize {
    let (front, middle, back) =
        (value / (POWERS[8] * POWERS[8]), value / POWERS[8] % POWERS[8], value % POWERS[8]);
    // The digits but the last eight begin without zeros; each part overwrites the character behind the part before.
    let at = match (front, middle) {
        (0, 0) => at,
        (0, _) => write_front(out, at, middle),
        _ => {
            let at = write_front(out, at, front);
            put(out, at, eight(middle) | ZEROS);
            at + 8
        }
    };
    put(out, at, eight(back) | ZEROS);
    out[at + 8] = end;
    at + 9
}

/// Writes `value` (below 10^8) without leading zeros.
fn write_front(out: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    let digits = eight(value);
    let zeros = digits.trailing_zeros() / 8;
    put(out, at, (digits | ZEROS) >> (8 * zeros));
    at + 8 - zeros as usize
}

/// The bits of the leading zeros of `digits`, of which digit `last` (from 0) counts for none.
#[inline(always)]
fn zeros(digits: u64, last: u32) -> u32 {
    (digits | 1 << (8 * last)).trailing_zeros() & !7
}

/// Writes eight characters at `at`.
#[inline(always)]
pub(super) fn put(out: &mut [u8; ROOM], at: usize, word: u64) {
    let at = at % PLACES;
    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: u64) -> String {
        let text = |write: fn(&mut [u8; ROOM], usize, u64, u8) -> usize| {
            let mut out = [0; ROOM];
            let end = write(&mut out, 0, value, b';');
            String::from_utf8(out[..end].to_vec()).unwrap()
        };
        assert_eq!(text(write), text(write_small));
        text(write).strip_suffix(';').unwrap().to_owned()
    }

    #[test]
    fn quotients_by_multiplication_are_exact() {
        for value in 0..10_000 {
            let low = eight(value);
            let high = eight(value * 10_000 + 9_999 - value);
            let text = |digits: u64| String::from_utf8((digits | ZEROS).to_le_bytes().to_vec()).unwrap();
            assert_eq!(text(low), format!("{value:08}"));
            assert_eq!(four(value), low >> 32);
            assert_eq!(written(value), value.to_string());
            assert_eq!(text(high), format!("{value:04}{:04}", 9_999 - value));
        }
    }

    #[test]
    fn borders() {
        for power in 0..20 {
            let ten = 10u64.pow(power);
            for value in [ten - 1, ten, ten + 1, u64::MAX - ten] {
                assert_eq!(written(value), value.to_string());
                assert_eq!(parse(value.to_string().as_bytes(), 0), Some((value, value.to_string().len())));
            }
        }
        assert_eq!(written(u64::MAX), u64::MAX.to_string());
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
            let text = written(value);
            prop_assert_eq!(&text, &value.to_string());
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
