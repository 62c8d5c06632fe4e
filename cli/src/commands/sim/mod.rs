//! `vef sim`: simulates a trace on a network.

mod csv;
mod setup;
mod sweep;

pub use crate::simulation_args::Sim as Arguments;
pub use setup::simulated;

use crate::input::Input;
use crate::output::{self, Failure};
use crate::simulation_args::Sim;
use sim_example::loggp::{Schedule, run_schedule};
use sim_example::model::Model;
use sim_example::topology::TopologySpec;
use sim_example::{Report, SimError};
use std::path::{Path, PathBuf};

pub fn run(sim: &Sim) -> Result<(), Failure> {
    if !sim.sweep.is_empty() {
        return sweep::execute(sim);
    }
    sim.network.all_have_effect()?;
    let written: Vec<&Path> = [&sim.draw, &sim.report].into_iter().flatten().map(PathBuf::as_path).collect();
    output::can_all_be_written(&written, &[&sim.trace])?;
    let trace = Input::of(&sim.trace)?;
    if Schedule::is_schedule(&trace.path) {
        return schedule(sim, &trace);
    }
    let report = simulated(sim, &trace)?;
    if let Some(file) = &sim.draw {
        draw(file, &report)?;
    }
    if let Some(page) = &sim.report {
        super::report::of_simulation(&trace, sim.op_codes.as_deref(), &report, page)?;
    }
    match (sim.json, sim.csv) {
        (true, _) => output::json(&report),
        (_, Some(table)) => output::result(csv::table(table, &report)?),
        _ => output::result(report.to_text().trim_end()),
    }
}

/// Runs a GOAL schedule, which has ranks but no nodes.
fn schedule(sim: &Sim, input: &Input) -> Result<(), Failure> {
    let network = sim.network.settings()?;
    if network.model != Model::LogGp {
        let path = input.path.display();
        return Err(
            format!("{path}: a GOAL schedule runs under --model loggp, not under {}", network.model).into()
        );
    }
    let of_traces = sim.of_traces();
    if !of_traces.is_empty() {
        let (path, names) = (input.path.display(), of_traces.join(", "));
        return Err(format!("{path}: no effect on a GOAL schedule: {names}").into());
    }
    let report = Schedule::read(&input.path)
        .map_err(SimError::from)
        .and_then(|schedule| run_schedule(&schedule, &network.loggp))
        .map_err(|error| input.error(error))?;
    match sim.json {
        true => output::json(&report),
        false => output::result(report.to_text()),
    }
}

/// Draws the network of a report.
fn draw(file: &Path, report: &Report) -> Result<(), Failure> {
    let spec: TopologySpec = report.network.topology.parse()?;
    let topology = spec.build(report.network.nodes)?;
    let svg = sim_example::draw::svg(&topology, Some(report)).map_err(|error| format!("--draw: {error}"))?;
    output::file(file, &svg)
}
