//! Reads the records of tasks, each task at its own pace, in memory that does not depend on the length of the trace.
//!
//! Each task has a window of the content of its current block. A block's checksum is verified when the block is begun; what
//! does not fit into the window is read again when it is needed.

use super::block::{FRAME, Frame, Kind, MOST_RAW, checksum};
use super::code::Garbled;
use super::index::{List, Places, Spot};
use super::reader::Reader;
use super::record::{Decoder, LONGEST, ROOM};
use super::{ContainerError, Problem};
use crate::ids::Rank;
use crate::prefetch::prefetch;
use crate::raw::{LeadingMark, Raw};
use crate::text::Line;
use std::sync::Arc;

/// Total bytes of the windows of all tasks, if each gets at least [`SMALLEST`].
const WINDOWS: usize = 6 << 20;
const LARGEST: usize = 64 << 10;
const SMALLEST: usize = 144;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Distance in bytes from a task's next record to the bytes that are prefetched.
const AHEAD: usize = 2 * LINE;

impl Reader {
    /// The records of `task` in program order; reads only blocks of this task.
    pub fn task(&self, task: Rank) -> TaskRecords<'_> {
        let lists = [self.list_of(task)].into_iter();
        TaskRecords { reader: self, task, cursors: Cursors::new(lists, self.header().tasks) }
    }
}

/// The records of one task, in program order.
#[derive(Debug)]
pub struct TaskRecords<'a> {
    reader: &'a Reader,
    task: Rank,
    cursors: Cursors,
}

impl TaskRecords<'_> {
    /// The next record (never a communicator), or `None` at the end.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "as all readers of the crate")]
    pub fn next(&mut self) -> Result<Option<Line<'static>>, ContainerError> {
        let task = self.task;
        Ok(self.next_raw()?.map(|raw| raw.line(task)))
    }

    /// Like [`TaskRecords::next`], as plain numbers.
    #[inline]
    pub fn next_raw(&mut self) -> Result<Option<Raw>, ContainerError> {
        self.cursors.next_raw(self.reader, 0, self.task).map_err(|error| *error)
    }

    /// Passes all remaining records to `take`; faster than [`TaskRecords::next_raw`].
    #[inline]
    pub fn each_raw(&mut self, mut take: impl FnMut(&Raw)) -> Result<(), ContainerError> {
        let Self { reader, task, cursors } = self;
        while let Some(raw) = cursors.next_raw(reader, 0, *task).map_err(|error| *error)? {
            take(&raw);
            if cursors.streams[0].left < HALF {
                cursors.each_at_hand(reader, 0, *task, &mut take).map_err(|error| *error)?;
            }
        }
        Ok(())
    }
}

/// Readers of all tasks of a container.
///
/// Memory: 88 bytes and a window for each task. The windows have 64 KiB in traces of less than a hundred tasks, 6 MiB in all
/// in larger ones, and at least 144 bytes each; but no more than the records of any task can have.
#[derive(Debug)]
pub struct Streams {
    reader: Arc<Reader>,
    cursors: Cursors,
    /// Whether the first tasks have records and no others.
    dense: bool,
}

impl Streams {
    /// At the first record of every task.
    pub fn new(reader: Arc<Reader>) -> Self {
        let tasks = &reader.index.tasks;
        let cursors = Cursors::new(tasks.iter().map(|task| task.list), reader.header().tasks);
        let dense = tasks.last().is_none_or(|last| last.task as usize == tasks.len() - 1);
        Self { reader, cursors, dense }
    }

    /// The container.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// A shared reference to the container, for another reader.
    pub fn shared_reader(&self) -> Arc<Reader> {
        self.reader.clone()
    }

