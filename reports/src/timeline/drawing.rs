//! Writes a timeline: drops what is outside the window, and merges short slices where the file would exceed its limit.
//!
//! Slices shorter than a power of two of nanoseconds (the threshold) are merged. Time is divided into stretches as long as the
//! threshold; on each track the short slices that begin in the same stretch become one, unless a longer slice lies between them. The
//! merged slice carries their number and total duration. The threshold is the smallest at which the file is sure to fit; it is
//! computed from the encoded sizes of all slices by length, and from the number of merged slices that each threshold would leave.

use super::chrome::Chrome;
use super::encoder::{Encoder, Fact, Slice, Track};
use super::perfetto::Perfetto;
use super::settings::{Format, PICOS_PER_NANO, Settings, Summary, TimelineError};
use replay::Picos;
use std::fs::File;
use std::io::{self, Write};

/// Bytes that are written at a time.
const CHUNK: usize = 1 << 18;
/// Room kept for the end of the file.
const END: u64 = 16;
/// Slices between two reports of progress.
const PROGRESS_EVERY: u64 = 1 << 16;

/// A timeline that is being written, or measured.
pub(super) struct Drawing<'a> {
    encoder: Box<dyn Encoder>,
    /// `None`: the timeline is only measured.
    out: Option<&'a File>,
    buffer: Vec<u8>,
    settings: &'a Settings,
    shorter_than: Option<u64>,
    processes: Vec<(String, bool)>,
    tracks: Vec<TrackState>,
    sizes: Sizes,
    summary: Summary,
    begun: bool,
    seen: u64,
    progress: &'a mut dyn FnMut(u64),
}

#[derive(Debug)]
struct TrackState {
    track: Track,
    described: bool,
    short: Option<Short>,
    /// Begin of the last slice, and the bits of its length.
    last: Option<(u64, u32)>,
}

/// Short slices of one stretch, merged.
#[derive(Debug)]
struct Short {
    stretch: u64,
    begin: u64,
    end: u64,
    count: u64,
    together: u64,
    /// The name that all share; empty: their names differ.
    name: String,
}

/// Encoded sizes.
#[derive(Debug)]
struct Sizes {
    /// Bytes of everything but slices.
    rest: u64,
    /// Bytes of slices, by the bits of their length.
    slices: [u64; CLASSES],
    /// Merged slices at the threshold 2^k, less those at 2^(k - 1).
    groups: [i64; CLASSES + 1],
    /// Tracks with at least one slice.
    tracks: u64,
}

/// A length has 0 to 64 bits.
const CLASSES: usize = 65;

impl<'a> Drawing<'a> {
    /// A timeline to be written into `out`, or only measured. Slices `shorter_than` the threshold are merged.
    pub(super) fn new(
        settings: &'a Settings,
        out: Option<&'a File>,
        shorter_than: Option<u64>,
        progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        Self {
            encoder: match settings.format {
                Format::Perfetto => Box::new(Perfetto::default()),
                Format::Json => Box::new(Chrome::default()),
            },
            out,
            buffer: Vec::new(),
            settings,
            shorter_than,
            processes: Vec::new(),
            tracks: Vec::new(),
            sizes: Sizes { rest: 0, slices: [0; CLASSES], groups: [0; CLASSES + 1], tracks: 0 },
            summary: Summary { shorter_than, ..Summary::default() },
            begun: false,
            seen: 0,
            progress,
        }
    }

    /// Writes the head of the file.
    pub(super) fn begin(&mut self, realtime: Option<u64>) -> Result<(), TimelineError> {
        self.begun = true;
        self.encoder.begin(&mut self.buffer, realtime);
        self.count_rest(0);
        self.flush(CHUNK)
    }

    /// Adds a process; returns its number.
    pub(super) fn add_process(&mut self, name: String) -> u32 {
        self.processes.push((name, false));
        self.processes.len() as u32 - 1
    }

    /// Adds a track; returns its number. An empty track is not written.
    pub(super) fn add_track(&mut self, track: Track) -> u32 {
        self.tracks.push(TrackState { track, described: false, short: None, last: None });
        self.tracks.len() as u32 - 1
    }

    /// Draws a track of percentages over time. If it does not fit into the file any more, it is counted as left out.
    pub(super) fn counter(&mut self, number: u32, points: &[(u64, f64)]) -> Result<(), TimelineError> {
        let before = self.buffer.len();
        let track = &self.tracks[number as usize].track;
        let (name, described) = &mut self.processes[track.process as usize];
        if !std::mem::replace(described, true) {
            self.encoder.process(&mut self.buffer, track.process, name);
        }
        self.encoder.counter_track(&mut self.buffer, number, track);
        for &(at, value) in points {
            self.encoder.counter(&mut self.buffer, number, track, at, value);
        }
        let more = (self.buffer.len() - before) as u64;
        if self.sizes.rest + more + END > self.settings.most_bytes {
            self.buffer.truncate(before);
            self.summary.curves[1] += 1;
            return Ok(());
        }
        self.count_rest(before);
        self.summary.curves[0] += 1;
        self.summary.end = self.summary.end.max(points.last().map_or(0, |&(at, _)| at));
        self.flush(CHUNK)
    }

