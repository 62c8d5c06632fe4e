//! Numbers as people read them, in the terminal and on the page.

use crate::exact::Exact;
use vef_format::units::{Bytes, Grouped, Picos};

pub(super) fn count(value: Exact) -> String {
    Grouped(value).to_string()
}

/// With a unit that fits; beyond 2^64 as it is.
pub(super) fn bytes(value: Exact) -> String {
    u64::try_from(value.0).map_or_else(|_| format!("{value} B"), |value| Bytes(value).to_string())
}

pub(super) fn time(value: Exact) -> String {
    u64::try_from(value.0).map_or_else(|_| format!("{value} ps"), |value| Picos(value).to_string())
}

pub(super) fn range(from: u128, to: u128) -> String {
    if from == to { Grouped(from).to_string() } else { format!("{} … {}", Grouped(from), Grouped(to)) }
}
