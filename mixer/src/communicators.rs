//! Identifies communicators across tasks.
//!
//! Each task numbers its communicators on its own. Two tasks have the same communicator if it was created by the same
//! call on the same parent with the same members ([`Origin`]). The parent is identified in the same way; interning
//! turns this recursive identity into one number.

use crate::bytes::{Encoder, Garbled, Reader};
use crate::error::{MixError, Problem};
use hashbrown::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vef_format::capture::Group;
use vef_format::capture::event::{Members, Origin};
use vef_format::ids::{CommId, Rank};

/// Number of a communicator within one mix. It depends on the scheduling of threads, so the output must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity(pub(crate) u32);

/// Marks the communicator of a lowered collective's messages.
const LOWERED: u32 = 1 << 31;

impl Identity {
    /// The communicator that the messages of its lowered collectives use.
    pub(crate) fn lowered(self) -> Self {
        Self(self.0 | LOWERED)
    }
}

/// Maps this process's communicator numbers to the common numbers of all processes, and back.
#[derive(Debug)]
pub(crate) struct Names {
    common: Vec<u32>,
    own: HashMap<u32, u32>,
}

impl Names {
    /// `common[own]` is the common number of communicator `own`.
    pub(crate) fn new(common: Vec<u32>) -> Self {
        let own = (0..).zip(&common).map(|(own, &common)| (common, own)).collect();
        Self { common, own }
    }

    /// The common number of each own communicator.
    pub(crate) fn common(&self) -> &[u32] {
        &self.common
    }

    /// The common number of an own communicator, lowered or not.
    pub(crate) fn of_own(&self, own: u32) -> u32 {
        // All own communicators have common numbers.
        self.common.get((own & !LOWERED) as usize).map_or(u32::MAX, |common| common | own & LOWERED)
    }

    /// The own number of a communicator; `None` if this process does not have it.
    pub(crate) fn own(&self, common: u32) -> Option<u32> {
        self.own.get(&(common & !LOWERED)).map(|own| own | common & LOWERED)
    }
}

/// How a communicator was created; the parent by identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Birth {
    World,
    SelfOnly,
    Child { parent: Identity, ordinal: u32 },
    Group { parent: Identity, tag: i32, ordinal: u32 },
    Unseen { ordinal: u32 },
}

/// Limit on identities; the other numbers are for lowered collectives.
const MOST: usize = LOWERED as usize;

/// All communicators of a capture.
#[derive(Debug)]
pub(crate) struct Communicators {
    tasks: u32,
    most: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    identities: HashMap<(Birth, Arc<Group>), Identity>,
    known: Vec<Known>,
    births: Vec<Birth>,
}

/// A communicator as all tasks together describe it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The members.
    pub(crate) group: Arc<Group>,
    /// The lowest task that has it and that task's number for it: the order of communicators in the trace.
    pub(crate) order: (Rank, u32),
    /// Whether it is `MPI_COMM_WORLD`.
    pub(crate) world: bool,
}

impl Communicators {
    /// An empty table, for a run of `tasks` tasks.
    pub(crate) fn new(tasks: u32) -> Self {
        Self::with_room(tasks, MOST)
    }

    /// Like [`Communicators::new`], with at most `most` communicators.
    fn with_room(tasks: u32, most: usize) -> Self {
        Self { tasks, most, table: Mutex::default() }
    }

