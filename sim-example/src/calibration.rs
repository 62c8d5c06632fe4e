//! What measurements say of a machine's messages, as `vef bench calibrate` writes it (`calibration.toml`).
//!
//! Times are nanoseconds, sizes bytes. `docs/benchmarks.md` tells how each figure is measured.

use std::path::Path;

use replay::{Link, SameNode, SendCompletion};
use serde::{Deserialize, Serialize};
use vef_format::units::{Bytes, Picos};

use crate::quantity::Bandwidth;
use crate::settings::Settings;

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

impl Calibration {
    /// Gives a network the measured figures, whatever its model: the links of nodes get rate, latency and burst, interfaces the
    /// sender's overhead, sends the eager limit; messages within a node take as long as measured. What is already set on
    /// `links` (the node's bandwidth or latency, a burst) stays.
    ///
    /// # Errors
    /// Rates that no link can have.
    pub fn apply(&self, settings: &mut Settings) -> Result<(), CalibrationError> {
        let rate = |ns_per_byte: f64| {
            let bits = (8e9 / ns_per_byte).round();
            Bandwidth::from_bits_per_second(bits as u64).ok_or_else(|| CalibrationError {
                file: "calibration".into(),
                reason: format!("{ns_per_byte} ns a byte is no rate"),
            })
        };
        let picos = |ns: f64| Picos((ns * 1e3).round() as u64);
        if let Some(class) = &self.inter {
            let links = &mut settings.network.links;
            if links.node_bandwidth.is_none() {
                links.node_bandwidth = Some(rate(class.ns_per_byte.value)?);
            }
            if links.node_latency.is_none() {
                // Two links join nodes; the receiver's overhead delays what follows as a latency does.
                let both = class.latency_ns.value + class.receive_overhead_ns.value;
                links.node_latency = Some(picos(both / 2.0));
            }
            if links.overhead == Picos::ZERO {
                links.overhead = picos(class.send_overhead_ns.value);
            }
            if links.burst == Bytes(0) {
                links.burst = Bytes(class.burst_bytes.value.round() as u64);
            }
            if let (SendCompletion::Eager, Some(above)) = (settings.send_completion, class.eager_limit_bytes)
            {
                settings.send_completion = SendCompletion::Rendezvous { above: Bytes(above) };
            }
        }
        if let (SameNode::HandOut, Some(class)) = (settings.same_node, &self.intra) {
            let all = class.latency_ns.value + class.send_overhead_ns.value + class.receive_overhead_ns.value;
            let link = Link::new(picos(all), rate(class.ns_per_byte.value)?.bits_per_second());
            settings.same_node = SameNode::Inside(link.map_err(|error| CalibrationError {
                file: "calibration".into(),
                reason: error.to_string(),
            })?);
        }
        Ok(())
    }
}

impl Estimate {
    /// A value known exactly.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}
