//! What measurements say of a machine's messages, as `vef bench calibrate` writes it (`calibration.toml`).
//!
//! Times are nanoseconds, sizes bytes. `docs/benchmarks.md` tells how each figure is measured.

use std::path::Path;

use replay::{Link, SameNode, SendCompletion};
use serde::{Deserialize, Serialize};
use vef_format::units::{Bytes, Picos};

use crate::loggp::Parameters;
use crate::model::{Delay, Protocol};
use crate::quantity::Bandwidth;
use crate::settings::Settings;

/// Version of the file.
pub const SCHEMA: &str = "vef-calibration-2";

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
                ("gap_ns", class.gap_ns.value, 0.0),
                ("burst_bytes", class.burst_bytes.value, 0.0),
                ("duplex", class.duplex, 0.0),
            ] {
                if !(least..=1e15).contains(&value) {
                    return Err(wrong(format!("{name}.{what} {value}: from {least} to 1e15")));
                }
            }
            let ascend = |two: &[Segment]| two[0].from_bytes < two[1].from_bytes;
            let finite = |one: &Segment| one.base_ns.is_finite() && one.ns_per_byte.is_finite();
            if !class.segments.windows(2).all(ascend) || !class.segments.iter().all(finite) {
                return Err(wrong(format!("{name}.segments: finite numbers, from_bytes in ascending order")));
            }
        }
        Ok(calibration)
    }
}

impl Calibration {
    /// Gives a network the measured figures, whatever its model: the links of nodes get rate, latency and burst, interfaces the
    /// sender's overhead or gap (the longer), sends the eager limit, messages the delays of their sizes and what they take from the
    /// opposite direction; messages within a node take as long as measured. What is already set on
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
            // An interface is as long busy with a small message as the next must wait.
            let busy = class.send_overhead_ns.value.max(class.gap_ns.value).min(class.small_ns());
            let links = &mut settings.network.links;
            if links.node_bandwidth.is_none() {
                links.node_bandwidth = Some(rate(class.ns_per_byte.value)?);
            }
            if links.node_latency.is_none() {
                // Two links join nodes; the receiver's overhead delays what follows as a latency does.
                links.node_latency = Some(picos((class.small_ns() - busy) / 2.0));
            }
            if links.overhead == Picos::ZERO {
                links.overhead = picos(busy);
            }
            if links.burst == Bytes(0) {
                links.burst = Bytes(class.burst_bytes.value.round() as u64);
            }
            if let (SendCompletion::Eager, Some(above)) = (settings.send_completion, class.eager_limit_bytes)
            {
                settings.send_completion = SendCompletion::Rendezvous { above: Bytes(above) };
            }
            if settings.network.protocol == Protocol::default() {
                settings.network.protocol = class.protocol();
            }
            let loggp = &mut settings.network.loggp.parameters;
            if *loggp == Parameters::default() {
                *loggp = class.loggp();
            }
        }
        if let (SameNode::HandOut, Some(class)) = (settings.same_node, &self.intra) {
            let link = Link::new(picos(class.small_ns()), rate(class.ns_per_byte.value)?.bits_per_second());
            settings.same_node = SameNode::Inside(link.map_err(|error| CalibrationError {
                file: "calibration".into(),
                reason: error.to_string(),
            })?);
        }
        Ok(())
    }
}

/// Messages of less than this have no delay of their own.
const SMALL: u64 = 1024;

impl Class {
    /// Time of the smallest message, with both overheads.
    fn small_ns(&self) -> f64 {
        self.latency_ns.value + self.send_overhead_ns.value + self.receive_overhead_ns.value
    }

    /// What a lone message takes in a simulation with these parameters, ns.
    pub fn message_ns(&self, bytes: Bytes) -> f64 {
        let limited = (bytes.0 as f64 - self.burst_bytes.value).max(0.0);
        self.small_ns() + limited * self.ns_per_byte.value + self.protocol().delay(bytes).0 as f64 / 1e3
    }

    /// The numbers of the model that has the same overhead at both ends.
    fn loggp(&self) -> Parameters {
        let picos = |ns: f64| Picos((ns * 1e3).round() as u64);
        Parameters {
            latency: picos(self.latency_ns.value),
            overhead: picos((self.send_overhead_ns.value + self.receive_overhead_ns.value) / 2.0),
            gap: picos(self.gap_ns.value),
            gap_per_byte: picos(self.ns_per_byte.value),
            overhead_per_byte: Picos::ZERO,
            eager: Bytes(self.eager_limit_bytes.unwrap_or(u64::MAX)),
        }
    }

