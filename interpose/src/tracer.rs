//! A recorder: the state shared by all threads, and each thread's lane.
//!
//! There is one recorder, or several in a chain of tools. They are never freed, because threads may be inside a call
//! when recording ends.

use crate::clock;
use crate::comms::{self, Comm, Meets, Membership, Outsiders};
use crate::guard::warn;
use crate::identity;
use crate::known::KnownObjects;
use crate::machine::{self, RECORDERS};
use crate::mapped;
use crate::output::{CallEntry, Output};
use crate::pending::RequestRun;
use crate::preempted::LONG_CALL;
use crate::requests::PendingRequest;
use crate::settings::{Settings, StopAfter};
use crate::shapes::{ShapeTable, UsedObject};
use crate::writer::{Mark, Writer};
use mpi_abi::api::Mpi;
use mpi_abi::detect::Abi;
use mpi_abi::handles;
use mpi_abi::prototypes::Call;
use mpi_abi::tables::Flavour;
use rustix::thread::CpuSet;
use std::cell::UnsafeCell;
use std::error::Error;
use std::ffi::c_void;
use std::io::ErrorKind;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;
use vef_format::account::TimePart;
use vef_format::capture::encode::Content;
use vef_format::capture::event::{
    Action, CallSlot, Completion, Completions, Datatype, Meeting, MeetingWay, Origin, Outcome, RequestId,
    Split, Tile,
};
use vef_format::capture::layout::{CALL_SLOTS, ClockPair};
use vef_format::capture::word::Head;
use vef_format::capture::{RankInfo, rank_path};
use vef_format::ids::{CommId, Rank};
use vef_format::units::Bytes;

/// Held while MPI is opened or closed, because threads may begin and end sessions at the same time.
pub(crate) static OPENING: Mutex<()> = Mutex::new(());

/// The recorders by number.
static TRACERS: [AtomicPtr<Tracer>; RECORDERS] = [const { AtomicPtr::new(null_mut()) }; RECORDERS];

// The call table has an entry for every function.
const _: () = assert!(Call::COUNT <= CALL_SLOTS);

/// The state shared by all threads.
pub(crate) struct Tracer {
    /// The recorder's number.
    place: usize,
    /// Whether stubs lead directly to this recorder, without a chain of tools.
    pub(crate) alone: bool,
    state: AtomicU8,
    pub(crate) mpi: Mpi,
    /// Translates ranks to those in `MPI_COMM_WORLD` while only sessions are open.
    session: Mutex<Option<Mpi>>,
    /// The number of open initialisations: `MPI_Init` and sessions.
    opens: AtomicU32,
    output: Output,
    pub(crate) rank: Rank,
    pub(crate) tasks: u32,
    /// Whether threads may call MPI concurrently (`MPI_THREAD_MULTIPLE`).
    pub(crate) multiple: bool,
    /// The counters of each function in the call table; null before its first call.
    entries: [AtomicPtr<CallEntry>; Call::COUNT],
    /// The processes of other worlds that this one has met.
    outsiders: Mutex<Vec<Outsiders>>,
    /// The lock of `known`; only used with `multiple`.
    lock: Mutex<()>,
    known: UnsafeCell<KnownObjects>,
    lanes: Mutex<Lanes>,
    /// The phase to which recording is restricted, and the number of its begins without an end.
    phase: Option<(String, AtomicU32)>,
    /// When recording stops, and the moment from which that counts.
    stop_after: Option<(StopAfter, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Recording,
    /// Outside the phase to which recording is restricted.
    Paused,
    /// Not begun yet, or all sessions are closed and another one may begin.
    Closed,
    Over,
}

// SAFETY: `known` is accessed only by `Tracer::known`, which takes the lock unless calls cannot overlap.
unsafe impl Sync for Tracer {}

#[derive(Default)]
struct Lanes {
    all: Vec<Lane>,
    free: Vec<Lane>,
    /// The position before the last session's final record.
    before_end: Option<(Lane, Mark)>,
}

/// The calling thread's part of a recorder. Never freed: after the thread's end a new thread gets it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Lane(NonNull<ThreadLane>);

// SAFETY: a lane is used by one thread at a time: its own, or the one that ends recording.
unsafe impl Send for Lane {}

impl Lane {
    /// The lane in a thread's data; `None`: it has none yet.
    ///
    /// # Safety
    /// The data must be that of the calling thread.
    #[inline(always)]
    pub(crate) unsafe fn of(pointer: *mut c_void) -> Option<Self> {
        NonNull::new(pointer.cast()).map(Self)
    }

