//! What the ranks did with files in the captured run.

use super::measures::OfRank;
use crate::Exact;
use crate::table::{Cell, Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the ranks did with files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// How many files there are, by name.
    pub different: u64,
    /// Those with most time, the one with most first.
    pub files: Vec<InFile>,
    /// How many pairs of a file and a rank that used it there are.
    pub uses: u64,
    /// Those with most time, the one with most first.
    pub ranks: Vec<FileOfRank>,
}

/// A file, all ranks together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFile {
    /// Its name as the program gave it; empty: files beyond the first 1024 of a rank, together.
    pub file: String,
    /// Ranks that used it.
    pub ranks: u64,
    /// The calls.
    #[serde(flatten)]
    pub calls: FileCalls,
    /// The most time of a rank.
    pub max: OfRank,
}

/// What one rank did with a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileOfRank {
    /// Its name, as in [`InFile`].
    pub file: String,
    /// The rank.
    pub rank: u32,
    /// The calls.
    #[serde(flatten)]
    pub calls: FileCalls,
}

/// Calls on a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileCalls {
    /// How often it was opened.
    pub opens: Exact,
    /// Calls: to open, view and close it, to read and write, to seek, to sync, and to set its size.
    pub calls: Exact,
    /// Reads of at least a byte.
    pub reads: Exact,
    /// Bytes that they asked for.
    pub read_bytes: Exact,
    /// Writes of at least a byte.
    pub writes: Exact,
    /// Their bytes.
    pub written_bytes: Exact,
    /// Time in these calls, and in waits for them.
    pub time_ps: Exact,
}

impl FileCalls {
    const COLUMNS: [Column; 7] = [
        Column::new("opens", "opens"),
        Column::new("calls", "calls")
            .means("opening, viewing, closing, reading, writing, seeking, syncing, setting a size"),
        Column::new("reads", "reads"),
        Column::new("read_bytes", "bytes read").means("bytes that reads asked for"),
        Column::new("writes", "writes"),
        Column::new("written_bytes", "bytes written"),
        Column::new("time_ps", "time").means("in the calls, and in waits for them"),
    ];

    fn cells(&self) -> [Cell; 7] {
        let Self { opens, calls, reads, read_bytes, writes, written_bytes, time_ps } = self;
        [
            Cell::count(opens.0),
            Cell::count(calls.0),
            Cell::count(reads.0),
            Cell::count(read_bytes.0),
            Cell::count(writes.0),
            Cell::count(written_bytes.0),
            Cell::Time(time_ps.0),
        ]
    }
}

impl Files {
    /// The columns of both tables that a terminal has room for, behind the file and the rank or the ranks.
    pub const SHORT: [&str; 5] = ["reads", "read_bytes", "writes", "written_bytes", "time_ps"];

    /// By file, and by file and rank.
    pub fn tables(&self) -> [Table; 2] {
        let file = Column::new("file", "file");
        let of_all = [Column::new("max_ps", "of one rank"), Column::new("max_rank", "of rank")];
        let columns =
            [&[file.clone(), Column::new("ranks", "ranks")][..], &FileCalls::COLUMNS, &of_all].concat();
        let mut files = Table::new("files", "Files", columns);
        for row in &self.files {
            let begin = [shown(&row.file), Cell::count(row.ranks)];
            files.row(begin.into_iter().chain(row.calls.cells()).chain(row.max.time_cells()));
        }
        let columns = [&[file, Column::new("rank", "rank")][..], &FileCalls::COLUMNS].concat();
        let mut ranks = Table::new("file-ranks", "Files by rank", columns);
        for row in &self.ranks {
            let begin = [shown(&row.file), Cell::Id(row.rank.into())];
            ranks.row(begin.into_iter().chain(row.calls.cells()));
        }
        (files.all, ranks.all) = (self.different, self.uses);
        [files, ranks]
    }

    /// The same with names of at most so many characters, of which the ends are kept.
    pub fn with_short_names(mut self, most: usize) -> Self {
        let names = self.files.iter_mut().map(|row| &mut row.file);
        for name in names.chain(self.ranks.iter_mut().map(|row| &mut row.file)) {
            let length = name.chars().count();
            if length > most {
                *name = format!("…{}", name.chars().skip(length + 1 - most).collect::<String>());
            }
        }
        self
    }
}

fn shown(name: &str) -> Cell {
    Cell::text(if name.is_empty() { "(further files)" } else { name })
}
