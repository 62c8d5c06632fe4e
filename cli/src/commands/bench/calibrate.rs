//! `vef bench calibrate`: messages measured, parameters written.

use super::coll::in_mpi;
use crate::bench_args::Calibrate;
use crate::calibrated;
use crate::output::{self, Failure};
use collbench::calibrate::{Plan, run};
use collbench::sizes::parse_bytes;
use sim_example::quantity::parse_time;
use std::process::ExitCode;

pub fn execute(calibrate: &Calibrate) -> Result<ExitCode, Failure> {
    let plan = Plan {
        largest: parse_bytes(&calibrate.largest)
            .filter(|bytes| (4096..=1 << 30).contains(bytes))
            .ok_or_else(|| format!("--largest {:?}: from 4K to 1G", calibrate.largest))?,
        pause_ns: parse_time(&calibrate.pause)?.0 as f64 / 1e3,
        repetitions: calibrate.repetitions.max(3),
        timer: calibrate.timer.parse()?,
    };
    in_mpi(|mpi, _| {
        let mut say = |what: &str| output::remark(format_args!("calibrating {what}"));
        if let Some(calibration) = run(mpi, &plan, &mut say)? {
            let wrong = |reason: String| collbench::Error::File { path: calibrate.output.clone(), reason };
            let text = calibration.to_toml().map_err(|error| wrong(error.to_string()))?;
            output::file(&calibrate.output, &text).map_err(|error| wrong(error.to_string()))?;
            for (name, class) in
                [("between nodes", &calibration.inter), ("within a node", &calibration.intra)]
            {
                if let Some(class) = class {
                    output::remark(format_args!("{name}: {}", class.shown()));
                }
            }
            calibrated::doubts(&calibrate.output, &calibration);
        }
        Ok(ExitCode::SUCCESS)
    })
}
