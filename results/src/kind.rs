//! What a message belongs to.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use vef_format::operation::Operation;

/// What a message belongs to: in JSON `point_to_point`, or the operation, such as `allreduce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A point-to-point line of the trace.
    PointToPoint,
    /// A collective operation.
    #[serde(untagged)]
    Collective(Operation),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PointToPoint => f.pad("point-to-point"),
            Self::Collective(operation) => f.pad(operation.name()),
        }
    }
}

impl JsonSchema for Kind {
    fn schema_name() -> Cow<'static, str> {
        "Kind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let operations = Operation::ALL.iter().map(|&operation| Self::Collective(operation));
        let all: Vec<Self> = [Self::PointToPoint].into_iter().chain(operations).collect();
        json_schema!({ "enum": all })
    }
}
