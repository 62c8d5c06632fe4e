//! Any bytes as the capture of two ranks are refused, or make a trace. The first byte chooses the layout; the input is,
//! in ours, the length of rank 0's part in 32 bytes, then for each rank the first 256 bytes of its file and those of
//! its first chunk; in the older one, the lengths of `VEFT.main`, `0.comm`, `1.comm` and (in 16 bytes) `0.veft`, then these, then
//! `1.veft`.
#![no_main]

use std::path::Path;
use vef_format::capture::rank_path;
use vef_format::ids::Rank;

fn split(bytes: &[u8], length: usize) -> (&[u8], &[u8]) {
    bytes.split_at(length.min(bytes.len()))
}

fn write_ours(directory: &Path, bytes: &[u8]) {
    let (&length, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (first, second) = split(rest, usize::from(length) * 32);
    for (rank, bytes) in [(0, first), (1, second)] {
        let (header, chunk) = split(bytes, 256);
        vef_fuzz::write_rank_file(&rank_path(directory, Rank(rank)), header, chunk);
    }
}

fn write_older(directory: &Path, bytes: &[u8]) {
    let (lengths, mut rest) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    for (name, length, scale) in
        [("VEFT.main", lengths[0], 1), ("0.comm", lengths[1], 1), ("1.comm", lengths[2], 1), ("0.veft", lengths[3], 16)]
    {
        let (content, behind) = split(rest, usize::from(length) * scale);
        std::fs::write(directory.join(name), content).expect("a temporary file");
        rest = behind;
    }
    std::fs::write(directory.join("1.veft"), rest).expect("a temporary file");
}

vef_fuzz::target!(|bytes| {
    let Some((&how, rest)) = bytes.split_first() else { return };
    vef_fuzz::with_directory(|directory| {
        let capture = directory.join(if how & 1 == 0 { "ours" } else { "older" });
        std::fs::create_dir_all(&capture).expect("a temporary directory");
        match how & 1 {
            0 => write_ours(&capture, rest),
            _ => write_older(&capture, rest),
        }
        vef_fuzz::tools::mix(&capture, how >> 1);
    });
});
