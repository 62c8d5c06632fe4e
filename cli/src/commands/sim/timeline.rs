//! `vef sim --timeline`: what the ranks of a simulation do, for a trace viewer.

use super::setup::{named, observed_by};
use crate::input::Input;
use crate::output::{self, Failure};
use crate::session::Watch;
use crate::simulation_args::Sim;
use replay::Follow;
use reports::timeline::{self, Format, SimulatedJob, Source};
use sim_example::quantity::parse_bytes;
use sim_example::{Picos, Settings, Simulation, simulate_followed};
use std::cell::RefCell;
use std::path::Path;
use vef_format::new_file::NewFile;
use vef_format::units::Grouped;

/// The largest file that is written: that of `vef timeline`.
const MOST: &str = "200MB";

/// Simulates, and draws the ranks into the file `to`.
pub(super) fn drawn(sim: &Sim, settings: &Settings, trace: &Input, to: &Path) -> Result<Simulation, Failure> {
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<String> = settings.jobs.iter().map(|job| name(&job.trace)).collect();
    let jobs: Vec<SimulatedJob> = settings
        .jobs
        .iter()
        .zip(&names)
        .map(|(job, name)| SimulatedJob {
            name: (settings.jobs.len() > 1).then_some(name.as_str()),
            path: &job.trace,
            op_codes: job.op_codes.as_ref(),
        })
        .collect();
    let (outcome, watch) = (RefCell::new(None), Watch::current());
    let run = |follow: &mut dyn Follow| {
        if outcome.borrow().is_some() {
            // The first attempt was too large.
            return simulate_followed(settings, Some(follow), &mut |_| watch.stop_if_cancelled()).is_ok();
        }
        let result = observed_by(sim, settings, &watch, Some(follow));
        let done = result.is_ok();
        *outcome.borrow_mut() = Some(result);
        done
    };
    let is_json = to.extension().is_some_and(|suffix| suffix == "json");
    let shown = timeline::Settings {
        format: if is_json { Format::Json } else { Format::Perfetto },
        window: 0..u64::MAX,
        ranks: None,
        most_bytes: parse_bytes(MOST)?.0,
    };
    let written = |error| -> Failure { format!("{}: {error}", to.display()).into() };
    let file = NewFile::create(to).map_err(written)?;
    let is_pipe = !file.file().metadata().map_err(written)?.is_file();
    let summary = timeline::draw(
        Source::Simulated { jobs: &jobs, run: &run },
        &shown,
        file.file(),
        is_pipe,
        &mut |_| (),
    );
    let report = match (outcome.into_inner(), summary) {
        (Some(Err(error)), _) => return Err(named(settings, &sim.placement, trace, error)),
        (_, Err(error)) => return Err(written_or(to, error)),
        (Some(Ok(report)), Ok(summary)) => {
            file.finish().map_err(written)?;
            if let Some(length) = summary.shorter_than {
                output::remark(format_args!(
                    "{}: waits and messages shorter than {} put together: {}; the whole is more than {MOST}",
                    to.display(),
                    Picos(length.saturating_mul(1000)),
                    Grouped(summary.merged)
                ));
            }
            report
        }
        (None, Ok(_)) => return Err("the simulation did not run".into()),
    };
    Ok(report)
}

fn written_or(to: &Path, error: timeline::TimelineError) -> Failure {
    match error {
        timeline::TimelineError::Write(error) => format!("{}: {error}", to.display()).into(),
        error => error.into(),
    }
}
