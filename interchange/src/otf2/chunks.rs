//! The framing of an archive's files: anchor, chunks, records, numbers.

use crate::calls::input::{Input, Stop};
use crate::error::{ImportError, Problem, Result};
use std::path::{Path, PathBuf};
use vef_format::error::{Located, Place};

/// First byte of a chunk and of an anchor.
const CHUNK: u8 = 3;
/// Second byte of a chunk: the order of bytes in numbers.
const LITTLE: u8 = 0x42;
const BIG: u8 = 0x23;
/// Type of a record that fills a chunk, and of the one that ends a file.
const FILLING: u8 = 0;
const END: u8 = 2;
/// A number that is not defined.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// A file of an archive, from its first record on.
#[derive(Debug)]
pub(super) struct Chunks {
    path: PathBuf,
    input: Input,
    /// Size of a chunk.
    size: u64,
    little: bool,
    /// Byte at which the current chunk ends.
    end: u64,
    /// Byte at which the current record began.
    record: u64,
}

/// A field of a record.
pub(super) type Field<T> = std::result::Result<T, Stop>;

/// Whether a file begins with a chunk.
pub(super) fn is_chunk(start: &[u8]) -> bool {
    matches!(start, [CHUNK, LITTLE | BIG, ..])
}

impl Chunks {
    /// Opens a file with chunks of `size` bytes.
    pub(super) fn open(path: &Path, size: u64) -> Result<Self> {
        let input = Input::open(path).map_err(|error| Problem::from(error).of_file(path))?;
        let mut chunks = Self { path: path.to_path_buf(), input, size, little: true, end: 0, record: 0 };
        chunks.header()?;
        Ok(chunks)
    }

    /// Byte at which the current record began.
    pub(super) fn offset(&self) -> u64 {
        self.record
    }

    /// A problem of the current record.
    pub(super) fn wrong(&self, problem: Problem) -> ImportError {
        Located { place: Place::offset(&self.path, self.record), problem }
    }

    /// What a field that could not be read means.
    pub(super) fn stopped(&self, stop: Stop) -> ImportError {
        self.wrong(match stop {
            Stop::End => Problem::Truncated("a record"),
            Stop::Io(error) => error.into(),
        })
    }

    fn header(&mut self) -> Result<()> {
        self.record = self.input.offset();
        let start: [u8; 2] = self.input.take().map_err(|stop| self.stopped(stop))?;
        self.little = match start {
            [CHUNK, LITTLE] => true,
            [CHUNK, BIG] => false,
            _ => {
                let found = format!("the bytes {start:02x?}");
                return Err(self.wrong(Problem::Expected { expected: "a chunk", found }));
            }
        };
        self.end = self.record.saturating_add(self.size);
        // First and last event of the chunk.
        self.input.skip(16).map_err(|stop| self.stopped(stop))
    }

