//! What measurements say of a machine's messages, as `vef bench calibrate` writes it (`calibration.toml`).
//!
//! Times are nanoseconds, sizes bytes. `docs/benchmarks.md` tells how each figure is measured.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Version of the file.
pub const SCHEMA: &str = "vef-calibration-1";

/// A machine's messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: String,
    /// Which MPI, in its own words.
    pub mpi: String,
    /// Processor and system.
    pub machine: String,
    /// What a reduction of sums costs, ns a byte.
    pub reduction_ns_per_byte: f64,
    /// Between nodes.
    pub inter: Option<Class>,
    /// Within a node.
    pub intra: Option<Class>,
}

/// Messages of one kind of pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Time of the smallest message from the sender's call to the receiver's return, less both overheads (L).
    pub latency_ns: Estimate,
    /// Time for which a sender's processor is busy with a small message (o_s).
    pub send_overhead_ns: Estimate,
    /// Time for which a receiver's processor is busy with a small message that is there (o_r).
    pub receive_overhead_ns: Estimate,
    /// Least time between two small messages of a sender (g).
    pub gap_ns: Estimate,
    /// Time of a further byte of a stream of messages (G).
    pub ns_per_byte: Estimate,
    /// Bytes that pass at once after a pause, before `ns_per_byte` limits: a token bucket's, or a queue's that empties itself.
    pub burst_bytes: Estimate,
    /// Largest message that a blocking send hands over before the receive is posted; absent: no limit was found.
    pub eager_limit_bytes: Option<u64>,
    /// How much longer a message just above that limit takes than one just below, its bytes aside.
    pub rendezvous_ns: f64,
    /// Time both directions take at once, relative to one alone: 1 for full duplex, 2 for half.
    pub duplex: f64,
    /// Time of a lone message after a pause, in pieces.
    pub segments: Vec<Segment>,
    /// Median and largest relative difference between measured times and what the parameters above give.
    pub residual: [f64; 2],
}

/// A measured parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Sizes from here on (up to the next segment) take `base_ns + bytes · ns_per_byte`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// First size.
    pub from_bytes: u64,
    /// Time at size 0 of the line.
    pub base_ns: f64,
    /// Its slope.
    pub ns_per_byte: f64,
    /// Largest relative residual of the measured points.
    pub residual: f64,
}

/// Why a file is no calibration.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct CalibrationError {
    file: String,
    reason: String,
}

impl Calibration {
    /// Reads a file.
    ///
    /// # Errors
    /// With the file's name, and the place in it.
    pub fn read(path: &Path) -> Result<Self, CalibrationError> {
        let wrong = |reason: String| CalibrationError { file: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let calibration: Self = toml::from_str(&text)
            .map_err(|error| wrong(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")))?;
        if calibration.schema != SCHEMA {
            return Err(wrong(format!("schema {:?}, this is {SCHEMA:?}", calibration.schema)));
        }
        for (name, class) in [("inter", &calibration.inter), ("intra", &calibration.intra)] {
            let Some(class) = class else { continue };
            for (what, value, least) in [
                ("latency_ns", class.latency_ns.value, 0.0),
                ("send_overhead_ns", class.send_overhead_ns.value, 0.0),
                ("receive_overhead_ns", class.receive_overhead_ns.value, 0.0),
                ("ns_per_byte", class.ns_per_byte.value, 1e-6),
                ("burst_bytes", class.burst_bytes.value, 0.0),
            ] {
                if !(least..=1e15).contains(&value) {
                    return Err(wrong(format!("{name}.{what} {value}: from {least} to 1e15")));
                }
            }
        }
        Ok(calibration)
    }
}

impl Estimate {
    /// A value known exactly.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}
