//! A rank's file of a capture is refused, or read to its end. The input is the first 256 bytes of the file, then those of
//! its first chunk; the file has its full length, zeros else.
#![no_main]

use vef_format::capture::{Capture, CaptureError, rank_path};
use vef_format::ids::Rank;

vef_fuzz::target!(|bytes| {
    let (header, chunk) = bytes.split_at(bytes.len().min(256));
    vef_fuzz::with_directory(|directory| {
        vef_fuzz::write_rank_file(&rank_path(directory, Rank(0)), header, chunk);
        let Ok(capture) = Capture::open(directory) else { return };
        let _ = capture.functions(Rank(0));
        let Ok(mut events) = capture.events(Rank(0)) else { return };
        let _ = events.each(|_| Ok::<_, CaptureError>(()));
        let _ = events.ending();
    });
});
