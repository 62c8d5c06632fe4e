//! Who is the root of a rooted collective, from the amounts of its members' records.

use hashbrown::HashMap;
use vef_format::ids::{CollectiveId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::LocalCollective;

/// The roots of the collectives whose records were seen; an entry goes when it was asked for and all
/// members were seen, so that the table holds the collectives in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots {
    open: HashMap<CollectiveId, Open>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    root: Option<Rank>,
    seen: u32,
    /// Number of members, once asked for.
    members: Option<u32>,
}

impl Roots {
    /// Takes note of one member's record.
    pub(crate) fn see(&mut self, part: &LocalCollective, codes: &OpCodes) {
        let Some(operation) = codes.operation(part.op).filter(|operation| operation.is_rooted()) else {
            return;
        };
        let open = self.open.entry(part.id).or_default();
        open.seen += 1;
        let decisive = if operation.root_sends() { part.amounts.send } else { part.amounts.recv };
        if decisive.0 > 0 {
            open.root.get_or_insert(part.task);
        }
        if open.members.is_some_and(|members| open.seen >= members) {
            self.open.remove(&part.id);
        }
    }

    /// The root, as far as it is known: `None` as long as more records have to be seen.
    pub(crate) fn known(
        &mut self,
        id: CollectiveId,
        members: u32,
        word: Option<Rank>,
    ) -> Option<Option<Rank>> {
        let open = self.open.entry(id).or_default();
        open.root = open.root.or(word);
        let (root, all_seen) = (open.root, open.seen >= members);
        if root.is_none() && !all_seen {
            return None;
        }
        open.members = Some(members);
        if all_seen {
            self.open.remove(&id);
        }
        Some(root)
    }

    /// The root from what was seen, when no more records will come.
    pub(crate) fn last_word(&mut self, id: CollectiveId) -> Option<Rank> {
        self.open.remove(&id).and_then(|open| open.root)
    }

    /// The root from what was seen, for a table that is complete and shared.
    pub(crate) fn get(&self, id: CollectiveId) -> Option<Rank> {
        self.open.get(&id).and_then(|open| open.root)
    }
}
