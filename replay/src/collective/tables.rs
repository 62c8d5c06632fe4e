//! What is kept of collectives in progress: the open ones, the parts of their members, and the communicators.

use crate::error::{CollectiveProblem, Problem, ReplayError};
use crate::events::{CollectiveEvents, Event};
use crate::message::WakeTarget;
use crate::running::Running;
use crate::sequence::Sequence;
use crate::source::Feed;
use crate::states::State;
use collectives::choose::Table;
use collectives::{Choice, Counts, Cursor, Member, Sizes};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::operation::{OpCode, Operation, Sizing};
use vef_format::raw::{DEPENDENCY, Raw};
use vef_format::record::LocalCollective;
use vef_format::units::Picos;

/// The collectives of all jobs that some member has entered and not all have left.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    pub(crate) table: Table,
    pub(crate) events: Option<CollectiveEvents>,
    pub(crate) open: Slab<Open>,
    pub(crate) parts: Slab<Part>,
    pub(crate) groups: Slab<Group>,
    /// Parts that tasks have entered and not completed.
    pub(crate) unfinished: u64,
    /// Tables of parts that were used and can be again.
    spare: Vec<Vec<u32>>,
}

/// A collective that some member has entered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) id: CollectiveId,
    pub(crate) job: u32,
    /// The job's first task.
    pub(super) first_task: u32,
    pub(crate) comm: CommId,
    pub(super) code: OpCode,
    pub(crate) operation: Operation,
    /// Key of its communicator in the table of groups.
    pub(crate) group: u32,
    pub(crate) root: u32,
    pub(crate) choice: Choice,
    /// The members' blocks, of operations in which each names its own.
    pub(super) blocks: Option<Counts>,
    /// Whether some member's sums had to be split evenly, as the trace has no counts.
    pub(super) split: bool,
    /// Set if the simulator carries it out.
    pub(super) event: Option<Event>,
    /// The members' parts by communicator rank: a key in the table of parts, [`NOT_YET`] or [`OVER`].
    pub(crate) parts: Vec<u32>,
    pub(super) over: u32,
    pub(crate) on_their_way: u32,
}

/// A member that has not entered and has no messages waiting.
pub(crate) const NOT_YET: u32 = u32::MAX;
/// A member whose part is complete.
pub(crate) const OVER: u32 = u32::MAX - 1;
/// Keys that [`WakeTarget`] can hold.
const MOST_PARTS: usize = WakeTarget::HELD as usize;

/// One task's part of a collective; before the task enters, only the messages that wait for it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The rest of its schedule, once it has entered.
    #[serde(skip)]
    pub(crate) cursor: Option<Cursor>,
    pub(super) sizes: PartSizes,
    /// The task that has entered, counted over all jobs.
    pub(crate) task: u32,
    /// Key of its collective in the table of open ones.
    pub(crate) open: u32,
    /// Its rank of the communicator.
    pub(crate) rank: u32,
    pub(super) at: Picos,
    /// Number of its task's record, or [`UNKNOWN`](crate::live::UNKNOWN).
    pub(crate) record: u32,
    /// Messages that it has started.
    pub(super) sent: u32,
    /// The message it is about to send: to whom, and bytes.
    pub(super) pending: (u32, u64),
    /// From whom it receives behind that and waits for both, or [`NOBODY`]: the rest of a [`collectives::Exchange`].
    pub(super) then_from: u32,
    /// Posted receives whose messages have not come.
    pub(crate) missing: u32,
    /// Sends that are not complete.
    pub(crate) unsent: u32,
    pub(super) waits: bool,
    /// Whether the simulator is to call for its message.
    pub(crate) turn: bool,
    /// Messages that it has started since it waited last, or was called.
    pub(super) ahead: u8,
    /// Balances: messages that came before their receives (positive) or receives whose messages have not come (negative), by
    /// peer; the first few.
    near: [(u32, i32); NEAR],
    /// How many of these there are.
    near_used: u32,
    /// The other balances.
    far: BTreeMap<u32, i32>,
}

