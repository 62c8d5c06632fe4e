//! Formats that are recognised to be refused with advice.

use crate::format::Info;

/// The database of NVIDIA's profiler (`nsys export --type sqlite`).
pub(crate) const SQLITE: Info = Info::refused(
    "sqlite",
    "SQLite database, as nsys exports",
    |start| start.bytes.starts_with(b"SQLite format 3\0"),
    "convert it with ATLAHS to GOAL, which can be imported",
);
