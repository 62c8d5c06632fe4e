//! The file of this rank. The header, the call table and the window of each thread are mapped into memory, so their
//! contents survive the process. Full windows are appended with ordinary writes.
//!
//! Few pages are mapped and they stay in the caches: no record pays for the first touch of a page. The blocks of
//! mapped ranges are allocated in advance, so that a full disk is an error here and never a SIGBUS later.
//!
//! The program may close the file's descriptor and use its number for a file of its own, lower its limit on the size of files, or cut
//! the file off. Therefore every use of the descriptor begins in [`Output::writable`]; `mapped.rs` keeps the mappings usable.

use crate::mapped;
use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::{Errno, close, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vef_format::capture::layout::{
    CALL_ENTRY, CALL_NAME, CALL_SLOTS, CHUNK_HEADER, CHUNK_SIZE, ClockPair, HEADER_SIZE, HOLE_MARK, RankInfo,
    State, call_field, field, header, pair_bytes, stopped_fact,
};

/// Grows the file and reserves its blocks.
fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    // SAFETY: a valid descriptor.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as libc::off_t, len as libc::off_t) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The limit on the size of a file of this process (`ulimit -f`). Exceeding it would end the process with SIGXFSZ.
fn file_size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// A descriptor of the same file with a number that no program gets unless it asks for it; the given one if there is none.
pub(crate) fn out_of_the_way(file: OwnedFd) -> OwnedFd {
    /// Below the usual limit, 1024.
    const LEAST: RawFd = 1000;
    match fcntl_dupfd_cloexec(&file, LEAST) {
        Ok(other) => {
            // SAFETY: a descriptor of its own. Unlike that of `drop`, this call cannot be a point at which the thread is cancelled.
            unsafe { close(file.into_raw_fd()) };
            other
        }
        Err(_) => file,
    }
}

fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

fn is_link(path: &Path) -> io::Error {
    io::Error::other(format!("{}: is a link; nothing is written through it", path.display()))
}

/// The unit in which file systems keep what is written, of those that they have the smallest.
const PAGE: usize = 4096;

const SIZE_LIMIT: &str = "the size limit is reached";
const CLOSED: &str = "the program has closed the descriptor of the capture";
const CUT_OFF: &str = "another process has truncated the capture";

#[derive(Debug)]
pub(crate) struct Output {
    /// Use [`Output::writable`] instead.
    file: File,
    /// Device and inode of the file.
    identity: (u64, u64),
    /// The file is at least this long, unless another process cuts it off.
    length: AtomicU64,
    /// The first [`HEADER_SIZE`] bytes.
    head: MmapRaw,
    /// Where the facts in the header end.
    facts_end: usize,
    calls_at: usize,
    /// Chunk units claimed.
    units: AtomicU32,
    /// Where the last appended chunk ends.
    end: AtomicU64,
    /// Slots of the call table in use.
    slots: AtomicU32,
    max_size: u64,
}

/// The counters of an entry of the call table, in the file.
#[repr(C)]
pub(crate) struct CallEntry {
    pub(crate) calls: AtomicU64,
    pub(crate) ticks: AtomicU64,
    pub(crate) errors: AtomicU64,
}
const _: () = assert!(call_field::COUNT == 0 && call_field::TICKS == 8 && call_field::ERRORS == 16);

/// The offset of a window in the file, and its used bytes.
pub(crate) type Rest<'a> = (u64, &'a [u8]);

