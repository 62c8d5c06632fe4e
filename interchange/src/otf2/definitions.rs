//! The definitions of an archive, and those of a location.

use super::chunks::{Chunks, Field, UNDEFINED};
use crate::error::{Problem, Result};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vef_format::capture::Group;
use vef_format::capture::event::Members;
use vef_format::ids::Rank;

/// Types of definitions.
mod kind {
    pub(super) const CLOCK: u8 = 5;
    pub(super) const STRING: u8 = 10;
    pub(super) const TREE_NODE: u8 = 12;
    pub(super) const LOCATION_GROUP: u8 = 13;
    pub(super) const LOCATION: u8 = 14;
    pub(super) const REGION: u8 = 15;
    pub(super) const GROUP: u8 = 18;
    pub(super) const COMM: u8 = 22;
    pub(super) const INTER_COMM: u8 = 43;
    /// In a location's file.
    pub(super) const MAPPING: u8 = 5;
    pub(super) const CLOCK_OFFSET: u8 = 6;
}

/// Types of groups.
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const COMM_SELF: u8 = 6;
/// Paradigm MPI of a group.
const MPI: u8 = 4;
/// Type of a location that is a thread.
const CPU_THREAD: u8 = 1;
/// What a mapping is of.
const REGIONS: u8 = 3;
const COMMUNICATORS: u8 = 6;

#[derive(Clone, Copy, Debug)]
struct Location {
    is_thread: bool,
    events: u64,
    process: u64,
}

#[derive(Clone, Debug)]
struct GroupDefinition {
    kind: u8,
    members: Vec<u64>,
}

/// The members of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// All ranks, in order: `MPI_COMM_WORLD`.
    World,
    /// Each rank has its own, of itself alone: the first of these is `MPI_COMM_SELF`, others have an index from 1.
    Itself(u32),
    /// These ranks; among the communicators with these members, the one with this index.
    Some(Arc<Group>, u32),
    /// Two groups.
    Inter,
    /// A group that is not defined.
    Unknown,
}

/// A thread of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) location: u64,
    /// Events that its definition promises, if there is one.
    pub(super) events: Option<u64>,
}

/// The definitions of an archive.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Ticks a second.
    pub(super) resolution: u64,
    strings: HashMap<u64, Arc<str>>,
    /// Their names.
    regions: HashMap<u64, u64>,
    locations: BTreeMap<u64, Location>,
    /// Names of the nodes of the machine.
    nodes: HashMap<u64, u64>,
    /// Nodes of the processes.
    processes: HashMap<u64, u64>,
    groups: BTreeMap<u64, GroupDefinition>,
    /// Their groups; `None`: there are two.
    comms: BTreeMap<u64, Option<u64>>,
}

/// Reads all records of a file of definitions.
fn each(path: &Path, chunk: u64, mut read: impl FnMut(&mut Chunks, u8) -> Field<()>) -> Result<()> {
    let mut chunks = Chunks::open(path, chunk)?;
    while let Some(kind) = chunks.next()? {
        let result = chunks.length().and_then(|end| {
            read(&mut chunks, kind)?;
            chunks.leave(end)
        });
        result.map_err(|stop| chunks.stopped(stop))?;
    }
    Ok(())
}

impl Definitions {
    /// Reads the file `path`.
    pub(super) fn open(path: &Path, chunk: u64) -> Result<Self> {
        let mut all = Self::default();
        each(path, chunk, |chunks, kind| all.read(chunks, kind))?;
        if all.resolution == 0 {
            let missing = Problem::Invalid("the properties of the clock are not defined".to_owned());
            return Err(missing.of_file(path));
        }
        Ok(all)
    }

