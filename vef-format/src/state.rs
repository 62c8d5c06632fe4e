//! What a task does at any moment of a run: the states to which its time is accounted.

use crate::account::TimePart;
use crate::raw::DEPENDENCY;

/// A state of a task, from the start of its job to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// It computes.
    Computing,
    /// It waits for a send of its own to complete.
    Send,
    /// It waits for a message.
    Reception,
    /// It is in a collective that its next record waits for, of the program or by which MPI agrees on communicators, files and windows.
    Collective,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Computing, Self::Send, Self::Reception, Self::Collective];

    /// The state of a task whose next record waits, by the code of what it waits for ([`DEPENDENCY`]).
    #[inline(always)]
    pub const fn of_dependency(code: u8) -> Self {
        match code & DEPENDENCY {
            2 => Self::Reception,
            3 => Self::Collective,
            // A send. A record without dependency does not wait.
            _ => Self::Send,
        }
    }

    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Send => "send",
            Self::Reception => "reception",
            Self::Collective => "collective",
        }
    }

    /// Name for people: that of the part of the captured time, if it is one part.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Send => TimePart::Send.title(),
            Self::Reception => TimePart::Message.title(),
            Self::Collective => "in collectives and agreements",
        }
    }
}
