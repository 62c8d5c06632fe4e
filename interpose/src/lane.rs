//! Who records: a lane is one thread's state (its chunk, its times, its count of requests).
//!
//! A thread finds its lane without a lock: the thread that initialised MPI by comparing its thread pointer, the
//! others in thread-local storage. A lane whose thread ended goes to the next thread that comes.

use crate::clock;
use crate::output::Piece;
use crate::tracer::{TRACER, Tracer};
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use vef_format::capture::encode::{self, Author, Times, makes_request};
use vef_format::capture::event::{Action, Completion};
use vef_format::capture::layout::{CHUNK_HEADER, CHUNK_SIZE, CHUNK_USED_AT, ChunkHeader};
use vef_format::capture::varint::SHORT_ROOM;

/// Thread pointer of the thread that initialised MPI, while tracing is on; else 0.
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);
/// The same, and the tracer, while tracing is on but recording is paused.
static PAUSED_THREAD: AtomicUsize = AtomicUsize::new(0);
pub(crate) static PAUSED: AtomicPtr<Tracer> = AtomicPtr::new(null_mut());
/// Its lane.
static MAIN_LANE: AtomicPtr<Lane> = AtomicPtr::new(null_mut());

/// Whether there are tools in front of the recorder: calls reach it from them alone.
static CHAINED: AtomicBool = AtomicBool::new(false);

/// Bytes at the end of a chunk that only the record that tracing stopped may use.
const RESERVE: usize = 128;
/// The largest chunk, in units: 1 GiB.
const MOST_UNITS: u16 = 4096;

/// One thread's state.
pub(crate) struct Lane {
    /// Whether the thread is inside a recorded call: MPI calls made by MPI itself are not recorded.
    pub(crate) inside: bool,
    /// The chunk's first byte, its bytes for ordinary records, and where the next record goes.
    start: *mut u8,
    len: usize,
    at: usize,
    /// End of the previous record, ticks.
    last: u64,
    /// Requests made so far.
    pub(crate) requests: u64,
    pub(crate) thread: u16,
    pub(crate) tracer: &'static Tracer,
    /// The chunk itself and its place in the file.
    chunk: Option<(Piece, u64)>,
    sequence: u32,
    /// Room that calls use again and again.
    pub(crate) scratch: Scratch,
}

/// Buffers of a lane; they keep their capacity.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Handles of requests before the call.
    pub(crate) handles: Vec<usize>,
    pub(crate) completions: Vec<Completion>,
    /// Statuses that the program does not want and the recorder does; `u64` for their alignment.
    pub(crate) statuses: Vec<u64>,
    pub(crate) send_counts: Vec<u64>,
    pub(crate) recv_counts: Vec<u64>,
}

/// The lane of this thread; `None`: nothing is to be recorded.
#[inline(always)]
pub(crate) fn current() -> Option<NonNull<Lane>> {
    if thread_pointer() == MAIN_THREAD.load(Ordering::Relaxed) {
        return NonNull::new(MAIN_LANE.load(Ordering::Relaxed));
    }
    other()
}

/// An address that is this thread's alone while it lives; never 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the thread control block's own address at its start.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
    }
    pointer
}

#[cfg(not(target_arch = "x86_64"))]
fn thread_pointer() -> usize {
    thread_local!(static MARK: Cell<u8> = const { Cell::new(0) });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

/// The lane of a thread that did not initialise MPI.
#[inline(never)]
fn other() -> Option<NonNull<Lane>> {
    if CHAINED.load(Ordering::Relaxed) { None } else { chained() }
}

/// The lane of this thread, for a call from a tool in front of the recorder.
pub(crate) fn chained() -> Option<NonNull<Lane>> {
    // SAFETY: set to a leaked box, or null.
    lane_in(unsafe { TRACER.load(Ordering::Acquire).as_ref() }?)
}

/// The lane of this thread, for a call from the program or from a tool in front of the recorder.
pub(crate) fn any() -> Option<NonNull<Lane>> {
    if CHAINED.load(Ordering::Relaxed) { chained() } else { current() }
}

/// The lane of this thread while recording is paused; `None` while it is not.
#[cold]
#[inline(never)]
pub(crate) fn paused() -> Option<NonNull<Lane>> {
    if CHAINED.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: set to a leaked box, or null.
    let tracer = unsafe { PAUSED.load(Ordering::Acquire).as_ref() }?;
    if thread_pointer() == PAUSED_THREAD.load(Ordering::Relaxed) {
        return NonNull::new(MAIN_LANE.load(Ordering::Relaxed));
    }
    lane_in(tracer)
}

/// [`paused`] for a call from a tool in front of the recorder.
pub(crate) fn chained_paused() -> Option<NonNull<Lane>> {
    // SAFETY: set to a leaked box, or null.
    lane_in(unsafe { PAUSED.load(Ordering::Acquire).as_ref() }?)
}

/// [`paused`] for a call from the program or from a tool in front of the recorder.
pub(crate) fn any_paused() -> Option<NonNull<Lane>> {
    if CHAINED.load(Ordering::Relaxed) { chained_paused() } else { paused() }
}

/// Gives the lane back when the thread ends.
struct Held(Cell<*mut Lane>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(lane) = NonNull::new(self.0.get())
            && let Some(tracer) = Tracer::active()
        {
            tracer.release_lane(lane);
        }
    }
}

