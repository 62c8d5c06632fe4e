//! `vef bench check`: measured against simulated, or predictions alone.

use crate::algorithms;
use crate::calibrated;
use crate::output::{self, Failure};
use collbench::check::{ComparedCell, MeasuredCall, other_machine, simulate, summary, table_of, to_text};
use collbench::stats::median;
use collbench::{Benchmark, Libraries, MessageSizes, Report};
use replay::Table;
use sim_example::Settings;
use sim_example::calibration::Calibration;
use sim_example::model::{FlowSettings, Model};
use sim_example::quantity::{Bandwidth, parse_time};
use sim_example::topology::TopologySpec;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use vef_format::units::Picos;

/// Simulate measured collectives on the calibrated network, and compare
#[derive(clap::Args)]
#[command(after_help = "\
Without FILES nothing is compared: what --op and --sizes name is predicted for --ranks, one a node.
The exit code is 1 where the median error exceeds --limit.")]
pub struct Arguments {
    /// What vef bench coll -o wrote; several launches are merged
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// What vef bench calibrate wrote
    #[arg(long, value_name = "FILE.toml")]
    pub calibration: PathBuf,
    /// The network [default: one switch]
    #[arg(long, value_name = "T")]
    pub topology: Option<TopologySpec>,
    /// Bandwidth of the links between switches
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: Bandwidth,
    /// Latency of the links between switches
    #[arg(long, default_value = "500ns", value_name = "TIME", value_parser = parse_time)]
    pub latency: Picos,
    /// What messages do to each other
    #[arg(long, default_value = "cut-through", value_name = "MODEL")]
    pub model: Model,
    #[command(flatten)]
    pub flow: FlowSettings,
    /// Which algorithms the MPI takes: openmpi, mpich, default, or a table's file [default: those of the calibrated MPI]
    #[arg(long, value_name = "TABLE", value_parser = algorithms::table)]
    pub algorithms: Option<Table>,
    /// Largest median error, in percent
    #[arg(long, value_name = "PERCENT", conflicts_with = "op")]
    pub limit: Option<f64>,
    /// To predict: operations
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "files")]
    pub op: Vec<String>,
    /// To predict: sizes
    #[arg(long, value_name = "SIZES", default_value = "1K:1M:x4", conflicts_with = "files")]
    pub sizes: MessageSizes,
    /// To predict: ranks
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4, conflicts_with = "files", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub ranks: u32,
    /// The cells as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(check: &Arguments) -> Result<ExitCode, Failure> {
    let calibration = Calibration::read(&check.calibration)?;
    let mut settings = Settings::default();
    settings.network.model = check.model;
    settings.network.flow = check.flow;
    settings.network.links.bandwidth = check.bandwidth;
    settings.network.links.latency = check.latency;
    settings.algorithms = check.algorithms.clone().unwrap_or_else(|| table_of(&calibration.mpi));
    let calls = if check.files.is_empty() { to_predict(check)? } else { measured(check, &calibration)? };
    calibrated::doubts(&check.calibration, &calibration);
    let several = calls.iter().any(|(call, _)| call.used_nodes() > 1);
    let shared = calls.iter().any(|(call, _)| call.used_nodes() < call.nodes.len());
    calibrated::lacks(&check.calibration, &calibration, several, shared);
    let mut cells = Vec::new();
    // Calls that cannot be simulated, by the reason.
    let mut left_out = BTreeMap::<String, u32>::new();
    for (call, measured_ns) in calls {
        settings.network.topology = match &check.topology {
            Some(topology) => topology.clone(),
            None => format!("switch:{}", call.nodes.iter().max().map_or(1, |last| last + 1)).parse()?,
        };
        let simulated_ns = match simulate(&call, &settings, &calibration) {
            Ok(simulated) => simulated,
            Err(error) => {
                *left_out.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        let MeasuredCall { operation, algorithm, nodes, bytes, .. } = call;
        let ranks = nodes.len() as u32;
        cells.push(ComparedCell { operation, algorithm, ranks, bytes, measured_ns, simulated_ns });
    }
    for (reason, calls) in left_out {
        output::remark(format_args!("left out: {calls} × {reason}"));
    }
    match check.json {
        true => output::json(&cells)?,
        false => output::result(to_text(&cells).trim_end())?,
    }
    let exceeded = match (summary(&cells), check.limit) {
        (Some((middle, _)), Some(limit)) => middle * 100.0 > limit,
        (None, Some(_)) => return Err("--limit: nothing was compared".into()),
        _ => false,
    };
    Ok(if exceeded { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// A call with its measured time, ns.
type Timed = (MeasuredCall, Option<f64>);

/// The calls in the files, each with the median over launches of its medians.
fn measured(check: &Arguments, calibration: &Calibration) -> Result<Vec<Timed>, Failure> {
    let mut calls: Vec<(MeasuredCall, Vec<f64>)> = Vec::new();
    for file in &check.files {
        let report = Report::read(file)?;
        for difference in other_machine(calibration, &report.machine) {
            output::remark(format_args!("warning: {}: {difference}", file.display()));
        }
        for row in &report.rows {
            let call = MeasuredCall::of(row, &report.machine.hosts, report.settings.root);
            match calls.iter_mut().find(|(known, _)| *known == call) {
                Some((_, medians)) => medians.push(row.summary.median),
                None => calls.push((call, vec![row.summary.median])),
            }
        }
    }
    Ok(calls.into_iter().map(|(call, medians)| (call, Some(median(&medians)))).collect())
}

fn to_predict(check: &Arguments) -> Result<Vec<Timed>, Failure> {
    if check.op.is_empty() {
        return Err("nothing to compare and nothing to predict: name files, or --op".into());
    }
    let MessageSizes::List(sizes) = &check.sizes else {
        return Err("--sizes: a prediction needs a list or a range".into());
    };
    let mut calls = Vec::new();
    for name in &check.op {
        let operation = Benchmark::named(name, "mpi", &Libraries::default())?.name();
        let sizes = if operation == "barrier" { &[0][..] } else { sizes };
        for &bytes in sizes {
            let call = MeasuredCall {
                operation: operation.clone(),
                algorithm: "mpi".into(),
                nodes: (0..check.ranks).collect(),
                bytes,
                root: 0,
            };
            calls.push((call, None));
        }
    }
    Ok(calls)
}
