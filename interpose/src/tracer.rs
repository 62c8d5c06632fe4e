//! A recorder: the state shared by all threads, and each thread's lane.
//!
//! There is one recorder, or several in a chain of tools. They are never freed, because threads may be inside a call
//! when recording ends.

mod begin;
mod describe;
mod lane;

use crate::clock;
use crate::comms::Outsiders;
use crate::guard::warn;
use crate::known::KnownObjects;
use crate::machine::{self, RECORDERS};
use crate::output::{CallEntry, Output};
use crate::pending::RequestRun;
use crate::settings::StopAfter;
use crate::shapes::{ShapeTable, UsedObject};
use crate::writer::{Mark, Writer};
use mpi_abi::api::Mpi;
use mpi_abi::detect::Abi;
use mpi_abi::handles;
use mpi_abi::prototypes::Call;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;
use vef_format::capture::encode::Content;
use vef_format::capture::event::{Action, CallSlot, Completion};
use vef_format::capture::layout::CALL_SLOTS;
use vef_format::ids::Rank;

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

impl State {
    #[inline(always)]
    fn of(code: u8) -> Self {
        match code {
            0 => Self::Recording,
            1 => Self::Paused,
            2 => Self::Closed,
            _ => Self::Over,
        }
    }
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

    #[inline(always)]
    pub(crate) fn state(&self) -> State {
        State::of(self.state.load(Ordering::Relaxed))
    }

    /// Changes the state; returns the previous one.
    pub(crate) fn set_state(&self, state: State) -> State {
        let before = State::of(self.state.swap(state as u8, Ordering::AcqRel));
        self.state_has_changed();
        before
    }

    fn state_has_changed(&self) {
        if self.alone {
            machine::forget_destinations();
        }
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
        if !lane.writer.put_stopped(reason) {
            self.output.put_reason(reason);
        }
        self.output.set_pair(2, clock::pair());
        // Other threads may still be writing records, which are read to the last one.
        self.output.stop(lane.writer.seal().filter(|_| !self.multiple));
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

    /// [`Tracer::known`] for the most frequent calls: the path without a lock has code of its own.
    #[inline(always)]
    pub(crate) fn known_fast<T>(&'static self, with: impl FnOnce(&mut KnownObjects) -> T) -> T {
        #[cold]
        #[inline(never)]
        fn locked<T>(tracer: &'static Tracer, with: impl FnOnce(&mut KnownObjects) -> T) -> T {
            tracer.known(with)
        }
        if self.multiple {
            return locked(self, with);
        }
        // SAFETY: calls of MPI do not overlap; `with` does not get here again.
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

    /// Changes the state if it is `from`. Another thread may end the recording at the same time, which is for good.
    pub(crate) fn change_state(&self, from: State, to: State) {
        let changed = self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Relaxed);
        if changed.is_ok() {
            self.state_has_changed();
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
