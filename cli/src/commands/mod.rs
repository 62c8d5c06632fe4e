//! The commands, one file each, in the order of `vef --help`. A further one is a file and its line here.

mod bench;
mod check;
mod convert;
mod demo;
mod generate;
mod mix;
mod place;
mod profile;
mod report;
mod run;
mod sim;
mod stats;
mod text;
mod timeline;
mod traffic;

use crate::list::commands;
use crate::output::Failure;
use std::process::ExitCode;

/// Captures the MPI traffic of programs and replays it on simulated networks.
#[derive(clap::Parser)]
#[command(name = "vef", version, max_term_width = 110)]
pub struct Vef {
    #[command(subcommand)]
    pub command: Command,
}

commands! {
    Run => run,
    Mix => mix,
    Check => check,
    Stats => stats,
    Report => report,
    Sim => sim,
    Traffic => traffic,
    Gen => generate,
    Timeline => timeline,
    Convert => convert,
    Place => place,
    Text => text,
    Profile => profile,
    Bench => bench,
    Demo => demo,
}
