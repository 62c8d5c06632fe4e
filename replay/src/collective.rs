//! Collectives in progress: each task that enters one plays its part of an algorithm's schedule.
//!
//! A part is a cursor over the steps of one rank. It runs until it has a message to send (which waits in the
//! queue of ready ones like any other), or until it waits for messages of others. There is no barrier between
//! the tasks that the algorithm itself does not have. A message that comes before its receiver has entered is
//! counted, no more: within one collective the n-th message from a to b meets b's n-th receive from a.
//!
//! Reductions and copies in memory take no time: traces have no figure for them.

use crate::engine::{Departure, PART, Replay, Running};
use crate::error::{CollectiveProblem, ReplayError, Run};
use crate::live::{Completes, Flight, Of};
use crate::message::Kind;
use crate::options::SameNode;
use crate::progress::State;
use crate::ready::Due;
use crate::task::Wait;
use collectives::choose::Table;
use collectives::{Choice, Cursor, Exchange, Shape, Sizes, Step as Stage};
use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::{OpCode, Operation};
use vef_format::record::LocalCollective;
use vef_format::units::{Bytes, Picos};

/// The collectives of all jobs that some member has entered and not all have left.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    table: Table,
    pub(crate) open: Vec<Open>,
    free_open: Vec<u32>,
    pub(crate) parts: Vec<Part>,
    free_parts: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    /// Balances that a part has no room for, by part and peer.
    far: HashMap<(u32, u32), i32>,
    /// Tables of parts that were used and can be again.
    spare: Vec<Vec<u32>>,
}

/// A collective that some member has entered.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: CollectiveId,
    pub(crate) job: u32,
    /// The job's first task.
    first_task: u32,
    comm: CommId,
    code: OpCode,
    pub(crate) operation: Operation,
    /// What the crate of schedules calls that.
    schedule: collectives::Operation,
    /// Place of its communicator in the table of groups.
    pub(crate) group: u32,
    root: u32,
    choice: Choice,
    /// The members' parts by communicator rank: a place in the table of parts, [`NOT_YET`] or [`OVER`].
    pub(crate) parts: Vec<u32>,
    over: u32,
    on_their_way: u32,
}

/// A member that has not entered and has no messages waiting.
pub(crate) const NOT_YET: u32 = u32::MAX;
/// A member whose part is complete.
pub(crate) const OVER: u32 = u32::MAX - 1;
/// Places that [`Due::what`] can name.
const MOST_PARTS: usize = PART as usize;

/// One task's part of a collective; before the task enters, only the messages that wait for it.
#[derive(Debug)]
pub(crate) struct Part {
    /// The rest of its schedule, once it has entered.
    pub(crate) cursor: Option<Cursor>,
    sizes: Sizes<'static>,
    /// The task, counted over all jobs.
    pub(crate) task: u32,
    /// Place of its collective in the table of open ones.
    pub(crate) open: u32,
    /// Its rank of the communicator.
    pub(crate) rank: u32,
    at: Picos,
    /// The message it is about to send: to whom, and bytes.
    pending: (u32, u64),
    /// From whom it receives behind that and waits for both, or [`NOBODY`]: the rest of a [`collectives::Exchange`].
    then_from: u32,
    /// Posted receives whose messages have not come.
    pub(crate) missing: u32,
    /// Sends that are not complete.
    pub(crate) unsent: u32,
    waits: bool,
    /// Messages that came before their receives (positive) or receives whose messages have not come (negative), by
    /// peer; the first few, the others are in [`Collectives::far`].
    near: [(u32, i32); NEAR],
    /// How many of these there are.
    near_used: u32,
    /// Balances in [`Collectives::far`].
    far: u32,
}

const NEAR: usize = 8;
const NOBODY: u32 = u32::MAX;

