//! Checks that a trace is consistent and that a replay of it completes.
//!
//! One pass over the records and one over a small graph of them: linear time, some 30 bytes a record. A line that is
//! invalid by itself ends the reading ([`crate::text::TextError`]); inconsistencies between lines are [`Problem`]s of the
//! [`Report`], with their lines. [`repair()`] repairs what the rest of a trace determines.

mod communicators;
mod graph;
mod order;
mod records;
mod repair;
mod report;

#[cfg(test)]
mod tests;

pub use records::{Options, Validator};
pub use repair::{Change, Mended, Repair, repair};
pub use report::{Kind, OperationTally, Place, Problem, RecordPlace, Report, Severity, Tallies};

use crate::trace::{Trace, TraceError};
use std::path::Path;

/// Validates the trace in the file `path`. A container has its own table of operation codes, and its problems name records of tasks in
/// place of lines.
///
/// An error means that a line, or a part of a container, cannot be read.
pub fn validate(path: &Path, options: &Options) -> Result<Report, TraceError> {
    let (trace, mut validator) = match Trace::open(path)? {
        Trace::Text(reader) => {
            let validator = Validator::new(reader.header(), options);
            (Trace::Text(Box::new(reader.ignore_counts())), validator)
        }
        Trace::Container(reader) => {
            reader.check_sections()?;
            let options = Options { op_codes: reader.about().op_codes.clone(), ..options.clone() };
            let mut validator = Validator::new(reader.header(), &options);
            validator.is_container(reader.version());
            (Trace::Container(reader), validator)
        }
    };
    trace.each(|number, line| {
        validator.add(number, &line);
        Ok::<(), TraceError>(())
    })?;
    Ok(validator.finish())
}
