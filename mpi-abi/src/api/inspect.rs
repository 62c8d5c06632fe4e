//! Queries about the program's objects. They are local: no other process takes part, and no object of the program changes.

use super::{Mpi, ThreadLevel, int, pmpi};
use crate::error::Result;
use crate::handles::{Comm, Datatype, Group, Request, Session};
use crate::status::Status;
use crate::symbols::Function;
use std::ffi::c_int;

/// Room for the status of any ABI.
#[repr(align(8))]
struct StatusRoom([u8; 64]);

impl Mpi {
    /// Makes an `Mpi` for a program without `MPI_Init`: the processes of the session's `mpi://WORLD` take the place
    /// of `MPI_COMM_WORLD`. The group is never freed.
    pub fn in_session(self, session: Session) -> Result<Mpi> {
        let name = c"mpi://WORLD".as_ptr();
        let world =
            self.new_group(|word| pmpi!(self, MPI_Group_from_session_pset(session.word(), name, word)))?;
        Ok(Mpi { world: Some(world), ..self })
    }

    /// `MPI_Query_thread`.
    pub fn query_thread(&self) -> Result<ThreadLevel> {
        let mut provided: c_int = 0;
        pmpi!(self, MPI_Query_thread(&raw mut provided))?;
        Ok(self.thread_level(provided))
    }

    /// This process's rank in `MPI_COMM_WORLD`.
    pub fn world_rank(&self) -> Result<i32> {
        let Some(world) = self.world else { return self.comm_rank(self.abi().comm_world()) };
        let mut rank: c_int = 0;
        pmpi!(self, MPI_Group_rank(world.word(), &raw mut rank))?;
        Ok(rank)
    }

    /// The size of `MPI_COMM_WORLD`.
    pub fn world_size(&self) -> Result<i32> {
        match self.world {
            Some(world) => self.group_size(world),
            None => self.comm_size(self.abi().comm_world()),
        }
    }

    /// Whether this process was spawned (`MPI_Comm_get_parent`).
    pub fn is_spawned(&self) -> Result<bool> {
        let parent = self.new_comm(|word| pmpi!(self, MPI_Comm_get_parent(word)))?;
        Ok(parent.word() != self.abi().predefined.comm_null)
    }

    /// `MPI_Comm_test_inter`: whether it is an intercommunicator.
    pub fn comm_is_inter(&self, comm: Comm) -> Result<bool> {
        let mut flag: c_int = 0;
        pmpi!(self, MPI_Comm_test_inter(comm.word(), &raw mut flag))?;
        Ok(flag != 0)
    }

    /// The number of sources and of destinations of this process in neighbourhood collectives; both 0 without a topology.
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

