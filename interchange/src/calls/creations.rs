//! The members of communicators, from the calls that created them.
//!
//! Handles count anew in each rank, and a rank's own calls do not tell who else is in a part of a split. So the calls on groups
//! and communicators of all ranks are carried out together: each rank's in order, and a split when all members of the parent have
//! come to it. All else is local. A split that some member never comes to, because its calls are not in the trace, has unknown
//! members, and so has what is made of it.

use super::resolved::{Comm, Why};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;
use vef_format::capture::Group;
use vef_format::capture::event::Members;
use vef_format::ids::Rank;

/// A handle of a rank.
pub(crate) type Handle = u64;

/// A call of a rank on groups or communicators.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// `MPI_Comm_group`.
    GroupOf { comm: Handle, new: Handle },
    /// `MPI_Group_union` and the like.
    Combine { how: Combine, first: Handle, second: Handle, new: Handle },
    /// `MPI_Group_incl` (`keep`) or `_excl`, of these ranks of the group.
    Pick { group: Handle, ranks: Arc<[i32]>, keep: bool, new: Handle },
    /// A communicator is created from `parent`; `new` is `None` at a rank that is no member.
    Create { parent: Handle, how: How, new: Option<Handle> },
}

/// How two groups become one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Combine {
    Union,
    Intersection,
    Difference,
}

/// How a communicator is created.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// Of the same members.
    Same,
    /// Of a group.
    Group(Handle),
    /// `MPI_Comm_split`.
    Split { color: i32, key: i32 },
    /// `MPI_Cart_create` with these extents.
    Grid(Vec<i32>),
    /// `MPI_Cart_sub`: which dimensions remain.
    Sub(Vec<i32>),
    /// `MPI_Graph_create`: the first ranks, so many.
    First(u32),
    /// Of ranks of two groups, or of other programs.
    Foreign,
}

/// Lists of ranks, each in one copy: all ranks of a run usually name the same.
#[derive(Debug, Default)]
pub(crate) struct Lists(HashSet<Arc<[i32]>>);

impl Lists {
    /// The list, in its only copy.
    pub(crate) fn share(&mut self, list: &[i32]) -> Arc<[i32]> {
        if let Some(known) = self.0.get(list) {
            return known.clone();
        }
        let list: Arc<[i32]> = list.into();
        self.0.insert(list.clone());
        list
    }
}

/// The ranks of `MPI_Group_range_incl`: first, last and stride of each range. `None`: a range is invalid, or there are more than `most`.
pub(crate) fn ranges(triples: &[i32], most: u32) -> Option<Vec<i32>> {
    let mut ranks = Vec::new();
    for triple in triples.chunks(3) {
        let &[first, last, stride] = triple else { return None };
        let beyond = i64::from(last).checked_sub(first.into())?.checked_div(stride.into())?;
        if !(0..i64::from(most)).contains(&beyond) || ranks.len() as i64 + beyond >= most.into() {
            return None;
        }
        ranks.extend((0..=beyond).map(|at| (i64::from(first) + at * i64::from(stride)) as i32));
    }
    Some(ranks)
}

/// The predefined handles of a format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predefined {
    pub(crate) world: Handle,
    pub(crate) itself: Handle,
    pub(crate) empty_group: Handle,
}

/// World ranks, in order.
type Ranks = Arc<[u32]>;

