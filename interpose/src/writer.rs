//! Writes one thread's records: into its window, a chunk of the file that is mapped; a full one is appended to the file and begun
//! anew.

use crate::clock;
use crate::output::{Output, Piece, Rest};
use crate::requests::Waiting;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use vef_format::capture::encode::{self, Author, Times, makes_request};
use vef_format::capture::event::{Action, CallSlot, Completion, Completions, RequestId};
use vef_format::capture::layout::{CHUNK_HEADER, CHUNK_SIZE, ChunkHeader, checksum, chunk_field, seal};
use vef_format::capture::word::{Code, Head, WORD};

/// Bytes at the end of a chunk that only the record that tracing stopped may use.
const RESERVE: usize = 128;
/// The largest chunk, in units: 1 GiB.
const MOST_UNITS: u32 = 1 << 14;

/// What a thread writes with.
pub(crate) struct Writer {
    output: &'static Output,
    /// Where the next record goes in the window, and the last place where a word may go: before it without a window.
    at: *mut u8,
    last_word: *mut u8,
    /// End of the previous record, ticks.
    last: u64,
    /// The request made next, without flags.
    next: Waiting,
    thread: u16,
    sequence: u32,
    /// The window and its place in the file.
    window: Option<(Piece, u64)>,
    /// Failed polls that are not written yet; while there are some, no word is written ([`Writer::last_word`]).
    polls: Option<Polls>,
    /// Why nothing can be written any more.
    failed: Option<String>,
}

/// Calls of `MPI_Test`, `MPI_Iprobe` and the like that found nothing, one after the other: one record.
struct Polls {
    /// The function of the first.
    call: CallSlot,
    count: u64,
    start: u64,
    end: u64,
}

/// Polls with fewer ticks between them are of one record: 2–4 µs on processors of 2–4 GHz. Who computes for longer between polls does so
/// beside communication, and waits for nothing.
const POLL_GAP: u64 = 1 << 13;

/// Where a writer was.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    at: *mut u8,
    last: u64,
}

impl Writer {
    pub(crate) fn new(output: &'static Output, thread: u16, now: u64) -> Self {
        Self {
            output,
            at: NonNull::<u8>::dangling().as_ptr().wrapping_add(1),
            last_word: NonNull::dangling().as_ptr(),
            last: now,
            next: Waiting::new(RequestId { thread, number: 0 }, 0),
            thread,
            sequence: 0,
            window: None,
            polls: None,
            failed: None,
        }
    }

    /// Its thread's number.
    pub(crate) fn thread(&self) -> u16 {
        self.thread
    }

    /// Before the first record: times count from `start`.
    pub(crate) fn begin_at(&mut self, start: u64) {
        self.last = start;
    }

    /// Why nothing can be written any more; told once.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// Writes the record of a call that ran from `start` to `end`, ticks, as a word with this head if the times are such. `call`: the
    /// function of a completion.
    #[inline(always)]
    pub(crate) fn put_head(&mut self, start: u64, end: u64, head: Head, call: impl FnOnce() -> CallSlot) {
        if !self.put_word(start, end, head) {
            self.put_long(start, end, head, call());
        }
    }

