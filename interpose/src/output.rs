//! The file of this rank, mapped into memory piece by piece: header, call table, and the chunks the threads ask for.
//!
//! Space is reserved before it is mapped, so that a full disk is an error here and never a signal later; pages are
//! made present ahead of use, so that no record pays for them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vef_format::capture::layout::{
    CALL_ENTRY, CALL_SLOTS, CALLS_AT, CHUNK_SIZE, ClockPair, HEADER_SIZE, RankInfo, State, field, header,
    pair_bytes,
};

/// A piece of the file in memory.
#[derive(Debug)]
pub(crate) struct Piece {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Piece {}

impl Piece {
    /// Reserves and maps `len` bytes of `file` from `offset` on.
    fn map(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        // SAFETY: a valid descriptor; grows the file and reserves its blocks.
        let error =
            unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as libc::off_t, len as libc::off_t) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: a fresh mapping, nowhere in particular.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes its pages present; older kernels do that page by page as they are used.
    fn populate(&self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_POPULATE_WRITE) };
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Its bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped for reading and writing, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The size a file of this process may have (`ulimit -f`): growing it beyond would end the process by a signal.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// The file of this rank.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    /// The first [`HEADER_SIZE`] bytes.
    head: Piece,
    /// Chunk units claimed.
    units: AtomicU32,
    /// Slots of the call table in use.
    slots: AtomicU32,
    max_size: u64,
}

// SAFETY: `head` is written through atomics (counts), or by the one thread that holds a slot or the end of the run.
unsafe impl Sync for Output {}

impl Output {
    /// Makes the file and its header.
    ///
    /// Processes that a launcher of another MPI started each think that they are rank 0 of 1: a file that another process
    /// is writing is left alone, and if it is to be `fresh`, also one that is there at all.
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
            .open(path)?;
        if HEADER_SIZE as u64 > max_size.min(file_size_limit()) {
            return Err(io::Error::other("the size limit is reached"));
        }
        // SAFETY: a valid descriptor. Held until the process ends; where locks are not supported, there is none.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0
            && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
        {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        file.set_len(0)?;
        let mut head = Piece::map(&file, 0, HEADER_SIZE)?;
        head.bytes()[..CALLS_AT].copy_from_slice(&header(info, start));
        Ok(Self { file, head, units: AtomicU32::new(0), slots: AtomicU32::new(0), max_size })
    }

    /// Another `span` units of the file, and their offset.
    pub(crate) fn claim(&self, span: u16) -> io::Result<(Piece, u64)> {
        let first = u64::from(self.units.fetch_add(u32::from(span), Ordering::Relaxed));
        let offset = HEADER_SIZE as u64 + first * CHUNK_SIZE as u64;
        let len = usize::from(span) * CHUNK_SIZE;
        if offset + len as u64 > self.max_size.min(file_size_limit()) {
            return Err(io::Error::other("the size limit is reached"));
        }
        let piece = Piece::map(&self.file, offset, len)?;
        piece.populate();
        Ok((piece, offset))
    }

    /// Whether somebody has removed the file: then nothing of it will be left.
    pub(crate) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.nlink() == 0)
    }

    /// A slot of the call table for `name`: its number and its count.
    pub(crate) fn call_slot(&self, name: &str) -> Option<(u32, &AtomicU64)> {
        let slot = self.slots.fetch_add(1, Ordering::Relaxed);
        if slot as usize >= CALL_SLOTS {
            return None;
        }
        let at = CALLS_AT + slot as usize * CALL_ENTRY;
        let len = name.len().min(CALL_ENTRY - 8);
        // SAFETY: the entry lies within the header, is 8-byte aligned, and this call alone owns its name.
        unsafe {
            let entry = self.head.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(name.as_ptr(), entry.add(8), len);
            Some((slot, AtomicU64::from_ptr(entry.cast())))
        }
    }

    /// The slot whose count [`Output::call_slot`] gave; the last one for a null pointer.
    pub(crate) fn slot_of(&self, count: *const AtomicU64) -> u32 {
        let offset = (count as usize).wrapping_sub(self.head.start.as_ptr() as usize + CALLS_AT);
        (offset / CALL_ENTRY).min(CALL_SLOTS - 1) as u32
    }

    /// Stores clock pair number `index`.
    pub(crate) fn set_pair(&self, index: usize, pair: ClockPair) {
        // Nanoseconds first: a pair counts once its tick is there.
        let bytes = pair_bytes(pair);
        self.store(field::CLOCK + 16 * index + 8, &bytes[8..]);
        std::sync::atomic::compiler_fence(Ordering::Release);
        self.store(field::CLOCK + 16 * index, &bytes[..8]);
    }

    /// Closes the file. `chunks`: of each chunk being written, where it ends and where its records end; the one at the end
    /// of the file gives back what it did not use.
    pub(crate) fn close(&self, state: State, chunks: &[(u64, u64)]) {
        let claimed = HEADER_SIZE as u64 + u64::from(self.units.load(Ordering::Relaxed)) * CHUNK_SIZE as u64;
        let present = self.file.metadata().map_or(claimed, |data| data.len().min(claimed));
        let length = chunks.iter().find(|(end, _)| *end == present).map_or(present, |&(_, used)| used);
        // Cut first: a length that promises more than there is would be a damaged file. Failing to cut costs disk space.
        let _ = self.file.set_len(length);
        let slots = (self.slots.load(Ordering::Relaxed) as usize).min(CALL_SLOTS);
        self.punch(CALLS_AT + slots * CALL_ENTRY);
        self.store(field::LENGTH, &length.to_le_bytes());
        std::sync::atomic::compiler_fence(Ordering::Release);
        self.store(field::STATE, &(state as u32).to_le_bytes());
    }

    /// Gives the unused end of the call table back to the file system.
    fn punch(&self, from: usize) {
        let from = from.next_multiple_of(4096);
        if from < HEADER_SIZE {
            // SAFETY: a valid descriptor and a range of the header that nothing was written to.
            unsafe {
                libc::fallocate(
                    self.file.as_raw_fd(),
                    libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                    from as libc::off_t,
                    (HEADER_SIZE - from) as libc::off_t,
                )
            };
        }
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= HEADER_SIZE);
        // SAFETY: within the header; the caller is the only one to write these fields.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.head.start.as_ptr().add(at), bytes.len())
        };
    }
}
