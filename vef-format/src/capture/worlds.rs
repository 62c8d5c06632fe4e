//! Captures of several worlds: processes that a program spawns are further tasks, behind those of its `MPI_COMM_WORLD`.
//!
//! Each rank knows its own world, and calls the processes that it meets ([`Meeting`](super::event::Meeting)) by ranks beyond it. Which
//! processes these are, MPI tells nobody. Here the two sides of each meeting are brought together:
//!
//! - the members of a communicator that spawned processes, and the world of as many tasks whose `MPI_Init` ended when the spawning
//!   call did;
//! - the sides that accepted and connected on the same port, at the same time.
//!
//! With that, [`Translation`] turns the descriptions of communicators into those of one run. A world that nobody spawned is
//! not part of the capture: it is of an earlier run.

use super::error::CaptureError;
use super::event::{Action, Communicator, Detail, Event, MeetingWay, Members, Remote};
use super::group::Group;
use super::layout::RankInfo;
use crate::ids::{CommId, Rank};
use std::collections::{BTreeMap, HashMap};
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
    members: Option<Group>,
    port: String,
    /// When the call ended, ns since 1970.
    end: u64,
}

/// One side of a meeting, as its members see it together.
#[derive(Clone, Debug)]
struct Side {
    count: u32,
    port: String,
    end: u64,
    /// Indices of what its ranks say.
    seen: Vec<usize>,
}

/// The way of a meeting, the members of one side as an index in [`Meetings::lists`], and the number of such meetings of theirs so far.
type SideKey = (MeetingWay, usize, usize);

/// What the tasks of one world say.
#[derive(Debug, Default)]
pub(super) struct WorldMeetings {
    tasks: u32,
    /// When the last of them left `MPI_Init`, ns since 1970.
    begun: u64,
    seen: Vec<Seen>,
}

