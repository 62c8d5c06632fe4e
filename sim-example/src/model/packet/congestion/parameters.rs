//! The parameters of congestion controls, which all read alike: `NAME`, or `NAME:KEY=VALUE,…`.

use std::collections::HashSet;
use std::fmt;

use vef_format::units::Bytes;

use crate::quantity::parse_bytes;

/// A text that is not a congestion control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CongestionError {
    /// The name is unknown, or a value is missing.
    #[error("write none, dctcp[:K=SIZE,g=G], dcqcn[:KEY=VALUE,…], window:SIZE, window:bdp or credits[:SIZE]")]
    Unknown,
    /// A parameter is unknown or invalid.
    #[error("{item:?}: {problem}")]
    Parameter {
        /// As written.
        item: String,
        /// What to write.
        problem: String,
    },
}

/// Calls `set` with name and value of each item of `KEY=VALUE,…`; it returns what is wrong with one.
pub(super) fn parameters(
    text: &str,
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), CongestionError> {
    let mut before = HashSet::new();
    for item in text.split(',').filter(|_| !text.is_empty()) {
        let done = match item.split_once('=') {
            Some((key, _)) if !before.insert(key.trim()) => Err(format!("{} is given twice", key.trim())),
            Some((key, value)) => set(key.trim(), value.trim()),
            None => Err("write KEY=VALUE".to_owned()),
        };
        done.map_err(|problem| CongestionError::Parameter { item: item.to_owned(), problem })?;
    }
    Ok(())
}

/// Writes `NAME`, or `NAME:KEY=VALUE,…` with the values that are given.
pub(super) fn write_given(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    given: impl Iterator<Item = (&'static str, String)>,
) -> fmt::Result {
    let given: Vec<String> = given.map(|(key, value)| format!("{key}={value}")).collect();
    match given.is_empty() {
        true => f.write_str(name),
        false => write!(f, "{name}:{}", given.join(",")),
    }
}

/// A number in (0, 1].
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a number above 0 and up to 1".to_owned())
}

/// At least a byte.
pub(super) fn size(text: &str) -> Result<Bytes, String> {
    match parse_bytes(text) {
        Ok(Bytes(0)) => Err("must be greater than zero".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}
