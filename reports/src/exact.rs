//! Whole numbers in JSON that lose no digit in readers whose numbers are doubles.

use serde::{Serialize, Serializer};
use std::fmt;

/// A whole number: in JSON a number up to 2^53, beyond it a string of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Exact(pub u128);

impl Exact {
    /// The greatest that JSON has as a number.
    pub const MOST: u128 = 1 << 53;
}

impl From<u64> for Exact {
    fn from(value: u64) -> Self {
        Self(value.into())
    }
}

impl From<u128> for Exact {
    fn from(value: u128) -> Self {
        Self(value)
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(self.0) {
            Ok(value) if self.0 <= Self::MOST => serializer.serialize_u64(value),
            _ => serializer.collect_str(&self.0),
        }
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_kept() {
        let json = |value: u128| serde_json::to_string(&Exact(value)).unwrap();
        assert_eq!(json(0), "0");
        assert_eq!(json(1 << 53), "9007199254740992");
        assert_eq!(json((1 << 53) + 1), "\"9007199254740993\"");
        assert_eq!(json(u128::from(u64::MAX) * 2), "\"36893488147419103230\"");
    }
}
