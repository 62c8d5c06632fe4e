//! Collectives in progress: each task that enters one plays its part of an algorithm's schedule.
//!
//! A part is a cursor over the steps of one rank. It runs until it has a message to send (which waits in the
//! queue of ready ones like any other), or until it waits for messages of others. There is no barrier between
//! the tasks that the algorithm itself does not have. A message that comes before its receiver has entered is
//! counted, no more: within one collective the n-th message from a to b meets b's n-th receive from a.
//!
//! Reductions and copies in memory take no time: traces have no figure for them.

mod tables;

pub(crate) use tables::{Collectives, NOT_YET, OVER};
use tables::{Group, NOBODY, Open, Part, PartSizes};

use crate::engine::{Departure, PART, Replay, Running};
use crate::error::{CollectiveProblem, Problem, ReplayError, Run};
use crate::live::{Completes, Flight, Of};
use crate::message::Kind;
use crate::options::SameNode;
use crate::progress::State;
use crate::ready::Due;
use crate::source::{Facts, Question};
use crate::task::Wait;
use collectives::{Counts, Cursor, Exchange, Shape, Sizes, Step as Stage};
use vef_format::ids::Rank;
use vef_format::operation::Operation;
use vef_format::record::LocalCollective;
use vef_format::units::{Bytes, Picos};

impl Replay {
    /// A task enters a collective, at its own time.
    pub(crate) fn enter(&mut self, task: u32, record: LocalCollective) -> Run<()> {
        let entered = self.take_part(task, &record).map_err(|problem| match problem {
            Problem::Part(problem) => self.wrong_part(task, record.id, problem),
            Problem::Replay(error) => error,
        });
        self.stats.collective_parts += 1;
        self.unfinished += 1;
        let part = entered?;
        self.tasks[task as usize].past.enter(record.id);
        self.run_part(part)
    }

    fn take_part(&mut self, at: u32, record: &LocalCollective) -> Result<u32, Problem> {
        let id = record.id;
        let job_number = self.tasks[at as usize].job;
        let job = &mut self.jobs[job_number as usize];
        let world_rank = Rank(at - job.first_task);
        let open = match job.open.get(&id) {
            Some(&open) => open,
            None => {
                if job.operations.get(id.0) != State::Unseen {
                    return Err(CollectiveProblem::Twice.into());
                }
                let open = self.collectives.begin(job, job_number, record)?;
                job.open.insert(id, open);
                job.operations.set(id.0, State::Started);
                open
            }
        };
        let collectives = &mut self.collectives;
        let Open { comm, code, schedule, group, root, choice, .. } = collectives.open[open as usize];
        if (comm, code) != (record.comm, record.op) {
            return Err(CollectiveProblem::Disagree.into());
        }
        let group = &collectives.groups[group as usize];
        let rank = group.rank_of(world_rank).ok_or(CollectiveProblem::NotAMember(comm))?;
        let ranks = group.size();
        let part = match collectives.open[open as usize].parts[rank as usize] {
            OVER => return Err(CollectiveProblem::Twice.into()),
            NOT_YET => collectives.add_part(open, rank)?,
            part if collectives.parts[part as usize].cursor.is_some() => {
                return Err(CollectiveProblem::Twice.into());
            }
            part => part,
        };
        let shape = Shape { operation: schedule, ranks, rank, root, unit: 1 };
        let open = &mut collectives.open[open as usize];
        let sizes = PartSizes::of(open, record, &mut job.source, self.tasks[at as usize].past.records)?;
        if matches!(sizes, PartSizes::Own(Sizes::Sums { .. })) && !std::mem::replace(&mut open.split, true) {
            self.stats.split_evenly += 1;
        }
        let cursor = Cursor::new(shape, choice, sizes.sizes(open)).map_err(CollectiveProblem::Schedule)?;
        let part_entry = &mut collectives.parts[part as usize];
        part_entry.cursor = Some(cursor);
        part_entry.sizes = sizes;
        part_entry.task = at;
        part_entry.at = self.tasks[at as usize].at;
        Ok(part)
    }

