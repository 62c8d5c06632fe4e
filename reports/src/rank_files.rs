//! Directories with one file a rank.

use std::io;
use std::path::{Path, PathBuf};

/// The rank files in a directory.
pub(crate) enum Found {
    /// The files of ranks 0, 1, … without a gap.
    All(Vec<PathBuf>),
    /// None.
    Nothing,
    /// The file of a rank is missing.
    Missing(PathBuf),
}

/// Finds the files `<prefix><rank><suffix>`.
pub(crate) fn find(directory: &Path, prefix: &str, suffix: &str) -> io::Result<Found> {
    let mut ranks = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let rank = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse::<u32>().ok());
        ranks.extend(rank);
    }
    ranks.sort_unstable();
    ranks.dedup();
    let path = |rank: u32| directory.join(format!("{prefix}{rank}{suffix}"));
    if ranks.is_empty() {
        return Ok(Found::Nothing);
    }
    let missing =
        (0u32..).zip(&ranks).find(|(expected, rank)| expected != *rank).map(|(expected, _)| expected);
    Ok(match missing {
        Some(rank) => Found::Missing(path(rank)),
        None => Found::All(ranks.into_iter().map(path).collect()),
    })
}
