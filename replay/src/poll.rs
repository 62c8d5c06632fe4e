//! The engine behind a queue, for simulators that ask for messages: a clock that all calls share, messages in its order.
//!
//! Each task is called for each of its messages ([`Wake`]), and the queue holds these calls: so a message
//! starts when it is taken, and what follows in its task moves with that.

use crate::accounts::Accounts;
use crate::checkpoint::CheckpointError;
use crate::describe::Description;
use crate::engine::Engine;
use crate::error::ReplayError;
use crate::events::{Collective, EventMember};
use crate::message::{LiveId, Message, Next, Sink, Started, Wake, WakeTarget};
use crate::progress::TaskProgress;
use crate::queue::{Numbered, Numbers, Queue};
use crate::stats::Stats;
use crate::stuck::Stuck;
use serde::{Deserialize, Serialize};
use vef_format::ids::CollectiveId;
use vef_format::units::Picos;

/// Traces being replayed: gives messages when they are ready and takes deliveries.
///
/// See the crate's text for the contract and an example.
#[derive(Debug)]
pub struct Replay {
    engine: Engine,
    queues: Queues,
    clock: Picos,
}

/// What is to happen at a time.
#[derive(Debug)]
struct Queues {
    /// Messages for the simulator, by time and [`Message::order`].
    ready: Queue<WakeTarget, Numbered<Engine>>,
    /// Messages within a node, which are carried here.
    inside: Queue<Inside>,
    /// Collectives for the simulator, by time.
    collectives: Queue<Collective>,
    /// Set if the tasks' times are kept.
    accounts: Option<Box<Accounts>>,
}

impl Numbers<WakeTarget> for Engine {
    #[inline(always)]
    fn number(&self, target: WakeTarget) -> u64 {
        self.order_of(target)
    }
}

/// A step of a message within a node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Inside {
    Start(WakeTarget),
    Arrival(LiveId),
}

/// Queues in a checkpoint, their events in order.
type SavedQueues =
    (Vec<(Picos, WakeTarget)>, Vec<(Picos, Inside)>, Vec<(Picos, Collective)>, Option<Accounts>);

impl Queues {
    fn new(accounts: Option<Box<Accounts>>) -> Self {
        Self { ready: Queue::default(), inside: Queue::new(), collectives: Queue::new(), accounts }
    }

    /// Keeps what is for later; returns a message that starts.
    #[inline(always)]
    fn add(&mut self, next: Next) -> Option<Message> {
        match next {
            Next::Wake(Wake { at, target, inside: false }) => self.ready.push(at, target),
            Next::Wake(Wake { at, target, inside: true }) => self.inside.push(at, Inside::Start(target)),
            Next::Inside { message, arrives } => self.inside.push(arrives, Inside::Arrival(message.id)),
            Next::Message(message) => return Some(message),
        }
        None
    }

    fn account(&mut self, started: &Started) {
        if let Some(accounts) = &mut self.accounts {
            accounts.started(accounts.number(started.job, started.task.0), started);
        }
    }
}

impl Sink for Queues {
    /// No message starts without a call for it.
    #[inline(always)]
    fn take(&mut self, next: Next) {
        self.add(next);
    }

    fn collective(&mut self, collective: &Collective) {
        self.collectives.push(collective.at, *collective);
    }

    #[inline(always)]
    fn watches(&self) -> bool {
        self.accounts.is_some()
    }

    fn started(&mut self, started: &Started) {
        self.account(started);
    }
}

/// The same, and the message that was called for.
struct Called<'a> {
    queues: &'a mut Queues,
    message: Option<Message>,
}

impl Sink for Called<'_> {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        if let Some(message) = self.queues.add(next) {
            self.message = Some(message);
        }
    }

    fn collective(&mut self, collective: &Collective) {
        self.queues.collective(collective);
    }

    #[inline(always)]
    fn watches(&self) -> bool {
        self.queues.watches()
    }

    fn started(&mut self, started: &Started) {
        self.queues.account(started);
    }
}

impl Replay {
    /// Starts the tasks of an engine that calls for each message.
    pub(crate) fn new(mut engine: Engine, keep_times: bool) -> Result<Self, ReplayError> {
        let accounts = keep_times.then(|| Box::new(Accounts::new(&engine)));
        let mut queues = Queues::new(accounts);
        engine.begin(&mut queues)?;
        Ok(Self { engine, queues, clock: Picos::ZERO })
    }

    /// The same replay from its beginning; ids of messages that were under way are void. Traces are not opened again; a text is read into
    /// memory, once.
    ///
    /// # Errors
    /// The trace cannot be read again: the replay is as it was. Or as [`Engine::begin`].
    pub fn reset(&mut self) -> Result<(), ReplayError> {
        self.engine.reset()?;
        let accounts = self.queues.accounts.is_some().then(|| Box::new(Accounts::new(&self.engine)));
        self.queues = Queues::new(accounts);
        self.clock = Picos::ZERO;
        self.engine.begin(&mut self.queues)
    }

