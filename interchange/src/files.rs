//! The files of a foreign trace: those that the user names, or those of a directory.

use crate::error::{Problem, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes by which a file is recognised.
pub(crate) const START: u64 = 4096;

/// The files of a foreign trace.
#[derive(Clone, Debug)]
pub struct Files {
    /// Directories are replaced by their files, sorted by name; otherwise in the order that the user gave.
    pub paths: Vec<PathBuf>,
}

/// How a file begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its first bytes, at most 4096.
    pub bytes: &'a [u8],
}

impl Files {
    /// The files `paths`, and those in directories among them.
    ///
    /// # Errors
    /// A path does not exist, or a directory has no files.
    pub fn of(paths: &[PathBuf]) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let io = |error: std::io::Error| Problem::from(error).of_file(path);
            if !std::fs::metadata(path).map_err(io)?.is_dir() {
                files.push(path.clone());
                continue;
            }
            let mut within = Vec::new();
            for entry in std::fs::read_dir(path).map_err(io)? {
                let entry = entry.map_err(io)?.path();
                if entry.is_file() {
                    within.push(entry);
                }
            }
            if within.is_empty() {
                return Err(Problem::Invalid("a directory without files".to_owned()).of_file(path));
            }
            within.sort();
            files.append(&mut within);
        }
        Ok(Self { paths: files })
    }

    /// The first file: the one that errors about all files name.
    pub fn first(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Opens a file to be read once, without its compression by gzip.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Box<dyn Read>> {
        open(path)
    }

    /// The first bytes of a file, without its compression by gzip.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn start(path: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = open(path)?.take(START).read_to_end(&mut bytes);
        // A compressed file may be truncated: what there is of it is enough.
        match read {
            Err(error) if bytes.is_empty() => Err(Problem::from(error).of_file(path)),
            _ => Ok(bytes),
        }
    }
}

impl Files {
    /// Checks that the first bytes of a file that is compressed by gzip can be unpacked.
    ///
    /// # Errors
    /// The file is cut off or damaged, or it cannot be read.
    pub fn check_start(path: &Path) -> Result<()> {
        let read = open(path)?.take(START).read_to_end(&mut Vec::new());
        read.map(drop).map_err(|error| Problem::from(error).of_file(path))
    }
}

/// What a file compressed by gzip contains.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| {
            let said = format!("it is compressed by gzip, and cut off or damaged ({error})");
            io::Error::new(error.kind(), said)
        })
    }
}

/// Opens a file, which may be compressed by gzip.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>> {
    let open = || -> io::Result<Box<dyn Read>> {
        let mut input = BufReader::with_capacity(1 << 17, File::open(path)?);
        match input.fill_buf()? {
            [0x1f, 0x8b, ..] => Ok(Box::new(Unpacked(MultiGzDecoder::new(input)))),
            _ => Ok(Box::new(input)),
        }
    };
    open().map_err(|error| Problem::from(error).of_file(path))
}

/// Opens a file whose compression by gzip, if it has one, may be cut: it has what is in front.
pub(crate) fn open_cut(path: &Path) -> Result<Box<dyn Read>> {
    Ok(Box::new(UntilCut(open(path)?)))
}

struct UntilCut(Box<dyn Read>);

impl Read for UntilCut {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

/// Opens a file to be read at any place; of one that is compressed by gzip, a plain copy without a name, of what is in front of a cut if
/// it is `partial`.
pub(crate) fn open_seekable(path: &Path, partial: bool) -> Result<File> {
    let open = || -> io::Result<File> {
        let mut input = BufReader::with_capacity(1 << 17, File::open(path)?);
        if !matches!(input.fill_buf()?, [0x1f, 0x8b, ..]) {
            return Ok(input.into_inner());
        }
        let mut plain = tempfile::tempfile()?;
        let unpacked = Box::new(Unpacked(MultiGzDecoder::new(input)));
        match partial {
            true => io::copy(&mut UntilCut(unpacked), &mut plain)?,
            false => io::copy(&mut { unpacked }, &mut plain)?,
        };
        Ok(plain)
    };
    let mut file = open().map_err(|error| Problem::from(error).of_file(path))?;
    file.rewind().map_err(|error| Problem::from(error).of_file(path))?;
    Ok(file)
}
