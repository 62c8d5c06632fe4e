//! Communicators: each is numbered when it is made or first used.

use crate::table::Numbered;
use mpi_abi::api::Mpi;
use mpi_abi::handles;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use vef_format::capture::event::{Action, Communicator, MeetingWay, Members, Origin, Remote, Split};
use vef_format::ids::{CommId, Rank};

/// The properties of a communicator that recording needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comm {
    pub(crate) id: CommId,
    /// The number of members; of an inter-communicator, those of the local group.
    pub(crate) size: u32,
    /// This process's rank in it.
    pub(crate) rank: i32,
    /// Of an inter-communicator, the number of members of the remote group; otherwise 0.
    pub(crate) remote: u32,
    /// The number of sources and of destinations in its topology, once that is recorded.
    pub(crate) neighbours: Option<(u32, u32)>,
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
    /// Number of processes of other worlds that have ranks, beyond those of `MPI_COMM_WORLD`.
    pub(crate) outside: u32,
}

/// The members of a communicator, as ranks in `MPI_COMM_WORLD`, and of other worlds as ranks beyond it; `None`: not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    members: Vec<Option<Rank>>,
    rank: i32,
    /// The remote group.
    remote: Option<Vec<Option<Rank>>>,
}

/// How processes meet that this one calls by new ranks: the way, the communicator of this side, and the name.
pub(crate) type Meets<'a> = (MeetingWay, CommId, &'a str);

/// A group with members of other worlds, which have these ranks.
#[derive(Clone, Debug)]
pub(crate) struct Outsiders {
    group: handles::Group,
    ranks: Arc<[Rank]>,
}

impl Membership {
    /// The members of `MPI_COMM_WORLD`, of `tasks` processes; `rank` is this process.
    pub(crate) fn world(tasks: u32, rank: Rank) -> Self {
        Self { members: (0..tasks).map(|rank| Some(Rank(rank))).collect(), rank: rank.0 as i32, remote: None }
    }

    /// Queries MPI. `others`: the known processes of other worlds. `meets`: the remote group is none of them, whatever MPI says.
    #[inline(never)]
    pub(crate) fn ask(mpi: &Mpi, comm: handles::Comm, others: &[Outsiders], meets: bool) -> Self {
        let members = known(mpi.comm_members(comm));
        let is_inter = mpi.comm_is_inter(comm).unwrap_or(true);
        let remote = is_inter.then(|| known(mpi.comm_remote_members(comm)));
        let mut asked = Self { members, rank: mpi.comm_rank(comm).unwrap_or(0), remote };
        for (is_remote, list) in asked.sides().filter(|(is_remote, _)| !(meets && *is_remote)) {
            complete(list, others, &|group| mpi.comm_members_in(comm, is_remote, group));
        }
        asked
    }

    fn sides(&mut self) -> impl Iterator<Item = (bool, &mut Vec<Option<Rank>>)> {
        std::iter::once((false, &mut self.members)).chain(self.remote.iter_mut().map(|list| (true, list)))
    }

    /// The members that are not known, of the first group that has some.
    #[inline(never)]
    pub(crate) fn unknown(&mut self) -> u32 {
        let unknown = |list: &[Option<Rank>]| list.iter().filter(|member| member.is_none()).count() as u32;
        self.sides().map(|(_, list)| unknown(list)).find(|&count| count > 0).unwrap_or(0)
    }

    /// Gives these members the ranks from `next` on; returns their group.
    #[inline(never)]
    pub(crate) fn name(&mut self, mpi: &Mpi, comm: handles::Comm, next: u32) -> Option<Outsiders> {
        let (is_remote, list) = self.sides().find(|(_, list)| list.contains(&None))?;
        for (member, rank) in list.iter_mut().filter(|member| member.is_none()).zip(next..) {
            *member = Some(Rank(rank));
        }
        let ranks = list.iter().flatten().copied().collect();
        Some(Outsiders { group: mpi.comm_group(comm, is_remote).ok()?, ranks })
    }

    /// All members; of an inter-communicator those of both groups, in an order that does not depend on which is the local one.
    #[inline(never)]
    fn all(&self) -> Vec<Rank> {
        let (members, remote) = (ranks(&self.members), self.remote.as_ref().map(|list| ranks(list)));
        match remote {
            Some(remote) if remote.first() < members.first() => [remote, members].concat(),
            Some(remote) => [members, remote].concat(),
            None => members,
        }
    }

    /// Passes the description of communicator `id` with these members to `take`; `tasks` is the size of `MPI_COMM_WORLD`.
    #[inline(never)]
    pub(crate) fn describe(
        &self,
        id: CommId,
        origin: Origin,
        split: Option<Split>,
        tasks: u32,
        take: &mut dyn FnMut(&Action<'_>),
    ) {
        let (members, remote) = (ranks(&self.members), self.remote.as_ref().map(|list| ranks(list)));
        let is_outside = |list: &Vec<Rank>| list.iter().any(|rank| rank.0 >= tasks);
        let foreign = is_outside(&members) || remote.as_ref().is_some_and(is_outside);
        let remote = remote.as_ref().map_or(Remote::None, |list| Remote::Inside(compact(list, tasks)));
        let members = compact(&members, tasks);
        take(&Action::Communicator(Communicator { id, origin, split, members, remote, foreign }));
    }
}

/// The ranks of members of `MPI_COMM_WORLD`.
fn known(members: mpi_abi::Result<Vec<Option<i32>>>) -> Vec<Option<Rank>> {
    let rank = |rank: Option<i32>| rank.and_then(|rank| u32::try_from(rank).ok()).map(Rank);
    members.unwrap_or_default().into_iter().map(rank).collect()
}

/// Completes a list of members by the known processes of other worlds: the latest first, because MPI may use the names of processes anew
/// that are gone. `in_group` returns the place of each member in a group.
#[inline(never)]
fn complete(
    list: &mut [Option<Rank>],
    others: &[Outsiders],
    in_group: &dyn Fn(handles::Group) -> mpi_abi::Result<Vec<Option<i32>>>,
) {
    for Outsiders { group, ranks } in others.iter().rev() {
        if !list.contains(&None) {
            return;
        }
        for (member, place) in list.iter_mut().zip(in_group(*group).unwrap_or_default()) {
            let rank = || ranks.get(usize::try_from(place?).ok()?).copied();
            *member = member.or_else(rank);
        }
    }
}

/// The members of a group; those of unknown worlds are left out.
#[inline(never)]
pub(crate) fn group_members(mpi: &Mpi, group: handles::Group, others: &[Outsiders]) -> Vec<Rank> {
    let mut list = known(mpi.group_members(group));
    complete(&mut list, others, &|other| mpi.group_members_in(group, other));
    ranks(&list)
}

#[inline(never)]
fn ranks(list: &[Option<Rank>]) -> Vec<Rank> {
    list.iter().flatten().copied().collect()
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
        let rank = members.rank;
        let (size, remote) =
            (members.members.len() as u32, members.remote.as_ref().map_or(0, |list| list.len() as u32));
        let comm = |id| Comm { id: CommId(id), size, rank, remote, neighbours: None };
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
