//! GOAL schedules on the model that they were made for, in which ranks have no nodes: no trace, whose ranks do one thing after the other.

use crate::input::Input;
use crate::output::Failure;
use crate::simulation_args::Sim;
use results::schedule::Schedule as Outcome;
use sim_example::SimError;
use sim_example::loggp::{Schedule, run_schedule};
use sim_example::model::Model;

/// Whether a simulation is that of a schedule.
///
/// # Errors
/// It is, and an option is for traces.
pub(super) fn is_wanted(sim: &Sim, input: &Input) -> Result<bool, Failure> {
    if sim.network.settings.model != Model::LogGp
        || !sim.others.is_empty()
        || !Schedule::is_schedule(&input.path)
    {
        return Ok(false);
    }
    match &sim.of_traces()[..] {
        [] => Ok(true),
        options => {
            Err(format!("{}: no effect on a GOAL schedule: {}", input.path.display(), options.join(", "))
                .into())
        }
    }
}

/// Runs a schedule; `None`: the simulation is another one.
pub(super) fn run(sim: &Sim, input: &Input) -> Result<Option<Outcome>, Failure> {
    if !is_wanted(sim, input)? {
        return Ok(None);
    }
    let mut report = Schedule::read(&input.path, false, &interchange::Quiet)
        .map_err(SimError::from)
        .and_then(|schedule| run_schedule(&schedule, &sim.network.settings.loggp))
        .map_err(|error| match error {
            SimError::StuckSchedule(_) => format!("{}: {error}", input.name().display()).into(),
            error => input.error(error),
        })?;
    report.jobs.iter_mut().for_each(|job| job.trace = Some(input.name().display().to_string()));
    Ok(Some(report))
}