    /// References made by this must not overlap: nested calls of the thread use it, too.
    #[inline(always)]
    pub(crate) fn get(&mut self) -> &mut ThreadLane {
        // SAFETY: the thread's own, and see above.
        unsafe { self.0.as_mut() }
    }
}

/// The contents of a lane.
pub(crate) struct ThreadLane {
    /// The address of the frame of the call being recorded; 0: none.
    pub(crate) frame: usize,
    /// The C function that carries it out, until it makes another call. Meaningless without a frame.
    pub(crate) carried_out_by: Option<Call>,
    pub(crate) tracer: &'static Tracer,
    pub(crate) writer: Writer,
    pub(crate) shapes: ShapeTable,
    /// The requests of the current call, if it is a wait for consecutive requests.
    pub(crate) run: Option<RequestRun>,
    /// The same as a list of handles, made when a nested call began.
    pub(crate) parked: Option<Vec<usize>>,
    /// Buffers for hooks; taken by the current call, so nested calls allocate their own.
    pub(crate) scratch: Option<Box<Scratch>>,
}

/// Buffers that keep their capacity.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Handles of requests before the call.
    pub(crate) handles: Vec<usize>,
    pub(crate) completions: Vec<Completion>,
    /// Statuses that the program ignores but the recorder needs; `u64` for alignment.
    pub(crate) statuses: Vec<u64>,
    /// Bytes sent to and received from each member of a communicator.
    pub(crate) counts: [Vec<u64>; 2],
}

