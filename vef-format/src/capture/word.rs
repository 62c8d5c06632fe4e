//! The shortest form of a record: a word of eight bytes, for a short call that resembles an earlier one.
//!
//! ```text
//! bits 0…6   low bits of the code       7  set, unlike in the kind byte of any other record
//! bits 8…13  high bits of the code
//! bits 14…38 gap                        from the end of the thread's previous record to the call, ticks
//! bits 39…63 duration                   of the call, ticks
//! ```
//!
//! Codes below [`SHAPES`] are shapes: an earlier record of the thread defined everything but the times. The other codes are
//! runs: a call of one of the [`COMPLETERS`] that completed requests which the thread started consecutively. A word is
//! stored by one instruction, so it is never incomplete.

/// Maximum number of shapes of a thread.
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
/// Maximum number of requests in a run.
pub const RUN_COUNT: u64 = 28;
/// Maximum number of requests started after a run, plus one.
pub const RUN_AFTER: u64 = 32;

/// Number of codes for the runs of one function.
const RUNS: u16 = (RUN_COUNT * RUN_AFTER) as u16;
const _: () = assert!(SHAPES + COMPLETERS.len() as u16 * RUNS == 1 << 13);
const GAP_AT: u32 = 14;
const DURATION_AT: u32 = 39;
/// Limit of gaps and durations.
const TIME: u64 = 1 << (DURATION_AT - GAP_AT);
const _: () = assert!(TIME == 1 << (64 - DURATION_AT));
/// Set in the first byte of every word; clear in the kind byte of all other records.
pub(super) const MARK: u8 = 1 << 7;

/// A word without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(u16);

impl Head {
    /// A call of `shape`, which is below [`SHAPES`].
    #[inline(always)]
    pub const fn shape(shape: u16) -> Self {
        Self::of(shape % SHAPES)
    }

    /// A completion by `COMPLETERS[completer]` of `count` consecutive requests, after which `after` requests were started.
    /// `None`: zero, or too many for a word.
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

    /// The meaning of a word's head.
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

    /// The word with these times; `None`: they do not fit, or are negative.
    #[inline(always)]
    pub const fn with(self, gap: u64, duration: u64) -> Option<u64> {
        if (gap | duration) < TIME {
            Some(self.0 as u64 | gap << GAP_AT | duration << DURATION_AT)
        } else {
            None
        }
    }
}

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A call of this shape.
    Shape(u16),
    /// A completion of requests that were started consecutively.
    Run {
        /// Index in [`COMPLETERS`].
        completer: u8,
        /// Number of requests.
        count: u64,
        /// Number of requests started after them.
        after: u64,
    },
}

/// Splits a word into head, gap and duration.
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
