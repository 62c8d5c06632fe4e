//! What all threads share: the MPI, the file, and what is known of handles. One a process, from `MPI_Init` to
//! `MPI_Finalize`.

use crate::chain::{self, Recorder};
use crate::clock;
use crate::comms::Comms;
use crate::handles::HandleMap;
use crate::lane::{self, Lane};
use crate::output::Output;
use crate::pending::Pending;
use crate::place::Place;
use crate::requests::Template;
use crate::run;
use crate::settings::Settings;
use crate::types::Types;
use mpi_abi::api::{Mpi, ThreadLevel};
use mpi_abi::handles;
use mpi_abi::prototypes::Call;
use mpi_abi::tables::Flavour;
use std::cell::UnsafeCell;
use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use vef_format::capture::event::{CallSlot, DatatypeId};
use vef_format::capture::layout::{CALL_SLOTS, ClockPair};
use vef_format::capture::{RankInfo, rank_path};
use vef_format::ids::{CommId, Rank};

/// The tracer, while tracing is on. Never freed: threads may be in the middle of a call when it ends.
pub(crate) static TRACER: AtomicPtr<Tracer> = AtomicPtr::new(null_mut());

/// It, whether tracing is on or not.
static PLACE: Place<Tracer> = Place::new();

/// Where each function's count is in the call table; null before its first call.
static COUNTS: [AtomicPtr<AtomicU64>; Call::COUNT] = [const { AtomicPtr::new(null_mut()) }; Call::COUNT];

// Every function has room in the call table: what was called once is counted there.
const _: () = assert!(Call::COUNT <= CALL_SLOTS);

/// What all threads share.
pub(crate) struct Tracer {
    pub(crate) mpi: Mpi,
    pub(crate) output: Output,
    pub(crate) rank: Rank,
    pub(crate) tasks: u32,
    /// Whether several threads may call MPI at once.
    pub(crate) multiple: bool,
    /// The lock of `shared`; not used unless `multiple`.
    locked: AtomicBool,
    shared: UnsafeCell<Shared>,
    lanes: Mutex<Lanes>,
    /// The phase that alone is recorded.
    pub(crate) phase: Option<OnlyPhase>,
    pub(crate) sessions: Sessions,
}

/// The processes to be traced together.
pub(crate) struct World {
    mpi: Mpi,
    multiple: bool,
    /// Whether another program started them.
    spawned: bool,
    sessions: Sessions,
}

impl World {
    /// `MPI_COMM_WORLD`.
    pub(crate) fn loaded() -> mpi_abi::Result<Self> {
        let mpi = Mpi::loaded()?;
        let multiple = mpi.query_thread().is_ok_and(|level| level == ThreadLevel::Multiple);
        let spawned = mpi.comm_parent().is_ok_and(|parent| parent.is_some());
        Ok(Self { mpi, multiple, spawned, sessions: Sessions(None) })
    }

    /// All processes that a session knows.
    pub(crate) fn of_session(mpi: Mpi, session: handles::Session) -> mpi_abi::Result<Self> {
        // A later session may allow threads that this one does not.
        let (multiple, spawned) = (true, false);
        Ok(Self {
            mpi: mpi.in_session(session)?,
            multiple,
            spawned,
            sessions: Sessions(Some(AtomicU32::new(1))),
        })
    }
}

/// How many sessions are open, in a program whose first one started tracing.
pub(crate) struct Sessions(Option<AtomicU32>);

impl Sessions {
    /// One begins.
    pub(crate) fn begin(&self) {
        if let Some(open) = &self.0 {
            open.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One is about to end; whether tracing ends with it.
    pub(crate) fn end(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.fetch_sub(1, Ordering::Relaxed) == 1)
    }
}

/// A phase that alone is recorded.
#[derive(Debug)]
pub(crate) struct OnlyPhase {
    name: String,
    /// How often it was begun and not ended.
    depth: AtomicU32,
}

impl OnlyPhase {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), depth: AtomicU32::new(0) }
    }

    /// It begins, if it is the one called `name`: recording goes on.
    pub(crate) fn begin(&self, name: &str) {
        if name == self.name && self.depth.fetch_add(1, Ordering::AcqRel) == 0 {
            lane::resume();
        }
    }

    /// It ends, if it is the one called `name`: recording pauses. An end without a beginning means nothing.
    pub(crate) fn end(&self, name: &str) {
        let ended = |depth: u32| depth.checked_sub(1);
        if name == self.name && self.depth.fetch_update(Ordering::AcqRel, Ordering::Acquire, ended) == Ok(1) {
            lane::pause();
        }
    }
}