impl Part {
    /// Adds to a balance that it has room for; gives the balance before, or `None` if there is no room.
    #[inline(always)]
    fn count(&mut self, peer: u32, change: i32) -> Option<i32> {
        let used = self.near_used as usize;
        for at in 0..used.min(NEAR) {
            if self.near[at].0 == peer {
                let before = self.near[at].1;
                self.near[at].1 += change;
                if self.near[at].1 == 0 {
                    self.near[at] = self.near[used.min(NEAR) - 1];
                    self.near_used -= 1;
                }
                return Some(before);
            }
        }
        *self.near.get_mut(used)? = (peer, change);
        self.near_used += 1;
        Some(0)
    }
}

/// A communicator.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) members: Vec<Rank>,
    /// Communicator ranks in the order of world ranks, where that differs from their own order.
    order: Option<Vec<u32>>,
}

impl Group {
    /// The task that it names twice, if there is one.
    fn new(members: Vec<Rank>) -> Result<Self, Rank> {
        if members.is_sorted_by(|a, b| a < b) {
            return Ok(Self { members, order: None });
        }
        let mut order: Vec<u32> = (0..members.len() as u32).collect();
        order.sort_unstable_by_key(|&rank| members[rank as usize]);
        match order.windows(2).find(|pair| members[pair[0] as usize] == members[pair[1] as usize]) {
            Some(pair) => Err(members[pair[0] as usize]),
            None => Ok(Self { members, order: Some(order) }),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// The communicator rank of a task.
    pub(crate) fn rank_of(&self, task: Rank) -> Option<u32> {
        if self.members.get(task.index()) == Some(&task) {
            return Some(task.0);
        }
        match &self.order {
            None => self.members.binary_search(&task).ok().map(|rank| rank as u32),
            Some(order) => {
                let place = order.binary_search_by_key(&task, |&rank| self.members[rank as usize]);
                place.ok().map(|place| order[place])
            }
        }
    }
}

impl Collectives {
    pub(crate) fn new(table: Table) -> Self {
        Self { table, ..Self::default() }
    }

    /// Whether a task's part of a collective is complete.
    pub(crate) fn is_over(&self, job: &Running, id: CollectiveId, task: Rank) -> bool {
        job.operations.get(id.0) == State::Done
            || job.open.get(&id).is_some_and(|&open| self.part_of(open, task) == Some(OVER))
    }

    /// The entry of a task in an open collective's table of parts.
    pub(crate) fn part_of(&self, open: u32, task: Rank) -> Option<u32> {
        let open = &self.open[open as usize];
        let rank = self.groups[open.group as usize].rank_of(task)?;
        Some(open.parts[rank as usize])
    }

    fn add_part(&mut self, open: u32, rank: u32) -> Result<u32, CollectiveProblem> {
        let part = Part {
            cursor: None,
            sizes: Sizes::Bytes(0),
            task: 0,
            open,
            rank,
            at: Picos::ZERO,
            pending: (0, 0),
            then_from: NOBODY,
            missing: 0,
            unsent: 0,
            waits: false,
            near: [(0, 0); NEAR],
            near_used: 0,
            far: 0,
        };
        let at = match self.free_parts.pop() {
            Some(at) => {
                self.parts[at as usize] = part;
                at
            }
            None if self.parts.len() == MOST_PARTS => return Err(CollectiveProblem::TooMany),
            None => {
                self.parts.push(part);
                (self.parts.len() - 1) as u32
            }
        };
        self.open[open as usize].parts[rank as usize] = at;
        Ok(at)
    }

    /// Adds to the balance of a part with a peer; gives the balance before.
    #[inline(always)]
    fn count(&mut self, at: u32, peer: u32, change: i32) -> i32 {
        let part = &mut self.parts[at as usize];
        if part.far > 0 {
            return self.count_far(at, peer, change);
        }
        match part.count(peer, change) {
            Some(before) => before,
            None => self.count_far(at, peer, change),
        }
    }

    /// The same where some balances of the part have no room in it.
    #[cold]
    fn count_far(&mut self, at: u32, peer: u32, change: i32) -> i32 {
        let part = &mut self.parts[at as usize];
        let Some(balance) = self.far.get_mut(&(at, peer)) else {
            return part.count(peer, change).unwrap_or_else(|| {
                part.far += 1;
                self.far.insert((at, peer), change);
                0
            });
        };
        let before = *balance;
        *balance += change;
        if *balance == 0 {
            self.far.remove(&(at, peer));
            part.far -= 1;
        }
        before
    }

    /// Closes a collective that is over for all its members.
    fn close(&mut self, open: u32) {
        let mut parts = std::mem::take(&mut self.open[open as usize].parts);
        parts.clear();
        self.spare.push(parts);
        self.free_open.push(open);
    }

    /// Peers whose messages a part has asked for and not got, the lowest first.
    pub(crate) fn peers_missing(&self, at: u32) -> Vec<u32> {
        let part = &self.parts[at as usize];
        let near = part.near[..part.near_used as usize].iter().copied();
        let far = self
            .far
            .iter()
            .filter(|((part, _), _)| *part == at)
            .map(|(&(_, peer), &balance)| (peer, balance));
        let mut peers: Vec<u32> =
            near.chain(far).filter(|&(_, balance)| balance < 0).map(|(peer, _)| peer).collect();
        peers.sort_unstable();
        peers
    }
}

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
        self.pasts[task as usize].enter(record.id);
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
        let sizes = Sizes::from_sums(schedule, ranks, record.amounts.send.0, record.amounts.recv.0);
        let cursor = Cursor::new(shape, choice, sizes).map_err(CollectiveProblem::Schedule)?;
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
            match cursor.next(part.sizes) {
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
        self.pasts[task as usize].leave(id, time);
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
        let root = match operation.is_rooted() {
            false => 0,
            true => {
                let known = own_word(operation, record, members);
                match job.source.root(record.id, ranks, known).map_err(ReplayError::Source)? {
                    None => 0,
                    Some(root) => members.rank_of(root).ok_or(CollectiveProblem::NotAMember(record.comm))?,
                }
            }
        };
        let schedule = collectives::Operation::of_mpi(operation.name());
        let schedule = schedule.ok_or(CollectiveProblem::UnknownOperation(record.op))?;
        let shape = Shape { operation: schedule, ranks, rank, root, unit: 1 };
        let sizes = Sizes::from_sums(shape.operation, ranks, record.amounts.send.0, record.amounts.recv.0);
        let choice = self.table.choose(&shape, sizes);
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
    let decisive = if operation.root_sends() { amounts.send } else { amounts.recv };
    let all_alike = !matches!(operation, Operation::Gatherv | Operation::Scatterv);
    if decisive > Bytes::ZERO || members.size() == 1 {
        Some(record.task)
    } else if all_alike && amounts.send == amounts.recv {
        members.members.first().copied()
    } else {
        None
    }
}

/// Why a task cannot take part.
enum Problem {
    Part(CollectiveProblem),
    Replay(Box<ReplayError>),
}

impl From<CollectiveProblem> for Problem {
    fn from(problem: CollectiveProblem) -> Self {
        Self::Part(problem)
    }
}

impl From<ReplayError> for Problem {
    fn from(error: ReplayError) -> Self {
        Self::Replay(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_small() {
        assert!(size_of::<Part>() <= 256, "{}", size_of::<Part>());
    }

    #[test]
    fn a_group_knows_its_ranks() {
        let group = |members: &[u32]| Group::new(members.iter().copied().map(Rank).collect());
        for members in [&[0, 1, 2, 3][..], &[2, 5, 9], &[9, 2, 5], &[1, 0], &[3]] {
            let known = group(members).unwrap();
            for task in 0..12 {
                let rank = members.iter().position(|&member| member == task).map(|rank| rank as u32);
                assert_eq!(known.rank_of(Rank(task)), rank, "{members:?} {task}");
            }
        }
        assert_eq!(group(&[4, 1, 4]).unwrap_err(), Rank(4));
        assert_eq!(group(&[4, 4]).unwrap_err(), Rank(4));
    }
}
