//! The files of an aggregation: one for each phase, and those of the whole run.

use super::error::{TextError, placed};
use super::output::Output;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file of what is outside all phases.
const GLOBAL: &str = "global.txt";
/// The file of the communicators and their members.
pub(super) const COMMUNICATORS: &str = "communicators.txt";
/// The file of all records of the run.
pub(super) const OVERALL: &str = "overall.txt";

/// A phase may come again: its file is continued.
fn open(path: PathBuf) -> Result<Output, TextError> {
    Output::append(path)
}

/// The sheet of the innermost phase and, below it, those that the program returns to.
pub(super) struct Sheets {
    directory: PathBuf,
    global: Output,
    /// Those of the phases that have begun, with their names, the innermost last.
    phases: Vec<(String, Output)>,
    /// Names of files that exist already, by phase.
    files: BTreeMap<String, String>,
}

impl Sheets {
    pub(super) fn new(directory: PathBuf) -> Result<Self, TextError> {
        let global = open(directory.join(GLOBAL))?;
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
        let file = match self.files.get(phase) {
            Some(file) => file,
            None => &self.unused_name(phase),
        };
        let mut next = open(self.directory.join(file))?;
        self.files.insert(phase.to_owned(), file.clone());
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

    /// The name of a phase's file. Not all characters of a phase are allowed in it, and two phases must not share a file.
    fn unused_name(&self, phase: &str) -> String {
        let clean: String =
            phase.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).take(100).collect();
        let clean = if clean.is_empty() || clean.starts_with('.') { format!("_{clean}") } else { clean };
        let is_used = |name: &String| {
            [GLOBAL, COMMUNICATORS, OVERALL].contains(&name.as_str())
                || self.files.values().any(|file| file == name)
        };
        let mut name = format!("{clean}.txt");
        let mut number = 2;
        while is_used(&name) {
            name = format!("{clean}.{number}.txt");
            number += 1;
        }
        name
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
