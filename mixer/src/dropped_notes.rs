//! The notes of a task some of whose records are not in the trace: each goes to its record's index in the trace. What was said of a
//! dropped record itself is left out.

use crate::error::MixError;
use crate::records::{Cursor, Record, Records};
use vef_format::container::{Note, Notes, Section, TaskNotes};
use vef_format::units::Ticks;

/// The records of a task, by their index in the walk.
struct Indices {
    /// Of each, whether it is in the trace.
    kept: Vec<bool>,
    /// How many of those before it are; of one more, of all.
    moved: Vec<u64>,
    /// What was computed in front of the dropped records that are directly in front of it, in nanoseconds.
    dropped: Vec<u64>,
    /// When it began.
    starts: Vec<u64>,
}

impl Indices {
    fn of(records: &Records, mut is_kept: impl FnMut(&Record) -> bool) -> Self {
        let mut all = Self { kept: Vec::new(), moved: Vec::new(), dropped: Vec::new(), starts: Vec::new() };
        let (mut cursor, mut kept, mut dropped) = (Cursor::new(records), 0, 0u64);
        while let Some((start, record)) = cursor.next(u64::MAX) {
            let stays = is_kept(&record);
            all.kept.push(stays);
            all.moved.push(kept);
            all.dropped.push(dropped);
            all.starts.push(start);
            kept += u64::from(stays);
            dropped = if stays { 0 } else { dropped.saturating_add(record.time) };
        }
        all.moved.push(kept);
        all.dropped.push(dropped);
        all
    }

    fn is_kept(&self, record: u64) -> bool {
        self.kept.get(record as usize).copied().unwrap_or(false)
    }

    /// The index in the trace of a record, or of the first one behind it that is there.
    fn moved(&self, record: u64) -> Result<u64, MixError> {
        self.moved.get(record as usize).copied().ok_or(MixError::Garbled)
    }
}

/// The pieces of notes of a task with these `records`, of which those that `is_kept` tells are in the trace.
pub(crate) fn move_notes(
    pieces: Vec<(Section, Vec<u8>)>,
    records: &Records,
    is_kept: impl FnMut(&Record) -> bool,
) -> Result<Vec<(Section, Vec<u8>)>, MixError> {
    let all = Indices::of(records, is_kept);
    let (mut notes, mut moments) = (TaskNotes::default(), Moments::of(&pieces, &all)?);
    // The latest tag and function, which the next kept record has, and its index in the trace.
    let mut tag: Option<(u64, i32)> = None;
    let mut call: Option<(u64, String)> = None;
    for (section, piece) in pieces {
        let mut piece = Notes::of_piece(section, piece);
        while let Some((record, note)) = piece.next_in_piece().map_err(|_| MixError::Garbled)? {
            match note {
                // Independent of records.
                Note::Initialised(_)
                | Note::StartUp(_)
                | Note::Finalised(_)
                | Note::Time { .. }
                | Note::File { .. }
                | Note::Host(_)
                | Note::Root(_)
                | Note::Blocks { .. } => notes.put(record, &note),
                Note::Detached | Note::Synchronous | Note::Counts { .. } => {
                    if all.is_kept(record) {
                        notes.put(all.moved(record)?, &note);
                    }
                }
                Note::SendWait { send, before, took } => {
                    if all.is_kept(send) {
                        let send = all.moved(send)?;
                        notes.put(all.moved(record)?, &Note::SendWait { send, before, took });
                    }
                }
                Note::Tag(next) => {
                    let at = all.moved(record)?;
                    if let Some((before, tag)) = tag.replace((at, next)).filter(|&(before, _)| before < at) {
                        notes.put(before, &Note::Tag(tag));
                    }
                }
                Note::Call(next) => {
                    let at = all.moved(record)?;
                    let before = call.replace((at, next.to_owned())).filter(|&(before, _)| before < at);
                    if let Some((before, call)) = before {
                        notes.put(before, &Note::Call(&call));
                    }
                }
                Note::Phase { .. } => notes.put(all.moved(record)?, &note),
                Note::BeforePhase(computed) => {
                    moments.put_before(record, &all, &mut notes)?;
                    let dropped = all.dropped.get(record as usize).copied().unwrap_or(0);
                    let computed = Ticks(computed.0.saturating_add(dropped));
                    notes.put(all.moved(record)?, &Note::BeforePhase(computed));
                }
                Note::Moment(_) => {
                    moments.put_before(record, &all, &mut notes)?;
                    if all.is_kept(record) {
                        moments.noted(record);
                        notes.put(all.moved(record)?, &note);
                    }
                }
            }
        }
    }
    let last = all.moved.last().copied().unwrap_or(0);
    moments.put_before(all.kept.len() as u64, &all, &mut notes)?;
    if let Some((at, tag)) = tag.filter(|&(at, _)| at < last) {
        notes.put(at, &Note::Tag(tag));
    }
    if let Some((at, call)) = call.filter(|&(at, _)| at < last) {
        notes.put(at, &Note::Call(&call));
    }
    Ok(notes.into_pieces())
}

/// The moments of records behind dropped ones, which do not follow from computing times any more.
struct Moments {
    /// When the task's computing began; `None`: it has no moments.
    begun: Option<u64>,
    /// The first record that is not decided yet.
    next: u64,
}

impl Moments {
    /// From the first moment in `pieces`.
    fn of(pieces: &[(Section, Vec<u8>)], all: &Indices) -> Result<Self, MixError> {
        for (section, piece) in pieces.iter().filter(|(section, _)| *section == Section::Moments) {
            let mut piece = Notes::of_piece(*section, piece.clone());
            while let Some((record, note)) = piece.next_in_piece().map_err(|_| MixError::Garbled)? {
                if let (Note::Moment(at), Some(start)) = (note, all.starts.get(record as usize)) {
                    return Ok(Self { begun: Some(start.saturating_sub(at.0)), next: 0 });
                }
            }
        }
        Ok(Self { begun: None, next: 0 })
    }

    /// Notes the moments of the records behind dropped ones in front of `record`.
    fn put_before(&mut self, record: u64, all: &Indices, notes: &mut TaskNotes) -> Result<(), MixError> {
        let Some(begun) = self.begun else { return Ok(()) };
        let first = self.next;
        self.next = first.max(record);
        for at in first..record {
            let is_behind_dropped = at.checked_sub(1).is_some_and(|before| !all.is_kept(before));
            if all.is_kept(at) && is_behind_dropped {
                let start = all.starts.get(at as usize).copied().unwrap_or(begun);
                notes.put(all.moved(at)?, &Note::Moment(Ticks(start.saturating_sub(begun))));
            }
        }
        Ok(())
    }

    /// The record has a moment of its own.
    fn noted(&mut self, record: u64) {
        self.next = self.next.max(record + 1);
    }
}
