//! The account of a task's time: outside MPI, and inside by what its calls wait for.
//!
//! `docs/time.md` defines the parts. All readers of captures and traces use them: the mixer writes the account of each task
//! into a container, and the reports add accounts up.

use crate::units::Ticks;

/// A line a part: its variant, its field, its name for people, and what it is.
macro_rules! parts {
    ($($part:ident $field:ident $title:literal $doc:literal;)*) => {
        /// A part of a task's time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TimePart {
            $(#[doc = $doc] $part,)*
        }

        impl TimePart {
            /// All parts, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$part),*];

            /// Its name in JSON and CSV.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$part => stringify!($field),)*
                }
            }

            /// Its name for people.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$part => $title,)*
                }
            }
        }

        /// Times by part, in the unit of what holds them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct ByPart {
            $(#[doc = $doc] pub $field: u64,)*
        }

        impl ByPart {
            /// The time of a part.
            pub const fn of(&self, part: TimePart) -> u64 {
                match part {
                    $(TimePart::$part => self.$field,)*
                }
            }

            /// Adds to a part; saturates.
            pub fn add(&mut self, part: TimePart, time: u64) {
                let sum = match part {
                    $(TimePart::$part => &mut self.$field,)*
                };
                *sum = sum.saturating_add(time);
            }
        }
    };
}

parts! {
    StartUp      start_up     "start-up"                "In `MPI_Init`.";
    Outside      outside      "outside MPI"             "Outside MPI: computing.";
    Own          own          "MPI's own work"          "In calls that wait for no other task: posting a receive, starting a send.";
    Message      message      "waiting for messages"    "In calls that wait for messages: receives, probes, and waits that complete a receive.";
    Send         send         "sending"                 "In blocking sends, and in waits that complete sends alone.";
    Collective   collective   "in collectives"          "In collectives, and in waits that complete a non-blocking one.";
    Communicator communicator "making communicators"    "In calls that create, connect or free communicators.";
    Window       window       "one-sided communication" "In calls on windows.";
    File         file         "files"                   "In calls on files.";
    Polling      polling      "polling"                 "In polls (`MPI_Test`, `MPI_Iprobe` and the like), successful or not.";
    Unknown      unknown      "unknown"                 "Outside MPI or in it: what a capture without all calls (the older layout, or of one phase) does not tell apart.";
    Preempted    preempted    "outside without a core"  "Outside MPI, ready to run, but without a core, which others had.";
}

impl TimePart {
    /// Whether it is time in MPI while the program runs.
    pub const fn is_inside(self) -> bool {
        !matches!(self, Self::StartUp | Self::Outside | Self::Unknown | Self::Preempted)
    }
}

/// The account of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account(pub Vec<Entry>);

/// The time in one function, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The C name; empty for time that is not in MPI, and of captures that have no names.
    pub function: String,
    /// The part of the task's time that it counts for.
    pub part: TimePart,
    /// Calls, in the first of a function's entries; 0 in the others.
    pub calls: u64,
    /// The time of these calls, on all threads together.
    pub took: Ticks,
}

impl ByPart {
    /// Adds other times, part by part.
    pub fn merge(&mut self, other: &Self) {
        TimePart::ALL.iter().for_each(|&part| self.add(part, other.of(part)));
    }

    /// Time in MPI, without `MPI_Init`.
    pub fn inside(&self) -> u64 {
        self.sum(TimePart::is_inside)
    }

    /// All time behind `MPI_Init`: what shares refer to.
    pub fn running(&self) -> u64 {
        self.sum(|part| part != TimePart::StartUp)
    }

    fn sum(&self, wanted: impl Fn(TimePart) -> bool) -> u64 {
        let parts = TimePart::ALL.iter().copied().filter(|&part| wanted(part));
        parts.map(|part| self.of(part)).fold(0, u64::saturating_add)
    }
}

impl Account {
    /// Whether the capture has the calls of one phase only.
    pub fn is_of_one_phase(&self) -> bool {
        // Captures of the older layout have a name for the start-up alone.
        let named = |entry: &Entry| !entry.function.is_empty() && entry.part != TimePart::StartUp;
        self.0.iter().any(named) && self.0.iter().any(|entry| entry.part == TimePart::Unknown)
    }

    /// The times by part.
    pub fn by_part(&self) -> ByPart {
        let mut times = ByPart::default();
        self.0.iter().for_each(|entry| times.add(entry.part, entry.took.0));
        times
    }
}