// SAFETY: `shared` is reached through `Tracer::shared` alone, which takes the lock unless MPI was told that its callers
// do not overlap.
unsafe impl Sync for Tracer {}

/// What is known of handles.
pub(crate) struct Shared {
    pub(crate) comms: Comms,
    pub(crate) types: Types,
    pub(crate) requests: Pending,
    /// Matched messages, by message handle.
    pub(crate) messages: Pending,
    /// Persistent requests, by handle.
    pub(crate) templates: HandleMap<u32>,
    pub(crate) template_list: Vec<Option<Template>>,
    /// Places of the list that are free.
    pub(crate) free_templates: Vec<u32>,
}

#[derive(Default)]
struct Lanes {
    all: Vec<LanePointer>,
    free: Vec<LanePointer>,
}

#[derive(Clone, Copy)]
struct LanePointer(NonNull<Lane>);

// SAFETY: a lane is used by one thread at a time: its own, or the one that ends tracing.
unsafe impl Send for LanePointer {}

/// The shared state, locked if need be.
pub(crate) struct SharedGuard {
    tracer: &'static Tracer,
}

impl Deref for SharedGuard {
    type Target = Shared;
    #[inline(always)]
    fn deref(&self) -> &Shared {
        // SAFETY: see `Tracer::shared`.
        unsafe { &*self.tracer.shared.get() }
    }
}

impl DerefMut for SharedGuard {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Shared {
        // SAFETY: see `Tracer::shared`.
        unsafe { &mut *self.tracer.shared.get() }
    }
}

impl Drop for SharedGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tracer.multiple {
            self.tracer.locked.store(false, Ordering::Release);
        }
    }
}