/// The sizes of one task's part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SavedSizes", into = "SavedSizes")]
pub(super) enum PartSizes {
    /// Known from its own record.
    Own(Sizes<'static>),
    /// Those of its collective.
    Blocks,
    /// What it sends to each and receives from each.
    Pairs(Box<[Counts; 2]>),
}

impl PartSizes {
    /// Bytes sent and received, of a part of an event.
    pub(super) fn sums(&self) -> [u64; 2] {
        match self {
            Self::Own(Sizes::Sums { send, recv }) => [*send, *recv],
            Self::Own(_) | Self::Blocks | Self::Pairs(_) => [0; 2],
        }
    }

    /// The sizes of the part that is the record of that number of its task.
    pub(super) fn of(
        open: &Open,
        record: &LocalCollective,
        source: &mut Feed,
        number: u64,
    ) -> Result<Self, Problem> {
        if open.blocks.is_some() {
            return Ok(Self::Blocks);
        }
        let ranks = open.parts.len() as u32;
        if open.operation.sizing() == Sizing::Pairs
            && let Some(rows) = source.counts(record.task, number).map_err(ReplayError::Source)?
        {
            let [send, recv] = rows.map(|row| Counts::new(row).map_err(CollectiveProblem::Schedule));
            return Ok(Self::Pairs(Box::new([send?, recv?])));
        }
        let (send, recv) = (record.amounts.send.0, record.amounts.recv.0);
        Ok(Self::Own(Sizes::from_sums(open.operation, ranks, send, recv)))
    }

    /// The sizes of a part of that collective.
    #[inline]
    pub(super) fn sizes<'a>(&'a self, open: &'a Open) -> Sizes<'a> {
        match (self, &open.blocks) {
            (Self::Own(sizes), _) => *sizes,
            (Self::Blocks, Some(blocks)) => Sizes::Blocks(blocks),
            (Self::Blocks, None) => Sizes::Bytes(0),
            (Self::Pairs(pairs), _) => Sizes::Pairs { send: &pairs[0], recv: &pairs[1] },
        }
    }
}

/// [`PartSizes`] in a checkpoint.
#[derive(Serialize, Deserialize)]
enum SavedSizes {
    Bytes(u64),
    Sums(u64, u64),
    Blocks,
    Pairs(Box<[Counts; 2]>),
}

impl From<SavedSizes> for PartSizes {
    fn from(saved: SavedSizes) -> Self {
        match saved {
            SavedSizes::Bytes(bytes) => Self::Own(Sizes::Bytes(bytes)),
            SavedSizes::Sums(send, recv) => Self::Own(Sizes::Sums { send, recv }),
            SavedSizes::Blocks => Self::Blocks,
            SavedSizes::Pairs(pairs) => Self::Pairs(pairs),
        }
    }
}

impl From<PartSizes> for SavedSizes {
    fn from(sizes: PartSizes) -> Self {
        match sizes {
            PartSizes::Own(Sizes::Bytes(bytes)) => Self::Bytes(bytes),
            PartSizes::Own(Sizes::Sums { send, recv }) => Self::Sums(send, recv),
            // Those of a part's own record borrow nothing.
            PartSizes::Own(Sizes::Blocks(_) | Sizes::Pairs { .. }) | PartSizes::Blocks => Self::Blocks,
            PartSizes::Pairs(pairs) => Self::Pairs(pairs),
        }
    }
}

const NEAR: usize = 8;
/// No peer.
pub(super) const NOBODY: u32 = u32::MAX;

impl Part {
    /// It waits for messages, or for its sends.
    #[inline(always)]
    pub(super) fn wait(&mut self) {
        (self.waits, self.ahead) = (true, 0);
    }

    /// It receives a message, when that comes or if it has.
    #[inline(always)]
    pub(super) fn expect(&mut self, from: u32) {
        if self.count(from, -1) <= 0 {
            self.missing += 1;
        }
    }

    /// Adds to the balance with a peer; returns the balance before.
    #[inline(always)]
    pub(super) fn count(&mut self, peer: u32, change: i32) -> i32 {
        if self.far.is_empty()
            && let Some(before) = self.count_near(peer, change)
        {
            return before;
        }
        self.count_far(peer, change)
    }

