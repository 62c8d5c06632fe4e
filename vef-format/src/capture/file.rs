//! Opens one rank's file of our own layout: header, call table and the positions of each thread's chunks.

use super::error::CaptureError;
use super::event::CallSlot;
use super::input::{self, Input};
use super::layout::{
    CALL_ENTRY, CHUNK_HEADER, CHUNK_MARK, ChunkHeader, Clock, ClockPair, ENDIANNESS, FACTS_END, HEADER_SIZE,
    HOLE_MARK, MAGIC, OLDEST, RankInfo, State, VERSION, call_field, checksum, field, stop_reason, u32_at,
    u64_at,
};
use super::word::COMPLETERS;
use crate::error::Place;
use crate::ids::Rank;
use crate::units::{Count, Nanos};
use std::path::{Path, PathBuf};

/// The fixed fields of a header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) info: RankInfo,
    pub(super) state: State,
    /// Why recording stopped, if the thread that stopped it could not record that.
    pub(super) stop_reason: Option<String>,
    /// Length of a closed file; otherwise 0.
    pub(super) length: u64,
    calls_at: usize,
    calls: usize,
    chunks_at: usize,
    chunk_size: usize,
    pairs: [ClockPair; 3],
}

impl Header {
    /// Reads only the header.
    pub(super) fn read(path: &Path) -> Result<Self, CaptureError> {
        let (bytes, present) = input::head(path, FACTS_END).map_err(|e| CaptureError::io(path, e))?;
        Self::parse(path, &bytes, present)
    }

    /// Parses the first bytes of a file of `present` bytes.
    fn parse(path: &Path, bytes: &[u8], present: u64) -> Result<Self, CaptureError> {
        // Space that was reserved, all of it or a part, but not written.
        if bytes.iter().take(MAGIC.len()).all(|&byte| byte == 0) {
            return Err(match present < HEADER_SIZE as u64 {
                true => CaptureError::Empty(Place::file(path)),
                false => CaptureError::Killed(Place::file(path)),
            });
        }
        if bytes.len() < field::FACTS {
            // A short file counts as truncated only if its first bytes match.
            return Err(match bytes.get(..MAGIC.len()) {
                Some(magic) if magic == MAGIC => CaptureError::Truncated {
                    place: Place::file(path),
                    promised: field::FACTS as u64,
                    present,
                },
                _ => CaptureError::Magic(Place::file(path)),
            });
        }
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(CaptureError::Magic(Place::file(path)));
        }
        match u32_at(bytes, field::ENDIANNESS) {
            ENDIANNESS => {}
            mark if mark.swap_bytes() == ENDIANNESS => {
                return Err(CaptureError::Endianness(Place::offset(path, field::ENDIANNESS as u64)));
            }
            mark => return Err(damaged(path, field::ENDIANNESS, format!("byte order mark {mark:#x}"))),
        }
        let found = u32_at(bytes, field::VERSION);
        if !(OLDEST..=VERSION).contains(&found) {
            let place = Place::offset(path, field::VERSION as u64);
            return Err(CaptureError::Version { place, found, known: OLDEST..=VERSION });
        }
        let number = |at: usize| u32_at(bytes, at) as usize;
        let (chunks_at, chunk_size) = (number(field::HEADER_SIZE), number(field::CHUNK_SIZE));
        let (calls_at, calls) = (number(field::CALLS_AT), number(field::CALLS));
        let calls_end = calls.saturating_mul(CALL_ENTRY).saturating_add(calls_at);
        if calls_at < field::FACTS || calls_end > chunks_at || chunks_at > 1 << 30 {
            let what = format!("header of {chunks_at} bytes with {calls} functions from {calls_at} on");
            return Err(damaged(path, field::HEADER_SIZE, what));
        }
        if !(CHUNK_HEADER..=1 << 30).contains(&chunk_size) {
            return Err(damaged(path, field::CHUNK_SIZE, format!("chunks of {chunk_size} bytes")));
        }
        if present < chunks_at as u64 {
            let promised = chunks_at as u64;
            return Err(CaptureError::Truncated { place: Place::file(path), promised, present });
        }
        let rank = Rank(u32_at(bytes, field::RANK));
        let tasks = u32_at(bytes, field::TASKS);
        if rank.0 >= tasks {
            return Err(damaged(path, field::RANK, format!("rank {rank} of {}", Count(tasks, "task"))));
        }
        let state = match u32_at(bytes, field::STATE) {
            1 => State::Running,
            2 => State::Finished,
            3 => State::Stopped,
            other => return Err(damaged(path, field::STATE, format!("state {other}"))),
        };
        let length = u64_at(bytes, field::LENGTH);
        if state != State::Running && present < length {
            return Err(CaptureError::Truncated { place: Place::file(path), promised: length, present });
        }
        let facts_len = u32_at(bytes, field::FACTS_LEN) as usize;
        let facts = field::FACTS
            .checked_add(facts_len)
            .and_then(|end| bytes.get(field::FACTS..end))
            .ok_or_else(|| damaged(path, field::FACTS_LEN, format!("{facts_len} bytes of facts")))?;
        let facts = std::str::from_utf8(facts)
            .map_err(|e| damaged(path, field::FACTS + e.valid_up_to(), "not UTF-8".into()))?;
        let info =
            RankInfo::from_facts(rank, tasks, facts).map_err(|what| damaged(path, field::FACTS, what))?;
        let info = RankInfo { run: u64_at(bytes, field::RUN), ..info };
        let pair = |i: usize| ClockPair {
            tick: u64_at(bytes, field::CLOCK + 16 * i),
            nanos: u64_at(bytes, field::CLOCK + 16 * i + 8),
        };
        Ok(Self {
            info,
            state,
            stop_reason: stop_reason(facts),
            length,
            calls_at,
            calls,
            chunks_at,
            chunk_size,
            pairs: [pair(0), pair(1), pair(2)],
        })
    }
}