    /// Plays a part on until it sends, waits, or is complete.
    fn run_part(&mut self, at: u32) -> Run<()> {
        loop {
            let part = &mut self.collectives.parts[at as usize];
            let Some(cursor) = &mut part.cursor else { return Ok(()) };
            if let Some(Exchange { to, bytes, from }) = cursor.exchange() {
                part.then_from = from;
                self.post(at, to, bytes);
                return Ok(());
            }
            match cursor.next(part.sizes.sizes(&self.collectives.open[part.open as usize])) {
                Some(Stage::Send { to, data }) => {
                    self.post(at, to, data.len);
                    return Ok(());
                }
                Some(Stage::Recv { from, .. }) => self.expect(at, from),
                Some(Stage::Local { .. }) => {}
                Some(Stage::Wait) if part.missing + part.unsent == 0 => {}
                None if part.missing + part.unsent == 0 => return self.complete_part(at),
                // Behind its last step the cursor gives `None` again.
                Some(Stage::Wait) | None => {
                    part.waits = true;
                    return Ok(());
                }
            }
        }
    }

    /// A part is about to send a message.
    #[inline(always)]
    fn post(&mut self, at: u32, to: u32, bytes: u64) {
        let part = &mut self.collectives.parts[at as usize];
        part.pending = (to, bytes);
        let due = Due { at: part.at, task: part.task, what: PART | at };
        if self.same_node == SameNode::HandOut {
            return self.ready.push(due);
        }
        let open = &self.collectives.open[part.open as usize];
        let dst = self.collectives.groups[open.group as usize].members[to as usize];
        let dst = open.first_task + dst.0;
        self.schedule(due, dst);
    }

    /// A part receives a message, when it comes or if it has.
    #[inline(always)]
    fn expect(&mut self, at: u32, from: u32) {
        if self.collectives.count(at, from, -1) <= 0 {
            self.collectives.parts[at as usize].missing += 1;
        }
    }

    /// What a part waited for may have come, now.
    #[inline(always)]
    fn wake_part(&mut self, at: u32) -> Run<()> {
        let part = &mut self.collectives.parts[at as usize];
        if !part.waits || part.missing + part.unsent > 0 {
            return Ok(());
        }
        part.waits = false;
        part.at = part.at.max(self.clock);
        self.run_part(at)
    }

    fn complete_part(&mut self, at: u32) -> Run<()> {
        let collectives = &mut self.collectives;
        let Part { task, open: open_at, rank, at: time, .. } = collectives.parts[at as usize];
        collectives.parts[at as usize].cursor = None;
        collectives.free_parts.push(at);
        let open = &mut collectives.open[open_at as usize];
        open.parts[rank as usize] = OVER;
        open.over += 1;
        let id = open.id;
        self.unfinished -= 1;
        self.close_if_over(open_at);
        self.tasks[task as usize].past.leave(id, time);
        match self.tasks[task as usize].waits_for(Wait::Collective, id.0) {
            true => self.release(task, time),
            false => Ok(()),
        }
    }

    fn close_if_over(&mut self, at: u32) {
        let open = &self.collectives.open[at as usize];
        if open.over < open.parts.len() as u32 || open.on_their_way > 0 {
            return;
        }
        let job = &mut self.jobs[open.job as usize];
        job.open.remove(&open.id);
        job.operations.set(open.id.0, State::Done);
        self.stats.collectives += 1;
        self.collectives.close(at);
    }

    /// The message that a part was about to send starts.
    #[inline(always)]
    pub(crate) fn depart_part(&mut self, due: Due) -> Run<Departure> {
        let part = &mut self.collectives.parts[(due.what & !PART) as usize];
        let (to, bytes) = part.pending;
        let completes = self.send_completion.of(Bytes(bytes));
        part.unsent += u32::from(completes != Completes::AtStart);
        let open = &mut self.collectives.open[part.open as usize];
        open.on_their_way += 1;
        let dst = self.collectives.groups[open.group as usize].members[to as usize];
        let flight = Flight::new(Of::Collective(part.open), part.rank, to, completes);
        let Open { job, first_task, operation, .. } = *open;
        let (dst, kind) = (first_task + dst.0, Kind::Collective(operation));
        Ok(Departure { job, first_task, dst, bytes: Bytes(bytes), kind, flight })
    }

    /// A part has handed its message over and goes on, at `now`.
    #[inline(always)]
    pub(crate) fn resume_part(&mut self, at: u32, now: Picos) -> Run<()> {
        let part = &mut self.collectives.parts[at as usize];
        part.at = now;
        let from = std::mem::replace(&mut part.then_from, NOBODY);
        if from != NOBODY {
            self.expect(at, from);
            let part = &mut self.collectives.parts[at as usize];
            if part.missing + part.unsent > 0 {
                part.waits = true;
                return Ok(());
            }
        }
        self.run_part(at)
    }

