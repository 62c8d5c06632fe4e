//! `vef bench plot`: a picture of measured and simulated times.

use crate::output::{self, Failure, Written};
use collbench::Report;
use std::path::PathBuf;

/// Draw times by size, measured and simulated, as SVG
#[derive(clap::Args)]
pub struct Arguments {
    /// What vef bench coll -o wrote; several launches are merged
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// What vef bench check --json wrote
    #[arg(long, value_name = "FILE.json")]
    pub simulated: Option<PathBuf>,
    /// The picture
    #[arg(short, long, value_name = "FILE.svg", value_parser = Written::kind(&["svg"], "the file is a .svg"))]
    pub output: Written,
}

pub fn run(plot: &Arguments) -> Result<(), Failure> {
    let reports = plot.files.iter().map(|file| Report::read(file)).collect::<Result<Vec<_>, _>>()?;
    let cells = match &plot.simulated {
        None => Vec::new(),
        Some(file) => {
            let about = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| about(&error))?;
            serde_json::from_str(&text).map_err(|error| about(&error))?
        }
    };
    output::file(&plot.output, &collbench::plot::times(&reports, &cells)?)
}
