//! The quick way for processors with vectors of sixteen bytes: one look finds where all fields of a line end, and
//! their digits become numbers side by side.

#![allow(unsafe_code)]

use super::quick::{BEFORE, LONGEST, ROOM};
use crate::ids::Rank;
use crate::raw::{DEPENDENCY, Raw};
use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_add_epi64, _mm_and_si128, _mm_cmpgt_epi8, _mm_cvtsi128_si64, _mm_madd_epi16,
    _mm_movemask_epi8, _mm_mul_epu32, _mm_mullo_epi16, _mm_packs_epi32, _mm_set_epi64x, _mm_set1_epi8,
    _mm_set1_epi16, _mm_set1_epi32, _mm_set1_epi64x, _mm_srli_epi16, _mm_srli_epi64, _mm_unpackhi_epi64,
};

/// Bytes of a vector, and most digits of a number.
const WIDTH: usize = 16;
/// Most digits of a rank.
const RANK: usize = 8;
const _: () = assert!(BEFORE >= WIDTH && LONGEST == 4 * WIDTH);

/// See [`super::quick::message`].
#[inline(always)]
pub(super) fn message(room: &[u8; ROOM], tasks: u32) -> Option<(Rank, Raw, usize)> {
    let line = |at: usize| room[BEFORE + at];
    let blank = |at: usize| line(at) == b' ';
    let mut ends = Ends::of(room);
    let (id, src, dst, bytes) = (ends.next(), ends.next(), ends.next(), ends.next());
    let (dep, time, mut after) = (ends.next(), ends.next(), ends.next());
    if !(blank(id) && blank(src) && blank(dst) && blank(bytes) && blank(dep) && blank(time)) {
        return None;
    }
    let mut before = time;
    let tag = line(bytes + 1) ^ b'0';
    if matches!(tag & DEPENDENCY, 0 | 3) {
        // A minus or a G is no digit either.
        let prefix = if tag & DEPENDENCY == 0 { b'-' } else { b'G' };
        if line(after) != prefix || after != time + 1 {
            return None;
        }
        (before, after) = (after, ends.next());
    }
    if tag > 7 || dep != bytes + 2 || line(after) != b'\n' {
        return None;
    }
    let length = after + 1;
    // What has no digits has too many: the difference wraps.
    let more = |before: usize, end: usize| end.wrapping_sub(before + 2);
    let fields = [
        (id, id.wrapping_sub(1)),
        (bytes, more(dst, bytes)),
        (time, more(dep, time)),
        (after, more(before, after)),
    ];
    let ranks = [(src, more(id, src)), (dst, more(src, dst))];
    if fields.iter().any(|&(_, more)| more >= WIDTH) || ranks.iter().any(|&(_, more)| more >= RANK) {
        return None;
    }
    let ([id, bytes, time, mut after], [src, dst]) = numbers(room, fields, ranks);
    if src >= tasks || dst >= tasks {
        return None;
    }
    if tag & DEPENDENCY == 0 {
        // It is -1, which the id 0 stands for.
        if after != 1 || length != before + 3 {
            return None;
        }
        after = 0;
    }
    Some((Rank(src), Raw::message(tag, src, dst, id, bytes, time, after), length))
}

/// Which of the line's first 64 bytes are no digits.
struct Ends(u64);

impl Ends {
    #[inline(always)]
    fn of(room: &[u8; ROOM]) -> Self {
        // SAFETY: every processor of this architecture has SSE2.
        let digits = |chunk: usize| unsafe { are_digits(room, BEFORE + chunk * WIDTH) };
        Self(!(digits(0) | digits(1) << 16 | digits(2) << 32 | digits(3) << 48))
    }

    /// The first such place that was not given yet; 64 if there is none.
    #[inline(always)]
    fn next(&mut self) -> usize {
        let at = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        at
    }
}