thread_local!(static HELD: Held = const { Held(Cell::new(null_mut())) });

/// The lane that this thread, not the one that initialised MPI, has or gets of `tracer`.
fn lane_in(tracer: &'static Tracer) -> Option<NonNull<Lane>> {
    // A thread that is past the end of its thread-local storage is not recorded any more.
    HELD.try_with(|held| {
        if held.0.get().is_null() {
            held.0.set(tracer.new_lane().map_or(null_mut(), NonNull::as_ptr));
        }
        NonNull::new(held.0.get())
    })
    .ok()
    .flatten()
}

/// From now on, the calling thread records through `lane`, and others get theirs from `tracer`. `chained`: there are tools in
/// front of the recorder.
pub(crate) fn begin(tracer: &'static Tracer, lane: NonNull<Lane>, chained: bool) {
    if chained {
        CHAINED.store(true, Ordering::Relaxed);
        TRACER.store(std::ptr::from_ref(tracer).cast_mut(), Ordering::Release);
        HELD.with(|held| held.0.set(lane.as_ptr()));
        return;
    }
    MAIN_LANE.store(lane.as_ptr(), Ordering::Relaxed);
    TRACER.store(std::ptr::from_ref(tracer).cast_mut(), Ordering::Release);
    MAIN_THREAD.store(thread_pointer(), Ordering::Release);
}

/// From now on, nothing is recorded. `false`: it was so already.
pub(crate) fn end() -> bool {
    MAIN_THREAD.store(0, Ordering::Release);
    let active = TRACER.swap(null_mut(), Ordering::AcqRel);
    let paused = PAUSED.swap(null_mut(), Ordering::AcqRel);
    !active.is_null() || !paused.is_null()
}

/// From now on, only calls that ask for [`paused`] are looked at. Those of other threads under way are still recorded.
pub(crate) fn pause() {
    PAUSED_THREAD.store(MAIN_THREAD.swap(0, Ordering::AcqRel), Ordering::Release);
    PAUSED.store(TRACER.swap(null_mut(), Ordering::AcqRel), Ordering::Release);
}

/// The end of a pause.
pub(crate) fn resume() {
    TRACER.store(PAUSED.swap(null_mut(), Ordering::AcqRel), Ordering::Release);
    MAIN_THREAD.store(PAUSED_THREAD.load(Ordering::Relaxed), Ordering::Release);
}

impl Lane {
    pub(crate) fn new(tracer: &'static Tracer, thread: u16, now: u64) -> Self {
        Self {
            inside: false,
            start: NonNull::dangling().as_ptr(),
            len: 0,
            at: 0,
            last: now,
            requests: 0,
            thread,
            tracer,
            chunk: None,
            sequence: 0,
            scratch: Scratch::default(),
        }
    }

    /// Writes the record of a call that ran from `start` to `end`, ticks. `slot`: see [`encode::record`].
    #[inline(always)]
    pub(crate) fn put(&mut self, start: u64, end: u64, action: &Action<'_>, slot: u32) {
        let times = self.times(start, end);
        if encode::is_short(action, self.author()) {
            let Some(room) = self.short_room() else { return };
            // SAFETY: room in the mapped chunk, which only this lane writes.
            let room = unsafe { &mut *room };
            self.at += encode::short(room, times, self.author(), action, slot);
        } else {
            loop {
                let (at, author) = (self.at, self.author());
                if let Some(at) = encode::record(self.bytes(), at, times, author, action, slot) {
                    self.at = at;
                    break;
                }
                if !self.next_chunk() {
                    return;
                }
            }
        }
        self.last += times.gap + times.duration;
        self.requests += u64::from(makes_request(action).is_some());
    }

    /// As [`Lane::put`] of the completion of the lane's own requests, whose numbers are the first `count` of
    /// `scratch.handles`.
    #[inline(always)]
    pub(crate) fn put_completed(&mut self, start: u64, end: u64, count: usize) {
        let times = self.times(start, end);
        if count > encode::SHORT_LIST {
            return self.put_many_completed(times, count);
        }
        let Some(room) = self.short_room() else { return };
        // SAFETY: room in the mapped chunk, which only this lane writes.
        let room = unsafe { &mut *room };
        let numbers = self.scratch.handles[..count].iter().map(|&number| number as u64);
        self.at += encode::completed_short(room, times, self.author(), numbers);
        self.last += times.gap + times.duration;
    }

    #[inline(never)]
    fn put_many_completed(&mut self, times: Times, count: usize) {
        loop {
            let author = self.author();
            // SAFETY: as in `Lane::bytes`, which would borrow the numbers too.
            let bytes = unsafe { std::slice::from_raw_parts_mut(self.start, self.len) };
            let numbers = self.scratch.handles[..count].iter().map(|&number| number as u64);
            if let Some(at) = encode::completed(bytes, self.at, times, author, numbers) {
                self.at = at;
                break;
            }
            if !self.next_chunk() {
                return;
            }
        }
        self.last += times.gap + times.duration;
    }

