//! Mends what in a trace follows from the rest of it.
//!
//! Mended is only what can have been no other way: counts of the header, the bit that says a message is awaited, ids
//! that left the order of the file, a dependency that can name but one record, the id, operation or communicator of
//! one line of a collective where all others agree, lines of a task that stand before the record they follow,
//! communicators below their first use. The rest stays as it is and remains a problem of the [`Report`].
//!
//! All records are held in memory, some 80 bytes each. The lines must be readable one by one: a line that is cut or garbled
//! is the reader's error, since nothing says what stood there.

mod changes;
mod collectives;
mod dependencies;
mod lines;
#[cfg(test)]
mod tests;

pub use changes::{Change, Mended};

use super::{Options, Report, Validator};
use crate::error::Place;
use crate::new_file::NewFile;
use crate::record::{Header, Record};
use crate::text::{Line, Reader, TextError, WriteError, Writer};
use changes::Changes;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was mended in a trace, and what is still wrong with it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Repair {
    /// How many changes of each kind.
    pub kinds: BTreeMap<Mended, u64>,
    /// The first changes of each kind.
    pub changes: Vec<Change>,
    /// The mended trace; its problems are what could not be known.
    pub report: Report,
}

/// Why a trace is not repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// A line cannot be read: nothing says what stood there.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The repaired trace would take the place of the one it is made of.
    #[error("{}: the trace itself; a repair goes to another file", .0.display())]
    Same(PathBuf),
    /// The repaired trace cannot be written.
    #[error("{place}: {error}")]
    Write {
        /// The file.
        place: Place,
        /// Why.
        error: WriteError,
    },
}

/// Writes what is left of the text trace in the file `from`, once it is mended, to the file `to`, as text of version 3;
/// `to` appears only if the result [is complete](Report::is_complete).
///
/// # Errors
/// See [`RepairError`].
pub fn repair(from: &Path, to: &Path, options: &Options) -> Result<Repair, RepairError> {
    if let (Ok(from), Ok(to)) = (fs::canonicalize(from), fs::canonicalize(to))
        && from == to
    {
        return Err(RepairError::Same(to));
    }
    let mut trace = Trace::read(Reader::open(from)?)?;
    let repair = trace.mend(options);
    if repair.report.is_complete() {
        trace.write(to).map_err(|error| RepairError::Write { place: Place::file(to), error })?;
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

    /// Mends what it can. The order matters: each step relies on what those before it put right.
    fn mend(&mut self, options: &Options) -> Repair {
        let mut log = Changes::new(options.keep);
        let op_codes = options.op_codes.clone();
        lines::communicators(&mut self.records, &mut log);
        lines::ids(&mut self.records, &mut log);
        lines::order(&mut self.records, &mut log);
        collectives::mend(&mut self.records, &op_codes, &mut log);
        dependencies::mend(&mut self.records, &mut log);
        dependencies::awaited(&mut self.records, &mut log);
        lines::header(&mut self.header, &self.records, &mut log);
        let report = self.validate(options);
        Repair { kinds: log.kinds, changes: log.changes, report }
    }

    /// Problems keep the lines that the records had before.
    fn validate(&self, options: &Options) -> Report {
        let mut validator = Validator::new(&self.header, options);
        for (number, record) in &self.records {
            validator.add(*number, &Line::of(record));
        }
        validator.finish()
    }

    fn write(&self, to: &Path) -> Result<(), WriteError> {
        let new = NewFile::create(to)?;
        let mut writer = Writer::new(new.file(), &self.header)?;
        for (_, record) in &self.records {
            match record {
                Record::Communicator(comm) => writer.communicator(comm.id, &comm.members)?,
                Record::Message(message) => writer.message(message)?,
                Record::Collective(part) => writer.collective(part)?,
            }
        }
        writer.finish()?;
        Ok(new.finish()?)
    }
}
