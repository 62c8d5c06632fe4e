//! The rules for one-sided communication: messages between origin and target, and what each synchronisation waits for.

use super::builder::{Builder, Lowered, Pending};
use super::creations::collective;
use super::timeline::Chain;
use super::windows::{OF_WINDOWS, Outstanding, Synchronisation, Window};
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::index::{CommIndex, ReceiveIndex};
use crate::records::After;
use crate::task::{Asked, Fate};
use vef_format::account::TimePart;
use vef_format::capture::event::{Event, Members, Transfer, WindowId};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::Operation;
use vef_format::units::Bytes;

impl Builder<'_> {
    /// A window is made: all members wait for each other.
    pub(super) fn window(&mut self, event: &Event<'_>, id: WindowId, comm: CommId) -> Result<(), Problem> {
        let Some((own, index, group)) = self.duplicate(comm, OF_WINDOWS, id.0)? else {
            self.not_representable(event.call, Bytes::ZERO);
            return Ok(());
        };
        let (posted, started, targets) = Default::default();
        self.windows.open.insert(id, Window { comm: own, index, group, posted, started, targets });
        let mut chain = Chain::default();
        self.all_wait(event, own, &mut chain)?;
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// A window is freed: all members wait for each other.
    pub(super) fn window_freed(&mut self, event: &Event<'_>, id: WindowId) -> Result<(), Problem> {
        let mut chain = Chain::default();
        if let Some(window) = self.windows.open.remove(&id) {
            self.all_wait(event, window.comm, &mut chain)?;
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    fn all_wait(&mut self, event: &Event<'_>, comm: CommId, chain: &mut Chain) -> Result<(), Problem> {
        self.add_collective(event, &collective(Operation::Barrier, comm), chain)
    }

    /// Rule 13: a transfer.
    pub(super) fn transfer(&mut self, event: &Event<'_>, transfer: &Transfer) -> Result<(), Problem> {
        let &Transfer { window: id, target, sent, fetched, request, .. } = transfer;
        let Some(window) = self.windows.open.get(&id) else {
            self.not_representable(event.call, Bytes(sent.0.saturating_add(fetched.0)));
            return self.start(request, Pending::NoCompletionRecord(TimePart::Window));
        };
        let (index, comm, size) = (window.index, window.comm.0, window.group.count());
        let Some(target) = window.group.get(target) else {
            return Err(Problem::Peer { comm, size, rank: target.0 });
        };
        let mut chain = Chain::default();
        let mut answer = None;
        let moved = Bytes(sent.0.saturating_add(fetched.0));
        if target == self.rank || fetched == Bytes::ZERO {
            // A copy within the task is complete at once.
            if moved > Bytes::ZERO {
                self.post_message(event, Channel::of_window(index, target, Purpose::Put), moved, &mut chain)?;
                let outstanding = self.outstanding(id, target);
                outstanding.into_iter().for_each(|outstanding| outstanding.unanswered = true);
            }
        } else {
            answer = Some(self.ask(event, index, target, [sent, fetched], &mut chain)?);
        }
        match (request, answer) {
            (Some(_), Some(answer)) => {
                self.start_lowered(request, Lowered::of_window(vec![answer]))?;
            }
            (Some(_), None) => self.start(request, Pending::NoCompletionRecord(TimePart::Window))?,
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

    /// Adds a message of the call.
    pub(super) fn post_message(
        &mut self,
        event: &Event<'_>,
        channel: Channel,
        bytes: Bytes,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        self.count_further()?;
        let record = self.next_record();
        if let Some(notes) = &mut self.notes {
            notes.detached(record);
        }
        let channel = self.task.sends.channel(channel);
        let (_, body) = self.add_message(channel, bytes);
        self.timeline.record(&mut self.task, event, event.start, chain, body, After::Sent);
        Ok(())
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

    /// Adds a request to a task, which answers it; returns the receive of the answer.
    pub(super) fn ask(
        &mut self,
        event: &Event<'_>,
        comm: CommIndex,
        target: Rank,
        moved: [Bytes; 2],
        chain: &mut Chain,
    ) -> Result<ReceiveIndex, Problem> {
        self.ask_at((event.start.0, 0), event, comm, target, moved, chain)
    }

    /// [`Builder::ask`] where the target puts the request in the order of others by a time on this task's clock, and a round.
    pub(super) fn ask_at(
        &mut self,
        (at, round): (u64, u32),
        event: &Event<'_>,
        comm: CommIndex,
        target: Rank,
        [sent, fetched]: [Bytes; 2],
        chain: &mut Chain,
    ) -> Result<ReceiveIndex, Problem> {
        self.post_message(event, Channel::of_window(comm, target, Purpose::Request), sent, chain)?;
        self.task.asked.push(Asked { comm, target, at, bytes: fetched, round });
        self.post_receive(event, Channel::of_window(comm, target, Purpose::Answer))
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
            Nothing | SetInfo => {}
            Fence => self.flush(event, id, None, false, receives, &mut chain)?,
            Flush { unlock } => self.flush(event, id, target, unlock, receives, &mut chain)?,
            FlushLocal => self.take_answers(id, target, receives),
            // With an assertion (MPI_MODE_NOCHECK) nobody else holds the lock.
            Lock => {
                if let Some(target) = target.filter(|&target| target != self.rank && assert == 0) {
                    receives.push(self.ask(event, index, target, [Bytes::ZERO; 2], &mut chain)?);
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
                window.targets.values_mut().for_each(|outstanding| outstanding.unanswered = false);
                self.take_answers(id, None, receives);
                for target in started {
                    self.post_message(event, channel(target, Purpose::Complete), Bytes::ZERO, &mut chain)?;
                }
            }
            Wait => {
                for origin in std::mem::take(&mut window.posted) {
                    receives.push(self.post_receive(event, channel(origin, Purpose::Complete))?);
                }
            }
        }
        self.complete_lowered(event, &awaited, &mut chain);
        if matches!(what, Fence | SetInfo) {
            self.all_wait(event, comm, &mut chain)?;
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Asks targets with unanswered transfers, or a lock to give back, whether all is done, and adds all pending answers to `receives`.
    fn flush(
        &mut self,
        event: &Event<'_>,
        id: WindowId,
        target: Option<Rank>,
        unlock: bool,
        receives: &mut Vec<ReceiveIndex>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let own = self.rank;
        let Some(window) = self.windows.open.get_mut(&id) else { return Ok(()) };
        let index = window.index;
        if let Some(target) = target.filter(|&target| unlock && target != own) {
            window.targets.entry(target).or_default().unanswered = true;
        }
        let of_target = |other: &Rank| target.is_none_or(|target| target == *other);
        let outstanding = window.targets.iter_mut().filter(|(other, _)| of_target(other));
        let unanswered: Vec<Rank> = outstanding
            .filter_map(|(&target, outstanding)| {
                std::mem::take(&mut outstanding.unanswered).then_some(target)
            })
            .collect();
        for target in unanswered {
            let answer = self.ask(event, index, target, [Bytes::ZERO; 2], chain)?;
            let outstanding = self.outstanding(id, target);
            outstanding.into_iter().for_each(|outstanding| outstanding.answers.push(answer));
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
        window.targets.retain(|_, outstanding| outstanding.unanswered);
    }
}