/// The communicators that the calls of each rank created, in order; `None`: the rank is no member. `ops` has the calls of each rank
/// of the world.
pub(crate) fn resolve(predefined: Predefined, ops: Vec<Vec<Op>>) -> Vec<Vec<Option<Comm>>> {
    if ops.iter().all(Vec::is_empty) {
        return vec![Vec::new(); ops.len()];
    }
    let mut all = All::new(ops.len() as u32);
    let state = |rank: usize| RankState {
        comms: [(predefined.world, Made::Comm(0)), (predefined.itself, all.alone(rank as u32))].into(),
        groups: [(predefined.empty_group, Some(Arc::from([])))].into(),
        ..RankState::default()
    };
    let mut ranks: Vec<RankState> = (0..ops.len()).map(state).collect();
    let mut ready: Vec<usize> = (0..ops.len()).rev().collect();
    loop {
        while let Some(rank) = ready.pop() {
            while let Some(op) = ops[rank].get(ranks[rank].next) {
                if !ranks[rank].apply(rank as u32, op, &mut all) {
                    break;
                }
                ranks[rank].next += 1;
            }
            for (rank, made) in all.results.drain(..) {
                ranks[rank as usize].result = Some(made);
                ready.push(rank as usize);
            }
        }
        // All wait for members that never come.
        let stuck: Vec<usize> = (0..ops.len()).filter(|&rank| ranks[rank].next < ops[rank].len()).collect();
        if stuck.is_empty() {
            break;
        }
        for &rank in &stuck {
            let state = &mut ranks[rank];
            if let Some(Op::Create { new, .. }) = ops[rank].get(state.next) {
                state.created(*new, Some(Made::Foreign(Why::Unknown)));
            }
            (state.waits, state.next) = (false, state.next + 1);
        }
        all.gathering.clear();
        ready.extend(stuck.into_iter().rev());
    }
    let mut shared: HashMap<u32, Arc<Group>> = HashMap::new();
    let mut comm = |made: &Made| match *made {
        Made::Comm(at) => {
            let members = || {
                let list: Vec<Rank> = all.comms[at as usize].members.iter().copied().map(Rank).collect();
                Group::new(Members::List(&list), ops.len() as u32).map(Arc::new)
            };
            match shared.get(&at).cloned().or_else(members) {
                Some(group) => Comm::Of(shared.entry(at).or_insert(group).clone()),
                None => Comm::Foreign(Why::Unknown),
            }
        }
        Made::Foreign(why) => Comm::Foreign(why),
    };
    ranks.iter().map(|rank| rank.created.iter().map(|made| made.as_ref().map(&mut comm)).collect()).collect()
}

/// A communicator of a rank.
#[derive(Clone, Copy, Debug)]
enum Made {
    /// Index in [`All::comms`].
    Comm(u32),
    Foreign(Why),
}

#[derive(Debug, Default)]
struct RankState {
    /// Index of the next call.
    next: usize,
    comms: HashMap<Handle, Made>,
    /// `None`: of unknown members.
    groups: HashMap<Handle, Option<Ranks>>,
    /// Creating calls so far, by communicator.
    ordinals: HashMap<u32, u32>,
    created: Vec<Option<Made>>,
    /// It has come to a split.
    waits: bool,
    /// What the split made.
    result: Option<Option<u32>>,
}

impl RankState {
    /// Carries out a call; `false`: it waits for other ranks.
    fn apply(&mut self, rank: u32, op: &Op, all: &mut All) -> bool {
        match op {
            Op::GroupOf { comm, new } => {
                let members = match self.comms.get(comm) {
                    Some(&Made::Comm(at)) => Some(all.comms[at as usize].members.clone()),
                    _ => None,
                };
                self.groups.insert(*new, members);
            }
            Op::Combine { how, first, second, new } => {
                let made = match (self.group(*first), self.group(*second)) {
                    (Some(first), Some(second)) => Some(all.share(combine(*how, &first, &second))),
                    _ => None,
                };
                self.groups.insert(*new, made);
            }
            Op::Pick { group, ranks, keep, new } => {
                let made = self.group(*group).and_then(|group| pick(&group, ranks, *keep));
                self.groups.insert(*new, made.map(|list| all.share(list)));
            }
            Op::Create { parent, how, new } => return self.create(rank, *parent, how, *new, all),
        }
        true
    }

    fn group(&self, handle: Handle) -> Option<Ranks> {
        self.groups.get(&handle).cloned().flatten()
    }

