//! Exact bandwidths, times and sizes in text: `12.5GB/s`, `500ns`, `64KiB`.
//!
//! A quantity is a decimal number and a unit; blanks may surround both. A missing or unknown unit is an
//! error, and so is a value that is not a whole number of bits per second, picoseconds or bytes. Nothing is
//! computed in floating point.

use std::fmt;
use std::str::FromStr;

use results::shown;
use vef_format::units::{Bytes, Picos};

/// The error in a quantity. The caller names the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not begin with a decimal number.
    #[error("expected a decimal number and a unit, like {0}")]
    Number(&'static str),
    /// The unit is missing or unknown.
    #[error("unknown or missing unit; write {0}")]
    Unit(&'static str),
    /// The value cannot be represented exactly.
    #[error("not a whole number of {0}")]
    Fraction(&'static str),
    /// The value is negative.
    #[error("must not be negative")]
    Negative,
    /// The value is zero where that is invalid.
    #[error("must be greater than zero")]
    Zero,
    /// The value is out of range.
    #[error("more than {0} {1}")]
    Range(u64, &'static str),
}

/// A kind of quantity.
struct Kind {
    example: &'static str,
    units: &'static str,
    base: &'static str,
    /// The value of a unit in the base unit.
    scale: fn(&str) -> Option<u64>,
}

const BANDWIDTH: Kind = Kind {
    example: "10Gbit/s or 12.5GB/s",
    units: "bit/s, b/s, bps (bits) or B/s, Bps (bytes) with k, M, G, T or Ki, Mi, Gi, Ti in front, or these alone (of bit/s), like 10Gbit/s, 12.5GB/s or 10G",
    base: "bits per second",
    scale: |unit| {
        // In small letters, too: no bandwidth is in milli.
        let scale = |prefix: &str| match prefix {
            "m" | "g" | "t" => prefix_scale(&prefix.to_uppercase()),
            _ => prefix_scale(prefix),
        };
        let bits = ["bit/s", "Bit/s", "b/s", "bps"].iter().find_map(|end| unit.strip_suffix(end));
        if let Some(prefix) = bits {
            return scale(prefix);
        }
        match unit.strip_suffix("B/s").or_else(|| unit.strip_suffix("Bps")) {
            Some(prefix) => scale(prefix)?.checked_mul(8),
            None => scale(unit).filter(|_| !unit.is_empty()),
        }
    },
};

const TIME: Kind = Kind {
    example: "500ns or 1.5us",
    units: "ps, ns, us, ms or s, like 500ns or 1.5us",
    base: "picoseconds",
    scale: |unit| match unit {
        "ps" => Some(1),
        "ns" => Some(1_000),
        "us" | "µs" | "μs" => Some(1_000_000),
        "ms" => Some(1_000_000_000),
        "s" => Some(1_000_000_000_000),
        _ => None,
    },
};

const SIZE: Kind = Kind {
    example: "4096B or 64KiB",
    units: "B with k, M, G, T or Ki, Mi, Gi, Ti in front, or K, M, G, T alone (of 1024), like 4096B or 64K; KB is kB (1000 B) or KiB (1024 B)",
    base: "bytes",
    scale: |unit| match (unit, unit.strip_suffix('B')) {
        ("", _) => Some(1),
        ("k" | "K", _) => Some(1 << 10),
        ("M", _) => Some(1 << 20),
        ("G", _) => Some(1 << 30),
        ("T", _) => Some(1 << 40),
        (_, with_b) => prefix_scale(with_b?),
    },
};

fn prefix_scale(prefix: &str) -> Option<u64> {
    Some(match prefix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    })
}

impl Kind {
    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            let is_negative = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
            return Err(match text.strip_prefix(['-', '\u{2212}']).is_some_and(is_negative) {
                true => QuantityError::Negative,
                false => QuantityError::Number(self.example),
            });
        }
        // Zero is the same in all units.
        if unit.trim().is_empty() && number.bytes().all(|digit| matches!(digit, b'0' | b'.')) {
            return Ok(0);
        }
        let scale = (self.scale)(unit.trim_start()).ok_or(QuantityError::Unit(self.units))?;
        let range = QuantityError::Range(u64::MAX, self.base);
        let fraction = fraction.trim_end_matches('0');
        // No unit needs more than 18 decimal places; 38 digits fit into 128 bits.
        let whole: u64 = whole.parse().map_err(|_| range)?;
        let whole = u128::from(whole) * u128::from(scale);
        let rest = match fraction.len() {
            0 => 0,
            digits @ 1..=18 => {
                let fraction: u64 = fraction.parse().map_err(|_| range)?;
                let (scaled, ten) = (u128::from(fraction) * u128::from(scale), 10u128.pow(digits as u32));
                if scaled % ten != 0 {
                    return Err(QuantityError::Fraction(self.base));
                }
                scaled / ten
            }
            _ => return Err(QuantityError::Fraction(self.base)),
        };
        u64::try_from(whole + rest).map_err(|_| range)
    }
}

