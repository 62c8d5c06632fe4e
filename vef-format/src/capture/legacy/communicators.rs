//! `x.comm`: the communicators of a task.

use super::{LegacyError, Problem};
use crate::capture::event::{Communicator, Members, Origin, Remote};
use crate::error::Place;
use crate::ids::{CommId, CommRank, Rank};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The communicators of one task, in file order.
#[derive(Debug)]
pub(super) struct Communicators {
    all: Vec<Known>,
    by_id: BTreeMap<i32, usize>,
    world: CommId,
}

/// A communicator of the file.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: CommId,
    /// Number of members.
    pub(super) size: u32,
    /// Communicator rank of this task.
    pub(super) me: CommRank,
    origin: Origin,
    /// `None`: all tasks, in world order.
    members: Option<Vec<Rank>>,
}

impl Communicators {
    /// Reads the file `path` of task `me`.
    ///
    /// The first communicator of all tasks is assumed to be `MPI_COMM_WORLD`; if there is none, a number that the file does
    /// not use stands for it. Communicators with the same members are identified by their order in each task's file.
    pub(super) fn open(path: &Path, me: Rank, tasks: u32) -> Result<Self, LegacyError> {
        let bytes = std::fs::read(path)
            .map_err(|error| LegacyError { place: Place::file(path), problem: Problem::Io(error) })?;
        let mut words = Words { path, bytes: &bytes, at: 0 };
        let (mut all, mut by_id) = (Vec::new(), BTreeMap::new());
        let mut seen: HashMap<Option<Vec<Rank>>, u32> = HashMap::new();
        let mut world = None;
        while words.at < bytes.len() {
            let begin = words.at;
            let number = words.within("a communicator's id", 0, i32::MAX)?;
            let members = members(&mut words, tasks)?;
            let id = CommId(number as u32);
            if by_id.insert(number, all.len()).is_some() {
                return Err(words.wrong(
                    begin,
                    "a communicator's id",
                    number,
                    "one that the file has not had",
                ));
            }
            let origin = if members.is_none() && world.is_none() {
                world = Some(id);
                Origin::World
            } else {
                let ordinal = seen.entry(members.clone()).or_default();
                *ordinal += 1;
                Origin::Unseen { ordinal: *ordinal - 1 }
            };
            let (size, me) = match &members {
                None => (tasks, CommRank(me.0)),
                Some(list) => match list.iter().position(|&member| member == me) {
                    Some(at) => (list.len() as u32, CommRank(at as u32)),
                    None => return Err(words.error(begin, Problem::Stranger(number))),
                },
            };
            all.push(Known { id, size, me, origin, members });
        }
        let world = world.unwrap_or_else(|| {
            let id = CommId(by_id.last_key_value().map_or(0, |(&last, _)| last as u32 + 1));
            let me = CommRank(me.0);
            all.push(Known { id, size: tasks, me, origin: Origin::World, members: None });
            id
        });
        Ok(Self { all, by_id, world })
    }

    /// The communicator of all tasks, in which peers are world ranks.
    pub(super) fn world(&self) -> CommId {
        self.world
    }

    /// Number of communicators.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The communicator at `index` in file order.
    pub(super) fn get(&self, index: usize) -> Option<Communicator<'_>> {
        self.all.get(index).map(|known| Communicator {
            id: known.id,
            origin: known.origin,
            split: None,
            members: known.members.as_deref().map_or(Members::All, Members::List),
            remote: Remote::None,
            foreign: false,
        })
    }

    /// The communicator with the number `id`.
    pub(super) fn find(&self, id: i32) -> Option<&Known> {
        self.by_id.get(&id).map(|&index| &self.all[index])
    }
}

/// Reads members; `None`: all tasks.
fn members(words: &mut Words<'_>, tasks: u32) -> Result<Option<Vec<Rank>>, LegacyError> {
    let begin = words.at;
    let most = i32::try_from(tasks).unwrap_or(i32::MAX);
    let size = words.within("a communicator's size", 1, most)?;
    let first = words.at;
    if words.next()? == -1 {
        if size != most {
            return Err(words.wrong(
                begin,
                "the size of a communicator of all tasks",
                size,
                &tasks.to_string(),
            ));
        }
        return Ok(None);
    }
    words.at = first;
    if words.bytes.len() - words.at < 4 * size as usize {
        return Err(words.error(begin, Problem::Cut));
    }
    let mut list = Vec::with_capacity(size as usize);
    for _ in 0..size {
        list.push(Rank(words.within("a member", 0, most - 1)? as u32));
    }
    if size == most && list.iter().enumerate().all(|(index, member)| member.index() == index) {
        return Ok(None);
    }
    let mut sorted = list.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(words.wrong(begin, "a member", twice[0].0 as i32, "one that comes once"));
    }
    Ok(Some(list))
}

/// A file of 32-bit little-endian integers.
struct Words<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<i32, LegacyError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(word) => {
                self.at += 4;
                Ok(i32::from_le_bytes(*word))
            }
            None => Err(self.error(self.at, Problem::Cut)),
        }
    }

    fn within(&mut self, field: &'static str, least: i32, most: i32) -> Result<i32, LegacyError> {
        let at = self.at;
        let value = self.next()?;
        if value < least || value > most {
            return Err(self.wrong(at, field, value, &format!("from {least} to {most}")));
        }
        Ok(value)
    }

    fn wrong(&self, at: usize, field: &'static str, found: i32, expected: &str) -> LegacyError {
        self.error(at, Problem::Value { field, found: found.into(), expected: expected.to_owned() })
    }

    fn error(&self, at: usize, problem: Problem) -> LegacyError {
        LegacyError { place: Place::offset(self.path, at as u64), problem }
    }
}
