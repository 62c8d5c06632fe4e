//! Measured collectives, simulated on the calibrated network: how far the simulator is off.
//!
//! Each measured row becomes a trace of one call, played by the algorithm that the MPI takes (a decision table of
//! `collectives`) or that was timed, from a network at rest. Its runtime is compared with the measured median.

use std::collections::HashSet;
use std::fmt::Write as _;

use replay::{Engine, Job, Loaded, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim_example::calibration::Calibration;
use sim_example::{Settings, run};
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::{Dependency, Header, LocalCollective, Record, Version};
use vef_format::units::{Bytes, Picos, Ticks};

use crate::benchmark::Benchmark;
use crate::error::{Error, Result};
use crate::library::Libraries;
use crate::machine::Machine;
use crate::results::Row;
use crate::stats::median;

/// A measured row beside its simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCell {
    /// Operation.
    pub operation: String,
    /// `mpi`, or a schedule's algorithm.
    pub algorithm: String,
    /// Ranks.
    pub ranks: u32,
    /// Bytes.
    pub bytes: u64,
    /// Measured median, ns; absent in a prediction.
    pub measured_ns: Option<f64>,
    /// Simulated, ns.
    pub simulated_ns: f64,
}

impl ComparedCell {
    /// Relative error of the simulation.
    pub fn error(&self) -> Option<f64> {
        self.measured_ns.map(|measured| self.simulated_ns / measured - 1.0)
    }
}

/// The decision table that plays what an MPI does, by what that says of itself.
pub fn table_of(mpi: &str) -> Table {
    let name = if mpi.contains("Open MPI") { "openmpi" } else { "mpich" };
    Table::builtin(name).unwrap_or_default()
}

/// What is to be simulated: operation, algorithm, ranks, bytes, as in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredCall {
    /// Operation.
    pub operation: String,
    /// `mpi`, or a schedule's algorithm.
    pub algorithm: String,
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// Bytes of a block, or of the vector.
    pub bytes: u64,
    /// Root.
    pub root: u32,
}

impl MeasuredCall {
    /// The call that a row measured, on hosts numbered as they first appear.
    pub fn of(row: &Row, hosts: &[String], root: u32) -> MeasuredCall {
        let mut known: Vec<&String> = Vec::new();
        let mut node = |host| match known.iter().position(|other| *other == host) {
            Some(node) => node as u32,
            None => {
                known.push(host);
                known.len() as u32 - 1
            }
        };
        MeasuredCall {
            operation: row.operation.clone(),
            algorithm: row.algorithm.clone(),
            nodes: hosts.iter().take(row.ranks as usize).map(&mut node).collect(),
            bytes: row.bytes,
            root,
        }
    }

    /// Number of nodes on which its ranks are.
    pub fn used_nodes(&self) -> usize {
        self.nodes.iter().collect::<HashSet<_>>().len()
    }
}

/// How the machine of a measurement differs from the calibrated one, a line each.
pub fn other_machine(calibration: &Calibration, measured: &Machine) -> Vec<String> {
    let Machine { mpi, processor, system, .. } = measured;
    // A calibration names the number of its ranks, too.
    let machine = format!("{processor}, {system}");
    let is_same = calibration.machine.starts_with(&machine);
    [(calibration.mpi != *mpi, mpi, &calibration.mpi), (!is_same, &machine, &calibration.machine)]
        .into_iter()
        .filter(|(differs, ..)| *differs)
        .map(|(_, measured, calibrated)| {
            format!("measured with {measured}, but calibrated with {calibrated}")
        })
        .collect()
}

