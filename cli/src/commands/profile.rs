//! `vef profile`: the sums of all ranks' profiles.

use crate::output::{self, Failure};
use std::path::PathBuf;
use vef_format::capture::Capture;

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
    let report = reports::profile::read(&profile.directory)?;
    // A chain of tools may have written the profile alone.
    let hosts = Capture::open(&profile.directory).map(|capture| capture.hosts()).unwrap_or_default();
    output::oversubscribed(hosts.iter().filter(|host| host.is_oversubscribed()));
    if profile.json { output::json(&report) } else { output::result(report.to_string().trim_end()) }
}