    fn create(&mut self, rank: u32, parent: Handle, how: &How, new: Option<Handle>, all: &mut All) -> bool {
        let at = match self.comms.get(&parent) {
            Some(&Made::Comm(at)) => at,
            Some(&Made::Foreign(why)) => return self.created(new, Some(Made::Foreign(why))),
            None => return self.created(new, Some(Made::Foreign(Why::Unknown))),
        };
        let Facts { members, grid } = &all.comms[at as usize];
        let members = members.clone();
        let ordinal = self.ordinals.get(&at).copied().unwrap_or(0);
        let (list, dims) = match how {
            How::Split { color, key } => match self.result.take() {
                Some(made) => {
                    self.waits = false;
                    *self.ordinals.entry(at).or_default() += 1;
                    return self.created(new, made.map(Made::Comm));
                }
                None if self.waits => return false,
                None => {
                    self.waits = true;
                    let gathered = all.gathering.entry((at, ordinal)).or_default();
                    gathered.push((rank, if new.is_some() { *color } else { -1 }, *key));
                    if gathered.len() == members.len() {
                        let parts = all.gathering.remove(&(at, ordinal)).unwrap_or_default();
                        all.split(at, ordinal, parts);
                    }
                    return false;
                }
            },
            How::Same => (Some(members.clone()), grid.clone()),
            How::Group(group) => (self.group(*group), None),
            How::Grid(dims) => {
                let size =
                    dims.iter().try_fold(1u64, |size, &dim| size.checked_mul(u64::try_from(dim).ok()?));
                let list = size.and_then(|size| Some(members.get(..usize::try_from(size).ok()?)?.to_vec()));
                (list.map(|list| all.share(list)), Some(dims.clone()))
            }
            How::Sub(remain) => {
                let part = grid.as_ref().and_then(|dims| sub(dims, remain, &members, rank));
                let dims = grid.as_ref().map(|dims| {
                    dims.iter().zip(remain).filter(|&(_, &remain)| remain != 0).map(|(&dim, _)| dim).collect()
                });
                (part.map(|list| all.share(list)), dims)
            }
            How::First(nodes) => {
                let list = members.get(..*nodes as usize).map(<[u32]>::to_vec);
                (list.map(|list| all.share(list)), None)
            }
            How::Foreign => {
                *self.ordinals.entry(at).or_default() += 1;
                return self.created(new, Some(Made::Foreign(Why::Inter)));
            }
        };
        *self.ordinals.entry(at).or_default() += 1;
        let made = match list {
            // A rank that has the handle is a member, or the trace contradicts itself.
            Some(list) if list.contains(&rank) => Made::Comm(all.intern(at, ordinal, list, dims)),
            _ => Made::Foreign(Why::Unknown),
        };
        self.created(new, Some(made))
    }

    /// The handle `new` is of the communicator `made`.
    fn created(&mut self, new: Option<Handle>, made: Option<Made>) -> bool {
        let made = made.filter(|_| new.is_some());
        self.created.push(made);
        if let (Some(new), Some(made)) = (new, made) {
            self.comms.insert(new, made);
        }
        true
    }
}

fn combine(how: Combine, first: &[u32], second: &[u32]) -> Vec<u32> {
    let of: HashSet<u32> = match how {
        Combine::Union => first.iter().copied().collect(),
        Combine::Intersection | Combine::Difference => second.iter().copied().collect(),
    };
    match how {
        Combine::Union => {
            first.iter().copied().chain(second.iter().copied().filter(|rank| !of.contains(rank))).collect()
        }
        Combine::Intersection => first.iter().copied().filter(|rank| of.contains(rank)).collect(),
        Combine::Difference => first.iter().copied().filter(|rank| !of.contains(rank)).collect(),
    }
}

/// The members of a group with these ranks, or without them; `None`: a rank is outside.
fn pick(group: &[u32], ranks: &[i32], keep: bool) -> Option<Vec<u32>> {
    let at = |&rank: &i32| group.get(usize::try_from(rank).ok()?).copied();
    let picked: Vec<u32> = ranks.iter().map(at).collect::<Option<_>>()?;
    if keep {
        return Some(picked);
    }
    let left_out: HashSet<u32> = picked.into_iter().collect();
    Some(group.iter().copied().filter(|rank| !left_out.contains(rank)).collect())
}

