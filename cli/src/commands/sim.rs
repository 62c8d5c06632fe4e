//! `vef sim`: a trace on a simulated network.

use crate::args::Sim;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use placement::Placement;
use replay::BuildError;
use sim_example::loggp::{Schedule, run_schedule};
use sim_example::model::Model;
use sim_example::quantity::{parse_bytes, parse_time};
use sim_example::{Link, Places, Report, SameNode, SendCompletion, Settings, SimError, Workload, simulate};
use std::path::Path;

pub fn execute(sim: &Sim) -> Result<(), Failure> {
    let trace = Input::of(&sim.trace)?;
    if Schedule::is_schedule(&trace.path) {
        return schedule(sim, &trace);
    }
    let report = simulated(sim, &trace)?;
    match sim.json {
        true => output::json(&report),
        false => output::result(report.to_text().trim_end()),
    }
}

/// What a simulation of a trace finds out.
pub fn simulated(sim: &Sim, trace: &Input) -> Result<Report, Failure> {
    let bar = Bar::new("simulating");
    let mut progress = |progress: sim_example::Progress| bar.count(progress.delivered, "messages");
    let report = settings(sim, trace)
        .and_then(|settings| {
            simulate(&settings, &mut progress)
                .map_err(|error| about_placement(&settings, &sim.placement, error))
        })
        .map_err(|error| trace.error(error))?;
    drop(bar);
    trace.warn();
    Ok(report)
}

/// A GOAL schedule, which has ranks and no nodes.
fn schedule(sim: &Sim, input: &Input) -> Result<(), Failure> {
    let network = sim.network.settings()?;
    if network.model != Model::LogGp {
        let path = input.path.display();
        return Err(
            format!("{path}: a GOAL schedule runs under --model loggp, not under {}", network.model).into()
        );
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

/// An error, with the name of the placement file if it is about that.
fn about_placement(settings: &Settings, file: &str, error: SimError) -> Failure {
    let given = settings.jobs.iter().any(|job| matches!(job.places, Places::Given(_)));
    match error {
        SimError::TooFewNodes { .. } | SimError::Build(BuildError::Placement { .. }) if given => {
            format!("{file}: {error}").into()
        }
        error => error.into(),
    }
}

fn settings(sim: &Sim, trace: &Input) -> Result<Settings, Failure> {
    let mut job = Workload::new(&trace.path);
    job.places = places(&sim.placement)?;
    job.op_codes = super::check::op_codes(trace, sim.op_codes.as_deref())?;
    if !(0.0..=1e6).contains(&sim.compute_scale) {
        return Err(format!("--compute-scale {}: from 0 to 1000000", sim.compute_scale).into());
    }
    job.time_factor = sim.compute_scale;
    let mut settings = Settings { jobs: vec![job], network: sim.network.settings()?, ..Settings::default() };
    settings.send_completion = send_completion(&sim.send_completion)?;
    settings.same_node = same_node(&sim.same_node)?;
    settings.algorithms = algorithms(&sim.algorithms)?;
    if let Some(file) = &sim.calibration {
        sim_example::calibration::Calibration::read(file)?.apply(&mut settings)?;
    }
    Ok(settings)
}

/// A rule, else a file.
fn places(text: &str) -> Result<Places, Failure> {
    match text.parse() {
        Ok(rule) => Ok(rule),
        Err(rule) if !Path::new(text).exists() && !text.contains(['.', '/']) => {
            Err(format!("{rule}, or name a placement file").into())
        }
        Err(_) => Ok(Places::Given(Placement::read(Path::new(text))?)),
    }
}

fn send_completion(text: &str) -> Result<SendCompletion, Failure> {
    match text.split_once(':') {
        None if text == "eager" => Ok(SendCompletion::Eager),
        None if text == "sent" => Ok(SendCompletion::WhenSent),
        Some(("rendezvous", above)) => Ok(SendCompletion::Rendezvous { above: parse_bytes(above)? }),
        _ => Err(format!("--send-completion {text:?}: write eager, sent or rendezvous:BYTES").into()),
    }
}

fn same_node(text: &str) -> Result<SameNode, Failure> {
    match text.split_once(',') {
        None if text == "network" => Ok(SameNode::HandOut),
        Some((latency, bandwidth)) => {
            let bandwidth: sim_example::quantity::Bandwidth = bandwidth.parse()?;
            Ok(SameNode::Inside(Link::new(parse_time(latency)?, bandwidth.bits_per_second())?))
        }
        None => Err(format!("--same-node {text:?}: write network or LATENCY,BANDWIDTH").into()),
    }
}

/// A built-in decision table by name, else one from a file.
pub fn algorithms(text: &str) -> Result<replay::Table, Failure> {
    if let Some(table) = replay::Table::builtin(text) {
        return Ok(table);
    }
    let file = std::fs::read_to_string(text)
        .map_err(|error| format!("{text}: neither default, openmpi, mpich, nccl nor a file: {error}"))?;
    replay::Table::from_toml(&file).map_err(|error| format!("{text}: {error}").into())
}
