//! Measured parameters of a machine's messages, as written by `vef bench calibrate` (`calibration.toml`).
//!
//! Times are in nanoseconds, sizes in bytes. `docs/benchmarks.md` describes how each figure is measured.

use std::path::Path;

use replay::{Link, Memory, SameNode, SendCompletion};
use serde::{Deserialize, Serialize};
use vef_format::units::{Bytes, Picos};

use crate::loggp::Parameters;
use crate::model::{Delay, Protocol};
use crate::quantity::Bandwidth;
use crate::settings::Settings;

/// Version of the file format.
pub const SCHEMA: &str = "vef-calibration-2";

/// Measured parameters of a machine's messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version text of the MPI library.
    pub mpi: String,
    /// Processor and system.
    pub machine: String,
    /// Cost of a sum reduction, in ns per byte.
    pub reduction_ns_per_byte: f64,
    /// Messages between nodes.
    pub inter: Option<Class>,
    /// Messages within a node.
    pub intra: Option<Class>,
}

/// Messages between two kinds of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Time of the smallest message from the call of the send to the return of the receive, less both
    /// overheads (L).
    pub latency_ns: Estimate,
    /// Time of the sender's processor for a small message (o_s).
    pub send_overhead_ns: Estimate,
    /// Time of the receiver's processor for a small message that has arrived (o_r).
    pub receive_overhead_ns: Estimate,
    /// Least time between two small messages of one sender (g).
    pub gap_ns: Estimate,
    /// Time per byte in a stream of messages (G).
    pub ns_per_byte: Estimate,
    /// Bytes that pass at once after a pause, before `ns_per_byte` applies: the depth of a token bucket, or a
    /// queue that has drained.
    pub burst_bytes: Estimate,
    /// Largest message for which a blocking send returns before the receive is posted; absent if none was
    /// found.
    pub eager_limit_bytes: Option<u64>,
    /// Time of concurrent messages in both directions, relative to one direction: 1 for full duplex, 2 for
    /// half duplex.
    pub duplex: f64,
    /// Time of a single message after a pause, piecewise linear.
    pub segments: Vec<Segment>,
    /// Median and largest relative difference between measured times and times from the parameters above.
    pub residual: [f64; 2],
}

/// A measured parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
}

/// Messages from `from_bytes` up to the next segment take `base_ns + bytes · ns_per_byte`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Smallest size.
    pub from_bytes: u64,
    /// Time at size 0, by extrapolation.
    pub base_ns: f64,
    /// Slope.
    pub ns_per_byte: f64,
    /// Largest relative residual of the measured points.
    pub residual: f64,
}

/// An invalid calibration file.
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
    /// The file cannot be read or is invalid; the error names the file, and the place in it.
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
    /// The options with a default that a calibration replaces.
    pub const REPLACED: [&str; 4] = ["overhead", "send-completion", "loggp", "same-node"];

    /// Sets measured figures for a network of any model: bandwidth, latency and burst of node links; overhead
    /// or gap, the longer, of interfaces; the eager limit of sends; delays by size and returned bytes of
    /// messages; the link within nodes. Node bandwidth, latency and burst that are already set are kept, and so is what `is_given` says of the
    /// other options, by their names in [`REPLACED`](Self::REPLACED).
    ///
    /// # Errors
    /// A rate is not a valid bandwidth.
    pub fn apply(
        &self,
        settings: &mut Settings,
        is_given: impl Fn(&str) -> bool,
    ) -> Result<(), CalibrationError> {
        let rate = |ns_per_byte: f64| {
            let bits = (8e9 / ns_per_byte).round();
            Bandwidth::from_bits_per_second(bits as u64).ok_or_else(|| CalibrationError {
                file: "calibration".into(),
                reason: format!("{ns_per_byte} ns per byte is not a valid rate"),
            })
        };
        let picos = |ns: f64| Picos((ns * 1e3).round() as u64);
        if let Some(class) = &self.inter {
            // The interface is busy with a small message for the gap to the next one.
            let busy = class.send_overhead_ns.value.max(class.gap_ns.value).min(class.small_ns());
            let links = &mut settings.network.links;
            if links.node_bandwidth.is_none() {
                links.node_bandwidth = Some(rate(class.ns_per_byte.value)?);
            }
            if links.node_latency.is_none() {
                // Two links lie between two nodes. The receiver's overhead acts as latency.
                links.node_latency = Some(picos((class.small_ns() - busy) / 2.0));
            }
            if !is_given("overhead") {
                links.overhead = picos(busy);
            }
            if links.burst == Bytes(0) {
                links.burst = Bytes(class.burst_bytes.value.round() as u64);
            }
            if let Some(above) = class.eager_limit_bytes.filter(|_| !is_given("send-completion")) {
                settings.send_completion = SendCompletion::Rendezvous { above: Bytes(above) };
            }
            settings.network.protocol = class.protocol();
            if !is_given("loggp") {
                settings.network.loggp.parameters = class.loggp();
            }
        }
        if let Some(class) = &self.intra
            && !is_given("same-node")
        {
            let link = Link::new(picos(class.small_ns()), rate(class.ns_per_byte.value)?.bits_per_second());
            let shared = link.map_err(|error| CalibrationError {
                file: "calibration".into(),
                reason: error.to_string(),
            })?;
            settings.same_node = SameNode::Inside(Memory { shared, ..Memory::default() });
        }
        Ok(())
    }
}

