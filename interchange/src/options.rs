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
    /// SimGrid, and Chakra's operations without a duration: the speed by which amounts of computing become times, in flop/s.
    pub flops_per_second: Option<f64>,
    /// SimGrid: read traces of versions before 3.20, whose waits name no request.
    pub old_ti: bool,
}

/// A setting that not all formats have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// [`Options::streams`].
    Streams,
    /// [`Options::streams`] by [`Streams::Nic`].
    StreamsByNic,
    /// [`Options::stream_order`].
    StreamOrder,
    /// [`Options::groups`].
    Groups,
    /// [`Options::keep_gaps`].
    KeepGaps,
    /// [`Options::global_clock`].
    GlobalClock,
    /// [`Options::flops_per_second`].
    FlopsPerSecond,
    /// [`Options::old_ti`].
    OldTi,
}

impl Setting {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streams => "--streams",
            Self::StreamsByNic => "--streams nic",
            Self::StreamOrder => "--stream-order",
            Self::Groups => "--groups",
            Self::KeepGaps => "--keep-gaps",
            Self::GlobalClock => "--global-clock",
            Self::FlopsPerSecond => "--flops-per-second",
            Self::OldTi => "--old-ti",
        }
    }
}

impl Options {
    /// The settings that are given, of those that not all formats have.
    pub fn given(&self) -> impl Iterator<Item = Setting> + use<> {
        let all = [
            (Setting::Streams, self.streams.is_some()),
            (Setting::StreamsByNic, self.streams == Some(Streams::Nic)),
            (Setting::StreamOrder, self.stream_order),
            (Setting::Groups, self.groups.is_some()),
            (Setting::KeepGaps, self.keep_gaps),
            (Setting::GlobalClock, self.global_clock),
            (Setting::FlopsPerSecond, self.flops_per_second.is_some()),
            (Setting::OldTi, self.old_ti),
        ];
        all.into_iter().filter_map(|(setting, is_given)| is_given.then_some(setting))
    }
}

/// What distinguishes the streams of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The processor of GOAL's operations (`cpu`), the stream of Chakra's (`tid`).
    Cpu,
    /// The network interface of GOAL's operations (`nic`).
    Nic,
}
