//! Writes the records of one thread into its window, a mapped chunk of the file. A full window is appended to the file and reused.

use crate::clock;
use crate::output::{Output, Rest};
use crate::polls::Polls;
use crate::preempted::{LONG_BETWEEN_POLLS, LONG_GAP, Preemptions};
use crate::requests::PendingRequest;
use memmap2::MmapMut;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use vef_format::capture::encode::{self, Content, Times};
use vef_format::capture::event::{Action, CallSlot, RequestId};
use vef_format::capture::layout::{CHUNK_HEADER, CHUNK_SIZE, ChunkHeader, checksum, chunk_field, seal};
use vef_format::capture::word::{Head, WORD};

/// Bytes at the end of a chunk that are reserved for the final record when recording stops.
const RESERVE: usize = 128;
/// The largest chunk, in units: 1 GiB.
const MOST_UNITS: u32 = 1 << 14;

/// A position of a writer, and the end of the record before it.
pub(crate) type Mark = (*mut u8, u64);

pub(crate) struct Writer {
    output: &'static Output,
    /// The position of the next record in the window, and the last position at which a word may be written.
    /// `last_word` is below `at` when no word may be written.
    at: *mut u8,
    last_word: *mut u8,
    /// The end of the previous record, in ticks.
    last: u64,
    /// The next request, without flags.
    next: PendingRequest,
    sequence: u32,
    /// The window and its offset in the file.
    window: Option<(MmapMut, u64)>,
    /// Failed polls that are not written yet. While there are any, no word may be written ([`Writer::last_word`]).
    polls: Option<Polls>,
    preemptions: Preemptions,
    /// Ticks without a core that are in the current gap, of a call in front of it.
    owed: u64,
    /// Why records can no longer be written.
    pub(crate) failed: Option<String>,
}

impl Writer {
    pub(crate) fn new(output: &'static Output, thread: u16, now: u64) -> Self {
        Self {
            output,
            at: NonNull::<u8>::dangling().as_ptr().wrapping_add(1),
            last_word: NonNull::dangling().as_ptr(),
            last: now,
            next: PendingRequest::new(RequestId { thread, number: 0 }, 0),
            sequence: 0,
            window: None,
            polls: None,
            preemptions: Preemptions::new(),
            owed: 0,
            failed: None,
        }
    }

    /// The number of its thread.
    pub(crate) fn thread(&self) -> u16 {
        self.next.thread()
    }

    /// A new thread takes the place of one that has ended.
    pub(crate) fn change_thread(&mut self) {
        self.put_polls();
        (self.preemptions, self.owed) = (Preemptions::new(), 0);
    }

    /// Sets the start of time, before the first record.
    pub(crate) fn begin_at(&mut self, start: u64) {
        self.last = start;
    }

    /// Writes a record from `start` to `end`, in ticks, as one word with this head, if there is room and the times fit.
    #[inline(always)]
    pub(crate) fn put_word(&mut self, (start, end): (u64, u64), head: Head) -> bool {
        // If clocks of different cores make the gap negative, it does not fit.
        let word = head.with(start.wrapping_sub(self.last), end.wrapping_sub(start));
        match word {
            Some(word) if self.at <= self.last_word => {
                // SAFETY: room in the window, which only this thread writes. A single store, so that a killed process
                // leaves all or nothing.
                unsafe { self.at.cast::<u64>().write_unaligned(word.to_le()) };
                self.at = self.at.wrapping_add(WORD);
                self.last = end;
                true
            }
            _ => false,
        }
    }

