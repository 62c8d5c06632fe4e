//! Blocks: a frame of 24 bytes and its content.

use super::error::Problem;
use super::version;
use crate::record::WriteError;

/// The first bytes of a file; the version follows.
pub const MAGIC: [u8; 4] = *b"VEFX";
/// Text-mode transfers damage these bytes.
pub(super) const MAGIC_END: [u8; 3] = *b"\r\n\x1a";
/// Major version. A reader reads every minor version of its major version, unless [`Footer::required`], a block's flags or
/// a section requires more.
pub(super) const VERSION: u8 = version::VERSION.0;
/// Minor version: increases when something is added that older readers may skip.
pub(super) const MINOR: u16 = version::VERSION.1;
/// Bytes of magic and version.
pub(super) const START: usize = 8;
/// Bytes of a frame.
pub(super) const FRAME: usize = 24;
/// Bytes of the footer.
pub(super) const FOOTER: usize = 32;
/// The last bytes of a file.
pub(super) const END: [u8; 4] = *b"XFEV";
/// Maximum bytes of a block before compression; the index, which is never compressed, may have more.
pub(super) const MOST_RAW: usize = 1 << 20;

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Header, operation codes, origin.
    About = 1,
    /// Some of the communicators.
    Communicators = 2,
    /// Some records of one task.
    Records = 3,
    /// The order of records of different tasks.
    Order = 4,
    /// A piece of an extension section.
    Section = 5,
    /// The places of the other blocks.
    Index = 6,
}

/// A block to be written, or one that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) kind: Kind,
    /// Whose records; 0 for other kinds.
    pub(super) task: u32,
    /// Number of records, communicators, or tasks.
    pub(super) items: u32,
    pub(super) raw: &'a [u8],
}

impl Block<'_> {
    /// Appends the bytes of the block to `out`; returns its checksum.
    pub(super) fn encode(self, compress: bool, out: &mut Vec<u8>) -> Result<u32, WriteError> {
        let (bytes, most) = (self.raw.len(), u32::MAX as usize);
        if bytes > most {
            return Err(WriteError::TooLarge { what: "a block", bytes, most });
        }
        let packed = if compress && self.kind != Kind::Index { Some(pack(self.raw)?) } else { None };
        // A block that compression does not make smaller is stored uncompressed.
        let packed = packed.filter(|packed| packed.len() < self.raw.len());
        let stored = packed.as_deref().unwrap_or(self.raw);
        let begin = out.len();
        out.extend_from_slice(&[self.kind as u8, packed.is_some().into(), 0, 0]);
        for word in [self.task, self.items, self.raw.len() as u32, stored.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let crc = checksum(&out[begin..], stored);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(stored);
        Ok(crc)
    }

    /// Checks kind, task, number of items and checksum of a block, and returns its content.
    pub(super) fn open(kind: Kind, task: u32, items: u32, mut bytes: Vec<u8>) -> Result<Vec<u8>, Problem> {
        let (frame, stored) = bytes.split_first_chunk::<FRAME>().ok_or_else(too_short)?;
        let frame = Frame::read(frame);
        frame.check(kind, task, items, stored.len() as u64, checksum(&frame.bytes, stored))?;
        bytes.drain(..FRAME);
        match frame.packed() {
            false => Ok(bytes),
            true => unpack(&bytes, frame.raw as usize),
        }
    }
}

fn too_short() -> Problem {
    Problem::Inconsistent("a block shorter than its frame".to_owned())
}

/// The frame in front of a block's content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// All but the checksum.
    pub(super) bytes: [u8; FRAME - 4],
    pub(super) raw: u32,
    pub(super) crc: u32,
}

impl Frame {
    pub(super) fn read(frame: &[u8; FRAME]) -> Self {
        let mut bytes = [0; FRAME - 4];
        bytes.copy_from_slice(&frame[..FRAME - 4]);
        Self { bytes, raw: word(frame, 12), crc: word(frame, FRAME - 4) }
    }

    /// Whether the content is compressed.
    pub(super) fn packed(&self) -> bool {
        self.bytes[1] == 1
    }

