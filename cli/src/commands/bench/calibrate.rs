//! `vef bench calibrate`: messages measured, parameters written.

use super::coll::in_mpi;
use crate::calibrated;
use crate::output::{self, Failure, Written};
use collbench::calibrate::{self, MessagePlan};
use std::process::ExitCode;

/// Measure messages and write the parameters that vef sim --calibration reads; run it by mpirun
#[derive(clap::Args)]
pub struct Arguments {
    /// The file to write
    #[arg(short, long, value_name = "FILE.toml", value_parser = Written::kind(&["toml"], "the file is a .toml"))]
    pub output: Written,
    #[command(flatten)]
    pub plan: MessagePlan,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    in_mpi(|mpi, _| {
        let mut say = |what: &str| output::remark(format_args!("calibrating {what}"));
        if let Some(calibration) = calibrate::run(mpi, &arguments.plan, &mut say)? {
            let path = arguments.output.display();
            let wrong = |reason: String| collbench::Error::Local(format!("{path}: {reason}"));
            let text = calibration.to_toml().map_err(|error| wrong(error.to_string()))?;
            output::file(&arguments.output, &text).map_err(|error| wrong(error.to_string()))?;
            for (name, class) in
                [("between nodes", &calibration.inter), ("within a node", &calibration.intra)]
            {
                if let Some(class) = class {
                    output::remark(format_args!("{name}: {}", class.shown()));
                }
            }
            calibrated::doubts(&arguments.output, &calibration);
        }
        Ok(ExitCode::SUCCESS)
    })
}
