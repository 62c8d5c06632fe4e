//! `vef profile`: the sums of all ranks' profiles.

use crate::groups::table_of;
use crate::output::{self, Failure};
use reports::profile::{SECTIONS, text};
use reports::report::Section;
use results::table::TextStyle;
use std::path::PathBuf;
use vef_format::capture::Capture;
use vef_format::format::Format;

/// Count calls, times and bytes of a capture by function, rank and pair of ranks
#[derive(clap::Args)]
#[command(after_help = "\
Needs no mix. vef stats TRACE has the same tables of a container, and what a trace holds beyond them.

Examples:
  vef profile capture
  vef profile capture --by function
  vef profile capture --by pair --top 50")]
pub struct Arguments {
    /// Capture
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Show only this table
    #[arg(long, value_name = "WHAT", value_parser = table_of(SECTIONS.map(|section| (section.name(), section))), conflicts_with = "json")]
    pub by: Option<Section>,
    /// Maximum number of rows per table
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "json")]
    pub top: u32,
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
    output::oversubscribed(directory, hosts.iter().filter(|host| host.is_oversubscribed()));
    if profile.json {
        return output::json(&report);
    }
    let top = profile.top as usize;
    let style = TextStyle { top, bars: output::shows_bars(), more: "--top, --json", indent: "  " };
    let text = text(&report, profile.by, &style);
    if let Some(section) = profile.by.filter(|_| text.is_empty()) {
        output::remark(format_args!("{}: has nothing by {}", directory.display(), section.name()));
        return Ok(());
    }
    output::result(text.trim_matches('\n'))
}
