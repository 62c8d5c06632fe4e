//! Communicators: numbered when they are made or first used, described once.

use crate::handles::HandleMap;
use crate::lane::Lane;
use mpi_abi::handles;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use vef_format::capture::event::{Action, CallSlot, Communicator, Members, Origin, Remote, Split};
use vef_format::ids::{CommId, Rank};

/// What the fast path needs of a communicator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comm {
    pub(crate) id: CommId,
    /// Number of members; of an inter-communicator, of the local group.
    pub(crate) size: u32,
    /// This process's rank in it.
    pub(crate) rank: i32,
    /// Inter-communicators, and those with members outside `MPI_COMM_WORLD`: counted, not translated.
    pub(crate) foreign: bool,
}

/// The communicators seen so far.
#[derive(Debug)]
pub(crate) struct Comms {
    known: HandleMap<Comm>,
    /// The one asked for last.
    last: (usize, Comm),
    next: u32,
    /// By communicator number: how many creating calls there were on it.
    children: Vec<u32>,
    /// How many communicators there were of each kind that is told apart by its members.
    alike: HashMap<Kin, u32>,
    /// How many neighbours a communicator with a topology has, as sources and as destinations.
    neighbours: HandleMap<(usize, usize)>,
}

/// What communicators have in common that only their order tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kin {
    /// Parent and tag of `Comm_create_group`.
    of: Option<(CommId, i32)>,
    /// A hash of the members.
    members: u64,
}

/// How a communicator came to be, as the creating call knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    /// Collectively over the parent: the how manyth such call on it.
    Child(CommId, u32),
    /// By `Comm_create_group`, with this tag.
    Group(CommId, i32),
    /// In another way, or unseen.
    Unseen,
}

/// Who is in a communicator.
struct Membership {
    ranks: Vec<Rank>,
    /// The other group: its ranks, or how many they are if some are outside.
    remote: Option<Result<Vec<Rank>, u32>>,
    foreign: bool,
}

impl Comms {
    pub(crate) fn new() -> Self {
        Self {
            known: HandleMap::new(),
            last: (0, Comm::default()),
            next: 0,
            children: Vec::new(),
            alike: HashMap::new(),
            neighbours: HandleMap::new(),
        }
    }

    /// Numbers and describes `MPI_COMM_WORLD`, be it that the program has none: others are described by its ranks.
    pub(crate) fn describe_world(&mut self, lane: &mut Lane) {
        let tracer = lane.tracer;
        let comm = Comm {
            id: CommId(self.next),
            size: tracer.tasks,
            rank: tracer.rank.0.try_into().unwrap_or(0),
            foreign: false,
        };
        let now = lane.now();
        let described = Communicator {
            id: comm.id,
            origin: Origin::World,
            split: None,
            members: Members::All,
            remote: None,
            foreign: false,
        };
        self.add(lane, tracer.mpi.abi().predefined.comm_world, comm, described, (now, now), CallSlot::NONE);
    }

    /// The communicator behind `handle`, which MPI has just accepted in a call of `lane`.
    #[inline(always)]
    pub(crate) fn get(&mut self, lane: &mut Lane, handle: usize) -> Comm {
        if self.last.0 == handle && handle != 0 {
            return self.last.1;
        }
        self.find(lane, handle)
    }

    #[inline(never)]
    fn find(&mut self, lane: &mut Lane, handle: usize) -> Comm {
        let found = match self.known.get(handle) {
            Some(known) => *known,
            None => self.discover(lane, handle),
        };
        self.last = (handle, found);
        found
    }

    /// One seen for the first time in use.
    #[cold]
    #[inline(never)]
    fn discover(&mut self, lane: &mut Lane, handle: usize) -> Comm {
        let now = lane.now();
        self.describe(lane, handle, None, Made::Unseen, None, (now, now), CallSlot::NONE)
    }

    /// Counts a creating call on `parent`.
    pub(crate) fn count_child(&mut self, parent: CommId) -> u32 {
        let counts = &mut self.children;
        if counts.len() <= parent.index() {
            counts.resize(parent.index() + 1, 0);
        }
        counts[parent.index()] += 1;
        counts[parent.index()] - 1
    }