    /// The run lasts until `at` or longer.
    pub(super) fn reached(&mut self, at: u64) {
        self.summary.reached = self.summary.reached.max(at);
    }

    /// Whether the interval from `begin` to `end` overlaps the window.
    pub(super) fn shows(&mut self, begin: u64, end: u64) -> bool {
        self.reached(end);
        end >= self.settings.window.start && begin < self.settings.window.end
    }

    /// Draws the part of a slice that is in the window, without arrows to what is not. The slices of a track are drawn in order of
    /// time and do not overlap.
    pub(super) fn slice(&mut self, number: u32, slice: &Slice<'_>) -> Result<(), TimelineError> {
        if !self.shows(slice.begin, slice.end) {
            return Ok(());
        }
        let window = &self.settings.window;
        let slice = &Slice {
            begin: slice.begin.max(window.start),
            end: slice.end.min(window.end),
            sends: slice.sends.filter(|_| slice.begin >= window.start),
            receives: if slice.end <= window.end { slice.receives } else { &[] },
            ..*slice
        };
        self.seen += 1;
        if self.seen.is_multiple_of(PROGRESS_EVERY) {
            (self.progress)(self.seen);
        }
        self.summary.end = self.summary.end.max(slice.end);
        let length = slice.end - slice.begin;
        if let Some(stretch) = self.shorter_than.filter(|&limit| length < limit) {
            return self.put_together(number, slice, slice.begin / stretch);
        }
        self.finish_short(number)?;
        self.describe(number);
        self.summary.slices += 1;
        self.summary.arrows[0] += u64::from(slice.sends.is_some());
        self.summary.arrows[1] += slice.receives.len() as u64;
        let before = self.buffer.len();
        self.encoder.slice(&mut self.buffer, number, &self.tracks[number as usize].track, slice);
        let (class, state) = (u64::BITS - length.leading_zeros(), &mut self.tracks[number as usize]);
        self.sizes.slices[class as usize] += (self.buffer.len() - before) as u64;
        // This slice starts a new merged slice at the thresholds at which the previous one is long, or lies in another stretch.
        let until = state.last.map_or(CLASSES as u32, |(begin, class)| {
            class.max(u64::BITS - (begin ^ slice.begin).leading_zeros())
        });
        self.sizes.groups[class as usize] += 1;
        self.sizes.groups[until.max(class) as usize] -= 1;
        state.last = Some((slice.begin, class));
        self.flush(CHUNK)
    }

    /// Begins a slice in which others may nest.
    pub(super) fn open(&mut self, number: u32, at: u64, name: &str) -> Result<(), TimelineError> {
        let at = at.max(self.settings.window.start);
        self.describe(number);
        let before = self.buffer.len();
        self.encoder.open(&mut self.buffer, number, &self.tracks[number as usize].track, at, name);
        self.summary.slices += 1;
        self.count_rest(before);
        self.flush(CHUNK)
    }

    /// Ends the innermost open slice of this track.
    pub(super) fn close(&mut self, number: u32, at: u64) -> Result<(), TimelineError> {
        let at = at.min(self.settings.window.end);
        let before = self.buffer.len();
        self.encoder.close(&mut self.buffer, number, &self.tracks[number as usize].track, at);
        self.count_rest(before);
        self.flush(CHUNK)
    }

    fn count_rest(&mut self, before: usize) {
        self.sizes.rest += (self.buffer.len() - before) as u64;
    }

    fn put_together(&mut self, number: u32, slice: &Slice<'_>, stretch: u64) -> Result<(), TimelineError> {
        let length = slice.end - slice.begin;
        let state = &mut self.tracks[number as usize];
        if let Some(short) = state.short.as_mut().filter(|short| short.stretch == stretch) {
            short.end = slice.end;
            short.count += 1;
            short.together += length;
            if short.name != slice.name {
                short.name.clear();
            }
            return Ok(());
        }
        self.finish_short(number)?;
        let Slice { begin, end, name, .. } = *slice;
        let short = Short { stretch, begin, end, count: 1, together: length, name: name.to_owned() };
        self.tracks[number as usize].short = Some(short);
        Ok(())
    }

    /// Draws the pending merged slice of a track.
    fn finish_short(&mut self, number: u32) -> Result<(), TimelineError> {
        let Some(short) = self.tracks[number as usize].short.take() else { return Ok(()) };
        self.describe(number);
        self.summary.merged_slices += 1;
        self.summary.merged += short.count;
        draw_short(&mut *self.encoder, &mut self.buffer, number, &self.tracks[number as usize].track, &short);
        self.flush(CHUNK)
    }