impl Tracer {
    /// The recorder with this number, if it was started.
    pub(crate) fn at(place: usize) -> Option<&'static Self> {
        // SAFETY: a leaked box, or null.
        unsafe { TRACERS[place].load(Ordering::Acquire).as_ref() }
    }

    /// All recorders that were started.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        (0..RECORDERS).filter_map(Self::at)
    }

    /// Starts recorder number `place`, which writes to a directory, at the end of an `MPI_Init` or of the call that began a session.
    /// `alone`: there is no chain of tools. `zero`: time 0 of the capture.
    ///
    /// # Errors
    /// The reason why this process is not recorded.
    pub(crate) fn begin(
        settings: &Settings,
        (place, directory): (usize, &Path),
        alone: bool,
        session: Option<handles::Session>,
        zero: ClockPair,
    ) -> Result<&'static Self, Box<dyn Error>> {
        let mpi = Mpi::loaded()?;
        let of_session = session.map(|session| mpi.clone().in_session(session)).transpose()?;
        let world = of_session.as_ref().unwrap_or(&mpi);
        let rank = Rank(world.world_rank()?.try_into()?);
        let tasks = world.world_size()?.try_into()?;
        // A later session may have a higher thread level.
        let multiple = session.is_some() || mpi.query_thread() == Ok(mpi.abi().constants.thread_multiple);
        let spawned = session.is_none() && mpi.parent().is_ok_and(|parent| parent.is_some());
        let in_the_way = |error: std::io::Error| match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "another process records, or has recorded, as rank {rank} in {} (was the program started by the launcher of another \
                 MPI, or twice in one run?)",
                directory.display()
            ),
            _ => format!("{}: {error}", directory.display()),
        };
        let mut directory = directory.to_owned();
        if spawned {
            // Every process derives the number by itself, because the recorder must not communicate.
            let number =
                identity::spawned().ok_or("it was spawned, and the number of its world is unknown")?;
            directory.push(format!("spawned-{number}"));
        }
        let directory = &directory;
        std::fs::create_dir_all(directory).map_err(|error| match directory.metadata() {
            Ok(there) if !there.is_dir() => format!("{}: is not a directory", directory.display()),
            _ => format!("{}: {error}", directory.display()),
        })?;
        if rank.0 == 0 && !settings.fresh {
            remove_leftovers(directory, tasks);
        }
        let run = identity::identity(directory.file_name().filter(|_| spawned));
        let info = rank_info(&mpi, rank, tasks, run, zero);
        let path = rank_path(directory, rank);
        let output =
            Output::create(&path, &info, zero, settings.max_size, settings.fresh).map_err(in_the_way)?;
        output.set_pair(1, clock::pair());
        for given in settings.invalid.iter().filter(|_| rank.0 == 0 && place == 0) {
            warn(&format!("{given} is invalid and ignored"));
        }
        let tracer: &'static Self = Box::leak(Box::new(Self {
            place,
            alone,
            state: AtomicU8::new(State::Closed as u8),
            session: Mutex::new(of_session),
            opens: AtomicU32::new(1),
            entries: [const { AtomicPtr::new(null_mut()) }; Call::COUNT],
            known: UnsafeCell::new(KnownObjects::default()),
            lanes: Mutex::default(),
            outsiders: Mutex::default(),
            lock: Mutex::default(),
            rank,
            tasks,
            multiple,
            phase: settings.phase.clone().map(|name| (name, AtomicU32::new(0))),
            stop_after: settings.stop_after.map(|after| (after, Instant::now())),
            output,
            mpi,
        }));
        mapped::survive_truncation();
        TRACERS[place].store(std::ptr::from_ref(tracer).cast_mut(), Ordering::Release);
        stop_in_children();
        Ok(tracer)
    }

    #[inline(always)]
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            0 => State::Recording,
            1 => State::Paused,
            2 => State::Closed,
            _ => State::Over,
        }
    }

    /// Changes the state; returns the previous one.
    pub(crate) fn set_state(&self, state: State) -> State {
        let before = self.state();
        self.state.store(state as u8, Ordering::Release);
        if self.alone {
            machine::forget_destinations();
        }
        before
    }

    #[inline(always)]
    pub(crate) fn abi(&'static self) -> &'static Abi {
        self.mpi.abi()
    }

    /// The MPI object for queries about ranks in `MPI_COMM_WORLD`.
    fn world(&self) -> Mpi {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().unwrap_or(&self.mpi).clone()
    }

    /// The members of a communicator; `meets`: processes meet by it.
    pub(crate) fn membership(&self, comm: usize, meets: bool) -> Membership {
        // SAFETY: a valid handle: MPI returned it to the program or accepted it from it.
        Membership::ask(&self.world(), unsafe { handles::Comm::from_word(comm) }, &self.outsiders(), meets)
    }

    /// The known members of a group.
    pub(crate) fn group_members(&self, group: usize) -> Vec<Rank> {
        // SAFETY: a handle that MPI has accepted from the program.
        comms::group_members(&self.world(), unsafe { handles::Group::from_word(group) }, &self.outsiders())
    }

    /// Gives ranks to members that are not known; returns the first of them and their number.
    fn name_outsiders(&'static self, members: &mut Membership, comm: handles::Comm) -> Option<(Rank, u32)> {
        let count = members.unknown();
        if count == 0 {
            return None;
        }
        let next = self.known(|known| {
            let next = self.tasks.saturating_add(known.comms.outside);
            known.comms.outside += count;
            next
        });
        let outsiders = members.name(&self.world(), comm, next);
        self.outsiders.lock().unwrap_or_else(PoisonError::into_inner).extend(outsiders);
        Some((Rank(next), count))
    }

    /// A copy of the list, because MPI may call the program while it is asked about a group.
    fn outsiders(&self) -> Vec<Outsiders> {
        self.outsiders.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `MPI_Init` or `MPI_Session_init` has succeeded in a process with a recorder.
    pub(crate) fn open(&'static self, session: Option<handles::Session>) {
        if self.state() == State::Over {
            return;
        }
        let before = self.opens.fetch_add(1, Ordering::AcqRel);
        // Objects of a session end with it; MPI_COMM_WORLD remains.
        let world = session.map(|session| self.mpi.clone().in_session(session));
        let mut known = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        match world {
            None => *known = None,
            Some(Ok(world)) if before == 0 => *known = Some(world),
            _ => {}
        }
        drop(known);
        if before == 0 && self.output.reopen().is_ok() {
            let end = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).before_end.take();
            if let Some((mut lane, mark)) = end {
                let writer = &mut lane.get().writer;
                writer.rewind(mark);
                _ = writer.look();
            }
            self.start();
        }
    }

    /// Begins or resumes the recording.
    pub(crate) fn start(&self) {
        let outside = self.phase.as_ref().is_some_and(|(_, depth)| depth.load(Ordering::Acquire) == 0);
        self.change_state(State::Closed, if outside { State::Paused } else { State::Recording });
    }

    /// `MPI_Finalize` or `MPI_Session_finalize` has ended. The last one completes the file; a session that begins later
    /// continues it.
    pub(crate) fn close(&'static self, mut lane: Lane, times: (u64, u64), call: Call) {
        let _alone = OPENING.lock();
        if self.opens.fetch_sub(1, Ordering::AcqRel) != 1 || self.state() == State::Over {
            return;
        }
        let for_good = call == Call::MPI_Finalize;
        self.set_state(if for_good { State::Over } else { State::Closed });
        let slot = self.slot(call);
        let writer = &mut lane.get().writer;
        let mark = writer.mark();
        writer.put(times, Content::Action(&Action::Finalize), slot);
        self.output.set_pair(2, clock::pair());
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.before_end = (!for_good).then_some((lane, mark));
        // Finalization has returned, so no thread is in an MPI call.
        let rests: Vec<_> = lanes.all.iter_mut().filter_map(|lane| lane.get().writer.seal()).collect();
        self.output.finish(&rests, for_good);
        if let Some(how) = self.output.lost() {
            warn(&format!("the capture of rank {} was {how} during the run", self.rank));
        }
    }

    /// Why recording stops now, as it was asked to.
    #[cold]
    fn asked_to_stop(&self, (after, begin): (StopAfter, Instant)) -> Option<&'static str> {
        match after {
            StopAfter::Time(time) => {
                (begin.elapsed() >= time).then_some("the time to record is over, as asked")
            }
            StopAfter::Calls(most) => {
                (self.calls() >= most).then_some("the calls to record were made, as asked")
            }
        }
    }

    /// The number of calls so far.
    fn calls(&self) -> u64 {
        // SAFETY: as in `count`.
        let of = |entry: &AtomicPtr<CallEntry>| unsafe { entry.load(Ordering::Relaxed).as_ref() };
        self.entries.iter().filter_map(of).map(|entry| entry.calls.load(Ordering::Relaxed)).sum()
    }

    /// Stops the recording because of a failure; the program continues.
    #[cold]
    pub(crate) fn stop(&'static self, lane: &mut ThreadLane, reason: &str) {
        if self.stop_quietly(lane, reason) {
            warn(&format!("tracing of rank {} stopped: {reason}", self.rank));
        }
    }

    /// Stops all recorders because of a failure; the program continues.
    pub(crate) fn stop_all(reason: &str) {
        for (tracer, mut lane) in Self::all().filter_map(|tracer| Some((tracer, tracer.lane()?))) {
            tracer.stop(lane.get(), reason);
        }
    }

    /// Stops the recording on request; returns false if it has already ended.
    pub(crate) fn stop_quietly(&'static self, lane: &mut ThreadLane, reason: &str) -> bool {
        if self.set_state(State::Over) == State::Over {
            return false;
        }
        lane.writer.put_stopped(reason);
        self.output.set_pair(2, clock::pair());
        // Other threads may still write to their windows; these end with their last record.
        self.output.stop(lane.writer.seal());
        true
    }

    /// Removes the shapes that use a freed object, in all lanes.
    pub(crate) fn forget_shapes(&self, part: UsedObject) {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in &lanes.all {
            // SAFETY: lanes are never freed and keep their shapes; no reference to the lane is made.
            let shapes = unsafe { (&raw const (*lane.0.as_ptr()).shapes).read() };
            shapes.forget(part);
        }
    }

    /// Gives access to the state of handles. `with` makes no MPI call.
    #[inline(always)]
    pub(crate) fn known<T>(&'static self, with: impl FnOnce(&mut KnownObjects) -> T) -> T {
        let _lock = self.multiple.then(|| self.lock.lock());
        // SAFETY: under the lock, or calls of MPI do not overlap; `with` does not get here again.
        with(unsafe { &mut *self.known.get() })
    }

    /// The state of handles; `None`: it must be locked.
    ///
    /// # Safety
    /// [`Tracer::known`] must not be called, nor MPI, while the reference is used.
    #[inline(always)]
    pub(crate) unsafe fn known_alone(&'static self) -> Option<&'static KnownObjects> {
        // SAFETY: calls of MPI do not overlap, and the contract.
        (!self.multiple).then(|| unsafe { &*self.known.get() })
    }

    /// Counts a call, its time and its failure.
    #[inline(always)]
    pub(crate) fn count(&'static self, call: Call, ticks: u64, failed: bool) {
        // SAFETY: the counters are in the header's mapping, which is never unmapped.
        let Some(entry) = (unsafe { self.entries[call as usize].load(Ordering::Relaxed).as_ref() }) else {
            return self.count_first(call, ticks, failed);
        };
        if self.multiple {
            entry.calls.fetch_add(1, Ordering::Relaxed);
            entry.ticks.fetch_add(ticks, Ordering::Relaxed);
        } else {
            // Calls do not overlap: no atomic read-modify-write is needed.
            let add = |to: &AtomicU64, number: u64| {
                to.store(to.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
            };
            add(&entry.calls, 1);
            add(&entry.ticks, ticks);
        }
        if failed {
            entry.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_first(&'static self, call: Call, ticks: u64, failed: bool) {
        if self.slot(call) != CallSlot::NONE {
            self.count(call, ticks, failed);
        }
    }

    /// The entry of a function in the call table.
    pub(crate) fn slot(&'static self, call: Call) -> CallSlot {
        let known = &self.entries[call as usize];
        // SAFETY: as in `count`.
        let find = || unsafe { known.load(Ordering::Acquire).as_ref() };
        let entry = find().or_else(|| {
            let _lock = self.lanes.lock();
            find().or_else(|| {
                let entry = self.output.call_slot(call.name())?;
                known.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
                Some(entry)
            })
        });
        entry.map_or(CallSlot::NONE, |entry| CallSlot(self.output.slot_of(entry) as u16))
    }

    /// The calling thread's lane; assigned at its first call.
    pub(crate) fn lane(&'static self) -> Option<Lane> {
        let known = &machine::thread().lanes[self.place];
        if known.get().is_null() {
            known.set(self.new_lane()?.0.as_ptr().cast());
            return_lanes_at_end();
        }
        // SAFETY: the calling thread's.
        unsafe { Lane::of(known.get()) }
    }

    fn new_lane(&'static self) -> Option<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut lane) = lanes.free.pop() {
            lane.get().writer.change_thread();
            return Some(lane);
        }
        let thread = u16::try_from(lanes.all.len()).ok()?;
        let lane = Lane(NonNull::from(Box::leak(Box::new(ThreadLane {
            frame: 0,
            carried_out_by: None,
            tracer: self,
            writer: Writer::new(&self.output, thread, clock::now()),
            shapes: ShapeTable::new(),
            run: None,
            parked: None,
            scratch: None,
        }))));
        lanes.all.push(lane);
        Some(lane)
    }

    /// Records the begin or end of a phase.
    pub(crate) fn mark_phase(&'static self, begin: bool, name: &str) {
        let Some(mut lane) = self.lane() else { return };
        let only = self.phase.as_ref().filter(|(only, _)| only == name);
        let lane = lane.get();
        if begin && only.is_some_and(|(_, depth)| depth.fetch_add(1, Ordering::AcqRel) == 0) {
            self.change_state(State::Paused, State::Recording);
            _ = lane.writer.look();
        }
        if self.state() == State::Recording {
            let now = lane.begin_call(Call::MPI_Pcontrol);
            lane.writer.put((now, now), Content::Action(&Action::Phase { begin, name }), CallSlot::NONE);
            lane.check();
        }
        let ended = |depth: u32| depth.checked_sub(1);
        // An end without a begin is ignored.
        if let Some((_, depth)) = only.filter(|_| !begin)
            && depth.fetch_update(Ordering::AcqRel, Ordering::Acquire, ended) == Ok(1)
        {
            self.change_state(State::Recording, State::Paused);
        }
    }

    /// Changes the state if it is `from`.
    pub(crate) fn change_state(&self, from: State, to: State) {
        if self.state() == from {
            self.set_state(to);
        }
    }

    /// Describes `MPI_COMM_WORLD`, even for programs that only use sessions: other communicators are described by its ranks.
    pub(crate) fn describe_world(&'static self, lane: &mut ThreadLane) -> CommId {
        let members = Membership::world(self.tasks, self.rank);
        let handle = self.abi().predefined.comm_world;
        let (comm, origin) = self.known(|known| known.comms.add(handle, &members, Origin::World));
        members.describe(comm.id, origin, None, self.tasks, &mut |described| {
            lane.writer.define(described, CallSlot::NONE);
        });
        comm.id
    }

    /// Describes the communicator with the processes that spawned this one, if there is one; returns it.
    pub(crate) fn describe_parents(&'static self, lane: &mut ThreadLane, world: CommId) -> Option<CommId> {
        let handle = self.mpi.parent().ok().flatten()?.word();
        // Open MPI's port of the root that spawned it.
        let root = std::env::var("OMPI_PARENT_PORT").unwrap_or_default();
        let meets = (MeetingWay::Parents, world, &*root);
        let origin = Origin::Unseen { ordinal: 0 };
        Some(lane.describe_comm((handle, handle), origin, None, CallSlot::NONE, Some(meets)).id)
    }

    /// Queries the properties of a datatype; its number is assigned later.
    pub(crate) fn ask_datatype(&'static self, handle: usize) -> Datatype<'static> {
        let abi = self.abi();
        let name = abi.basic.named().find(|(_, word)| **word == Some(handle)).map_or("", |(name, _)| name);
        let (size, contiguous) = if handle == abi.predefined.datatype_null {
            // Passed where a datatype is not significant.
            (0, true)
        } else {
            // SAFETY: the program passed the handle to a call that succeeded.
            let datatype = unsafe { handles::Datatype::from_word(handle) };
            let layout = self.mpi.type_layout(datatype).ok().flatten();
            layout.map_or((0, false), |layout| (layout.size, layout.is_contiguous()))
        };
        Datatype { id: Default::default(), size: Bytes(size), contiguous, name }
    }

    /// What a view with this file type repeats, if that has gaps.
    pub(crate) fn ask_tile(&'static self, handle: usize) -> Option<Tile> {
        // SAFETY: the program passed the handle to a call that succeeded.
        let datatype = unsafe { handles::Datatype::from_word(handle) };
        let layout = self.mpi.type_layout(datatype).ok().flatten()?;
        let bytes = |number| u64::try_from(number).ok().map(Bytes);
        let [extent, first, span] = [layout.extent, layout.true_lower, layout.true_extent].map(bytes);
        let tile = Tile { size: Bytes(layout.size), extent: extent?, first: first?, span: span? };
        let has_gaps = !layout.is_contiguous() || tile.first > Bytes::ZERO;
        (has_gaps && layout.size > 0).then_some(tile)
    }
}

impl ThreadLane {
    /// Numbers and describes the communicator of a handle, which `call` made. The second handle is of a communicator with the same members,
    /// because a duplicate that is still being made must not be used. `meets`: how processes meet by it that have not met before.
    #[cold]
    #[inline(never)]
    pub(crate) fn describe_comm(
        &mut self,
        (handle, asked): (usize, usize),
        origin: Origin,
        split: Option<Split>,
        call: CallSlot,
        meets: Option<Meets<'_>>,
    ) -> Comm {
        let (tracer, mut members) = (self.tracer, self.tracer.membership(asked, meets.is_some()));
        // SAFETY: a valid handle: MPI returned it to the program or accepted it from it.
        let comm = unsafe { handles::Comm::from_word(asked) };
        while let Some(met) = tracer.name_outsiders(&mut members, comm) {
            let (way, comm, name) = meets.unwrap_or((MeetingWay::Unseen, CommId(0), ""));
            let meeting = Meeting { first: met.0, count: met.1, way, comm, name };
            self.writer.define(&Action::Meeting(meeting), CallSlot::NONE);
        }
        let (comm, added) = tracer.known(|known| match known.comms.known.get(handle) {
            // Another thread has added it meanwhile.
            Some(comm) => (comm, None),
            None => {
                let (comm, origin) = known.comms.add(handle, &members, origin);
                (comm, Some(origin))
            }
        });
        if let Some(origin) = added {
            members.describe(comm.id, origin, split, tracer.tasks, &mut |described| {
                self.writer.define(described, call);
            });
        }
        comm
    }

    /// Keeps the handles of the run, because a nested call may change the list that it refers to.
    pub(crate) fn park_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.parked = Some(self.tracer.known(|known| known.requests.handles_of(run).to_vec()));
        }
    }

    /// Registers a request that a call has made, under its handle; `None`: the call has completed it. If the request has no
    /// record, its handle is marked, too. If another thread gets the same handle before the completion is recorded, the
    /// handle has both requests.
    #[inline(always)]
    pub(crate) fn insert_request(
        &mut self,
        made: PendingRequest,
        handle: Option<usize>,
        call: Call,
        times: (u64, u64),
    ) {
        match handle {
            Some(handle) => self.tracer.known(|known| known.requests.insert(handle, made)),
            None if made.has(PendingRequest::UNRECORDED) => {}
            None => self.put_done(made, call, times),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_done(&mut self, made: PendingRequest, call: Call, times: (u64, u64)) {
        let done = Completion { request: made.request(), outcome: Outcome::Done };
        self.put_completed(times, &[done], None, call);
    }

    /// Records what a word with this head says.
    #[inline(always)]
    pub(crate) fn put_word(&mut self, times: (u64, u64), head: Head, call: Call) {
        if !self.writer.put_word(times, head) {
            self.put(times, Content::Word(head), call);
        }
    }

    /// Records the completion of `count` consecutive requests of the thread, which made `after` more before this call.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_run(&mut self, times: (u64, u64), count: u64, after: u64, call: Call) {
        let next = self.writer.next_request().request();
        let first = RequestId { number: next.number - count - after, ..next };
        self.put(times, Content::Completions(Completions::Run { first, count }), call);
    }

    /// Records completions of the thread. `completer`: the function's code in records of one word, if it has one.
    pub(crate) fn put_completed(
        &mut self,
        times: (u64, u64),
        list: &[Completion],
        completer: Option<u8>,
        call: Call,
    ) {
        let next = self.writer.next_request().request();
        match Content::completed(Completions::List(list), completer, next) {
            Content::Word(head) => self.put_word(times, head, call),
            content => self.put(times, content, call),
        }
    }

    #[inline(never)]
    fn put(&mut self, times: (u64, u64), content: Content<'_>, call: Call) {
        self.writer.put(times, content, self.tracer.slot(call));
        self.check();
    }

    /// This call begins now. Returns the tick.
    #[inline(always)]
    pub(crate) fn begin_call(&mut self, call: Call) -> u64 {
        let start = clock::now();
        if self.writer.is_long_gap(start) { self.end_gap(start, call) } else { start }
    }

    #[cold]
    #[inline(never)]
    fn end_gap(&mut self, start: u64, call: Call) -> u64 {
        match self.tracer.state() {
            State::Recording => self.writer.end_gap(start, || call.time_part() == TimePart::Polling),
            _ => start,
        }
    }

    /// This call, which began at `start`, ends now. Returns the tick; what the recorder looks up belongs to the call.
    #[inline(always)]
    pub(crate) fn end_call(&mut self, call: Call, start: u64) -> u64 {
        let end = clock::now();
        if end.wrapping_sub(start) < LONG_CALL { end } else { self.end_long_call(call, (start, end)) }
    }

    #[cold]
    #[inline(never)]
    fn end_long_call(&mut self, call: Call, times: (u64, u64)) -> u64 {
        match call.time_part() {
            TimePart::Own => self.writer.end_own_call(times),
            _ => self.writer.look(),
        }
    }

    /// Records a poll that found nothing.
    #[inline(always)]
    pub(crate) fn poll(&mut self, call: Call, times: (u64, u64)) {
        let tracer = self.tracer;
        if tracer.state() == State::Recording {
            self.writer.poll(times, || tracer.slot(call));
            self.check();
        }
    }

    /// Stops the recording if a write has failed, or as it was asked to. Records of one word do without: their windows are soon full.
    #[inline(always)]
    pub(crate) fn check(&mut self) {
        if let Some(reason) = self.writer.failed.take() {
            self.tracer.stop(self, &reason);
        }
        if let Some(after) = self.tracer.stop_after
            && let Some(reason) = self.tracer.asked_to_stop(after)
        {
            self.tracer.stop_quietly(self, reason);
        }
    }
}

/// Arranges that the calling thread's lanes are reused after its end. The main thread's lane ends with the process.
fn return_lanes_at_end() {
    unsafe extern "C" fn ended(thread: *mut libc::c_void) {
        // SAFETY: what `thread` gave to the thread that ends now.
        let lanes = unsafe { &(*thread.cast::<machine::ThreadData>()).lanes };
        for (place, lane) in lanes.iter().enumerate() {
            // SAFETY: as above.
            let lane = unsafe { Lane::of(lane.replace(null_mut())) };
            if let Some((lane, tracer)) = lane.zip(Tracer::at(place)) {
                tracer.lanes.lock().unwrap_or_else(PoisonError::into_inner).free.push(lane);
            }
        }
    }
    static KEY: AtomicU32 = AtomicU32::new(0);
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        let mut key = 0;
        // SAFETY: room for the key, and a function that is never unloaded.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0 {
            KEY.store(key + 1, Ordering::Release);
        }
    });
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: a key that was made above.
        unsafe { libc::pthread_setspecific(key, std::ptr::from_ref(machine::thread()).cast()) };
    }
}

