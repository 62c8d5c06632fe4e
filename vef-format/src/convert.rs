//! Converts text to containers and back; the names of the files determine the direction.

use crate::container::{About, Note, Section, Settings, Writer};
use crate::error::{Located, Place};
use crate::format::named_container;
use crate::new_file::NewFile;
use crate::record::{Line, WriteError};
use crate::text;
use crate::trace::{CopyError, Trace, TraceError, TraceWriter};
use std::fs::File;
use std::path::Path;

/// Converts the trace in the file `from` into the file `to`: a container if the name ends in `.vefx`, otherwise text.
///
/// `about` describes the trace in a container made from text; a container made from another one keeps that one's, and its
/// extension sections. `to` appears only when it is complete ([`NewFile`]).
pub fn convert(from: &Path, to: &Path, about: &About, settings: Settings) -> Result<(), CopyError> {
    copy(from, to, about, settings, false)
}

/// As [`convert`], without the time before the return of `MPI_Init`: the first record of each task begins there, also for tools that read text
/// alone.
///
/// # Errors
/// As [`convert`]; [`CopyError::NoSpans`] if the trace does not record when `MPI_Init` returned.
pub fn convert_from_init(from: &Path, to: &Path, about: &About, settings: Settings) -> Result<(), CopyError> {
    copy(from, to, about, settings, true)
}

fn copy(from: &Path, to: &Path, about: &About, settings: Settings, from_init: bool) -> Result<(), CopyError> {
    let failed = |error: WriteError| CopyError::Write(Located::file(to, error));
    CopyError::if_same(from, to)?;
    let trace = Trace::open(from)?;
    // Also what the other form does not have.
    if let Trace::Container(reader) = &trace {
        reader.check_sections().map_err(TraceError::Container)?;
    }
    let mut spans = match (&trace, from_init) {
        (_, false) => Vec::new(),
        (Trace::Text(_), true) => return Err(CopyError::NoSpans(from.to_owned())),
        (Trace::Container(reader), true) => {
            let spans = reader.spans().map_err(TraceError::Container)?;
            spans.ok_or_else(|| CopyError::NoSpans(from.to_owned()))?.into_iter().map(Some).collect()
        }
    };
    let new = NewFile::create(to).map_err(|error| failed(error.into()))?;
    let is_text = matches!(trace, Trace::Text(_));
    let (mut writer, codes) = match named_container(to) {
        true => {
            let about = if let Trace::Container(reader) = &trace { reader.about() } else { about };
            let codes = about.op_codes.clone();
            let writer = container_writer(&trace, new.file(), about, settings, from_init, &failed)?;
            (TraceWriter::Container(Box::new(writer)), Some(codes))
        }
        false => {
            let writer = text::Writer::new(new.file(), trace.header());
            (TraceWriter::Text(writer.map_err(failed)?), None)
        }
    };
    trace.each(|number, mut line| {
        // The first record of its task.
        let (task, time) = match &mut line {
            Line::Message(message) => (Some(message.src), Some(&mut message.time)),
            Line::Collective(part) => (Some(part.task), Some(&mut part.time)),
            Line::Communicator { .. } => (None, None),
        };
        if let (Some(task), Some(time)) = (task, time)
            && let Some(span) = spans.get_mut(task.index()).and_then(Option::take)
        {
            *time = span.first(*time, false);
        }
        if let (Line::Collective(part), Some(codes)) = (&line, &codes)
            && codes.name(part.op).is_none()
        {
            let place = if is_text { Place::line(from, number) } else { Place::file(from) };
            return Err(CopyError::Code { place, code: part.op.0 });
        }
        writer.line(&line).map_err(failed)
    })?;
    writer.finish().map_err(failed)?;
    new.finish().map_err(|error| failed(error.into()))
}

/// Begins a container; copies the sections of one.
fn container_writer<'f>(
    trace: &Trace,
    file: &'f File,
    about: &About,
    settings: Settings,
    from_init: bool,
    failed: &impl Fn(WriteError) -> CopyError,
) -> Result<Writer<&'f File>, CopyError> {
    let Trace::Container(reader) = trace else {
        return Writer::new(file, trace.header(), about, settings).map_err(failed);
    };
    // A container without an order of tasks has none to keep.
    let settings = Settings { keep_order: settings.keep_order && reader.keeps_order(), ..settings };
    let mut writer = Writer::new(file, reader.header(), about, settings).map_err(failed)?;
    // The writer makes the blocks of collectives again.
    for name in reader.section_names().filter(|&name| name != Section::Blocks.name()) {
        if from_init && name == Section::Spans.name() {
            for (task, mut notes) in reader.notes_of_all(Section::Spans).map_err(TraceError::Container)? {
                while let Some((place, note)) = notes.next(reader).map_err(TraceError::Container)? {
                    let note = if let Note::Initialised(after) = note { Note::StartUp(after) } else { note };
                    writer.note(Some(task), place, &note).map_err(failed)?;
                }
            }
            continue;
        }
        for stream in reader.section(name).map_err(TraceError::Container)? {
            let mut pieces = reader.pieces(&stream);
            while let Some(piece) = pieces.next(reader).map_err(TraceError::Container)? {
                writer.section(name, stream.task, &piece).map_err(failed)?;
            }
        }
        if name == Section::Roots.name() {
            writer.leave_roots();
        }
    }
    Ok(writer)
}
