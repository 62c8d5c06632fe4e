//! The layout of our own capture files: header, call table and chunks. `docs/capture.md` has a picture.
//!
//! ```text
//! 0                header: fixed fields, then facts about the rank as `key=value` lines
//! calls at         call table: how often each MPI function was called, and how long that took
//! chunks at        chunks of CHUNK_SIZE bytes (or a multiple), each written by one thread
//! ```
//!
//! Numbers are in the byte order of the writer, which is little-endian (the mark shows it). A process may be killed at any
//! instruction and leaves a valid file: the chunk that a thread fills is mapped from the file, and a full one is copied to
//! its final position, whose mark is stored last, before the thread reuses its chunk.

use crate::ids::Rank;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The first eight bytes of a rank's file.
pub const MAGIC: [u8; 8] = *b"\x89VEFCAP\n";
/// The version that is written.
pub const VERSION: u32 = 8;
/// The oldest version that can be read; it has no polls, and neither it nor version 4 has creations of communicators. Versions
/// before 6 have neighbourhood collectives as calls that a trace cannot represent; versions before 7 do not say when a rank had no core; versions
/// before 8 do not say who is in communicators with processes of other worlds.
pub(super) const OLDEST: u32 = 3;
/// This number in the writer's byte order.
pub const ENDIANNESS: u32 = 0x0102_0304;
/// Bytes in front of the first chunk while a file is written; a small finished file moves its chunk up.
pub const HEADER_SIZE: usize = 64 << 10;
/// Bytes of a chunk; a record that needs more gets a chunk of several times this size.
pub const CHUNK_SIZE: usize = 64 << 10;
/// Maximum length of header and facts.
pub const FACTS_END: usize = 4 << 10;
/// Bytes behind the facts for one more: [`stopped_fact`].
const STOPPED_ROOM: usize = 144;
/// Bytes of an entry of the call table: the fields of [`call_field`].
pub const CALL_ENTRY: usize = 64;
/// Maximum number of functions in the call table.
pub const CALL_SLOTS: usize = (HEADER_SIZE - FACTS_END) / CALL_ENTRY;
/// Maximum length of a name in the call table.
pub const CALL_NAME: usize = CALL_ENTRY - call_field::NAME;
/// Bytes of a chunk's header.
pub const CHUNK_HEADER: usize = 56;
/// First field of a chunk in use; stored last.
pub const CHUNK_MARK: u32 = u32::from_le_bytes(*b"CHNK");
/// First field of a chunk that is being copied to its final position.
pub const HOLE_MARK: u32 = u32::from_le_bytes(*b"HOLE");
/// Extension of the name of a rank's file.
pub const EXTENSION: &str = "vefc";

/// The file of `rank` in the capture `dir`.
pub fn rank_path(dir: &Path, rank: Rank) -> PathBuf {
    dir.join(format!("{rank}.{EXTENSION}"))
}

/// The directory of a spawned world, from 1, in the capture `dir` of the program that was launched.
pub fn spawned_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("spawned-{number}"))
}

/// The number of a spawned world, by the name of its directory.
pub(super) fn spawned_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("spawned-")?.parse().ok()?;
    (name == format!("spawned-{number}")).then_some(number)
}

/// Offsets of the fixed fields of the header.
pub mod field {
    /// `u32`: [`super::ENDIANNESS`].
    pub const ENDIANNESS: usize = 8;
    /// `u32`: [`super::VERSION`].
    pub const VERSION: usize = 12;
    /// `u32`: where the first chunk begins.
    pub const HEADER_SIZE: usize = 16;
    /// `u32`: the unit of chunk sizes.
    pub const CHUNK_SIZE: usize = 20;
    /// `u32`: rank in `MPI_COMM_WORLD`.
    pub const RANK: usize = 24;
    /// `u32`: size of `MPI_COMM_WORLD`.
    pub const TASKS: usize = 28;
    /// `u32`: [`super::State`].
    pub const STATE: usize = 32;
    /// `u32`: bytes of the facts.
    pub const FACTS_LEN: usize = 36;
    /// `u64`: length of the finished file; least length of a stopped one, which other threads may have extended; 0 before.
    pub const LENGTH: usize = 40;
    /// Three clock pairs (`u64` tick, `u64` ns; tick 0: not set): at start, after `MPI_Init`, at the end.
    pub const CLOCK: usize = 48;
    /// `u32`: where the call table begins.
    pub const CALLS_AT: usize = 96;
    /// `u32`: entries of the call table.
    pub const CALLS: usize = 100;
    /// `u64`: [`super::RankInfo::run`].
    pub const RUN: usize = 104;
    /// Where the facts begin.
    pub const FACTS: usize = 128;
}

