//! Traffic beside jobs, as it is described: a pattern and a load.

use std::fmt;
use std::str::FromStr;

use super::sends::{Sends, SendsError};

/// Traffic of all nodes of the network beside its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Where each node sends.
    pub pattern: Sends,
    /// Share of the bandwidth of a node's link, above 0 and up to 1.
    pub load: f64,
}

/// Text that is not `PATTERN@LOAD`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackgroundError(String);

impl FromStr for Background {
    type Err = BackgroundError;

    fn from_str(text: &str) -> Result<Self, BackgroundError> {
        let (pattern, load) = text
            .rsplit_once('@')
            .ok_or_else(|| BackgroundError("write PATTERN@LOAD, such as uniform@0.3".to_owned()))?;
        let pattern = pattern.parse().map_err(|error: SendsError| BackgroundError(error.to_string()))?;
        let load = load.parse().ok().filter(|load| *load > 0.0 && *load <= 1.0);
        let load =
            load.ok_or_else(|| BackgroundError("the load is a share above 0 and up to 1".to_owned()))?;
        Ok(Self { pattern, load })
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pattern, self.load)
    }
}
