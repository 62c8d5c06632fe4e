//! Traces of other tools become traces.

use crate::output::Failure;
use crate::progress::Bar;
use interchange::{Files, Format, Imported, Options, Summary, import};
use std::path::Path;
use vef_format::new_directory::TemporaryDirectory;

/// Shows how far an import or export is.
pub struct Progress(pub Bar);

impl interchange::Progress for Progress {
    fn set(&self, done: u64, total: u64) {
        self.0.set(done, total);
    }
}

/// Converts files to the trace `output`: graphs directly, calls through a capture in a temporary directory.
///
/// # Errors
/// The files are invalid, or the trace cannot be written.
pub fn convert(
    format: Format,
    files: &Files,
    output: &Path,
    options: &Options,
    jobs: usize,
) -> Result<(Summary, Option<mixer::Summary>), Failure> {
    let mut kept = None;
    let capture = || {
        let directory = TemporaryDirectory::create("vef-import-")?;
        let path = directory.path().to_path_buf();
        kept = Some(directory);
        Ok(path)
    };
    let progress = Progress(Bar::new("importing"));
    let imported = import(format, files, output, capture, options, &progress)?;
    drop(progress);
    match imported {
        Imported::Trace(summary) => Ok((summary, None)),
        Imported::Capture { directory, mut summary } => {
            let without_clocks = !format.info().has_clocks;
            let lenient = options.partial;
            let mixing = mixer::Options { lenient, without_clocks, jobs, ..mixer::Options::default() };
            let mut mixed = mixer::mix(&directory, output, &mixing, &mixer::Quiet).map_err(|error| {
                let hint = match error {
                    mixer::MixError::Unmatched(_) => {
                        " (vef import --partial leaves out messages without a partner)"
                    }
                    _ => "",
                };
                format!("{}: {error}{hint}", files.first().display())
            })?;
            if without_clocks {
                mixed.early_receptions = 0;
            }
            let mixer::Unmatched { sends, receives, first } = &mixed.unmatched;
            summary.unmatched = interchange::Unmatched {
                sends: *sends,
                receives: *receives,
                first: first.iter().take(interchange::EXAMPLES).map(ToString::to_string).collect(),
            };
            Ok((summary, Some(mixed)))
        }
    }
}