    fn read(&mut self, chunks: &mut Chunks, kind: u8) -> Field<()> {
        match kind {
            kind::CLOCK => self.resolution = chunks.packed()?,
            kind::STRING => {
                let id = chunks.packed()?;
                self.strings.insert(id, chunks.text()?.into());
            }
            kind::TREE_NODE => {
                let id = chunks.packed()?;
                self.nodes.insert(id, chunks.packed()?);
            }
            kind::LOCATION_GROUP => {
                let (id, _name, _kind) = (chunks.packed()?, chunks.packed()?, chunks.byte()?);
                self.processes.insert(id, chunks.packed()?);
            }
            kind::LOCATION => {
                let (id, _name, kind) = (chunks.packed()?, chunks.packed()?, chunks.byte()?);
                let (events, process) = (chunks.packed()?, chunks.packed()?);
                self.locations.insert(id, Location { is_thread: kind == CPU_THREAD, events, process });
            }
            kind::REGION => {
                let id = chunks.packed()?;
                self.regions.insert(id, chunks.packed()?);
            }
            kind::GROUP => {
                let (id, _name, _old) = (chunks.packed()?, chunks.packed()?, chunks.byte()?);
                let mut members = Vec::new();
                for _ in 0..chunks.packed()? {
                    members.push(chunks.packed()?);
                }
                let (kind, paradigm) = (chunks.byte()?, chunks.byte()?);
                if paradigm == MPI {
                    self.groups.insert(id, GroupDefinition { kind, members });
                }
            }
            kind::COMM => {
                let (id, _name) = (chunks.packed()?, chunks.packed()?);
                self.comms.insert(id, Some(chunks.packed()?));
            }
            kind::INTER_COMM => {
                self.comms.insert(chunks.packed()?, None);
            }
            _ => {}
        }
        Ok(())
    }

    /// The threads of each rank: the location that the communicators name, then the others of its process.
    pub(super) fn ranks(&self) -> Option<Vec<Vec<Thread>>> {
        let world = self.groups.values().find(|group| group.kind == COMM_LOCATIONS)?;
        let named: HashSet<u64> = world.members.iter().copied().collect();
        let mut further: HashMap<u64, Vec<Thread>> = HashMap::new();
        for (&location, known) in &self.locations {
            if known.is_thread && known.events > 0 && !named.contains(&location) {
                let thread = Thread { location, events: Some(known.events) };
                further.entry(known.process).or_default().push(thread);
            }
        }
        let threads = |&location: &u64| {
            let known = self.locations.get(&location);
            let events = known.map(|known| known.events).filter(|&events| events != UNDEFINED);
            let mut threads = vec![Thread { location, events }];
            threads.extend(known.and_then(|known| further.remove(&known.process)).unwrap_or_default());
            threads
        };
        Some(world.members.iter().map(threads).collect())
    }

    /// The name of the host of a location.
    pub(super) fn host(&self, location: u64) -> &str {
        let process =
            self.locations.get(&location).and_then(|location| self.processes.get(&location.process));
        let name = process.and_then(|node| self.nodes.get(node)).and_then(|name| self.strings.get(name));
        name.map_or("", |name| name)
    }

    /// The name of a region, if it is a function of MPI.
    pub(super) fn function(&self, region: u64) -> Option<&Arc<str>> {
        self.strings.get(self.regions.get(&region)?).filter(|name| name.starts_with("MPI_"))
    }

    /// The members of all communicators, in a run of `tasks` ranks.
    pub(super) fn communicators(&self, tasks: u32) -> HashMap<u64, Who> {
        let everybody = Group::new(Members::All, tasks);
        let mut counts: HashMap<Arc<Group>, u32> = HashMap::new();
        let mut known: HashMap<u64, Option<Arc<Group>>> = HashMap::new();
        let (mut world, mut itself) = (false, 0);
        let mut who = |group: u64| {
            let Some(definition) = self.groups.get(&group) else { return Who::Unknown };
            if definition.kind == COMM_SELF {
                itself += 1;
                return Who::Itself(itself - 1);
            }
            let group = known.entry(group).or_insert_with(|| members(definition, tasks));
            let Some(group) = group.clone() else { return Who::Unknown };
            if everybody.as_ref() == Some(&*group) && !std::mem::replace(&mut world, true) {
                return Who::World;
            }
            let count = counts.entry(group.clone()).or_default();
            *count += 1;
            Who::Some(group, *count - 1)
        };
        self.comms.iter().map(|(&id, group)| (id, group.map_or(Who::Inter, &mut who))).collect()
    }
}

