//! Networks from files: nodes, switches and cables, optionally with bandwidth and latency.
//!
//! The suffix selects the format: `.graphml`, `.dot` or `.gv`, `.conf` (Slurm), `.ibnet` (`ibnetdiscover`), else lines of text. Each
//! yields a [`Description`].

mod dot;
mod graphml;
mod ibnet;
mod lines;
mod slurm;

mod description;
mod error;

use std::path::Path;

pub use description::Speed;
pub(super) use description::{Description, Kind, RouteLine};
pub use error::{FileError, FileProblem};

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> Result<Description, FileError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| FileProblem::Unreadable(error.to_string()).at(0))?;
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("graphml") => graphml::parse(&text),
        Some("dot" | "gv") => dot::parse(&text),
        Some("conf") => slurm::parse(&text),
        Some("ibnet") => ibnet::parse(&text),
        _ => lines::parse(&text),
    }
}
