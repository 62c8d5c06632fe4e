//! `vef sim`: simulates a trace on a network.

mod jobs;
mod schedule;
mod setup;
mod sweep;
mod timeline;
mod tune;

pub use crate::simulation_args::Sim as Arguments;

use crate::calibrated;
use crate::initialisation;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::repeated;
use crate::session::Watch;
use crate::simulation_args::{Sim, Table};
use setup::{calibration, name_traces, named, observed, others, settings, tell_of};
use sim_example::{MOST_CABLES, Picos, SameNode, Simulation};
use std::path::Path;
use vef_format::operation::OpCodes;
use vef_format::units::Grouped;

pub fn run(sim: &Sim) -> Result<(), Failure> {
    if !sim.sweep.is_empty() {
        return sweep::execute(sim);
    }
    // `requires` does not hold beside an option that excludes --sweep.
    let of_sweeps =
        [("-o", sim.output.is_some()), ("--cost", sim.cost.is_some()), ("--plot", sim.plot.is_some())];
    if let Some((option, _)) = of_sweeps.iter().find(|(_, is_given)| *is_given) {
        return Err(format!("{option}: no effect without --sweep").into());
    }
    sim.network.all_have_effect()?;
    if let Some(option) = sim.class_without_effect() {
        return Err(format!("{option}: no effect with --model {}", sim.network.settings.model).into());
    }
    let written: Vec<&Path> =
        [&sim.draw, &sim.report, &sim.timeline].into_iter().flatten().map(|file| file.as_path()).collect();
    output::can_all_be_written(&written, &[])?;
    let trace = Input::file(&sim.trace)?;
    if let Some(report) = schedule::run(sim, &trace)? {
        return match sim.json {
            true => output::json(&report),
            false => output::result(report.to_text()),
        };
    }
    let trace = trace.converted()?;
    // Each file of an option is read once: it may be a pipe.
    let codes = trace.op_codes(sim.op_codes.as_deref())?;
    if !sim.tune.is_empty() {
        return tune::execute(sim, &trace, codes.as_ref());
    }
    let mut report = simulated(sim, &trace, codes.as_ref())?;
    report.settings = repeated::settings::<Sim>()?;
    if let Some(file) = &sim.draw {
        draw(file, report.clone())?;
    }
    if let Some(page) = &sim.report {
        if !sim.others.is_empty() {
            return Err("--report: a page is about one trace; this simulation has several".into());
        }
        super::report::of_simulation(&trace, codes, &report, sim, page)?;
    }
    match (sim.json, sim.csv) {
        (true, _) => output::json(&report),
        (_, Some(table)) => output::result(csv(table, &report)?.trim_end()),
        _ => output::result(report.to_text().trim_end()),
    }
}

/// Simulates a trace, with the codes that the user gives for its collectives.
pub fn simulated(sim: &Sim, trace: &Input, codes: Option<&OpCodes>) -> Result<Simulation, Failure> {
    let (calibration, others) = (calibration(sim)?, others(sim)?);
    let mut report = settings(sim, trace, &others, codes, calibration.as_ref())
        .and_then(|settings| match &sim.timeline {
            Some(file) => timeline::drawn(sim, &settings, trace, file),
            None => observed(sim, &settings, &Watch::current())
                .map_err(|error| named(&settings, &sim.placement, trace, error)),
        })
        .map_err(|error| others.iter().fold(trace.error(error), |error, other| other.error(error)))?;
    name_traces(&mut report, trace, &others);
    let mut told: Vec<&Path> = Vec::new();
    for trace in std::iter::once(trace).chain(&others) {
        if !told.contains(&trace.name()) {
            told.push(trace.name());
            tell_of(sim, trace);
            if sim.compute_scale == "1" && sim.part().is_none() {
                initialisation::warn(trace, Picos(report.runtime_ps), sim.of_run.from_launch);
            }
        }
    }
    if let Some(warning) = report.congestion.as_ref().and_then(|all| sim.network.settings.nothing_marked(all))
    {
        output::remark(warning);
    }
    if let (Some(file), Some(calibration)) = (&sim.calibration, &calibration) {
        calibrated::doubts(file, calibration);
        let shared =
            sim.same_node == SameNode::default() && report.jobs.iter().any(|job| job.nodes < job.tasks);
        calibrated::lacks(file, calibration, report.latency.messages > 0, shared);
    }
    Ok(report)
}

/// A table of a result.
fn csv(table: Table, report: &Simulation) -> Result<String, Failure> {
    match (table, report.arrivals.is_some()) {
        (Table::Jobs | Table::Ranks, true) => {
            return Err("--csv: jobs that arrive have the table arrivals".into());
        }
        (Table::Arrivals, false) => return Err("--csv arrivals: no effect without --arrivals".into()),
        _ => {}
    }
    let table = match table {
        Table::Jobs => report.jobs_table(),
        Table::Arrivals => report.arrivals_table(),
        Table::Ranks => report.ranks_table(),
        Table::Kinds => report.kinds_table(),
        Table::Sizes => report.sizes_table(),
        Table::Links => report.links_table(),
        Table::Time => report.time_table(),
        Table::Sources => report.sources_table(),
        Table::JobLinks => report.job_links_table(),
        Table::Waits => report.waits_table(),
        Table::WaitPairs => report.wait_pairs_table(),
        Table::Points => {
            let tables = "write jobs, arrivals, ranks, kinds, sizes, links, time, sources, job-links, waits or wait-pairs";
            return Err(format!("--csv: {tables}; only a sweep has a table of points").into());
        }
    };
    Ok(table.to_csv())
}

/// Draws the network of a result, as a report does.
fn draw(file: &Path, report: Simulation) -> Result<(), Failure> {
    if report.network.drawing.is_none() {
        return Err(format!("--draw: more than {} cables are too many to draw", Grouped(MOST_CABLES)).into());
    }
    output::file(file, &super::report::network_picture(report)?)
}
