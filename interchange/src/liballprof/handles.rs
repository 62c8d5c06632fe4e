//! Which communicators the handles in the lines of a rank are.
//!
//! The wrapper for C records the address at which a creating call leaves the new handle, and later lines have the handle, with own rank
//! and size. So a handle that is new is the first communicator, of those created so far without a known handle, in which the rank
//! has this number among so many. Where several are, the order of their first uses decides, which is counted.

use super::line::{Fallible, Line, number};
use crate::calls::creations::{How, Op};
use crate::calls::resolved::Comm;
use crate::error::Problem;
use hashbrown::{HashMap, HashSet};
use vef_format::ids::Rank;

/// What is wrong: handles that could be of several communicators.
pub(super) const GUESSED: &str =
    "communicators told by the order of their first uses, among several of one size";

/// No handle; as an id, the world.
pub(super) const NONE: u64 = u64::MAX;

/// Own rank and size.
type Place = (i64, i64);

/// What lines do with communicators.
#[derive(Debug)]
enum Step {
    Use { handle: u64, place: Place },
    Create { parent: u64, how: How, new: Option<New> },
    Free(u64),
}

/// What the line of a creating call has of the new communicator: its handle, or the address at which the handle is stored.
#[derive(Clone, Copy, Debug)]
enum New {
    Handle(u64),
    Address(u64),
}

/// The communicators in the lines of a rank, in order.
#[derive(Debug, Default)]
pub(super) struct Steps {
    all: Vec<Step>,
    /// Handles that were used since the last creation.
    used: HashSet<u64>,
}

impl Steps {
    /// Adds what a line does.
    pub(super) fn line(&mut self, line: &Line<'_>) {
        for step in steps(line).into_iter().flatten() {
            match step {
                Step::Use { handle, .. } if !self.used.insert(handle) => {}
                Step::Use { .. } => self.all.push(step),
                Step::Create { .. } | Step::Free(_) => {
                    self.used.clear();
                    self.all.push(step);
                }
            }
        }
    }

    /// The creating calls of the rank, in terms of the ids of [`Handles`], as far as its communicators are known.
    pub(super) fn ops(&self, handles: &mut Handles<'_>) -> Vec<Op> {
        let mut ops = Vec::new();
        for step in &self.all {
            ops.extend(handles.step(step));
        }
        ops
    }
}

fn steps(line: &Line<'_>) -> [Option<Step>; 2] {
    let place = |[handle, me, size]: [i64; 3]| Step::Use { handle: handle as u64, place: (me, size) };
    let used = line.position_of_comm().and_then(|at| line.triple(at).ok()).map(place);
    let new = |at: usize| {
        let field = line.field(at).ok()?;
        let handle = field.split(',').next().and_then(number)? as u64;
        Some(if field.contains(',') { New::Handle(handle) } else { New::Address(handle) })
    };
    let create = |how, new| Some(Step::Create { parent: line.triple(0).ok()?[0] as u64, how, new });
    let created = match line.function {
        "MPI_Comm_dup" => create(How::Same, new(1)),
        "MPI_Comm_split" => match (line.number(1), line.number(2)) {
            (Ok(color), Ok(key)) => {
                let (color, key) = (color as i32, key as i32);
                create(How::Split { color, key }, new(3).filter(|_| color >= 0))
            }
            _ => None,
        },
        "MPI_Comm_free" => new(0).map(|(New::Handle(at) | New::Address(at))| Step::Free(at)),
        _ => None,
    };
    [used, created]
}

/// A communicator whose handle is not known.
#[derive(Debug)]
struct Open<'a> {
    id: u64,
    address: u64,
    /// Its members, and the rank's place among them, if they are known.
    known: Option<(&'a Comm, Place)>,
}