    /// Numbers and describes the communicator `handle`, made between `times`. `like`: one with the same members that
    /// may be asked instead, where the new one must not be used yet.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "what a definition says")]
    pub(crate) fn describe(
        &mut self,
        lane: &mut Lane,
        handle: usize,
        like: Option<usize>,
        made: Made,
        split: Option<Split>,
        times: (u64, u64),
        call: CallSlot,
    ) -> Comm {
        let mpi = &lane.tracer.mpi;
        let predefined = &mpi.abi().predefined;
        // SAFETY: a handle that MPI has just given to the program or accepted from it.
        let asked = unsafe { handles::Comm::from_word(like.unwrap_or(handle)) };
        let Membership { ranks, remote, foreign } = membership(mpi, asked);
        let origin = match made {
            _ if handle == predefined.comm_self => Origin::SelfOnly,
            Made::Child(parent, ordinal) => Origin::Child { parent, ordinal },
            Made::Group(parent, tag) => {
                Origin::Group { parent, tag, ordinal: self.count_alike(Some((parent, tag)), &ranks) }
            }
            Made::Unseen => Origin::Unseen { ordinal: self.count_alike(None, &ranks) },
        };
        let rank = mpi.comm_rank(asked).unwrap_or(0);
        let comm = Comm { id: CommId(self.next), size: ranks.len() as u32, rank, foreign };
        let tasks = lane.tracer.tasks;
        let remote = remote.as_ref().map(|remote| match remote {
            Ok(ranks) => Remote::Inside(compact(ranks, tasks)),
            Err(size) => Remote::Outside(*size),
        });
        let members = compact(&ranks, tasks);
        let described = Communicator { id: comm.id, origin, split, members, remote, foreign };
        self.add(lane, handle, comm, described, times, call);
        comm
    }

    fn add(
        &mut self,
        lane: &mut Lane,
        handle: usize,
        comm: Comm,
        described: Communicator<'_>,
        times: (u64, u64),
        call: CallSlot,
    ) {
        self.next += 1;
        lane.put(times.0, times.1, &Action::Communicator(described), call);
        // Known to other threads only now that its record is written.
        self.known.insert(handle, comm);
    }

    /// The handle was freed and may come to mean another communicator.
    pub(crate) fn forget(&mut self, handle: usize) -> Option<Comm> {
        self.last = (0, Comm::default());
        self.neighbours.remove(handle);
        self.known.remove(handle)
    }

    /// How many neighbours the communicator behind `handle` has, as sources and as destinations.
    pub(crate) fn neighbours(&mut self, mpi: &mpi_abi::api::Mpi, handle: usize) -> (usize, usize) {
        if let Some(&known) = self.neighbours.get(handle) {
            return known;
        }
        // SAFETY: a handle that MPI has just accepted from the program.
        let asked = unsafe { handles::Comm::from_word(handle) };
        let found = mpi.comm_neighbours(asked).unwrap_or_default();
        self.neighbours.insert(handle, found);
        found
    }

    fn count_alike(&mut self, of: Option<(CommId, i32)>, ranks: &[Rank]) -> u32 {
        let mut hasher = DefaultHasher::new();
        ranks.hash(&mut hasher);
        let next = self.alike.entry(Kin { of, members: hasher.finish() }).or_insert(0);
        *next += 1;
        *next - 1
    }
}

/// Members outside `MPI_COMM_WORLD` are left out and make the communicator foreign.
fn membership(mpi: &mpi_abi::api::Mpi, comm: handles::Comm) -> Membership {
    let inside = |members: &[Option<i32>]| -> Vec<Rank> {
        members.iter().filter_map(|rank| rank.and_then(|rank| u32::try_from(rank).ok())).map(Rank).collect()
    };
    let members = mpi.comm_members(comm).unwrap_or_default();
    let ranks = inside(&members);
    let is_inter = mpi.comm_is_inter(comm).unwrap_or(true);
    let foreign = ranks.len() != members.len() || is_inter;
    let remote = is_inter.then(|| {
        let members = mpi.comm_remote_members(comm).unwrap_or_default();
        let ranks = inside(&members);
        if ranks.len() == members.len() { Ok(ranks) } else { Err(members.len() as u32) }
    });
    Membership { ranks, remote, foreign }
}

/// The shortest form of a member list.
fn compact(ranks: &[Rank], tasks: u32) -> Members<'_> {
    let stride = match ranks {
        [first, second, ..] => i64::from(second.0) - i64::from(first.0),
        _ => 1,
    };
    let regular = ranks.windows(2).all(|pair| i64::from(pair[1].0) - i64::from(pair[0].0) == stride);
    match ranks.first() {
        Some(&first) if regular && stride != 0 => {
            if first.0 == 0 && stride == 1 && ranks.len() == tasks as usize {
                Members::All
            } else {
                Members::Strided { first, stride, count: ranks.len() as u32 }
            }
        }
        _ => Members::List(ranks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_lists_take_their_shortest_form() {
        let ranks = |list: &[u32]| list.iter().copied().map(Rank).collect::<Vec<_>>();
        let strided = |first, stride, count| Members::Strided { first: Rank(first), stride, count };
        assert_eq!(compact(&ranks(&[0, 1, 2, 3]), 4), Members::All);
        assert_eq!(compact(&ranks(&[0, 1, 2, 3]), 5), strided(0, 1, 4));
        assert_eq!(compact(&ranks(&[6, 4, 2]), 8), strided(6, -2, 3));
        assert_eq!(compact(&ranks(&[5]), 8), strided(5, 1, 1));
        assert_eq!(compact(&ranks(&[0]), 1), Members::All);
        let odd = ranks(&[0, 1, 3]);
        assert_eq!(compact(&odd, 4), Members::List(&odd));
        assert_eq!(compact(&[], 4), Members::List(&[]));
    }
}