impl Calibration {
    /// What is wrong with the measurement behind these figures, a line each; empty if it supports them.
    pub fn doubts(&self) -> Vec<String> {
        let of = |(name, class): (&str, &Option<Class>)| {
            let doubts = class.iter().flat_map(Class::doubts);
            doubts.map(|doubt| format!("{name}: {doubt}")).collect::<Vec<_>>()
        };
        [("between nodes", &self.inter), ("within a node", &self.intra)].into_iter().flat_map(of).collect()
    }

    /// The file, which begins with its doubts, if there are any.
    ///
    /// # Errors
    /// A figure that TOML cannot express.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let doubts = self.doubts();
        let advice = (!doubts.is_empty()).then(|| ADVICE.to_owned());
        let comments = doubts.into_iter().chain(advice).map(|line| format!("# {line}\n"));
        Ok(comments.collect::<String>() + &toml::to_string_pretty(self)?)
    }

    /// The figures that the file lacks for a run with messages between nodes, or with ranks that share nodes.
    pub fn lacks(&self, between: bool, shared: bool) -> Option<&'static str> {
        match (&self.inter, &self.intra) {
            (None, _) if between => Some(
                "no [inter], which is measured by ranks on two hosts: messages between nodes take the times of a network that is not \
                 calibrated",
            ),
            (_, None) if shared => Some(
                "no [intra]: messages within a node take 300 ns and 10 GB/s, which are not measured here",
            ),
            _ => None,
        }
    }
}

/// How a measurement becomes better.
pub const ADVICE: &str = "measure again with nothing else running and each rank on a core of its own (mpirun --bind-to core), \
     with more --repetitions, a longer --pause or a larger --largest";

/// Largest median residual of a fit, and largest distance of an interval's end as a share of what it is compared with.
const MOST_RESIDUAL: f64 = 0.2;
const MOST_SPREAD: f64 = 0.5;

/// Messages below this size have no delay of their own.
const SMALL: u64 = 1024;

impl Class {
    /// Time of the smallest message, overheads included.
    fn small_ns(&self) -> f64 {
        self.latency_ns.value + self.send_overhead_ns.value + self.receive_overhead_ns.value
    }

    /// Simulated time of a single message with these parameters, in ns.
    pub fn message_ns(&self, bytes: Bytes) -> f64 {
        let limited = (bytes.0 as f64 - self.burst_bytes.value).max(0.0);
        self.small_ns() + limited * self.ns_per_byte.value + self.protocol().delay(bytes).0 as f64 / 1e3
    }