    /// The same for one of the first balances; `None` if there is no room for a further one.
    #[inline(always)]
    fn count_near(&mut self, peer: u32, change: i32) -> Option<i32> {
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

    /// The same where there are more than the first balances.
    #[cold]
    fn count_far(&mut self, peer: u32, change: i32) -> i32 {
        if !self.far.contains_key(&peer)
            && let Some(before) = self.count_near(peer, change)
        {
            return before;
        }
        let balance = self.far.entry(peer).or_insert(0);
        let before = *balance;
        *balance += change;
        if *balance == 0 {
            self.far.remove(&peer);
        }
        before
    }

    /// Peers whose messages it has asked for and not got, the lowest first.
    pub(crate) fn peers_missing(&self) -> Vec<u32> {
        let near = self.near[..self.near_used as usize].iter().copied();
        let far = self.far.iter().map(|(&peer, &balance)| (peer, balance));
        let missing = near.chain(far).filter(|&(_, balance)| balance < 0);
        let mut peers: Vec<u32> = missing.map(|(peer, _)| peer).collect();
        peers.sort_unstable();
        peers
    }
}

/// A communicator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) members: Arc<[Rank]>,
    /// Members in this partition.
    pub(super) here: u32,
    /// Whether the first member is in it.
    pub(super) has_first_member: bool,
    /// Communicator ranks in the order of world ranks, where that differs from their own order.
    order: Option<Vec<u32>>,
}

impl Group {
    /// The task that it names twice, if there is one.
    pub(super) fn new(members: Arc<[Rank]>, is_here: impl Fn(Rank) -> bool) -> Result<Self, Rank> {
        let here = members.iter().filter(|&&member| is_here(member)).count() as u32;
        let has_first_member = members.first().is_some_and(|&first| is_here(first));
        if members.is_sorted_by(|a, b| a < b) {
            return Ok(Self { members, here, has_first_member, order: None });
        }
        let mut order: Vec<u32> = (0..members.len() as u32).collect();
        order.sort_unstable_by_key(|&rank| members[rank as usize]);
        match order.windows(2).find(|pair| members[pair[0] as usize] == members[pair[1] as usize]) {
            Some(pair) => Err(members[pair[0] as usize]),
            None => Ok(Self { members, here, has_first_member, order: Some(order) }),
        }
    }

