//! The rules for one-sided communication: messages between origin and target, and what each synchronisation waits for.

use super::builder::{Builder, Lowered, Pending};
use super::timeline::Chain;
use super::windows::{OF_WINDOWS, Outstanding, Request, Synchronisation, Window};
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::index::{CommIndex, MessageIndex, ReceiveIndex};
use crate::records::After;
use crate::task::{Asked, AskedOf, Fate, Reach};
use vef_format::account::TimePart;
use vef_format::capture::event::{Event, Members, Transfer, WindowId};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::units::Bytes;

impl Builder<'_> {
    /// A window is made: all members agree on it.
    pub(super) fn window(
        &mut self,
        event: &Event<'_>,
        id: WindowId,
        comm: CommId,
        (size, unit): (Bytes, u32),
    ) -> Result<(), Problem> {
        let Some((own, index, group)) = self.duplicate(comm, OF_WINDOWS, id.0)? else {
            self.not_representable(event.call, Bytes::ZERO);
            return Ok(());
        };
        // One of MPI_Win_create_dynamic has no unit: displacements are addresses.
        if unit > 0 {
            self.task.counts.outside_windows += self.answers.outside(index, size, unit);
        }
        let (posted, started, fences, targets, reached) = Default::default();
        let is_shared = self.windows.shares(event.call);
        let window = Window { comm: own, index, group, posted, started, is_shared, fences, targets, reached };
        self.windows.open.insert(id, window);
        let mut chain = Chain::default();
        self.add_agreement(event, own, self.windows.agreement(event.call), None, &mut chain)?;
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// A window is freed: all members wait for each other.
    pub(super) fn window_freed(&mut self, event: &Event<'_>, id: WindowId) -> Result<(), Problem> {
        let mut chain = Chain::default();
        if let Some(window) = self.windows.open.remove(&id) {
            self.window_ends(&window);
            let parts = self.windows.agreement(event.call);
            self.add_agreement(event, window.comm, parts, None, &mut chain)?;
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Counts what no synchronisation has completed, and tells the targets where transfers were made.
    fn window_ends(&mut self, window: &Window) {
        for outstanding in window.targets.values() {
            self.task.counts.never_synchronised += outstanding.puts + outstanding.answers.len() as u64;
        }
        let asked = |(&target, &reach)| Asked { comm: window.index, target, of: AskedOf::Reach(reach) };
        self.task.asked.extend(window.reached.iter().map(asked));
    }

    /// The end of the program is that of the windows that it has not freed.
    pub(super) fn windows_end(&mut self) {
        let mut open: Vec<_> = self.windows.open.drain().collect();
        open.sort_unstable_by_key(|(id, _)| *id);
        open.iter().for_each(|(_, window)| self.window_ends(window));
    }

    /// Rule 13: a transfer.
    pub(super) fn transfer(&mut self, event: &Event<'_>, transfer: &Transfer) -> Result<(), Problem> {
        let &Transfer { window: id, target, displacement, sent, fetched, at_target, request } = transfer;
        let Some(window) = self.windows.open.get_mut(&id) else {
            self.not_representable(event.call, Bytes(sent.0.saturating_add(fetched.0)));
            return self.start(request, Pending::Outside(TimePart::Window));
        };
        let (index, comm, size) = (window.index, window.comm.0, window.group.count());
        let Some(target) = window.group.get(target) else {
            return Err(Problem::Peer { comm, size, rank: target.0 });
        };
        if target != self.rank && at_target > Bytes::ZERO {
            window.reached.entry(target).or_insert(Reach::NONE).add(displacement, at_target);
        }
        let mut chain = Chain::default();
        let (mut answer, mut put) = (None, None);
        let moved = Bytes(sent.0.saturating_add(fetched.0));
        if target == self.rank || fetched == Bytes::ZERO {
            // A copy within the task is complete at once.
            if moved > Bytes::ZERO {
                put = Some(self.next_record());
                let channel = Channel::of_window(index, target, Purpose::Put);
                let message = self.post_message(event, channel, moved, &mut chain)?;
                if let Some(outstanding) = self.outstanding(id, target) {
                    (outstanding.last, outstanding.local) = (Some(message), put);
                    outstanding.puts += 1;
                    outstanding.moved[0] = outstanding.moved[0].saturating_add(moved.0);
                }
            }
        } else {
            let request = Channel::of_window(index, self.answering(target), Purpose::Request);
            self.post_message(event, request, sent, &mut chain)?;
            answer = Some(self.request(event, (id, index), target, [sent, fetched], false)?);
        }
        match (request, answer) {
            (Some(_), Some(answer)) => {
                self.start_lowered(request, Lowered::of_window(vec![answer]))?;
            }
            (Some(_), None) => self.start(request, Pending::Put(put))?,
            (None, answer) => {
                if let Some(outstanding) = self.outstanding(id, target) {
                    outstanding.answers.extend(answer);
                }
            }
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// The outstanding transfers of this task at a target other than itself.
    fn outstanding(&mut self, window: WindowId, target: Rank) -> Option<&mut Outstanding> {
        let of_others = target != self.rank;
        let window = self.windows.open.get_mut(&window).filter(|_| of_others)?;
        Some(window.targets.entry(target).or_default())
    }

    /// Adds a message of the call; returns it.
    pub(super) fn post_message(
        &mut self,
        event: &Event<'_>,
        channel: Channel,
        bytes: Bytes,
        chain: &mut Chain,
    ) -> Result<MessageIndex, Problem> {
        self.count_further()?;
        let record = self.next_record();
        if let Some(notes) = &mut self.notes {
            notes.detached(record);
        }
        let channel = self.task.sends.channel(channel);
        let (message, body) = self.add_message(channel, bytes);
        self.timeline.record(&mut self.task, event, event.start, chain, body, After::Sent);
        Ok(message)
    }

    /// Posts a receive of the call.
    pub(super) fn post_receive(
        &mut self,
        event: &Event<'_>,
        channel: Channel,
    ) -> Result<ReceiveIndex, Problem> {
        self.count_further()?;
        let channel = self.task.receives.channel(channel);
        Ok(self.add_receive(event, channel, Fate::Unawaited, Bytes::ZERO))
    }

    /// The task that answers requests to `target`.
    fn answering(&self, target: Rank) -> Rank {
        self.options.interfaces.map_or(target, |first| Rank(first.0 + target.0))
    }

    /// The target of a window answers the latest message to it, a request or a `transfer`, with which so many bytes more are under way there and
    /// back; returns the receive of the answer.
    fn request(
        &mut self,
        event: &Event<'_>,
        (id, comm): (WindowId, CommIndex),
        target: Rank,
        moved: [Bytes; 2],
        transfer: bool,
    ) -> Result<ReceiveIndex, Problem> {
        let (at, answered, bytes) = (event.start.0, u64::MAX, moved[1]);
        let of = AskedOf::Answer { asked: at, at, answered, bytes, round: 0, transfer };
        let answer = self.awaited_answer(event, Asked { comm, target: self.answering(target), of })?;
        if let Some(outstanding) = self.outstanding(id, target) {
            let moved = [0, 1].map(|way| outstanding.moved[way].saturating_add(moved[way].0));
            outstanding.moved = moved;
            self.windows.requests.insert(answer, Request { index: self.task.asked.len() - 1, moved });
        }
        Ok(answer)
    }

    /// Adds a request to a task, which answers it; returns the receive of the answer. The target puts the request in the order of others by a
    /// time on this task's clock, and a round.
    pub(super) fn ask(
        &mut self,
        (at, round): (u64, u32),
        event: &Event<'_>,
        comm: CommIndex,
        target: Rank,
        [sent, fetched]: [Bytes; 2],
        chain: &mut Chain,
    ) -> Result<ReceiveIndex, Problem> {
        self.post_message(event, Channel::of_window(comm, target, Purpose::Request), sent, chain)?;
        let of =
            AskedOf::Answer { asked: at, at, answered: u64::MAX, bytes: fetched, round, transfer: false };
        self.awaited_answer(event, Asked { comm, target, of })
    }

    fn awaited_answer(&mut self, event: &Event<'_>, asked: Asked) -> Result<ReceiveIndex, Problem> {
        let answer = Channel::of_window(asked.comm, asked.target, Purpose::Answer);
        self.task.asked.push(asked);
        self.post_receive(event, answer)
    }

    /// From now on, something waits for a transfer.
    fn await_transfer(&mut self, transfer: MessageIndex, channel: Channel) {
        let channel = self.task.sends.channel(channel);
        self.task.sends.assign(transfer.0, channel);
    }

    /// Rule 14: a synchronisation; `target`: `None`, all.
    pub(super) fn synchronise(
        &mut self,
        event: &Event<'_>,
        id: WindowId,
        target: Option<CommRank>,
        assert: i32,
        group: Option<Members<'_>>,
    ) -> Result<(), Problem> {
        use Synchronisation::*;
        let parts = self.windows.agreement(event.call);
        let (Some(what), Some(window)) =
            (self.windows.synchronisation(event.call), self.windows.open.get_mut(&id))
        else {
            self.not_representable(event.call, Bytes::ZERO);
            return Ok(());
        };
        let (index, comm, size) = (window.index, window.comm, window.group.count());
        let target = match target.map(|target| (target, window.group.get(target))) {
            None => None,
            Some((_, Some(target))) => Some(target),
            Some((rank, None)) => return Err(Problem::Peer { comm: comm.0, size, rank: rank.0 }),
        };
        let others = match group {
            None => Vec::new(),
            Some(members) => {
                let group = self.communicators.group(comm.0, members)?;
                group.iter().filter(|&member| member != self.rank).collect()
            }
        };
        let mut chain = Chain::default();
        let mut awaited = Lowered::of_window(Vec::new());
        let receives = &mut awaited.receives;
        let channel = |peer, purpose| Channel::of_window(index, peer, purpose);
        match what {
            Nothing => {}
            SetInfo => self.add_agreement(event, comm, parts, None, &mut chain)?,
            Fence => {
                let (fence, is_shared) = (window.fences, window.is_shared);
                window.fences = fence.wrapping_add(1);
                for (target, last) in window.take_last(|_| true) {
                    self.await_transfer(last, channel(target, Purpose::Fence));
                    self.task.asked.push(Asked { comm: index, target, of: AskedOf::Fence(fence) });
                }
                let mut transfers = Lowered { marks_at_end: false, ..Lowered::of_window(Vec::new()) };
                for origin in self.answers.before_fence(index, fence) {
                    transfers.receives.push(self.post_receive(event, channel(origin, Purpose::Fence))?);
                }
                self.take_answers(id, None, receives);
                let (first, last) = parts.split_at(parts.len().saturating_sub(1));
                // Component `sm` of Open MPI has a Barrier alone.
                if !is_shared {
                    self.add_agreement(event, comm, first, None, &mut chain)?;
                }
                self.complete_lowered(event, &transfers, &mut chain);
                self.add_agreement(event, comm, last, None, &mut chain)?;
            }
            Flush { unlock } => self.flush(event, id, target, unlock, receives, &mut chain)?,
            FlushLocal => {
                awaited.sends = window.take_local(|other| target.is_none_or(|target| target == other));
                self.take_answers(id, target, receives);
            }
            // With an assertion (MPI_MODE_NOCHECK) nobody else holds the lock.
            Lock => {
                if let Some(target) = target.filter(|&target| target != self.rank && assert == 0) {
                    receives.push(self.empty_request(event, (id, index), target, &mut chain)?);
                }
            }
            Post => {
                for &origin in &others {
                    self.post_message(event, channel(origin, Purpose::Post), Bytes::ZERO, &mut chain)?;
                }
                if let Some(window) = self.windows.open.get_mut(&id) {
                    window.posted = others;
                }
            }
            Start => {
                for &target in &others {
                    receives.push(self.post_receive(event, channel(target, Purpose::Post))?);
                }
                if let Some(window) = self.windows.open.get_mut(&id) {
                    window.started = others;
                }
            }
            Complete => {
                let started = std::mem::take(&mut window.started);
                awaited.sends = window.take_local(|target| started.contains(&target));
                let last = window.take_last(|target| started.contains(&target));
                self.take_answers(id, None, receives);
                for target in started {
                    let complete = channel(target, Purpose::Complete);
                    match last.get(&target) {
                        Some(&transfer) => self.await_transfer(transfer, complete),
                        None => _ = self.post_message(event, complete, Bytes::ZERO, &mut chain)?,
                    }
                }
            }
            Wait => {
                for origin in std::mem::take(&mut window.posted) {
                    receives.push(self.post_receive(event, channel(origin, Purpose::Complete))?);
                }
            }
        }
        self.complete_lowered(event, &awaited, &mut chain);
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// A request without data, for a lock or for its return.
    fn empty_request(
        &mut self,
        event: &Event<'_>,
        (id, index): (WindowId, CommIndex),
        target: Rank,
        chain: &mut Chain,
    ) -> Result<ReceiveIndex, Problem> {
        let request = Channel::of_window(index, self.answering(target), Purpose::Request);
        self.post_message(event, request, Bytes::ZERO, chain)?;
        self.request(event, (id, index), target, [Bytes::ZERO; 2], false)
    }

    /// Targets answer the latest transfer, or the return of a lock; adds all pending answers to `receives`.
    fn flush(
        &mut self,
        event: &Event<'_>,
        id: WindowId,
        target: Option<Rank>,
        unlock: bool,
        receives: &mut Vec<ReceiveIndex>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let Some(window) = self.windows.open.get_mut(&id) else { return Ok(()) };
        let index = window.index;
        let last = window.take_last(|other| target.is_none_or(|target| target == other));
        if let Some(target) = target.filter(|target| unlock && *target != self.rank && last.is_empty()) {
            receives.push(self.empty_request(event, (id, index), target, chain)?);
        }
        for (target, transfer) in last {
            self.await_transfer(transfer, Channel::of_window(index, self.answering(target), Purpose::Flush));
            receives.push(self.request(event, (id, index), target, [Bytes::ZERO; 2], true)?);
        }
        self.take_answers(id, target, receives);
        Ok(())
    }

    /// Moves the pending answers of a target, or of all, to `receives`.
    fn take_answers(&mut self, id: WindowId, target: Option<Rank>, receives: &mut Vec<ReceiveIndex>) {
        let Some(window) = self.windows.open.get_mut(&id) else { return };
        for (other, outstanding) in &mut window.targets {
            if target.is_none_or(|target| target == *other) {
                receives.append(&mut outstanding.answers);
            }
        }
        window.targets.retain(|_, outstanding| outstanding.last.is_some());
    }
}
