//! What the built-in tools know of communicators and datatypes, by handle.

use crate::handles::HandleMap;
use mpi_abi::api::Mpi;
use mpi_abi::handles::{Comm, Datatype};

/// A datatype.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Type {
    /// Bytes of one element.
    pub(super) size: u64,
    /// MinI's code of it.
    pub(super) code: u8,
}

/// MinI's codes of predefined datatypes; others count as derived ones.
const CODES: [(&str, u8); 11] = [
    ("MPI_DOUBLE", 0),
    ("MPI_DOUBLE_PRECISION", 0),
    ("MPI_INT", 1),
    ("MPI_INTEGER", 1),
    ("MPI_CHAR", 2),
    ("MPI_CHARACTER", 2),
    ("MPI_SHORT", 3),
    ("MPI_LONG", 4),
    ("MPI_FLOAT", 5),
    ("MPI_REAL", 5),
    ("MPI_BYTE", 6),
];
/// A derived datatype without holes.
const CONTIGUOUS: u8 = 100;
/// A derived datatype with holes.
const NOT_CONTIGUOUS: u8 = 101;

/// Datatypes seen so far.
pub(super) struct Types {
    known: HandleMap<Type>,
    last: (usize, Type),
}

impl Types {
    pub(super) fn new() -> Self {
        Self { known: HandleMap::new(), last: (0, Type::default()) }
    }

    /// The datatype behind a handle that MPI has accepted.
    #[inline]
    pub(super) fn get(&mut self, mpi: &Mpi, handle: usize) -> Type {
        if self.last.0 == handle && handle != 0 {
            return self.last.1;
        }
        let found = match self.known.get(handle) {
            Some(&known) => known,
            None => {
                let found = look_up(mpi, handle);
                self.known.insert(handle, found);
                found
            }
        };
        self.last = (handle, found);
        found
    }

    /// The handle was freed.
    pub(super) fn forget(&mut self, handle: usize) {
        self.last = (0, Type::default());
        self.known.remove(handle);
    }
}

#[cold]
fn look_up(mpi: &Mpi, handle: usize) -> Type {
    let abi = mpi.abi();
    if handle == abi.predefined.datatype_null || handle == 0 {
        return Type { size: 0, code: CONTIGUOUS };
    }
    // SAFETY: a handle that the program passed to a call which MPI found in order.
    let datatype = unsafe { Datatype::from_word(handle) };
    let size = mpi.type_size(datatype).ok().flatten().unwrap_or(0);
    let name = abi.basic.named().filter(|(_, word)| **word == Some(handle)).map(|(name, _)| name);
    let code =
        name.filter_map(|name| CODES.iter().find(|(other, _)| *other == name)).map(|(_, code)| *code).next();
    let code = code.unwrap_or_else(|| match mpi.type_is_contiguous(datatype) {
        Ok(true) => CONTIGUOUS,
        _ => NOT_CONTIGUOUS,
    });
    Type { size, code }
}

/// A communicator.
#[derive(Clone, Debug, Default)]
pub(super) struct Communicator {
    /// Its name in text traces.
    pub(super) name: String,
    /// Number of members.
    pub(super) size: u32,
    /// This process's rank in it.
    pub(super) rank: i32,
    /// An inter-communicator, or one with members outside `MPI_COMM_WORLD`.
    pub(super) foreign: bool,
    /// The members' ranks in `MPI_COMM_WORLD`; empty: the same ranks.
    pub(super) members: Vec<i32>,
    /// How many communicators were made from it.
    pub(super) children: u32,
    /// How many rootless collectives it had.
    pub(super) collectives: u64,
}

impl Communicator {
    /// The rank in `MPI_COMM_WORLD` of a member.
    #[inline]
    pub(super) fn world_rank(&self, rank: i32) -> i32 {
        match self.members.get(rank as usize) {
            Some(&member) => member,
            None => rank,
        }
    }

    /// The first member's rank in `MPI_COMM_WORLD`.
    pub(super) fn first(&self) -> i32 {
        self.world_rank(0)
    }
}

/// Communicators seen so far.
pub(super) struct Communicators {
    known: HandleMap<u32>,
    all: Vec<Communicator>,
    last: (usize, u32),
    /// Places of the list that are free.
    free: Vec<u32>,
}

impl Communicators {
    pub(super) fn new() -> Self {
        Self { known: HandleMap::new(), all: Vec::new(), last: (0, 0), free: Vec::new() }
    }

    /// The communicator behind a handle that MPI has accepted.
    #[inline]
    pub(super) fn get(&mut self, mpi: &Mpi, handle: usize) -> &mut Communicator {
        if self.last.0 != handle || handle == 0 {
            let place = match self.known.get(handle) {
                Some(&place) => place,
                None => self.insert(mpi, handle, None),
            };
            self.last = (handle, place);
        }
        &mut self.all[self.last.1 as usize]
    }

    /// Describes a communicator, `name`d if it was seen made. `like`: one with the same members that may be asked in its place.
    #[cold]
    pub(super) fn describe(&mut self, mpi: &Mpi, handle: usize, like: Option<usize>) -> &mut Communicator {
        let place = self.insert(mpi, handle, like);
        &mut self.all[place as usize]
    }

    #[cold]
    fn insert(&mut self, mpi: &Mpi, handle: usize, like: Option<usize>) -> u32 {
        let predefined = &mpi.abi().predefined;
        // SAFETY: a handle that MPI has given to the program or accepted from it.
        let asked = unsafe { Comm::from_word(like.unwrap_or(handle)) };
        let all = mpi.comm_members(asked).unwrap_or_default();
        let members: Vec<i32> = all.iter().filter_map(|member| *member).collect();
        let foreign = members.len() != all.len() || mpi.comm_is_inter(asked).unwrap_or(true);
        let mut found = Communicator {
            name: String::new(),
            size: members.len() as u32,
            rank: mpi.comm_rank(asked).unwrap_or(0),
            foreign,
            members,
            children: 0,
            collectives: 0,
        };
        found.name = match handle {
            _ if handle == predefined.comm_world => "MPI_COMM_WORLD".into(),
            _ if handle == predefined.comm_self => "MPI_COMM_SELF".into(),
            _ => format!("mini_comm_unseen_{}_{}", found.first(), found.size),
        };
        if found.members.iter().enumerate().all(|(rank, &member)| member == rank as i32) {
            found.members = Vec::new();
        }
        let place = match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = found;
                place
            }
            None => {
                self.all.push(found);
                self.all.len() as u32 - 1
            }
        };
        self.known.insert(handle, place);
        self.last = (0, 0);
        place
    }

    /// The handle is about to be freed; what it was.
    pub(super) fn forget(&mut self, handle: usize) -> Option<Communicator> {
        self.last = (0, 0);
        let place = self.known.remove(handle)?;
        self.free.push(place);
        Some(std::mem::take(&mut self.all[place as usize]))
    }
}
