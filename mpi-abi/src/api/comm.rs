//! Communicators and groups: ranks, members, and making them.

use super::{Mpi, int, pmpi};
use crate::error::Result;
use crate::handles::{Comm, Group, Session};
use std::ffi::c_int;

impl Mpi {
    /// Makes an `Mpi` for a program without `MPI_Init`: the processes of the session's `mpi://WORLD` take the place
    /// of `MPI_COMM_WORLD`. The group is never freed.
    pub fn in_session(self, session: Session) -> Result<Mpi> {
        let name = c"mpi://WORLD".as_ptr();
        let world = self.handle(|new| pmpi!(self, MPI_Group_from_session_pset(session.word(), name, new)))?;
        Ok(Mpi { world: Some(world), ..self })
    }

    /// This process's rank in `MPI_COMM_WORLD`.
    pub fn world_rank(&self) -> Result<i32> {
        match self.world {
            Some(world) => self.number(|rank| pmpi!(self, MPI_Group_rank(world.word(), rank))),
            None => self.comm_rank(self.abi().comm_world()),
        }
    }

    /// The size of `MPI_COMM_WORLD`.
    pub fn world_size(&self) -> Result<i32> {
        match self.world {
            Some(world) => self.group_size(world),
            None => self.comm_size(self.abi().comm_world()),
        }
    }

    /// `MPI_Comm_get_parent`: the inter-communicator with the processes that spawned this one; `None`: it was not spawned.
    pub fn parent(&self) -> Result<Option<Comm>> {
        let parent: Comm = self.handle(|parent| pmpi!(self, MPI_Comm_get_parent(parent)))?;
        Ok((parent.word() != self.abi().predefined.comm_null).then_some(parent))
    }

    /// `MPI_Comm_rank`.
    pub fn comm_rank(&self, comm: Comm) -> Result<i32> {
        self.number(|rank| pmpi!(self, MPI_Comm_rank(comm.word(), rank)))
    }

    /// `MPI_Comm_size`: of an inter-communicator, the size of the local group.
    pub fn comm_size(&self, comm: Comm) -> Result<i32> {
        self.number(|size| pmpi!(self, MPI_Comm_size(comm.word(), size)))
    }

    /// `MPI_Comm_test_inter`: whether it is an inter-communicator.
    pub fn comm_is_inter(&self, comm: Comm) -> Result<bool> {
        Ok(self.number(|flag| pmpi!(self, MPI_Comm_test_inter(comm.word(), flag)))? != 0)
    }

    /// The ranks from which this process receives in neighbourhood collectives, and those to which it sends, in the order of their
    /// blocks; `None`: `MPI_PROC_NULL`. Both empty without a topology.
    pub fn comm_neighbours(&self, comm: Comm) -> Result<[Vec<Option<i32>>; 2]> {
        let constants = &self.abi().constants;
        let kind = self.number(|kind| pmpi!(self, MPI_Topo_test(comm.word(), kind)))?;
        let room = |count: c_int| vec![0i32; count.max(0) as usize];
        let [sources, destinations] = if kind == constants.cart {
            let dimensions =
                self.number(|dimensions| pmpi!(self, MPI_Cartdim_get(comm.word(), dimensions)))?;
            let mut neighbours = room(2 * dimensions);
            for (dimension, pair) in (0i32..).zip(neighbours.chunks_exact_mut(2)) {
                let (before, behind) = (pair.as_mut_ptr(), pair[1..].as_mut_ptr());
                pmpi!(self, MPI_Cart_shift(comm.word(), dimension, 1i32, before, behind))?;
            }
            [neighbours.clone(), neighbours]
        } else if kind == constants.graph {
            let rank = self.comm_rank(comm)?;
            let count =
                self.number(|count| pmpi!(self, MPI_Graph_neighbors_count(comm.word(), rank, count)))?;
            let mut neighbours = room(count);
            pmpi!(self, MPI_Graph_neighbors(comm.word(), rank, count, neighbours.as_mut_ptr()))?;
            [neighbours.clone(), neighbours]
        } else if kind == constants.dist_graph {
            let (mut sources, mut destinations): (c_int, c_int) = (0, 0);
            let (from, to) = (&raw mut sources, &raw mut destinations);
            self.number(|weighted| {
                pmpi!(self, MPI_Dist_graph_neighbors_count(comm.word(), from, to, weighted))
            })?;
            let [mut from, mut from_weights] = [room(sources), room(sources)];
            let [mut to, mut to_weights] = [room(destinations), room(destinations)];
            let (from_at, to_at) = (from.as_mut_ptr(), to.as_mut_ptr());
            let weights = (from_weights.as_mut_ptr(), to_weights.as_mut_ptr());
            let word = comm.word();
            pmpi!(
                self,
                MPI_Dist_graph_neighbors(word, sources, from_at, weights.0, destinations, to_at, weights.1)
            )?;
            [from, to]
        } else {
            Default::default()
        };
        let null = constants.proc_null;
        let ranks = |list: Vec<i32>| list.into_iter().map(|rank| (rank != null).then_some(rank)).collect();
        Ok([sources, destinations].map(ranks))
    }

