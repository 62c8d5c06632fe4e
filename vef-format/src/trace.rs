//! Traces in any format: opened by their content, written by their names.

use crate::container::{self, ContainerError};
use crate::error::{Located, Place};
use crate::format::{Format, named_container};
use crate::record::{Header, Line, WriteError};
use crate::text::{self, TextError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// An open trace.
#[derive(Debug)]
pub enum Trace {
    /// In text.
    Text(Box<text::Reader>),
    /// In a container.
    Container(Box<container::Reader>),
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum TraceError {
    /// In text.
    Text(#[from] TextError),
    /// In a container.
    Container(#[from] ContainerError),
}

/// Why a trace cannot be read, or a changed copy of it cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] TraceError),
    /// The copy would overwrite the trace.
    #[error("{}: the output is the trace itself; choose another name", .0.display())]
    Same(PathBuf),
    /// Start-up is to be left out of a trace that does not record how long it took.
    #[error("{}: --from-init needs the return of MPI_Init of each rank, which containers of `vef mix` record and this trace does not", .0.display())]
    NoSpans(PathBuf),
    /// A collective has a code that the container's table lacks.
    #[error("{place}: operation code {code} is not in the table of codes (--op-codes names another)")]
    Code {
        /// The trace.
        place: Place,
        /// The code.
        code: u16,
    },
    /// The copy cannot be written.
    #[error(transparent)]
    Write(#[from] Located<WriteError>),
}

impl CopyError {
    /// Refuses to write `to` if it is the trace `from`, unless that is a pipe.
    pub(crate) fn if_same(from: &Path, to: &Path) -> Result<(), Self> {
        match (from.canonicalize(), to.canonicalize()) {
            (Ok(from), Ok(to)) if from == to && from.is_file() => Err(Self::Same(to)),
            _ => Ok(()),
        }
    }
}

impl Trace {
    /// Opens the trace in the file `path`, whatever its name; only a pipe, which can be read once, is opened by its name.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let is_file = std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0);
        let format = match is_file {
            true => Format::of(path).map_err(|error| TextError::file(path, error))?,
            false => named_container(path).then_some(Format::Container),
        };
        Ok(match format {
            Some(Format::Container) => Self::Container(Box::new(container::Reader::open(path)?)),
            // The reader of text says of any other format what it is.
            None
            | Some(
                Format::Text
                | Format::Elf
                | Format::Capture
                | Format::Gzip
                | Format::Zstd
                | Format::Xz
                | Format::Bzip2,
            ) => Self::Text(Box::new(text::Reader::open(path)?)),
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        match self {
            Self::Text(reader) => reader.header(),
            Self::Container(reader) => reader.header(),
        }
    }

    /// Passes every line after the header to `take`, with its number: that of the line of the trace in text, from 1.
    pub fn each<E: From<TraceError>>(
        self,
        mut take: impl FnMut(u64, Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Text(mut reader) => {
                while let Some((number, line)) = reader.next_numbered().map_err(TraceError::Text)? {
                    take(number, line)?;
                }
            }
            Self::Container(reader) => {
                let mut lines = reader.lines();
                let mut number = 1;
                while let Some(line) = lines.next().map_err(TraceError::Container)? {
                    number += 1;
                    take(number, line)?;
                }
            }
        }
        Ok(())
    }
}

/// Writes a trace, in text or a container.
#[derive(Debug)]
pub enum TraceWriter<W: Write> {
    /// In text.
    Text(text::Writer<W>),
    /// In a container.
    Container(Box<container::Writer<W>>),
}

impl<W: Write> TraceWriter<W> {
    /// Writes a line; the lines of each task must come in its program order.
    #[inline]
    pub fn line(&mut self, line: &Line<'_>) -> Result<(), WriteError> {
        match self {
            Self::Text(text) => Ok(text.line(line)?),
            Self::Container(container) => container.line(line),
        }
    }

    /// Completes the trace and compares the counts of its header with what was written.
    pub fn finish(self) -> Result<(), WriteError> {
        match self {
            Self::Text(text) => drop(text.finish()?),
            Self::Container(container) => drop(container.finish()?),
        }
        Ok(())
    }
}
