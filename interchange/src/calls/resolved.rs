//! A communicator as far as its members are known.

use std::sync::Arc;
use vef_format::capture::Group;

/// A communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Comm {
    /// Of these members.
    Of(Arc<Group>),
    /// Its traffic cannot be part of a trace.
    Foreign(Why),
}

/// Why the traffic of a communicator is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Why {
    /// It is an inter-communicator, or was made of one.
    Inter,
    /// Calls of other ranks that made it are not in the trace.
    Unknown,
}

impl Why {
    /// What calls on such a communicator are called.
    pub(crate) fn finding(self) -> &'static str {
        match self {
            Self::Inter => "calls left out: on inter-communicators, or what was made of them",
            Self::Unknown => "calls left out: on communicators whose members the trace does not tell",
        }
    }

    /// In words, behind "communicator 5".
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Inter => "is an inter-communicator, or was made of one",
            Self::Unknown => "has members that the trace does not tell",
        }
    }
}
