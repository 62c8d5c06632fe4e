//! The command line of `vef report` as typed.

use crate::input::Input;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
The page is one file that needs no network. Its times are those of a replay on a yardstick network, unless --no-replay;
docs/reports.md tells how each number is made, and lists the keys of --format json.

Examples:
  vef report app.vefx -o app.html
  vef sim app.vefx --topology torus:4x4x4 --links --json > sim.json; vef report app.vefx --sim sim.json -o app.html
  vef report app.vefx --against before.vefx -o compared.html
  vef report app.vefx --svg figures --format csv -o tables")]
pub struct Report {
    /// A trace, or the directory of a capture; - is the standard input
    #[arg(value_name = "TRACE|CAPTURE", value_parser = Input::argument)]
    pub input: PathBuf,
    /// What to write: a file, of csv a directory; - is the standard output [default: report.html, of json and md -]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Html, value_name = "FORMAT")]
    pub format: Format,
    /// The result of a simulation of this trace: the file of vef sim --json, best with --links
    #[arg(long, value_name = "RESULT.json", value_parser = Input::argument)]
    pub sim: Option<PathBuf>,
    /// Compare with another trace or capture
    #[arg(long, value_name = "OTHER", value_parser = Input::argument)]
    pub against: Option<PathBuf>,
    /// Also write each figure as an SVG file into a directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Also print the page to a PDF file, by the Chromium that is installed (or that $CHROMIUM names)
    #[arg(long, value_name = "FILE")]
    pub pdf: Option<PathBuf>,
    /// Leave out what takes a replay: everything over time, what ranks wait for, efficiency
    #[arg(long)]
    pub no_replay: bool,
    /// Latency of the yardstick network
    #[arg(long, default_value = "1us", value_name = "TIME", conflicts_with = "no_replay")]
    pub latency: String,
    /// Bandwidth of the yardstick network
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE", conflicts_with = "no_replay")]
    pub bandwidth: String,
    /// Codes of collectives in a text trace, other than the default ones (a `code name` line each)
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Threads [default: all cores]; the result is the same
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// What a report is written as.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A page for a browser
    Html,
    /// The data of the page
    Json,
    /// A directory of tables
    Csv,
    /// Text for notes and reviews
    Md,
}
