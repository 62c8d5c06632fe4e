//! The formats that files of traces and captures have, told apart by how a file begins.
//!
//! A new format is a line in the list: every reader that is given such a file then says what the file is. The match in
//! [`Trace::open`](crate::trace::Trace::open) says how a format is opened, if it is a trace.

use crate::{capture, container};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident, [$($begin:expr),+], $what:literal;)+) => {
        /// A format of files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format { $($(#[$doc])* $format,)+ }

        impl Format {
            /// The format of a file that begins with these bytes, at least eight if it has as many.
            pub fn of_bytes(begin: &[u8]) -> Option<Self> {
                $($(if begin.starts_with(&$begin) { return Some(Self::$format); })+)+
                None
            }

            /// What such a file is, and how to make a trace of it.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$format => $what,)+ }
            }
        }
    };
}

formats! {
    /// A trace in text, of version 3 or 2.
    Text, [*b"VEF3 ", *b"VEF3\t", *b"VEF2 ", *b"VEF2\t"], "a trace in text";
    /// A trace in a container.
    Container, [container::MAGIC], "a container";
    /// One rank's file of a capture.
    Capture, [capture::layout::MAGIC],
        "the file of one rank of a capture: convert the capture with vef mix DIR -o OUT.vefx";
    /// A program, or a library.
    Elf, [*b"\x7fELF"], "a program: capture it with vef run -- PROGRAM";
    /// Compressed by gzip.
    Gzip, [*b"\x1f\x8b"], "compressed by gzip: zcat FILE | vef … -";
    /// Compressed by zstd.
    Zstd, [*b"\x28\xb5\x2f\xfd"], "compressed by zstd: zstdcat FILE | vef … -";
    /// Compressed by xz.
    Xz, [*b"\xfd7zXZ"], "compressed by xz: xzcat FILE | vef … -";
    /// Compressed by bzip2.
    Bzip2, [*b"BZh"], "compressed by bzip2: bzcat FILE | vef … -";
}

impl Format {
    /// The format of the file `path`, whatever its name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let mut begin = Vec::new();
        File::open(path)?.take(8).read_to_end(&mut begin)?;
        Ok(Self::of_bytes(&begin))
    }

    /// Whether the file `path` is a container, whatever its name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_container(path: &Path) -> io::Result<bool> {
        Ok(Self::of(path)? == Some(Self::Container))
    }
}

/// Whether the name of a trace to be written asks for a container, by its end `.vefx`; otherwise it is to be text.
pub fn named_container(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("vefx"))
}
