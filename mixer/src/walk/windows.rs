//! The windows of one task, and what its transfers through them still wait for.

use crate::index::{CommIndex, ReceiveIndex};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::capture::event::{CallSlot, WindowId};
use vef_format::capture::{Function, Group};
use vef_format::ids::{CommId, Rank};

/// A synchronisation, by its function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Synchronisation {
    Fence,
    Post,
    Start,
    Complete,
    /// `MPI_Win_wait`, and a successful `MPI_Win_test`.
    Wait,
    Lock,
    /// `MPI_Win_lock_all`, `MPI_Win_sync`.
    Nothing,
    /// `MPI_Win_unlock`, `MPI_Win_unlock_all`, `MPI_Win_flush`, `MPI_Win_flush_all`; whether there is a lock to give back.
    Flush {
        unlock: bool,
    },
    FlushLocal,
    /// `MPI_Win_set_info`.
    SetInfo,
}

impl Synchronisation {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "MPI_Win_fence" => Self::Fence,
            "MPI_Win_post" => Self::Post,
            "MPI_Win_start" => Self::Start,
            "MPI_Win_complete" => Self::Complete,
            "MPI_Win_wait" | "MPI_Win_test" => Self::Wait,
            "MPI_Win_lock" => Self::Lock,
            "MPI_Win_lock_all" | "MPI_Win_sync" => Self::Nothing,
            "MPI_Win_unlock" => Self::Flush { unlock: true },
            "MPI_Win_unlock_all" | "MPI_Win_flush" | "MPI_Win_flush_all" => Self::Flush { unlock: false },
            "MPI_Win_flush_local" | "MPI_Win_flush_local_all" => Self::FlushLocal,
            "MPI_Win_set_info" => Self::SetInfo,
            _ => return None,
        })
    }
}

/// The windows of one task.
#[derive(Debug, Default)]
pub(super) struct Windows {
    pub(super) open: HashMap<WindowId, Window>,
    /// By slot of the call table.
    functions: Vec<Option<Synchronisation>>,
}

/// A window: it has a communicator of its own, as in the MPI libraries.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) comm: CommId,
    pub(super) index: CommIndex,
    pub(super) group: Arc<Group>,
    /// The group of the latest `MPI_Win_post`, and that of the latest `MPI_Win_start`.
    pub(super) posted: Vec<Rank>,
    pub(super) started: Vec<Rank>,
    /// What has been done at each target since the last synchronisation.
    pub(super) targets: BTreeMap<Rank, Outstanding>,
}

/// Transfers between this task and a target that no synchronisation has completed.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Whether there are transfers without an answer.
    pub(super) unanswered: bool,
    /// The receives of answers.
    pub(super) answers: Vec<ReceiveIndex>,
}

/// The numbers of the windows' communicators begin here: above those of any task.
pub(super) const OF_WINDOWS: u32 = 1 << 31;

impl Windows {
    /// No windows, of a task with these functions in its call table.
    pub(super) fn new(functions: &[Function]) -> Self {
        let named = |function: &Function| Synchronisation::named(&function.name);
        Self { functions: functions.iter().map(named).collect(), ..Self::default() }
    }

    /// What a call of the function in this slot does, if it is a synchronisation.
    pub(super) fn synchronisation(&self, call: CallSlot) -> Option<Synchronisation> {
        *self.functions.get(call.index()?)?
    }
}
