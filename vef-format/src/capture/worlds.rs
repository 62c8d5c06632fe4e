//! Captures of several worlds: processes that a program spawns are further tasks, behind those of its `MPI_COMM_WORLD`.
//!
//! Each rank knows the ranks of its own world. It gives the processes that it meets ([`Meeting`](super::event::Meeting)) the ranks that follow,
//! because MPI does not say which processes they are. This module finds out, from what both sides of each meeting recorded:
//!
//! - the members of a communicator that spawned processes, and the world of as many tasks that names the root of the call. Of several calls
//!   of this root, and where the launcher does not tell the root, the one that ended when `MPI_Init` did in the world;
//! - the sides that accepted and connected on the same port, at the same time;
//! - a rank that meets processes by `MPI_Intercomm_create`, and one that knows both groups.
//!
//! [`Translation`] then replaces these ranks by tasks of the whole run. A world without a recorded call that spawned it is not part of the
//! capture; it may be left from an earlier run.

use super::error::CaptureError;
use super::event::{Action, Communicator, Detail, Event, MeetingWay, Members, Origin, Remote};
use super::group::Group;
use super::layout::RankInfo;
use crate::ids::{CommId, Rank};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The largest difference between the ends of both sides of a meeting, ns: clocks of several hosts differ.
const APART: u64 = 10_000_000_000;

/// A process: the index of its world, and its rank there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Process {
    world: usize,
    rank: u32,
}

/// What one rank says of a meeting.
#[derive(Clone, Debug)]
struct Seen {
    process: Process,
    first: u32,
    count: u32,
    way: MeetingWay,
    /// The members of this side, as the rank calls them.
    members: Option<Arc<Group>>,
    /// Not empty: the rank is the root of the call, or it knows the root of the call that spawned it.
    name: String,
    /// When the call ended, ns since 1970.
    end: u64,
}

/// A communicator with processes of other worlds, as one rank describes it.
#[derive(Clone, Debug)]
struct Described {
    process: Process,
    /// Its groups: one, or the local and the remote one.
    groups: Vec<Arc<Group>>,
    /// Indices of the meetings by it.
    seen: Vec<usize>,
}

/// One side of a meeting, as its members see it together.
#[derive(Clone, Debug)]
struct Side {
    count: u32,
    /// The root of the call, if it is known, and what it says.
    root: Option<Process>,
    name: String,
    end: u64,
    /// Indices of what its ranks say.
    seen: Vec<usize>,
}

/// The way of a meeting, the members of one side as an index in [`Meetings::lists`], and the number of such meetings of theirs so far.
type SideKey = (MeetingWay, usize, usize);

/// What the tasks of one world say.
#[derive(Debug, Default)]
pub(super) struct WorldMeetings {
    /// Its number; 0: it was launched.
    number: u32,
    tasks: u32,
    /// When the last of them left `MPI_Init`, ns since 1970.
    begun: u64,
    seen: Vec<Seen>,
    described: Vec<Described>,
    /// Equal groups of several ranks are one.
    groups: HashSet<Arc<Group>>,
}

