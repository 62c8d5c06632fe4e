//! The shortest form of a record: one word of eight bytes, for calls like earlier ones that did not take long.
//!
//! ```text
//! bits 0…6   low bits of the code       7  set, unlike in the kind byte of any other record
//! bits 8…13  high bits of the code
//! bits 14…38 gap                        from the end of the thread's previous record to the call, ticks
//! bits 39…63 duration                   of the call, ticks
//! ```
//!
//! Codes below [`SHAPES`] are shapes: what a call was, but for its times, as an earlier record of the thread defined it. The others are
//! runs: completions of the thread's own requests that were made one after the other. A word is stored by
//! one instruction, so it is whole or not there.

/// How many shapes a thread can have at a time.
pub const SHAPES: u16 = 1 << 12;
/// Bytes of a word.
pub const WORD: usize = 8;
/// The most requests in a run that is a word, and the most that may have been made after them, plus one.
pub const RUN: u64 = 1 << RUN_BITS;

const RUN_BITS: u32 = 6;
const GAP_AT: u32 = 14;
const DURATION_AT: u32 = 39;
/// Gaps and durations below this fit.
const TIME: u64 = 1 << (DURATION_AT - GAP_AT);
const _: () = assert!(TIME == 1 << (64 - DURATION_AT));
/// Set in the first byte of every word, and of nothing else that begins a record.
pub(super) const MARK: u8 = 1 << 7;

/// A word but for its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(u16);

impl Head {
    /// Of a call with this shape, which is below [`SHAPES`].
    #[inline(always)]
    pub const fn shape(shape: u16) -> Self {
        Self::of(shape % SHAPES)
    }

    /// Of the completion of `count` requests in the order they were made, after the last of which `after` were made; both below
    /// [`RUN`], and `count` not 0.
    #[inline(always)]
    pub const fn run(count: u64, after: u64) -> Self {
        Self::of(SHAPES | ((count - 1) % RUN) as u16 | ((after % RUN) as u16) << RUN_BITS)
    }

    #[inline(always)]
    const fn of(code: u16) -> Self {
        Self(code & 0x7f | MARK as u16 | (code >> 7) << 8)
    }

    /// What words with this head say.
    #[inline(always)]
    pub const fn code(self) -> Code {
        let code = self.0 & 0x7f | self.0 >> 8 << 7;
        match code.checked_sub(SHAPES) {
            None => Code::Shape(code),
            Some(run) => Code::Run { count: run as u64 % RUN + 1, after: run as u64 / RUN },
        }
    }

    /// The word with these times; `None`: they are too long for one, or run backwards.
    #[inline(always)]
    pub const fn with(self, gap: u64, duration: u64) -> Option<u64> {
        if (gap | duration) < TIME {
            Some(self.0 as u64 | gap << GAP_AT | duration << DURATION_AT)
        } else {
            None
        }
    }
}

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A call of this shape.
    Shape(u16),
    /// The completion of requests that were made one after the other.
    Run {
        /// How many.
        count: u64,
        /// How many were made after the last of them.
        after: u64,
    },
}

/// Takes a word apart: its head, gap and duration.
#[inline(always)]
pub(super) fn parse(word: u64) -> (Head, u64, u64) {
    let head = Head((word & ((1 << GAP_AT) - 1)) as u16);
    (head, word >> GAP_AT & (TIME - 1), word >> DURATION_AT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        for time in [0, 1, 77, TIME - 1] {
            for shape in [0, 1, 127, 128, 1023, SHAPES - 1] {
                let word = Head::shape(shape).with(time, TIME - 1 - time).expect("short");
                assert_eq!(parse(word), (Head::shape(shape), time, TIME - 1 - time));
                assert_ne!(word as u8 & MARK, 0);
                assert_eq!(Head::shape(shape).code(), Code::Shape(shape));
            }
            for (count, after) in [(1, 0), (2, 0), (64, 63), (17, 5)] {
                let word = Head::run(count, after).with(time, 3).expect("short");
                assert_eq!(parse(word), (Head::run(count, after), time, 3));
                assert_eq!(Head::run(count, after).code(), Code::Run { count, after });
            }
        }
        assert_eq!(Head::shape(1).with(TIME, 0), None);
        assert_eq!(Head::shape(1).with(0, 3u64.wrapping_sub(5)), None);
    }
}
