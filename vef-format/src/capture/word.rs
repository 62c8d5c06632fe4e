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
//! runs: completions, by one of the [`COMPLETERS`], of the thread's own requests that were made one after the other. A word is
//! stored by one instruction, so it is whole or not there.

/// How many shapes a thread can have at a time.
pub const SHAPES: u16 = 1 << 10;
/// Bytes of a word.
pub const WORD: usize = 8;
/// The functions that complete requests.
pub const COMPLETERS: [&str; 8] = [
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
];
/// The most requests in a run that is a word.
pub const RUN_COUNT: u64 = 28;
/// The most requests made after those of a run that is a word, plus one.
pub const RUN_AFTER: u64 = 32;

/// Codes of runs by one function.
const RUNS: u16 = (RUN_COUNT * RUN_AFTER) as u16;
const _: () = assert!(SHAPES + COMPLETERS.len() as u16 * RUNS == 1 << 13);
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

    /// Of the completion, by `COMPLETERS[completer]`, of `count` requests in the order they were made, after the last of which
    /// `after` were made. `None`: they are too many for a word, or none.
    #[inline(always)]
    pub const fn run(completer: u8, count: u64, after: u64) -> Option<Self> {
        if count.wrapping_sub(1) >= RUN_COUNT || after >= RUN_AFTER {
            return None;
        }
        Some(Self::of(SHAPES + completer as u16 * RUNS + ((count - 1) * RUN_AFTER + after) as u16))
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
            Some(run) => Code::Run {
                completer: (run / RUNS) as u8,
                count: (run % RUNS) as u64 / RUN_AFTER + 1,
                after: run as u64 % RUN_AFTER,
            },
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
        /// By which of the [`COMPLETERS`].
        completer: u8,
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
            for shape in [0, 1, 127, 128, SHAPES - 1] {
                let word = Head::shape(shape).with(time, TIME - 1 - time).expect("short");
                assert_eq!(parse(word), (Head::shape(shape), time, TIME - 1 - time));
                assert_ne!(word as u8 & MARK, 0);
                assert_eq!(Head::shape(shape).code(), Code::Shape(shape));
            }
            for (completer, count, after) in [(0, 1, 0), (1, 2, 0), (7, RUN_COUNT, RUN_AFTER - 1), (3, 17, 5)]
            {
                let head = Head::run(completer, count, after).expect("few");
                assert_eq!(parse(head.with(time, 3).expect("short")), (head, time, 3));
                assert_eq!(head.code(), Code::Run { completer, count, after });
            }
        }
        for (count, after) in [(0, 0), (RUN_COUNT + 1, 0), (1, RUN_AFTER)] {
            assert_eq!(Head::run(0, count, after), None);
        }
        assert_eq!(Head::shape(1).with(TIME, 0), None);
        assert_eq!(Head::shape(1).with(0, 3u64.wrapping_sub(5)), None);
    }
}
