//! Collectives in progress: each task that enters one plays its part of an algorithm's schedule.
//!
//! A part is a cursor over the steps of one rank. It runs until it waits for messages of others, or has started as many messages
//! as it may before the simulator calls for it. There is no barrier between
//! the tasks that the algorithm itself does not have. A message that comes before its receiver has entered is
//! counted, no more: within one collective the n-th message from a to b meets b's n-th receive from a.
//!
//! Reductions and copies in memory take no time: traces have no figure for them.

mod tables;

pub(crate) use tables::{Collectives, NOT_YET, OVER};
use tables::{Group, NOBODY, Open, PartSizes};

use crate::departure::Departure;
use crate::error::{CollectiveProblem, EngineResult, Problem, ReplayError};
use crate::events::{Collective, Event, EventMember};
use crate::live::{Completes, Flight, Live, Of, short};
use crate::message::{Kind, Left, Next, Sink, Wake, WakeTarget};
use crate::running::Running;
use crate::sequence::{Sequence, Wait};
use crate::source::{Facts, Question};
use crate::states::State;
use collectives::choose::common_bytes;
use collectives::{Counts, Cursor, Exchange, Member, Sizes, Step as Stage};
use vef_format::ids::{CollectiveId, Rank};
use vef_format::operation::Operation;
use vef_format::record::LocalCollective;
use vef_format::units::{Bytes, Picos};

/// The collectives in progress, with the tables of the engine that their parts use.
pub(crate) struct Player<'a> {
    pub(crate) collectives: &'a mut Collectives,
    pub(crate) sequences: &'a mut [Sequence],
    pub(crate) jobs: &'a mut [Running],
    pub(crate) live: &'a mut Live,
}

/// A task whose next record waited for its part of a collective, which is complete.
#[must_use = "the task is to be released"]
pub(crate) struct Released {
    pub(crate) task: u32,
    pub(crate) at: Picos,
}