/// Simulates one call on the network of `settings`, made one by `calibration`.
///
/// # Errors
/// Operations that traces do not have, settings that cannot be simulated.
pub fn simulate(call: &MeasuredCall, settings: &Settings, calibration: &Calibration) -> Result<f64> {
    let mut settings = settings.clone();
    let failed = |error: &dyn std::fmt::Display| Error::Invalid(format!("simulation: {error}"));
    calibration.apply(&mut settings, |_| false).map_err(|error| failed(&error))?;
    if call.algorithm != "mpi" {
        settings.algorithms = only(&call.operation, &call.algorithm)?;
    }
    let trace = Loaded::from_records(header(call), OpCodes::default(), records(call)?)
        .map_err(|error| failed(&error))?;
    let engine = Engine::builder()
        .send_completion(settings.network.send_completion(settings.send_completion))
        .same_node(settings.same_node)
        .algorithms(settings.algorithms.clone())
        .job(Job::loaded(&std::sync::Arc::new(trace)).nodes(call.nodes.clone()))
        .engine()
        .map_err(|error| failed(&error))?;
    let report = run(engine, &settings.network, &mut |_| {}).map_err(|error| failed(&error))?;
    Ok(report.runtime_ps as f64 / 1e3)
}

/// A table in which an operation has one algorithm.
fn only(operation: &str, algorithm: &str) -> Result<Table> {
    let Benchmark::Schedule(_, choice) = Benchmark::named(operation, algorithm, &Libraries::default())?
    else {
        return Err(Error::Invalid(format!("simulation: {operation} has no schedules")));
    };
    let collectives::Choice { algorithm, segment, fanout, .. } = choice;
    let rule =
        format!("{operation} = [{{ algorithm = \"{algorithm}\", segment = {segment}, fanout = {fanout} }}]");
    Table::from_toml(&rule).map_err(|error| Error::Invalid(format!("simulation: {error}")))
}

fn header(call: &MeasuredCall) -> Header {
    let tasks = call.nodes.len() as u32;
    Header {
        version: Version::V3,
        tasks,
        messages: 0,
        communicators: 1,
        collectives: 1,
        local_collectives: tasks.into(),
        received: 0,
        clock: Picos(1000),
    }
}

/// The call in each rank's part, with the amounts as traces hold them.
fn records(call: &MeasuredCall) -> Result<Vec<Record>> {
    let unknown = || Error::Invalid(format!("simulation: traces have no {}", call.operation));
    let operation = Operation::named(&call.operation).ok_or_else(unknown)?;
    let ranks = call.nodes.len() as u32;
    let (block, all) = (Bytes(call.bytes), Bytes(call.bytes * u64::from(ranks)));
    let members = (0..ranks).map(Rank).collect();
    let mut records = vec![Record::Communicator { id: CommId(0), members }];
    for rank in 0..ranks {
        records.push(Record::Collective(LocalCollective {
            id: CollectiveId(0),
            comm: CommId(0),
            op: operation.default_code(),
            task: Rank(rank),
            amounts: operation.amounts(rank == call.root, block, all),
            after: Dependency::Start,
            time: Ticks(0),
        }));
    }
    Ok(records)
}

/// Median and largest absolute relative error of the cells that were measured.
pub fn summary(cells: &[ComparedCell]) -> Option<(f64, f64)> {
    let errors: Vec<f64> = cells.iter().filter_map(ComparedCell::error).map(f64::abs).collect();
    (!errors.is_empty()).then(|| (median(&errors), errors.iter().copied().fold(0.0, f64::max)))
}

