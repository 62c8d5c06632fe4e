//! What several fuzz targets need.

pub mod memory;
pub mod program;
#[cfg(feature = "tools")]
pub mod tools;

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use vef_format::capture::layout::{CHUNK_SIZE, HEADER_SIZE};
use vef_format::record::{Header, Record};
use vef_format::text::{Reader, TextError, Writer};

/// A fuzz target that may hold 64 MB, or as many as given, and four bytes for each byte of its input.
#[macro_export]
macro_rules! target {
    (|$bytes:ident| $body:expr) => {
        $crate::target!(64, |$bytes| $body);
    };
    ($megabytes:literal, |$bytes:ident| $body:expr) => {
        libfuzzer_sys::fuzz_target!(|$bytes: &[u8]| { $crate::memory::within($megabytes, $bytes.len(), || $body) });
    };
}

/// The records of a text trace.
pub fn read_text(bytes: &[u8]) -> Result<(Header, Vec<Record>), TextError> {
    let mut reader = Reader::from_bytes(bytes, Path::new("fuzz.vef"))?;
    let mut records = Vec::new();
    while let Some(line) = reader.next()? {
        records.push(line.to_record());
    }
    Ok((*reader.header(), records))
}

/// Records as a text trace.
pub fn write_text(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).expect("a vector takes everything");
    for record in records {
        writer.line(&record.borrowed()).expect("what was read can be written");
    }
    writer.finish().expect("the counts were checked by the reader")
}

/// Gives `use_it` a directory of this process, in memory where there is such a file system.
pub fn with_directory(use_it: impl FnOnce(&Path)) {
    thread_local! {
        static DIRECTORY: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
    }
    DIRECTORY.with_borrow_mut(|directory| {
        let directory = directory.get_or_insert_with(|| {
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory")
        });
        use_it(directory.path());
    });
}

/// Writes the first bytes of a rank's file of a capture, and those of its first chunk; zeros else.
pub fn write_rank_file(path: &Path, header: &[u8], chunk: &[u8]) {
    let file = File::create(path).expect("a temporary file");
    file.write_all_at(header, 0)
        .and_then(|()| file.write_all_at(chunk, HEADER_SIZE as u64))
        .and_then(|()| file.set_len((HEADER_SIZE + CHUNK_SIZE) as u64))
        .expect("a temporary file");
}

/// Makes the checksums of a container right, without which nothing behind them would ever be reached.
pub fn reseal(bytes: &mut [u8]) {
    let mut at = 8;
    while bytes.len() >= 24 && at + 24 <= bytes.len() - 24 {
        let stored = u32::from_le_bytes([bytes[at + 16], bytes[at + 17], bytes[at + 18], bytes[at + 19]]) as usize;
        let Some(content) = bytes.get(at + 24..(at + 24).saturating_add(stored)) else { break };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + 20]);
        crc.update(content);
        let crc = crc.finalize().to_le_bytes();
        bytes[at + 20..at + 24].copy_from_slice(&crc);
        at += 24 + stored;
    }
    if let Some(footer) = bytes.len().checked_sub(24) {
        let crc = crc32fast::hash(&bytes[footer..footer + 16]).to_le_bytes();
        bytes[footer + 16..footer + 20].copy_from_slice(&crc);
    }
}