impl Tracer {
    /// The tracer, if tracing is on, be it paused.
    pub(crate) fn active() -> Option<&'static Self> {
        // SAFETY: set to leaked boxes, or null.
        unsafe { TRACER.load(Ordering::Acquire).as_ref().or(lane::PAUSED.load(Ordering::Acquire).as_ref()) }
    }

    /// Starts tracing, at the end of an `MPI_Init` that was entered at `loaded.tick` or later. `None`: not wanted, or not
    /// possible; then the reason is on stderr.
    pub(crate) fn start(
        settings: &Settings,
        loaded: ClockPair,
        world: impl FnOnce() -> mpi_abi::Result<World>,
    ) -> Option<NonNull<Lane>> {
        let world = world().map_err(|error| error.to_string());
        match world.and_then(|world| Self::try_start(settings, loaded, world)) {
            Ok(lane) => Some(lane),
            Err(reason) => {
                complain(&format!("this process is not traced: {reason}"));
                None
            }
        }
    }

    fn try_start(settings: &Settings, loaded: ClockPair, world: World) -> Result<NonNull<Lane>, String> {
        let World { mpi, multiple, spawned, sessions } = world;
        let number = |result: mpi_abi::Result<i32>| -> Result<u32, String> {
            u32::try_from(result.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
        };
        let rank = Rank(number(mpi.world_rank())?);
        let tasks = number(mpi.world_size())?;
        let dir = &settings.dir;
        let place = |error: std::io::Error| match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "another process records, or has recorded, as rank {rank} in {} (was the program started by the launcher of another \
                 MPI, or twice in one run?)",
                dir.display()
            ),
            _ => format!("{}: {error}", dir.display()),
        };
        std::fs::create_dir_all(dir).map_err(place)?;
        let dir = &if spawned { directory_of_spawned(&mpi, dir, rank).map_err(place)? } else { dir.clone() };
        if rank.0 == 0 && !settings.fresh && !spawned {
            remove_leftovers(dir, tasks);
        }
        let run = run::identity(dir.file_name().filter(|_| spawned));
        let info = rank_info(&mpi, rank, tasks, run, loaded);
        let path = rank_path(dir, rank);
        let output =
            Output::create(&path, &info, loaded, settings.max_size, settings.fresh).map_err(place)?;
        output.set_pair(1, clock::pair());
        for given in settings.senseless.iter().filter(|_| rank.0 == 0) {
            complain(&format!("{given} makes no sense and counts as not given"));
        }
        let placed = PLACE.put(Self {
            shared: UnsafeCell::new(Shared::new()),
            lanes: Mutex::default(),
            locked: AtomicBool::new(false),
            rank,
            tasks,
            multiple,
            sessions,
            phase: settings.phase.as_deref().map(OnlyPhase::new),
            output,
            mpi,
        });
        let tracer = placed.map_err(|_| "it was traced before")?;
        // SAFETY: it was put there, for ever, and no other kind of reference is made to it.
        let tracer: &'static Self = unsafe { tracer.as_ref() };
        let lane = tracer.new_lane().ok_or("no memory")?;
        lane::begin(tracer, lane, chain::recorder() == Recorder::Behind);
        Ok(lane)
    }

    /// Ends tracing with the program's own end: the calling thread's lane has written its last record.
    pub(crate) fn finish(&'static self) {
        let _ = lane::end();
        self.output.set_pair(2, clock::pair());
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: MPI_Finalize has returned, so no thread is inside an MPI call, and none gets a lane any more.
        let rests: Vec<_> =
            lanes.all.iter().filter_map(|lane| unsafe { (*lane.0.as_ptr()).seal() }).collect();
        self.output.finish(&rests);
        if self.output.is_removed() {
            complain(&format!("the capture of rank {} was removed during the run", self.rank));
        }
    }

    /// Ends tracing because `lane` cannot go on; the program does.
    pub(crate) fn stop(&'static self, lane: &mut Lane, reason: &str) {
        if self.stop_quietly(lane, reason) {
            complain(&format!("tracing of rank {} stopped: {reason}", self.rank));
        }
    }

    /// [`Tracer::stop`] where that was asked for; `false`: it had ended before.
    pub(crate) fn stop_quietly(&'static self, lane: &mut Lane, reason: &str) -> bool {
        if !lane::end() {
            return false;
        }
        lane.put_stopped(reason);
        self.output.set_pair(2, clock::pair());
        // Other threads may be writing to their windows: those end at their last record.
        self.output.stop(lane.seal());
        true
    }

    /// A communicator or datatype is being freed: no call is like earlier ones that used it.
    pub(crate) fn forget_shapes(&'static self, comm: Option<CommId>, datatype: Option<DatatypeId>) {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in &lanes.all {
            // SAFETY: a lane lives for ever and always has the same shapes; no reference to the lane itself is made.
            let shapes = unsafe { (&raw const (*lane.0.as_ptr()).shapes).read() };
            shapes.forget(comm, datatype);
        }
    }

    /// What is known of handles.
    #[inline(always)]
    pub(crate) fn shared(&'static self) -> SharedGuard {
        if self.multiple {
            while self
                .locked
                .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                std::thread::yield_now();
            }
        }
        SharedGuard { tracer: self }
    }

    /// The tracer of a thread that is [alone](lane::alone).
    ///
    /// # Safety
    /// There must be such a thread: tracing has begun.
    #[inline(always)]
    pub(crate) unsafe fn alone() -> &'static Self {
        // SAFETY: the contract; see `try_start`.
        unsafe { PLACE.address().as_ref() }
    }

    /// As [`Tracer::shared`], without the lock.
    ///
    /// # Safety
    /// The thread that asks is [alone](lane::alone), and no other reference to the shared state is alive.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the contract says why there is but one")]
    pub(crate) unsafe fn shared_alone(&'static self) -> &'static mut Shared {
        // SAFETY: the contract.
        unsafe { &mut *self.shared.get() }
    }

    /// How often `call` was counted, if it was.
    #[inline(always)]
    pub(crate) fn counted(&self, call: Call) -> Option<&'static AtomicU64> {
        // SAFETY: a count in the header's mapping, which is never unmapped.
        unsafe { COUNTS[call as usize].load(Ordering::Relaxed).as_ref() }
    }

    /// Counts a call.
    #[inline(always)]
    pub(crate) fn count(&'static self, call: Call) {
        let count = COUNTS[call as usize].load(Ordering::Relaxed);
        // SAFETY: a count in the header's mapping, which is never unmapped.
        match unsafe { count.as_ref() } {
            // One thread at a time needs no locked instruction.
            Some(count) if !self.multiple => {
                count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed)
            }
            Some(count) => _ = count.fetch_add(1, Ordering::Relaxed),
            None => self.count_first(call),
        }
    }

    #[cold]
    #[inline(never)]
    fn count_first(&'static self, call: Call) {
        let _lock = self.lanes.lock();
        let known = &COUNTS[call as usize];
        if known.load(Ordering::Relaxed).is_null()
            && let Some((_, count)) = self.output.call_slot(call.name())
        {
            known.store(std::ptr::from_ref(count).cast_mut(), Ordering::Release);
        }
        // SAFETY: as in `count`.
        if let Some(count) = unsafe { known.load(Ordering::Acquire).as_ref() } {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes the time of a call that was counted, and whether it failed.
    #[inline(always)]
    pub(crate) fn note(&'static self, call: Call, ticks: u64, code: i32) {
        let count = COUNTS[call as usize].load(Ordering::Relaxed);
        if count.is_null() {
            return;
        }
        // SAFETY: an entry of the call table, which begins with three numbers and is never unmapped.
        let [ticks_so_far, errors] = unsafe { [&*count.add(1), &*count.add(2)] };
        let add = |to: &AtomicU64, number: u64| match self.multiple {
            true => _ = to.fetch_add(number, Ordering::Relaxed),
            false => to.store(to.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed),
        };
        add(ticks_so_far, ticks);
        if code != 0 {
            add(errors, 1);
        }
    }

    /// The slot of `call`, which has been counted, in the call table.
    pub(crate) fn slot(&'static self, call: Call) -> CallSlot {
        CallSlot(self.output.slot_of(COUNTS[call as usize].load(Ordering::Relaxed)) as u16)
    }

    /// A lane for the calling thread.
    pub(crate) fn new_lane(&'static self) -> Option<NonNull<Lane>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.free.pop() {
            return Some(lane.0);
        }
        let thread = u16::try_from(lanes.all.len()).ok()?;
        let lane = lane::keep(Lane::new(self, thread, clock::now()));
        lanes.all.push(LanePointer(lane));
        Some(lane)
    }

    /// Its thread has ended.
    pub(crate) fn release_lane(&self, lane: NonNull<Lane>) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).free.push(LanePointer(lane));
    }
}