/// The cells as a table.
pub fn to_text(cells: &[ComparedCell]) -> String {
    let mut text = format!(
        "{:<22} {:<18} {:>5} {:>10} {:>14} {:>14} {:>8}\n",
        "operation", "algorithm", "ranks", "bytes", "measured µs", "simulated µs", "error %"
    );
    for cell in cells {
        let ComparedCell { operation, algorithm, ranks, bytes, measured_ns, simulated_ns } = cell;
        let measured = measured_ns.map_or("-".into(), |ns| format!("{:.1}", ns / 1e3));
        let error =
            cell.error().map_or("-".into(), |error| format!("{:+.1}", (error * 1000.0).round() / 10.0 + 0.0));
        let simulated = simulated_ns / 1e3;
        let _ = writeln!(
            text,
            "{operation:<22} {algorithm:<18} {ranks:>5} {bytes:>10} {measured:>14} {simulated:>14.1} {error:>8}"
        );
    }
    if let Some((middle, worst)) = summary(cells) {
        let _ = writeln!(text, "error: median {:.1} %, largest {:.1} %", middle * 100.0, worst * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim_example::calibration::{Class, Estimate, SCHEMA};

    /// 20 Mbit/s, 50 µs, no burst.
    fn calibration() -> Calibration {
        let exact = Estimate::exact;
        Calibration {
            schema: SCHEMA.into(),
            mpi: "Open MPI".into(),
            machine: String::new(),
            reduction_ns_per_byte: 0.0,
            inter: Some(Class {
                latency_ns: exact(50_000.0),
                send_overhead_ns: exact(0.0),
                receive_overhead_ns: exact(0.0),
                gap_ns: exact(0.0),
                ns_per_byte: exact(400.0),
                burst_bytes: exact(0.0),
                eager_limit_bytes: None,
                duplex: 1.0,
                segments: Vec::new(),
                residual: [0.0; 2],
            }),
            intra: None,
        }
    }

    fn time(operation: &str, algorithm: &str, ranks: u32, bytes: u64) -> f64 {
        let call = MeasuredCall {
            operation: operation.into(),
            algorithm: algorithm.into(),
            nodes: (0..ranks).collect(),
            bytes,
            root: 0,
        };
        let mut settings = Settings { algorithms: table_of("Open MPI"), ..Settings::default() };
        settings.network.topology = format!("switch:{ranks}").parse().unwrap();
        simulate(&call, &settings, &calibration()).unwrap()
    }

    #[test]
    fn calls_take_what_their_algorithms_say() {
        let close = |one: f64, other: f64| assert!((one / other - 1.0).abs() < 1e-6, "{one} {other}");
        // Two rounds of 10 000 bytes.
        close(time("bcast", "binomial", 4, 10_000), 2.0 * 4_050_000.0);
        // Three rounds of a block each.
        close(time("allgather", "ring", 4, 10_000), 3.0 * 4_050_000.0);
        // Three blocks leave one after the other and arrive so.
        close(time("alltoall", "pairwise", 4, 10_000), 3.0 * 4_050_000.0);
        // Two rounds without bytes.
        close(time("barrier", "recursive-doubling", 4, 0), 2.0 * 50_000.0);
        // The root's link carries three blocks.
        close(time("scatter", "linear", 4, 10_000), 3.0 * 4_000_000.0 + 50_000.0);
        close(time("gather", "linear", 4, 10_000), 3.0 * 4_000_000.0 + 50_000.0);
        close(time("reduce-scatter-block", "pairwise", 4, 10_000), 3.0 * 4_050_000.0);
    }

    #[test]
    fn another_machine_is_named() {
        let measured = Machine {
            mpi: "Open MPI".into(),
            processor: "AMD EPYC".into(),
            system: "Linux 6.18".into(),
            ..Machine::default()
        };
        let same = Calibration { machine: "AMD EPYC, Linux 6.18, 2 ranks".into(), ..calibration() };
        assert_eq!(other_machine(&same, &measured), [""; 0]);
        let other = Calibration { mpi: "MPICH".into(), machine: "POWER9, Linux 5.4, 2 ranks".into(), ..same };
        assert_eq!(
            other_machine(&other, &measured),
            [
                "measured with Open MPI, but calibrated with MPICH",
                "measured with AMD EPYC, Linux 6.18, but calibrated with POWER9, Linux 5.4, 2 ranks"
            ]
        );
    }

    #[test]
    fn a_summary_counts_measured_cells() {
        let cell = |measured_ns, simulated_ns| ComparedCell {
            operation: "bcast".into(),
            algorithm: "mpi".into(),
            ranks: 4,
            bytes: 8,
            measured_ns,
            simulated_ns,
        };
        let cells =
            [cell(Some(100.0), 110.0), cell(Some(100.0), 80.0), cell(None, 5.0), cell(Some(100.0), 100.0)];
        let (middle, worst) = summary(&cells).unwrap();
        assert!((middle - 0.1).abs() < 1e-9 && (worst - 0.2).abs() < 1e-9);
        assert_eq!(summary(&cells[2..3]), None);
    }
}
