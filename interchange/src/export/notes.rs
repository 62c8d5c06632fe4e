//! What a container notes of the calls behind its records, by task: of a text trace nothing.

use super::error::ExportError;
use hashbrown::HashMap;
use std::path::Path;
use vef_format::container::{Note, Reader, Section};
use vef_format::ids::Rank;
use vef_format::trace::Trace;

/// A wait for a send, in front of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWait {
    /// The record behind it.
    pub(crate) record: u64,
    /// The record of the send.
    pub(crate) send: u64,
    /// Computing before the wait, ticks.
    pub(crate) before: u64,
    /// The wait, ticks.
    pub(crate) took: u64,
}

/// The notes of a trace, each list by task; the lists of a task ascend.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Names of functions.
    pub(crate) functions: Vec<String>,
    /// The function behind the records from a number on: an index into the names.
    pub(crate) calls: Vec<Vec<(u64, usize)>>,
    /// The tag of the messages from a record on.
    pub(crate) tags: Vec<Vec<(u64, i32)>>,
    /// Records that are sends at which their task did not wait.
    pub(crate) detached: Vec<Vec<u64>>,
    pub(crate) waits: Vec<Vec<SendWait>>,
    /// The hosts, if they are known.
    pub(crate) hosts: Option<Vec<String>>,
}

impl Notes {
    /// Reads the notes of a trace of `tasks` tasks.
    pub(crate) fn read(path: &Path, tasks: usize) -> Result<Self, ExportError> {
        let mut notes = Self {
            calls: vec![Vec::new(); tasks],
            tags: vec![Vec::new(); tasks],
            detached: vec![Vec::new(); tasks],
            waits: vec![Vec::new(); tasks],
            ..Self::default()
        };
        if let Trace::Container(reader) = Trace::open(path)? {
            notes.fill(&reader)?;
        }
        Ok(notes)
    }

    fn fill(&mut self, reader: &Reader) -> Result<(), ExportError> {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for section in [Section::Calls, Section::Tags, Section::Sends] {
            for (Rank(task), mut notes) in reader.notes_of_all(section)? {
                let task = task as usize;
                // Readers refuse tasks beyond the header's.
                let (Some(calls), Some(tags)) = (self.calls.get_mut(task), self.tags.get_mut(task)) else {
                    continue;
                };
                while let Some((record, note)) = notes.next(reader)? {
                    match note {
                        Note::Call(name) => {
                            let number = match numbers.get(name) {
                                Some(&number) => number,
                                None => {
                                    self.functions.push(name.to_owned());
                                    numbers.insert(name.to_owned(), self.functions.len() - 1);
                                    self.functions.len() - 1
                                }
                            };
                            calls.push((record, number));
                        }
                        Note::Tag(tag) => tags.push((record, tag)),
                        Note::Detached => self.detached[task].push(record),
                        Note::SendWait { send, before, took } => {
                            let wait = SendWait { record, send, before: before.0, took: took.0 };
                            self.waits[task].push(wait);
                        }
                        _ => {}
                    }
                }
            }
        }
        self.hosts = reader.hosts()?;
        Ok(())
    }
}

/// Steps through notes that hold from a record on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From<'a, T> {
    rest: &'a [(u64, T)],
    now: Option<T>,
}

impl<'a, T: Copy> From<'a, T> {
    pub(crate) fn new(notes: &'a [(u64, T)]) -> Self {
        Self { rest: notes, now: None }
    }

    /// What holds at `record`, which is not before that of the last call.
    pub(crate) fn at(&mut self, record: u64) -> Option<T> {
        while let [(from, value), rest @ ..] = self.rest
            && *from <= record
        {
            (self.now, self.rest) = (Some(*value), rest);
        }
        self.now
    }
}
