//! Progress in calls alone: which tasks are in a call of MPI, and the messages that wait for that.
//!
//! Under [`SendCompletion::RendezvousInCalls`](crate::SendCompletion::RendezvousInCalls) a large message leaves when its receiver is in a call: at
//! the start of a record of that task, or while a record waits. In between the task computes. The engine lets each record of a
//! task start by a call of the simulator at its moment ([`Wake`](crate::Wake)), so that at the start of a message it is known what its receiver does then.

use crate::departure::Departure;
use crate::message::LiveId;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use vef_format::units::Picos;

/// What tasks do, and the messages that have started and not left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InCalls {
    /// The first moment at which each task computes, counted over all jobs; [`IN_CALL`] of one that is in a call.
    computes_from: Vec<Picos>,
    /// The latest call of the simulator, for any task.
    latest: Picos,
    /// Messages that wait, by their receiver.
    waiting: HashMap<u32, Vec<(LiveId, Departure)>>,
    /// Messages whose receiver is in a call: the simulator is to call for them ([`WakeTarget::HELD`](crate::message::WakeTarget::HELD)). By slot of their ids.
    called: HashMap<u32, (LiveId, Departure)>,
}

/// Of a task that does not compute.
const IN_CALL: Picos = Picos::MAX;

impl InCalls {
    pub(crate) fn new(tasks: usize) -> Self {
        let computes_from = vec![IN_CALL; tasks];
        Self { computes_from, latest: Picos::ZERO, waiting: HashMap::new(), called: HashMap::new() }
    }

    /// The same before the beginning.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.tasks());
    }

    /// Number of tasks over all jobs.
    pub(crate) fn tasks(&self) -> usize {
        self.computes_from.len()
    }

    /// These tasks begin in a call; there may be more than before.
    pub(crate) fn admit(&mut self, tasks: Range<usize>) {
        self.computes_from.resize(self.tasks().max(tasks.end), IN_CALL);
        self.computes_from[tasks].fill(IN_CALL);
    }

    /// Only the first tasks are left.
    pub(crate) fn truncate(&mut self, tasks: usize) {
        self.computes_from.truncate(tasks);
    }

    /// These tasks are in a call, and no message to them, nor from them, waits any more.
    pub(crate) fn forget(&mut self, tasks: &Range<usize>) {
        self.computes_from[tasks.clone()].fill(IN_CALL);
        self.waiting.retain(|task, _| !tasks.contains(&(*task as usize)));
        self.called.retain(|_, (_, departure)| !tasks.contains(&(departure.sender() as usize)));
    }

    /// Takes note of a call of the simulator; the latest moment of any call, if this one is before it.
    pub(crate) fn note_call(&mut self, at: Picos) -> Option<Picos> {
        let before = self.latest;
        self.latest = before.max(at);
        (at < before).then_some(before)
    }

    /// A task computes from `at` on: it leaves a call, which it was in at that moment, or it begins with that.
    pub(crate) fn compute(&mut self, task: u32, at: Picos, begins: bool) {
        self.computes_from[task as usize] = Picos(at.0.saturating_add(u64::from(!begins)));
    }

    /// A task is in a call: the slots of the messages that waited for that, for which the simulator is to call, and their senders.
    pub(crate) fn enter(&mut self, task: u32) -> impl Iterator<Item = (u32, u32)> {
        let Self { computes_from, waiting, called, .. } = self;
        computes_from[task as usize] = IN_CALL;
        waiting.remove(&task).into_iter().flatten().map(|(id, departure)| {
            let sender = departure.sender();
            called.insert(id.slot(), (id, departure));
            (id.slot(), sender)
        })
    }

    /// Keeps a large or synchronous message that starts if its receiver computes at that moment.
    pub(crate) fn keep(&mut self, id: LiveId, departure: Departure) -> bool {
        let receiver = departure.first_task + departure.dst.0;
        let computes = self.computes_from[receiver as usize] <= departure.start;
        if computes {
            self.waiting.entry(receiver).or_default().push((id, departure));
        }
        computes
    }

    /// The message that the simulator calls for, if there is one in that slot.
    pub(crate) fn take_called(&mut self, slot: u32) -> Option<(LiveId, Departure)> {
        self.called.remove(&slot)
    }

    /// The same, which stays.
    pub(crate) fn called(&self, slot: u32) -> Option<&Departure> {
        self.called.get(&slot).map(|(_, departure)| departure)
    }
}