    /// Returns the identity and the members of the communicator that `task` calls `number`. `parent` returns the identity
    /// of an earlier communicator of the task.
    pub(crate) fn intern(
        &self,
        task: Rank,
        number: u32,
        origin: Origin,
        members: Members<'_>,
        mut parent: impl FnMut(CommId) -> Option<Identity>,
    ) -> Result<(Identity, Arc<Group>), Problem> {
        let group = Group::new(members, self.tasks).ok_or(Problem::Members(number))?;
        let mut parent_of = |comm: CommId| parent(comm).ok_or(Problem::UnknownCommunicator(comm.0));
        let birth = match origin {
            Origin::World => Birth::World,
            Origin::SelfOnly => Birth::SelfOnly,
            Origin::Child { parent, ordinal } => Birth::Child { parent: parent_of(parent)?, ordinal },
            Origin::Group { parent, tag, ordinal } => {
                Birth::Group { parent: parent_of(parent)?, tag, ordinal }
            }
            Origin::Unseen { ordinal } => Birth::Unseen { ordinal },
        };
        let group = Arc::new(group);
        let mut table = self.lock();
        let interned = table.intern(birth, group, (task, number));
        if table.known.len() > self.most { Err(Problem::TooManyCommunicators(number)) } else { Ok(interned) }
    }

    /// All communicators, by identity.
    pub(crate) fn known(&self) -> Vec<Known> {
        self.lock().known.clone()
    }

    /// Encodes all communicators for other processes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let table = self.lock();
        let mut encoder = Encoder::default();
        for (known, birth) in table.known.iter().zip(&table.births) {
            birth.encode(&mut encoder);
            encode_members(known.group.members(), &mut encoder);
            encoder.put(known.order.0.0.into());
            encoder.put(known.order.1.into());
        }
        encoder.0
    }

    /// Adds the communicators that another process encoded; returns the identity here of each identity there.
    pub(crate) fn import_peer(&self, bytes: &[u8]) -> Result<Vec<u32>, MixError> {
        let mut table = self.lock();
        let mut reader = Reader::new(bytes);
        let mut here = Vec::new();
        while reader.more() {
            let birth = Birth::decode(&mut reader, &here)?;
            let group = Arc::new(decode_group(&mut reader)?);
            let order = (Rank(reader.get_u32()?), reader.get_u32()?);
            here.push(table.intern(birth, group, order).0.0);
            if table.known.len() > self.most {
                return Err(MixError::TooMany("communicators"));
            }
        }
        Ok(here)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Recover from poisoning: the table is consistent even if another thread panicked.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn intern(&mut self, birth: Birth, group: Arc<Group>, order: (Rank, u32)) -> (Identity, Arc<Group>) {
        let next = Identity(self.known.len() as u32);
        let identity = *self.identities.entry((birth, group.clone())).or_insert(next);
        if identity == next {
            self.known.push(Known { group, order, world: birth == Birth::World });
            self.births.push(birth);
        }
        let known = &mut self.known[identity.0 as usize];
        known.order = known.order.min(order);
        (identity, known.group.clone())
    }
}

impl Birth {
    fn encode(&self, encoder: &mut Encoder) {
        let (kind, parent, tag, ordinal) = match *self {
            Self::World => (0, 0, 0, 0),
            Self::SelfOnly => (1, 0, 0, 0),
            Self::Child { parent, ordinal } => (2, parent.0, 0, ordinal),
            Self::Group { parent, tag, ordinal } => (3, parent.0, tag, ordinal),
            Self::Unseen { ordinal } => (4, 0, 0, ordinal),
        };
        let fields = [kind, parent.into(), tag as u32 as u64, ordinal.into()];
        fields.into_iter().for_each(|value| encoder.put(value));
    }

    /// `here` are the identities of the communicators decoded before; a parent is one of them.
    fn decode(reader: &mut Reader<'_>, here: &[u32]) -> Result<Self, Garbled> {
        let (kind, at) = (reader.get()?, reader.get_u32()?);
        let (tag, ordinal) = (reader.get_u32()? as i32, reader.get_u32()?);
        let parent = || here.get(at as usize).map(|&at| Identity(at)).ok_or(Garbled);
        Ok(match kind {
            0 => Self::World,
            1 => Self::SelfOnly,
            2 => Self::Child { parent: parent()?, ordinal },
            3 => Self::Group { parent: parent()?, tag, ordinal },
            4 => Self::Unseen { ordinal },
            _ => return Err(Garbled),
        })
    }
}

