//! Follows a rank's file while its program runs: each look passes on the events since the one before.
//!
//! A thread's window only grows until it is appended to the file as a chunk with the same bytes; then it is cleared and reused for the
//! next chunk. So a position in a chunk is valid in both. The file may be read at any instant: a record is stored before its first byte,
//! and a window is read only if its header is the same before and after.

use super::error::CaptureError;
use super::event::Event;
use super::events::Thread;
use super::file::{Chunk, Function, RankFile, damaged};
use super::forms::Lists;
use super::layout::{CHUNK_HEADER, CHUNK_MARK, ChunkHeader, ClockPair, State, rank_path, u32_at};
use crate::ids::Rank;
use crate::units::Nanos;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A thread, and the index of a chunk of it.
type Position = (u16, u32);

/// The windows, with their offsets and headers, by the chunk that each holds.
type Windows = BTreeMap<Position, (usize, ChunkHeader)>;

/// How far a look at a growing file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The rank is not there yet, or still in `MPI_Init`.
    NotYet,
    /// All that has been recorded was read; the last record of the rank ended then (`CLOCK_MONOTONIC` of its host).
    Until(Nanos),
    /// More has been recorded than was to be read; the next look continues.
    Behind,
    /// The rank has finished, or its recording has stopped. Its last events, from the previous look on, are not passed on.
    Over,
}

/// A reader of a rank's file that grows. Events of one thread are in order; those of several are not merged.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// Where to look for chunks that are not known.
    unknown: usize,
    /// Offsets of the windows.
    windows: Vec<usize>,
    /// The latest clock pair of a chunk.
    pair: ClockPair,
    /// Appended chunks that have not been read to their end.
    chunks: BTreeMap<Position, Chunk>,
    /// The threads, each with the index of its chunk.
    threads: Vec<(u32, Thread)>,
    lists: Lists,
}

impl Follower {
    /// A follower of `rank` in the capture `dir`; neither need exist yet.
    pub fn new(dir: &Path, rank: Rank) -> Self {
        Self {
            path: rank_path(dir, rank),
            unknown: 0,
            windows: Vec::new(),
            pair: ClockPair::default(),
            chunks: BTreeMap::new(),
            threads: Vec::new(),
            lists: Lists::default(),
        }
    }