/// Offsets in an entry of the call table.
pub mod call_field {
    /// `u64`: calls.
    pub const COUNT: usize = 0;
    /// `u64`: ticks in these calls.
    pub const TICKS: usize = 8;
    /// `u64`: those that returned an error.
    pub const ERRORS: usize = 16;
    /// The name, zero-padded.
    pub const NAME: usize = 24;
}

/// How the writer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Running, or killed.
    Running = 1,
    /// `MPI_Finalize` was recorded and the file was closed.
    Finished = 2,
    /// Recording stopped before the program ended (size limit, full disk, abort), and the file was closed.
    Stopped = 3,
}

/// A simultaneous reading of the recording clock and of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ClockPair {
    /// The recording clock (cycles, or nanoseconds).
    pub tick: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub nanos: u64,
}

/// Length of the name of [`RankInfo::only_phase`], at most, in bytes. A longer one might not fit into the facts of a file.
pub const LONGEST_PHASE: usize = 1000;

/// Facts on a rank and its process: enough to reproduce its placement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct RankInfo {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: Rank,
    /// Size of `MPI_COMM_WORLD`.
    pub tasks: u32,
    /// The id of the run, the same in all its rank files; 0: unknown.
    pub run: u64,
    /// Host name.
    pub host: String,
    /// Rank among the processes of the host, if the launcher provides it.
    pub local_rank: Option<u32>,
    /// CPUs the process may use, ascending.
    pub cores: Vec<u32>,
    /// The MPI's family: `mpich`, `openmpi`, `standard`.
    pub mpi: String,
    /// First line of `MPI_Get_library_version`.
    pub library: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Process id.
    pub pid: u32,
    /// `CLOCK_REALTIME` when `MPI_Init` was entered, ns since 1970.
    pub realtime: u64,
    /// The phase in which alone calls are recorded, if there is one: a name of at most [`LONGEST_PHASE`] bytes.
    pub only_phase: Option<String>,
}

impl RankInfo {
    /// Formats the facts as `key=value` lines of at most `room` bytes; omits from the end what does not fit (the program's
    /// arguments come last).
    pub fn to_facts(&self, room: usize) -> String {
        let mut text = String::new();
        let mut is_full = false;
        let mut line = |key: &str, value: &str| {
            let fact = fact(key, value);
            is_full |= text.len() + fact.len() > room;
            if !is_full {
                text += &fact;
            }
        };
        line("host", &self.host);
        // Without it the times outside the phase would count as computing.
        if let Some(phase) = &self.only_phase {
            line("only_phase", phase);
        }
        line("pid", &self.pid.to_string());
        line("realtime", &self.realtime.to_string());
        if let Some(local) = self.local_rank {
            line("local_rank", &local.to_string());
        }
        line("mpi", &self.mpi);
        line("library", &self.library);
        line("cores", &ranges(&self.cores));
        for argument in &self.program {
            line("program", argument);
        }
        text
    }

    /// Parses the output of [`RankInfo::to_facts`], which lacks the run. Unknown keys are ignored.
    pub fn from_facts(rank: Rank, tasks: u32, facts: &str) -> Result<Self, String> {
        let mut info = Self { rank, tasks, ..Self::default() };
        for line in facts.lines() {
            let (key, escaped) = line.split_once('=').ok_or_else(|| format!("fact without `=`: {line:?}"))?;
            let value = unescape(escaped);
            let bad = || format!("{key}: {value:?} is no number");
            match key {
                "host" => info.host = value,
                "pid" => info.pid = value.parse().map_err(|_| bad())?,
                "realtime" => info.realtime = value.parse().map_err(|_| bad())?,
                "local_rank" => info.local_rank = Some(value.parse().map_err(|_| bad())?),
                "mpi" => info.mpi = value,
                "library" => info.library = value,
                "cores" => info.cores = parse_ranges(&value).ok_or_else(bad)?,
                "only_phase" => info.only_phase = Some(value),
                "program" => info.program.push(value),
                _ => {}
            }
        }
        Ok(info)
    }
}