    /// The next record of `task` (never a communicator), or `None` behind its last.
    #[inline]
    pub fn next(&mut self, task: Rank) -> Result<Option<Line<'static>>, ContainerError> {
        let raw = self.next_raw(task).map_err(|error| *error)?;
        Ok(raw.map(|raw| raw.line(task)))
    }

    /// Like [`Streams::next`], but returns the record as a [`Raw`].
    #[inline(always)]
    pub fn next_raw(&mut self, task: Rank) -> Result<Option<Raw>, Box<ContainerError>> {
        match self.number_of(task) {
            Some(number) => self.cursors.next_raw(&self.reader, number, task),
            None => Ok(None),
        }
    }

    /// The next two records of `task`, if they are a mark that waits for `after` and a message, the container has them together and
    /// they are at hand: the message goes to `next`, the mark is returned. Otherwise neither is read: call [`Streams::next_raw`].
    #[inline(always)]
    pub fn next_pair(&mut self, task: Rank, after: u64, next: &mut Raw) -> Option<LeadingMark> {
        let number = self.number_of(task)?;
        self.cursors.next_pair(number, task, after, next)
    }

    /// Index of a task among those that have records.
    #[inline(always)]
    fn number_of(&self, task: Rank) -> Option<usize> {
        // In most traces every task has records.
        if self.dense { Some(task.index()) } else { self.reader.index.number_of(task.0) }
    }
}

/// Positions in the records of tasks. The reader, and the task with its number from 0, are arguments of each call.
#[derive(Debug)]
pub(super) struct Cursors {
    streams: Vec<Stream>,
    blocks: Vec<Present>,
    windows: Vec<u8>,
    /// Bytes of each window.
    window: usize,
    /// Tasks of the trace.
    tasks: u32,
}

/// Position of one task: the state that every record needs.
#[derive(Clone, Copy, Debug)]
struct Stream {
    decoder: Decoder,
    /// The window has bytes up to `end`, and the next record begins at `at`.
    at: u32,
    end: u32,
    /// A record that begins behind this index may extend beyond the window, and the block has more bytes.
    refill_at: u32,
    /// Number of records of the block that remain. [`HALF`]: the mark of the next pair has been returned.
    left: u32,
}

/// Bit of [`Stream::left`].
const HALF: u32 = 1 << 31;

/// The current block of one task.
#[derive(Debug)]
struct Present {
    places: Places,
    spot: Spot,
    /// Bytes of its content, and how many of them have been read into the window so far.
    raw: u32,
    read: u32,
}

impl Stream {
    #[inline(always)]
    fn must_fetch(&self) -> bool {
        self.left == 0 || self.at > self.refill_at
    }

    /// At the beginning of a block of so many records.
    fn new(left: u32) -> Self {
        Self { decoder: Decoder::default(), at: 0, end: 0, refill_at: u32::MAX, left }
    }
}

impl Cursors {
    /// At the first record of each list, in a trace of `tasks` tasks.
    pub(super) fn new(lists: impl Iterator<Item = List>, tasks: u32) -> Self {
        let spot = Spot { offset: 0, length: 0, items: 0 };
        let mut most = 0;
        let block = |list: List| {
            most = list.items.max(most);
            Present { places: Places::new(list), spot, raw: 0, read: 0 }
        };
        let blocks: Vec<_> = lists.map(block).collect();
        let content = usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(LONGEST);
        let streams = vec![Stream::new(0); blocks.len()];
        let mut window = match streams.len() {
            0 | 1 => 0,
            tasks => (WINDOWS / tasks).min(content).clamp(SMALLEST, LARGEST),
        };
        if window > LINE * LINE {
            // An odd number of cache lines: otherwise tasks that advance in step would all use the same few cache sets.
            window = (window - window % LINE) | LINE;
        }
        // Untouched pages take no memory.
        let windows = vec![0; window * streams.len() + ROOM];
        Self { streams, blocks, windows, window, tasks }
    }

    /// The next record of a task, or `None` behind its last.
    #[inline(always)]
    pub(super) fn next_raw(
        &mut self,
        reader: &Reader,
        number: usize,
        task: Rank,
    ) -> Result<Option<Raw>, Box<ContainerError>> {
        while self.streams.get(number).is_none_or(Stream::must_fetch) {
            if number >= self.streams.len() || !self.fetch(reader, number, task)? {
                return Ok(None);
            }
        }
        let stream = &mut self.streams[number];
        // The bytes behind a window are the next window, or padding.
        let window = number * self.window;
        let (mut at, end) = (window + stream.at as usize, window + stream.end as usize);
        let mut decoder = stream.decoder;
        let (mark, raw) = match decoder.read(&self.windows, &mut at, end, (task, self.tasks)) {
            Ok((Some(_), _)) if stream.left < 2 => return Err(self.garbled(reader, number, Garbled::Length)),
            Ok(read) => read,
            Err(garbled) => return Err(self.garbled(reader, number, garbled)),
        };
        match mark {
            Some(mark) if stream.left < HALF => {
                // The pair is read again, for its message.
                stream.left = (stream.left - 1) | HALF;
                Ok(Some(mark.raw(task)))
            }
            _ => {
                (stream.decoder, stream.at) = (decoder, (at - window) as u32);
                stream.left = (stream.left & !HALF) - 1;
                Ok(Some(raw))
            }
        }
    }

