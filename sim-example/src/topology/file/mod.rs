//! Networks from files: nodes, switches and cables, optionally with bandwidth and latency.
//!
//! The suffix selects the format: `.graphml`, `.dot` or `.gv`, `.conf` (Slurm), `.ibnet` (`ibnetdiscover`); any other file that begins
//! with a brace is InfraGraph's JSON, else it has lines of text. Each yields a [`Description`].

mod dot;
mod graphml;
mod ibnet;
mod infragraph;
mod lines;
mod slurm;

mod description;
mod error;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use description::Speed;
pub(super) use description::{Description, Kind, RouteLine};
pub use error::{FileError, FileProblem};

/// The most bytes of a file.
const MOST_BYTES: u64 = 1 << 29;

/// The text of a file, which may be a device that never ends.
pub(super) fn text(path: &Path) -> Result<String, FileError> {
    let unreadable = |problem: String| FileProblem::Unreadable(problem).at(0);
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(bytes) if bytes as u64 > MOST_BYTES => Err(unreadable("more than 512 MiB".to_owned())),
        Ok(_) => Ok(text),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> Result<Description, FileError> {
    let text = text(path)?;
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("graphml") => graphml::parse(&text),
        Some("dot" | "gv") => dot::parse(&text),
        Some("conf") => slurm::parse(&text),
        Some("ibnet") => ibnet::parse(&text),
        _ if text.trim_start().starts_with('{') => infragraph::parse(&text),
        _ => lines::parse(&text),
    }
}
