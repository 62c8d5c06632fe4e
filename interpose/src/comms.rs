//! Communicators: each is numbered when it is made or first used.

use crate::table::Numbered;
use mpi_abi::api::Mpi;
use mpi_abi::handles;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use vef_format::capture::event::{Communicator, Members, Origin, Remote, Split};
use vef_format::ids::{CommId, Rank};

/// The properties of a communicator that recording needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comm {
    pub(crate) id: CommId,
    /// The number of members; of an inter-communicator, those of the local group.
    pub(crate) size: u32,
    /// This process's rank in it.
    pub(crate) rank: i32,
    /// It has members outside `MPI_COMM_WORLD`: its calls are counted but not translated.
    pub(crate) foreign: bool,
    /// Of an inter-communicator, the number of members of the remote group; otherwise 0.
    pub(crate) remote: u32,
    /// The number of sources and of destinations in its topology, once that is recorded.
    pub(crate) neighbours: Option<(u32, u32)>,
}

/// The members that are in `MPI_COMM_WORLD`.
pub(crate) fn inside(members: &[Option<i32>]) -> Vec<Rank> {
    members.iter().filter_map(|rank| rank.and_then(|rank| u32::try_from(rank).ok())).map(Rank).collect()
}

/// Persistent collectives on one communicator that get a communicator of their own. Programs that make one in each step would
/// otherwise fill the trace with communicators.
const MOST_PERSISTENT: u32 = 256;

/// The known communicators.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    pub(crate) known: Numbered<Comm>,
    /// The number of creating calls on each communicator, by its number.
    children: Vec<u32>,
    /// The number of persistent collectives that were made on each communicator, by its number.
    persistent: Vec<u32>,
    /// The number of communicators so far with the same parent and tag of `Comm_create_group`, and the same hash of the members:
    /// they are distinguished by their order.
    ordinals: HashMap<(Option<(CommId, i32)>, u64), u32>,
}

/// The members of a communicator.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    ranks: Vec<Rank>,
    rank: i32,
    /// The remote group: its ranks, or its size if some members are outside `MPI_COMM_WORLD`.
    remote: Option<Result<Vec<Rank>, u32>>,
    foreign: bool,
}

impl Membership {
    /// The members of `MPI_COMM_WORLD`, of `tasks` processes; `rank` is this process.
    pub(crate) fn world(tasks: u32, rank: Rank) -> Self {
        let ranks = (0..tasks).map(Rank).collect();
        Self { ranks, rank: rank.0 as i32, remote: None, foreign: false }
    }

    /// Queries MPI. Members outside `MPI_COMM_WORLD` are omitted and make the communicator foreign.
    pub(crate) fn ask(mpi: &Mpi, comm: handles::Comm) -> Self {
        let members = mpi.comm_members(comm).unwrap_or_default();
        let ranks = inside(&members);
        let is_inter = mpi.comm_is_inter(comm).unwrap_or(true);
        let mut foreign = ranks.len() != members.len();
        let remote = is_inter.then(|| {
            let members = mpi.comm_remote_members(comm).unwrap_or_default();
            let ranks = inside(&members);
            foreign |= ranks.len() != members.len();
            if ranks.len() == members.len() { Ok(ranks) } else { Err(members.len() as u32) }
        });
        Self { ranks, rank: mpi.comm_rank(comm).unwrap_or(0), remote, foreign }
    }

    /// All members; of an inter-communicator those of both groups, in an order that does not depend on which is the local one.
    fn all(&self) -> Cow<'_, [Rank]> {
        match &self.remote {
            Some(Ok(remote)) if remote.first() < self.ranks.first() => {
                [&remote[..], &self.ranks].concat().into()
            }
            Some(Ok(remote)) => [&self.ranks[..], remote].concat().into(),
            _ => (&self.ranks[..]).into(),
        }
    }

    /// The description of communicator `id` with these members; `tasks` is the size of `MPI_COMM_WORLD`.
    pub(crate) fn describe(
        &self,
        id: CommId,
        origin: Origin,
        split: Option<Split>,
        tasks: u32,
    ) -> Communicator<'_> {
        let remote = match &self.remote {
            None => Remote::None,
            Some(Ok(ranks)) => Remote::Inside(compact(ranks, tasks)),
            Some(Err(size)) => Remote::Outside(*size),
        };
        Communicator {
            id,
            origin,
            split,
            members: compact(&self.ranks, tasks),
            remote,
            foreign: self.foreign,
        }
    }
}

impl Comms {
    /// Counts a creating call on `parent`; returns the number of earlier ones.
    pub(crate) fn count_child(&mut self, parent: CommId) -> u32 {
        count(&mut self.children, parent)
    }

    /// The starts of a persistent collective match by the order in which the collectives were *made*; each has a
    /// communicator of its own, on which they are in order. Returns its number and origin; `None`: the communicator has too many.
    pub(crate) fn add_persistent(&mut self, parent: CommId) -> Option<(CommId, Origin)> {
        let made = count(&mut self.persistent, parent);
        let origin = Origin::Child { parent, ordinal: Origin::<CommId>::PERSISTENT | made };
        (made < MOST_PERSISTENT).then(|| (CommId(self.known.next_number()), origin))
    }

    /// Assigns a number to the communicator of `handle`. Adds the ordinal among communicators with the same members to its origin.
    pub(crate) fn add(&mut self, handle: usize, members: &Membership, mut origin: Origin) -> (Comm, Origin) {
        match &mut origin {
            Origin::Group { parent, tag, ordinal } => {
                *ordinal = self.next_ordinal(Some((*parent, *tag)), &members.all());
            }
            Origin::Unseen { ordinal } => *ordinal = self.next_ordinal(None, &members.all()),
            _ => {}
        }
        let &Membership { ref ranks, rank, foreign, ref remote } = members;
        let remote = match remote {
            None => 0,
            Some(Ok(ranks)) => ranks.len() as u32,
            Some(Err(size)) => *size,
        };
        let size = ranks.len() as u32;
        let comm = |id| Comm { id: CommId(id), size, rank, foreign, remote, neighbours: None };
        (self.known.add(handle, comm), origin)
    }

    fn next_ordinal(&mut self, of: Option<(CommId, i32)>, ranks: &[Rank]) -> u32 {
        let mut hasher = DefaultHasher::new();
        ranks.hash(&mut hasher);
        let next = self.ordinals.entry((of, hasher.finish())).or_insert(0);
        *next += 1;
        *next - 1
    }
}

/// Counts something of a communicator; returns the number of earlier ones.
fn count(counts: &mut Vec<u32>, comm: CommId) -> u32 {
    if counts.len() <= comm.index() {
        counts.resize(comm.index() + 1, 0);
    }
    counts[comm.index()] += 1;
    counts[comm.index()] - 1
}

/// The shortest representation of a list of members.
pub(crate) fn compact(ranks: &[Rank], tasks: u32) -> Members<'_> {
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
