//! Places of messages in channels that sender and receiver compute independently, each from its own calls.
//!
//! Messages between two ranks on a communicator with a tag (a channel) arrive in the order in which they were sent: the n-th send and
//! the n-th receive of a channel belong to the same message. Its id is a hash of the channel and n. Ranks can therefore be read one
//! after the other without matching their calls. An id has 64 bits: among ten million messages two share one with a probability of
//! three in a million.

use std::collections::HashMap;
use vef_format::capture::Group;
use vef_format::capture::event::{Communicator, Members, Origin};
use vef_format::ids::{CommId, CommRank, Rank};

/// Mixes a value into a hash, as SplitMix64 does.
fn mix(hash: u64, value: u64) -> u64 {
    let mut mixed = (hash ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn hash(values: &[u64]) -> u64 {
    hash_all(values.iter().copied())
}

fn hash_all(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, mix)
}

/// Of the members in canonical form.
fn hash_members(members: Members<'_>) -> u64 {
    match members {
        Members::All => 0,
        // A stride means nothing to a single member.
        Members::Strided { first, count: 1, .. } => hash(&[1, first.0.into()]),
        Members::Strided { first, stride, count } => hash(&[count.into(), first.0.into(), stride as u64]),
        Members::List(list) => {
            hash_all([list.len() as u64].into_iter().chain(list.iter().map(|rank| rank.0.into())))
        }
    }
}

/// A message, by its channel and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// A hash of the communicator, both ranks and the tag.
    pub(crate) channel: u64,
    /// From 1.
    pub(crate) number: u64,
}

impl Place {
    /// One number for it, never 0.
    pub(crate) fn id(self) -> u64 {
        mix(self.channel, self.number).max(1)
    }
}

/// The channels of one rank, with the number of messages of each.
#[derive(Debug)]
pub(crate) struct Channels {
    rank: Rank,
    tasks: u32,
    /// A hash, and the peers.
    communicators: HashMap<CommId, (u64, Group)>,
    /// By the hash of the channel.
    counts: HashMap<u64, u64>,
}

impl Channels {
    /// No channels: the rank has no communicator yet.
    pub(crate) fn new(rank: Rank, tasks: u32) -> Self {
        Self { rank, tasks, communicators: HashMap::new(), counts: HashMap::new() }
    }

    /// Adds a communicator.
    pub(crate) fn add(&mut self, communicator: &Communicator<'_>) {
        if communicator.foreign {
            return;
        }
        let parent = |id: CommId| self.communicators.get(&id).map_or(0, |(hash, _)| *hash);
        let origin = match communicator.origin {
            Origin::World => hash(&[1]),
            Origin::SelfOnly => hash(&[2, self.rank.0.into()]),
            Origin::Child { parent: id, ordinal } => hash(&[3, parent(id), ordinal.into()]),
            Origin::Group { parent: id, tag, ordinal } => hash(&[4, parent(id), tag as u64, ordinal.into()]),
            Origin::Unseen { ordinal } => hash(&[5, ordinal.into()]),
        };
        let group = |members| Group::new(members, self.tasks).unwrap_or_default();
        let (members, peers) = (group(communicator.members), group(communicator.peers()));
        let [own, others] = [&members, &peers].map(|group| hash_members(group.members()));
        // Both groups of an inter-communicator compute the same number.
        let members = if communicator.is_inter() { hash(&[own.min(others), own.max(others)]) } else { own };
        self.communicators.insert(communicator.id, (mix(origin, members), peers));
    }

    /// The world rank of a peer.
    pub(crate) fn member(&self, comm: CommId, rank: CommRank) -> Option<Rank> {
        self.communicators.get(&comm)?.1.get(rank)
    }

    /// The next message to another rank.
    pub(crate) fn send(&mut self, comm: CommId, to: CommRank, tag: i32) -> Option<Place> {
        let to = self.member(comm, to)?;
        self.next(comm, [self.rank, to], tag, 0)
    }

    /// The next message from another rank.
    pub(crate) fn receive(&mut self, comm: CommId, from: CommRank, tag: i32) -> Option<Place> {
        let from = self.member(comm, from)?;
        self.next(comm, [from, self.rank], tag, 1)
    }

    fn next(&mut self, comm: CommId, [src, dst]: [Rank; 2], tag: i32, end: u64) -> Option<Place> {
        let (communicator, _) = self.communicators.get(&comm)?;
        let channel = hash(&[*communicator, src.0.into(), dst.0.into(), tag as u64]);
        // Sends and receives are counted apart: of messages to itself a rank has both.
        let count = self.counts.entry(channel.wrapping_add(end)).or_default();
        *count += 1;
        Some(Place { channel, number: *count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::capture::event::{Members, Remote};

    fn communicator(id: u32, origin: Origin, members: Members<'_>) -> Communicator<'_> {
        Communicator { id: CommId(id), origin, split: None, members, remote: Remote::None, foreign: false }
    }

    #[test]
    fn both_ends_compute_the_same_id() {
        let (mut one, mut two) = (Channels::new(Rank(1), 8), Channels::new(Rank(5), 8));
        let child = Origin::Child { parent: CommId(0), ordinal: 0 };
        // The same communicator, with another number and another form of its members; and another one of the same call.
        one.add(&communicator(0, Origin::World, Members::All));
        one.add(&communicator(3, child, Members::Strided { first: Rank(1), stride: 4, count: 2 }));
        two.add(&communicator(0, Origin::World, Members::All));
        two.add(&communicator(7, child, Members::List(&[Rank(1), Rank(5)])));
        let sent: Vec<_> = (0..3).map(|_| one.send(CommId(3), CommRank(1), 9).unwrap()).collect();
        let received: Vec<_> = (0..3).map(|_| two.receive(CommId(7), CommRank(0), 9).unwrap()).collect();
        assert_eq!(sent, received);
        let others = [
            one.send(CommId(3), CommRank(1), 10),
            one.send(CommId(0), CommRank(5), 9),
            one.send(CommId(0), CommRank(4), 9),
            two.send(CommId(7), CommRank(0), 9),
            one.send(CommId(0), CommRank(1), 9),
        ];
        let mut all: Vec<u64> = sent.into_iter().chain(others.into_iter().flatten()).map(Place::id).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
        assert_eq!(one.receive(CommId(0), CommRank(1), 9), others[4], "to itself");
        assert_eq!(one.send(CommId(3), CommRank(2), 9), None);
        assert_eq!(one.send(CommId(4), CommRank(0), 9), None);
    }
}
