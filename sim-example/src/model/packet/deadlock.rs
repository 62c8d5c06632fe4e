//! Deadlocks that the check of the routes at the start has missed.

use std::iter::successors;

use hashbrown::{HashMap, HashSet};

use super::parts::Request;
use super::state::Packets;
use crate::routing::channels::Channel;
use crate::topology::LinkId;

impl Packets<'_> {
    /// When no event is left: full channels of which each holds a packet that waits for the next one, and the last for the first.
    pub(super) fn circle(&self) -> Option<Vec<Channel>> {
        // A packet waits for all channels of its range, which are all full: one of them is enough.
        let awaited: HashMap<u32, u32> = self
            .links
            .iter()
            .flat_map(|link| &link.waiting)
            .map(|&Request { slot, buffer, vcs, .. }| {
                (buffer, self.packets[slot as usize].link * self.vcs + u32::from(vcs.0))
            })
            .collect();
        let channel = |number: u32| (self.whole(LinkId(number / self.vcs)), (number % self.vcs) as u8);
        let next = |at: &u32| awaited.get(at).copied();
        let mut starts: Vec<u32> = awaited.keys().copied().collect();
        starts.sort_unstable();
        starts.into_iter().find_map(|start| {
            let mut seen = HashSet::new();
            let again = successors(Some(start), next).find(|&at| !seen.insert(at))?;
            let circle = successors(Some(again), |at| next(at).filter(|&at| at != again));
            Some(circle.map(channel).collect())
        })
    }
}
