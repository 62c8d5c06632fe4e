//! Reads the records of all tasks concurrently, each task at its own pace, in memory that does not depend on the length of
//! the trace.
//!
//! Each task has a window of the content of its current block. A block's checksum is verified when the block is begun; what
//! does not fit into the window is read again when it is needed.

use super::block::{FRAME, Frame, Kind, MOST_RAW, checksum};
use super::code::Garbled;
use super::index::{Places, Spot};
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

/// Readers of all tasks of a container.
///
/// Memory: 88 bytes and a window for each task. The windows have 64 KiB in traces of less than a hundred tasks, 6 MiB in all
/// in larger ones, and at least 144 bytes each.
#[derive(Debug)]
pub struct Streams {
    reader: Arc<Reader>,
    streams: Vec<Stream>,
    blocks: Vec<Present>,
    windows: Vec<u8>,
    /// Bytes of each window.
    window: usize,
    /// A whole block.
    scratch: Vec<u8>,
    /// Tasks of the trace.
    tasks: u32,
    /// Whether the first tasks have records and no others.
    dense: bool,
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

impl Streams {
    /// At the first record of every task.
    pub fn new(reader: Arc<Reader>) -> Self {
        let tasks = &reader.index.tasks;
        let nowhere = Spot { offset: 0, length: 0, items: 0 };
        let block = |list| Present { places: Places::new(list), spot: nowhere, raw: 0, read: 0 };
        let blocks: Vec<_> = tasks.iter().map(|task| block(task.list)).collect();
        let streams = vec![Stream::new(0); tasks.len()];
        let mut window = (WINDOWS / streams.len().max(1)).clamp(SMALLEST, LARGEST);
        if window > LINE * LINE {
            // An odd number of cache lines: otherwise tasks that advance in step would all use the same few cache sets.
            window = (window - window % LINE) | LINE;
        }
        // Untouched pages take no memory.
        let windows = vec![0; window * streams.len() + ROOM];
        let dense = tasks.last().is_none_or(|last| last.task as usize == streams.len() - 1);
        let tasks = reader.header().tasks;
        Self { reader, streams, blocks, windows, window, scratch: Vec::new(), tasks, dense }
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
        let Some(number) = self.number_of(task) else { return Ok(None) };
        while self.streams.get(number).is_none_or(Stream::must_fetch) {
            if number >= self.streams.len() || !self.fetch(number, task)? {
                return Ok(None);
            }
        }
        let stream = &mut self.streams[number];
        // The bytes behind a window are the next window, or padding.
        let window = number * self.window;
        let (mut at, end) = (window + stream.at as usize, window + stream.end as usize);
        let mut decoder = stream.decoder;
        let (mark, raw) = match decoder.read(&self.windows, &mut at, end, (task, self.tasks)) {
            Ok((Some(_), _)) if stream.left < 2 => return Err(self.garbled(number, Garbled::Length)),
            Ok(read) => read,
            Err(garbled) => return Err(self.garbled(number, garbled)),
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

    /// The next two records of `task`, if they are a mark that waits for `after` and a message, the container has them together and
    /// they are at hand: the message goes to `next`, the mark is returned. Otherwise neither is read: call [`Streams::next_raw`].
    #[inline(always)]
    pub fn next_pair(&mut self, task: Rank, after: u64, next: &mut Raw) -> Option<LeadingMark> {
        let number = self.number_of(task)?;
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

    /// Index of a task among those that have records.
    #[inline(always)]
    fn number_of(&self, task: Rank) -> Option<usize> {
        // In most traces every task has records.
        if self.dense { Some(task.index()) } else { self.reader.index.number_of(task.0) }
    }

    /// Reads more of a task's records into its window; returns `false` if there are none.
    #[cold]
    fn fetch(&mut self, number: usize, task: Rank) -> Result<bool, Box<ContainerError>> {
        while self.streams[number].left == 0 {
            let (stream, block) = (&mut self.streams[number], &mut self.blocks[number]);
            if stream.at != stream.end || block.read != block.raw {
                return Err(self.garbled(number, Garbled::Length));
            }
            let Some(spot) = self.reader.next_place(&mut block.places)? else { return Ok(false) };
            if spot.items >= HALF {
                return Err(Box::new(self.reader.garbled(spot.offset, Garbled::Length)));
            }
            block.spot = spot;
            block.read = 0;
            *stream = Stream::new(spot.items);
            self.begin(number, task)?;
        }
        let (stream, block) = (&self.streams[number], &self.blocks[number]);
        if stream.end - stream.at < LONGEST as u32 && block.read < block.raw {
            self.refill(number, task)?;
        }
        let (stream, block) = (&mut self.streams[number], &self.blocks[number]);
        stream.refill_at = match block.read < block.raw {
            true => stream.end.saturating_sub(LONGEST as u32),
            false => u32::MAX,
        };
        Ok(true)
    }

    /// Verifies the current block and reads its beginning.
    fn begin(&mut self, number: usize, task: Rank) -> Result<(), ContainerError> {
        let (stream, block) = (&mut self.streams[number], &mut self.blocks[number]);
        let spot = block.spot;
        let wrong = |problem| self.reader.error(spot.offset, problem);
        if spot.length > (FRAME + 2 * MOST_RAW) as u64 {
            return Err(wrong(Problem::Inconsistent("a block of records that is too long".to_owned())));
        }
        self.scratch.resize(spot.length as usize, 0);
        self.reader.read_at(&mut self.scratch, spot.offset)?;
        let Some((frame, stored)) = self.scratch.split_first_chunk::<FRAME>() else {
            return Err(self.reader.garbled(spot.offset, Garbled::Length));
        };
        let frame = Frame::read(frame);
        let crc = checksum(&frame.bytes, stored);
        frame.check(Kind::Records, task.0, spot.items, stored.len() as u64, crc).map_err(wrong)?;
        block.raw = frame.raw;
        if frame.packed() {
            return self.refill(number, task);
        }
        let part = stored.len().min(self.window);
        self.windows[number * self.window..][..part].copy_from_slice(&stored[..part]);
        (stream.end, block.read) = (part as u32, part as u32);
        Ok(())
    }

    /// Moves the rest of the window to its front and fills the window from the block.
    fn refill(&mut self, number: usize, task: Rank) -> Result<(), ContainerError> {
        let (stream, block) = (&mut self.streams[number], &mut self.blocks[number]);
        let window = &mut self.windows[number * self.window..][..self.window];
        window.copy_within(stream.at as usize..stream.end as usize, 0);
        let kept = (stream.end - stream.at) as usize;
        let part = (self.window - kept).min((block.raw - block.read) as usize);
        let into = &mut window[kept..kept + part];
        let spot = block.spot;
        if spot.length == FRAME as u64 + u64::from(block.raw) {
            self.reader.read_at(into, spot.offset + FRAME as u64 + u64::from(block.read))?;
        } else {
            // Compressed content can only be read as a whole.
            let content = self.reader.content(Kind::Records, task.0, spot)?;
            let from = content.get(block.read as usize..).and_then(|rest| rest.get(..part));
            match from {
                Some(from) => into.copy_from_slice(from),
                None => return Err(self.reader.garbled(spot.offset, Garbled::Length)),
            }
        }
        (stream.at, stream.end) = (0, (kept + part) as u32);
        block.read += part as u32;
        Ok(())
    }

    #[cold]
    fn garbled(&self, number: usize, garbled: Garbled) -> Box<ContainerError> {
        Box::new(self.reader.garbled(self.blocks[number].spot.offset, garbled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_small() {
        assert_eq!(size_of::<Stream>(), 32);
        assert!(size_of::<Present>() <= 56, "{}", size_of::<Present>());
    }
}