fn members(definition: &GroupDefinition, tasks: u32) -> Option<Arc<Group>> {
    let list: Vec<Rank> = match definition.kind {
        COMM_LOCATIONS => (0..tasks).map(Rank).collect(),
        COMM_GROUP => {
            let member = |&member: &u64| u32::try_from(member).ok().map(Rank);
            definition.members.iter().map(member).collect::<Option<_>>()?
        }
        _ => return None,
    };
    Group::new(Members::List(&list), tasks).map(Arc::new)
}

/// The definitions of a location: its own numbers for some things, and its clock.
#[derive(Debug, Default)]
pub(super) struct Local {
    regions: HashMap<u64, u64>,
    communicators: HashMap<u64, u64>,
    /// Time and offset in ticks, ascending.
    offsets: Vec<(u64, i64)>,
}

impl Local {
    /// Reads the file `path`, if there is one.
    pub(super) fn open(path: &Path, chunk: u64) -> Result<Self> {
        let mut local = Self::default();
        if path.exists() {
            each(path, chunk, |chunks, kind| local.read(chunks, kind))?;
            local.offsets.sort_unstable();
        }
        Ok(local)
    }

    fn read(&mut self, chunks: &mut Chunks, kind: u8) -> Field<()> {
        match kind {
            kind::MAPPING => {
                let of = match chunks.byte()? {
                    REGIONS => &mut self.regions,
                    COMMUNICATORS => &mut self.communicators,
                    _ => return Ok(()),
                };
                let (count, sparse) = (chunks.packed()?, chunks.byte()? != 0);
                for number in 0..count {
                    let number = if sparse { chunks.packed()? } else { number };
                    of.insert(number, chunks.packed()?);
                }
            }
            kind::CLOCK_OFFSET => {
                let time = chunks.full()?;
                self.offsets.push((time, chunks.packed()? as i64));
            }
            _ => {}
        }
        Ok(())
    }

    /// The number of a region in the archive.
    pub(super) fn region(&self, local: u64) -> u64 {
        self.regions.get(&local).copied().unwrap_or(local)
    }

    /// The number of a communicator in the archive.
    pub(super) fn communicator(&self, local: u64) -> u64 {
        self.communicators.get(&local).copied().unwrap_or(local)
    }

    /// A time on the archive's clock: the offset is interpolated between those measured, and continued beyond, as the OTF2 library
    /// does.
    pub(super) fn global(&self, time: u64) -> u64 {
        let after = self.offsets.partition_point(|&(at, _)| at <= time);
        let offset = match self.offsets[..] {
            [] => 0,
            [(_, offset)] => offset.into(),
            [_, .., _] => {
                let next = after.clamp(1, self.offsets.len() - 1);
                let [(t0, o0), (t1, o1)] = [next - 1, next]
                    .map(|at| (i128::from(self.offsets[at].0), i128::from(self.offsets[at].1)));
                o0 + (o1 - o0) * (i128::from(time) - t0) / (t1 - t0).max(1)
            }
        };
        (i128::from(time) + offset).clamp(0, u64::MAX.into()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_the_clock_are_interpolated() {
        let local = Local { offsets: vec![(100, -10), (200, 10)], ..Local::default() };
        let times = [50, 100, 125, 150, 200, 300].map(|time| local.global(time));
        assert_eq!(times, [30, 90, 120, 150, 210, 330]);
        assert_eq!(Local::default().global(7), 7);
    }
}
