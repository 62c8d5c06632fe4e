//! Quantities with their units as types: picoseconds, ticks, bytes; and their formatting.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A duration or an instant of simulated time in picoseconds. 2^64 ps are 213 days; arithmetic that can overflow is checked
/// ([`Picos::checked_add`]).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Picos(pub u64);

impl Picos {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The largest time.
    pub const MAX: Self = Self(u64::MAX);

    /// `self + other`, or `None` on overflow.
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// `self + other`, at most [`Picos::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `self - other`, at least zero.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Seconds, rounded.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
}

impl fmt::Display for Picos {
    /// With the unit that leaves one to three digits before the point, `1.500 ms`; seconds in groups of three: `1 234.500 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => return f.pad(&format!("{} ps", self.0)),
            1_000..1_000_000 => (1e3, "ns"),
            1_000_000..1_000_000_000 => (1e6, "µs"),
            1_000_000_000..1_000_000_000_000 => (1e9, "ms"),
            1_000_000_000_000..1_000_000_000_000_000 => (1e12, "s"),
            _ => {
                let millis = self.0 / 1_000_000_000 + u64::from(self.0 % 1_000_000_000 >= 500_000_000);
                return f.pad(&format!("{}.{:03} s", Grouped(millis / 1000), millis % 1000));
            }
        };
        f.pad(&format!("{:.3} {unit}", self.0 as f64 / scale))
    }
}

/// A duration in units of the trace's clock; the header has the picoseconds of a tick.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Picoseconds, at `clock` picoseconds a tick; `None` on overflow.
    #[inline]
    pub const fn to_picos(self, clock: Picos) -> Option<Picos> {
        match self.0.checked_mul(clock.0) {
            Some(picos) => Some(Picos(picos)),
            None => None,
        }
    }
}

/// An instant of a capture: nanoseconds of the capturing host's `CLOCK_MONOTONIC`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Nanoseconds from `earlier` to `self`; `None` if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }
}

/// An amount of data in bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Zero.
    pub const ZERO: Self = Self(0);
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl fmt::Display for Bytes {
    /// Exact below 10 kB, in groups of three digits; otherwise with a decimal prefix: `1.500 MB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..10_000 => return f.pad(&format!("{} B", Grouped(self.0))),
            10_000..1_000_000 => (1e3, "kB"),
            1_000_000..1_000_000_000 => (1e6, "MB"),
            1_000_000_000..1_000_000_000_000 => (1e9, "GB"),
            1_000_000_000_000..1_000_000_000_000_000 => (1e12, "TB"),
            1_000_000_000_000_000..1_000_000_000_000_000_000 => (1e15, "PB"),
            _ => (1e18, "EB"),
        };
        f.pad(&format!("{:.3} {unit}", self.0 as f64 / scale))
    }
}

/// A number formatted in groups of three: `12 345 678`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouped<N>(pub N);

impl<N: fmt::Display> fmt::Display for Grouped<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (position, digit) in digits.chars().enumerate() {
            if position > 0 && (digits.len() - position).is_multiple_of(3) {
                text.push(' ');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A number of things, by the name of one: `1 rank`, `1 024 ranks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<N>(pub N, pub &'static str);

impl<N: Copy + PartialEq + From<u8>> Count<N> {
    /// The words that agree with the number, such as a verb: `one` of one thing, else `several`.
    pub fn agree(self, one: &'static str, several: &'static str) -> &'static str {
        if self.0 == N::from(1) { one } else { several }
    }
}

impl<N: Copy + fmt::Display + PartialEq + From<u8>> fmt::Display for Count<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, one) = *self;
        write!(f, "{} {one}{}", Grouped(number), self.agree("", "s"))
    }
}

/// Text that may come from anywhere, for a terminal: control characters are escaped, the ends of lines and tabs excepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for sign in self.0.chars() {
            match sign.is_control() && !matches!(sign, '\n' | '\t') {
                true => write!(f, "{}", sign.escape_default())?,
                false => f.write_char(sign)?,
            }
        }
        Ok(())
    }
}

/// A text with a replacement character for each character that no XML document may have, such as U+FFFE.
pub fn xml_text(text: String) -> String {
    let is_invalid = |sign: char| matches!(sign, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_invalid) { text.replace(is_invalid, "\u{fffd}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_has_no_control_characters() {
        let text = xml_text("<text>a\u{1}b\u{fffe}c\td\ne</text>".to_owned());
        assert_eq!(text, "<text>a\u{fffd}b\u{fffd}c\td\ne</text>");
    }

    #[test]
    fn what_people_are_shown() {
        for (count, text) in [(0u64, "0"), (999, "999"), (1000, "1 000"), (12_345_678, "12 345 678")] {
            assert_eq!(Grouped(count).to_string(), text);
        }
        for (bytes, text) in [
            (999, "999 B"),
            (8040, "8 040 B"),
            (85_899_346_000, "85.899 GB"),
            (85_899_345_920_000, "85.899 TB"),
            (1_000_000_000_000_000, "1.000 PB"),
            (u64::MAX, "18.447 EB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        for (time, text) in [
            (0, "0 ps"),
            (999_000_000_000, "999.000 ms"),
            (999_500_000_000_000, "999.500 s"),
            (1_000_000_000_000_000, "1 000.000 s"),
            (1_234_567_890_000_000_000, "1 234 567.890 s"),
            (u64::MAX, "18 446 744.074 s"),
        ] {
            assert_eq!(Picos(time).to_string(), text);
        }
        assert_eq!(Printable("a\u{1b}[2J\r\u{9b}b\tµ\n").to_string(), "a\\u{1b}[2J\\r\\u{9b}b\tµ\n");
        assert_eq!(
            format!("{:>7}|{:>9}|{:>10}", Grouped(1234u128), Bytes(10_500), Picos(1_500_000)),
            "  1 234|10.500 kB|  1.500 µs"
        );
    }
}
