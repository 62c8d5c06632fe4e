//! Who records: a lane is one thread's state (its window, its times, its count of requests).
//!
//! Records go into the window, a chunk that is mapped; a full one is appended to the file and begun anew.
//!
//! A thread finds its lane without a lock: the thread that initialised MPI, if it is alone, by comparing its thread pointer, others
//! in thread-local storage. A lane whose thread ended goes to the next thread that comes.

use crate::clock;
use crate::output::{Piece, Rest};
use crate::place::Place;
use crate::requests::Waiting;
use crate::shapes::{AnyKey, Function, Shapes};
use crate::tracer::{TRACER, Tracer};
use mpi_abi::prototypes::Call;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use vef_format::capture::encode::{self, Author, Times, makes_request};
use vef_format::capture::event::{Action, CallSlot, Completion, RequestId};
use vef_format::capture::layout::{CHUNK_HEADER, CHUNK_SIZE, ChunkHeader, checksum, seal};
use vef_format::capture::word::{COMPLETERS, Code, Head, WORD};

/// Thread pointer of the thread that initialised MPI, while tracing is on and it is alone; else 0.
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);
/// The same, and the tracer, while tracing is on but recording is paused.
static PAUSED_THREAD: AtomicUsize = AtomicUsize::new(0);
pub(crate) static PAUSED: AtomicPtr<Tracer> = AtomicPtr::new(null_mut());
/// Its lane, the first there is: at an address that the code knows.
static MAIN_LANE: Place<Lane> = Place::new();

/// Whether there are tools in front of the recorder: calls reach it from them alone.
static CHAINED: AtomicBool = AtomicBool::new(false);

/// Bytes at the end of a chunk that only the record that tracing stopped may use.
const RESERVE: usize = 128;
/// The largest chunk, in units: 1 GiB.
const MOST_UNITS: u32 = 1 << 14;

/// One thread's state.
pub(crate) struct Lane {
    /// Whether the thread is inside a recorded call: MPI calls made by MPI itself are not recorded.
    pub(crate) inside: bool,
    /// Where the next record goes in the window, and the last place where a word may go: before it without a window.
    at: *mut u8,
    last_word: *mut u8,
    /// End of the previous record, ticks.
    last: u64,
    /// The request made next, without flags.
    next: Waiting,
    pub(crate) shapes: Shapes,
    pub(crate) tracer: &'static Tracer,
    pub(crate) thread: u16,
    sequence: u32,
    /// The window and its place in the file.
    window: Option<(Piece, u64)>,
    /// Room that calls use again and again.
    pub(crate) scratch: Scratch,
}

/// Buffers of a lane; they keep their capacity.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Handles of requests before the call.
    pub(crate) handles: Vec<usize>,
    /// Those of them that a call has completed.
    pub(crate) chosen: Vec<usize>,
    pub(crate) completions: Vec<Completion>,
    /// Statuses that the program does not want and the recorder does; `u64` for their alignment.
    pub(crate) statuses: Vec<u64>,
    pub(crate) send_counts: Vec<u64>,
    pub(crate) recv_counts: Vec<u64>,
}

/// The lane of this thread; `None`: nothing is to be recorded.
#[inline]
pub(crate) fn current() -> Option<NonNull<Lane>> {
    alone().or_else(held)
}

