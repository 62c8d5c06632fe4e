//! Rank files compressed as a whole, `<rank>.vefc.zst`, in the format of the `zstd` program.
//!
//! They are expanded into an unlinked file on disk, so that reading takes no more memory than for plain files.

use super::error::CaptureError;
use super::layout::{EXTENSION, rank_path};
use crate::ids::Rank;
use crate::new_file::NewFile;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Suffix after that of a plain file.
pub(super) const SUFFIX: &str = "zst";
/// The first bytes of a compressed file.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The file of `rank` in the capture `dir`, plain or compressed; the path of the plain one if neither exists.
pub fn rank_file(dir: &Path, rank: Rank) -> PathBuf {
    let plain = rank_path(dir, rank);
    let packed = dir.join(format!("{rank}.{EXTENSION}.{SUFFIX}"));
    // A plain file beside a compressed one is newer, or compression was interrupted.
    if !plain.exists() && packed.exists() { packed } else { plain }
}

/// The rank in a file name of a capture.
pub(super) fn rank_of(path: &Path) -> Option<Rank> {
    let stem = match path.extension()?.to_str()? {
        SUFFIX => Path::new(path.file_stem()?),
        _ => path,
    };
    (stem.extension()? == EXTENSION).then_some(())?;
    stem.file_stem()?.to_str()?.parse().ok().map(Rank)
}

/// Whether a file with these first bytes is compressed.
pub(super) fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Sizes of a file before and after compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the plain file.
    pub plain: u64,
    /// Bytes of the compressed file; equal to `plain` if the file was compressed already.
    pub compressed: u64,
}

/// Replaces the plain file of `rank` by a compressed one, which is complete before the plain one is deleted.
///
/// # Errors
/// [`CaptureError::Io`]; the plain file still exists then.
pub fn compress(dir: &Path, rank: Rank) -> Result<Sizes, CaptureError> {
    let from = rank_file(dir, rank);
    let io = |error| CaptureError::io(&from, error);
    let mut plain = match File::open(&from) {
        // Of a rank that was killed in MPI_Init.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Sizes { plain: 0, compressed: 0 });
        }
        opened => opened.map_err(io)?,
    };
    let size = plain.metadata().map_err(io)?.len();
    if from.extension().is_some_and(|extension| extension == SUFFIX) {
        return Ok(Sizes { plain: size, compressed: size });
    }
    let to = dir.join(format!("{rank}.{EXTENSION}.{SUFFIX}"));
    let compressed = NewFile::create(&to).and_then(|new| {
        let compressed = codec::compress(&mut plain, size, new.file())?;
        new.finish()?;
        Ok(compressed)
    });
    let compressed = compressed.map_err(|error| CaptureError::io(&to, error))?;
    std::fs::remove_file(&from).map_err(io)?;
    Ok(Sizes { plain: size, compressed })
}

/// The first `len` bytes of the expanded file, and its length.
pub(super) fn head(packed: &File, len: usize) -> io::Result<(Vec<u8>, u64)> {
    codec::head(packed, len)
}

/// Expands the file at `path` into an unlinked file.
pub(super) fn expand(path: &Path, packed: &File) -> io::Result<File> {
    codec::expand(path, packed)
}

#[cfg(feature = "zstd")]
mod codec {
    use std::fs::File;
    use std::io::{self, BufRead, BufReader, Read, Write};
    use std::path::Path;
    use zstd::stream::{read::Decoder, write::Encoder};
    use zstd::zstd_safe::get_frame_content_size;

    /// Longer than any zstd frame header.
    const FRAME_HEADER: u64 = 18;

    pub(super) fn compress(plain: &mut File, size: u64, to: &File) -> io::Result<u64> {
        let mut encoder = Encoder::new(to, zstd::DEFAULT_COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(size))?;
        io::copy(plain, &mut encoder)?;
        let file = encoder.finish()?;
        Ok(file.metadata()?.len())
    }

    pub(super) fn head(packed: &File, len: usize) -> io::Result<(Vec<u8>, u64)> {
        let (size, packed) = content_size(packed)?;
        let mut first = Vec::with_capacity(len);
        Decoder::new(packed)?.take(len as u64).read_to_end(&mut first)?;
        Ok((first, size))
    }

    pub(super) fn expand(path: &Path, packed: &File) -> io::Result<File> {
        let (size, packed) = content_size(packed)?;
        // The directory of the compressed file likely has room, and is not a file system in memory.
        let beside =
            path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        let beside = beside.and_then(|parent| tempfile::tempfile_in(parent).ok());
        let mut plain = beside.map_or_else(tempfile::tempfile, Ok)?;
        let mut decoder = Decoder::with_buffer(BufReader::with_capacity(1 << 17, packed))?.single_frame();
        let written = io::copy(&mut (&mut decoder).take(size.saturating_add(1)), &mut plain)?;
        if written != size || !decoder.finish().fill_buf()?.is_empty() {
            return Err(damaged("its length is not that of what is compressed in it"));
        }
        plain.flush()?;
        Ok(plain)
    }