/// A thread's chunks, in order.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    pub(super) list: Vec<Chunk>,
}

/// A chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Offset of its first record.
    pub(super) start: usize,
    /// Offset of the end of the bytes that may be records.
    pub(super) end: usize,
    pub(super) header: ChunkHeader,
}

impl Chunk {
    /// Whether its end is known; otherwise the first zero kind ends it.
    pub(super) fn is_sealed(&self) -> bool {
        self.header.used != 0
    }

    /// Reads all bytes, including the header.
    pub(super) fn read(&self, file: &RankFile, into: &mut Vec<u8>) -> Result<(), CaptureError> {
        let at = self.start - CHUNK_HEADER;
        let length = self.end - at;
        file.input.read_at(into, length, at as u64).map_err(|error| CaptureError::io(&file.path, error))?;
        if into.len() < length {
            // The file was truncated after it was opened.
            let (promised, present) = (file.input.length(), (at + into.len()) as u64);
            return Err(CaptureError::Truncated { place: Place::file(&file.path), promised, present });
        }
        let header = into.first_chunk().map(ChunkHeader::from_bytes);
        match self.is_sealed() {
            true if self.header.checksum != checksum(into) => {
                let what = "these bytes are not those that were written (wrong checksum)";
                Err(damaged(&file.path, at, what.to_owned()))
            }
            // The thread has reused the chunk since the file was opened.
            false if header != Some(self.header) => {
                Err(CaptureError::InUse(Place::offset(&file.path, at as u64)))
            }
            _ => Ok(()),
        }
    }
}

/// An open rank file, without records.
#[derive(Debug)]
pub(super) struct RankFile {
    pub(super) path: PathBuf,
    input: Input,
    pub(super) header: Header,
    pub(super) clock: Clock,
    /// By thread.
    pub(super) threads: Vec<Chunks>,
    /// The call table, by slot.
    pub(super) calls: Vec<Function>,
    /// The slots of the [`COMPLETERS`].
    completers: [CallSlot; COMPLETERS.len()],
}