/// What may happen to a part; each returns the task that is released by it.
impl Player<'_> {
    /// A task enters a collective, at its own time. It waits for nothing then, so that nothing is released.
    pub(crate) fn enter(
        &mut self,
        task: u32,
        record: LocalCollective,
        out: &mut impl Sink,
    ) -> EngineResult<()> {
        let entered = self.take_part(task, &record).map_err(|problem| match problem {
            Problem::Part(problem) => self.wrong_part(task, record.id, problem),
            Problem::Replay(error) => error,
        });
        self.live.stats.collective_parts += 1;
        let part = entered?;
        self.collectives.unfinished += 1;
        self.sequences[task as usize].enter(record.id);
        if self.collectives.open[self.collectives.parts[part as usize].open as usize].event.is_some() {
            self.enter_event(part, [record.amounts.send, record.amounts.recv], out);
            return Ok(());
        }
        self.run(part, out).map(drop)
    }

    /// A part that the simulator has called starts its message at `now`, or when it is ready if that is later, and runs on.
    #[inline(always)]
    pub(crate) fn resume(
        &mut self,
        at: u32,
        now: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<Released>> {
        let part = &mut self.collectives.parts[at as usize];
        let ready = part.at;
        part.at = ready.max(now);
        (part.turn, part.ahead) = (false, 1);
        match self.start_message(at, ready, out)? {
            true => Ok(None),
            false => self.run(at, out),
        }
    }

    /// A message of a collective arrives.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        open_at: u32,
        flight: &Flight,
        now: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<Released>> {
        let open = &mut self.collectives.open[open_at as usize];
        // What comes from another partition was counted there.
        open.on_their_way -= u32::from(matches!(flight.of, Of::Collective { .. }));
        let part = match open.parts[flight.dst as usize] {
            // The schedule has no receive for it: nothing depends on it.
            OVER => {
                self.close_if_over(open_at);
                return Ok(None);
            }
            NOT_YET => {
                let id = open.id;
                let added = self.collectives.add_part(open_at, flight.dst);
                added.map_err(|problem| self.wrong_part(flight.receiver, id, problem))?
            }
            part => part,
        };
        let part_entry = &mut self.collectives.parts[part as usize];
        if part_entry.count(flight.src, 1) < 0 {
            part_entry.missing -= 1;
            return self.wake(part, now, out);
        }
        Ok(None)
    }

    /// A message of a collective arrives that another partition has exported.
    pub(crate) fn arrive_imported(
        &mut self,
        id: CollectiveId,
        flight: &Flight,
        at: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<Released>> {
        let job = &mut self.jobs[self.sequences[flight.receiver as usize].job as usize];
        match job.open.get(&id) {
            Some(&open) => self.arrive(open, flight, at, out),
            None => {
                // No task of this partition has entered it.
                job.early.entry(id).or_default().push((flight.src, flight.dst));
                Ok(None)
            }
        }
    }

    /// A send of a collective is complete for its sender.
    pub(crate) fn complete_send(
        &mut self,
        open: u32,
        flight: &Flight,
        now: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<Released>> {
        match self.collectives.open[open as usize].parts[flight.src as usize] {
            OVER | NOT_YET => Ok(None),
            part => {
                self.collectives.parts[part as usize].unsent -= 1;
                self.wake(part, now, out)
            }
        }
    }

    /// A message of a collective has left for another partition.
    pub(crate) fn export(&mut self, open: u32) {
        self.collectives.open[open as usize].on_their_way -= 1;
        self.close_if_over(open);
    }
}

/// The steps of a part.
impl Player<'_> {
    fn take_part(&mut self, task: u32, record: &LocalCollective) -> Result<u32, Problem> {
        let id = record.id;
        let sequence = &self.sequences[task as usize];
        let job = &mut self.jobs[sequence.job as usize];
        let open = match job.open.get(&id) {
            Some(&open) => open,
            None => {
                if job.collectives.set(id.0, State::Started) != State::Unseen {
                    return Err(CollectiveProblem::Twice.into());
                }
                let open = self.collectives.begin(job, sequence.job, record, self.sequences)?;
                job.open.insert(id, open);
                for (src, dst) in job.early.remove(&id).into_iter().flatten() {
                    self.collectives.count_early(open, src, dst)?;
                }
                open
            }
        };
        let collectives = &mut self.collectives;
        let Open { comm, code, operation, group, root, choice, .. } = collectives.open[open as usize];
        if (comm, code) != (record.comm, record.op) {
            return Err(CollectiveProblem::Disagree.into());
        }
        let group = &collectives.groups[group as usize];
        let rank = group.rank_of(sequence.rank).ok_or(CollectiveProblem::NotAMember(comm))?;
        let ranks = group.size();
        let part = match collectives.open[open as usize].parts[rank as usize] {
            OVER => return Err(CollectiveProblem::Twice.into()),
            NOT_YET => collectives.add_part(open, rank)?,
            part if collectives.parts[part as usize].cursor.is_some() => {
                return Err(CollectiveProblem::Twice.into());
            }
            part => part,
        };
        let member = Member { operation, ranks, rank, root, unit: 1 };
        let open = &mut collectives.open[open as usize];
        let sizes = PartSizes::of(open, record, &mut job.source, sequence.records)?;
        if matches!(sizes, PartSizes::Own(Sizes::Sums { .. }))
            && !std::mem::replace(&mut open.split, true)
            && collectives.groups[open.group as usize].has_first_member
        {
            self.live.stats.split_evenly += 1;
        }
        let cursor = Cursor::new(member, choice, sizes.sizes(open)).map_err(CollectiveProblem::Schedule)?;
        let part_entry = &mut collectives.parts[part as usize];
        part_entry.cursor = Some(cursor);
        part_entry.sizes = sizes;
        part_entry.task = task;
        part_entry.at = sequence.at;
        part_entry.record = short(sequence.records);
        Ok(part)
    }

    /// Plays a part on until it waits or is complete.
    fn run(&mut self, at: u32, out: &mut impl Sink) -> EngineResult<Option<Released>> {
        loop {
            let part = &mut self.collectives.parts[at as usize];
            let Some(cursor) = &mut part.cursor else { return Ok(None) };
            if let Some(Exchange { to, bytes, from }) = cursor.exchange() {
                part.pending = (to, bytes);
                part.then_from = from;
                if self.send(at, out)? {
                    return Ok(None);
                }
                continue;
            }
            match cursor.next(part.sizes.sizes(&self.collectives.open[part.open as usize])) {
                Some(Stage::Send { to, data }) => {
                    part.pending = (to, data.len);
                    if self.send(at, out)? {
                        return Ok(None);
                    }
                }
                Some(Stage::Recv { from, .. }) => part.expect(from),
                Some(Stage::Local { .. }) => {}
                Some(Stage::Wait) if part.missing + part.unsent == 0 => {}
                None if part.missing + part.unsent == 0 => return Ok(self.complete(at, out)),
                // Behind its last step the cursor gives `None` again.
                Some(Stage::Wait) | None => {
                    part.wait();
                    return Ok(None);
                }
            }
        }
    }

    /// A part sends its message, unless the simulator is to call for that; whether it then waits.
    #[inline(always)]
    fn send(&mut self, at: u32, out: &mut impl Sink) -> EngineResult<bool> {
        let part = &mut self.collectives.parts[at as usize];
        if part.ahead < self.live.run_ahead {
            part.ahead += 1;
            let ready = part.at;
            return self.start_message(at, ready, out);
        }
        part.turn = true;
        let ready = part.at;
        let (src, dst) = self.collectives.ends_of_pending(at);
        let inside = self.live.stays_inside(src, dst);
        out.take(Next::Wake(Wake { at: ready, target: WakeTarget(at | WakeTarget::PART), inside }));
        Ok(true)
    }

    /// A part's message starts; whether the part then waits.
    #[inline(always)]
    fn start_message(&mut self, at: u32, ready: Picos, out: &mut impl Sink) -> EngineResult<bool> {
        let part = &mut self.collectives.parts[at as usize];
        let (to, bytes) = (part.pending.0, Bytes(part.pending.1));
        let completes = self.live.completes(bytes, false);
        part.unsent += u32::from(completes != Completes::AtStart);
        let open = &mut self.collectives.open[part.open as usize];
        open.on_their_way += 1;
        let members = &self.collectives.groups[open.group as usize].members;
        let (src, dst) = (members[part.rank as usize], members[to as usize]);
        let Open { job, first_task, operation, .. } = *open;
        let kind = Kind::Collective(operation);
        let record = part.record;
        let of = Of::Collective { open: part.open, number: part.sent, record };
        part.sent = part.sent.wrapping_add(1);
        let flight = Flight::new(of, part.rank, to, first_task + dst.0, completes, part.at);
        let start = part.at;
        let departure = || Departure { ready, start, bytes, kind, job, src, dst, first_task, record };
        let task = part.task;
        if self.live.start(departure, flight, out).is_none() {
            return Err(self.sequences[task as usize].overflow());
        }
        self.jobs[job as usize].under_way += 1;
        let from = std::mem::replace(&mut part.then_from, NOBODY);
        if from == NOBODY {
            return Ok(false);
        }
        part.expect(from);
        let waits = part.missing + part.unsent > 0;
        if waits {
            part.wait();
        }
        Ok(waits)
    }

    /// What a part waited for may have come.
    #[inline(always)]
    fn wake(&mut self, at: u32, now: Picos, out: &mut impl Sink) -> EngineResult<Option<Released>> {
        let part = &mut self.collectives.parts[at as usize];
        if !part.waits || part.missing + part.unsent > 0 {
            return Ok(None);
        }
        part.waits = false;
        part.at = part.at.max(now);
        self.run(at, out)
    }

    fn complete(&mut self, at: u32, out: &mut impl Sink) -> Option<Released> {
        let part = self.collectives.parts.remove(at as usize);
        let open = &mut self.collectives.open[part.open as usize];
        open.parts[part.rank as usize] = OVER;
        open.over += 1;
        let id = open.id;
        let last = open.over == self.collectives.groups[open.group as usize].here;
        self.collectives.unfinished -= 1;
        self.close_if_over(part.open);
        let sequence = &mut self.sequences[part.task as usize];
        sequence.leave(id, part.at);
        out.left(&Left { job: sequence.job, task: sequence.rank, id, at: part.at, last });
        sequence.waits_for(Wait::Collective, id.0).then_some(Released { task: part.task, at: part.at })
    }

    fn close_if_over(&mut self, at: u32) {
        let open = &self.collectives.open[at as usize];
        let group = &self.collectives.groups[open.group as usize];
        if open.over < group.here || open.on_their_way > 0 {
            return;
        }
        let job = &mut self.jobs[open.job as usize];
        job.open.remove(&open.id);
        job.collectives.set(open.id.0, State::Over);
        self.live.stats.collectives += u64::from(group.has_first_member);
        self.collectives.close(at);
    }

    #[cold]
    fn wrong_part(&self, task: u32, id: CollectiveId, problem: CollectiveProblem) -> Box<ReplayError> {
        let place = self.sequences[task as usize].place();
        Box::new(ReplayError::Collective { place, id, problem })
    }
}

/// Collectives that are events.
impl Player<'_> {
    /// A part of a collective that is an event was entered.
    #[cold]
    pub(super) fn enter_event(&mut self, at: u32, amounts: [Bytes; 2], out: &mut impl Sink) {
        let part = &mut self.collectives.parts[at as usize];
        part.sizes = PartSizes::Own(Sizes::Sums { send: amounts[0].0, recv: amounts[1].0 });
        let (entered_at, rank, task) = (part.at, part.rank, part.task);
        let open = &mut self.collectives.open[part.open as usize];
        let ranks = open.parts.len() as u32;
        let Open { job, id, comm, operation, root, .. } = *open;
        let Some(event) = &mut open.event else { return };
        if let Some((at, member, bytes)) = event.enter(rank, ranks, entered_at, amounts) {
            let node = member.map(|_| self.live.nodes[task as usize]);
            out.collective(&Collective { job, id, comm, operation, root, ranks, at, member, node, bytes });
        }
    }

    /// The members of a collective that is an event; `None` if there is none of that id.
    pub(crate) fn members(&self, job: u32, id: CollectiveId) -> Option<Vec<EventMember>> {
        let open = self.event(job, id)?;
        let members = &self.collectives.groups[open.group as usize].members;
        let member = |(&part, &task): (&u32, &Rank)| EventMember {
            task,
            node: self.live.nodes[(open.first_task + task.0) as usize],
            entered: match part {
                NOT_YET | OVER => None,
                part => {
                    let part = &self.collectives.parts[part as usize];
                    Some((part.at, part.sizes.sums().map(Bytes)))
                }
            },
            complete: part == OVER,
        };
        Some(open.parts.iter().zip(members.iter()).map(member).collect())
    }

    fn event(&self, job: u32, id: CollectiveId) -> Option<&Open> {
        let open = *self.jobs.get(job as usize)?.open.get(&id)?;
        self.collectives.open.get(open as usize).filter(|open| open.event.is_some())
    }

    /// The part, and its task counted over all jobs, of a member that has entered an event and is not complete, and when it entered.
    pub(crate) fn entered(&self, job: u32, id: CollectiveId, member: u32) -> Option<(u32, u32, Picos)> {
        match *self.event(job, id)?.parts.get(member as usize)? {
            NOT_YET | OVER => None,
            at => {
                let part = &self.collectives.parts[at as usize];
                Some((at, part.task, part.at))
            }
        }
    }

    /// A member of an event is complete.
    pub(crate) fn complete_member(
        &mut self,
        part: u32,
        at: Picos,
        out: &mut impl Sink,
    ) -> EngineResult<Option<Released>> {
        self.collectives.parts[part as usize].at = at;
        Ok(self.complete(part, out))
    }
}

