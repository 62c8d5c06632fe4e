//! Checks that a trace is consistent and that a replay of it completes.
//!
//! One pass over the records and one over a small graph of them: linear time, some 30 bytes a record. A line that is
//! invalid by itself ends the reading ([`crate::text::TextError`]); inconsistencies between lines are [`Problem`]s of the
//! [`Report`], with their lines. [`repair()`] repairs what the rest of a trace determines.

mod communicators;
mod order;
mod records;
mod repair;
mod report;

#[cfg(test)]
mod tests;

pub use records::Validator;
pub use repair::{Change, Mended, Repair, RepairError, repair};
pub use report::{Kind, OperationTally, Problem, Report, Severity, Tallies};

use crate::container::{self, ContainerError};
use crate::operation::OpCodes;
use crate::text::{Reader, TextError};
use std::path::Path;

/// Options of validation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The codes of collective operations.
    pub op_codes: OpCodes,
    /// Maximum number of problems kept with their text; all are counted.
    pub keep: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { op_codes: OpCodes::default(), keep: 20 }
    }
}

/// Validates the text trace in the file `path`.
///
/// An error means that a line cannot be read.
pub fn validate(path: &Path, options: &Options) -> Result<Report, TextError> {
    let mut reader = Reader::open(path)?.ignore_counts();
    let mut validator = Validator::new(reader.header(), options);
    while let Some((number, line)) = reader.next_numbered()? {
        validator.add(number, &line);
    }
    Ok(validator.finish())
}

/// Validates the container in the file `path`, with its own table of operation codes.
///
/// Problems have the lines of the trace in text form. An error means that a part cannot be read.
pub fn validate_container(path: &Path, options: &Options) -> Result<Report, ContainerError> {
    let reader = container::Reader::open(path)?;
    reader.check_sections()?;
    let options = Options { op_codes: reader.about().op_codes.clone(), ..options.clone() };
    let mut validator = Validator::new(reader.header(), &options);
    validator.container_version(reader.version());
    let mut lines = reader.lines();
    // The header is line 1.
    let mut number = 1;
    while let Some(line) = lines.next()? {
        number += 1;
        validator.add(number, &line);
    }
    Ok(validator.finish())
}
