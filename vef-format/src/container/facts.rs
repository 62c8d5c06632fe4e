//! Facts on a collective that only the records of all members together show: the root of a rooted operation, and the
//! members' blocks where these differ. A replay needs them when the first member enters, and finding the other members'
//! records may require reading far ahead; so the writer collects them.

use crate::ids::{CommId, Rank};
use crate::operation::{Amounts, OpCode, OpCodes};
use crate::raw::Raw;
use crate::units::Bytes;
use std::collections::HashMap;

/// Collectives of which some members' records are missing so far.
#[derive(Debug)]
pub(super) struct Facts {
    codes: OpCodes,
    /// Number of members, and the first of them.
    communicators: HashMap<CommId, (u32, Rank)>,
    open: HashMap<u64, Open>,
    /// Whether to look for roots.
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

/// The facts that the last part of a collective completes.
#[derive(Debug, Default)]
pub(super) struct Complete {
    /// The root of a rooted operation.
    pub(super) root: Option<Rank>,
    /// The members' blocks by world rank; empty if the operation has none.
    pub(super) blocks: Vec<u64>,
}

impl Facts {
    pub(super) fn new(codes: &OpCodes) -> Self {
        Self { codes: codes.clone(), communicators: HashMap::new(), open: HashMap::new(), roots: true }
    }

    /// Do not look for roots.
    pub(crate) fn leave_roots(&mut self) {
        self.roots = false;
    }

    pub(super) fn communicator(&mut self, id: CommId, members: &[Rank]) {
        if let Some(&first) = members.first() {
            self.communicators.insert(id, (members.len() as u32, first));
        }
    }

    /// Sets the root of a collective.
    pub(super) fn set_root(&mut self, id: u64, root: Rank) {
        self.open.entry(id).or_default().root = Some(root);
    }

    /// Takes a part; after the last one returns the facts. The root is the member whose amounts show it, the one that was set, or
    /// communicator rank 0.
    pub(super) fn see(&mut self, task: Rank, part: &Raw) -> Option<Complete> {
        let operation = self.codes.operation(OpCode(part.op))?;
        let amounts = Amounts { send: Bytes(part.bytes), recv: Bytes(part.recv) };
        let block = operation.own_block(amounts);
        if block.is_none() && !operation.is_rooted() {
            return None;
        }
        let &(members, first) = self.communicators.get(&CommId(part.to))?;
        let open = self.open.entry(part.id).or_default();
        open.seen += 1;
        if let Some(block) = block {
            open.blocks.push((task, block.0));
        }
        if operation.is_rooted() && self.roots {
            if operation.is_root(amounts) {
                open.root.get_or_insert(task);
            }
            open.first = Some(first);
        }
        if open.seen < members {
            return None;
        }
        let mut open = self.open.remove(&part.id)?;
        open.blocks.sort_unstable();
        let blocks = open.blocks.into_iter().map(|(_, bytes)| bytes).collect();
        Some(Complete { root: open.root.or(open.first), blocks })
    }

    /// The known roots of incomplete collectives, by id.
    pub(super) fn rest(&mut self) -> Vec<(u64, Rank)> {
        let known = |(id, open): (u64, Open)| Some((id, open.root.or(open.first)?));
        let mut rest: Vec<_> = self.open.drain().filter_map(known).collect();
        rest.sort_unstable();
        rest
    }
}
