//! The files of an aggregation: one for each phase, and those of the whole run.

use super::error::{TextError, placed};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The name of what is outside all phases.
const GLOBAL: &str = "global";
/// The names of files that are no phase's.
const OURS: [&str; 3] = [GLOBAL, "communicators", "overall"];

/// A file of the output that is written to.
struct Sheet {
    phase: String,
    path: PathBuf,
    to: BufWriter<File>,
}

impl Sheet {
    fn open(phase: &str, path: PathBuf) -> Result<Self, TextError> {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|error| placed(&path, error))?;
        Ok(Self { phase: phase.to_owned(), path, to: BufWriter::new(file) })
    }

    fn put(&mut self, text: &str) -> Result<(), TextError> {
        writeln!(self.to, "{text}").map_err(|error| placed(&self.path, error))
    }

    fn finish(mut self) -> Result<(), TextError> {
        self.to.flush().map_err(|error| placed(&self.path, error))
    }
}

/// The sheet of the innermost phase and, below it, those that the program returns to.
pub(super) struct Sheets {
    directory: PathBuf,
    global: Sheet,
    /// Those of the phases that have begun, the innermost last.
    phases: Vec<Sheet>,
    /// Files that exist already, by phase.
    files: BTreeMap<String, PathBuf>,
}

impl Sheets {
    pub(super) fn new(directory: PathBuf) -> Result<Self, TextError> {
        let global = Sheet::open(GLOBAL, directory.join(format!("{GLOBAL}.txt")))?;
        Ok(Self { directory, global, phases: Vec::new(), files: BTreeMap::new() })
    }

    /// The phase that would end next.
    pub(super) fn innermost_phase(&self) -> Option<&str> {
        self.phases.last().map(|sheet| sheet.phase.as_str())
    }

    fn current(&mut self) -> &mut Sheet {
        self.phases.last_mut().unwrap_or(&mut self.global)
    }

    /// Writes a line onto the current sheet.
    pub(super) fn put(&mut self, text: &str) -> Result<(), TextError> {
        self.current().put(text)
    }

    /// A phase begins.
    pub(super) fn descend(&mut self, phase: &str) -> Result<(), TextError> {
        let mut next = Sheet::open(phase, self.path_of(phase))?;
        let current = self.current();
        current.put(&format!("Going to {}", file_name(&next.path)))?;
        next.put(&format!("Coming from {}", file_name(&current.path)))?;
        self.phases.push(next);
        Ok(())
    }

    /// The innermost phase ends.
    pub(super) fn ascend(&mut self) -> Result<(), TextError> {
        let Some(mut ended) = self.phases.pop() else { return Ok(()) };
        let current = self.current();
        ended.put(&format!("Returning to {}", file_name(&current.path)))?;
        current.put(&format!("Returned from {}", file_name(&ended.path)))?;
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
    pub(super) fn finish(&mut self) -> Result<usize, TextError> {
        while !self.phases.is_empty() {
            self.ascend()?;
        }
        let Sheet { path, to, .. } = &mut self.global;
        to.flush().map_err(|error| placed(path, error))?;
        Ok(self.files.len())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
