//! What a format says of itself.

use crate::error::Result;
use crate::files::{Files, Start};
use crate::options::Options;
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

/// Shows how far an import is.
pub trait Progress: Sync {
    /// `done` of `total` bytes are read.
    fn set(&self, done: u64, total: u64);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn set(&self, _: u64, _: u64) {}
}

impl Info {
    /// A format of calls.
    pub const fn calls(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        read: Read,
    ) -> Self {
        Self { name, what, recognises, reader: Reader::Calls(read) }
    }

    /// A format of graphs.
    pub const fn graph(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        read: Read,
    ) -> Self {
        Self { name, what, recognises, reader: Reader::Graph(read) }
    }

    /// A format that is recognised to be refused with advice.
    pub const fn refused(
        name: &'static str,
        what: &'static str,
        recognises: fn(&Start<'_>) -> bool,
        advice: &'static str,
    ) -> Self {
        Self { name, what, recognises, reader: Reader::Refused(advice) }
    }
}
