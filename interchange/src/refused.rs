//! Formats that are recognised to be refused with advice.

use crate::format::Info;

/// The database of NVIDIA's profiler (`nsys export --type sqlite`).
pub(crate) const SQLITE: Info = Info::refused(
    "sqlite",
    "SQLite database, as nsys exports",
    |start| start.bytes.starts_with(b"SQLite format 3\0"),
    "convert it with ATLAHS to GOAL, which can be imported",
);

/// What PyTorch's `ExecutionTraceObserver` writes.
pub(crate) const PYTORCH_HOST: Info = Info::refused(
    "pytorch-host",
    "host trace of PyTorch",
    |start| {
        is_json_with(start.bytes, "\"schema\"")
            && has(start.bytes, "pid")
            && !has(start.bytes, "\"traceEvents\"")
    },
    "make a Chakra trace of it with chakra_trace_link and chakra_converter",
);

/// What PyTorch's profiler writes.
pub(crate) const KINETO: Info = Info::refused(
    "kineto",
    "trace of PyTorch's profiler (Kineto)",
    |start| is_json_with(start.bytes, "\"traceEvents\"") || is_json_with(start.bytes, "\"deviceProperties\""),
    "make a Chakra trace of it and the host trace with chakra_trace_link and chakra_converter",
);

fn has(start: &[u8], word: &str) -> bool {
    memchr::memmem::find(start, word.as_bytes()).is_some()
}

fn is_json_with(start: &[u8], word: &str) -> bool {
    start.trim_ascii_start().starts_with(b"{") && has(start, word)
}
