//! `vef bench`: timing collectives, calibrating the simulator by them, checking it.

mod calibrate;
mod check;
mod coll;
mod launch;
mod plot;
mod tree;

use crate::list::commands;
use crate::output::Failure;
use std::process::ExitCode;

/// Time collectives of the MPI at hand, calibrate the simulator by them, check it
#[derive(clap::Args)]
#[command(after_help = "\
coll and calibrate are MPI programs: start them with the MPI's launcher, one rank a core if times are to mean anything.
Any MPI will do: it is looked up at run time. docs/benchmarks.md tells methods, statistics and the JSON.

Examples:
  mpirun -n 4 vef bench coll --op allreduce --sizes 8:1M
  mpirun -n 4 vef bench coll --op bcast --algorithm mpi,binomial,chain:8K -o bcast.json
  vef bench launch --launches 10 -n 2 -o results -- --op barrier,allreduce --sizes 8
  mpirun -n 2 vef bench calibrate -o calibration.toml
  vef bench check results/launch-0.json --calibration calibration.toml --algorithms openmpi --limit 10")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

commands! {
    Coll => coll,
    Launch => launch,
    Calibrate => calibrate,
    Check => check,
    Plot => plot,
    Tree => tree,
}

pub fn run(bench: &Arguments) -> Result<ExitCode, Failure> {
    bench.command.run()
}
