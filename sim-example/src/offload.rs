//! Which collectives the network carries out itself, and how fast: `offload:LATENCY` instead of messages, and its text form.

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use replay::{CollectiveEvents, CommId, EventOn, Picos};
use vef_format::nearest::did_you_mean;
use vef_format::operation::Operation;

use crate::quantity::{QuantityError, parse_bytes, parse_time};

/// How collectives are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Collectives {
    /// By messages between the members.
    #[default]
    Messages,
    /// By the network itself, those that are chosen; others by messages.
    Offload(Offload),
}

/// Which collectives the network carries out, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offload {
    /// From the last entry to the first byte of a result.
    pub latency: Picos,
    /// Which collectives; always for each entry.
    pub which: CollectiveEvents,
}

impl Offload {
    /// The operations that are carried out if none are named: those that switches are made for.
    pub const USUAL: [Operation; 4] =
        [Operation::Barrier, Operation::Bcast, Operation::Reduce, Operation::Allreduce];

    /// [`Offload::USUAL`] of any size and number of members.
    pub fn new(latency: Picos) -> Self {
        let operations = Self::USUAL.to_vec();
        Self {
            latency,
            which: CollectiveEvents { operations, on: EventOn::EachEntry, ..CollectiveEvents::default() },
        }
    }
}

fn keys() -> impl Iterator<Item = &'static str> {
    Operation::ALL.iter().map(|operation| operation.key())
}

/// What is wrong with a text of [`Collectives`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffloadError {
    /// It is neither of the two forms.
    #[error(
        "write messages, or offload:LATENCY and any of ,ops=NAME+NAME… ,bytes=FROM-TO ,ranks=FROM-TO ,comms=N+N…"
    )]
    Form,
    /// The latency is none.
    #[error("{text:?}: {error}")]
    Latency {
        /// As it is written.
        text: String,
        /// What is wrong.
        error: QuantityError,
    },
    /// There is no such operation.
    #[error("no collective operation is called {:?}; {}write {}", .0, did_you_mean(.0, keys()), keys().collect::<Vec<_>>().join(", "))]
    Operation(String),
    /// A range is none, or it is empty.
    #[error("{0:?}: write FROM-TO, FROM- or -TO, and nothing that is above TO as FROM")]
    Range(String),
    /// What one item says an earlier one said.
    #[error("{0:?}: given a second time")]
    Twice(String),
    /// A number of a communicator is none.
    #[error("{0:?} is not the number of a communicator")]
    Comm(String),
}

impl FromStr for Collectives {
    type Err = OffloadError;

    fn from_str(text: &str) -> Result<Self, OffloadError> {
        let mut items = text.trim().split(',');
        let first = items.next().unwrap_or_default();
        let Some(latency) = first.strip_prefix("offload:") else {
            return match text.trim() {
                "messages" => Ok(Self::Messages),
                _ => Err(OffloadError::Form),
            };
        };
        let latency =
            parse_time(latency).map_err(|error| OffloadError::Latency { text: latency.to_owned(), error })?;
        let mut offload = Offload::new(latency);
        let mut before = HashSet::new();
        for item in items {
            let (key, value) = item.split_once('=').ok_or(OffloadError::Form)?;
            if !before.insert(key) {
                return Err(OffloadError::Twice(item.to_owned()));
            }
            let which = &mut offload.which;
            match key {
                "ops" => {
                    let named =
                        |name| Operation::named(name).ok_or_else(|| OffloadError::Operation(name.to_owned()));
                    which.operations = value.split('+').map(named).collect::<Result<_, _>>()?;
                }
                "bytes" => {
                    which.bytes = range(value, u64::MAX, |text| parse_bytes(text).ok().map(|bytes| bytes.0))?;
                }
                "ranks" => which.ranks = range(value, u32::MAX, |text| text.parse().ok())?,
                "comms" => {
                    let comm = |text: &str| {
                        text.parse().map(CommId).map_err(|_| OffloadError::Comm(text.to_owned()))
                    };
                    which.comms = Some(value.split('+').map(comm).collect::<Result<_, _>>()?);
                }
                _ => return Err(OffloadError::Form),
            }
        }
        Ok(Self::Offload(offload))
    }
}

/// A range from `FROM-TO`, `FROM-` or `-TO`.
fn range<T: Copy + Default + PartialOrd>(
    text: &str,
    most: T,
    number: impl Fn(&str) -> Option<T>,
) -> Result<RangeInclusive<T>, OffloadError> {
    let end = |text: &str, otherwise| if text.is_empty() { Some(otherwise) } else { number(text) };
    let ends = text.split_once('-').and_then(|(from, to)| Some(end(from, T::default())?..=end(to, most)?));
    ends.filter(|ends| !ends.is_empty() && text != "-").ok_or_else(|| OffloadError::Range(text.to_owned()))
}

impl fmt::Display for Collectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Offload(Offload { latency, which }) = self else { return f.write_str("messages") };
        let names: Vec<&str> = which.operations.iter().map(|operation| operation.key()).collect();
        write!(f, "offload:{}ps,ops={}", latency.0, names.join("+"))?;
        if which.bytes != (0..=u64::MAX) {
            write!(f, ",bytes={}-{}", which.bytes.start(), which.bytes.end())?;
        }
        if which.ranks != (0..=u32::MAX) {
            write!(f, ",ranks={}-{}", which.ranks.start(), which.ranks.end())?;
        }
        if let Some(comms) = &which.comms {
            let numbers: Vec<String> = comms.iter().map(|comm| comm.0.to_string()).collect();
            write!(f, ",comms={}", numbers.join("+"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back() {
        for (text, shown) in [
            ("messages", "messages"),
            ("offload:2us", "offload:2000000ps,ops=barrier+bcast+reduce+allreduce"),
            (
                "offload:1ns,ops=Allreduce+reduce_scatter,bytes=-4KiB",
                "offload:1000ps,ops=allreduce+reduce-scatter,bytes=0-4096",
            ),
            (
                "offload:0ps,ranks=3-,comms=0+7",
                "offload:0ps,ops=barrier+bcast+reduce+allreduce,ranks=3-4294967295,comms=0+7",
            ),
        ] {
            let collectives: Collectives = text.parse().unwrap();
            assert_eq!(collectives.to_string(), shown);
            assert_eq!(shown.parse(), Ok(collectives));
        }
        for (text, says) in [
            ("", "write messages, or offload:LATENCY"),
            ("offload", "write messages, or offload:LATENCY"),
            ("offload:", "\"\": expected a decimal number"),
            ("offload:2", "\"2\": unknown or missing unit"),
            ("offload:2us,", "write messages, or offload:LATENCY"),
            ("offload:2us,op=bcast", "write messages, or offload:LATENCY"),
            ("offload:2us,ops=", "no collective operation is called \"\""),
            ("offload:2us,ops=Sum", "no collective operation is called \"Sum\""),
            ("offload:2us,bytes=4", "\"4\": write FROM-TO"),
            ("offload:2us,bytes=-", "\"-\": write FROM-TO"),
            ("offload:2us,ranks=5-4", "\"5-4\": write FROM-TO"),
            ("offload:2us,comms=1,comms=7", "\"comms=7\": given a second time"),
            ("offload:2us,comms=x", "\"x\" is not the number of a communicator"),
        ] {
            let error = text.parse::<Collectives>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
