//! `vef bench`: timing collectives, calibrating the simulator by them, checking it.

mod calibrate;
mod check;
mod coll;
mod launch;
mod plot;

use crate::bench_args::{Bench, What};
use crate::output::Failure;
use std::process::ExitCode;

pub fn execute(bench: &Bench) -> Result<ExitCode, Failure> {
    match &bench.what {
        What::Coll(coll) => coll::execute(coll),
        What::Check(check) => check::execute(check),
        What::Calibrate(calibrate) => calibrate::execute(calibrate),
        What::Plot(what) => plot::execute(what).map(|()| ExitCode::SUCCESS),
        What::Tree(tree) => plot::tree(tree).map(|()| ExitCode::SUCCESS),
        What::Launch(launch) => launch::execute(launch).map(|()| ExitCode::SUCCESS),
    }
}