    /// The state of the replay: it goes on from there in any replay of the same traces, placement and options that [takes it
    /// over](Replay::restore), in this process or another. The simulator saves its own state with the ids of messages
    /// ([`LiveId::to_raw`]), which stay valid.
    ///
    /// # Errors
    /// [`CheckpointError::Ended`].
    pub fn save(&self) -> Result<Vec<u8>, CheckpointError> {
        let Queues { ready, inside, collectives, accounts } = &self.queues;
        let queues =
            (ready.to_vec_by(&self.engine), inside.to_vec(), collectives.to_vec(), accounts.as_deref());
        self.engine.save_with(&(queues, self.clock))
    }

    /// Takes over the state of a replay of the same traces, placement and options. Ids of messages that were under way here are void.
    ///
    /// # Errors
    /// The bytes are no checkpoint of this replay, or the trace cannot be read again; the replay is as it was.
    pub fn restore(&mut self, checkpoint: &[u8]) -> Result<(), CheckpointError> {
        let (saved, clock): (SavedQueues, Picos) = self.engine.restore_with(checkpoint)?;
        let (ready, inside, collectives, accounts) = saved;
        let keeps_times = self.queues.accounts.is_some();
        self.queues = Queues {
            ready: ready.into_iter().collect(),
            inside: inside.into_iter().collect(),
            collectives: collectives.into_iter().collect(),
            accounts: accounts.filter(|_| keeps_times).map(Box::new),
        };
        self.clock = clock;
        Ok(())
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The next moment at which [`Replay::pop_ready`] is worth calling, as far as is known now: a delivery may bring it
    /// forward; never before [`Replay::clock`]. At that moment there is a message, unless only a message within a node is to be
    /// carried then ([`SameNode::Inside`](crate::SameNode::Inside)), or one waits for its receiver
    /// ([`SendCompletion::RendezvousInCalls`](crate::SendCompletion::RendezvousInCalls)). `None`: nothing will happen without a delivery.
    #[inline]
    pub fn next_ready(&self) -> Option<Picos> {
        let next = match (self.queues.ready.next(), self.queues.inside.next()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let next = match self.queues.collectives.next() {
            Some(at) => Some(next.map_or(at, |next| next.min(at))),
            None => next,
        };
        next.map(|next| next.max(self.clock))
    }

    /// The next message that is ready at `now`, if there is one. It starts at `now`: it is handed to the network.
    ///
    /// Order: by the time at which they became ready; at equal times by [`Message::order`], but behind those whose start made them ready.
    #[inline]
    pub fn pop_ready(&mut self, now: Picos) -> Result<Option<Message>, ReplayError> {
        let mut message = None;
        self.pop_ready_batch(now, 1, |started| message = Some(started))?;
        Ok(message)
    }

    /// Gives `take` the next messages that are ready at `now`, one after the other and at most so many: the same as
    /// [`Replay::pop_ready`] as often as that, in less time. After an error in the trace those that were given are taken all the same.
    #[inline]
    pub fn pop_ready_batch(
        &mut self,
        now: Picos,
        most: usize,
        take: impl FnMut(Message),
    ) -> Result<(), ReplayError> {
        self.check_time(now)?;
        // Most polls of a simulator that drains each moment find nothing.
        if most > 0 && self.queues.inside.is_empty() && self.queues.ready.next().is_none_or(|at| at > now) {
            self.clock = now;
            return Ok(());
        }
        self.start_ready(now, most, take)
    }

    #[inline(never)]
    fn start_ready(
        &mut self,
        now: Picos,
        most: usize,
        mut take: impl FnMut(Message),
    ) -> Result<(), ReplayError> {
        let mut left = most;
        while left > 0 {
            // Messages within a node that follow from the one before come before the next.
            self.move_clock(now)?;
            let Some((at, target)) = self.queues.ready.pop_by(now, &self.engine) else { break };
            let mut called = Called { queues: &mut self.queues, message: None };
            self.engine.wake(Wake { at, target, inside: false }, now, &mut called)?;
            // Without one it waits for its receiver.
            if let Some(message) = called.message {
                take(message);
                left -= 1;
            }
        }
        Ok(())
    }

    /// Reports that a message has left its source at `at`. Optional; it matters under
    /// [`SendCompletion::WhenSent`](crate::SendCompletion::WhenSent) alone.
    pub fn sent(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_report(at)?;
        self.check_live(id)?;
        self.move_clock(at)?;
        self.engine.sent(id, at, &mut self.queues)
    }

    /// Reports that a message has arrived, whole, at its destination at `at`.
    #[inline]
    pub fn delivered(&mut self, id: LiveId, at: Picos) -> Result<(), ReplayError> {
        self.check_report(at)?;
        if at > self.clock {
            self.check_live(id)?;
        }
        self.move_clock(at)?;
        self.engine.delivered(id, at, &mut self.queues)
    }

    /// Reports that messages have arrived at `at`, in this order: the same as [`Replay::delivered`] for each.
    /// An id that is refused is the last that is looked at.
    pub fn delivered_batch(
        &mut self,
        ids: impl IntoIterator<Item = LiveId>,
        at: Picos,
    ) -> Result<(), ReplayError> {
        ids.into_iter().try_for_each(|id| self.delivered(id, at))
    }

    /// The next collective that the simulator carries out itself ([`Builder::collective_events`](crate::Builder::collective_events)) and that is
    /// an event at `now` or was before.
    pub fn pop_collective(&mut self, now: Picos) -> Result<Option<Collective>, ReplayError> {
        self.check_time(now)?;
        self.move_clock(now)?;
        Ok(self.queues.collectives.pop(now).map(|(_, collective)| collective))
    }

    /// Reports that a member of such a collective, by its rank of the communicator, is complete at `at`.
    pub fn complete_member(
        &mut self,
        collective: (u32, CollectiveId),
        member: u32,
        at: Picos,
    ) -> Result<(), ReplayError> {
        self.check_report(at)?;
        self.move_clock(at)?;
        self.engine.complete_member(collective, member, at, &mut self.queues)
    }

    /// The members of such a collective; see [`Engine::members`].
    pub fn members(&mut self, job: u32, id: CollectiveId) -> Option<Vec<EventMember>> {
        self.engine.members(job, id)
    }

    /// The latest moment of any call.
    pub fn clock(&self) -> Picos {
        self.clock
    }

    #[inline(always)]
    fn check_time(&self, at: Picos) -> Result<(), ReplayError> {
        if at < self.clock || self.engine.ended {
            return Err(match self.engine.ended {
                true => ReplayError::Ended,
                false => ReplayError::Backwards { clock: self.clock, at },
            });
        }
        Ok(())
    }

    #[inline(always)]
    fn check_report(&mut self, at: Picos) -> Result<(), ReplayError> {
        self.check_time(at).map_err(|error| self.engine.refuse(error))
    }

    /// An id that is refused moves no clock.
    fn check_live(&mut self, id: LiveId) -> Result<(), ReplayError> {
        match self.engine.is_live(id) {
            true => Ok(()),
            false => Err(self.engine.refuse(ReplayError::NotLive { id })),
        }
    }

    /// Makes it `now`, which is not before the clock, carrying messages within nodes on the way.
    #[inline(always)]
    fn move_clock(&mut self, now: Picos) -> Result<(), ReplayError> {
        if !self.queues.inside.is_empty() {
            self.carry_inside(now)?;
        }
        self.clock = now;
        Ok(())
    }

    fn carry_inside(&mut self, now: Picos) -> Result<(), ReplayError> {
        while let Some((at, step)) = self.queues.inside.pop(now) {
            self.clock = self.clock.max(at);
            match step {
                Inside::Start(target) => {
                    self.engine.wake(Wake { at, target, inside: true }, at, &mut self.queues)?;
                }
                Inside::Arrival(id) => self.engine.delivered(id, at, &mut self.queues)?,
            }
        }
        Ok(())
    }
}

/// How far everything has come; see [`Engine`].
impl Replay {
    /// Whether every record has been replayed and every message delivered.
    pub fn is_complete(&self) -> bool {
        self.engine.is_complete()
    }

    /// Counts of what was done so far.
    pub fn stats(&self) -> &Stats {
        self.engine.stats()
    }

    /// Everything that the trace says of a message that is under way; see [`Engine::describe`].
    ///
    /// # Errors
    /// As [`Engine::describe`].
    pub fn describe(&mut self, id: LiveId) -> Result<Description, ReplayError> {
        self.engine.describe(id)
    }

    /// Number of jobs.
    pub fn jobs(&self) -> u32 {
        self.engine.jobs()
    }

    /// Number of tasks of a job; 0 for a job that does not exist.
    pub fn tasks(&self, job: u32) -> u32 {
        self.engine.tasks(job)
    }

    /// How far the tasks of a job have come, by rank.
    pub fn progress(&self, job: u32) -> impl ExactSizeIterator<Item = TaskProgress> + '_ {
        self.engine.progress(job)
    }

    /// The times of the tasks by state, under [`Builder::keep_times`](crate::Builder::keep_times).
    pub fn accounts(&self) -> Option<&Accounts> {
        self.queues.accounts.as_deref()
    }

    /// When the last task finished, computing included: the simulated run time of all jobs, once complete.
    pub fn finish(&self) -> Picos {
        self.engine.finish()
    }

    /// Why nothing happens, if that is so: something is left to do, but no message is ready or will be without a
    /// delivery.
    ///
    /// It is for the moment when the simulator has nothing under way either. If it still has, then all it says is
    /// that the tasks wait for that.
    pub fn stuck(&self) -> Option<Stuck> {
        match self.next_ready() {
            Some(_) => None,
            None => self.engine.stuck_at(self.clock),
        }
    }
}
