//! The command `vef`: captures MPI programs, mixes captures into traces, checks and simulates them.
//!
//! Only this crate prints and chooses exit codes: 0 for success, 2 for an invalid input or command line; `vef
//! run` returns the exit code of the program. Each command except `run` turns its arguments into calls of a
//! library and shows the result.

// A program exports nothing: `pub` here means "for the other modules".
#![allow(unreachable_pub)]

mod algorithms;
mod args;
mod bench_args;
mod calibrated;
mod commands;
mod initialisation;
mod input;
mod invoked_as;
mod launch;
mod library;
mod network;
mod output;
mod parallel;
mod progress;
mod report_args;
mod simulation_args;
mod tools;
mod usage;

use clap::Parser;
use clap::error::ErrorKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = invoked_as::translate(std::env::args_os().collect());
    let command = match args::Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments.command,
        // Help and version, on request or without a command.
        Err(error)
            if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            error.exit()
        }
        Err(error) => {
            output::remark(usage::in_one_line(&words, &error.render().to_string()));
            return ExitCode::from(output::EXIT_BAD_INPUT);
        }
    };
    match commands::execute(command) {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::from(output::EXIT_BAD_INPUT)
        }
    }
}