    /// What messages take beyond latency, overheads, rate and burst.
    fn protocol(&self) -> Protocol {
        let (rate, burst) = (self.ns_per_byte.value, self.burst_bytes.value);
        let end = |index: usize| self.segments.get(index + 1).map_or(u64::MAX, |next| next.from_bytes);
        // Lone messages are measured after a pause, in which processors fall asleep: small ones say how long waking them takes.
        let small = self.segments.iter().enumerate().filter(|(_, segment)| segment.from_bytes < SMALL);
        let awake = small
            .flat_map(|(index, segment)| {
                [segment.from_bytes, end(index).min(SMALL)]
                    .map(|bytes| segment.base_ns + segment.ns_per_byte * bytes as f64)
            })
            .fold(0.0, f64::max);
        let mut delays = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let end = end(index);
            // Up to the burst links take no time; what is longer waits for the rate.
            let bend = (burst.ceil() as u64).clamp(segment.from_bytes, end);
            let over = |from: u64, base: f64, per_byte: f64| Delay {
                from: Bytes(from),
                base: 1e3 * (segment.base_ns - awake - base),
                per_byte: 1e3 * (segment.ns_per_byte - per_byte),
            };
            if segment.from_bytes < bend {
                delays.push(over(segment.from_bytes, 0.0, 0.0));
            }
            if bend < end {
                delays.push(over(bend, -burst * rate, rate));
            }
        }
        Protocol { returned: (self.duplex - 1.0).max(0.0), delays }
    }
}

impl Estimate {
    /// A value known exactly.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::settings::Workload;
    use std::io::Write;

    /// 10 ns a byte, 26 µs a small message, 8 µs between two, half a link's time for the other direction, and 400 µs for a handshake from
    /// 64 KiB on.
    fn class() -> Class {
        let exact = Estimate::exact;
        let segment = |from_bytes, base_ns| Segment { from_bytes, base_ns, ns_per_byte: 10.0, residual: 0.0 };
        Class {
            latency_ns: exact(20_000.0),
            send_overhead_ns: exact(5_000.0),
            receive_overhead_ns: exact(1_000.0),
            gap_ns: exact(8_000.0),
            ns_per_byte: exact(10.0),
            burst_bytes: exact(0.0),
            eager_limit_bytes: None,
            duplex: 1.5,
            segments: vec![segment(1, 26_000.0), segment(65_536, 426_000.0)],
            residual: [0.0; 2],
        }
    }

    fn calibration() -> Calibration {
        let text = String::new;
        let (mpi, machine) = (text(), text());
        Calibration {
            schema: SCHEMA.into(),
            mpi,
            machine,
            reduction_ns_per_byte: 0.0,
            inter: Some(class()),
            intra: None,
        }
    }

    /// Run time in µs of a trace of two tasks.
    fn time(model: Model, records: &[&str]) -> f64 {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "VEF3 2 {} 0 0 0 0 1000\n{}", records.len(), records.join("\n")).unwrap();
        let mut settings = Settings { jobs: vec![Workload::new(file.path())], ..Settings::default() };
        settings.network.model = model;
        calibration().apply(&mut settings).unwrap();
        let report = crate::simulate(&settings, &mut |_| {}).unwrap();
        report.runtime_ps.0 as f64 / 1e6
    }

    /// What a message of `bytes` takes longer where it crosses the second link after the first.
    fn twice(model: Model, bytes: f64) -> f64 {
        if model == Model::StoreAndForward { 10e-3 * bytes } else { 0.0 }
    }

    #[test]
    fn every_model_has_all_of_it() {
        for model in Model::ALL {
            let close = |took: f64, expected: f64| {
                assert!((took / expected - 1.0).abs() < 0.01, "{model}: {took} µs, expected {expected}");
            };
            close(time(model, &["0 0 1 1 0 0 -1"]), 26.01);
            // The gap lets the last of eleven leave 80 µs after the first.
            let train: Vec<String> = (0..11).map(|id| format!("{id} 0 1 1 0 0 -1")).collect();
            let train: Vec<&str> = train.iter().map(String::as_str).collect();
            if model != Model::Latency {
                close(time(model, &train), 80.0 + 26.01);
            }
            close(time(model, &["0 0 1 60000 0 0 -1"]), 26.0 + 600.0 + twice(model, 6e4));
            if model == Model::LogGp {
                // It has no delays and no links.
                continue;
            }
            // Small messages of 1 KiB take 36.24 µs; the handshake is what is beyond that and the bytes.
            let handshake = 426.0 - 36.24;
            let lone = 26.0 + handshake + 1000.0 + twice(model, 1e5);
            close(time(model, &["0 0 1 100000 0 0 -1"]), lone);
            if model != Model::Latency {
                close(time(model, &["0 0 1 100000 0 0 -1", "1 1 0 100000 0 0 -1"]), lone + 500.0);
            }
        }
    }

    #[test]
    fn what_is_no_calibration_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |change: &dyn Fn(&mut Class), about: &str| {
            let mut calibration = calibration();
            calibration.inter.iter_mut().for_each(change);
            std::fs::write(file.path(), toml::to_string(&calibration).unwrap()).unwrap();
            let error = Calibration::read(file.path()).unwrap_err().to_string();
            assert!(error.contains(about) && error.contains("inter"), "{error}");
        };
        refused(&|class| class.duplex = f64::NAN, "duplex");
        refused(&|class| class.ns_per_byte.value = 0.0, "ns_per_byte");
        refused(&|class| class.segments.reverse(), "segments");
        refused(&|class| class.segments[1].base_ns = f64::INFINITY, "segments");
        std::fs::write(file.path(), toml::to_string(&calibration()).unwrap()).unwrap();
        assert_eq!(Calibration::read(file.path()).unwrap(), calibration());
    }
}
