//! Repairs what the rest of a trace determines.
//!
//! Only unambiguous repairs are made, of what generators and editors of traces get wrong: counts of the header, awaited bits,
//! ids out of file order, a dependency with only one possible target, records in front of their dependency in the same
//! task, communicators below their first use. All else stays as it is and is a problem in the [`Report`].
//!
//! All records are in memory, some 80 bytes each. Each line must be readable: a truncated or garbled line is an error of
//! the reader.

mod changes;
mod dependencies;
mod lines;
#[cfg(test)]
mod tests;

pub use changes::{Change, Mended};

use super::records::{Options, Validator};
use super::report::Report;
use crate::error::Located;
use crate::new_file::NewFile;
use crate::record::{Header, Record, WriteError};
use crate::text::{Reader, TextError, Writer};
use crate::trace::{CopyError, TraceError};
use changes::Changes;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The result of a repair.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// Number of changes, by kind.
    pub kinds: BTreeMap<Mended, u64>,
    /// The first changes of each kind.
    pub changes: Vec<Change>,
    /// Validation of the repaired trace.
    pub report: Report,
}

/// Repairs the text trace in the file `from` and writes it to the file `to`, as text of version 3. `to` appears only if the
/// result [is complete](Report::is_complete).
///
/// # Errors
/// See [`CopyError`].
pub fn repair(from: &Path, to: &Path, options: &Options) -> Result<Repair, CopyError> {
    CopyError::if_same(from, to)?;
    let trace = Reader::open(from).and_then(Trace::read);
    let mut trace = trace.map_err(TraceError::Text)?;
    let repair = trace.mend(options);
    if repair.report.is_complete() {
        trace.write(to).map_err(|error| Located::file(to, error))?;
    }
    Ok(repair)
}

/// A whole trace.
#[derive(Debug)]
struct Trace {
    header: Header,
    /// Each record with its line.
    records: Vec<(u64, Record)>,
}

impl Trace {
    fn read<R: io::Read>(reader: Reader<R>) -> Result<Self, TextError> {
        let mut reader = reader.ignore_counts();
        let header = *reader.header();
        let mut records = Vec::new();
        while let Some((number, line)) = reader.next_numbered()? {
            records.push((number, line.to_record()));
        }
        Ok(Self { header, records })
    }

    /// Makes all repairs, in this order: each step relies on the steps before.
    fn mend(&mut self, options: &Options) -> Repair {
        let mut log = Changes::new(options.keep);
        lines::communicators(&mut self.records, &mut log);
        lines::ids(&mut self.records, &mut log);
        lines::order(&mut self.records, &mut log);
        dependencies::mend(&mut self.records, &mut log);
        dependencies::awaited(&mut self.records, &mut log);
        lines::header(&mut self.header, &self.records, &mut log);
        let report = self.validate(options);
        Repair { kinds: log.kinds, changes: log.changes, report }
    }

    /// Validates the trace; problems have the lines of the original.
    fn validate(&self, options: &Options) -> Report {
        let mut validator = Validator::new(&self.header, options);
        for (number, record) in &self.records {
            validator.add(*number, &record.borrowed());
        }
        validator.finish()
    }

    fn write(&self, to: &Path) -> Result<(), WriteError> {
        let new = NewFile::create(to)?;
        let mut writer = Writer::new(new.file(), &self.header)?;
        for (_, record) in &self.records {
            writer.line(&record.borrowed())?;
        }
        writer.finish()?;
        Ok(new.finish()?)
    }
}
