//! What only all members' records together say of a collective: the root of a rooted operation, and the members' blocks
//! where these differ. Whoever enters first has to know it, and finding the others' records may take reading far
//! ahead: a writer works it out on the way.

use crate::ids::{CommId, Rank};
use crate::operation::OpCodes;
use crate::record::LocalCollective;
use std::collections::HashMap;

/// Collectives of which not all members have been written.
#[derive(Debug)]
pub(super) struct Facts {
    codes: OpCodes,
    /// Members, and the first of them.
    communicators: HashMap<CommId, (u32, Rank)>,
    open: HashMap<u64, Open>,
    /// Whether roots are wanted.
    roots: bool,
}

#[derive(Debug, Default)]
struct Open {
    seen: u32,
    root: Option<Rank>,
    first: Option<Rank>,
    /// Blocks, by task.
    blocks: Vec<(Rank, u64)>,
}

/// What the last part of a collective completes.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The root of a rooted operation.
    pub(super) root: Option<Rank>,
    /// The members' blocks in the order of their world ranks; empty where the operation has none.
    pub(super) blocks: Vec<u64>,
}

impl Facts {
    pub(super) fn new(codes: &OpCodes) -> Self {
        Self { codes: codes.clone(), communicators: HashMap::new(), open: HashMap::new(), roots: true }
    }

    /// The roots are known from elsewhere.
    pub(super) fn leave_roots(&mut self) {
        self.roots = false;
    }

    pub(super) fn communicator(&mut self, id: CommId, members: &[Rank]) {
        if let Some(&first) = members.first() {
            self.communicators.insert(id, (members.len() as u32, first));
        }
    }

    /// The root of a collective was said.
    pub(super) fn told(&mut self, id: u64, root: Rank) {
        self.open.entry(id).or_default().root = Some(root);
    }

    /// Takes note of a part; gives what is known of the collective with its last part. The root is the member whose amounts say so, or
    /// the one that was told, or communicator rank 0.
    #[inline]
    pub(super) fn see(&mut self, part: &LocalCollective) -> Option<Known> {
        let operation = self.codes.operation(part.op)?;
        let block = operation.own_block(part.amounts);
        if block.is_none() && !operation.is_rooted() {
            return None;
        }
        let &(members, first) = self.communicators.get(&part.comm)?;
        let open = self.open.entry(part.id.0).or_default();
        open.seen += 1;
        if let Some(block) = block {
            open.blocks.push((part.task, block.0));
        }
        if operation.is_rooted() && self.roots {
            if operation.is_root(part.amounts) {
                open.root.get_or_insert(part.task);
            }
            open.first = Some(first);
        }
        if open.seen < members {
            return None;
        }
        let mut open = self.open.remove(&part.id.0)?;
        open.blocks.sort_unstable();
        let blocks = open.blocks.into_iter().map(|(_, bytes)| bytes).collect();
        Some(Known { root: open.root.or(open.first), blocks })
    }

    /// The roots, as far as they are known, of collectives that some member has not entered, by id.
    pub(super) fn rest(&mut self) -> Vec<(u64, Rank)> {
        let known = |(id, open): (u64, Open)| Some((id, open.root.or(open.first)?));
        let mut rest: Vec<_> = self.open.drain().filter_map(known).collect();
        rest.sort_unstable();
        rest
    }
}
