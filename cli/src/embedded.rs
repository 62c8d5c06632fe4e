//! Commands inside another program, such as the Python package: what they would print is returned, progress is reported to the
//! program, which may cancel them.

pub use crate::session::{Cancelled, Printed, Watcher};

use crate::commands::Command;
use crate::output::Failure;
use crate::{command_line, session};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// A command line that is invalid: an unknown option, or a value that it does not take.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Parsers of single options, for programs that do what commands do by the libraries.
pub mod options {
    pub use crate::algorithms::table as algorithms;
    pub use crate::simulation_args::{same_node, send_completion};
}

/// Runs the command line `words`, which begins with `vef`, on this thread. Returns also whether the command line would exit with 0.
///
/// # Errors
/// That of the command.
///
/// # Panics
/// Unwinds with [`Cancelled`] if the watcher says so.
pub fn execute(words: Vec<OsString>, watcher: Arc<dyn Watcher>) -> (Result<bool, Failure>, Printed) {
    let running = session::begin(words.clone(), watcher);
    let ended =
        command_line::parse(words).map_err(|error| UsageError(error).into()).and_then(
            |command| match command {
                Command::Run(_) | Command::Bench(_) | Command::Demo(_) => {
                    Err("this command starts programs: run it on the command line".into())
                }
                command => Ok(command.run()? == ExitCode::SUCCESS),
            },
        );
    (ended, running.printed())
}