    /// A message of a collective arrives, now.
    #[inline(always)]
    pub(crate) fn arrive_part(&mut self, open_at: u32, flight: Flight) -> Run<()> {
        let open = &mut self.collectives.open[open_at as usize];
        open.on_their_way -= 1;
        let part = match open.parts[flight.dst as usize] {
            // The schedule has no receive for it: nothing depends on it.
            OVER => {
                self.close_if_over(open_at);
                return Ok(());
            }
            NOT_YET => {
                let (job, id) = (open.job, open.id);
                let group = open.group as usize;
                self.collectives.add_part(open_at, flight.dst).map_err(|problem| {
                    let member = self.collectives.groups[group].members[flight.dst as usize];
                    self.wrong_part(self.jobs[job as usize].first_task + member.0, id, problem)
                })?
            }
            part => part,
        };
        if self.collectives.count(part, flight.src, 1) < 0 {
            self.collectives.parts[part as usize].missing -= 1;
            return self.wake_part(part);
        }
        Ok(())
    }

    /// A send of a collective is complete for its sender, now.
    pub(crate) fn complete_part_send(&mut self, open: u32, flight: Flight) -> Run<()> {
        match self.collectives.open[open as usize].parts[flight.src as usize] {
            OVER | NOT_YET => Ok(()),
            part => {
                self.collectives.parts[part as usize].unsent -= 1;
                self.wake_part(part)
            }
        }
    }
}

impl Collectives {
    /// Opens a collective for the first member that enters it.
    fn begin(
        &mut self,
        job: &mut Running,
        job_number: u32,
        record: &LocalCollective,
    ) -> Result<u32, Problem> {
        let operation = job.source.op_codes().operation(record.op);
        let operation = operation.ok_or(CollectiveProblem::UnknownOperation(record.op))?;
        let group = match job.groups.get(&record.comm) {
            Some(&group) => group,
            None => {
                let members = job.source.members(record.comm).map_err(ReplayError::Source)?;
                let members = members.ok_or(CollectiveProblem::UnknownCommunicator(record.comm))?;
                let group = Group::new(members)
                    .map_err(|twice| CollectiveProblem::MemberTwice(record.comm, twice))?;
                self.groups.push(group);
                let group = (self.groups.len() - 1) as u32;
                job.groups.insert(record.comm, group);
                group
            }
        };
        let members = &self.groups[group as usize];
        let rank = members.rank_of(record.task).ok_or(CollectiveProblem::NotAMember(record.comm))?;
        let ranks = members.size();
        let has_blocks = operation.own_block(record.amounts).is_some();
        let facts = match operation.is_rooted() || has_blocks {
            false => Facts::default(),
            true => {
                let root = own_word(operation, record, members);
                let question = Question { id: record.id, operation, members: &members.members, root };
                job.source.facts(&question).map_err(ReplayError::Source)?
            }
        };
        let root = match facts.root {
            None => 0,
            Some(root) => members.rank_of(root).ok_or(CollectiveProblem::NotAMember(record.comm))?,
        };
        let mut blocks = has_blocks.then(|| members.blocks(&facts.blocks)).transpose()?;
        let schedule = collectives::Operation::of_mpi(operation.name());
        let schedule = schedule.ok_or(CollectiveProblem::UnknownOperation(record.op))?;
        let shape = Shape { operation: schedule, ranks, rank, root, unit: 1 };
        let sizes = match &blocks {
            Some(blocks) => Sizes::Blocks(blocks),
            None => Sizes::from_sums(schedule, ranks, record.amounts.send.0, record.amounts.recv.0),
        };
        let choice = self.table.choose(&shape, sizes);
        if choice.algorithm.sorts() {
            let sort = |blocks: Counts| blocks.sorted(root, choice.order);
            blocks = blocks.map(sort).transpose().map_err(CollectiveProblem::Schedule)?;
        }
        let mut parts = self.spare.pop().unwrap_or_default();
        parts.resize(ranks as usize, NOT_YET);
        let open = Open {
            id: record.id,
            job: job_number,
            first_task: job.first_task,
            comm: record.comm,
            code: record.op,
            operation,
            schedule,
            group,
            root,
            choice,
            blocks,
            split: false,
            parts,
            over: 0,
            on_their_way: 0,
        };
        Ok(match self.free_open.pop() {
            Some(at) => {
                self.open[at as usize] = open;
                at
            }
            None => {
                self.open.push(open);
                (self.open.len() - 1) as u32
            }
        })
    }
}

/// The root as one member's amounts tell it: itself, or communicator rank 0 where nobody moves a byte.
fn own_word(operation: Operation, record: &LocalCollective, members: &Group) -> Option<Rank> {
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
