//! `vef bench calibrate`: messages measured, parameters written.

use super::coll::in_mpi;
use crate::calibrated;
use crate::output::{self, Failure};
use collbench::calibrate::{self, Plan};
use collbench::sizes::parse_bytes;
use sim_example::quantity::parse_time;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure messages and write the parameters that vef sim --calibration reads; run it by mpirun
#[derive(clap::Args)]
pub struct Arguments {
    /// The file to write
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: PathBuf,
    /// Largest message
    #[arg(long, value_name = "BYTES", default_value = "1M")]
    pub largest: String,
    /// Pause in front of every measurement, for buckets to fill and queues to drain
    #[arg(long, value_name = "TIME", default_value = "2ms")]
    pub pause: String,
    /// Repetitions of every measurement
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub repetitions: usize,
    /// monotonic, monotonic-raw, wtime, tsc
    #[arg(long, value_name = "TIMER", default_value = "monotonic")]
    pub timer: String,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = Plan {
        largest: parse_bytes(&arguments.largest)
            .filter(|bytes| (4096..=1 << 30).contains(bytes))
            .ok_or_else(|| format!("--largest {:?}: from 4K to 1G", arguments.largest))?,
        pause_ns: parse_time(&arguments.pause)?.0 as f64 / 1e3,
        repetitions: arguments.repetitions.max(3),
        timer: arguments.timer.parse()?,
    };
    in_mpi(|mpi, _| {
        let mut say = |what: &str| output::remark(format_args!("calibrating {what}"));
        if let Some(calibration) = calibrate::run(mpi, &plan, &mut say)? {
            let wrong = |reason: String| collbench::Error::File { path: arguments.output.clone(), reason };
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
