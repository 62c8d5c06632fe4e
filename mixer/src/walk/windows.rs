//! The windows of one task, and what its transfers through them still wait for.

use crate::index::{CommIndex, MessageIndex, ReceiveIndex, RecordIndex};
use crate::task::{Asked, AskedOf, Reach};
use ::collectives::creations::Part;
use ::collectives::windows::OneSided;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::capture::event::{CallSlot, WindowId};
use vef_format::capture::{Function, Group};
use vef_format::ids::{CommId, Rank};
use vef_format::operation::Operation;
use vef_format::units::Nanos;

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
    /// The requests of which no call has awaited the answer yet.
    pub(super) requests: HashMap<ReceiveIndex, Request>,
    /// By slot of the call table.
    functions: Vec<OfFunction>,
}

/// What a function does to windows.
#[derive(Debug)]
struct OfFunction {
    synchronises: Option<Synchronisation>,
    /// The collectives of its call.
    agreement: &'static [Part],
    /// It makes windows of shared memory.
    shares: bool,
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
    /// Whether its memory is shared.
    pub(super) is_shared: bool,
    /// Number of fences so far.
    pub(super) fences: u32,
    /// What has been done at each target since the last synchronisation.
    pub(super) targets: BTreeMap<Rank, Outstanding>,
    /// Where transfers to others were made.
    pub(super) reached: BTreeMap<Rank, Reach>,
}

impl Window {
    /// The latest transfer without an answer to each target of those for which `of` holds; from now on there is none.
    pub(super) fn take_last(&mut self, of: impl Fn(Rank) -> bool) -> BTreeMap<Rank, MessageIndex> {
        let outstanding = self.targets.iter_mut().filter(|(target, _)| of(**target));
        outstanding
            .filter_map(|(&target, outstanding)| {
                (outstanding.local, outstanding.puts) = (None, 0);
                Some((target, outstanding.last.take()?))
            })
            .collect()
    }

    /// The records of the latest transfers to each target of those for which `of` holds, if no call has waited for their local completion yet; from
    /// now on one has.
    pub(super) fn take_local(&mut self, of: impl Fn(Rank) -> bool) -> Vec<RecordIndex> {
        let outstanding = self.targets.iter_mut().filter(|(target, _)| of(**target));
        outstanding.filter_map(|(_, outstanding)| outstanding.local.take()).collect()
    }
}

/// Transfers between this task and a target that no synchronisation has completed.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// The latest transfer without an answer.
    pub(super) last: Option<MessageIndex>,
    /// Number of transfers without an answer.
    pub(super) puts: u64,
    /// Its record, if no call has waited until it left.
    pub(super) local: Option<RecordIndex>,
    /// The receives of answers.
    pub(super) answers: Vec<ReceiveIndex>,
    /// Bytes on the way there and back.
    pub(super) moved: [u64; 2],
}

/// A request, by its index among those that its task has asked, with all bytes on the way to the target and back when it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) index: usize,
    pub(super) moved: [u64; 2],
}

impl Request {
    /// What a message takes beside its bytes, as bytes.
    const FIXED: u64 = 1024;

    /// When the request came to its target, about: the time from `asked` until the origin had the answer is divided as the bytes are.
    pub(super) fn came(&self, asked: u64, answered: u64) -> u64 {
        let [there, back] = self.moved.map(|bytes| u128::from(bytes) + u128::from(Self::FIXED));
        asked + (u128::from(answered.saturating_sub(asked)) * there / (there + back)) as u64
    }
}

/// The numbers of the windows' communicators begin here: above those of any task.
pub(super) const OF_WINDOWS: u32 = 1 << 31;

impl Windows {
    /// No windows, of a task with these functions in its call table.
    pub(super) fn new(code: OneSided, functions: &[Function]) -> Self {
        let named = |Function { name, .. }: &Function| OfFunction {
            synchronises: Synchronisation::named(name),
            agreement: code.agreement(name),
            shares: name.starts_with("MPI_Win_allocate_shared"),
        };
        Self { functions: functions.iter().map(named).collect(), ..Self::default() }
    }

    /// A call that returned at `end` waited for a receive: if it is an answer to one of the requests `asked`, the target has given it by then.
    pub(super) fn answered(&mut self, asked: &mut [Asked], receive: ReceiveIndex, end: Nanos) {
        if !self.requests.is_empty()
            && let Some(request) = self.requests.remove(&receive)
            && let AskedOf::Answer { at, answered, .. } = &mut asked[request.index].of
        {
            (*at, *answered) = (request.came(*at, end.0), end.0);
        }
    }

    /// What a call of the function in this slot does, if it is a synchronisation.
    pub(super) fn synchronisation(&self, call: CallSlot) -> Option<Synchronisation> {
        self.function(call)?.synchronises
    }

    fn function(&self, call: CallSlot) -> Option<&OfFunction> {
        self.functions.get(call.index()?)
    }

    /// Whether a call makes a window of shared memory.
    pub(super) fn shares(&self, call: CallSlot) -> bool {
        self.function(call).is_some_and(|function| function.shares)
    }

    /// The collectives of a call that makes a window, frees it, or synchronises all members.
    pub(super) fn agreement(&self, call: CallSlot) -> &'static [Part] {
        self.function(call).map_or(&[(Operation::Barrier, 0)], |function| function.agreement)
    }
}
