//! Communicators and groups.

use std::ffi::c_int;

use super::{Mpi, ROOM, int, pmpi, string};
use crate::error::Result;
use crate::handles::{Comm, Group};

/// The two numbers that `MPI_Comm_split` sorts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Processes of one colour come together; `None` takes part and gets no communicator.
    pub color: Option<i32>,
    /// Orders the ranks of the new communicator.
    pub key: i32,
}

impl Mpi {
    /// `MPI_Comm_rank`.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call), as for every call here.
    pub fn comm_rank(&self, comm: Comm) -> Result<i32> {
        let mut rank: c_int = 0;
        pmpi!(self, MPI_Comm_rank(comm.word(), &raw mut rank))?;
        Ok(rank)
    }

    /// `MPI_Comm_size`: of an intercommunicator, the size of the local group.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_size(&self, comm: Comm) -> Result<i32> {
        let mut size: c_int = 0;
        pmpi!(self, MPI_Comm_size(comm.word(), &raw mut size))?;
        Ok(size)
    }

    /// This process's rank in `MPI_COMM_WORLD`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn world_rank(&self) -> Result<i32> {
        let Some(world) = self.world else { return self.comm_rank(self.abi().comm_world()) };
        let mut rank: c_int = 0;
        pmpi!(self, MPI_Group_rank(world.word(), &raw mut rank))?;
        Ok(rank)
    }

    /// The size of `MPI_COMM_WORLD`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn world_size(&self) -> Result<i32> {
        match self.world {
            Some(world) => self.group_size(world),
            None => self.comm_size(self.abi().comm_world()),
        }
    }

    /// `MPI_Comm_remote_size` of an intercommunicator.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_remote_size(&self, comm: Comm) -> Result<i32> {
        let mut size: c_int = 0;
        pmpi!(self, MPI_Comm_remote_size(comm.word(), &raw mut size))?;
        Ok(size)
    }

    /// `MPI_Comm_test_inter`: whether it is an intercommunicator.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_is_inter(&self, comm: Comm) -> Result<bool> {
        let mut flag: c_int = 0;
        pmpi!(self, MPI_Comm_test_inter(comm.word(), &raw mut flag))?;
        Ok(flag != 0)
    }

    /// `MPI_Comm_get_name`; empty where it has none.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_name(&self, comm: Comm) -> Result<String> {
        let mut text = vec![0u8; self.abi().constants.max_object_name.max(ROOM)];
        let mut length: c_int = 0;
        pmpi!(self, MPI_Comm_get_name(comm.word(), text.as_mut_ptr(), &raw mut length))?;
        Ok(string(&text))
    }

    /// `MPI_Comm_get_parent`: the way to the processes that spawned this one; `None` if none did.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_parent(&self) -> Result<Option<Comm>> {
        let parent = self.new_comm(|word| pmpi!(self, MPI_Comm_get_parent(word)))?;
        Ok(self.unless_null(parent))
    }

    /// How many neighbours this process has in the topology of a communicator: those it receives from and those it
    /// sends to in neighbourhood collectives; both 0 without a topology.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_neighbours(&self, comm: Comm) -> Result<(usize, usize)> {
        let constants = &self.abi().constants;
        let (mut kind, mut sources, mut destinations, mut weighted): (c_int, c_int, c_int, c_int) =
            (0, 0, 0, 0);
        pmpi!(self, MPI_Topo_test(comm.word(), &raw mut kind))?;
        if kind == constants.cart {
            pmpi!(self, MPI_Cartdim_get(comm.word(), &raw mut sources))?;
            sources *= 2;
            destinations = sources;
        } else if kind == constants.graph {
            let rank = self.comm_rank(comm)?;
            pmpi!(self, MPI_Graph_neighbors_count(comm.word(), rank, &raw mut sources))?;
            destinations = sources;
        } else if kind == constants.dist_graph {
            let (sources, destinations) = (&raw mut sources, &raw mut destinations);
            pmpi!(
                self,
                MPI_Dist_graph_neighbors_count(comm.word(), sources, destinations, &raw mut weighted)
            )?;
        }
        Ok((sources.max(0) as usize, destinations.max(0) as usize))
    }

    /// The members of a communicator (of the local group of an intercommunicator) as ranks in `MPI_COMM_WORLD`;
    /// `None` for a process outside it.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        let group = self.comm_group(comm)?;
        let members = self.group_members(group);
        // SAFETY: made here and not given away.
        unsafe { self.group_free(group) }?;
        members
    }

    /// The members of the remote group of an intercommunicator, as [`Mpi::comm_members`].
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_remote_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        let group = self.new_group(|word| pmpi!(self, MPI_Comm_remote_group(comm.word(), word)))?;
        let members = self.group_members(group);
        // SAFETY: made here and not given away.
        unsafe { self.group_free(group) }?;
        members
    }

    /// `MPI_Comm_dup`. Collective.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_dup(&self, comm: Comm) -> Result<Comm> {
        self.new_comm(|word| pmpi!(self, MPI_Comm_dup(comm.word(), word)))
    }

    /// `MPI_Comm_split`. Collective; `None` for a process without colour.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_split(&self, comm: Comm, split: Split) -> Result<Option<Comm>> {
        let color = split.color.unwrap_or(self.abi().constants.undefined);
        let new = self.new_comm(|word| pmpi!(self, MPI_Comm_split(comm.word(), color, split.key, word)))?;
        Ok(self.unless_null(new))
    }

    /// `MPI_Comm_split_type` by shared memory: the processes of this node. Collective.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_split_shared(&self, comm: Comm, key: i32) -> Result<Comm> {
        let (shared, info) = (self.abi().constants.comm_type_shared, self.abi().predefined.info_null);
        self.new_comm(|word| pmpi!(self, MPI_Comm_split_type(comm.word(), shared, key, info, word)))
    }

    /// `MPI_Comm_free`. Collective.
    ///
    /// # Safety
    /// No copy of the handle may be used afterwards.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub unsafe fn comm_free(&self, comm: Comm) -> Result<()> {
        let mut word = comm.word();
        pmpi!(self, MPI_Comm_free(&raw mut word))
    }

    /// `MPI_Comm_group`; free it with [`Mpi::group_free`].
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn comm_group(&self, comm: Comm) -> Result<Group> {
        self.new_group(|word| pmpi!(self, MPI_Comm_group(comm.word(), word)))
    }

    /// `MPI_Group_size`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn group_size(&self, group: Group) -> Result<i32> {
        let mut size: c_int = 0;
        pmpi!(self, MPI_Group_size(group.word(), &raw mut size))?;
        Ok(size)
    }

    /// The members of a group as ranks in `MPI_COMM_WORLD`, `None` for a process outside it.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn group_members(&self, group: Group) -> Result<Vec<Option<i32>>> {
        let in_group = |world| {
            let ranks: Vec<_> = (0..self.group_size(group)?).collect();
            self.group_translate_ranks(group, &ranks, world)
        };
        if let Some(world) = self.world {
            return in_group(world);
        }
        let world = self.comm_group(self.abi().comm_world())?;
        let members = in_group(world);
        // SAFETY: made here and not given away.
        unsafe { self.group_free(world) }?;
        members
    }

    /// `MPI_Group_translate_ranks`; `None` for a process that the other group lacks.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn group_translate_ranks(&self, from: Group, ranks: &[i32], to: Group) -> Result<Vec<Option<i32>>> {
        let count = int("MPI_Group_translate_ranks", "number of ranks", ranks.len())?;
        let mut translated = vec![0i32; ranks.len()];
        let output = translated.as_mut_ptr();
        pmpi!(self, MPI_Group_translate_ranks(from.word(), count, ranks.as_ptr(), to.word(), output))?;
        let undefined = self.abi().constants.undefined;
        Ok(translated.into_iter().map(|rank| (rank != undefined).then_some(rank)).collect())
    }

    /// `MPI_Group_free`.
    ///
    /// # Safety
    /// No copy of the handle may be used afterwards.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub unsafe fn group_free(&self, group: Group) -> Result<()> {
        let mut word = group.word();
        pmpi!(self, MPI_Group_free(&raw mut word))
    }

    pub(super) fn new_comm(&self, make: impl FnOnce(*mut usize) -> Result<()>) -> Result<Comm> {
        let mut word = 0usize;
        make(&raw mut word)?;
        // SAFETY: the call succeeded and wrote a communicator.
        Ok(unsafe { Comm::from_word(self.abi().read_handle((&raw const word).cast())) })
    }

    pub(super) fn new_group(&self, make: impl FnOnce(*mut usize) -> Result<()>) -> Result<Group> {
        let mut word = 0usize;
        make(&raw mut word)?;
        // SAFETY: the call succeeded and wrote a group.
        Ok(unsafe { Group::from_word(self.abi().read_handle((&raw const word).cast())) })
    }

    fn unless_null(&self, comm: Comm) -> Option<Comm> {
        (comm.word() != self.abi().predefined.comm_null).then_some(comm)
    }
}
