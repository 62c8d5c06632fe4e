//! `vef sim --tune`: the fastest algorithm of each collective by message size, and the files by which libraries use it.

use super::setup::{calibration, settings};
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use crate::simulation_args::Sim;
use results::table::TextStyle;
use sim_example::tune::tune;
use std::fs;
use vef_format::operation::OpCodes;

pub fn execute(sim: &Sim, trace: &Input, codes: Option<&OpCodes>) -> Result<(), Failure> {
    let calibration = calibration(sim)?;
    let settings = settings(sim, trace, codes, calibration.as_ref())?;
    let bar = Bar::new("simulating");
    let tuned = tune(&settings, &sim.tune, &mut |done, all| bar.set(done, all))
        .map_err(|error| trace.error(error))?;
    drop(bar);
    if let Some(directory) = &sim.tuned {
        let directory = directory.as_path();
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        output::files(&[
            (directory.join("openmpi.rules"), tuned.openmpi_rules()),
            (directory.join("nccl.csv"), tuned.nccl_csv()),
        ])?;
    }
    let table = tuned.table();
    match sim.csv {
        Some(_) => output::result(table.to_csv().trim_end()),
        None => output::result(table.to_text(&TextStyle::WHOLE).trim_end()),
    }
}