    /// Counts a failed poll; the record is written before the next other record.
    #[inline(always)]
    pub(crate) fn poll(&mut self, (start, end): (u64, u64), call: impl FnOnce() -> CallSlot) {
        match &mut self.polls {
            Some(polls) if polls.go_on(start) => (polls.count, polls.end) = (polls.count + 1, end),
            _ => self.begin_polls((start, end), call()),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_polls(&mut self, (start, mut end): (u64, u64), call: CallSlot) {
        if let Some(run) = &mut self.polls
            && start.saturating_sub(run.end) >= LONG_BETWEEN_POLLS
        {
            run.end += self.preemptions.look().slept_between(run.end, start);
            end = clock::now();
            if run.go_on(start) {
                (run.count, run.end) = (run.count + 1, end);
                return;
            }
        }
        self.put_polls();
        self.polls = Some(Polls { call, count: 1, start, end });
        self.last_word = NonNull::dangling().as_ptr();
    }

    /// Drops the pending failed polls: they waited for a request without a record.
    pub(crate) fn forget_polls(&mut self) {
        self.polls = None;
    }

    /// Writes the pending failed polls.
    fn put_polls(&mut self) {
        let Some(Polls { call, count, start, end }) = self.polls.take() else { return };
        self.set_last_word();
        self.put((start, end), Content::Action(&Action::Polls { count }), call);
    }

    /// Whether it was long ago, at `start`, that the previous record ended.
    #[inline(always)]
    pub(crate) fn is_long_gap(&self, start: u64) -> bool {
        start.wrapping_sub(self.last) >= LONG_GAP
    }

    /// Looks, so that times without a core count from here. Returns the tick after that.
    pub(crate) fn look(&mut self) -> u64 {
        self.preemptions.look();
        clock::now()
    }

    /// Returns the end of a call of MPI's own work. A core that was lost in the call is not that work: the call ends earlier by as much, and the time
    /// without a core belongs to the gap behind it.
    pub(crate) fn end_own_call(&mut self, (start, end): (u64, u64)) -> u64 {
        let lost =
            self.preemptions.look().lost_between(start, end).filter(|&lost| lost >= LONG_GAP).unwrap_or(0);
        self.owed += lost;
        clock::now().saturating_sub(lost)
    }

    /// Records for how long the thread had no core between its previous call and one that begins at `start`, if that was long ago. If both calls
    /// are polls, the thread's sleep between them belongs to them; `polls` tells it of the second one.
    /// Returns when the call begins: after that.
    pub(crate) fn end_gap(&mut self, start: u64, polls: impl FnOnce() -> bool) -> u64 {
        let last = self.polls.as_ref().map_or(self.last, |polls| polls.end);
        // Some calls have no record.
        let is_long = start.saturating_sub(last) >= LONG_GAP && self.preemptions.are_due(start);
        if !is_long && self.owed == 0 {
            return start;
        }
        let since = self.preemptions.look();
        let start = clock::now();
        if let Some(run) = self.polls.as_mut().filter(|_| polls()) {
            run.end += since.slept_between(last, start);
        }
        let lost = since.lost_between(last, start).unwrap_or(0) + std::mem::take(&mut self.owed);
        if lost > 0 {
            self.put_polls();
            let times = (self.last, self.last + lost);
            self.put(times, Content::Action(&Action::Preempted), CallSlot::NONE);
        }
        start
    }

    /// Writes a definition, which `call` made. Its time is the end of the previous record, so that the next gap is unchanged.
    pub(crate) fn define(&mut self, action: &Action<'_>, call: CallSlot) {
        self.put((self.last, self.last), Content::Action(action), call);
    }

    /// Takes the request made by a call that was recorded by its shape.
    #[inline(always)]
    pub(crate) fn take_request(&mut self) -> PendingRequest {
        let made = self.next;
        self.next = made.next();
        made
    }

    /// A request of this thread without a record.
    pub(crate) fn unrecorded_request(&self) -> PendingRequest {
        PendingRequest::new(RequestId { thread: self.thread(), number: 0 }, PendingRequest::UNRECORDED)
    }

    /// The thread's next request, without flags.
    #[inline(always)]
    pub(crate) fn next_request(&self) -> PendingRequest {
        self.next
    }

    /// Writes a record of a call from `start` to `end`, in ticks: into the window, the next window, or a chunk of its own. Returns
    /// false if it is lost, as are all records behind one that was.
    #[inline(never)]
    pub(crate) fn put(&mut self, (start, end): (u64, u64), content: Content<'_>, call: CallSlot) -> bool {
        self.put_polls();
        if self.failed.is_some() {
            return false;
        }
        // Clocks of different cores may differ slightly; times in the file must not decrease.
        let start = start.max(self.last);
        let times = Times { gap: start - self.last, duration: end.saturating_sub(start) };
        let next = self.next.request();
        let mut alone = false;
        loop {
            if let Some((window, _)) = &mut self.window {
                let bytes = &mut window[..];
                let first = bytes.as_mut_ptr();
                let at = self.at as usize - first as usize;
                let ordinary = bytes.len() - RESERVE;
                if let Some(at) = encode::record(&mut bytes[..ordinary], at, times, next, call, content) {
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
        if alone && !self.write_alone(|bytes| encode::record(bytes, CHUNK_HEADER, times, next, call, content))
        {
            return false;
        }
        self.last += times.gap + times.duration;
        if content.makes_request() {
            self.next = self.next.next();
        }
        if alone {
            // The window's header holds the current position.
            self.begin_window();
        }
        true
    }

    /// Writes a record that is longer than a window into a chunk of its own; the window is empty. Returns false if
    /// the record is lost.
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
                break self.append(&bytes, end, span);
            }
            span *= 2;
        };
        written.map_err(|reason| self.failed = Some(reason)).is_ok()
    }

    /// Appends the window to the file and reuses it, or maps the first one. Returns false if that fails.
    #[cold]
    #[inline(never)]
    fn next_window(&mut self) -> bool {
        let ready = match self.window.take() {
            None => self.output.window().map_err(|error| error.to_string()).map(|window| {
                self.window = Some(window);
            }),
            Some((mut window, offset)) => {
                let bytes = &mut window[..];
                let used = self.at as usize - bytes.as_ptr() as usize;
                let written = self.append(bytes, used, 1);
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

    /// Appends the first `used` bytes of a chunk to the file, with their length and checksum.
    fn append(&mut self, chunk: &[u8], used: usize, span: u32) -> Result<(), String> {
        let Some(head) = chunk.first_chunk() else { return Ok(()) };
        let checksum = checksum(&chunk[..used]);
        let header = ChunkHeader { used: used as u32, checksum, ..ChunkHeader::from_bytes(head) };
        self.output.append(&header.to_bytes(), chunk, used, span).map_err(|error| error.to_string())?;
        self.sequence += 1;
        Ok(())
    }

    /// Starts the next chunk in the window, whose records are in the file.
    fn begin_window(&mut self) {
        let header = self.header(1).to_bytes();
        let Some((window, _)) = &mut self.window else { return };
        let bytes = &mut window[..];
        let fence = || std::sync::atomic::compiler_fence(Ordering::SeqCst);
        // Without the mark readers ignore the chunk.
        bytes[..4].fill(0);
        fence();
        // Clears also the bytes of a record that did not fit.
        bytes[CHUNK_HEADER..].fill(0);
        bytes[4..CHUNK_HEADER].copy_from_slice(&header[4..]);
        fence();
        bytes[..4].copy_from_slice(&header[..4]);
        self.at = bytes.as_mut_ptr().wrapping_add(CHUNK_HEADER);
        self.set_last_word();
    }

    /// Allows words up to the end of the window.
    fn set_last_word(&mut self) {
        if let Some((window, _)) = &mut self.window {
            let bytes = &mut window[..];
            self.last_word = bytes.as_mut_ptr().wrapping_add(bytes.len() - RESERVE - WORD);
        }
    }

    fn header(&self, span: u32) -> ChunkHeader {
        ChunkHeader {
            thread: self.thread(),
            span,
            sequence: self.sequence,
            used: 0,
            checksum: 0,
            requests: self.next.number(),
            base: self.last,
            clock: clock::pair(),
        }
    }

    /// Stores the used length in the window. Returns the window's offset and its used bytes.
    pub(crate) fn seal(&mut self) -> Option<Rest<'_>> {
        self.put_polls();
        let (window, offset) = self.window.as_mut()?;
        let bytes = &mut window[..];
        let used = self.at as usize - bytes.as_ptr() as usize;
        seal(bytes, used);
        Some((*offset, &bytes[..used]))
    }

    /// The current position, with room for a short record in the same window.
    pub(crate) fn mark(&mut self) -> Mark {
        self.put_polls();
        if let Some((window, _)) = &mut self.window
            && window.as_ptr_range().end as usize - (self.at as usize) < 2 * RESERVE
        {
            self.next_window();
        }
        (self.at, self.last)
    }

    /// Removes the records since `mark` and continues after [`Writer::seal`].
    pub(crate) fn rewind(&mut self, mark: Mark) {
        let Some((window, _)) = &mut self.window else { return };
        let bytes = &mut window[..];
        bytes[chunk_field::USED..chunk_field::USED + 4].fill(0);
        let first = bytes.as_ptr() as usize;
        bytes[mark.0 as usize - first..self.at as usize - first].fill(0);
        (self.at, self.last) = mark;
    }

    /// Writes the final record when recording stops, into the reserve if necessary. Returns false if there is no window, whose room may be
    /// what lacked.
    pub(crate) fn put_stopped(&mut self, reason: &str) -> bool {
        self.polls = None;
        let end = (0..=reason.len().min(RESERVE / 2)).rev().find(|&end| reason.is_char_boundary(end));
        let reason = &reason[..end.unwrap_or(0)];
        let next = self.next.request();
        let times = Times { gap: clock::now().saturating_sub(self.last), duration: 0 };
        let Some((window, _)) = &mut self.window else { return false };
        let bytes = &mut window[..];
        let at = self.at as usize - bytes.as_ptr() as usize;
        let stopped = Content::Action(&Action::Stopped { reason });
        let end = encode::record(bytes, at, times, next, CallSlot::NONE, stopped);
        if let Some(end) = end {
            self.at = bytes.as_mut_ptr().wrapping_add(end);
        }
        end.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::capture::layout::{ClockPair, HEADER_SIZE, RankInfo};
    use vef_format::capture::{Capture, CaptureError, Digest};
    use vef_format::ids::Rank;

    #[test]
    fn nothing_is_written_behind_a_record_that_is_lost() {
        let directory = tempfile::tempdir().expect("a directory");
        let most = (HEADER_SIZE + CHUNK_SIZE) as u64;
        let start = ClockPair { tick: 1, nanos: 1 };
        let path = directory.path().join("0.vefc");
        let output = Output::create(&path, &RankInfo::default(), start, most, false).expect("a new file");
        let mut writer = Writer::new(Box::leak(Box::new(output)), 0, 1);
        let name = "x".repeat(1000);
        let mut phase =
            |name| writer.put((2, 3), Content::Action(&Action::Phase { begin: true, name }), CallSlot::NONE);
        let written = std::iter::repeat_with(|| phase(&name)).take_while(|&is_written| is_written).count();
        assert!((60..66).contains(&written), "{written}");
        // A shorter one would have room.
        assert!(!phase("y"));
    }

    #[test]
    fn a_thread_without_a_window_says_why_recording_stops() {
        let directory = tempfile::tempdir().expect("a directory");
        let most = (HEADER_SIZE + CHUNK_SIZE + CHUNK_SIZE / 3) as u64;
        let start = ClockPair { tick: 1, nanos: 1 };
        let info = RankInfo { tasks: 1, ..RankInfo::default() };
        let path = directory.path().join("0.vefc");
        let output: &'static Output =
            Box::leak(Box::new(Output::create(&path, &info, start, most, false).expect("a new file")));
        let [mut first, mut second] = [0, 1].map(|thread| Writer::new(output, thread, 1));
        assert!(first.put((2, 3), Content::Action(&Action::Init), CallSlot::NONE));
        assert!(!second.put((4, 5), Content::Action(&Action::Polls { count: 1 }), CallSlot::NONE));
        let reason = second.failed.take().expect("a reason");
        assert!(!second.put_stopped(&reason));
        output.put_reason(&reason);
        output.set_pair(2, ClockPair { tick: 9, nanos: 9 });
        output.stop(None);
        // The first thread was in a call.
        assert!(first.put((6, 7), Content::Action(&Action::Polls { count: 1 }), CallSlot::NONE));
        let capture = Capture::open(directory.path()).expect("a capture");
        let mut events = Vec::new();
        let read = capture.events(Rank(0)).expect("a rank").each(|event| {
            let reason = if let Action::Stopped { reason } = event.action { reason } else { "" };
            events.push((event.start, reason.to_owned()));
            Ok::<_, CaptureError>(())
        });
        read.expect("whole");
        assert!(events.is_sorted(), "{events:?}");
        let reasons: Vec<&str> = events.iter().map(|(_, reason)| &**reason).collect();
        assert_eq!(reasons, ["", "", &reason]);
        let digest = Digest::of(&capture, |_| {}).expect("whole");
        assert_eq!((digest.stopped, digest.stop_reasons), (vec![Rank(0)], [(reason, 1)].into()));
    }
}
