//! Settings of an import.

use std::path::PathBuf;

/// Settings of an import. Each format uses those that concern it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Import what is there if ranks are missing or files are truncated; messages without a partner are counted and left out.
    pub partial: bool,
    /// Refuse what is otherwise left out and counted, such as dependencies on operations that do not exist.
    pub strict: bool,
    /// Graphs: make a task of each stream of a rank.
    pub streams: Option<Streams>,
    /// Chakra: operations of one stream follow each other in the order of their starts.
    pub stream_order: bool,
    /// Chakra: the file with the members of the groups.
    pub groups: Option<PathBuf>,
    /// DUMPI: gaps in the recording count as computing.
    pub keep_gaps: bool,
    /// OTF2: use the offsets and slopes of the clocks.
    pub global_clock: bool,
    /// SimGrid: the speed by which amounts of computing become times, in flop/s.
    pub flops_per_second: Option<f64>,
    /// SimGrid: read traces of versions before 3.20, whose waits name no request.
    pub old_ti: bool,
}

/// What distinguishes the streams of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The processor of GOAL's operations (`cpu`), the stream of Chakra's (`tid`).
    Cpu,
    /// The network interface of GOAL's operations (`nic`).
    Nic,
}