    /// Writes a record of one word, if there is room for it and the times are such.
    #[inline(always)]
    pub(crate) fn put_word(&mut self, start: u64, end: u64, head: Head) -> bool {
        // Times that run backwards (clocks of different cores may differ a little) are long ones here.
        let word = head.with(start.wrapping_sub(self.last), end.wrapping_sub(start));
        match word {
            Some(word) if self.at <= self.last_word => {
                // SAFETY: room in the window, which only this thread writes; by one store, which a kill does not divide.
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
    fn put_long(&mut self, start: u64, end: u64, head: Head, call: CallSlot) {
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

    /// Notes a poll of a function that found nothing; it is written before the next record.
    #[inline(always)]
    pub(crate) fn poll(&mut self, start: u64, end: u64, call: impl FnOnce() -> CallSlot) {
        match &mut self.polls {
            Some(polls) if start.wrapping_sub(polls.end) < POLL_GAP => {
                polls.count += 1;
                polls.end = end;
            }
            _ => self.begin_polls(start, end, call()),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_polls(&mut self, start: u64, end: u64, call: CallSlot) {
        self.put_polls();
        self.polls = Some(Polls { call, count: 1, start, end });
        self.last_word = NonNull::dangling().as_ptr();
    }

    /// The polls that are not written yet waited for what has no record.
    pub(crate) fn forget_polls(&mut self) {
        self.polls = None;
    }

    /// Writes the polls that are not written yet.
    fn put_polls(&mut self) {
        let Some(Polls { call, count, start, end }) = self.polls.take() else { return };
        self.set_last_word();
        self.put((start, end), &Action::Polls { count }, call);
    }

    /// Writes the record of a call that has completed requests. `completer`: what a word calls the function, if it has a name for it.
    pub(crate) fn put_completed(
        &mut self,
        (start, end): (u64, u64),
        completer: Option<u8>,
        call: CallSlot,
        list: &[Completion],
    ) {
        let author = Author { thread: self.thread, requests: self.next.number() };
        let run = encode::as_run(Completions::List(list), author);
        let head =
            run.zip(completer).and_then(|((count, after), completer)| Head::run(completer, count, after));
        match head {
            Some(head) => self.put_head(start, end, head, || call),
            None => self.put((start, end), &Action::Complete(Completions::List(list)), call),
        }
    }

    /// As [`Writer::put_completed`] of `count` of the thread's own requests, made one after the other, after which `after` were made
    /// before the call.
    #[cold]
    pub(crate) fn put_run(&mut self, (start, end): (u64, u64), call: CallSlot, count: u64, after: u64) {
        self.write((start, end), 0, |bytes, at, times, _| encode::run(bytes, at, times, call, count, after));
    }

    /// Writes the record of a call of a function that ran from `start` to `end`, ticks.
    #[inline(never)]
    pub(crate) fn put(&mut self, (start, end): (u64, u64), action: &Action<'_>, call: CallSlot) {
        let requests = u64::from(makes_request(action).is_some());
        self.write((start, end), requests, |bytes, at, times, author| {
            encode::record(bytes, at, times, author, call, action)
        });
    }

    /// As [`Writer::put`]; from now on the shape of this number means the like. `false`: tracing has stopped.
    pub(crate) fn put_shape(
        &mut self,
        (start, end): (u64, u64),
        action: &Action<'_>,
        call: CallSlot,
        shape: u16,
    ) -> bool {
        let requests = u64::from(makes_request(action).is_some());
        self.write((start, end), requests, |bytes, at, times, author| {
            encode::define(bytes, at, times, author, call, action, shape)
        })
    }

    /// A definition: at the instant at which the previous record ended, so that the next gap stays as it is.
    pub(crate) fn define(&mut self, action: &Action<'_>) {
        self.put((self.last, self.last), action, CallSlot::NONE);
    }

    /// The request that a call has made which was recorded as one of a shape.
    #[inline(always)]
    pub(crate) fn take_request(&mut self) -> Waiting {
        let made = self.next;
        self.next = made.next();
        made
    }

    /// A request of this thread's that has no record.
    pub(crate) fn unknown_request(&self) -> Waiting {
        Waiting::new(RequestId { thread: self.thread, number: 0 }, Waiting::UNKNOWN)
    }

    /// The request that is made next, without flags; like any ordinary one of this thread.
    #[inline(always)]
    pub(crate) fn next_request(&self) -> Waiting {
        self.next
    }

    /// Writes a record by `encode`, which gives `None` if there is too little room, into the window, the next one, or a
    /// chunk of its own. `requests`: how many it makes. `false`: it is lost.
    fn write(
        &mut self,
        (start, end): (u64, u64),
        requests: u64,
        encode: impl Fn(&mut [u8], usize, Times, Author) -> Option<usize>,
    ) -> bool {
        self.put_polls();
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

    /// Writes a record that is longer than a window, which is empty, into a chunk of its own. `false`: it is lost.
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
        written.map_err(|reason| self.failed = Some(reason)).is_ok()
    }

    /// Appends the window to the file and begins anew, or gets the first. `false`: that is not possible.
    #[cold]
    #[inline(never)]
    fn next_window(&mut self) -> bool {
        let ready = match self.window.take() {
            None => self.output.window().map_err(|error| error.to_string()).map(|window| {
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
            Err(reason) => {
                self.failed = Some(reason);
                return false;
            }
        }
        true
    }

    /// Appends a chunk, whose length and sum its header does not say yet, to the file.
    fn append(&mut self, chunk: &[u8], span: u32) -> Result<(), String> {
        let Some((head, records)) = chunk.split_first_chunk::<CHUNK_HEADER>() else { return Ok(()) };
        let header = ChunkHeader {
            used: chunk.len() as u32,
            checksum: checksum(chunk),
            ..ChunkHeader::from_bytes(head)
        };
        self.output.append(&header.to_bytes(), records, span).map_err(|error| error.to_string())?;
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
        self.set_last_word();
    }

    /// Lets words be written as far as the window goes.
    fn set_last_word(&mut self) {
        if let Some((window, _)) = &mut self.window {
            let bytes = window.bytes();
            self.last_word = bytes.as_mut_ptr().wrapping_add(bytes.len() - RESERVE - WORD);
        }
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
        self.put_polls();
        let (window, offset) = self.window.as_mut()?;
        let bytes = window.bytes();
        let used = self.at as usize - bytes.as_ptr() as usize;
        seal(bytes, used);
        Some((*offset, &bytes[..used]))
    }

    /// Where it is now; the next record is one that is short and will be in the same window.
    pub(crate) fn mark(&mut self) -> Mark {
        self.put_polls();
        if let Some((window, _)) = &mut self.window {
            let end = window.bytes().as_ptr_range().end as usize;
            if end - (self.at as usize) < 2 * RESERVE {
                self.next_window();
            }
        }
        Mark { at: self.at, last: self.last }
    }

    /// Takes back what was written since `mark`, and goes on after [`Writer::seal`].
    pub(crate) fn unwrite(&mut self, mark: Mark) {
        let Some((window, _)) = &mut self.window else { return };
        let bytes = window.bytes();
        bytes[chunk_field::USED..chunk_field::USED + 4].fill(0);
        let first = bytes.as_ptr() as usize;
        bytes[mark.at as usize - first..self.at as usize - first].fill(0);
        (self.at, self.last) = (mark.at, mark.last);
    }

    /// The last record where tracing stops: it may use the reserve.
    pub(crate) fn put_stopped(&mut self, reason: &str) {
        self.polls = None;
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
