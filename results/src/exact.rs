//! Whole numbers in JSON that keep all digits in readers whose numbers are doubles.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
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

impl From<Exact> for u128 {
    fn from(Exact(value): Exact) -> Self {
        value
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

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrDigits)
    }
}

struct NumberOrDigits;

impl Visitor<'_> for NumberOrDigits {
    type Value = Exact;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a whole number or its digits")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Exact, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, digits: &str) -> Result<Exact, E> {
        digits.parse().map(Exact).map_err(E::custom)
    }
}

impl JsonSchema for Exact {
    fn schema_name() -> Cow<'static, str> {
        "Exact".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number; beyond 2^53 a string of digits.",
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": Self::MOST as u64 }, { "type": "string", "pattern": "^[0-9]{16,39}$" }],
        })
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
        for (value, json) in [
            (0, "0"),
            (1 << 53, "9007199254740992"),
            ((1 << 53) + 1, "\"9007199254740993\""),
            (u128::from(u64::MAX) * 2, "\"36893488147419103230\""),
        ] {
            assert_eq!(serde_json::to_string(&Exact(value)).unwrap(), json);
            assert_eq!(serde_json::from_str::<Exact>(json).unwrap(), Exact(value));
        }
        for wrong in ["-1", "0.5", "\"many\"", "null"] {
            assert!(serde_json::from_str::<Exact>(wrong).is_err(), "{wrong}");
        }
    }
}