    /// The times of a call. Clocks of different cores may differ a little; time must not run backwards in the file.
    #[inline(always)]
    fn times(&self, start: u64, end: u64) -> Times {
        let start = start.max(self.last);
        Times { gap: start - self.last, duration: end.saturating_sub(start) }
    }

    #[inline(always)]
    fn author(&self) -> Author {
        Author { thread: self.thread, requests: self.requests }
    }

    /// The chunk's bytes for ordinary records.
    #[inline(always)]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `start` and `len` describe the mapped chunk (or nothing, at first), which only this lane writes.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Where the next short record goes, in this chunk or the next; `None`: tracing has stopped.
    #[inline(always)]
    fn short_room(&mut self) -> Option<*mut [u8; SHORT_ROOM]> {
        // No more than a test on the path of a call: a fresh chunk always suffices.
        if self.len - self.at < SHORT_ROOM && !self.next_chunk() {
            return None;
        }
        // SAFETY: within the chunk.
        Some(unsafe { self.start.add(self.at) }.cast())
    }

    /// As [`Lane::put`], one copy for all kinds of actions.
    #[inline(never)]
    pub(crate) fn put_rare(&mut self, start: u64, end: u64, action: &Action<'_>, slot: u32) {
        self.put(start, end, action, slot);
    }

    /// A definition: at the instant at which the previous record ended, so that the next gap stays as it is.
    pub(crate) fn define(&mut self, action: &Action<'_>) {
        self.put_rare(self.last, self.last, action, 0);
    }

    /// Goes on in another chunk: of twice the size if a fresh one did not suffice. `false`: tracing has stopped.
    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self) -> bool {
        let span = match &self.chunk {
            Some((piece, _)) if self.at == CHUNK_HEADER => {
                let units = piece.len() / CHUNK_SIZE;
                u16::try_from(2 * units).unwrap_or(u16::MAX)
            }
            _ => 1,
        };
        let claimed = match span {
            ..=MOST_UNITS => self.tracer.output.claim(span).map_err(|error| error.to_string()),
            _ => Err("a call has too many members to be recorded".to_owned()),
        };
        let (mut piece, offset) = match claimed {
            Ok(claimed) => claimed,
            Err(reason) => {
                self.tracer.stop(self, &reason);
                return false;
            }
        };
        self.seal();
        let header = ChunkHeader {
            thread: self.thread,
            span,
            sequence: self.sequence,
            used: 0,
            requests: self.requests,
            base: self.last,
            clock: clock::pair(),
        };
        let raw = header.to_bytes();
        let bytes = piece.bytes();
        bytes[4..CHUNK_HEADER].copy_from_slice(&raw[4..]);
        std::sync::atomic::compiler_fence(Ordering::Release);
        bytes[..4].copy_from_slice(&raw[..4]);
        self.sequence += 1;
        self.start = bytes.as_mut_ptr();
        self.len = bytes.len() - RESERVE;
        self.at = CHUNK_HEADER;
        self.chunk = Some((piece, offset));
        true
    }

    /// Notes in the chunk how much of it is in use. Gives where the chunk and its records end in the file.
    pub(crate) fn seal(&mut self) -> Option<(u64, u64)> {
        let at = self.at;
        let (piece, offset) = self.chunk.as_mut()?;
        let bytes = piece.bytes();
        bytes[CHUNK_USED_AT..CHUNK_USED_AT + 4].copy_from_slice(&(at as u32).to_le_bytes());
        Some((*offset + bytes.len() as u64, *offset + at as u64))
    }

    /// The last record of a lane whose tracing stops: it may use the reserve.
    pub(crate) fn put_stopped(&mut self, reason: &str) {
        let end = (0..=reason.len().min(RESERVE / 2)).rev().find(|&end| reason.is_char_boundary(end));
        let reason = &reason[..end.unwrap_or(0)];
        let author = Author { thread: self.thread, requests: self.requests };
        let times = Times { gap: clock::now().saturating_sub(self.last), duration: 0 };
        if let Some((piece, _)) = &mut self.chunk
            && let Some(at) =
                encode::record(piece.bytes(), self.at, times, author, &Action::Stopped { reason }, 0)
        {
            self.at = at;
        }
    }
}

impl Lane {
    /// Room for `count` statuses, as the address to pass to MPI.
    #[cold]
    #[inline(never)]
    pub(crate) fn own_statuses(&mut self, abi: &mpi_abi::detect::Abi, count: usize) -> usize {
        let words = (count.max(1) * abi.status.size).div_ceil(size_of::<u64>());
        if self.scratch.statuses.len() < words {
            self.scratch.statuses.resize(words, 0);
        }
        self.scratch.statuses.as_mut_ptr() as usize
    }

    /// The end of its previous record, ticks.
    pub(crate) fn now(&self) -> u64 {
        self.last
    }
}

impl Lane {
    /// Before its first record: times count from `start`.
    pub(crate) fn begin_at(&mut self, start: u64) {
        self.last = start;
    }
}
