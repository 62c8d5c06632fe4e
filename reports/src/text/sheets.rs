//! The files of an aggregation: one for each phase, and those of the whole run.

use super::error::{TextError, placed};
use super::output::Output;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// The name of what is outside all phases.
const GLOBAL: &str = "global";
/// The names of files that are no phase's.
const OURS: [&str; 3] = [GLOBAL, "communicators", "overall"];

/// A phase may come again: its file is continued.
fn open(path: PathBuf) -> Result<Output, TextError> {
    Output::new(path, OpenOptions::new().append(true))
}

/// The sheet of the innermost phase and, below it, those that the program returns to.
pub(super) struct Sheets {
    directory: PathBuf,
    global: Output,
    /// Those of the phases that have begun, with their names, the innermost last.
    phases: Vec<(String, Output)>,
    /// Files that exist already, by phase.
    files: BTreeMap<String, PathBuf>,
}

impl Sheets {
    pub(super) fn new(directory: PathBuf) -> Result<Self, TextError> {
        let global = open(directory.join(format!("{GLOBAL}.txt")))?;
        Ok(Self { directory, global, phases: Vec::new(), files: BTreeMap::new() })
    }

    /// The phase that would end next.
    pub(super) fn innermost_phase(&self) -> Option<&str> {
        self.phases.last().map(|(phase, _)| phase.as_str())
    }

    /// The current sheet.
    pub(super) fn current(&mut self) -> &mut Output {
        self.phases.last_mut().map_or(&mut self.global, |(_, sheet)| sheet)
    }

    /// A phase begins.
    pub(super) fn descend(&mut self, phase: &str) -> Result<(), TextError> {
        let mut next = open(self.path_of(phase))?;
        let current = self.current();
        writeln!(current, "Going to {}", file_name(&next.path))?;
        writeln!(next, "Coming from {}", file_name(&current.path))?;
        self.phases.push((phase.to_owned(), next));
        Ok(())
    }

    /// The innermost phase ends.
    pub(super) fn ascend(&mut self) -> Result<(), TextError> {
        let Some((_, mut ended)) = self.phases.pop() else { return Ok(()) };
        let current = self.current();
        writeln!(ended, "Returning to {}", file_name(&current.path))?;
        writeln!(current, "Returned from {}", file_name(&ended.path))?;
        ended.finish()
    }

    /// The file of a phase, which may have been there before.
    fn path_of(&mut self, phase: &str) -> PathBuf {
        if let Some(path) = self.files.get(phase) {
            return path.clone();
        }
        let path = self.unused_path(phase);
        self.files.insert(phase.to_owned(), path.clone());
        path
    }

    /// A file's name may not hold everything that a phase's may, and two phases must not share one.
    fn unused_path(&self, phase: &str) -> PathBuf {
        let clean: String =
            phase.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).take(100).collect();
        let clean = if clean.is_empty() || clean.starts_with('.') { format!("_{clean}") } else { clean };
        let taken = |stem: &str| {
            let path = self.directory.join(format!("{stem}.txt"));
            OURS.contains(&stem) || self.files.values().any(|other| *other == path)
        };
        let mut stem = clean.clone();
        let mut number = 2;
        while taken(&stem) {
            stem = format!("{clean}.{number}");
            number += 1;
        }
        self.directory.join(format!("{stem}.txt"))
    }

    /// Writes a file of the whole run.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), TextError> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(|error| placed(&path, error))
    }

    /// Completes all sheets, also where the program ended inside a phase; returns how many phases there were.
    pub(super) fn finish(mut self) -> Result<usize, TextError> {
        while !self.phases.is_empty() {
            self.ascend()?;
        }
        self.global.finish()?;
        Ok(self.files.len())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
