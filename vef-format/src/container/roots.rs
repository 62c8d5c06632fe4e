//! The roots of collectives, which a writer works out on the way: of a rooted operation whoever enters first has to
//! know the root, and finding its record may take reading far ahead.

use crate::ids::{CommId, Rank};
use crate::operation::OpCodes;
use crate::record::LocalCollective;
use std::collections::HashMap;

/// Collectives of which not all members have been written.
#[derive(Debug)]
pub(super) struct Roots {
    codes: OpCodes,
    /// Members, and the first of them.
    communicators: HashMap<CommId, (u32, Rank)>,
    open: HashMap<u64, Open>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    seen: u32,
    root: Option<Rank>,
    first: Option<Rank>,
}

impl Roots {
    pub(super) fn new(codes: &OpCodes) -> Self {
        Self { codes: codes.clone(), communicators: HashMap::new(), open: HashMap::new() }
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

    /// Takes note of a part; gives the collective's root with its last part: whoever's amounts say so, or who was
    /// told to be it, or communicator rank 0.
    #[inline]
    pub(super) fn see(&mut self, part: &LocalCollective) -> Option<Rank> {
        let operation = self.codes.operation(part.op).filter(|operation| operation.is_rooted())?;
        let &(members, first) = self.communicators.get(&part.comm)?;
        let open = self.open.entry(part.id.0).or_default();
        open.seen += 1;
        let decisive = if operation.root_sends() { part.amounts.send } else { part.amounts.recv };
        if decisive.0 > 0 {
            open.root.get_or_insert(part.task);
        }
        open.first = Some(first);
        if open.seen < members {
            return None;
        }
        let root = open.root.unwrap_or(first);
        self.open.remove(&part.id.0);
        Some(root)
    }

    /// What is known of those that some member has not entered, by id.
    pub(super) fn rest(&mut self) -> Vec<(u64, Rank)> {
        let known = |(id, open): (u64, Open)| Some((id, open.root.or(open.first)?));
        let mut rest: Vec<_> = self.open.drain().filter_map(known).collect();
        rest.sort_unstable();
        rest
    }
}