    /// Blocks by communicator rank, from those by task; of members that the trace lacks, nothing.
    pub(super) fn blocks(&self, blocks: &[(Rank, u64)]) -> Result<Counts, CollectiveProblem> {
        let mut by_rank = vec![0; self.members.len()];
        for &(task, bytes) in blocks {
            if let Some(rank) = self.rank_of(task) {
                by_rank[rank as usize] = bytes;
            }
        }
        Counts::new(by_rank).map_err(CollectiveProblem::Schedule)
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
    pub(crate) fn new(table: Table, events: Option<CollectiveEvents>) -> Self {
        Self { table, events, ..Self::default() }
    }

    /// Whether a sequence's next record, which waits for no line, can start: it waits for nothing, or for a part of a collective that is complete.
    #[inline(never)]
    pub(crate) fn allow_next(&self, job: &Running, sequence: &Sequence) -> bool {
        let Raw { tag, after, .. } = sequence.next;
        let is_over = || self.is_over(job, CollectiveId(after), sequence.rank);
        tag & DEPENDENCY == 0 || sequence.has_left(after).unwrap_or_else(is_over)
    }

    fn is_over(&self, job: &Running, id: CollectiveId, task: Rank) -> bool {
        match job.open.get(&id) {
            Some(&open) => self.part_of(open, task) == Some(OVER),
            None => job.collectives.get(id.0) == State::Over,
        }
    }

    /// The task, counted over all jobs, of a rank of an open collective.
    #[inline]
    pub(crate) fn task(&self, open: u32, rank: u32) -> u32 {
        let open = &self.open[open as usize];
        open.first_task + self.groups[open.group as usize].members[rank as usize].0
    }

    /// Sender and receiver, counted over all jobs, of the message that a part is about to send.
    #[inline]
    pub(super) fn ends_of_pending(&self, at: u32) -> (u32, u32) {
        let part = &self.parts[at as usize];
        (part.task, self.task(part.open, part.pending.0))
    }

    /// The task whose part with that key waits for the simulator to call for its message, if it does.
    #[inline]
    pub(crate) fn waiting_part(&self, at: u32) -> Option<u32> {
        self.parts.get(at as usize).filter(|part| part.turn).map(|part| part.task)
    }

    /// The entry of a task in an open collective's table of parts.
    pub(crate) fn part_of(&self, open: u32, task: Rank) -> Option<u32> {
        let open = &self.open[open as usize];
        let rank = self.groups[open.group as usize].rank_of(task)?;
        Some(open.parts[rank as usize])
    }

    pub(super) fn add_part(&mut self, open: u32, rank: u32) -> Result<u32, CollectiveProblem> {
        let at = self.parts.vacant_key();
        if at >= MOST_PARTS {
            return Err(CollectiveProblem::TooMany);
        }
        self.parts.insert(Part {
            cursor: None,
            sizes: PartSizes::Own(Sizes::Bytes(0)),
            task: 0,
            open,
            rank,
            at: Picos::ZERO,
            record: 0,
            sent: 0,
            pending: (0, 0),
            then_from: NOBODY,
            missing: 0,
            unsent: 0,
            waits: false,
            turn: false,
            ahead: 0,
            near: [(0, 0); NEAR],
            near_used: 0,
            far: BTreeMap::new(),
        });
        self.open[open as usize].parts[rank as usize] = at as u32;
        Ok(at as u32)
    }

    /// An empty table of parts.
    pub(super) fn parts_table(&mut self, ranks: u32) -> Vec<u32> {
        let mut parts = self.spare.pop().unwrap_or_default();
        parts.resize(ranks as usize, NOT_YET);
        parts
    }

    /// A message of another partition that came before any task of this one had entered the collective.
    pub(super) fn count_early(&mut self, open: u32, src: u32, dst: u32) -> Result<(), CollectiveProblem> {
        let part = match self.open[open as usize].parts.get(dst as usize) {
            // No parcel that was exported names a rank outside.
            None => return Ok(()),
            Some(&NOT_YET) => self.add_part(open, dst)?,
            Some(&part) => part,
        };
        self.parts[part as usize].count(src, 1);
        Ok(())
    }

    /// Closes a collective that is over for all its members.
    pub(super) fn close(&mut self, open: u32) {
        let mut parts = self.open.remove(open as usize).parts;
        parts.clear();
        self.spare.push(parts);
    }
}

/// Of an instance that is taken back.
impl Collectives {
    /// Removes a collective, and the parts of its members.
    pub(crate) fn withdraw(&mut self, open: u32) {
        let parts = &self.open[open as usize].parts;
        parts.iter().filter(|part| !matches!(**part, NOT_YET | OVER)).for_each(|part| {
            self.parts.remove(*part as usize);
        });
        self.close(open);
    }
}

/// In a checkpoint.
impl Collectives {
    /// How far the parts have come in their schedules, by key.
    pub(crate) fn positions(&self) -> Vec<(u32, [u32; 4])> {
        let position = |(at, part): (usize, &Part)| Some((at as u32, part.cursor.as_ref()?.position()));
        self.parts.iter().filter_map(position).collect()
    }

    /// Takes over what a checkpoint has; `None` if it contradicts itself.
    pub(crate) fn restore(
        &mut self,
        (open, parts, groups, unfinished): (Slab<Open>, Slab<Part>, Slab<Group>, u64),
        positions: &[(u32, [u32; 4])],
    ) -> Option<()> {
        (self.open, self.parts, self.groups, self.unfinished) = (open, parts, groups, unfinished);
        for &(at, position) in positions {
            let part = self.parts.get(at as usize)?;
            let open = self.open.get(part.open as usize)?;
            let ranks = open.parts.len() as u32;
            let member =
                Member { operation: open.operation, ranks, rank: part.rank, root: open.root, unit: 1 };
            let sizes = match (&open.event, &open.blocks) {
                (None, _) => part.sizes.sizes(open),
                (Some(_), Some(blocks)) => Sizes::Blocks(blocks),
                (Some(_), None) => {
                    let [send, recv] = part.sizes.sums();
                    Sizes::from_sums(open.operation, ranks, send, recv)
                }
            };
            let cursor = Cursor::new(member, open.choice, sizes).ok()?.moved_to(position)?;
            self.parts.get_mut(at as usize)?.cursor = Some(cursor);
        }
        Some(())
    }

    /// Nothing is in progress.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(std::mem::take(&mut self.table), self.events.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_small() {
        assert!(size_of::<Part>() <= 264, "{}", size_of::<Part>());
    }

    #[test]
    fn a_group_knows_its_ranks() {
        let group = |members: &[u32]| Group::new(members.iter().copied().map(Rank).collect(), |_| true);
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