    /// `MPI_Comm_dup`. Collective.
    pub fn comm_dup(&self, comm: Comm) -> Result<Comm> {
        self.handle(|new| pmpi!(self, MPI_Comm_dup(comm.word(), new)))
    }

    /// `MPI_Comm_split`, ranks in the order of `key`; returns `None` on a process without a color. Collective.
    pub fn comm_split(&self, comm: Comm, color: Option<i32>, key: i32) -> Result<Option<Comm>> {
        let color = color.unwrap_or(self.abi().constants.undefined);
        let new: Comm = self.handle(|new| pmpi!(self, MPI_Comm_split(comm.word(), color, key, new)))?;
        Ok((new.word() != self.abi().predefined.comm_null).then_some(new))
    }

    /// `MPI_Cart_create` without reordering: a grid of extents `dims`, periodic in all dimensions. Collective.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call), for example if the grid is larger than `comm`.
    pub fn cart_create(&self, comm: Comm, dims: &[i32]) -> Result<Comm> {
        let periods = vec![1i32; dims.len()];
        let count = int("MPI_Cart_create", "dimensions", dims.len())?;
        self.handle(|new| {
            pmpi!(self, MPI_Cart_create(comm.word(), count, dims.as_ptr(), periods.as_ptr(), 0i32, new))
        })
    }

    /// The members of a communicator (of the local group of an inter-communicator) as ranks in `MPI_COMM_WORLD`;
    /// `None`: not a member of that.
    pub fn comm_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        let make = |group| pmpi!(self, MPI_Comm_group(comm.word(), group));
        self.with_group(make, |group| self.group_members(group))
    }

    /// The members of the remote group of an inter-communicator, as [`Mpi::comm_members`].
    pub fn comm_remote_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        let make = |group| pmpi!(self, MPI_Comm_remote_group(comm.word(), group));
        self.with_group(make, |group| self.group_members(group))
    }

    /// The members of a group, as [`Mpi::comm_members`].
    pub fn group_members(&self, group: Group) -> Result<Vec<Option<i32>>> {
        if let Some(world) = self.world {
            return self.translate(group, world);
        }
        let make = |world| pmpi!(self, MPI_Comm_group(self.abi().comm_world().word(), world));
        self.with_group(make, |world| self.translate(group, world))
    }

    /// The group of a communicator, or the remote one of an inter-communicator. It is never freed.
    pub fn comm_group(&self, comm: Comm, is_remote: bool) -> Result<Group> {
        self.handle(|group| self.make_group(comm, is_remote, group))
    }

    fn make_group(&self, comm: Comm, is_remote: bool, group: *mut usize) -> Result<()> {
        match is_remote {
            true => pmpi!(self, MPI_Comm_remote_group(comm.word(), group)),
            false => pmpi!(self, MPI_Comm_group(comm.word(), group)),
        }
    }

    /// The members of a communicator, or of the remote group of an inter-communicator, as ranks in `group`; `None`: not a member of that.
    pub fn comm_members_in(&self, comm: Comm, is_remote: bool, group: Group) -> Result<Vec<Option<i32>>> {
        self.with_group(
            |made| self.make_group(comm, is_remote, made),
            |members| self.translate(members, group),
        )
    }

    /// The members of a group as ranks in another one; `None`: not a member of that.
    pub fn group_members_in(&self, members: Group, group: Group) -> Result<Vec<Option<i32>>> {
        self.translate(members, group)
    }

    /// Makes a group, uses it and frees it.
    fn with_group<T>(
        &self,
        make: impl FnOnce(*mut usize) -> Result<()>,
        with: impl FnOnce(Group) -> Result<T>,
    ) -> Result<T> {
        let group: Group = self.handle(make)?;
        let result = with(group);
        let mut word = group.word();
        pmpi!(self, MPI_Group_free(&raw mut word))?;
        result
    }

    fn translate(&self, group: Group, world: Group) -> Result<Vec<Option<i32>>> {
        let ranks: Vec<c_int> = (0..self.group_size(group)?).collect();
        let count = int("MPI_Group_translate_ranks", "number of ranks", ranks.len())?;
        let mut translated = vec![0i32; ranks.len()];
        let output = translated.as_mut_ptr();
        pmpi!(self, MPI_Group_translate_ranks(group.word(), count, ranks.as_ptr(), world.word(), output))?;
        let undefined = self.abi().constants.undefined;
        Ok(translated.into_iter().map(|rank| (rank != undefined).then_some(rank)).collect())
    }

    fn group_size(&self, group: Group) -> Result<i32> {
        self.number(|size| pmpi!(self, MPI_Group_size(group.word(), size)))
    }
}