    /// The expanded length of a file, and a reader of the compressed bytes from the start.
    fn content_size(mut packed: &File) -> io::Result<(u64, impl Read)> {
        let mut frame = Vec::new();
        Read::by_ref(&mut packed).take(FRAME_HEADER).read_to_end(&mut frame)?;
        match get_frame_content_size(&frame) {
            Ok(Some(size)) => Ok((size, io::Cursor::new(frame).chain(packed))),
            _ => Err(damaged("compressed by zstd without telling the length (compress files, not streams)")),
        }
    }

    fn damaged(what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

#[cfg(not(feature = "zstd"))]
mod codec {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn compress(_: &mut File, _: u64, _: &File) -> io::Result<u64> {
        Err(unknown())
    }

    pub(super) fn head(_: &File, _: usize) -> io::Result<(Vec<u8>, u64)> {
        Err(unknown())
    }

    pub(super) fn expand(_: &Path, _: &File) -> io::Result<File> {
        Err(unknown())
    }

    fn unknown() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "compressed files need a program that was built with zstd")
    }
}

#[cfg(feature = "zstd")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::event::{Action, Detail, Event};
    use crate::capture::{Capture, RankInfo, RankWriter};
    use crate::units::Nanos;

    /// A capture of two ranks with a few thousand events each.
    fn capture(dir: &Path) {
        for rank in 0..2 {
            let info = RankInfo { rank: Rank(rank), tasks: 2, host: "here".into(), ..RankInfo::default() };
            let mut writer = RankWriter::create(dir, &info).expect("a file");
            let functions = ["MPI_Put", "MPI_Win_fence"].map(|name| writer.function(name).expect("room"));
            for at in 0..5000u64 {
                let call = functions[usize::from(at % 3 != 0)];
                let action = Action::Other { bytes: crate::units::Bytes(at * 7), detail: Detail::None };
                writer
                    .event(&Event {
                        thread: 0,
                        start: Nanos(at * 1000),
                        end: Nanos(at * 1000 + 10 + at % 7),
                        call,
                        action,
                    })
                    .expect("written");
            }
            writer.finish().expect("a capture");
        }
    }

    fn text(dir: &Path) -> Vec<String> {
        let capture = Capture::open(dir).expect("a capture");
        let mut all = Vec::new();
        for rank in 0..capture.tasks() {
            let mut events = capture.events(Rank(rank)).expect("events");
            let tell = |event: &Event<'_>| {
                all.push(format!("{event:?}"));
                Ok::<_, CaptureError>(())
            };
            events.each(tell).expect("readable");
        }
        all
    }

    #[test]
    fn a_compressed_capture_reads_as_the_plain_one() {
        let dir = tempfile::tempdir().expect("a directory");
        capture(dir.path());
        let before = text(dir.path());
        let sizes = compress(dir.path(), Rank(1)).expect("compressed");
        assert!(sizes.compressed < sizes.plain, "{sizes:?}");
        assert!(!rank_path(dir.path(), Rank(1)).exists() && rank_file(dir.path(), Rank(1)).exists());
        assert_eq!(text(dir.path()), before);
        // A second compression changes nothing.
        assert_eq!(compress(dir.path(), Rank(1)).expect("as it is").compressed, sizes.compressed);
        compress(dir.path(), Rank(0)).expect("compressed");
        assert_eq!(text(dir.path()), before);
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 2);
    }

    #[test]
    fn every_flip_and_every_cut_of_a_compressed_file_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        capture(dir.path());
        compress(dir.path(), Rank(0)).expect("compressed");
        let path = rank_file(dir.path(), Rank(0));
        let whole = std::fs::read(&path).expect("a file");
        let before = text(dir.path());
        let check = |bytes: &[u8], what: String| {
            std::fs::write(&path, bytes).expect("written");
            let read = Capture::open(dir.path()).and_then(|capture| capture.events(Rank(0)).map(drop));
            match read {
                Err(error) => assert!(error.to_string().contains("0.vefc.zst"), "{what}: {error}"),
                Ok(()) => assert_eq!(text(dir.path()), before, "{what}"),
            }
        };
        // No rank has called MPI_Finalize: an empty file would be that of one that was killed in MPI_Init.
        for at in (1..whole.len()).step_by(1 + whole.len() / 300) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            check(&bytes, format!("byte {at}"));
            check(&whole[..at], format!("first {at} bytes"));
        }
        check(&[&whole[..], b"more"].concat(), "with more behind".into());
    }
}