impl Output {
    /// Creates the file and writes its header.
    ///
    /// Processes started by the launcher of another MPI all believe that they are rank 0 of 1. Therefore a file that
    /// another process is writing is left alone; with `fresh`, any existing file is. Nothing is written through a link, symbolic or
    /// hard: its file may not be of a capture.
    pub(crate) fn create(
        path: &Path,
        info: &RankInfo,
        start: ClockPair,
        max_size: u64,
        fresh: bool,
    ) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .create_new(fresh)
            .truncate(false)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ELOOP) => is_link(path),
                _ => error,
            })?;
        let there = file.metadata()?;
        if !there.is_file() {
            return Err(io::Error::other(format!("{}: is not a file", path.display())));
        }
        if there.nlink() > 1 {
            return Err(is_link(path));
        }
        if HEADER_SIZE as u64 > max_size.min(file_size_limit()) {
            return Err(io::Error::other(SIZE_LIMIT));
        }
        // The lock is held until the process ends. File systems without locks have none.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        file.set_len(0)?;
        allocate(&file, 0, HEADER_SIZE as u64)?;
        let file = File::from(out_of_the_way(file.into()));
        let head = MmapOptions::new().len(HEADER_SIZE).map_raw(&file)?;
        mapped::register(head.as_mut_ptr(), HEADER_SIZE);
        let first = header(info, start);
        let facts: [u8; 4] = std::array::from_fn(|at| first[field::FACTS_LEN + at]);
        let created = Self {
            file,
            identity: identity(&there),
            length: AtomicU64::new(HEADER_SIZE as u64),
            head,
            facts_end: field::FACTS + u32::from_le_bytes(facts) as usize,
            calls_at: first.len(),
            units: AtomicU32::new(0),
            end: AtomicU64::new(0),
            slots: AtomicU32::new(0),
            max_size,
        };
        created.store(0, &first);
        Ok(created)
    }

    /// The file, its facts, and whether another process has truncated it, if the descriptor is still that of the capture.
    fn ours(&self) -> io::Result<(&File, Metadata, bool)> {
        // In this order, because other threads may extend the file between the two.
        let least = self.length.load(Ordering::Acquire);
        let about = self.file.metadata().ok().filter(|about| identity(about) == self.identity);
        let about = about.ok_or_else(|| io::Error::other(CLOSED))?;
        let is_cut_off = about.len() < least;
        Ok((&self.file, about, is_cut_off))
    }

    /// The most bytes that the file may have.
    fn most(&self) -> u64 {
        self.max_size.min(file_size_limit())
    }

    /// The file, of which bytes before `end` will be written. Beyond the limit on the size of a file, a write would end the process
    /// by SIGXFSZ.
    fn writable(&self, end: u64) -> io::Result<&File> {
        if end > self.most() {
            return Err(io::Error::other(SIZE_LIMIT));
        }
        match self.ours()? {
            (_, _, true) => Err(io::Error::other(CUT_OFF)),
            (file, _, false) => Ok(file),
        }
    }

    /// Maps a new window; returns it and its offset.
    pub(crate) fn window(&self) -> io::Result<(MmapMut, u64)> {
        let offset = self.claim(1);
        let end = offset + CHUNK_SIZE as u64;
        let file = self.writable(end)?;
        allocate(file, offset, CHUNK_SIZE as u64)?;
        // SAFETY: this process alone writes the file, which has a lock, and nothing else refers to this part of it.
        let mut window = unsafe { MmapOptions::new().offset(offset).len(CHUNK_SIZE).map_mut(file) }?;
        mapped::register(window.as_mut_ptr(), CHUNK_SIZE);
        // Faults in all pages. Kernels before 5.14 do not support this and fault them in one by one.
        let _ = window.advise(Advice::PopulateWrite);
        self.length.fetch_max(end, Ordering::Release);
        Ok((window, offset))
    }

    /// Appends the first `used` bytes of a chunk of `span` units, with this header. Readers see a hole until the chunk is complete.
    pub(crate) fn append(
        &self,
        head: &[u8; CHUNK_HEADER],
        chunk: &[u8],
        used: usize,
        span: u32,
    ) -> io::Result<()> {
        let offset = self.claim(span);
        let file = self.writable(offset + used as u64)?;
        // Of a page that is written in part the file system clears the rest, which takes it as long as half a chunk.
        let room = usize::try_from(self.most().saturating_sub(offset)).unwrap_or(usize::MAX).max(used);
        let written = used.next_multiple_of(PAGE).min(chunk.len()).min(room);
        let mut hole = *head;
        hole[..4].copy_from_slice(&HOLE_MARK.to_le_bytes());
        let records = &chunk[CHUNK_HEADER..written];
        let parts = [(0, &hole[..]), (CHUNK_HEADER, records), (4, &head[4..]), (0, &head[..4])];
        // Zeros are a hole of one unit.
        for (at, bytes) in parts.into_iter().skip(usize::from(span == 1)) {
            file.write_all_at(bytes, offset + at as u64)?;
        }
        self.end.fetch_max(offset + used as u64, Ordering::Relaxed);
        self.length.fetch_max(offset + written as u64, Ordering::Release);
        Ok(())
    }

    /// Claims the next `span` units; returns their offset.
    fn claim(&self, span: u32) -> u64 {
        let first = u64::from(self.units.fetch_add(span, Ordering::Relaxed));
        HEADER_SIZE as u64 + first * CHUNK_SIZE as u64
    }

    /// How the contents of the file were lost, if they were: it was unlinked, or cut off.
    pub(crate) fn lost(&self) -> Option<&'static str> {
        let (_, about, is_cut_off) = self.ours().ok()?;
        let removed = (about.nlink() == 0).then_some("removed");
        removed.or_else(|| is_cut_off.then_some("truncated"))
    }

    /// Assigns the next entry of the call table to `name`; returns its counters. Calls must not overlap.
    pub(crate) fn call_slot(&self, name: &str) -> Option<&CallEntry> {
        let slot = self.slots.load(Ordering::Relaxed);
        if slot as usize >= CALL_SLOTS {
            return None;
        }
        let at = self.calls_at + slot as usize * CALL_ENTRY;
        let len = name.len().min(CALL_NAME);
        // SAFETY: the entry lies within the header, is 8-byte aligned and begins with a `CallEntry`; only this call
        // writes its name.
        let entry = unsafe {
            let entry = self.head.as_mut_ptr().add(at);
            std::ptr::copy_nonoverlapping(name.as_ptr(), entry.add(call_field::NAME), len);
            &*entry.cast::<CallEntry>()
        };
        self.slots.store(slot + 1, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::Release);
        self.store(field::CALLS, &(slot + 1).to_le_bytes());
        Some(entry)
    }

    /// The number of an entry returned by [`Output::call_slot`].
    pub(crate) fn slot_of(&self, entry: &CallEntry) -> u32 {
        let address = std::ptr::from_ref(entry) as usize;
        ((address - self.head.as_mut_ptr() as usize - self.calls_at) / CALL_ENTRY) as u32
    }

    /// Stores clock pair number `index`.
    pub(crate) fn set_pair(&self, index: usize, pair: ClockPair) {
        // The tick is written last, because it marks the pair as valid.
        let bytes = pair_bytes(pair);
        self.store(field::CLOCK + 16 * index + 8, &bytes[8..]);
        std::sync::atomic::compiler_fence(Ordering::Release);
        self.store(field::CLOCK + 16 * index, &bytes[..8]);
    }

    /// Closes the file. `windows`: those of all threads. `for_good`: it will not be [reopened](Output::reopen).
    pub(crate) fn finish(&self, windows: &[Rest<'_>], for_good: bool) {
        let calls_end = self.calls_at + self.slots.load(Ordering::Relaxed) as usize * CALL_ENTRY;
        let ends = windows.iter().map(|(offset, bytes)| offset + bytes.len() as u64);
        let end = ends.fold(self.end.load(Ordering::Relaxed), u64::max);
        // The records of a short run move up behind the call table. The old copy stays valid until the header is updated.
        if let [(_, bytes)] = windows
            && for_good
            && self.units.load(Ordering::Relaxed) == 1
            && calls_end + bytes.len() <= HEADER_SIZE
            && let moved = (calls_end + bytes.len()) as u64
            && self.writable(moved).and_then(|file| file.write_all_at(bytes, calls_end as u64)).is_ok()
        {
            self.close(State::Finished, calls_end, moved);
            return self.cut(moved);
        }
        self.close(State::Finished, HEADER_SIZE, end);
        self.cut(end);
        if !for_good {
            return;
        }
        self.punch(calls_end, HEADER_SIZE);
        for &(offset, bytes) in windows {
            self.punch(offset as usize + bytes.len(), offset as usize + CHUNK_SIZE);
        }
    }

    /// Continues after [`Output::finish`]: the windows in memory are unchanged.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let claimed = HEADER_SIZE as u64 + u64::from(self.units.load(Ordering::Relaxed)) * CHUNK_SIZE as u64;
        allocate(self.writable(claimed)?, 0, claimed)?;
        self.length.store(claimed, Ordering::Relaxed);
        self.close(State::Running, HEADER_SIZE, 0);
        Ok(())
    }

    /// Adds the reason why recording stops to the facts of the header. Its room is reserved, so that neither a size limit nor a full disk
    /// prevents it. Called at most once, before [`Output::stop`].
    pub(crate) fn put_reason(&self, reason: &str) {
        let fact = stopped_fact(reason);
        self.store(self.facts_end, fact.as_bytes());
        // The length is stored last, because it makes the fact valid.
        std::sync::atomic::compiler_fence(Ordering::Release);
        let length = self.facts_end + fact.len() - field::FACTS;
        self.store(field::FACTS_LEN, &(length as u32).to_le_bytes());
    }

    /// Closes the file while the program continues. `alone`: the caller's window, if no other thread can write to the file; its unused
    /// end is cut off if it is the last of the file.
    pub(crate) fn stop(&self, alone: Option<Rest<'_>>) {
        let known = self.length.load(Ordering::Relaxed);
        // Less if another process has truncated it.
        let present = self.ours().map_or(known, |(_, about, _)| about.len().min(known));
        let last = alone.filter(|(offset, _)| offset + CHUNK_SIZE as u64 == present);
        let length = last.map_or(present, |(offset, bytes)| offset + bytes.len() as u64);
        self.close(State::Stopped, HEADER_SIZE, length);
        if alone.is_some() {
            self.cut(length);
        }
    }

    /// Writes the state, the start of the chunks and the length of the file in one step.
    fn close(&self, state: State, chunks_at: usize, length: u64) {
        let mut fields = [0; field::LENGTH + 8 - field::HEADER_SIZE];
        let mut set = |at: usize, bytes: &[u8]| {
            fields[at - field::HEADER_SIZE..at - field::HEADER_SIZE + bytes.len()].copy_from_slice(bytes)
        };
        // SAFETY: these fields of the header are written at creation, and by the one thread that ends the recording: here and in `put_reason`.
        let now = unsafe { std::slice::from_raw_parts(self.head.as_mut_ptr(), field::LENGTH + 8) };
        set(field::HEADER_SIZE, &now[field::HEADER_SIZE..]);
        set(field::HEADER_SIZE, &(chunks_at as u32).to_le_bytes());
        set(field::STATE, &(state as u32).to_le_bytes());
        set(field::LENGTH, &length.to_le_bytes());
        // A single write, so that a killed process leaves either all or nothing.
        let end = (field::HEADER_SIZE + fields.len()) as u64;
        let written =
            self.writable(end).and_then(|file| file.write_all_at(&fields, field::HEADER_SIZE as u64));
        if written.is_err() {
            // The mapping remains. The state is stored last, because it makes the length valid.
            self.store(field::HEADER_SIZE, &(chunks_at as u32).to_le_bytes());
            self.store(field::LENGTH, &length.to_le_bytes());
            std::sync::atomic::compiler_fence(Ordering::Release);
            self.store(field::STATE, &(state as u32).to_le_bytes());
        }
    }

    /// Cuts off what is behind `length`, which no thread uses. Readers accept a file that is longer than its header says.
    fn cut(&self, length: u64) {
        if let Ok((file, _, false)) = self.ours() {
            self.length.store(length, Ordering::Relaxed);
            let _ = file.set_len(length);
        }
    }

    /// Gives the unused pages between two offsets back to the file system.
    fn punch(&self, from: usize, to: usize) {
        let from = from.next_multiple_of(PAGE);
        if from < to
            && let Ok((file, ..)) = self.ours()
        {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, flags, from as u64, (to - from) as u64);
        }
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= HEADER_SIZE);
        // SAFETY: within the header; the caller is the only writer of these fields.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.head.as_mut_ptr().add(at), bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn new_file(directory: &tempfile::TempDir) -> (PathBuf, Output) {
        let path = directory.path().join("0.vefc");
        let start = ClockPair { tick: 1, nanos: 1 };
        let output = Output::create(&path, &RankInfo::default(), start, u64::MAX, false).expect("a new file");
        (path, output)
    }

    #[test]
    fn a_chunk_is_appended_in_whole_pages() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, output) = new_file(&directory);
        let (head, mut chunk) = ([7; CHUNK_HEADER], vec![9; CHUNK_SIZE]);
        chunk[5000..].fill(8);
        output.append(&head, &chunk, 5000, 1).expect("room");
        let mut long = vec![6; 2 * CHUNK_SIZE];
        long[CHUNK_SIZE + 3..].fill(5);
        output.append(&head, &long[..CHUNK_SIZE + 3], CHUNK_SIZE + 3, 2).expect("room");
        let file = fs::read(&path).expect("there");
        let (first, second) = file[HEADER_SIZE..].split_at(CHUNK_SIZE);
        assert_eq!((&first[..CHUNK_HEADER], first[CHUNK_HEADER]), (&head[..], 9));
        assert_eq!((first[4999], first[5000], first[2 * PAGE - 1], first[2 * PAGE]), (9, 8, 8, 0));
        assert_eq!((&second[..CHUNK_HEADER], second[CHUNK_HEADER]), (&head[..], 6));
        assert_eq!(second.len(), CHUNK_SIZE + 3);
        output.finish(&[], true);
        let length = HEADER_SIZE + 2 * CHUNK_SIZE + 3;
        assert_eq!(fs::metadata(&path).expect("there").len(), length as u64);
    }

    #[test]
    fn threads_that_grow_the_file_at_once_do_not_take_it_for_truncated() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, output) = &new_file(&directory);
        let (head, chunk) = ([7; CHUNK_HEADER], &vec![9; CHUNK_SIZE]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    for _ in 0..5000 {
                        output.append(&head, chunk, CHUNK_HEADER, 1).expect("room");
                    }
                });
            }
        });
        assert_eq!(output.lost(), None);
        fs::File::options().write(true).open(path).expect("there").set_len(5).expect("cut");
        assert_eq!(output.append(&head, chunk, CHUNK_SIZE, 1).expect_err("cut").to_string(), CUT_OFF);
        assert_eq!(output.lost(), Some("truncated"));
    }

    #[test]
    fn what_threads_write_while_one_stops_the_recording_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, output) = &new_file(&directory);
        let (head, chunk) = ([7; CHUNK_HEADER], &vec![9; CHUNK_SIZE]);
        let (threads, chunks) = (4, 2000);
        std::thread::scope(|scope| {
            let append = || {
                scope.spawn(move || {
                    for _ in 0..chunks {
                        output.append(&head, chunk, CHUNK_HEADER, 1).expect("room");
                    }
                })
            };
            let all: Vec<_> = std::iter::repeat_with(append).take(threads).collect();
            while !all.iter().all(|thread| thread.is_finished()) {
                output.stop(None);
            }
        });
        let file = File::open(path).expect("there");
        let is_lost = |at: &usize| {
            let mut first = [0];
            let offset = HEADER_SIZE + at * CHUNK_SIZE;
            file.read_exact_at(&mut first, offset as u64).is_err() || first != [7]
        };
        assert_eq!((0..threads * chunks).filter(is_lost).count(), 0);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "theirs").expect("a file");
        std::os::unix::fs::symlink(at("victim"), at("soft")).expect("a link");
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).expect("a link");
        fs::hard_link(at("victim"), at("hard")).expect("a link");
        let start = ClockPair { tick: 1, nanos: 1 };
        for name in ["soft", "dangling", "hard"] {
            for fresh in [false, true] {
                let made = Output::create(&at(name), &RankInfo::default(), start, u64::MAX, fresh);
                let error = made.expect_err(name);
                assert!(fresh || error.to_string().contains("is a link"), "{name}: {error}");
            }
        }
        assert_eq!(fs::read(at("victim")).expect("as it was"), b"theirs");
        assert!(!at("nowhere").exists());
        fs::write(at("before"), "an older capture").expect("a file");
        Output::create(&at("before"), &RankInfo::default(), start, u64::MAX, false)
            .expect("a file to replace");
    }
}