/// The part of a grid with `rank`, over the dimensions that remain.
fn sub(dims: &[i32], remain: &[i32], members: &[u32], rank: u32) -> Option<Vec<u32>> {
    let size = |dim: i32| usize::try_from(dim).ok().filter(|&dim| dim > 0);
    let coordinates = |mut at: usize| {
        let mut all: Vec<usize> = Vec::with_capacity(dims.len());
        for &dim in dims.iter().rev() {
            let dim = size(dim)?;
            all.push(at % dim);
            at /= dim;
        }
        all.reverse();
        Some(all)
    };
    let same =
        |a: &[usize], b: &[usize]| a.iter().zip(b).zip(remain).all(|((a, b), &remain)| remain != 0 || a == b);
    let own = coordinates(members.iter().position(|&member| member == rank)?)?;
    let part = members
        .iter()
        .enumerate()
        .filter(|&(at, _)| coordinates(at).is_some_and(|coordinates| same(&coordinates, &own)));
    Some(part.map(|(_, &member)| member).collect())
}

#[derive(Debug)]
struct Facts {
    members: Ranks,
    /// Extents, if it is a grid.
    grid: Option<Vec<i32>>,
}

/// A rank's part in a split: the rank, its colour and its key.
type Part = (u32, i32, i32);

/// The communicators of all ranks.
#[derive(Debug)]
struct All {
    comms: Vec<Facts>,
    /// By parent, index of the creating call, and members.
    by_origin: HashMap<(u32, u32, Ranks), u32>,
    lists: HashSet<Ranks>,
    /// The members that have come to a split of a parent: rank, colour, key.
    gathering: HashMap<(u32, u32), Vec<Part>>,
    /// Results of complete splits, by rank.
    results: Vec<(u32, Option<u32>)>,
}

impl All {
    fn new(world: u32) -> Self {
        let members: Ranks = (0..world).collect();
        Self {
            comms: vec![Facts { members, grid: None }],
            by_origin: HashMap::new(),
            lists: HashSet::new(),
            gathering: HashMap::new(),
            results: Vec::new(),
        }
    }

    fn alone(&mut self, rank: u32) -> Made {
        self.comms.push(Facts { members: Arc::from([rank]), grid: None });
        Made::Comm(self.comms.len() as u32 - 1)
    }

    /// The list, in one copy.
    fn share(&mut self, list: Vec<u32>) -> Ranks {
        if let Some(known) = self.lists.get(&list[..]) {
            return known.clone();
        }
        let list: Ranks = list.into();
        self.lists.insert(list.clone());
        list
    }

    fn intern(&mut self, parent: u32, ordinal: u32, members: Ranks, grid: Option<Vec<i32>>) -> u32 {
        let next = self.comms.len() as u32;
        let at = *self.by_origin.entry((parent, ordinal, members.clone())).or_insert(next);
        if at == next {
            self.comms.push(Facts { members, grid });
        }
        at
    }

    /// Carries out a split to which all members of `parent` have come.
    fn split(&mut self, parent: u32, ordinal: u32, mut parts: Vec<Part>) {
        let members = self.comms[parent as usize].members.clone();
        let place: HashMap<u32, usize> = members.iter().enumerate().map(|(at, &rank)| (rank, at)).collect();
        parts.sort_by_key(|&(rank, color, key)| (color, key, place.get(&rank).copied()));
        for part in parts.chunk_by(|a, b| a.1 == b.1) {
            let made = if part[0].1 < 0 {
                None
            } else {
                let list = self.share(part.iter().map(|&(rank, ..)| rank).collect());
                Some(self.intern(parent, ordinal, list, None))
            };
            self.results.extend(part.iter().map(|&(rank, ..)| (rank, made)));
        }
    }
}