/// A function of the call table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its C name.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that returned an error.
    pub errors: u64,
    /// Total duration of the calls.
    pub time: Nanos,
}

impl RankFile {
    pub(super) fn open(path: &Path) -> Result<Self, CaptureError> {
        let mut file = Self::begin(path)?;
        let (threads, pairs) = find_chunks(path, &file.input, &file.header)?;
        file.set_clock(pairs)?;
        file.threads = threads;
        Ok(file)
    }

    /// Opens the file and reads its header only.
    pub(super) fn begin(path: &Path) -> Result<Self, CaptureError> {
        let io = |error| CaptureError::io(path, error);
        let input = Input::open(path).map_err(io)?;
        let mut first = Vec::new();
        input.read_at(&mut first, FACTS_END, 0).map_err(io)?;
        let header = Header::parse(path, &first, input.length())?;
        let (threads, calls) = (Vec::new(), Vec::new());
        let completers = [CallSlot::NONE; COMPLETERS.len()];
        Ok(Self {
            path: path.to_path_buf(),
            input,
            header,
            clock: Clock::new([]),
            threads,
            calls,
            completers,
        })
    }

    /// Sets the clock, also by `pairs` of chunks, and reads the call table, whose times need it.
    pub(super) fn set_clock(
        &mut self,
        pairs: impl IntoIterator<Item = ClockPair>,
    ) -> Result<(), CaptureError> {
        self.clock = Clock::new(self.header.pairs.into_iter().chain(pairs));
        self.calls = call_table(&self.path, &self.input, &self.header, &self.clock)?;
        let slot = |name| self.calls.iter().position(|function| function.name == name);
        self.completers = COMPLETERS.map(|name| slot(name).map_or(CallSlot::NONE, |at| CallSlot(at as u16)));
        Ok(())
    }

    /// Whether `MPI_Init` has returned: from then on, the clock is known.
    pub(super) fn has_clock(&self) -> bool {
        self.header.pairs[1].tick != 0
    }

    /// The unit of the sizes of chunks, and where the first one begins.
    pub(super) fn chunks(&self) -> (usize, usize) {
        (self.header.chunk_size, self.header.chunks_at)
    }

    /// Reads up to `length` bytes from `at` on.
    pub(super) fn read(&self, into: &mut Vec<u8>, length: usize, at: usize) -> Result<(), CaptureError> {
        self.input.read_at(into, length, at as u64).map_err(|error| CaptureError::io(&self.path, error))
    }

    /// The slot of the function in a word.
    #[inline(always)]
    pub(super) fn completer(&self, number: u8) -> CallSlot {
        self.completers[usize::from(number) % COMPLETERS.len()]
    }

    /// When `MPI_Init` was entered and when the file was closed; of a file that was not, an earlier time.
    pub(super) fn span(&self) -> (Nanos, Nanos) {
        let last = self.header.pairs.iter().map(|pair| pair.nanos).max().unwrap_or(0);
        (Nanos(self.header.pairs[0].nanos), Nanos(last))
    }
}