/// The lane of the thread that initialised MPI, if it is that one that asks, and it is alone: no other thread may be in MPI at the
/// same time. And ticks are [`clock::cycles`] then.
#[inline(always)]
pub(crate) fn alone() -> Option<NonNull<Lane>> {
    match thread_pointer() == MAIN_THREAD.load(Ordering::Relaxed) {
        true => Some(MAIN_LANE.address()),
        false => None,
    }
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

/// The lane of a thread that is not alone.
#[inline(never)]
fn held() -> Option<NonNull<Lane>> {
    // SAFETY: set to the tracer, or null.
    lane_in(unsafe { TRACER.load(Ordering::Acquire).as_ref() }?)
}

/// The lane of this thread while recording is paused; `None` while it is not.
#[cold]
#[inline(never)]
pub(crate) fn paused() -> Option<NonNull<Lane>> {
    // SAFETY: set to the tracer, or null.
    let tracer = unsafe { PAUSED.load(Ordering::Acquire).as_ref() }?;
    if thread_pointer() == PAUSED_THREAD.load(Ordering::Relaxed) {
        return Some(MAIN_LANE.address());
    }
    lane_in(tracer)
}

/// Whether there are tools in front of the recorder: then what the program calls is not what it records.
#[inline(always)]
pub(crate) fn is_behind_tools() -> bool {
    CHAINED.load(Ordering::Relaxed)
}

/// The lane that this thread, which is not alone, has or gets of `tracer`.
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

/// Keeps a lane for ever.
pub(crate) fn keep(lane: Lane) -> NonNull<Lane> {
    MAIN_LANE.put(lane).unwrap_or_else(|lane| NonNull::from(Box::leak(Box::new(lane))))
}

/// From now on, the calling thread records through `lane`, and others get theirs from `tracer`. `chained`: there are tools in
/// front of the recorder.
pub(crate) fn begin(tracer: &'static Tracer, lane: NonNull<Lane>, chained: bool) {
    CHAINED.store(chained, Ordering::Relaxed);
    TRACER.store(std::ptr::from_ref(tracer).cast_mut(), Ordering::Release);
    if chained || tracer.multiple || !clock::is_cycles() || lane != MAIN_LANE.address() {
        HELD.with(|held| held.0.set(lane.as_ptr()));
        return;
    }
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

/// Which of the functions that complete requests a word names.
#[inline(always)]
const fn completer(call: Call) -> u8 {
    match call {
        Call::MPI_Wait => 0,
        Call::MPI_Waitall => 1,
        Call::MPI_Waitany => 2,
        Call::MPI_Waitsome => 3,
        Call::MPI_Test => 4,
        Call::MPI_Testall => 5,
        Call::MPI_Testany => 6,
        _ => 7,
    }
}

impl Lane {
    pub(crate) fn new(tracer: &'static Tracer, thread: u16, now: u64) -> Self {
        Self {
            inside: false,
            at: NonNull::<u8>::dangling().as_ptr().wrapping_add(1),
            last_word: NonNull::dangling().as_ptr(),
            last: now,
            next: Waiting::new(RequestId { thread, number: 0 }, 0),
            shapes: Shapes::new(),
            tracer,
            thread,
            sequence: 0,
            window: None,
            scratch: Scratch::default(),
        }
    }

    /// Writes the record of a call that ran from `start` to `end`, ticks, as a word with this head if the times are such.
    #[inline(always)]
    pub(crate) fn put_head(&mut self, start: u64, end: u64, head: Head) {
        if !self.put_word(start, end, head) {
            self.put_long(start, end, head);
        }
    }

    /// Writes a record of one word, if there is room for it and the times are such.
    #[inline(always)]
    fn put_word(&mut self, start: u64, end: u64, head: Head) -> bool {
        // Times that run backwards (clocks of different cores may differ a little) are long ones here.
        let word = head.with(start.wrapping_sub(self.last), end.wrapping_sub(start));
        match word {
            Some(word) if self.at <= self.last_word => {
                // SAFETY: room in the window, which only this lane writes; by one store, which a kill does not divide.
                unsafe { self.at.cast::<u64>().write_unaligned(word.to_le()) };
                self.at = self.at.wrapping_add(WORD);
                self.last = end;
                true
            }
            _ => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn put_long(&mut self, start: u64, end: u64, head: Head) {
        let call = match head.code() {
            Code::Run { completer, .. } => self.slot_of_completer(completer),
            Code::Shape(_) => CallSlot::NONE,
        };
        self.write((start, end), 0, |bytes, at, times, _| {
            match (head.with(times.gap, times.duration), head.code()) {
                (Some(word), _) => {
                    *bytes.get_mut(at..)?.first_chunk_mut()? = word.to_le_bytes();
                    Some(at + WORD)
                }
                (None, Code::Shape(shape)) => encode::shape(bytes, at, times, shape),
                (None, Code::Run { count, after, .. }) => encode::run(bytes, at, times, call, count, after),
            }
        });
    }

    /// Writes the record of a call that has completed `count` of the lane's own requests, made one after the other, and after
    /// which `after` were made before the call.
    #[inline(always)]
    pub(crate) fn put_run(&mut self, start: u64, end: u64, call: Call, count: u64, after: u64) {
        match Head::run(completer(call), count, after) {
            Some(head) => self.put_head(start, end, head),
            None => self.put_long_run(start, end, call, count, after),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_long_run(&mut self, start: u64, end: u64, call: Call, count: u64, after: u64) {
        let call = self.tracer.slot(call);
        self.write((start, end), 0, |bytes, at, times, _| encode::run(bytes, at, times, call, count, after));
    }

    fn slot_of_completer(&self, completer: u8) -> CallSlot {
        Call::from_name(COMPLETERS[usize::from(completer)])
            .map_or(CallSlot::NONE, |call| self.tracer.slot(call))
    }

    /// Writes the record of a call of the function `call` that ran from `start` to `end`, ticks.
    #[inline(never)]
    pub(crate) fn put(&mut self, start: u64, end: u64, action: &Action<'_>, call: CallSlot) {
        let requests = u64::from(makes_request(action).is_some());
        self.write((start, end), requests, |bytes, at, times, author| {
            encode::record(bytes, at, times, author, call, action)
        });
    }

    /// As [`Lane::put`]; later calls of `function` with arguments that give this key are known to be like this one, and to make
    /// requests with these flags.
    #[inline(never)]
    pub(crate) fn put_first(
        &mut self,
        times: (u64, u64),
        action: &Action<'_>,
        call: CallSlot,
        function: Function,
        key: &impl AnyKey,
        flags: u8,
    ) {
        let shape = self.shapes.choose(function, key);
        let requests = u64::from(makes_request(action).is_some());
        let written = self.write(times, requests, |bytes, at, times, author| {
            encode::define(bytes, at, times, author, call, action, shape)
        });
        if written {
            self.shapes.keep(shape, function, key, action, flags);
        }
    }

    /// As [`Lane::put`] of the completion of the lane's own requests, whose numbers are the first `count` of
    /// `scratch.handles`.
    #[inline(never)]
    pub(crate) fn put_completed(&mut self, start: u64, end: u64, call: CallSlot, count: usize) {
        let numbers = std::mem::take(&mut self.scratch.handles);
        self.write((start, end), 0, |bytes, at, times, author| {
            encode::completed(
                bytes,
                at,
                times,
                author,
                call,
                numbers[..count].iter().map(|&number| number as u64),
            )
        });
        self.scratch.handles = numbers;
    }

    /// A definition: at the instant at which the previous record ended, so that the next gap stays as it is.
    pub(crate) fn define(&mut self, action: &Action<'_>) {
        self.put(self.last, self.last, action, CallSlot::NONE);
    }

    /// The request that a call has made which was recorded as one of a shape.
    #[inline(always)]
    pub(crate) fn take_request(&mut self) -> Waiting {
        let made = self.next;
        self.next = made.next();
        made
    }

    /// The request that is made next, without flags; like any ordinary one of this lane.
    #[inline(always)]
    pub(crate) fn next_request(&self) -> Waiting {
        self.next
    }

    /// Writes a record by `encode`, which gives `None` if there is too little room, into the window, the next one, or a
    /// chunk of its own. `requests`: how many it makes. `false`: tracing has stopped.
    fn write(
        &mut self,
        (start, end): (u64, u64),
        requests: u64,
        encode: impl Fn(&mut [u8], usize, Times, Author) -> Option<usize>,
    ) -> bool {
        // Clocks of different cores may differ a little; time must not run backwards in the file.
        let start = start.max(self.last);
        let times = Times { gap: start - self.last, duration: end.saturating_sub(start) };
        let author = Author { thread: self.thread, requests: self.next.number() };
        let mut alone = false;
        loop {
            if let Some((window, _)) = &mut self.window {
                let bytes = window.bytes();
                let first = bytes.as_mut_ptr();
                let at = self.at as usize - first as usize;
                let ordinary = bytes.len() - RESERVE;
                if let Some(at) = encode(&mut bytes[..ordinary], at, times, author) {
                    self.at = first.wrapping_add(at);
                    break;
                }
                if at == CHUNK_HEADER {
                    alone = true;
                    break;
                }
            }
            if !self.next_window() {
                return false;
            }
        }
        if alone && !self.write_alone(|bytes| encode(bytes, CHUNK_HEADER, times, author)) {
            return false;
        }
        self.last += times.gap + times.duration;
        for _ in 0..requests {
            self.next = self.next.next();
        }
        if alone {
            // What the window says in its head is as of now.
            self.begin_window();
        }
        true
    }

    /// Writes a record that is longer than a window, which is empty, into a chunk of its own. `false`: tracing has stopped.
    #[cold]
    #[inline(never)]
    fn write_alone(&mut self, encode: impl Fn(&mut [u8]) -> Option<usize>) -> bool {
        let mut span = 2;
        let written = loop {
            if span > MOST_UNITS {
                break Err("a call has too many members to be recorded".to_owned());
            }
            let mut bytes = vec![0; span as usize * CHUNK_SIZE];
            if let Some(end) = encode(&mut bytes) {
                bytes[..CHUNK_HEADER].copy_from_slice(&self.header(span).to_bytes());
                break self.append(&bytes[..end], span);
            }
            span *= 2;
        };
        written.map_err(|reason| self.tracer.stop(self, &reason)).is_ok()
    }

    /// Appends the window to the file and begins anew, or gets the first. `false`: tracing has stopped.
    #[cold]
    #[inline(never)]
    fn next_window(&mut self) -> bool {
        let ready = match self.window.take() {
            None => self.tracer.output.window().map_err(|error| error.to_string()).map(|window| {
                self.window = Some(window);
            }),
            Some((mut window, offset)) => {
                let bytes = window.bytes();
                let used = self.at as usize - bytes.as_ptr() as usize;
                let written = self.append(&bytes[..used], 1);
                self.window = Some((window, offset));
                written
            }
        };
        match ready {
            Ok(()) => self.begin_window(),
            Err(ref reason) => self.tracer.stop(self, reason),
        }
        ready.is_ok()
    }

    /// Appends a chunk, whose length and sum its header does not say yet, to the file.
    fn append(&mut self, chunk: &[u8], span: u32) -> Result<(), String> {
        let Some((head, records)) = chunk.split_first_chunk::<CHUNK_HEADER>() else { return Ok(()) };
        let header = ChunkHeader {
            used: chunk.len() as u32,
            checksum: checksum(chunk),
            ..ChunkHeader::from_bytes(head)
        };
        self.tracer.output.append(&header.to_bytes(), records, span).map_err(|error| error.to_string())?;
        self.sequence += 1;
        Ok(())
    }

    /// The window, whose records are in the file, is now the thread's next chunk.
    fn begin_window(&mut self) {
        let header = self.header(1).to_bytes();
        let Some((window, _)) = &mut self.window else { return };
        let bytes = window.bytes();
        let fence = || std::sync::atomic::compiler_fence(Ordering::SeqCst);
        // Without its mark it is no chunk, whatever else is in it.
        bytes[..4].fill(0);
        fence();
        // Also behind the last record: one that did not fit has left some of its bytes.
        bytes[CHUNK_HEADER..].fill(0);
        bytes[4..CHUNK_HEADER].copy_from_slice(&header[4..]);
        fence();
        bytes[..4].copy_from_slice(&header[..4]);
        self.at = bytes.as_mut_ptr().wrapping_add(CHUNK_HEADER);
        self.last_word = bytes.as_mut_ptr().wrapping_add(bytes.len() - RESERVE - WORD);
    }

    fn header(&self, span: u32) -> ChunkHeader {
        ChunkHeader {
            thread: self.thread,
            span,
            sequence: self.sequence,
            used: 0,
            checksum: 0,
            requests: self.next.number(),
            base: self.last,
            clock: clock::pair(),
        }
    }

    /// Notes in the window how much of it is in use. Gives where it lies in the file, and its bytes in use.
    pub(crate) fn seal(&mut self) -> Option<Rest<'_>> {
        let (window, offset) = self.window.as_mut()?;
        let bytes = window.bytes();
        let used = self.at as usize - bytes.as_ptr() as usize;
        seal(bytes, used);
        Some((*offset, &bytes[..used]))
    }

    /// The last record of a lane whose tracing stops: it may use the reserve.
    pub(crate) fn put_stopped(&mut self, reason: &str) {
        let end = (0..=reason.len().min(RESERVE / 2)).rev().find(|&end| reason.is_char_boundary(end));
        let reason = &reason[..end.unwrap_or(0)];
        let author = Author { thread: self.thread, requests: self.next.number() };
        let times = Times { gap: clock::now().saturating_sub(self.last), duration: 0 };
        if let Some((window, _)) = &mut self.window {
            let bytes = window.bytes();
            let at = self.at as usize - bytes.as_ptr() as usize;
            if let Some(at) =
                encode::record(bytes, at, times, author, CallSlot::NONE, &Action::Stopped { reason })
            {
                self.at = bytes.as_mut_ptr().wrapping_add(at);
            }
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