/// Parses a time: `500ns`, `1.5us`.
///
/// # Errors
/// The text is not a number with one of `ps ns us ms s`, or not a whole number of picoseconds.
pub fn parse_time(text: &str) -> Result<Picos, QuantityError> {
    TIME.parse(text).map(Picos)
}

/// A time as [`parse_time`] reads it, exact, in the largest unit.
pub(crate) fn exact_time(time: Picos) -> String {
    let units = [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
    let unit = units.into_iter().find(|(unit, _)| time.0.is_multiple_of(*unit)).unwrap_or((1, "ps"));
    format!("{}{}", time.0 / unit.0, unit.1)
}

/// Parses a size: `4096`, `64KiB`, `1.5MB`, `64K` (a letter alone is a power of 1024).
///
/// # Errors
/// The text is not a number with an optional unit: `B` with a decimal or binary prefix, or a letter. Or it is
/// not a whole number of bytes.
pub fn parse_bytes(text: &str) -> Result<Bytes, QuantityError> {
    SIZE.parse(text).map(Bytes)
}

/// The bandwidth of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bandwidth {
    bits_per_second: u64,
    /// A byte takes `num / den` picoseconds, in lowest terms.
    num: u64,
    den: u64,
}

impl Bandwidth {
    /// A bandwidth in bits per second; `None` for zero.
    pub const fn from_bits_per_second(bits_per_second: u64) -> Option<Self> {
        /// Picoseconds per byte at one bit per second.
        const SLOWEST: u64 = 8_000_000_000_000;
        if bits_per_second == 0 {
            return None;
        }
        let (mut a, mut b) = (SLOWEST, bits_per_second);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { bits_per_second, num: SLOWEST / a, den: bits_per_second / a })
    }

    /// The bandwidth in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// A share of it, rounded to bits per second, at least one.
    pub(crate) fn scaled(self, share: f64) -> Self {
        let bits_per_second = (self.bits_per_second as f64 * share).round() as u64;
        Self::from_bits_per_second(bits_per_second.max(1)).unwrap_or(self)
    }

    /// Transmission time of `bytes`: bytes × 8 / bandwidth, rounded up to picoseconds. `None` if it exceeds
    /// [`Picos::MAX`].
    #[inline]
    pub fn time(self, bytes: Bytes) -> Option<Picos> {
        if let Some(scaled) = bytes.0.checked_mul(self.num) {
            return Some(Picos(if self.den == 1 { scaled } else { scaled.div_ceil(self.den) }));
        }
        let scaled = u128::from(bytes.0) * u128::from(self.num);
        u64::try_from(scaled.div_ceil(u128::from(self.den))).ok().map(Picos)
    }
}

impl FromStr for Bandwidth {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::from_bits_per_second(BANDWIDTH.parse(text)?).ok_or(QuantityError::Zero)
    }
}