impl WorldMeetings {
    /// Of the world with this number.
    pub(super) fn of(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// Adds what the rank with these facts says; `each` passes its events on.
    pub(super) fn add(
        &mut self,
        info: &RankInfo,
        each: impl FnOnce(&mut dyn FnMut(&Event<'_>) -> Result<(), CaptureError>) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        self.tasks = info.tasks;
        let mut zero = None;
        let mut members: HashMap<CommId, Arc<Group>> = HashMap::new();
        // Meetings in front of the communicator by which they were, and those of communicators whose call has not ended.
        let (mut described, mut made) = (Vec::new(), HashMap::<CommId, Vec<usize>>::new());
        each(&mut |event| {
            let zero = *zero.get_or_insert(event.start.0);
            let end = info.realtime.saturating_add(event.end.0.saturating_sub(zero));
            match &event.action {
                Action::Init => self.begun = self.begun.max(end),
                Action::Communicator(Communicator { id, members: list, remote, foreign, .. }) => {
                    let group = self.group(*list);
                    members.extend(group.clone().map(|group| (*id, group)));
                    let seen = std::mem::take(&mut described);
                    if *foreign {
                        let remote = match remote {
                            Remote::Inside(list) => self.group(*list),
                            _ => None,
                        };
                        let groups = group.into_iter().chain(remote).collect();
                        let process = Process { world: 0, rank: info.rank.0 };
                        self.described.push(Described { process, groups, seen: seen.clone() });
                    }
                    made.insert(*id, seen);
                }
                Action::Meeting(meeting) if meeting.first.0 >= info.tasks => {
                    described.push(self.seen.len());
                    self.seen.push(Seen {
                        process: Process { world: 0, rank: info.rank.0 },
                        first: meeting.first.0,
                        count: meeting.count,
                        way: meeting.way,
                        members: members.get(&meeting.comm).cloned(),
                        name: meeting.name.to_owned(),
                        end,
                    });
                }
                Action::Creation(creation) => {
                    made.remove(&creation.comm).into_iter().flatten().for_each(|at| self.seen[at].end = end);
                }
                _ => {}
            }
            Ok(())
        })
    }
}

impl WorldMeetings {
    fn group(&mut self, members: Members<'_>) -> Option<Arc<Group>> {
        let group = Arc::new(group_of(members, self.tasks)?);
        let known = self.groups.get(&group).cloned();
        self.groups.insert(group.clone());
        Some(known.unwrap_or(group))
    }
}

/// The members in a world of `tasks` tasks, and beyond it.
fn group_of(members: Members<'_>, tasks: u32) -> Option<Group> {
    match members {
        Members::All => Group::new(members, tasks),
        _ => Group::new(members, u32::MAX),
    }
}

/// The members that are a list.
fn listed(members: Members<'_>) -> &[Rank] {
    if let Members::List(list) = members { list } else { &[] }
}

/// The worlds that belong together, and who met whom.
#[derive(Debug, Default)]
pub(super) struct Worlds {
    /// The first task of each world, and the number of all tasks.
    firsts: Vec<u32>,
    /// Whom each task met.
    met: HashMap<Rank, Vec<Met>>,
}

/// Processes that a task met.
#[derive(Debug)]
struct Met {
    /// What it calls the first of them.
    first: u32,
    tasks: Arc<[Rank]>,
}

impl Worlds {
    /// Brings the worlds together, the first of which was launched. Also returns which of them belong to the run, by index.
    pub(super) fn joined(worlds: Vec<WorldMeetings>) -> (Self, Vec<usize>) {
        let mut meetings = Meetings::new(worlds);
        // Processes that meet may meet others together.
        while meetings.find() || meetings.share() {}
        let worlds = &meetings.worlds;
        let parts: Vec<usize> = (0..worlds.len()).filter(|&world| worlds[world].belongs).collect();
        let mut firsts = vec![0u32];
        let mut place = vec![None; worlds.len()];
        for &world in &parts {
            let first = firsts[firsts.len() - 1];
            place[world] = Some(first);
            firsts.push(first.saturating_add(worlds[world].size));
        }
        let task = |process: &Process| place[process.world].map(|first| Rank(first + process.rank));
        let tasks: Vec<Option<Arc<[Rank]>>> =
            meetings.lists.iter().map(|list| list.iter().map(task).collect()).collect();
        let mut met: HashMap<Rank, Vec<Met>> = HashMap::new();
        for (seen, others) in meetings.seen.iter().zip(&meetings.others) {
            let others = others.and_then(|list| tasks[list].clone());
            if let (Some(own), Some(tasks)) = (task(&seen.process), others) {
                met.entry(own).or_default().push(Met { first: seen.first, tasks });
            }
        }
        (Self { firsts, met }, parts)
    }

    /// Number of tasks of the first world.
    pub(super) fn launched(&self) -> u32 {
        self.firsts.get(1).copied().unwrap_or(0)
    }

    /// The tasks of each world.
    pub(super) fn tasks(&self) -> impl Iterator<Item = Range<u32>> {
        self.firsts.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// The index of the world of a task, and its rank there.
    pub(super) fn place(&self, task: Rank) -> Option<(usize, Rank)> {
        let world = self.firsts.partition_point(|&first| first <= task.0).checked_sub(1)?;
        Some((world, Rank(task.0 - self.firsts[world])))
    }
}

/// A world, and whether it is known to belong to the run.
#[derive(Debug)]
struct World {
    number: u32,
    size: u32,
    begun: u64,
    belongs: bool,
}

/// All meetings, and what is known of them so far.
struct Meetings {
    worlds: Vec<World>,
    seen: Vec<Seen>,
    described: Vec<Described>,
    /// Those of each process, by index.
    by_process: HashMap<Process, Vec<usize>>,
    /// The members of both sides of each, as indices in `lists`, if they are known.
    own: Vec<Option<usize>>,
    others: Vec<Option<usize>>,
    /// The members of sides, in their order.
    lists: Vec<Vec<Process>>,
    list_of: HashMap<Vec<Process>, usize>,
}

impl Meetings {
    fn new(all: Vec<WorldMeetings>) -> Self {
        let (mut worlds, mut seen, mut described) = (Vec::new(), Vec::new(), Vec::new());
        for (world, of_world) in all.into_iter().enumerate() {
            let WorldMeetings { number, tasks, begun, .. } = of_world;
            worlds.push(World { number, size: tasks, begun, belongs: world == 0 });
            let (at, here) = (seen.len(), |process: Process| Process { world, ..process });
            described.extend(of_world.described.into_iter().map(|one| Described {
                process: here(one.process),
                seen: one.seen.iter().map(|seen| at + seen).collect(),
                ..one
            }));
            seen.extend(of_world.seen.into_iter().map(|seen| Seen { process: here(seen.process), ..seen }));
        }
        let mut by_process: HashMap<Process, Vec<usize>> = HashMap::new();
        for (at, seen) in seen.iter().enumerate() {
            by_process.entry(seen.process).or_default().push(at);
        }
        let (own, others) = (vec![None; seen.len()], vec![None; seen.len()]);
        Self { worlds, seen, described, by_process, own, others, lists: Vec::new(), list_of: HashMap::new() }
    }

    /// Finds the other sides of meetings whose own side is known; returns whether it found some.
    fn find(&mut self) -> bool {
        let sides = self.open_sides();
        let of = |way| sides.iter().filter(move |((of, ..), _)| *of == way);
        let mut found: Vec<(&Side, usize)> = Vec::new();
        let mut taken: HashSet<SideKey> = HashSet::new();
        for (&(_, children, number), side) in of(MeetingWay::Parents) {
            let (world, parents) = (&self.worlds[self.lists[children][0].world], side.count as usize);
            let root = self.root(&side.name);
            let apart = |spawning: &Side| spawning.end.abs_diff(world.begun);
            let fits = |(key, spawning): &(&SideKey, &Side)| {
                (spawning.count as usize, parents) == (self.lists[children].len(), self.lists[key.1].len())
                    && match root {
                        // A root that is not recorded has spawned it.
                        Some(root) => root.is_some() && spawning.root == root,
                        None => key.1 != children && apart(spawning) < APART,
                    }
                    && !taken.contains(*key)
            };
            let nearest = of(MeetingWay::Spawned).filter(fits).min_by_key(|(_, spawning)| apart(spawning));
            if let Some((&key, spawning)) = nearest.filter(|_| number == 1) {
                taken.insert(key);
                found.push((side, key.1));
                found.push((spawning, children));
            }
        }
        for (accepted, side) in of(MeetingWay::Accepted).filter(|(_, side)| !side.name.is_empty()) {
            let size = |key: &SideKey| self.lists[key.1].len() as u32;
            let fits = |(key, other): &(&SideKey, &Side)| {
                (side.count, other.count) == (size(key), size(accepted))
                    && side.name == other.name
                    && side.end.abs_diff(other.end) < APART
                    && !taken.contains(*key)
            };
            let nearest = of(MeetingWay::Connected).filter(fits);
            if let Some((&key, other)) = nearest.min_by_key(|(_, other)| side.end.abs_diff(other.end)) {
                taken.insert(key);
                found.push((side, key.1));
                found.push((other, accepted.1));
            }
        }
        for &(side, others) in &found {
            self.lists[others].iter().for_each(|process| self.worlds[process.world].belongs = true);
            side.seen.iter().for_each(|&at| self.others[at] = Some(others));
        }
        !found.is_empty()
    }

    /// The root of the call that spawned a world, as Open MPI tells it to the world (`<job>.<rank>:<tag>`); `None` within: its world
    /// is not there.
    fn root(&self, name: &str) -> Option<Option<Process>> {
        let (job, rest) = name.split_once('.')?;
        let rank = rest.split(':').next()?.parse().ok()?;
        // The lower half is the number among the jobs of the launcher, from 1.
        let number = (job.parse::<u64>().ok()? & 0xffff).checked_sub(1)?;
        let world = self.worlds.iter().position(|world| u64::from(world.number) == number);
        Some(world.map(|world| Process { world, rank }))
    }

    /// The sides with known members whose other side is not known.
    fn open_sides(&mut self) -> BTreeMap<SideKey, Side> {
        let mut sides: BTreeMap<SideKey, Side> = BTreeMap::new();
        let mut numbers: HashMap<(Process, MeetingWay, usize), usize> = HashMap::new();
        // Most ranks of a world have the same groups of its ranks.
        let mut known: HashMap<(usize, Arc<Group>), usize> = HashMap::new();
        for at in 0..self.seen.len() {
            let Some(list) = self.own[at].or_else(|| self.own_side(at, &mut known)) else { continue };
            self.own[at] = Some(list);
            let seen = &self.seen[at];
            let number = numbers.entry((seen.process, seen.way, list)).or_default();
            *number += 1;
            if self.others[at].is_some() || seen.way == MeetingWay::Unseen {
                continue;
            }
            let new =
                || Side { count: seen.count, root: None, name: String::new(), end: 0, seen: Vec::new() };
            let side = sides.entry((seen.way, list, *number)).or_insert_with(new);
            side.end = side.end.max(seen.end);
            if !seen.name.is_empty() {
                (side.root, side.name) = (Some(seen.process), seen.name.clone());
            }
            // Of an inter-communicator, both groups are whole.
            if seen.count == side.count {
                side.seen.push(at);
            }
        }
        sides
    }

    /// The members of the own side of a meeting, if they are known.
    fn own_side(&mut self, at: usize, known: &mut HashMap<(usize, Arc<Group>), usize>) -> Option<usize> {
        let Seen { process, members, .. } = &self.seen[at];
        let (process, members) = (*process, members.clone()?);
        if let Some(&list) = known.get(&(process.world, members.clone())) {
            return Some(list);
        }
        let list: Vec<_> = members.iter().map(|rank| self.process(process, rank.0)).collect::<Option<_>>()?;
        let is_own = list.iter().all(|member| member.world == process.world);
        let list = self.list(list);
        if is_own {
            known.insert((process.world, members), list);
        }
        Some(list)
    }

    /// The index of a list of members.
    fn list(&mut self, members: Vec<Process>) -> usize {
        *self.list_of.entry(members).or_insert_with_key(|members| {
            self.lists.push(members.clone());
            self.lists.len() - 1
        })
    }

    /// Finds processes that a rank has met unseen in what another member of the communicator says, which knows all members; returns whether it
    /// found some. The n-th communicator of such members is the n-th that the other one has with them.
    fn share(&mut self) -> bool {
        let is_open = |at: &usize| self.seen[*at].way == MeetingWay::Unseen && self.others[*at].is_none();
        let (open, closed): (Vec<&Described>, Vec<_>) =
            self.described.iter().partition(|one| one.seen.iter().any(is_open));
        if open.is_empty() {
            return false;
        }
        let open: Vec<(&Described, Names)> = open.into_iter().map(|one| (one, self.names(one))).collect();
        let mut whole: HashMap<Process, Vec<Names>> = HashMap::new();
        for one in closed {
            let names = self.names(one);
            if names.iter().flatten().all(Option::is_some) {
                whole.entry(one.process).or_default().push(names);
            }
        }
        let mut found = Vec::new();
        for (at, (one, names)) in open.iter().enumerate() {
            let same =
                |(other, of_other): &&(&Described, Names)| other.process == one.process && of_other == names;
            let earlier = open[..at].iter().filter(same).count();
            let mut members = names.iter().flatten().flatten().filter_map(|member| whole.get(member));
            let Some(known) =
                members.find_map(|all| all.iter().filter_map(|other| agree(names, other)).nth(earlier))
            else {
                continue;
            };
            let ranks =
                one.groups.iter().flat_map(|group| group.iter()).zip(known.into_iter().flatten().flatten());
            let ranks: Vec<(Rank, Process)> = ranks.collect();
            for &seen in &one.seen {
                let Seen { first, count, .. } = self.seen[seen];
                let is_met = |rank: Rank| rank.0.checked_sub(first).is_some_and(|place| place < count);
                found.push((
                    seen,
                    ranks.iter().filter(|(rank, _)| is_met(*rank)).map(|(_, met)| *met).collect::<Vec<_>>(),
                ));
            }
        }
        found.retain(|(seen, met)| met.len() == self.seen[*seen].count as usize);
        for (seen, met) in &found {
            met.iter().for_each(|process| self.worlds[process.world].belongs = true);
            self.others[*seen] = Some(self.list(met.clone()));
        }
        !found.is_empty()
    }

    /// The members of a communicator, as far as they are known; of one with more members than there are processes, nothing.
    fn names(&self, one: &Described) -> Names {
        let processes: u64 = self.worlds.iter().map(|world| u64::from(world.size)).sum();
        if one.groups.iter().any(|group| u64::from(group.count()) > processes) {
            return Vec::new();
        }
        let name = |rank: Rank| self.process(one.process, rank.0);
        one.groups.iter().map(|group| group.iter().map(name).collect()).collect()
    }

    /// The process that another one calls by a rank, if it is known.
    fn process(&self, of: Process, rank: u32) -> Option<Process> {
        if rank < self.worlds[of.world].size {
            return Some(Process { rank, ..of });
        }
        self.by_process.get(&of)?.iter().find_map(|&at| {
            let place = rank.checked_sub(self.seen[at].first)?;
            self.lists[self.others[at]?].get(place as usize).copied()
        })
    }
}

/// The groups of a communicator; `None`: not known.
type Names = Vec<Vec<Option<Process>>>;

/// The groups of `other`, in the order of those of `one`, if these are the same as far as they are known.
fn agree(one: &Names, other: &Names) -> Option<Names> {
    let alike = |(one, other): (&Vec<Option<Process>>, &Vec<Option<Process>>)| {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_none() || one == other)
    };
    let mirrored = other.iter().rev().cloned().collect();
    let same_number = one.len() == other.len();
    [other.clone(), mirrored].into_iter().find(|other| same_number && one.iter().zip(other).all(alike))
}

/// Turns the ranks of one task's descriptions into tasks of the whole run.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    worlds: Arc<Worlds>,
    task: Rank,
    /// The first task of its world, and the number of tasks there.
    first: u32,
    count: u32,
    /// How many communicators without a parent it has described so far, by the members in the order of tasks. All members count alike.
    described: HashMap<Vec<Rank>, u32>,
}

impl Translation {
    /// Of the descriptions of `task`.
    pub(super) fn new(worlds: &Arc<Worlds>, task: Rank) -> Option<Self> {
        let (world, _) = worlds.place(task)?;
        let (first, end) = (worlds.firsts[world], *worlds.firsts.get(world + 1)?);
        Some(Self { worlds: worlds.clone(), task, first, count: end - first, described: HashMap::new() })
    }

    /// Passes an event to `take`, with tasks of the run in place of ranks.
    pub(super) fn pass<T>(&mut self, event: &Event<'_>, take: impl FnOnce(&Event<'_>) -> T) -> T {
        let with = |action| Event { action, ..*event };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        match &event.action {
            Action::Communicator(described) => {
                let described = self.communicator(described, &mut first, &mut second);
                take(&with(Action::Communicator(described)))
            }
            &Action::Other {
                bytes,
                detail: Detail::Sync { window, target, exclusive, assert, group: Some(group) },
            } => {
                let group = self.tasks(group, &mut first);
                let detail = Detail::Sync { window, target, exclusive, assert, group };
                take(&with(Action::Other { bytes, detail }))
            }
            _ => take(event),
        }
    }

    fn communicator<'a>(
        &mut self,
        described: &Communicator<'a>,
        members: &'a mut Vec<Rank>,
        others: &'a mut Vec<Rank>,
    ) -> Communicator<'a> {
        let members = self.tasks(described.members, members);
        let remote = match described.remote {
            Remote::None => Some(Remote::None),
            Remote::Inside(list) => self.tasks(list, others).map(Remote::Inside),
            Remote::Outside(_) => None,
        };
        match members.zip(remote) {
            Some((members, remote)) => {
                let origin = match described.origin {
                    Origin::Unseen { .. } if described.foreign => {
                        let others = if let Remote::Inside(list) = remote { listed(list) } else { &[] };
                        let mut everybody = [listed(members), others].concat();
                        everybody.sort_unstable();
                        let number = self.described.entry(everybody).or_default();
                        *number += 1;
                        Origin::Unseen { ordinal: *number - 1 }
                    }
                    origin => origin,
                };
                Communicator { origin, members, remote, foreign: false, ..described.clone() }
            }
            None => Communicator { foreign: true, ..described.clone() },
        }
    }

    /// The tasks of `members`, in `list`; `None`: some are not part of the run.
    fn tasks<'a>(&self, members: Members<'_>, list: &'a mut Vec<Rank>) -> Option<Members<'a>> {
        for rank in group_of(members, self.count)?.iter() {
            list.push(self.task_of(rank)?);
        }
        Some(Members::List(list))
    }

    fn task_of(&self, rank: Rank) -> Option<Rank> {
        if rank.0 < self.count {
            return Some(Rank(self.first + rank.0));
        }
        let mut met = self.worlds.met.get(&self.task)?.iter();
        met.find_map(|met| met.tasks.get(rank.0.checked_sub(met.first)? as usize).copied())
    }
}
