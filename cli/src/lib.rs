//! The command `vef`: captures MPI programs, mixes captures into traces, checks and simulates them. The program is [`main`]; other
//! programs run its commands by [`embedded`].
//!
//! Only this crate prints and chooses exit codes: 0 for success, 2 for an invalid input or command line; `vef
//! run` returns the exit code of the program. Each command is a file of `commands/`, which turns its arguments
//! into calls of a library and shows the result.

// `pub` here means "for the other modules".
#![allow(unreachable_pub)]

mod algorithms;
mod calibrated;
mod command_line;
mod commands;
pub mod embedded;
mod foreign;
mod groups;
mod initialisation;
mod input;
mod launch;
mod library;
mod list;
mod mixing;
mod network;
mod output;
mod parallel;
mod progress;
mod repeated;
mod session;
mod signals;
mod simulation_args;
mod tools;

use commands::Command;
use std::process::ExitCode;

/// The program: reads the command line, carries it out, and returns the exit code.
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let is_benchmark = words.get(1).is_some_and(|command| command == "bench");
    let command = match command_line::parse(words) {
        Ok(command) => command,
        Err(error) => {
            match is_benchmark {
                true => output::error_of_all_ranks(error),
                false => output::remark(error),
            }
            return ExitCode::from(output::EXIT_BAD_INPUT);
        }
    };
    // They have their own ways with signals.
    if !matches!(command, Command::Run(_) | Command::Bench(_) | Command::Demo(_)) {
        signals::remove_directories();
    }
    let ended = command.run();
    signals::await_removal();
    ended.unwrap_or_else(|error| {
        // A reader of stdout that has seen enough (`| head`) is no error.
        if output::is_closed_stdout(&error) {
            return ExitCode::SUCCESS;
        }
        output::error(&error);
        ExitCode::from(output::EXIT_BAD_INPUT)
    })
}