impl fmt::Display for Bandwidth {
    /// In the largest decimal unit that gives a whole number: `12500Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown::rate(self.bits_per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(text: &str) -> u64 {
        text.parse::<Bandwidth>().unwrap().bits_per_second()
    }

    #[test]
    fn units() {
        assert_eq!(bits("10Gbit/s"), 10_000_000_000);
        assert_eq!(bits("12.5GB/s"), 100_000_000_000);
        assert_eq!(bits(" 100 Gb/s "), 100_000_000_000);
        assert_eq!(bits("1Gbps"), 1_000_000_000);
        assert_eq!(bits("1GBps"), 8_000_000_000);
        assert_eq!(bits("1KiB/s"), 8192);
        assert_eq!(bits("25G"), 25_000_000_000);
        assert_eq!(
            (bits("100gbps"), bits("100g"), bits("5mbit/s")),
            (bits("100G"), bits("100G"), bits("5M"))
        );
        assert_eq!(bits("9bit/s"), 9);
        assert_eq!(parse_time("500ns"), Ok(Picos(500_000)));
        assert_eq!(parse_time("1.5 µs"), Ok(Picos(1_500_000)));
        assert_eq!(parse_time("0ps"), Ok(Picos(0)));
        assert_eq!(parse_time("0"), Ok(Picos(0)));
        assert_eq!(parse_time("2.000s"), Ok(Picos(2_000_000_000_000)));
        assert_eq!(parse_bytes("64KiB"), Ok(Bytes(65536)));
        assert_eq!(parse_bytes("1.5MB"), Ok(Bytes(1_500_000)));
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        let bandwidth = |text: &str| text.parse::<Bandwidth>().unwrap_err().to_string();
        let time = |text: &str| parse_time(text).unwrap_err().to_string();
        assert!(bandwidth("10Gb").contains("unknown or missing unit; write bit/s"));
        assert!(bandwidth("10").contains("missing unit"));
        assert!(bandwidth("10xbit/s").contains("unknown"));
        assert_eq!(bandwidth("0"), "must be greater than zero");
        assert!(parse_bytes("4KB").unwrap_err().to_string().contains("KB is kB (1000 B) or KiB (1024 B)"));
        assert!(bandwidth("fast").contains("expected a decimal number"));
        assert!(bandwidth("0Gbit/s").contains("greater than zero"));
        assert!(bandwidth("99999999999Tbit/s").contains("more than 18446744073709551615 bits per second"));
        assert!(bandwidth("").contains("expected a decimal number"));
        assert_eq!(time("-1ns"), "must not be negative");
        assert!(time("--x").contains("expected a decimal number"));
        assert!(time("1.2.3ns").contains("expected a decimal number"));
        assert!(time(".5ns").contains("expected a decimal number"));
        assert!(time("5.ns").contains("expected a decimal number"));
        assert!(time("1e3ns").contains("unit"));
        assert!(time("0.5ps").contains("not a whole number of picoseconds"));
        assert!(time("0.0000000000000000000000001s").contains("not a whole number"));
        assert!(time("99999999999999999999999ns").contains("more than"));
    }

    #[test]
    fn transmission_times_are_exact_and_rounded_up() {
        let time = |text: &str, bytes| text.parse::<Bandwidth>().unwrap().time(Bytes(bytes)).map(|t| t.0);
        assert_eq!(time("10Gbit/s", 1), Some(800));
        assert_eq!(time("12.5GB/s", 1000), Some(80_000));
        assert_eq!(time("3bit/s", 1), Some(2_666_666_666_667));
        assert_eq!(time("3bit/s", 3), Some(8_000_000_000_000));
        assert_eq!(time("16Tbit/s", 1), Some(1));
        assert_eq!(time("16Tbit/s", u64::MAX), Some(u64::MAX / 2 + 1));
        assert_eq!(time("1bit/s", u64::MAX), None);
        assert_eq!(time("10Gbit/s", 0), Some(0));
    }

    proptest! {
        #[test]
        fn time_is_the_rounded_up_quotient(bits in 1u64.., bytes: u64) {
            let exact = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(bits));
            let time = Bandwidth::from_bits_per_second(bits).unwrap().time(Bytes(bytes));
            prop_assert_eq!(time, u64::try_from(exact).ok().map(Picos));
        }

        #[test]
        fn a_bandwidth_reads_back(bits in 1u64..) {
            let bandwidth = Bandwidth::from_bits_per_second(bits).unwrap();
            prop_assert_eq!(bandwidth.to_string().parse(), Ok(bandwidth));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,20}", number in "[0-9.]{0,40}") {
            let _ = text.parse::<Bandwidth>();
            let _ = parse_time(&format!("{number}s"));
            let _ = parse_bytes(&format!("{number}{text}"));
        }
    }
}