    /// Passes the records in the window of a task to `take`; the mark of the next pair has not been returned.
    #[inline(always)]
    fn each_at_hand(
        &mut self,
        reader: &Reader,
        number: usize,
        task: Rank,
        take: &mut impl FnMut(&Raw),
    ) -> Result<(), Box<ContainerError>> {
        let window = number * self.window;
        let Stream { mut decoder, at, end, refill_at, mut left } = self.streams[number];
        let [mut at, end, refill_at] = [at, end, refill_at].map(|at| window + at as usize);
        while left > 0 && at <= refill_at {
            match decoder.read(&self.windows, &mut at, end, (task, self.tasks)) {
                Ok((None, raw)) => {
                    take(&raw);
                    left -= 1;
                }
                Ok((Some(mark), raw)) if left > 1 => {
                    take(&mark.raw(task));
                    take(&raw);
                    left -= 2;
                }
                Ok(_) => return Err(self.garbled(reader, number, Garbled::Length)),
                Err(garbled) => return Err(self.garbled(reader, number, garbled)),
            }
        }
        let stream = &mut self.streams[number];
        (stream.decoder, stream.at, stream.left) = (decoder, (at - window) as u32, left);
        Ok(())
    }

    /// See [`Streams::next_pair`].
    #[inline(always)]
    fn next_pair(&mut self, number: usize, task: Rank, after: u64, next: &mut Raw) -> Option<LeadingMark> {
        let stream = self.streams.get_mut(number)?;
        if stream.at > stream.refill_at || !(2..HALF).contains(&stream.left) {
            return None;
        }
        let window = number * self.window;
        let at = window + stream.at as usize;
        let (mark, length) = stream.decoder.pair(&self.windows, at, after, (task, self.tasks), next)?;
        if at + length > window + stream.end as usize {
            return None;
        }
        stream.decoder.pass(next.id);
        stream.at += length as u32;
        stream.left -= 2;
        // The records of the other tasks will evict these bytes before this task's next record.
        prefetch(&self.windows, at + AHEAD);
        Some(mark)
    }

    /// Reads more of a task's records into its window; returns `false` if there are none.
    #[cold]
    fn fetch(&mut self, reader: &Reader, number: usize, task: Rank) -> Result<bool, Box<ContainerError>> {
        while self.streams[number].left == 0 {
            let (stream, block) = (&mut self.streams[number], &mut self.blocks[number]);
            if stream.at != stream.end || block.read != block.raw {
                return Err(self.garbled(reader, number, Garbled::Length));
            }
            let Some(spot) = reader.next_place(&mut block.places)? else { return Ok(false) };
            if spot.items >= HALF {
                return Err(Box::new(reader.garbled(spot.offset, Garbled::Length)));
            }
            block.spot = spot;
            block.read = 0;
            *stream = Stream::new(spot.items);
            self.begin(reader, number, task)?;
        }
        let (stream, block) = (&self.streams[number], &self.blocks[number]);
        if stream.end - stream.at < LONGEST as u32 && block.read < block.raw {
            self.refill(reader, number, task)?;
        }
        let (stream, block) = (&mut self.streams[number], &self.blocks[number]);
        stream.refill_at = match block.read < block.raw {
            true => stream.end.saturating_sub(LONGEST as u32),
            false => u32::MAX,
        };
        Ok(true)
    }