/// The fact that recording stopped and why, which is added behind the others where the thread that stops it cannot record an event. The
/// reason is cut at 64 bytes.
pub fn stopped_fact(reason: &str) -> String {
    let end = (0..=reason.len().min(64)).rev().find(|&end| reason.is_char_boundary(end)).unwrap_or(0);
    fact(STOPPED, &reason[..end])
}

/// The reason of a [`stopped_fact`], if it is among the facts.
pub(super) fn stop_reason(facts: &str) -> Option<String> {
    let fact =
        |line: &str| line.split_once('=').filter(|(key, _)| *key == STOPPED).map(|(_, why)| unescape(why));
    facts.lines().find_map(fact)
}

const STOPPED: &str = "stopped";

fn fact(key: &str, value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    format!("{key}={escaped}\n")
}

/// `0-3,8`.
fn ranges(sorted: &[u32]) -> String {
    let mut text = String::new();
    for run in sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match run {
            [only] => write!(text, "{comma}{only}"),
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

fn parse_ranges(text: &str) -> Option<Vec<u32>> {
    /// More CPUs than any machine has: bounds the memory that an invalid range takes.
    const MOST: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse::<u32>().ok()?..=last.parse().ok()?;
        if numbers.len() + range.clone().count() > MOST {
            return None;
        }
        numbers.extend(range);
    }
    Some(numbers)
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

/// The first bytes of a new file, up to the call table.
pub fn header(info: &RankInfo, start: ClockPair) -> Vec<u8> {
    let facts = info.to_facts(FACTS_END - STOPPED_ROOM - field::FACTS);
    let calls_at = (field::FACTS + facts.len() + STOPPED_ROOM).next_multiple_of(8);
    let mut bytes = vec![0; calls_at];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(field::ENDIANNESS, ENDIANNESS);
    put(field::VERSION, VERSION);
    put(field::HEADER_SIZE, HEADER_SIZE as u32);
    put(field::CHUNK_SIZE, CHUNK_SIZE as u32);
    put(field::RANK, info.rank.0);
    put(field::TASKS, info.tasks);
    put(field::STATE, State::Running as u32);
    put(field::FACTS_LEN, facts.len() as u32);
    put(field::CALLS_AT, calls_at as u32);
    bytes[field::RUN..field::RUN + 8].copy_from_slice(&info.run.to_le_bytes());
    bytes[field::CLOCK..field::CLOCK + 16].copy_from_slice(&pair_bytes(start));
    bytes[field::FACTS..field::FACTS + facts.len()].copy_from_slice(facts.as_bytes());
    bytes
}

/// A clock pair in the form of the file.
pub fn pair_bytes(pair: ClockPair) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&pair.tick.to_le_bytes());
    bytes[8..].copy_from_slice(&pair.nanos.to_le_bytes());
    bytes
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ChunkHeader {
    /// The thread that writes it.
    pub thread: u16,
    /// Length in units of [`CHUNK_SIZE`].
    pub span: u32,
    /// Index among the chunks of its thread, from 0.
    pub sequence: u32,
    /// Bytes in use, this header included; 0 while the chunk is written.
    pub used: u32,
    /// The [`checksum`] of a closed chunk.
    pub checksum: u32,
    /// Number of requests that the thread had started before.
    pub requests: u64,
    /// End of the thread's previous record, in ticks; the first gap counts from here.
    pub base: u64,
    /// The clocks when the chunk was begun.
    pub clock: ClockPair,
}

/// Offsets in a chunk's header.
pub mod chunk_field {
    /// `u32`: [`super::CHUNK_MARK`] or [`super::HOLE_MARK`].
    pub const MARK: usize = 0;
    /// `u32`: [`super::ChunkHeader::used`].
    pub const USED: usize = 16;
    /// `u32`: [`super::ChunkHeader::checksum`].
    pub const CHECKSUM: usize = 20;
}

impl ChunkHeader {
    /// The bytes of the header, with the mark.
    pub fn to_bytes(&self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        bytes[..4].copy_from_slice(&CHUNK_MARK.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.thread.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.span.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.used.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.requests.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.base.to_le_bytes());
        bytes[40..56].copy_from_slice(&pair_bytes(self.clock));
        bytes
    }

    /// Parses a header; ignores the mark.
    pub fn from_bytes(bytes: &[u8; CHUNK_HEADER]) -> Self {
        let u32_at = |at: usize| u32_at(bytes, at);
        let u64_at = |at: usize| u64_at(bytes, at);
        Self {
            thread: u16::from_le_bytes([bytes[4], bytes[5]]),
            span: u32_at(8),
            sequence: u32_at(12),
            used: u32_at(chunk_field::USED),
            checksum: u32_at(chunk_field::CHECKSUM),
            requests: u64_at(24),
            base: u64_at(32),
            clock: ClockPair { tick: u64_at(40), nanos: u64_at(48) },
        }
    }
}

/// The CRC-32 of a chunk's bytes in use, without mark and checksum.
pub fn checksum(used: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&used[chunk_field::MARK + 4..chunk_field::USED]);
    // The header of a chunk that is being closed does not have the length yet.
    hasher.update(&(used.len() as u32).to_le_bytes());
    hasher.update(&used[chunk_field::CHECKSUM + 4..]);
    hasher.finalize()
}