impl WorldMeetings {
    /// Adds what the rank with these facts says; `each` passes its events on.
    pub(super) fn add(
        &mut self,
        info: &RankInfo,
        each: impl FnOnce(&mut dyn FnMut(&Event<'_>) -> Result<(), CaptureError>) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        self.tasks = info.tasks;
        let mut zero = None;
        let mut members: HashMap<CommId, Group> = HashMap::new();
        // A meeting is described in front of the call that makes the communicator.
        let mut described = self.seen.len();
        each(&mut |event| {
            let zero = *zero.get_or_insert(event.start.0);
            let end = info.realtime.saturating_add(event.end.0.saturating_sub(zero));
            match &event.action {
                Action::Init => self.begun = self.begun.max(end),
                Action::Communicator(Communicator { id, members: list, .. }) => {
                    members.extend(group_of(*list, info.tasks).map(|group| (*id, group)));
                }
                Action::Meeting(meeting) => self.seen.push(Seen {
                    process: Process { world: 0, rank: info.rank.0 },
                    first: meeting.first.0,
                    count: meeting.count,
                    way: meeting.way,
                    members: members.get(&meeting.comm).cloned(),
                    port: meeting.port.to_owned(),
                    end,
                }),
                Action::Creation(_) => {
                    self.seen[described..].iter_mut().for_each(|seen| seen.end = end);
                    described = self.seen.len();
                }
                _ => {}
            }
            Ok(())
        })
    }
}

/// The members in a world of `tasks` tasks, and beyond it.
fn group_of(members: Members<'_>, tasks: u32) -> Option<Group> {
    match members {
        Members::All => Group::new(members, tasks),
        _ => Group::new(members, u32::MAX),
    }
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
        let (sizes, begun): (Vec<u32>, Vec<u64>) =
            worlds.iter().map(|world| (world.tasks, world.begun)).unzip();
        let of_world = |(world, meetings): (usize, WorldMeetings)| {
            meetings
                .seen
                .into_iter()
                .map(move |seen| Seen { process: Process { world, ..seen.process }, ..seen })
        };
        let mut meetings = Meetings::new(worlds.into_iter().enumerate().flat_map(of_world).collect(), sizes);
        // Processes that meet may meet others together.
        while meetings.find(&begun) {}
        let Meetings { sizes, .. } = &meetings;
        let parts: Vec<usize> =
            (0..sizes.len()).filter(|&world| world == 0 || meetings.is_spawned[world]).collect();
        let mut firsts = vec![0u32];
        let mut place = vec![None; sizes.len()];
        for &world in &parts {
            let first = firsts[firsts.len() - 1];
            place[world] = Some(first);
            firsts.push(first.saturating_add(sizes[world]));
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

    /// The index of the world of a task, and its rank there.
    pub(super) fn place(&self, task: Rank) -> Option<(usize, Rank)> {
        let world = self.firsts.partition_point(|&first| first <= task.0).checked_sub(1)?;
        Some((world, Rank(task.0 - self.firsts[world])))
    }
}

/// All meetings, and what is known of them so far.
struct Meetings {
    /// The number of tasks of each world.
    sizes: Vec<u32>,
    /// Whether each world is known to be spawned.
    is_spawned: Vec<bool>,
    seen: Vec<Seen>,
    /// Those of each process, by index.
    by_process: HashMap<Process, Vec<usize>>,
    /// The members of the other side of each, as an index in `lists`, if they are known.
    others: Vec<Option<usize>>,
    /// The members of sides, in their order.
    lists: Vec<Vec<Process>>,
    list_of: HashMap<Vec<Process>, usize>,
}

impl Meetings {
    fn new(seen: Vec<Seen>, sizes: Vec<u32>) -> Self {
        let mut by_process: HashMap<Process, Vec<usize>> = HashMap::new();
        for (at, seen) in seen.iter().enumerate() {
            by_process.entry(seen.process).or_default().push(at);
        }
        let (is_spawned, others) = (vec![false; sizes.len()], vec![None; seen.len()]);
        Self { sizes, is_spawned, seen, by_process, others, lists: Vec::new(), list_of: HashMap::new() }
    }

    /// Finds the other sides of meetings whose own side is known; returns whether it found some. `begun`: when each world began.
    fn find(&mut self, begun: &[u64]) -> bool {
        let sides = self.open_sides();
        let of = |way| sides.iter().filter(move |((of, ..), _)| *of == way);
        let mut found: Vec<(&Side, Vec<Process>)> = Vec::new();
        let mut taken: Vec<SideKey> = Vec::new();
        for world in (1..self.sizes.len()).filter(|&world| !self.is_spawned[world]) {
            let children: Vec<_> = (0..self.sizes[world]).map(|rank| Process { world, rank }).collect();
            let apart = |side: &Side| side.end.abs_diff(begun[world]);
            let fits = |(key, side): &(&SideKey, &Side)| {
                side.count == self.sizes[world] && apart(side) < APART && !taken.contains(key)
            };
            let nearest = of(MeetingWay::Spawned).filter(fits).min_by_key(|(_, side)| apart(side));
            if let Some((&key, side)) = nearest {
                taken.push(key);
                let own = of(MeetingWay::Parents).find(|((_, list, _), _)| self.lists[*list] == children);
                found.extend(own.map(|(_, own)| (own, self.lists[key.1].clone())));
                found.push((side, children));
            }
        }
        for (accepted, side) in of(MeetingWay::Accepted).filter(|(_, side)| !side.port.is_empty()) {
            let size = |key: &SideKey| self.lists[key.1].len() as u32;
            let fits = |(key, other): &(&SideKey, &Side)| {
                (side.count, other.count) == (size(key), size(accepted))
                    && side.port == other.port
                    && side.end.abs_diff(other.end) < APART
                    && !taken.contains(key)
            };
            let nearest = of(MeetingWay::Connected).filter(fits);
            if let Some((&key, other)) = nearest.min_by_key(|(_, other)| side.end.abs_diff(other.end)) {
                taken.push(key);
                found.push((side, self.lists[key.1].clone()));
                found.push((other, self.lists[accepted.1].clone()));
            }
        }
        let is_progress = !found.is_empty();
        for (side, others) in found {
            if let Some(first) = others.first() {
                // The processes of a spawned world belong to the run.
                self.is_spawned[first.world] = true;
            }
            let (count, list) = (others.len(), self.list(others));
            for &at in side.seen.iter().filter(|&&at| self.seen[at].count as usize == count) {
                self.others[at] = Some(list);
            }
        }
        is_progress
    }

    /// The sides with known members whose other side is not known.
    fn open_sides(&mut self) -> BTreeMap<SideKey, Side> {
        let mut sides: BTreeMap<SideKey, Side> = BTreeMap::new();
        let mut numbers: HashMap<(Process, MeetingWay, usize), usize> = HashMap::new();
        for at in 0..self.seen.len() {
            let seen = &self.seen[at];
            let members = seen.members.iter().flat_map(Group::iter);
            let members: Option<Vec<_>> = members.map(|rank| self.process(seen.process, rank.0)).collect();
            let Some(members) = members.filter(|members| !members.is_empty()) else { continue };
            let list = self.list(members);
            let seen = &self.seen[at];
            let number = numbers.entry((seen.process, seen.way, list)).or_default();
            *number += 1;
            if self.others[at].is_some() || seen.way == MeetingWay::Unseen {
                continue;
            }
            let new = || Side { count: seen.count, port: String::new(), end: 0, seen: Vec::new() };
            let side = sides.entry((seen.way, list, *number)).or_insert_with(new);
            side.end = side.end.max(seen.end);
            if !seen.port.is_empty() {
                side.port.clone_from(&seen.port);
            }
            side.seen.push(at);
        }
        sides
    }

    /// The index of a list of members.
    fn list(&mut self, members: Vec<Process>) -> usize {
        *self.list_of.entry(members).or_insert_with_key(|members| {
            self.lists.push(members.clone());
            self.lists.len() - 1
        })
    }

    /// The process that another one calls by a rank, if it is known.
    fn process(&self, of: Process, rank: u32) -> Option<Process> {
        if rank < self.sizes[of.world] {
            return Some(Process { rank, ..of });
        }
        self.by_process.get(&of)?.iter().find_map(|&at| {
            let place = rank.checked_sub(self.seen[at].first)?;
            self.lists[self.others[at]?].get(place as usize).copied()
        })
    }
}

/// Turns the ranks of one task's descriptions into tasks of the whole run.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    worlds: Arc<Worlds>,
    task: Rank,
    /// The first task of its world, and the number of tasks there.
    first: u32,
    count: u32,
}

impl Translation {
    /// Of the descriptions of `task`.
    pub(super) fn new(worlds: &Arc<Worlds>, task: Rank) -> Option<Self> {
        let (world, _) = worlds.place(task)?;
        let (first, end) = (worlds.firsts[world], *worlds.firsts.get(world + 1)?);
        Some(Self { worlds: worlds.clone(), task, first, count: end - first })
    }

    /// Passes an event to `take`, with tasks of the run in place of ranks.
    pub(super) fn pass<T>(&self, event: &Event<'_>, take: impl FnOnce(&Event<'_>) -> T) -> T {
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
        &self,
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
            Some((members, remote)) => Communicator { members, remote, foreign: false, ..described.clone() },
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
