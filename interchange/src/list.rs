//! The list of formats. A format is a module with a constant `INFO`, and its line here.

use crate::error::{Problem, Result};
use crate::files::{Files, Start};
use crate::format::{Info, Reader};
use crate::options::{Options, Setting};
use std::path::Path;

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident in $info:expr;)+) => {
        /// A format of other tools.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format { $($(#[$doc])* $format,)+ }

        impl Format {
            /// All formats. A file is of the first one that recognises it.
            pub const ALL: &[Self] = &[$(Self::$format,)+];

            /// What the format says of itself.
            pub const fn info(self) -> &'static Info {
                match self { $(Self::$format => &$info,)+ }
            }
        }
    };
}

formats! {
    /// GOAL in text.
    Goal in crate::goal::TEXT;
    /// GOAL in binary.
    GoalBinary in crate::goal::BINARY;
    /// DUMPI.
    Dumpi in crate::dumpi::INFO;
    /// OTF2.
    Otf2 in crate::otf2::INFO;
    /// liballprof.
    Liballprof in crate::liballprof::INFO;
    /// SimGrid's time-independent traces.
    Ti in crate::ti::INFO;
    /// Chakra.
    Chakra in crate::chakra::INFO;
    /// PyTorch's own host trace.
    PytorchHost in crate::refused::PYTORCH_HOST;
    /// The trace of PyTorch's profiler.
    Kineto in crate::refused::KINETO;
    /// The database of NVIDIA's profiler.
    Sqlite in crate::refused::SQLITE;
}

impl Format {
    /// The format with this name on the command line.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.info().name == name)
    }

    /// The names of the formats that are read, in the order of the list.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let read = Self::ALL.iter().filter(|format| !matches!(format.info().reader, Reader::Refused(_)));
        read.map(|format| format.info().name)
    }

    /// The formats that have a setting.
    pub fn with(setting: Setting) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |format| format.info().settings.contains(&setting))
    }

    /// The first setting that is given but only other formats have.
    pub fn unused(self, options: &Options) -> Option<Setting> {
        options.given().find(|setting| !self.info().settings.contains(setting))
    }

    /// The format of files, by their content: that of all files that any format recognises.
    ///
    /// # Errors
    /// A file cannot be read, none is recognised, or they are of several formats.
    pub fn of(files: &Files) -> Result<Self> {
        let mut found: Option<(Self, &Path)> = None;
        for path in &files.paths {
            let bytes = Files::start(path)?;
            let start = Start { path, bytes: &bytes };
            let Some(&format) = Self::ALL.iter().find(|format| (format.info().recognises)(&start)) else {
                continue;
            };
            match found {
                None => found = Some((format, path)),
                Some((first, _)) if first == format => {}
                Some((first, of)) => {
                    let [is, but] = [format, first].map(|format| format.info().name);
                    let of = of.display();
                    let what = format!("is of format {is}, but {of} is of {but}: name the files of one tool");
                    return Err(Problem::Invalid(what).of_file(path));
                }
            }
        }
        found.map(|(format, _)| format).ok_or_else(|| {
            let names: Vec<&str> = Self::names().collect();
            Problem::Unknown(names.join(", ")).of_file(files.first())
        })
    }
}
