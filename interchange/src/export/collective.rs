//! The messages of one task's part of a collective.

use super::error::ExportProblem;
use super::loaded::{Collective, CollectiveIndex, Loaded};
use collectives::choose::Table;
use collectives::{Counts, Cursor, Member, Sizes};
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, Sizing};

/// A step, with ranks of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Posts a send.
    Send { to: u32, bytes: u64 },
    /// Posts a receive.
    Receive { from: u32, bytes: u64 },
    /// Waits for all that was posted since the last wait.
    Wait,
}

/// The rest of the steps of a task's part of a collective.
pub(crate) struct Part<'a> {
    cursor: Cursor,
    members: &'a [Rank],
    blocks: Option<Counts>,
    pairs: Option<[Counts; 2]>,
    sums: Sizes<'static>,
    /// Who and where the task is.
    pub(crate) member: Member,
}

impl<'a> Part<'a> {
    /// The part that is record `number` of `task`, by the algorithms of a table.
    pub(crate) fn new(
        trace: &'a Loaded,
        (task, number): (Rank, u64),
        index: CollectiveIndex,
        amounts: Amounts,
        table: &Table,
    ) -> Result<Self, ExportProblem> {
        let all = trace.collective(index);
        let Collective { id, comm, operation, .. } = *all;
        let no_member = ExportProblem::NotAMember { task: task.0, id, comm };
        let place = |task| trace.rank_in(comm, task);
        let (Some(members), Some(rank)) = (trace.members.get(&comm), place(task)) else {
            return Err(no_member);
        };
        let root = all.root.and_then(place).unwrap_or(0);
        let member = Member { operation, ranks: members.len() as u32, rank, root, unit: 1 };
        let error = |error| ExportProblem::Collective { id, error };
        let mut blocks = blocks(trace, all, amounts, members.len()).transpose().map_err(error)?;
        let rows = (operation.sizing() == Sizing::Pairs)
            .then(|| trace.counts.get(&(task.0, number)))
            .flatten()
            .map(|rows| rows.each_ref().map(|row| Counts::new(row.iter().copied())));
        let pairs = match rows {
            Some([sent, received]) => Some([sent.map_err(error)?, received.map_err(error)?]),
            None => None,
        };
        let sums = Sizes::from_sums(operation, member.ranks, amounts.send.0, amounts.recv.0);
        let common = blocks.as_ref().map_or(sums, Sizes::Blocks);
        let choice = table.choose(&member, common);
        if choice.algorithm.sorts() {
            let sort = |blocks: Counts| blocks.sorted(member.root, choice.order);
            blocks = blocks.map(sort).transpose().map_err(error)?;
        }
        let cursor = Cursor::new(member, choice, sizes(&blocks, &pairs, sums)).map_err(error)?;
        Ok(Self { cursor, members, blocks, pairs, sums, member })
    }

    /// The next step; `None` at the end, which waits like [`Step::Wait`].
    pub(crate) fn next(&mut self) -> Option<Step> {
        loop {
            let world = |rank: u32| self.members[rank as usize].0;
            return Some(match self.cursor.next(sizes(&self.blocks, &self.pairs, self.sums))? {
                collectives::Step::Send { to, data } => Step::Send { to: world(to), bytes: data.len },
                collectives::Step::Recv { from, data, .. } => {
                    Step::Receive { from: world(from), bytes: data.len }
                }
                collectives::Step::Local { .. } => continue,
                collectives::Step::Wait => Step::Wait,
            });
        }
    }
}

/// The block of each member, of operations in which each names its own.
fn blocks(
    trace: &Loaded,
    all: &Collective,
    amounts: Amounts,
    members: usize,
) -> Option<Result<Counts, collectives::Error>> {
    all.operation.own_block(amounts)?;
    let mut bytes = vec![0; members];
    for &(task, amounts) in &all.parts {
        if let (Some(rank), Some(own)) = (trace.rank_in(all.comm, task), all.operation.own_block(amounts)) {
            bytes[rank as usize] = own.0;
        }
    }
    Some(Counts::new(bytes))
}

fn sizes<'a>(blocks: &'a Option<Counts>, pairs: &'a Option<[Counts; 2]>, sums: Sizes<'static>) -> Sizes<'a> {
    match (blocks, pairs) {
        (Some(blocks), _) => Sizes::Blocks(blocks),
        (None, Some([send, recv])) => Sizes::Pairs { send, recv },
        (None, None) => sums,
    }
}