    /// Type of the next record; `None`: the file is complete.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<u8>> {
        loop {
            if self.input.offset() >= self.end {
                self.header()?;
            }
            self.record = self.input.offset();
            match self.input.byte().map_err(|stop| self.stopped(stop))? {
                FILLING => {
                    let rest = self.end - self.input.offset();
                    self.input.skip(rest).map_err(|stop| self.stopped(stop))?;
                }
                END => return Ok(None),
                kind => return Ok(Some(kind)),
            }
        }
    }

    /// Reads the length of a record; returns the byte at which it ends.
    #[inline]
    pub(super) fn length(&mut self) -> Field<u64> {
        let length = match self.input.byte()? {
            0xff => self.full()?,
            length => length.into(),
        };
        let end = self.input.offset().checked_add(length).filter(|&end| end <= self.end);
        end.ok_or(Stop::End)
    }

    /// Goes to the byte at which a record ends; what is left of it is of a newer version.
    #[inline]
    pub(super) fn leave(&mut self, end: u64) -> Field<()> {
        match end.checked_sub(self.input.offset()) {
            Some(0) => Ok(()),
            Some(rest) => self.input.skip(rest),
            None => Err(Stop::End),
        }
    }

    /// A byte.
    #[inline]
    pub(super) fn byte(&mut self) -> Field<u8> {
        self.input.byte()
    }

    /// A number of 64 bits.
    #[inline]
    pub(super) fn full(&mut self) -> Field<u64> {
        let bytes = self.input.take()?;
        Ok(if self.little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }

    /// A packed number.
    #[inline]
    pub(super) fn packed(&mut self) -> Field<u64> {
        let length = self.input.byte()?;
        match length {
            0 => return Ok(0),
            1 => return Ok(self.input.byte()?.into()),
            2..=8 => {}
            0xff => return Ok(UNDEFINED),
            _ => return Err(Stop::End),
        }
        let mut number = 0u64;
        for at in 0..length {
            let byte = u64::from(self.input.byte()?);
            number = if self.little { number | byte << (8 * at) } else { number << 8 | byte };
        }
        Ok(number)
    }

    /// A text that ends with a zero byte.
    pub(super) fn text(&mut self) -> Field<String> {
        self.input.text_to_zero()
    }
}

/// The anchor of an archive.
#[derive(Clone, Debug)]
pub(super) struct Anchor {
    /// Size of the chunks of events.
    pub(super) event_chunk: u64,
    /// Size of the chunks of definitions.
    pub(super) definition_chunk: u64,
    /// The program that wrote the archive.
    pub(super) creator: String,
}

struct Fields {
    start: [u8; 7],
    format: u8,
    substrate: u8,
    compression: u8,
    anchor: Anchor,
}

impl Anchor {
    /// Whether a file begins as an anchor does.
    pub(super) fn is_at(start: &[u8]) -> bool {
        matches!(start, [CHUNK, LITTLE | BIG, rest @ ..] if rest.starts_with(b"OTF2\0"))
    }

    /// Reads the anchor in the file `path`.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let of_file = |problem: Problem| problem.of_file(path);
        let mut input = Input::open(path).map_err(|error| of_file(error.into()))?;
        let fields = Self::fields(&mut input).map_err(|stop| match stop {
            Stop::End => of_file(Problem::Truncated("an anchor of OTF2")),
            Stop::Io(error) => of_file(error.into()),
        })?;
        let Fields { start, format, substrate, compression, anchor } = fields;
        if !Self::is_at(&start) {
            let found = format!("the bytes {start:02x?}");
            return Err(of_file(Problem::Expected { expected: "an anchor of OTF2", found }));
        }
        let unsupported = |what: String, advice| Err(of_file(Problem::Unsupported { what, advice }));
        match (format, substrate, compression) {
            (3, 1, 0 | 1) => Ok(anchor),
            (3, 1, _) => unsupported("a compressed archive".to_owned(), "record it without compression"),
            (3, ..) => {
                unsupported("an archive in SION files".to_owned(), "record it with the substrate POSIX")
            }
            _ => unsupported(format!("version {format} of OTF2"), "version 3, of OTF2 1.0 to 3.1, is known"),
        }
    }

    fn fields(input: &mut Input) -> Field<Fields> {
        let start: [u8; 7] = input.take()?;
        let little = start[1] == LITTLE;
        let number = |input: &mut Input| {
            let bytes = input.take()?;
            Ok::<_, Stop>(if little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
        };
        let [format, _minor]: [u8; 2] = input.take()?;
        let _version: [u8; 3] = input.take()?;
        let (event_chunk, definition_chunk) = (number(input)?, number(input)?);
        let (substrate, compression) = (input.byte()?, input.byte()?);
        let (_locations, _definitions) = (number(input)?, number(input)?);
        let _machine = input.text_to_zero()?;
        let creator = input.text_to_zero()?;
        let anchor = Self { event_chunk, definition_chunk, creator };
        Ok(Fields { start, format, substrate, compression, anchor })
    }
}
