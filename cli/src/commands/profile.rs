//! `vef profile`: the sums of all ranks' profiles.

use crate::output::{self, Failure};
use std::path::PathBuf;
use vef_format::capture::Capture;
use vef_format::format::Format;

/// Count calls, times and bytes of a capture by function, rank and pair of ranks
#[derive(clap::Args)]
pub struct Arguments {
    /// Capture
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Print all counts as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(profile: &Arguments) -> Result<(), Failure> {
    let directory = &profile.directory;
    let report = reports::profile::read(directory).map_err(|error| -> Failure {
        match directory.is_file() && Format::of(directory).is_ok_and(|trace| trace.is_some()) {
            true => format!("{error}; vef stats {} --by time shows its times", directory.display()).into(),
            false => error.into(),
        }
    })?;
    // A chain of tools may have written the profile alone.
    let hosts = Capture::open(&profile.directory).map(|capture| capture.hosts()).unwrap_or_default();
    output::oversubscribed(hosts.iter().filter(|host| host.is_oversubscribed()));
    if profile.json { output::json(&report) } else { output::result(report.to_string().trim_end()) }
}
