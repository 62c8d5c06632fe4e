//! The parts of a rank's file: index, header, footer, sizes.

use super::record::Version;
use super::table::KINDS;
use crate::calls::input::{Input, Stop};
use crate::error::{Problem, Result};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use vef_format::error::{Located, Place};

/// What a file begins with, and its index, too.
pub(super) const MAGIC: [u8; 8] = *b"\xff\xaa\xddDUMPI";

/// First number of a footer.
const FOOTER: u64 = 0xf007_fee7;

/// Calls that a footer counts: all labels below.
const COUNTED: usize = 290;

/// Byte of the file at which the body begins.
const BODY: u64 = 8;
/// Versions of which the records are known.
const VERSIONS: RangeInclusive<Version> = [0, 6, 0]..=[13, u8::MAX, u8::MAX];

/// A rank's file.
#[derive(Debug)]
pub(super) struct RankFile {
    pub(super) path: PathBuf,
    pub(super) input: Input,
    /// The parts behind the body; `None`: the file was cut.
    pub(super) parts: Option<Parts>,
    /// Seconds that the wall times count from.
    pub(super) bias: u32,
}

/// What the parts behind the body tell.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) version: Version,
    pub(super) host: String,
    /// Calls that were not recorded, by label.
    pub(super) not_recorded: Vec<(u16, u32)>,
    /// Bytes of the built-in types, by type id.
    pub(super) sizes: Vec<i32>,
    /// Where the header begins: the end of the body.
    header: u64,
}

/// A problem of reading `input` at its current byte.
pub(super) fn stopped(stop: Stop, what: &'static str, path: &Path, offset: u64) -> crate::ImportError {
    let problem = match stop {
        Stop::End => Problem::Truncated(what),
        Stop::Io(error) => error.into(),
    };
    Located { place: Place::offset(path, offset), problem }
}

impl RankFile {
    /// Opens a file and reads its parts.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |error: std::io::Error| Problem::from(error).of_file(path);
        let mut input = Input::open(path).map_err(io)?;
        let at = |stop, offset| stopped(stop, "its first bytes", path, offset);
        let magic: [u8; 8] = input.take().map_err(|stop| at(stop, 0))?;
        if magic != MAGIC {
            let found = format!("the bytes {magic:02x?}");
            return Err(Problem::Expected { expected: "a DUMPI file", found }.of_file(path));
        }
        let mut file = Self { path: path.to_path_buf(), input, parts: None, bias: 0 };
        file.parts = file.read_parts()?;
        file.rewind()?;
        Ok(file)
    }

    /// Goes to the first record.
    pub(super) fn rewind(&mut self) -> Result<()> {
        let io = |error: std::io::Error| Problem::from(error).of_file(&self.path);
        self.input.seek(BODY).map_err(io)?;
        let path = &self.path;
        let mut number = || {
            let bytes = self.input.take().map_err(|stop| stopped(stop, "its first bytes", path, BODY))?;
            Ok(u32::from_be_bytes(bytes))
        };
        let (_cpu, wall) = (number()?, number()?);
        self.bias = wall;
        Ok(())
    }

    /// The end of the body, where it is known.
    pub(super) fn end_of_body(&self) -> u64 {
        self.parts.as_ref().map_or(self.input.len(), |parts| parts.header)
    }

    fn read_parts(&mut self) -> Result<Option<Parts>> {
        let io = |error: std::io::Error| Problem::from(error).of_file(&self.path);
        let len = self.input.len();
        let mut index = None;
        for size in [64, 56, 48, 40] {
            let Some(at) = len.checked_sub(size).filter(|&at| at >= BODY) else { continue };
            self.input.seek(at).map_err(io)?;
            if self.input.take().is_ok_and(|magic| magic == MAGIC) {
                let words = (size - 8) / 8;
                let offsets = (0..words).map(|_| self.input.take().map(u64::from_be_bytes));
                index = offsets.collect::<std::result::Result<Vec<u64>, Stop>>().ok();
                break;
            }
        }
        let Some(mut index) = index else { return Ok(None) };
        // From the end backwards; those in front came later.
        index.reverse();
        let part = |at: usize| index.get(at).copied().filter(|&offset| offset > 0);
        let (footer, header, sizes) = (part(1), part(3), part(6));
        let Some(header) = header.filter(|&header| header > BODY && header < len) else { return Ok(None) };
        let path = self.path.clone();
        let mut read = || -> std::result::Result<Parts, Stop> {
            let (version, host) = self.read_header(header)?;
            let not_recorded = footer.map_or(Ok(Vec::new()), |at| self.read_footer(at))?;
            let sizes = sizes.map_or(Ok(Vec::new()), |at| self.read_sizes(at))?;
            Ok(Parts { version, host, not_recorded, sizes, header })
        };
        match read() {
            Ok(Parts { version: version @ [major, minor, least], .. }) if !VERSIONS.contains(&version) => {
                let what = format!("version {major}.{minor}.{least} of DUMPI");
                Err(Problem::Unsupported { what, advice: "versions 0.6 to 13 are known" }.of_file(&path))
            }
            Ok(parts) => Ok(Some(parts)),
            Err(Stop::Io(error)) => Err(Problem::from(error).of_file(&path)),
            Err(Stop::End) => Err(Problem::Truncated("its header, footer or sizes").of_file(&path)),
        }
    }

    fn go(&mut self, offset: u64) -> std::result::Result<(), Stop> {
        if offset > self.input.len() { Err(Stop::End) } else { self.input.seek(offset).map_err(Stop::Io) }
    }

    fn read_header(&mut self, at: u64) -> std::result::Result<(Version, String), Stop> {
        self.go(at)?;
        let version = self.input.take()?;
        let _start: [u8; 8] = self.input.take()?;
        let length = u16::from_be_bytes(self.input.take()?);
        Ok((version, self.input.text(length.into())?))
    }

    fn read_footer(&mut self, at: u64) -> std::result::Result<Vec<(u16, u32)>, Stop> {
        self.go(at)?;
        if u64::from_be_bytes(self.input.take()?) != FOOTER {
            return Ok(Vec::new());
        }
        self.input.skip(4 * (COUNTED as u64 + 1))?;
        let mut not_recorded = Vec::new();
        for label in 0..COUNTED as u16 {
            let count = u32::from_be_bytes(self.input.take()?);
            if count > 0 {
                not_recorded.push((label, count));
            }
        }
        Ok(not_recorded)
    }

    fn read_sizes(&mut self, at: u64) -> std::result::Result<Vec<i32>, Stop> {
        self.go(at)?;
        let count = i32::from_be_bytes(self.input.take()?);
        (0..count).map(|_| Ok(i32::from_be_bytes(self.input.take()?))).collect()
    }
}

/// The calls that were not recorded, in words.
pub(super) fn in_words(not_recorded: &[(u16, u64)]) -> String {
    let name = |&(label, count): &(u16, u64)| {
        let name = KINDS.get(usize::from(label)).map_or("?", |kind| kind.0);
        format!("{count} × {name}")
    };
    not_recorded.iter().map(name).collect::<Vec<_>>().join(", ")
}