/// Stops recording in children of `fork`, which share the mapping.
fn stop_in_children() {
    extern "C" fn in_child() {
        Tracer::all().for_each(|tracer| _ = tracer.set_state(State::Over));
    }
    static ONCE: Once = Once::new();
    // SAFETY: a function that is never unloaded.
    ONCE.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
}

/// Removes rank files of an earlier, larger run, which would make this capture unreadable.
fn remove_leftovers(dir: &Path, tasks: u32) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let rank = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        if let Some(rank) = rank.filter(|&rank| rank >= tasks)
            && path == rank_path(dir, Rank(rank))
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn rank_info(mpi: &Mpi, rank: Rank, tasks: u32, run: u64, start: ClockPair) -> RankInfo {
    let abi = mpi.abi();
    let local = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];
    RankInfo {
        rank,
        tasks,
        run,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        local_rank: local.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()),
        cores: cores(),
        mpi: match abi.flavour {
            Flavour::Mpich => "mpich",
            Flavour::OpenMpi => "openmpi",
            Flavour::Standard => "standard",
        }
        .to_owned(),
        library: abi.version.lines().next().unwrap_or_default().trim().to_owned(),
        program: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        pid: std::process::id(),
        realtime: clock::realtime_at(start),
    }
}

/// The CPUs on which this process may run.
fn cores() -> Vec<u32> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}