/// The communicators of a rank by their handles, as its lines are read.
#[derive(Debug)]
pub(super) struct Handles<'a> {
    rank: Rank,
    world: u64,
    /// What the creating calls of the rank make, as far as it is known.
    created: std::slice::Iter<'a, Option<Comm>>,
    made: u64,
    /// With own rank and size, where lines said them.
    ids: HashMap<u64, (u64, Option<Place>)>,
    open: Vec<Open<'a>>,
    /// Handles that are none of these.
    unknown: HashSet<u64>,
    /// The handle that was stored at an address.
    stored: HashMap<u64, u64>,
    /// Handles that could be of several communicators.
    pub(super) guessed: u64,
}

impl<'a> Handles<'a> {
    pub(super) fn new(rank: u32, world: u64, created: &'a [Option<Comm>]) -> Self {
        Self {
            rank: Rank(rank),
            world,
            created: created.iter(),
            made: 0,
            ids: HashMap::new(),
            open: Vec::new(),
            unknown: HashSet::new(),
            stored: HashMap::new(),
            guessed: 0,
        }
    }

    /// Reads a line: puts ids, which are the same in all ranks for the world, in place of its handles; also returns the call that creates a
    /// communicator.
    pub(super) fn line(&mut self, line: &mut Line<'_>) -> Fallible<Option<Op>> {
        let [used, created] = steps(line);
        if let Some(Step::Use { handle, place }) = used {
            line.comm = Some(self.id(handle, place));
        }
        if let ("MPI_Comm_dup" | "MPI_Comm_split", None) = (line.function, &created) {
            let found = line.arguments.join(":");
            return Err(Problem::Expected { expected: "a communicator", found });
        }
        Ok(created.as_ref().and_then(|step| self.step(step)))
    }

    fn step(&mut self, step: &Step) -> Option<Op> {
        match step {
            Step::Use { handle, place } => {
                self.id(*handle, *place);
                None
            }
            Step::Create { parent, how, new } => {
                // Its line was a use.
                let parent = if *parent == self.world {
                    NONE
                } else {
                    self.ids.get(parent).map_or(*parent, |&(id, _)| id)
                };
                let comm = self.created.next().and_then(Option::as_ref);
                let known = comm.and_then(|comm| match comm {
                    Comm::Of(group) => {
                        let me = i64::from(group.rank_of(self.rank)?.0);
                        Some((comm, (me, i64::from(group.count()))))
                    }
                    Comm::Foreign(_) => None,
                });
                self.unknown.clear();
                self.made += 1;
                // Beyond any address, and apart from those of the predefined ones.
                let id = NONE - 1 - self.made;
                match *new {
                    Some(New::Handle(handle)) => drop(self.ids.insert(handle, (id, None))),
                    Some(New::Address(address)) => {
                        // What was stored there is to be had by copies alone.
                        self.stored.remove(&address);
                        self.open.push(Open { id, address, known });
                    }
                    None => {}
                }
                Some(Op::Create { parent, how: how.clone(), new: new.map(|_| id) })
            }
            Step::Free(at) => {
                self.open.retain(|open| open.address != *at);
                let handle = self.stored.remove(at).unwrap_or(*at);
                self.ids.remove(&handle);
                None
            }
        }
    }

    /// The id of a communicator; of one that no call created, its handle.
    fn id(&mut self, handle: u64, place: Place) -> u64 {
        if handle == self.world {
            return NONE;
        }
        match self.ids.get(&handle) {
            Some(&(id, of)) if of.is_none_or(|of| of == place) => return id,
            // It was freed by a copy of the handle, and the handle is another's now.
            Some(_) => drop(self.ids.remove(&handle)),
            None => {}
        }
        if self.unknown.contains(&handle) {
            return handle;
        }
        let fits = |open: &&Open<'_>| open.known.is_some_and(|(_, of)| of == place);
        let named = self.open.iter().find(|open| open.address == handle);
        let mut fitting = self.open.iter().filter(fits);
        let Some(first) = named.or_else(|| fitting.next()) else {
            self.unknown.insert(handle);
            return handle;
        };
        let is_guessed = named.is_none() && fitting.next().is_some();
        let (id, address) = (first.id, first.address);
        self.guessed += u64::from(is_guessed);
        self.open.retain(|open| open.id != id);
        self.ids.insert(handle, (id, Some(place)));
        self.stored.insert(address, handle);
        id
    }
}
