//! Imports of samples: from `tests/data`, or from the material beside the repository.

pub(crate) mod dumpi;
pub(crate) mod simgrid;

use interchange::{Files, Format, Imported, Options, Quiet, Summary};
use std::path::{Path, PathBuf};
use vef_format::record::Record;
use vef_format::text::Reader;

/// A sample that is committed.
pub(crate) fn sample(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// A sample beside the repository; `None`: it is absent, and the test is skipped.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    skipping::shared(&format!("data/interchange/{path}"))
}

/// Imports files into the directory of a capture.
pub(crate) fn capture(
    paths: &[PathBuf],
    directory: &Path,
    options: &Options,
) -> interchange::Result<Summary> {
    let files = Files::of(paths)?;
    let format = Format::of(&files)?;
    let trace = directory.join("trace.vef");
    let made =
        interchange::import(format, &files, &trace, || Ok(directory.join("capture")), options, &Quiet)?;
    match made {
        Imported::Capture { summary, .. } => Ok(summary),
        Imported::Trace(_) => panic!("{format:?} is no format of calls"),
    }
}

/// Imports files and mixes the capture; the trace is consistent, and its replay ends. Returns both summaries.
pub(crate) fn import(path: &Path, options: &Options) -> (Summary, mixer::Summary) {
    let (summary, mixed, _) = import_records(path, options);
    (summary, mixed)
}

/// The same, and the records of the trace.
pub(crate) fn import_records(path: &Path, options: &Options) -> (Summary, mixer::Summary, Vec<Record>) {
    let directory = tempfile::tempdir().unwrap();
    let summary = capture(&[path.to_path_buf()], directory.path(), options).unwrap();
    let trace = directory.path().join("trace.vef");
    let settings = mixer::Options { lenient: options.partial, ..mixer::Options::default() };
    let mixed = mixer::mix(&directory.path().join("capture"), &trace, &settings, &mixer::Quiet).unwrap();
    let report = vef_format::validate::validate(&trace, &Default::default()).unwrap();
    assert!(report.is_complete() && report.errors == 0, "{:?}", report.problems);
    let (mut reader, mut records) = (Reader::open(&trace).unwrap(), Vec::new());
    while let Some(line) = reader.next().unwrap() {
        records.push(line.to_record());
    }
    (summary, mixed, records)
}

/// The number of calls of a function.
pub(crate) fn calls(summary: &Summary, name: &str) -> u64 {
    summary.calls.get(name).copied().unwrap_or(0)
}