impl Shared {
    fn new() -> Self {
        Self {
            comms: Comms::new(),
            types: Types::new(),
            requests: Pending::new(),
            messages: Pending::new(),
            templates: HandleMap::new(),
            template_list: Vec::new(),
            free_templates: Vec::new(),
        }
    }
}

/// One line on stderr, without the locks and panics of the ordinary macros.
pub(crate) fn complain(what: &str) {
    let line = format!("vef: {what}\n");
    // SAFETY: the bytes of a live string.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// The directory of a world that another program spawned: `spawned-<n>` in that of the others, the first that is free.
/// Rank 0 makes it and tells the rest of its world.
fn directory_of_spawned(mpi: &Mpi, dir: &Path, rank: Rank) -> std::io::Result<PathBuf> {
    let named = |number: u64| dir.join(format!("spawned-{number}"));
    let mut chosen = [0u64];
    let mut failure = None;
    if rank.0 == 0 {
        for number in 1.. {
            match std::fs::create_dir(named(number)) {
                Ok(()) => chosen = [number],
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => failure = Some(error),
            }
            break;
        }
    }
    let world = mpi.abi().comm_world();
    mpi.bcast(&mut chosen, 0, world).map_err(|error| std::io::Error::other(error.to_string()))?;
    match (failure, chosen) {
        (Some(error), _) => Err(error),
        (None, [0]) => Err(std::io::Error::other("rank 0 could not make a directory")),
        (None, [number]) => Ok(named(number)),
    }
}

/// Rank files of an earlier, larger run would make this capture unreadable.
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
        host: host_name(),
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

fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: a buffer and its length; the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let len = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..len]).into_owned()
}

/// The CPUs this process may run on.
fn cores() -> Vec<u32> {
    // SAFETY: all-zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of that size.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: within the set.
    (0..8 * size).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).map(|cpu| cpu as u32).collect()
}
