//! A rank's file of a capture is refused, or read to its end. The input is the first 256 bytes of the file, then those of
//! its first chunk; the file has its full length, zeros else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::os::unix::fs::FileExt;
use vef_format::capture::layout::{CHUNK_SIZE, HEADER_SIZE};
use vef_format::capture::{Capture, rank_path};
use vef_format::ids::Rank;

fuzz_target!(|bytes: &[u8]| {
    let (header, chunk) = bytes.split_at(bytes.len().min(256));
    vef_fuzz::with_directory(|directory| {
        let file = File::create(rank_path(directory, Rank(0))).expect("a temporary file");
        let write = || -> std::io::Result<()> {
            file.write_all_at(header, 0)?;
            file.write_all_at(chunk, HEADER_SIZE as u64)?;
            file.set_len((HEADER_SIZE + CHUNK_SIZE) as u64)
        };
        write().expect("a temporary file");
        let Ok(capture) = Capture::open(directory) else { return };
        let _ = capture.calls(Rank(0));
        let Ok(mut events) = capture.events(Rank(0)) else { return };
        while let Ok(Some(_)) = events.next() {}
        let _ = events.ending();
    });
});
