//! Who waits for whom in a run: why, in which function and phase, and how long.

use serde::{Deserialize, Serialize};

/// Why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The sender of the message for which it waits has not sent it yet.
    LateSender,
    /// The message for which it waits is under way.
    Message,
    /// Another member has not entered the collective yet.
    LateMember,
    /// All members that it waits for have entered the collective; its messages are under way.
    Collective,
    /// A send of its own has not left: its receiver computes (`rendezvous-in-calls`).
    LateReceiver,
    /// A send of its own is not complete.
    Send,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::LateSender, Self::Message, Self::LateMember, Self::Collective, Self::LateReceiver, Self::Send];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::Message => "message under way",
            Self::LateMember => "late member of a collective",
            Self::Collective => "collective under way",
            Self::LateReceiver => "late receiver",
            Self::Send => "send not complete",
        }
    }
}

/// Waits of one cause at one place of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingIn {
    /// Why.
    pub cause: Cause,
    /// The MPI function in which tasks wait, if the trace tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The innermost phase in which it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Number of waits.
    pub waits: u64,
    /// Their time, all tasks together.
    pub time_ps: u64,
}

/// Waits of one task for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingFor {
    /// The job.
    pub job: u32,
    /// The task that waits.
    pub task: u32,
    /// The task that it waits for: the sender, the receiver, or the last member that entered a collective.
    pub on_task: u32,
    /// Why.
    pub cause: Cause,
    /// Number of waits.
    pub waits: u64,
    /// Their time.
    pub time_ps: u64,
}