fn encode_members(members: Members<'_>, encoder: &mut Encoder) {
    match members {
        Members::All => unreachable!("a group is in canonical form"),
        Members::Strided { first, stride, count } => {
            encoder.put(0);
            encoder.put(first.0.into());
            encoder.put_signed(stride);
            encoder.put(count.into());
        }
        Members::List(list) => {
            encoder.put(list.len() as u64);
            list.iter().for_each(|rank| encoder.put(rank.0.into()));
        }
    }
}

fn decode_group(reader: &mut Reader<'_>) -> Result<Group, Garbled> {
    let list: Vec<Rank>;
    let members = match reader.get()? {
        0 => {
            let (first, stride) = (Rank(reader.get_u32()?), reader.get_signed()?);
            Members::Strided { first, stride, count: reader.get_u32()? }
        }
        count => {
            list = (0..count).map(|_| reader.get_u32().map(Rank)).collect::<Result<_, _>>()?;
            Members::List(&list)
        }
    };
    Group::new(members, u32::MAX).ok_or(Garbled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_birth_is_the_same_communicator() {
        let all = Communicators::new(4);
        let none = |_| None;
        let (world, _) = all.intern(Rank(0), 0, Origin::World, Members::All, none).unwrap();
        let (other, _) =
            all.intern(Rank(1), 9, Origin::World, Members::List(&[0, 1, 2, 3].map(Rank)), none).unwrap();
        assert_eq!(world, other);
        let child = |task, number, ordinal, members: &[Rank]| {
            let origin = Origin::Child { parent: CommId(0), ordinal };
            all.intern(Rank(task), number, origin, Members::List(members), |_| Some(world)).unwrap().0
        };
        let even = child(2, 5, 0, &[0, 2].map(Rank));
        assert_eq!(even, child(0, 3, 0, &[0, 2].map(Rank)));
        assert_ne!(even, child(1, 3, 0, &[1, 3].map(Rank)));
        assert_ne!(even, child(0, 4, 1, &[0, 2].map(Rank)));
        let known = all.known();
        // Another process that added them in another order.
        let other = Communicators::new(4);
        other.intern(Rank(3), 1, Origin::SelfOnly, Members::List(&[3].map(Rank)), none).unwrap();
        let there = other.import_peer(&all.encode()).unwrap();
        assert_eq!(there[world.0 as usize], 1);
        assert_eq!(
            other.import_peer(&other.encode()).unwrap(),
            (0..known.len() as u32 + 1).collect::<Vec<_>>()
        );
        assert_eq!(other.known()[there[even.0 as usize] as usize].order, (Rank(0), 3));
        assert_eq!(known[even.0 as usize].order, (Rank(0), 3));
        assert_eq!(known[world.0 as usize].order, (Rank(0), 0));
    }

    #[test]
    fn more_than_there_are_numbers_for_are_refused() {
        let none = |_| None;
        let all = Communicators::with_room(4, 1);
        let world =
            |all: &Communicators, task, number| all.intern(task, number, Origin::World, Members::All, none);
        let alone = |all: &Communicators, task, number| {
            all.intern(Rank(task), number, Origin::SelfOnly, Members::List(&[task].map(Rank)), none)
        };
        // A known communicator needs no further number.
        assert_eq!(world(&all, Rank(0), 0).unwrap().0, world(&all, Rank(1), 5).unwrap().0);
        let peer = Communicators::new(4);
        alone(&peer, 2, 1).unwrap();
        assert!(matches!(all.import_peer(&peer.encode()), Err(MixError::TooMany("communicators"))));
        assert_eq!(alone(&all, 3, 7).unwrap_err(), Problem::TooManyCommunicators(7));
    }

    #[test]
    fn a_child_of_an_unknown_parent_is_refused() {
        let all = Communicators::new(2);
        let origin = Origin::Child { parent: CommId(7), ordinal: 0 };
        let error = all.intern(Rank(1), 8, origin, Members::All, |_| None).unwrap_err();
        assert_eq!(error, Problem::UnknownCommunicator(7));
    }
}