/// Finds all chunks, and collects their clock pairs.
fn find_chunks(
    path: &Path,
    input: &Input,
    header: &Header,
) -> Result<(Vec<Chunks>, Vec<ClockPair>), CaptureError> {
    let mut threads: Vec<Chunks> = Vec::new();
    let mut pairs = Vec::new();
    let len = match header.state {
        // Threads may have written behind the end of a recording that another one stopped.
        State::Running | State::Stopped => input.length(),
        State::Finished => input.length().min(header.length),
    };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let (mut at, mut raw) = (header.chunks_at, Vec::new());
    while len.checked_sub(at).is_some_and(|left| left >= CHUNK_HEADER) {
        input.read_at(&mut raw, CHUNK_HEADER, at as u64).map_err(|error| CaptureError::io(path, error))?;
        let Some(chunk) = raw.first_chunk().map(ChunkHeader::from_bytes) else {
            let (place, promised, present) = (Place::file(path), len as u64, (at + raw.len()) as u64);
            return Err(CaptureError::Truncated { place, promised, present });
        };
        let span = (chunk.span as usize).max(1).saturating_mul(header.chunk_size);
        let next = match u32_at(&raw, 0) {
            CHUNK_MARK | HOLE_MARK => at.saturating_add(span),
            // Reserved, but the thread has not used it.
            0 => at + header.chunk_size,
            _ => return Err(damaged(path, at, "no chunk begins here".into())),
        };
        if u32_at(&raw, 0) == CHUNK_MARK {
            let used = chunk.used as usize;
            if used > span || (used != 0 && used < CHUNK_HEADER) {
                return Err(damaged(path, at, format!("chunk of {used} bytes")));
            }
            let end = at.saturating_add(if used == 0 { span } else { used });
            if end > len {
                let (place, promised, present) = (Place::file(path), end as u64, len as u64);
                return Err(CaptureError::Truncated { place, promised, present });
            }
            let thread = usize::from(chunk.thread);
            if threads.len() <= thread {
                threads.resize_with(thread + 1, Chunks::default);
            }
            pairs.push(chunk.clock);
            threads[thread].list.push(Chunk { start: at + CHUNK_HEADER, end, header: chunk });
        }
        at = next;
    }
    // A finished run has recorded at least MPI_Init.
    if header.state == State::Finished && threads.is_empty() {
        let what = format!("a finished file without a chunk from {} to {len}", header.chunks_at);
        return Err(damaged(path, field::HEADER_SIZE, what));
    }
    for chunks in &mut threads {
        order(path, &mut chunks.list)?;
    }
    Ok((threads, pairs))
}

/// Sorts a thread's chunks. A chunk copied to its final position may also remain at the position where it was written.
fn order(path: &Path, chunks: &mut Vec<Chunk>) -> Result<(), CaptureError> {
    chunks.sort_by_key(|chunk| (chunk.header.sequence, !chunk.is_sealed()));
    chunks.dedup_by(|second, first| {
        second.header.sequence == first.header.sequence && first.is_sealed() && !second.is_sealed()
    });
    match chunks.iter().enumerate().find(|(i, chunk)| chunk.header.sequence as usize != *i) {
        None => Ok(()),
        Some((i, Chunk { header, start, .. })) => {
            let what = format!("chunk {} of thread {} where {i} should be", header.sequence, header.thread);
            Err(damaged(path, start - CHUNK_HEADER, what))
        }
    }
}

fn call_table(
    path: &Path,
    input: &Input,
    header: &Header,
    clock: &Clock,
) -> Result<Vec<Function>, CaptureError> {
    let (mut table, length) = (Vec::new(), header.calls * CALL_ENTRY);
    let read = input.read_at(&mut table, length, header.calls_at as u64);
    read.map_err(|error| CaptureError::io(path, error))?;
    if table.len() < length {
        let (place, present) = (Place::file(path), (header.calls_at + table.len()) as u64);
        return Err(CaptureError::Truncated { place, promised: header.chunks_at as u64, present });
    }
    let function = |(i, entry): (usize, &[u8])| {
        let name = &entry[call_field::NAME..];
        let len = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        let name = std::str::from_utf8(&name[..len]).map_err(|_| {
            let at = header.calls_at + i * CALL_ENTRY + call_field::NAME;
            damaged(path, at, "name of a function is not UTF-8".into())
        })?;
        Ok(Function {
            name: name.to_owned(),
            calls: u64_at(entry, call_field::COUNT),
            errors: u64_at(entry, call_field::ERRORS),
            time: Nanos(clock.duration(u64_at(entry, call_field::TICKS))),
        })
    };
    table.chunks_exact(CALL_ENTRY).enumerate().map(function).collect()
}

pub(super) fn damaged(path: &Path, offset: usize, what: String) -> CaptureError {
    CaptureError::Damaged { place: Place::offset(path, offset as u64), what }
}