    /// Checks the frame against the index, the length of its content (`stored` bytes), and the checksum `crc` of both.
    pub(super) fn check(
        &self,
        kind: Kind,
        task: u32,
        items: u32,
        stored: u64,
        crc: u32,
    ) -> Result<(), Problem> {
        let inconsistent = |text: &str| Err(Problem::Inconsistent(text.to_owned()));
        if crc != self.crc {
            return Err(Problem::Checksum("block"));
        }
        let own = word(&self.bytes, 16);
        if u64::from(own) != stored {
            return inconsistent("a block of another length than the index says");
        }
        let named = self.bytes[0] == kind as u8 && word(&self.bytes, 4) == task;
        if !named || word(&self.bytes, 8) != items {
            return inconsistent("a block of another kind, task or number of items than the index says");
        }
        if self.bytes[2..4] != [0, 0] {
            return Err(Problem::Newer("a block with flags".to_owned()));
        }
        match self.bytes[1] {
            0 if self.raw != own => {
                inconsistent("a block whose two lengths differ although it is not compressed")
            }
            1 if self.raw as usize > MOST_RAW || kind == Kind::Index => {
                inconsistent("a compressed block that is too long")
            }
            0 | 1 => Ok(()),
            codec => Err(Problem::Newer(format!("a block in compression {codec}"))),
        }
    }
}

/// The little-endian number at `at`; 0 if out of range.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// The CRC-32 of a frame without its checksum, and of the content.
pub(super) fn checksum(frame: &[u8], stored: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(frame);
    crc.update(stored);
    crc.finalize()
}

#[cfg(feature = "zstd")]
fn pack(raw: &[u8]) -> Result<Vec<u8>, WriteError> {
    Ok(zstd::bulk::compress(raw, zstd::DEFAULT_COMPRESSION_LEVEL)?)
}

#[cfg(not(feature = "zstd"))]
fn pack(_: &[u8]) -> Result<Vec<u8>, WriteError> {
    Err(WriteError::NoZstd)
}

#[cfg(feature = "zstd")]
fn unpack(stored: &[u8], raw: usize) -> Result<Vec<u8>, Problem> {
    match zstd::bulk::decompress(stored, raw) {
        Ok(bytes) if bytes.len() == raw => Ok(bytes),
        _ => Err(Problem::Inconsistent("a block that does not decompress to its length".to_owned())),
    }
}

#[cfg(not(feature = "zstd"))]
fn unpack(_: &[u8], _: usize) -> Result<Vec<u8>, Problem> {
    Err(Problem::NoZstd)
}

/// The end of a file: the place of the index, and what a reader must support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    /// Offset of the index block.
    pub(super) offset: u64,
    /// Length of the index block, with its frame.
    pub(super) length: u64,
    /// The minor version.
    pub(super) minor: u16,
    /// Must-understand bits: a reader refuses the file if it does not know one. This version has none.
    pub(super) required: u32,
}

impl Footer {
    /// The bytes of the footer.
    pub(super) fn to_bytes(self) -> [u8; FOOTER] {
        let mut out = [0; FOOTER];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..16].copy_from_slice(&self.length.to_le_bytes());
        out[16..18].copy_from_slice(&self.minor.to_le_bytes());
        out[20..24].copy_from_slice(&self.required.to_le_bytes());
        let crc = crc32fast::hash(&out[..24]);
        out[24..28].copy_from_slice(&crc.to_le_bytes());
        out[28..].copy_from_slice(&END);
        out
    }

    pub(super) fn read(bytes: &[u8; FOOTER]) -> Result<Self, Problem> {
        if bytes[28..] != END {
            return Err(Problem::Cut);
        }
        if word(bytes, 24) != crc32fast::hash(&bytes[..24]) {
            return Err(Problem::Checksum("footer"));
        }
        let long = |at: usize| u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32;
        let minor = u16::from_le_bytes([bytes[16], bytes[17]]);
        let footer = Self { offset: long(0), length: long(8), minor, required: word(bytes, 20) };
        match footer.required {
            0 => Ok(footer),
            bits => Err(Problem::Newer(format!("features {bits:#x} (version {VERSION}.{minor})"))),
        }
    }
}