impl Collectives {
    /// Opens a collective for the first member that enters it.
    fn begin(
        &mut self,
        job: &mut Running,
        job_number: u32,
        record: &LocalCollective,
        sequences: &[Sequence],
    ) -> Result<u32, Problem> {
        let operation = job.source.op_codes().operation(record.op);
        let operation = operation.ok_or(CollectiveProblem::UnknownOperation(record.op))?;
        let group = match job.groups.get(&record.comm) {
            Some(&group) => group,
            None => {
                let members = job.source.members(record.comm).map_err(ReplayError::Source)?;
                let members = members.ok_or(CollectiveProblem::UnknownCommunicator(record.comm))?;
                let is_here = |rank: Rank| {
                    let sequence = sequences.get((job.first_task + rank.0) as usize);
                    sequence.is_none_or(|sequence| sequence.wait != Wait::Elsewhere)
                };
                let group = Group::new(members, is_here)
                    .map_err(|twice| CollectiveProblem::MemberTwice(record.comm, twice))?;
                let group = self.groups.insert(group) as u32;
                job.groups.insert(record.comm, group);
                group
            }
        };
        let members = &self.groups[group as usize];
        let rank = members.rank_of(record.task).ok_or(CollectiveProblem::NotAMember(record.comm))?;
        let ranks = members.size();
        let has_blocks = operation.own_block(record.amounts).is_some();
        let own_root = root_by_amounts(operation, record, members);
        let facts = match operation.is_rooted() || has_blocks {
            false => Facts::default(),
            true => {
                let question =
                    Question { id: record.id, operation, members: &members.members, root: own_root };
                job.source.facts(&question).map_err(ReplayError::Source)?
            }
        };
        // What the records together say has precedence over what this one does.
        let root = match facts.root.or(own_root) {
            None => 0,
            Some(root) => members.rank_of(root).ok_or(CollectiveProblem::NotAMember(record.comm))?,
        };
        let mut blocks = has_blocks.then(|| members.blocks(&facts.blocks)).transpose()?;
        let member = Member { operation, ranks, rank, root, unit: 1 };
        let sizes = match &blocks {
            Some(blocks) => Sizes::Blocks(blocks),
            None => Sizes::from_sums(operation, ranks, record.amounts.send.0, record.amounts.recv.0),
        };
        let bytes = || common_bytes(&member, sizes).0;
        let events = self.events.as_ref();
        let events = events.filter(|events| events.include(operation, ranks, bytes(), record.comm));
        let event = events.map(|events| Event::new(events.on));
        let choice = job.table.as_ref().unwrap_or(&self.table).choose(&member, sizes);
        if choice.algorithm.sorts() {
            let sort = |blocks: Counts| blocks.sorted(root, choice.order);
            blocks = blocks.map(sort).transpose().map_err(CollectiveProblem::Schedule)?;
        }
        let parts = self.parts_table(ranks);
        let open = Open {
            id: record.id,
            job: job_number,
            first_task: job.first_task,
            comm: record.comm,
            code: record.op,
            operation,
            group,
            root,
            choice,
            blocks,
            split: false,
            event,
            parts,
            over: 0,
            on_their_way: 0,
        };
        Ok(self.open.insert(open) as u32)
    }
}

/// The root as one member's amounts tell it: itself, or communicator rank 0 where nobody moves a byte.
fn root_by_amounts(operation: Operation, record: &LocalCollective, members: &Group) -> Option<Rank> {
    let amounts = record.amounts;
    let all_alike = operation.own_block(amounts).is_none();
    if operation.is_root(amounts) || members.size() == 1 {
        Some(record.task)
    } else if operation.is_rooted() && all_alike && amounts.send == amounts.recv {
        members.members.first().copied()
    } else {
        None
    }
}