    /// Passes the events since the last look to `take`, with the functions of the call table; begins no further chunk when `most` bytes
    /// of records have been read.
    ///
    /// # Errors
    /// Those of the file. It cannot be followed any more.
    pub fn look(
        &mut self,
        most: usize,
        mut take: impl FnMut(&Event<'_>, &[Function]),
    ) -> Result<Followed, CaptureError> {
        match self.look_at(RankFile::begin(&self.path), most, &mut take) {
            Err(CaptureError::Empty(_) | CaptureError::Killed(_)) => Ok(Followed::NotYet),
            Err(CaptureError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(Followed::NotYet)
            }
            // Closed meanwhile: chunks have moved.
            Err(_) if RankFile::begin(&self.path).is_ok_and(|file| file.header.state != State::Running) => {
                Ok(Followed::Over)
            }
            looked => looked,
        }
    }

    fn look_at(
        &mut self,
        file: Result<RankFile, CaptureError>,
        most: usize,
        take: &mut impl FnMut(&Event<'_>, &[Function]),
    ) -> Result<Followed, CaptureError> {
        let mut file = file?;
        if file.header.state != State::Running {
            return Ok(Followed::Over);
        }
        if !file.has_clock() {
            return Ok(Followed::NotYet);
        }
        let heads = self.find(&file)?;
        file.set_clock([self.pair])?;
        let mut left = most;
        for index in 0..self.threads.len() {
            while self.advance(index, &file, &heads, &mut left, take)? {
                if left == 0 {
                    return Ok(Followed::Behind);
                }
            }
        }
        let ends = self.threads.iter().map(|(_, thread)| file.clock.nanos(thread.next.base));
        Ok(Followed::Until(Nanos(ends.max().unwrap_or(0))))
    }

    /// Finds new chunks, and reads the headers of the windows.
    fn find(&mut self, file: &RankFile) -> Result<Windows, CaptureError> {
        let (unit, first) = file.chunks();
        let mut heads = BTreeMap::new();
        let mut raw = Vec::new();
        for &at in &self.windows {
            // One without a mark is being cleared: its chunk has been appended.
            if let Some(head) = head(file, &mut raw, at)? {
                heads.insert((head.thread, head.sequence), (at, head));
            }
        }
        self.unknown = self.unknown.max(first);
        // Chunks that are written at this moment have no mark, and come with the next look.
        while let Some(head) = head(file, &mut raw, self.unknown)? {
            let (at, place) = (self.unknown, (head.thread, head.sequence));
            if head.used == 0 {
                self.windows.push(at);
                heads.insert(place, (at, head));
            } else {
                let (used, span) = (head.used as usize, (head.span as usize).saturating_mul(unit));
                if !(CHUNK_HEADER..=span).contains(&used) {
                    return Err(damaged(&file.path, at, format!("chunk of {used} bytes")));
                }
                let chunk = Chunk { start: at + CHUNK_HEADER, end: at.saturating_add(used), header: head };
                self.chunks.insert(place, chunk);
            }
            if head.clock.tick > self.pair.tick {
                self.pair = head.clock;
            }
            while self.threads.len() <= usize::from(head.thread) {
                self.threads.push((0, Thread::before(self.threads.len() as u16)));
            }
            self.unknown = at.saturating_add((head.span as usize).max(1).saturating_mul(unit));
        }
        Ok(heads)
    }

    /// Passes on what thread `index` has recorded in its present chunk. Returns whether that chunk is complete.
    fn advance(
        &mut self,
        index: usize,
        file: &RankFile,
        heads: &Windows,
        left: &mut usize,
        take: &mut impl FnMut(&Event<'_>, &[Function]),
    ) -> Result<bool, CaptureError> {
        let Self { chunks, threads, lists, .. } = self;
        let (sequence, Thread { chunk: bytes, next, shapes, .. }) = &mut threads[index];
        let place = (index as u16, *sequence);
        let appended = chunks.remove(&place);
        let (at, header) = match (&appended, heads.get(&place)) {
            (Some(chunk), _) => {
                chunk.read(file, bytes)?;
                (chunk.start - CHUNK_HEADER, chunk.header)
            }
            (None, Some(&(at, header))) => {
                file.read(bytes, file.chunks().0, at)?;
                if head(file, &mut Vec::new(), at)? != Some(header) {
                    return Ok(false);
                }
                (at, header)
            }
            (None, None) => return Ok(false),
        };
        if next.at < CHUNK_HEADER {
            (next.at, next.base) = (CHUNK_HEADER, header.base);
        }
        let begin = next.at;
        loop {
            let mut slot = None;
            match next.decode(file, bytes, shapes, lists, &mut slot, u64::MAX) {
                Ok(Some(event)) => take(event, &file.calls),
                Ok(None) => break,
                Err(fault) => return Err(damaged(&file.path, at + next.at, fault.to_string())),
            }
        }
        *left = left.saturating_sub(next.at - begin);
        if appended.is_some() {
            *sequence += 1;
            next.at = 0;
        }
        Ok(appended.is_some())
    }
}

/// The header of the chunk or window at `at`, if there is one.
fn head(file: &RankFile, raw: &mut Vec<u8>, at: usize) -> Result<Option<ChunkHeader>, CaptureError> {
    file.read(raw, CHUNK_HEADER, at)?;
    let complete = raw.first_chunk().filter(|raw| u32_at(&raw[..], 0) == CHUNK_MARK);
    Ok(complete.map(ChunkHeader::from_bytes))
}

#[cfg(test)]
mod tests {
    use super::super::layout::{CHUNK_SIZE, HEADER_SIZE, chunk_field, field, pair_bytes};
    use super::super::tests::write;
    use super::*;

    /// The file as it is while chunk `at` is in the window: complete there, also behind the others, or cleared after that.
    #[derive(Clone, Copy, PartialEq)]
    enum Moment {
        Window,
        Copied,
        Cleared,
    }

    fn at_work(whole: &[u8], at: usize, moment: Moment) -> Vec<u8> {
        let (first, chunks) = whole.split_at(HEADER_SIZE);
        let begin = at * CHUNK_SIZE;
        let end = chunks.len().min(begin + CHUNK_SIZE);
        let appended = if moment == Moment::Window { begin } else { end };
        let mut file = first.to_vec();
        file[field::STATE] = 1;
        file[field::LENGTH..field::LENGTH + 8].fill(0);
        file.extend_from_slice(&chunks[begin..end]);
        file.resize(HEADER_SIZE + CHUNK_SIZE, 0);
        file[HEADER_SIZE..][chunk_field::USED..chunk_field::CHECKSUM].fill(0);
        if moment == Moment::Cleared {
            file[HEADER_SIZE..].fill(0);
        }
        file.extend_from_slice(&chunks[..appended]);
        file
    }

    #[test]
    fn looks_at_a_growing_file_give_each_event_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = rank_path(dir.path(), Rank(0));
        let mut follower = Follower::new(dir.path(), Rank(0));
        assert_eq!(follower.look(usize::MAX, |_, _| {}).expect("no file"), Followed::NotYet);
        let expected = write(dir.path(), 5, 20_000, 1);
        let mut whole = std::fs::read(&path).expect("there");
        // The writer knows no second clock pair.
        whole[field::CLOCK + 16..field::CLOCK + 32]
            .copy_from_slice(&pair_bytes(ClockPair { tick: 2, nanos: 2 }));
        let chunks = (whole.len() - HEADER_SIZE).div_ceil(CHUNK_SIZE);
        assert!(chunks > 3);
        std::fs::write(&path, vec![0; 2 * HEADER_SIZE]).expect("written");
        assert_eq!(follower.look(usize::MAX, |_, _| {}).expect("reserved"), Followed::NotYet);
        let mut events = Vec::new();
        for at in 0..chunks {
            for moment in [Moment::Window, Moment::Copied, Moment::Cleared] {
                // Some are not looked at: chunks may be new at any moment.
                if (3 * at + moment as usize) % 5 == 4 {
                    continue;
                }
                std::fs::write(&path, at_work(&whole, at, moment)).expect("written");
                // No more than a chunk at once, until there is no more.
                loop {
                    let looked = follower.look(1, |event, _| events.push(format!("{event:?}")));
                    match looked.expect("readable") {
                        Followed::Behind => {}
                        Followed::Until(_) => break,
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        assert_eq!(events.len(), expected.len());
        assert!(events == expected);
        std::fs::write(&path, &whole).expect("written");
        assert_eq!(follower.look(usize::MAX, |_, _| {}).expect("finished"), Followed::Over);
    }
}