    /// Verifies the current block and reads its beginning.
    fn begin(&mut self, reader: &Reader, number: usize, task: Rank) -> Result<(), ContainerError> {
        let block = &mut self.blocks[number];
        let spot = block.spot;
        let wrong = |problem| reader.error(spot.offset, problem);
        if spot.length > (FRAME + 2 * MOST_RAW) as u64 {
            return Err(wrong(Problem::Inconsistent("a block of records that is too long".to_owned())));
        }
        let mut whole = reader.take_buffer();
        whole.resize(spot.length as usize, 0);
        reader.read_at(&mut whole, spot.offset)?;
        let Some((frame, stored)) = whole.split_first_chunk::<FRAME>() else {
            return Err(reader.garbled(spot.offset, Garbled::Length));
        };
        let frame = Frame::read(frame);
        let crc = checksum(&frame.bytes, stored);
        frame.check(Kind::Records, task.0, spot.items, stored.len() as u64, crc).map_err(wrong)?;
        block.raw = frame.raw;
        if self.streams.len() == 1 && self.window < LARGEST {
            // The only window is as long as the longest block so far.
            self.window = self.window.max(LARGEST.min(frame.raw as usize));
            self.windows.resize(self.window + ROOM, 0);
        }
        let (stream, block) = (&mut self.streams[number], &mut self.blocks[number]);
        if !frame.packed() {
            let part = stored.len().min(self.window);
            self.windows[number * self.window..][..part].copy_from_slice(&stored[..part]);
            (stream.end, block.read) = (part as u32, part as u32);
        }
        reader.keep_buffer(whole);
        if frame.packed() { self.refill(reader, number, task) } else { Ok(()) }
    }

    /// Moves the rest of the window to its front and fills the window from the block.
    fn refill(&mut self, reader: &Reader, number: usize, task: Rank) -> Result<(), ContainerError> {
        let (stream, block) = (&mut self.streams[number], &mut self.blocks[number]);
        let window = &mut self.windows[number * self.window..][..self.window];
        window.copy_within(stream.at as usize..stream.end as usize, 0);
        let kept = (stream.end - stream.at) as usize;
        let part = (self.window - kept).min((block.raw - block.read) as usize);
        let into = &mut window[kept..kept + part];
        let spot = block.spot;
        if spot.length == FRAME as u64 + u64::from(block.raw) {
            reader.read_at(into, spot.offset + FRAME as u64 + u64::from(block.read))?;
        } else {
            // Compressed content can only be read as a whole.
            let content = reader.content(Kind::Records, task.0, spot)?;
            let from = content.get(block.read as usize..).and_then(|rest| rest.get(..part));
            match from {
                Some(from) => into.copy_from_slice(from),
                None => return Err(reader.garbled(spot.offset, Garbled::Length)),
            }
        }
        (stream.at, stream.end) = (0, (kept + part) as u32);
        block.read += part as u32;
        Ok(())
    }

    #[cold]
    fn garbled(&self, reader: &Reader, number: usize, garbled: Garbled) -> Box<ContainerError> {
        Box::new(reader.garbled(self.blocks[number].spot.offset, garbled))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{About, Settings, Writer};
    use super::*;
    use crate::ids::MessageId;
    use crate::record::{Dependency, Header, Message};
    use crate::units::{Bytes, Ticks};
    use std::path::Path;

    #[test]
    fn windows_are_no_longer_than_the_records() {
        let header = Header { tasks: 8, messages: 48, clock: crate::units::Picos(1), ..Header::default() };
        let mut writer = Writer::new(Vec::new(), &header, &About::default(), Settings::default()).unwrap();
        for id in 0..48 {
            let (src, dst) = (Rank(id as u32 % 8), Rank(0));
            let (bytes, time) = (Bytes(u64::MAX), Ticks(u64::MAX >> 3));
            let message = Message {
                id: MessageId(id << 40),
                src,
                dst,
                bytes,
                awaited: false,
                after: Dependency::Start,
                time,
            };
            writer.message(&message).unwrap();
        }
        let reader = Reader::from_bytes(writer.finish().unwrap(), Path::new("few.vefx")).unwrap();
        let mut streams = Streams::new(Arc::new(reader));
        let window = streams.cursors.window;
        assert!((SMALLEST..=6 * LONGEST).contains(&window), "{window}");
        for task in (0..8).map(Rank) {
            let records = std::iter::from_fn(|| streams.next(task).unwrap());
            assert_eq!(records.count(), 6);
        }
    }

    #[test]
    fn a_stream_is_small() {
        assert_eq!(size_of::<Stream>(), 32);
        assert!(size_of::<Present>() <= 56, "{}", size_of::<Present>());
    }
}