    /// The members of a communicator (of the local group of an inter-communicator) as ranks in `MPI_COMM_WORLD`;
    /// `None`: not a member of that.
    pub fn comm_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        let group = self.new_group(|word| pmpi!(self, MPI_Comm_group(comm.word(), word)))?;
        self.members_and_free(group)
    }

    /// The members of the remote group of an intercommunicator, as [`Mpi::comm_members`].
    pub fn comm_remote_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        let group = self.new_group(|word| pmpi!(self, MPI_Comm_remote_group(comm.word(), word)))?;
        self.members_and_free(group)
    }

    /// The members of a group, as [`Mpi::comm_members`].
    pub fn group_members(&self, group: Group) -> Result<Vec<Option<i32>>> {
        let Some(world) = self.world else {
            let comm = self.abi().comm_world();
            let world = self.new_group(|word| pmpi!(self, MPI_Comm_group(comm.word(), word)))?;
            let members = self.translate(group, world);
            self.group_free(world)?;
            return members;
        };
        self.translate(group, world)
    }

    fn members_and_free(&self, group: Group) -> Result<Vec<Option<i32>>> {
        let members = self.group_members(group);
        self.group_free(group)?;
        members
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
        let mut size: c_int = 0;
        pmpi!(self, MPI_Group_size(group.word(), &raw mut size))?;
        Ok(size)
    }

    fn new_group(&self, make: impl FnOnce(*mut usize) -> Result<()>) -> Result<Group> {
        let mut word = 0usize;
        make(&raw mut word)?;
        // SAFETY: the call succeeded and wrote a group.
        Ok(unsafe { Group::from_word(self.abi().read_handle((&raw const word).cast())) })
    }

    /// Frees a group that was made here.
    fn group_free(&self, group: Group) -> Result<()> {
        let mut word = group.word();
        pmpi!(self, MPI_Group_free(&raw mut word))
    }

    /// The bytes of data in an element: `MPI_Type_size_x`, or `MPI_Type_size` if MPI lacks that. `None` if the size
    /// does not fit the result.
    pub fn type_size(&self, datatype: Datatype) -> Result<Option<u64>> {
        static TYPE_SIZE_X: Function = Function::named(c"PMPI_Type_size_x");
        let undefined = i64::from(self.abi().constants.undefined);
        let mut size: i64 = 0;
        if TYPE_SIZE_X.get().is_some() {
            pmpi!(self, MPI_Type_size_x(datatype.word(), &raw mut size))?;
        } else {
            let mut narrow: c_int = 0;
            pmpi!(self, MPI_Type_size(datatype.word(), &raw mut narrow))?;
            size = i64::from(narrow);
        }
        Ok(if size == undefined { None } else { u64::try_from(size).ok() })
    }

    /// Whether elements of the datatype are contiguous in memory, without gaps.
    ///
    /// Compares sizes: the bytes of data must equal both the extent and the true extent. This accepts a type whose parts overlap
    /// and leave a gap of the same size; MPI forbids receiving with such types. The order of the parts does not matter.
    pub fn type_is_contiguous(&self, datatype: Datatype) -> Result<bool> {
        let Some(size) = self.type_size(datatype)? else { return Ok(false) };
        let (mut lower, mut extent, mut true_extent) = (0i64, 0i64, 0i64);
        pmpi!(self, MPI_Type_get_extent(datatype.word(), &raw mut lower, &raw mut extent))?;
        pmpi!(self, MPI_Type_get_true_extent(datatype.word(), &raw mut lower, &raw mut true_extent))?;
        let dense = |extent: i64| u64::try_from(extent).is_ok_and(|extent| extent == size);
        Ok(dense(extent) && dense(true_extent))
    }

    /// The number of bytes received: from the status if the ABI defines that, else by `MPI_Get_elements`.
    pub fn status_bytes(&self, status: &Status<'_>) -> Result<u64> {
        if let Some(bytes) = status.bytes() {
            return Ok(bytes);
        }
        let mut count: i64 = 0;
        pmpi!(self, MPI_Get_elements_x(status.address(), self.abi().byte().word(), &raw mut count))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Whether the operation was cancelled.
    pub fn status_cancelled(&self, status: &Status<'_>) -> Result<bool> {
        if let Some(cancelled) = status.cancelled() {
            return Ok(cancelled);
        }
        let mut flag: c_int = 0;
        pmpi!(self, MPI_Test_cancelled(status.address(), &raw mut flag))?;
        Ok(flag != 0)
    }

    /// Whether a request has completed as cancelled. Does not complete it (`MPI_Request_get_status`).
    ///
    /// # Safety
    /// The request must be active.
    pub unsafe fn request_is_cancelled(&self, request: Request) -> Result<bool> {
        self.ask_request(request, |over, status| Ok(over && self.status_cancelled(status)?))
    }

    /// Whether a request has completed, or is persistent and inactive. Does not complete it (`MPI_Request_get_status`).
    ///
    /// # Safety
    /// The request must be valid.
    pub unsafe fn request_is_over(&self, request: Request) -> Result<bool> {
        self.ask_request(request, |over, _| Ok(over))
    }

    fn ask_request<T>(
        &self,
        request: Request,
        read: impl FnOnce(bool, &Status<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut flag: c_int = 0;
        let flag_at = &raw mut flag;
        let asked = |status| pmpi!(self, MPI_Request_get_status(request.word(), flag_at, status));
        // SAFETY: the call has written it.
        self.with_status(asked, |status| read(unsafe { *flag_at } != 0, status))
    }

    pub(super) fn with_status<T>(
        &self,
        call: impl FnOnce(*mut u8) -> Result<()>,
        read: impl FnOnce(&Status<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut room = StatusRoom([0; 64]);
        debug_assert!(self.abi().status.size <= room.0.len());
        call(room.0.as_mut_ptr())?;
        // SAFETY: a status of this ABI, written by the call, that outlives the view.
        read(&unsafe { Status::at(room.0.as_ptr(), self.abi()) })
    }
}