    /// Writes the descriptions of a track and of its process, once, before their first slice.
    fn describe(&mut self, number: u32) {
        let state = &mut self.tracks[number as usize];
        if std::mem::replace(&mut state.described, true) {
            return;
        }
        let (process, below) = (state.track.process, state.track.below);
        if let Some(below) = below {
            self.describe(below);
        }
        let before = self.buffer.len();
        let (name, described) = &mut self.processes[process as usize];
        if !std::mem::replace(described, true) {
            self.encoder.process(&mut self.buffer, process, name);
        }
        self.encoder.track(&mut self.buffer, number, &self.tracks[number as usize].track);
        self.sizes.tracks += 1;
        self.count_rest(before);
    }

    /// Writes the buffer out if it has `least` bytes or more.
    fn flush(&mut self, least: usize) -> Result<(), TimelineError> {
        if self.buffer.len() < least {
            return Ok(());
        }
        self.summary.bytes += self.buffer.len() as u64;
        if self.summary.bytes > self.settings.most_bytes {
            // The file exceeds its limit: the rest is only measured.
            self.out = None;
        }
        if let Some(mut out) = self.out {
            out.write_all(&self.buffer)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// The threshold at which the file fits; `None`: it fits without merging.
    pub(super) fn shorter_than(&mut self) -> Result<Option<u64>, TimelineError> {
        let most = self.settings.most_bytes;
        let mut end = Vec::new();
        self.encoder.end(&mut end);
        self.sizes.rest += end.len() as u64;
        if self.sizes.slices.iter().sum::<u64>() + self.sizes.rest <= most {
            return Ok(None);
        }
        let (short, names) = (self.most_of_short(), self.encoder.names());
        let fits = |&bits: &u32| self.sizes.with_short(bits, short).saturating_add(names) <= most;
        match (0..u64::BITS).find(fits) {
            Some(bits) => Ok(Some(1 << bits)),
            None => Err(TimelineError::TooLarge { tracks: self.sizes.tracks, most }),
        }
    }

    /// Most bytes that a merged slice takes.
    fn most_of_short(&mut self) -> u64 {
        let (end, count) = (self.summary.end, self.summary.slices);
        let number = self.tracks.len() as u32;
        let long = Track { process: number, thread: number, name: String::new(), below: None };
        let short = Short { stretch: 0, begin: end, end, count, together: end, name: String::new() };
        let mut out = Vec::new();
        // The first time includes definitions of names: only the second counts.
        for _ in 0..2 {
            out.clear();
            draw_short(&mut *self.encoder, &mut out, number, &long, &short);
        }
        // JSON repeats the name in each slice, and the threads of nested tracks have long numbers.
        out.len() as u64 + if self.settings.format == Format::Json { MOST_OF_NAME } else { 0 }
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<Summary, TimelineError> {
        for number in 0..self.tracks.len() as u32 {
            self.finish_short(number)?;
        }
        if !self.begun {
            self.begin(None)?;
        }
        self.encoder.end(&mut self.buffer);
        self.flush(0)?;
        match self.out {
            Some(mut out) => out.flush()?,
            None => return Err(io::Error::other("it is larger than was computed").into()),
        }
        let Summary { slices, merged_slices, curves, reached, .. } = self.summary;
        let from = self.settings.window.start;
        if slices + merged_slices + curves[0] == 0 && from > reached {
            let [from, end] = [from, reached].map(|nanos| Picos(nanos.saturating_mul(PICOS_PER_NANO)));
            return Err(TimelineError::BehindTheEnd { from, end });
        }
        Ok(self.summary)
    }
}

/// Bytes of the longest name of a function and the longest number of a thread.
const MOST_OF_NAME: u64 = 66;

fn draw_short(
    encoder: &mut dyn Encoder,
    out: &mut Vec<u8>,
    number: u32,
    track: &Track,
    &Short { begin, end, count, together, ref name, .. }: &Short,
) {
    let facts = [("calls", Fact::Number(count)), ("together_ns", Fact::Number(together))];
    let name = if name.is_empty() { "several" } else { name };
    encoder.slice(out, number, track, &Slice { begin, end, name, facts: &facts, sends: None, receives: &[] });
}

impl Sizes {
    /// Most bytes of the file if slices of up to `bits` bits are merged and a merged slice takes `short` bytes.
    fn with_short(&self, bits: u32, short: u64) -> u64 {
        let bits = bits as usize;
        let groups: i64 = self.groups[..=bits].iter().sum();
        let long: u64 = self.slices[bits + 1..].iter().sum();
        (groups as u64).saturating_mul(short).saturating_add(long).saturating_add(self.rest)
    }
}