/// Closes a chunk with `used` bytes. It reads as an open one until the last store.
pub fn seal(chunk: &mut [u8], used: usize) {
    let Some(used) = chunk.get_mut(..used).filter(|used| used.len() >= CHUNK_HEADER) else { return };
    let sum = checksum(used).to_le_bytes();
    used[chunk_field::CHECKSUM..chunk_field::CHECKSUM + 4].copy_from_slice(&sum);
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
    let length = (used.len() as u32).to_le_bytes();
    used[chunk_field::USED..chunk_field::USED + 4].copy_from_slice(&length);
}

/// The little-endian `u32` at `at`; 0 if out of range.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u32::from_le_bytes(*raw))
}

/// The little-endian `u64` at `at`; 0 if out of range.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u64::from_le_bytes(*raw))
}

/// Converts ticks to nanoseconds by the line through the first and the last clock pair.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: ClockPair,
    /// Nanoseconds in a tick, times 2^[`Clock::SHIFT`].
    slope: u64,
    /// Ticks up to this distance from zero need no bounds check; ticks before zero, modulo 2^64, are beyond it.
    safe: u64,
}

impl Clock {
    /// Exact for the identity; 2^63 ticks of up to 2^20 ns each do not overflow.
    const SHIFT: u32 = 40;

    /// Uses the earliest and the latest of `pairs`; those with tick 0 are not set. With one pair, ticks are nanoseconds.
    pub fn new(pairs: impl IntoIterator<Item = ClockPair>) -> Self {
        let mut first = ClockPair { tick: u64::MAX, nanos: 0 };
        let mut last = ClockPair::default();
        for pair in pairs.into_iter().filter(|pair| pair.tick != 0) {
            if pair.tick < first.tick {
                first = pair;
            }
            if pair.tick >= last.tick {
                last = pair;
            }
        }
        let slope = match (last.tick.checked_sub(first.tick), last.nanos.checked_sub(first.nanos)) {
            (Some(ticks), Some(nanos)) if ticks > 0 && nanos > 0 => {
                ((u128::from(nanos) << Self::SHIFT) / u128::from(ticks)).min(1 << 60) as u64
            }
            _ => 1 << Self::SHIFT,
        };
        if first.tick == u64::MAX {
            first = ClockPair::default();
        }
        let most = (u128::from(u64::MAX - first.nanos) << Self::SHIFT) / u128::from(slope.max(1));
        let safe = most.min(u128::from(u64::MAX - first.tick)) as u64;
        Self { zero: first, slope, safe }
    }

    /// `CLOCK_MONOTONIC` at `tick`, ns; saturating.
    #[inline(always)]
    pub fn nanos(&self, tick: u64) -> u64 {
        let ticks = tick.wrapping_sub(self.zero.tick);
        if ticks <= self.safe {
            return self.zero.nanos + ((u128::from(ticks) * u128::from(self.slope)) >> Self::SHIFT) as u64;
        }
        self.nanos_at_bounds(tick)
    }

    /// Duration of `ticks`, ns.
    pub fn duration(&self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.slope)) >> Self::SHIFT).unwrap_or(u64::MAX)
    }

    /// [`Clock::nanos`] for any tick.
    #[cold]
    fn nanos_at_bounds(&self, tick: u64) -> u64 {
        if tick >= self.zero.tick {
            self.zero.nanos.saturating_add(self.duration(tick - self.zero.tick))
        } else {
            self.zero.nanos.saturating_sub(self.duration(self.zero.tick - tick))
        }
    }
}

#[cfg(test)]
mod tests;
