//! The sections of notes.

/// A section of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// [`Note::Detached`](super::Note::Detached) and [`Note::SendWait`](super::Note::SendWait), of each task.
    Sends,
    /// [`Note::Synchronous`](super::Note::Synchronous), of each task.
    Synchronous,
    /// [`Note::Tag`](super::Note::Tag), of each task.
    Tags,
    /// [`Note::Call`](super::Note::Call), of each task.
    Calls,
    /// [`Note::Counts`](super::Note::Counts), of each task.
    Counts,
    /// [`Note::Phase`](super::Note::Phase), of each task.
    Phases,
    /// [`Note::Initialised`](super::Note::Initialised) and [`Note::Finalised`](super::Note::Finalised), of each task.
    Spans,
    /// [`Note::Time`](super::Note::Time), of each task.
    Times,
    /// [`Note::Moment`](super::Note::Moment) and [`Note::BeforePhase`](super::Note::BeforePhase), of each task.
    Moments,
    /// [`Note::File`](super::Note::File), of each task.
    Files,
    /// [`Note::Host`](super::Note::Host), of the trace.
    Placement,
    /// [`Note::Root`](super::Note::Root), of the trace.
    Roots,
    /// [`Note::Blocks`](super::Note::Blocks), of the trace.
    Blocks,
}

impl Section {
    /// All sections, in the order of declaration.
    pub const ALL: [Self; 13] = [
        Self::Sends,
        Self::Synchronous,
        Self::Tags,
        Self::Calls,
        Self::Counts,
        Self::Phases,
        Self::Spans,
        Self::Times,
        Self::Moments,
        Self::Files,
        Self::Placement,
        Self::Roots,
        Self::Blocks,
    ];

    /// Its name in a container.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sends => "sends",
            Self::Synchronous => "synchronous",
            Self::Tags => "tags",
            Self::Calls => "calls",
            Self::Counts => "counts",
            Self::Phases => "phases",
            Self::Spans => "spans",
            Self::Times => "times",
            Self::Moments => "moments",
            Self::Files => "files",
            Self::Placement => "placement",
            Self::Roots => "roots",
            Self::Blocks => "blocks",
        }
    }

    /// Whether it belongs to the trace, not to tasks.
    pub const fn of_trace(self) -> bool {
        matches!(self, Self::Placement | Self::Roots | Self::Blocks)
    }
}
