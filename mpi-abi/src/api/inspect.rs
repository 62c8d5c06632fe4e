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
        let world = self.handle(|new| pmpi!(self, MPI_Group_from_session_pset(session.word(), name, new)))?;
        Ok(Mpi { world: Some(world), ..self })
    }

    /// `MPI_Query_thread`.
    pub fn query_thread(&self) -> Result<ThreadLevel> {
        Ok(self.thread_level(self.number(|provided| pmpi!(self, MPI_Query_thread(provided)))?))
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

    /// Whether this process was spawned (`MPI_Comm_get_parent`).
    pub fn is_spawned(&self) -> Result<bool> {
        let parent: Comm = self.handle(|parent| pmpi!(self, MPI_Comm_get_parent(parent)))?;
        Ok(parent.word() != self.abi().predefined.comm_null)
    }

    /// `MPI_Comm_test_inter`: whether it is an intercommunicator.
    pub fn comm_is_inter(&self, comm: Comm) -> Result<bool> {
        Ok(self.number(|flag| pmpi!(self, MPI_Comm_test_inter(comm.word(), flag)))? != 0)
    }

    /// The number of sources and of destinations of this process in neighbourhood collectives; both 0 without a topology.
    pub fn comm_neighbours(&self, comm: Comm) -> Result<(usize, usize)> {
        let constants = &self.abi().constants;
        let kind = self.number(|kind| pmpi!(self, MPI_Topo_test(comm.word(), kind)))?;
        let [sources, destinations] = if kind == constants.cart {
            [2 * self.number(|dimensions| pmpi!(self, MPI_Cartdim_get(comm.word(), dimensions)))?; 2]
        } else if kind == constants.graph {
            let rank = self.comm_rank(comm)?;
            [self.number(|count| pmpi!(self, MPI_Graph_neighbors_count(comm.word(), rank, count)))?; 2]
        } else if kind == constants.dist_graph {
            let (mut sources, mut destinations): (c_int, c_int) = (0, 0);
            let (from, to) = (&raw mut sources, &raw mut destinations);
            self.number(|weighted| {
                pmpi!(self, MPI_Dist_graph_neighbors_count(comm.word(), from, to, weighted))
            })?;
            [sources, destinations]
        } else {
            [0; 2]
        };
        Ok((sources.max(0) as usize, destinations.max(0) as usize))
    }

    /// The members of a communicator (of the local group of an inter-communicator) as ranks in `MPI_COMM_WORLD`;
    /// `None`: not a member of that.
    pub fn comm_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        self.members_and_free(self.handle(|group| pmpi!(self, MPI_Comm_group(comm.word(), group)))?)
    }

    /// The members of the remote group of an intercommunicator, as [`Mpi::comm_members`].
    pub fn comm_remote_members(&self, comm: Comm) -> Result<Vec<Option<i32>>> {
        self.members_and_free(self.handle(|group| pmpi!(self, MPI_Comm_remote_group(comm.word(), group)))?)
    }

    /// The members of a group, as [`Mpi::comm_members`].
    pub fn group_members(&self, group: Group) -> Result<Vec<Option<i32>>> {
        let Some(world) = self.world else {
            let comm = self.abi().comm_world();
            let world = self.handle(|group| pmpi!(self, MPI_Comm_group(comm.word(), group)))?;
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
        self.number(|size| pmpi!(self, MPI_Group_size(group.word(), size)))
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
        // MPI_UNDEFINED is negative.
        Ok(match TYPE_SIZE_X.get() {
            Some(_) => {
                u64::try_from(self.count(|size| pmpi!(self, MPI_Type_size_x(datatype.word(), size)))?).ok()
            }
            None => {
                u64::try_from(self.number(|size| pmpi!(self, MPI_Type_size(datatype.word(), size)))?).ok()
            }
        })
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
        let byte = self.abi().byte().word();
        let bytes = self.count(|count| pmpi!(self, MPI_Get_elements_x(status.address(), byte, count)))?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Whether the operation was cancelled.
    pub fn status_cancelled(&self, status: &Status<'_>) -> Result<bool> {
        if let Some(cancelled) = status.cancelled() {
            return Ok(cancelled);
        }
        Ok(self.number(|flag| pmpi!(self, MPI_Test_cancelled(status.address(), flag)))? != 0)
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
