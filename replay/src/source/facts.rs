//! What only the members' records together say of a collective: who is the root of a rooted operation, and how large
//! each member's block is where each names its own.

use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, Rank};
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::LocalCollective;

/// What is known of a collective when its first member enters it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The member whose amounts say that it is the root, if there is one.
    pub(crate) root: Option<Rank>,
    /// Blocks by task, in no order; of operations of which [`Operation::own_block`] knows one.
    pub(crate) blocks: Vec<(Rank, u64)>,
}

/// What is asked of a collective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) id: CollectiveId,
    pub(crate) operation: Operation,
    /// Members of its communicator, by communicator rank.
    pub(crate) members: &'a [Rank],
    /// The root, where the member that asks knows it: then nobody else's record is needed for it.
    pub(crate) root: Option<Rank>,
}

impl Question<'_> {
    /// Whether every member's block is wanted.
    pub(crate) fn of_blocks(&self) -> bool {
        self.operation.own_block(Default::default()).is_some()
    }

    /// Blocks by task, from those in the order of world ranks.
    pub(crate) fn blocks_by_world_rank(&self, blocks: Vec<u64>) -> Vec<(Rank, u64)> {
        let mut tasks = self.members.to_vec();
        tasks.sort_unstable();
        tasks.into_iter().zip(blocks).collect()
    }
}

/// The facts of the collectives whose records were seen. [`Seen::ask`] lets an entry go when all members were
/// seen, so that the table holds the collectives in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    open: HashMap<CollectiveId, Open>,
}

#[derive(Clone, Debug, Default)]
struct Open {
    facts: Facts,
    seen: u32,
    /// Number of members, once all that was asked is known.
    members: Option<u32>,
}

impl Seen {
    /// Takes note of one member's record.
    pub(crate) fn see(&mut self, part: &LocalCollective, codes: &OpCodes) {
        let Some(operation) = codes.operation(part.op) else { return };
        let block = operation.own_block(part.amounts);
        if block.is_none() && !operation.is_rooted() {
            return;
        }
        let open = self.open.entry(part.id).or_default();
        open.seen += 1;
        if operation.is_root(part.amounts) {
            open.facts.root.get_or_insert(part.task);
        }
        if let Some(block) = block {
            open.facts.blocks.push((part.task, block.0));
        }
        if open.members.is_some_and(|members| open.seen >= members) {
            self.open.remove(&part.id);
        }
    }

    /// The facts; `None` as long as more records have to be seen.
    pub(crate) fn ask(&mut self, question: &Question<'_>) -> Option<Facts> {
        let open = self.open.entry(question.id).or_default();
        let members = question.members.len() as u32;
        if open.seen >= members {
            return Some(self.take(question.id));
        }
        let root = open.facts.root;
        if question.of_blocks() || root.or(question.root).is_none() {
            return None;
        }
        open.members = Some(members);
        Some(Facts { root, blocks: Vec::new() })
    }

    /// The facts from what was seen, when no more records will come.
    pub(crate) fn take(&mut self, id: CollectiveId) -> Facts {
        self.open.remove(&id).unwrap_or_default().facts
    }

    /// The facts from what was seen, for a table that is complete and shared.
    pub(crate) fn look_up(&self, id: CollectiveId) -> Facts {
        self.open.get(&id).map(|open| open.facts.clone()).unwrap_or_default()
    }
}
