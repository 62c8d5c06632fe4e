//! What a format says of itself.

use crate::error::Result;
use crate::export::{Export, ExportError, Exported};
use crate::files::{Files, Start};
use crate::findings::Finding;
use crate::options::{Options, Setting};
use crate::progress::Progress;
use crate::summary::Summary;
use std::path::Path;

/// A format of another tool.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Whether a file is of this format, by its content.
    pub recognises: fn(&Start<'_>) -> bool,
    /// How it is read.
    pub reader: Reader,
    /// How a trace is written in it, if it is.
    pub writer: Option<Write>,
    /// Suffixes that a user may give to what is written; those of other kinds of files are a slip.
    pub suffixes: &'static [&'static str],
    /// Whether its times are of clocks. Otherwise a message that is received before it is sent tells nothing.
    pub has_clocks: bool,
    /// How it is checked before it is converted, if it is.
    pub checker: Option<Check>,
    /// The settings that it has, of those that not all formats have.
    pub settings: &'static [Setting],
}

/// How a format is read.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    /// As the calls of each rank: the files become a capture in the directory given, for the mixer to convert.
    Calls(Read),
    /// As a graph of operations: the files become a trace in the file given.
    Graph(Read),
    /// Not at all: what the user can do.
    Refused(&'static str),
}

/// Reads files into the directory of a capture, or the file of a trace.
pub type Read = fn(&Files, &Path, &Options, &dyn Progress) -> Result<Summary>;

/// Writes a trace to a file or directory.
pub type Write = fn(&Export<'_>) -> std::result::Result<Exported, ExportError>;

/// Finds what is wrong in files.
pub type Check = fn(&Files, &Options, &dyn Progress) -> Result<Vec<Finding>>;

impl Info {
    const fn read_by(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        reader: Reader,
    ) -> Self {
        Self {
            name,
            what,
            recognises,
            reader,
            writer: None,
            suffixes: &[],
            has_clocks: true,
            checker: None,
            settings: &[],
        }
    }

    /// A format of calls.
    pub const fn calls(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        read: Read,
    ) -> Self {
        Self::read_by(name, what, recognises, Reader::Calls(read))
    }

    /// A format of graphs.
    pub const fn graph(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        read: Read,
    ) -> Self {
        Self::read_by(name, what, recognises, Reader::Graph(read))
    }

    /// A format that is recognised to be refused with advice.
    pub const fn refused(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        advice: &'static str,
    ) -> Self {
        Self::read_by(name, what, recognises, Reader::Refused(advice))
    }

    /// The format, whose times are not of clocks.
    pub const fn without_clocks(self) -> Self {
        Self { has_clocks: false, ..self }
    }

    /// The format, which has these settings.
    pub const fn with(self, settings: &'static [Setting]) -> Self {
        Self { settings, ..self }
    }

    /// The format, which is also checked.
    pub const fn checked_by(self, check: Check) -> Self {
        Self { checker: Some(check), ..self }
    }

    /// The format, which is also written, to a file or directory with one of these suffixes, or another that is of no kind of file.
    pub const fn written_by(self, write: Write, suffixes: &'static [&'static str]) -> Self {
        Self { writer: Some(write), suffixes, ..self }
    }
}
