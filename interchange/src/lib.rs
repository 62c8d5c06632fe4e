//! Reads and writes the traces of other tools. A format is a module and a line in the list of formats.
//!
//! Formats of calls (DUMPI, OTF2, liballprof, SimGrid's time-independent traces) become a capture, which the mixer converts like
//! one of our own: so matching, waits and communicators have one implementation. Formats of graphs (GOAL, Chakra) become the
//! records of a trace.
//!
//! ```text
//! files ─ Files ─▶ Format::of ─▶ Reader::Calls ─▶ capture ─ mixer ─▶ trace
//!                              └▶ Reader::Graph ───────────────────▶ trace
//! trace ─ Loaded ─▶ Export ─ the writer of a format ─▶ files
//! ```
//!
//! | question | file |
//! |---|---|
//! | Which formats are there, and how is a file recognised? | `list.rs`, with the constant `INFO` of each format's module |
//! | How is a format read? | the directory of its name |
//! | How do the calls of each rank become a capture, and how are communicators and wildcards found out? | `calls/` |
//! | What can be wrong? | `error.rs` |
//! | What does an import tell? | `summary.rs` |
//! | How is a trace written? | `export/`, and `write.rs` in the directory of each format |
//!
//! Clocks of two ranks are never compared here; the mixer counts the messages that contradict them.
//! This crate never prints, never mixes, and has no network.

#![forbid(unsafe_code)]

mod decimal;
mod error;
mod findings;
mod options;
mod progress;
mod summary;

mod export;
mod files;
mod format;

mod calls;
mod graph;

mod chakra;
mod dumpi;
pub mod goal;
mod liballprof;
mod otf2;
mod refused;
mod ti;

mod list;

pub use error::{ImportError, Problem, Result};
pub use export::{Export, ExportError, ExportOptions, ExportProblem, Exported};
pub use files::{Files, Start};
pub use findings::{ENDS_EARLY, EXAMPLES, Finding};
pub use format::{Check, Info, Read, Reader, Write};
pub use list::Format;
pub use options::{Options, Setting, Streams};
pub use progress::{Progress, Quiet};
pub use summary::{Skipped, Summary, Unmatched};

use export::{Loaded, spans};
use std::path::{Path, PathBuf};
use vef_format::operation::OpCodes;

/// What an import made.
#[derive(Clone, Debug)]
pub enum Imported {
    /// A capture, for the mixer to convert.
    Capture {
        /// Its directory.
        directory: PathBuf,
        /// What was found.
        summary: Summary,
    },
    /// A trace, complete.
    Trace(Summary),
}

/// Imports files of a format: calls become a capture in a directory that `capture` names (it is called for formats of calls
/// only), graphs a trace at `trace`, a container if that name ends in `.vefx`.
///
/// # Errors
/// The files cannot be read, or the result cannot be written.
pub fn import(
    format: Format,
    files: &Files,
    trace: &Path,
    capture: impl FnOnce() -> std::io::Result<PathBuf>,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Imported> {
    let info = format.info();
    match info.reader {
        Reader::Calls(read) => {
            let directory = capture().map_err(|error| Problem::from(error).of_file(trace))?;
            let summary = read(files, &directory, options, progress)?;
            Ok(Imported::Capture { directory, summary })
        }
        Reader::Graph(read) => Ok(Imported::Trace(read(files, trace, options, progress)?)),
        Reader::Refused(advice) => {
            Err(Problem::Unsupported { what: info.what.to_owned(), advice }.of_file(files.first()))
        }
    }
}

/// Writes the trace in the file `from` to the file or directory `to`. `codes` are the operation codes of a trace in text.
///
/// # Errors
/// The format is not written, the trace cannot be read, is invalid or does not fit into the format, or the output cannot be written.
pub fn export(
    format: Format,
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> std::result::Result<Exported, ExportError> {
    let write = format.info().writer.ok_or_else(|| ExportProblem::NotWritten.of_file(to))?;
    let trace = Loaded::valid(from, codes)?;
    let spans = spans(&trace).map_err(|problem| problem.of_file(from))?;
    write(&Export { trace: &trace, spans: &spans, to, options, progress })
}
