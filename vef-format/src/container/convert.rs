//! Converts text to containers and back; the names of the files determine the direction.

use super::{About, ContainerError, ContainerWriteError, Reader, Section, Settings, Writer, is_container};
use crate::error::{Place, Spot};
use crate::new_file::NewFile;
use crate::text::{self, Line, TextError, WriteError};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Why a trace cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The text cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The container cannot be read.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The result would overwrite the trace.
    #[error("{}: the output is the trace itself; choose another name", .0.display())]
    Same(PathBuf),
    /// A collective in the text has a code that the container's table lacks.
    #[error("{place}: operation code {code} is not in the table of codes (--op-codes names another)")]
    Code {
        /// The trace.
        place: Place,
        /// The code.
        code: u16,
    },
    /// The result cannot be written.
    #[error("{place}: {error}")]
    Write {
        /// The file.
        place: Place,
        /// The error.
        error: ContainerWriteError,
    },
}

impl ConvertError {
    /// The same of a line of the text.
    fn in_line(mut self, line: u64) -> Self {
        if let Self::Code { place, .. } = &mut self {
            place.spot = Spot::Line(line);
        }
        self
    }
}

/// Whether the name asks for a container.
pub fn named_container(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("vefx"))
}

/// Converts the trace in the file `from` into the file `to`: a container if the name ends in `.vefx`, otherwise text.
///
/// `about` describes the trace in a container made from text; a container made from another one keeps that one's, and its
/// extension sections. `to` appears only when it is complete ([`NewFile`]).
pub fn convert(from: &Path, to: &Path, about: &About, settings: Settings) -> Result<(), ConvertError> {
    let write = |error: ContainerWriteError| ConvertError::Write { place: Place::file(to), error };
    if let (Ok(from), Ok(to)) = (from.canonicalize(), to.canonicalize())
        && from == to
        && from.is_file()
    {
        return Err(ConvertError::Same(to));
    }
    let input = Input::open(from)?;
    let new = NewFile::create(to).map_err(|error| write(error.into()))?;
    match named_container(to) {
        true => input.into_container(from, new.file(), about, settings, &write)?,
        false => input.into_text(new.file(), &write)?,
    }
    new.finish().map_err(|error| write(error.into()))
}

enum Input {
    Text(Box<text::Reader>),
    Container(Box<Reader>),
}

impl Input {
    fn open(path: &Path) -> Result<Self, ConvertError> {
        // By content, except for a pipe, which can be read only once.
        let is_file = std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0);
        let container = match is_file {
            true => is_container(path).map_err(|error| {
                let place = Place::file(path);
                TextError { place, problem: text::Problem::Io(error) }
            })?,
            false => named_container(path),
        };
        Ok(match container {
            true => Self::Container(Box::new(Reader::open(path)?)),
            false => Self::Text(Box::new(text::Reader::open(path)?)),
        })
    }

    fn into_text(
        self,
        file: &File,
        write: &impl Fn(ContainerWriteError) -> ConvertError,
    ) -> Result<(), ConvertError> {
        let failed = |error: WriteError| write(error.into());
        let header = match &self {
            Self::Text(reader) => *reader.header(),
            Self::Container(reader) => *reader.header(),
        };
        let mut writer = text::Writer::new(file, &header).map_err(failed)?;
        self.each(|line| {
            match line {
                Line::Communicator { id, members } => writer.communicator(id, members),
                Line::Message(message) => writer.message(&message),
                Line::Collective(part) => writer.collective(&part),
            }
            .map_err(failed)
        })?;
        writer.finish().map(|_| ()).map_err(failed)
    }

    fn into_container(
        self,
        from: &Path,
        file: &File,
        about: &About,
        settings: Settings,
        write: &impl Fn(ContainerWriteError) -> ConvertError,
    ) -> Result<(), ConvertError> {
        let (header, about) = match &self {
            Self::Text(reader) => (*reader.header(), about),
            Self::Container(reader) => (*reader.header(), reader.about()),
        };
        let settings = match &self {
            // There is no order to keep.
            Self::Container(reader) if !reader.keeps_order() => Settings { keep_order: false, ..settings },
            _ => settings,
        };
        let codes = about.op_codes.clone();
        let mut writer = Writer::new(file, &header, about, settings).map_err(write)?;
        if let Self::Container(reader) = &self {
            // The writer makes the blocks again.
            for name in reader.section_names().filter(|&name| name != Section::Blocks.name()) {
                for stream in reader.section(name)? {
                    let mut pieces = reader.pieces(&stream);
                    while let Some(piece) = pieces.next(reader)? {
                        writer.section(name, stream.task, &piece).map_err(write)?;
                    }
                }
                if reader.is_required(name) {
                    writer.require_section(name);
                }
                if name == Section::Roots.name() {
                    writer.leave_roots();
                }
            }
        }
        self.each(|line| {
            match line {
                Line::Communicator { id, members } => writer.communicator(id, members),
                Line::Message(message) => writer.message(&message),
                Line::Collective(part)
                    if codes.operation(part.op).is_none() && codes.name(part.op).is_none() =>
                {
                    return Err(ConvertError::Code { place: Place::file(from), code: part.op.0 });
                }
                Line::Collective(part) => writer.collective(&part),
            }
            .map_err(write)
        })?;
        writer.finish().map(|_| ()).map_err(write)
    }

    /// Passes every line to `take`.
    fn each(self, mut take: impl FnMut(Line<'_>) -> Result<(), ConvertError>) -> Result<(), ConvertError> {
        match self {
            Self::Text(mut reader) => {
                while let Some(line) = reader.next()? {
                    let taken = take(line);
                    taken.map_err(|error| error.in_line(reader.line()))?;
                }
            }
            Self::Container(reader) => {
                let mut lines = reader.lines();
                while let Some(line) = lines.next()? {
                    take(line)?;
                }
            }
        }
        Ok(())
    }
}