/// The numbers that end in front of these places of the line; each has one digit and so many more.
#[inline(always)]
fn numbers(
    room: &[u8; ROOM],
    [a, b, c, d]: [(usize, usize); 4],
    [e, f]: [(usize, usize); 2],
) -> ([u64; 4], [u32; 2]) {
    // SAFETY: every processor of this architecture has SSE2.
    unsafe {
        let [a, b] = two(digits(room, a), digits(room, b));
        let [c, d] = two(digits(room, c), digits(room, d));
        ([a, b, c, d], two_short(last_eight(room, e), last_eight(room, f)))
    }
}

/// Which of sixteen bytes are digits, a bit each.
#[inline]
#[target_feature(enable = "sse2")]
fn are_digits(room: &[u8; ROOM], at: usize) -> u64 {
    // The digits come to lie at the upper end of what a signed byte can be.
    let moved = _mm_add_epi8(sixteen(room, at), _mm_set1_epi8((0x7f - b'9') as i8));
    _mm_movemask_epi8(_mm_cmpgt_epi8(moved, _mm_set1_epi8(0x7f - 10))) as u64
}

/// What keeps the values of digits, from the first `WIDTH` places on, and nothing in front.
const KEPT: [u8; 2 * WIDTH] = {
    let mut kept = [0x0f; 2 * WIDTH];
    let mut at = 0;
    while at < WIDTH {
        kept[at] = 0;
        at += 1;
    }
    kept
};

/// The last digits in front of place `end` of the line, one and `more`, the last in the highest byte.
#[inline]
#[target_feature(enable = "sse2")]
fn digits(room: &[u8; ROOM], (end, more): (usize, usize)) -> __m128i {
    _mm_and_si128(sixteen(room, BEFORE + end - WIDTH), sixteen(&KEPT, 1 + more % WIDTH))
}

/// [`digits`] of which there are at most eight.
#[inline(always)]
fn last_eight(room: &[u8; ROOM], (end, more): (usize, usize)) -> u64 {
    word(room, BEFORE + end - RANK) & word(&KEPT, WIDTH - RANK + 1 + more % RANK)
}

#[inline]
#[target_feature(enable = "sse2")]
fn sixteen<const N: usize>(bytes: &[u8; N], at: usize) -> __m128i {
    _mm_set_epi64x(word(bytes, at + 8) as i64, word(bytes, at) as i64)
}

#[inline(always)]
fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..].first_chunk().copied().unwrap_or_default())
}

/// Digits joined: every four of them.
#[inline]
#[target_feature(enable = "sse2")]
fn fours(digits: __m128i) -> __m128i {
    let pairs = _mm_srli_epi16(_mm_mullo_epi16(digits, _mm_set1_epi16(10 << 8 | 1)), 8);
    _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100))
}

/// Fours of two vectors joined: every eight of their digits.
#[inline]
#[target_feature(enable = "sse2")]
fn eights(first: __m128i, second: __m128i) -> __m128i {
    _mm_madd_epi16(_mm_packs_epi32(first, second), _mm_set1_epi32(1 << 16 | 10_000))
}

/// The numbers of twice sixteen digits.
#[inline]
#[target_feature(enable = "sse2")]
fn two(first: __m128i, second: __m128i) -> [u64; 2] {
    let eights = eights(fours(first), fours(second));
    let upper = _mm_mul_epu32(eights, _mm_set1_epi64x(100_000_000));
    let both = _mm_add_epi64(upper, _mm_srli_epi64(eights, 32));
    [_mm_cvtsi128_si64(both), _mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both))].map(|number| number as u64)
}

/// The numbers of twice eight digits.
#[inline]
#[target_feature(enable = "sse2")]
fn two_short(first: u64, second: u64) -> [u32; 2] {
    let fours = fours(_mm_set_epi64x(second as i64, first as i64));
    let both = _mm_cvtsi128_si64(eights(fours, fours)) as u64;
    [both as u32, (both >> 32) as u32]
}