    /// What shows that the measurement does not support these figures.
    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let [middle, largest] = self.residual.map(|residual| 100.0 * residual);
        if self.residual[0] > MOST_RESIDUAL {
            doubts.push(format!(
                "the figures miss the measured times by {middle:.0} % in the median, by {largest:.0} % at most"
            ));
        }
        if !(0.5..=3.0).contains(&self.duplex) {
            doubts.push(format!(
                "duplex is {:.3}, which can be from 1 (both directions at once) to 2",
                self.duplex
            ));
        }
        // Times matter as parts of the time of a small message.
        let small = self.small_ns();
        for (name, estimate, whole) in [
            ("latency_ns", &self.latency_ns, small),
            ("send_overhead_ns", &self.send_overhead_ns, small),
            ("receive_overhead_ns", &self.receive_overhead_ns, small),
            ("gap_ns", &self.gap_ns, small),
            ("ns_per_byte", &self.ns_per_byte, self.ns_per_byte.value),
        ] {
            let Estimate { value, low, high } = estimate;
            if (high - value).max(value - low) > MOST_SPREAD * whole {
                doubts.push(format!("{name} {value:.3}, but its 95 % interval is {low:.3} to {high:.3}"));
            }
        }
        let time = |segment: &Segment| segment.base_ns + segment.ns_per_byte * segment.from_bytes as f64;
        let impossible: Vec<&Segment> = self.segments.iter().filter(|segment| time(segment) < 0.0).collect();
        if let Some(first) = impossible.first() {
            let (count, all) = (impossible.len(), self.segments.len());
            let (bytes, ns) = (Bytes(first.from_bytes), time(first));
            doubts.push(format!(
                "{count} of {all} segments begin with a negative time: a message of {bytes} takes {ns:.0} ns"
            ));
        }
        doubts
    }

    /// The figures in one line, with their intervals and residuals.
    pub fn shown(&self) -> String {
        let of = |Estimate { value, low, high }: Estimate| format!("{value:.3} ({low:.3} to {high:.3})");
        let [middle, largest] = self.residual.map(|residual| 100.0 * residual);
        format!(
            "latency {} ns, {} ns a byte; the figures miss the measured times by {middle:.1} % in the median, by {largest:.0} % at most",
            of(self.latency_ns),
            of(self.ns_per_byte)
        )
    }

    /// LogGP parameters, with equal overhead at both ends.
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

    /// The time of messages beyond latency, overheads, rate and burst.
    fn protocol(&self) -> Protocol {
        let (rate, burst) = (self.ns_per_byte.value, self.burst_bytes.value);
        let end = |index: usize| self.segments.get(index + 1).map_or(u64::MAX, |next| next.from_bytes);
        // Single messages are measured after a pause, which includes the wake-up of idle processors: subtract
        // it, as measured with small messages.
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
            // Up to the burst links take no time; larger messages wait for the rate.
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
    /// An exact value.
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

    /// 10 ns per byte, 26 µs for a small message, a gap of 8 µs, duplex 1.5, and a handshake of 400 µs from
    /// 64 KiB.
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

    /// Run time of a trace of two tasks, in µs.
    fn time(model: Model, records: &[&str]) -> f64 {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "VEF3 2 {} 0 0 0 0 1000\n{}", records.len(), records.join("\n")).unwrap();
        let mut settings = Settings { jobs: vec![Workload::new(file.path())], ..Settings::default() };
        settings.network.model = model;
        calibration().apply(&mut settings, |_| false).unwrap();
        let report = crate::simulate(&settings, &mut |_| {}).unwrap();
        report.runtime_ps as f64 / 1e6
    }

    /// An option that is given is kept, also at the value that it has without being given.
    #[test]
    fn given_options_are_kept() {
        let mut calibration = calibration();
        calibration.inter.as_mut().unwrap().eager_limit_bytes = Some(4000);
        let applied = |given: &str| {
            let mut settings = Settings::default();
            calibration.apply(&mut settings, |option| option == given).unwrap();
            let Settings { network, send_completion, .. } = settings;
            (network.links.overhead, network.loggp.parameters, send_completion)
        };
        let none = applied("");
        let default = (Picos::ZERO, Parameters::default(), SendCompletion::Eager);
        assert!(none.0 != default.0 && none.1 != default.1 && none.2 != default.2, "{none:?}");
        assert_eq!(applied("overhead"), (default.0, none.1, none.2));
        assert_eq!(applied("loggp"), (none.0, default.1, none.2));
        assert_eq!(applied("send-completion"), (none.0, none.1, default.2));
    }

    /// The time of a message on the second link.
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
            // With the gap, the last of eleven messages leaves 80 µs after the first.
            let train: Vec<String> = (0..11).map(|id| format!("{id} 0 1 1 0 0 -1")).collect();
            let train: Vec<&str> = train.iter().map(String::as_str).collect();
            if model != Model::Latency {
                close(time(model, &train), 80.0 + 26.01);
            }
            close(time(model, &["0 0 1 60000 0 0 -1"]), 26.0 + 600.0 + twice(model, 6e4));
            if model == Model::LogGp {
                // The model has no delays and no links.
                continue;
            }
            // Small messages of 1 KiB take 36.24 µs; the handshake is the rest but for the bytes.
            let handshake = 426.0 - 36.24;
            let lone = 26.0 + handshake + 1000.0 + twice(model, 1e5);
            close(time(model, &["0 0 1 100000 0 0 -1"]), lone);
            if model != Model::Latency {
                close(time(model, &["0 0 1 100000 0 0 -1", "1 1 0 100000 0 0 -1"]), lone + 500.0);
            }
        }
    }

    /// Figures that the measurement does not support are named, in the file too, which stays readable.
    #[test]
    fn a_measurement_of_noise_is_named() {
        assert_eq!(calibration().doubts(), [""; 0]);
        let doubts = |change: &dyn Fn(&mut Class)| {
            let mut calibration = calibration();
            calibration.inter.iter_mut().for_each(change);
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), calibration.to_toml().unwrap()).unwrap();
            assert_eq!(Calibration::read(file.path()).unwrap(), calibration);
            let text = std::fs::read_to_string(file.path()).unwrap();
            let doubts = calibration.doubts();
            let comments: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
            assert!(doubts.iter().map(String::as_str).chain([ADVICE]).eq(comments), "{text}");
            doubts
        };
        let between = |what: &str| [format!("between nodes: {what}")];
        assert_eq!(
            doubts(&|class| class.residual = [0.21, 3.5]),
            between("the figures miss the measured times by 21 % in the median, by 350 % at most")
        );
        let estimate = |value, low, high| Estimate { value, low, high };
        // The time of a small message is 26 µs, of which 13 µs are half.
        assert_eq!(
            doubts(&|class| class.gap_ns = estimate(8_000.0, 0.0, 21_001.0)),
            between("gap_ns 8000.000, but its 95 % interval is 0.000 to 21001.000")
        );
        assert_eq!(
            doubts(&|class| class.ns_per_byte = estimate(10.0, 4.9, 10.0)),
            between("ns_per_byte 10.000, but its 95 % interval is 4.900 to 10.000")
        );
        // A line that begins below zero, as that of a token bucket, is none if its times are not.
        assert_eq!(
            doubts(&|class| class.segments[1].base_ns = -655_361.0),
            between("1 of 2 segments begin with a negative time: a message of 65.536 kB takes -1 ns")
        );
        let mut bucket = calibration();
        bucket.inter.iter_mut().for_each(|class| class.segments[1].base_ns = -655_350.0);
        assert_eq!(bucket.doubts(), [""; 0]);
    }

    #[test]
    fn what_a_file_lacks_for_a_run_is_named() {
        let both = Calibration { intra: Some(class()), ..calibration() };
        let within = Calibration { inter: None, ..both.clone() };
        let complete = [both.lacks(true, true), calibration().lacks(true, false), within.lacks(false, true)];
        assert_eq!(complete, [None; 3]);
        let lacks = |calibration: &Calibration, shared, what| {
            assert!(
                calibration.lacks(true, shared).is_some_and(|lacks| lacks.contains(what)),
                "{calibration:?}"
            );
        };
        lacks(&within, false, "no [inter]");
        lacks(&within, true, "no [inter]");
        lacks(&calibration(), true, "no [intra]");
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
