//! One file per command: parse arguments, call a library, show the result.

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

use crate::args::Command;
use crate::output::Failure;
use std::process::ExitCode;

/// Runs a command and returns its exit code.
///
/// # Errors
/// An error in its input, with file and position.
pub fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(run) => run::execute(&run),
        Command::Mix(mix) => mix::execute(&mix),
        Command::Check(check) => check::execute(&check),
        Command::Stats(stats) => stats::execute(&stats).map(|()| ExitCode::SUCCESS),
        Command::Report(report) => report::execute(&report).map(|()| ExitCode::SUCCESS),
        Command::Sim(sim) => sim::execute(&sim).map(|()| ExitCode::SUCCESS),
        Command::Gen(options) => generate::execute(&options).map(|()| ExitCode::SUCCESS),
        Command::Traffic(traffic) => traffic::execute(&traffic).map(|()| ExitCode::SUCCESS),
        Command::Timeline(timeline) => timeline::execute(&timeline),
        Command::Convert(convert) => convert::execute(&convert).map(|()| ExitCode::SUCCESS),
        Command::Place(place) => place::execute(&place).map(|()| ExitCode::SUCCESS),
        Command::Text(text) => text::execute(&text).map(|()| ExitCode::SUCCESS),
        Command::Profile(profile) => profile::execute(&profile).map(|()| ExitCode::SUCCESS),
        Command::Bench(bench) => bench::execute(&bench),
        Command::Demo(demo) => demo::execute(&demo).map(|()| ExitCode::SUCCESS),
    }
}
