//! The interface to a file format: slices on tracks.

/// An interval of a track.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    /// When it begins and ends, ns.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) name: &'a str,
    pub(super) facts: &'a [(&'static str, Fact<'a>)],
    /// The id of the message that it sends.
    pub(super) sends: Option<u64>,
    /// The ids of the messages that it received.
    pub(super) receives: &'a [u64],
}

/// An annotation, which a viewer shows when the slice is selected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact<'a> {
    Number(u64),
    Signed(i64),
    Text(&'a str),
}

/// A row of the timeline.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// Its process (a host): a number below 2^32 - 1.
    pub(super) process: u32,
    /// Its thread, numbered from 0: ranks first.
    pub(super) thread: u32,
    pub(super) name: String,
    /// The track that it is nested in.
    pub(super) below: Option<u32>,
}

/// A file format.
pub(super) trait Encoder {
    /// Writes the head. `realtime`: the timeline's zero in ns since 1970, if known.
    fn begin(&mut self, out: &mut Vec<u8>, realtime: Option<u64>);
    fn process(&mut self, out: &mut Vec<u8>, process: u32, name: &str);
    /// Describes the track `number`.
    fn track(&mut self, out: &mut Vec<u8>, number: u32, track: &Track);
    fn slice(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, slice: &Slice<'_>);
    /// Describes a track of percentages over time.
    fn counter_track(&mut self, out: &mut Vec<u8>, number: u32, track: &Track);
    /// Sets the value of such a track from `at` on.
    fn counter(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64, value: f64);
    /// Begins a slice in which others may nest.
    fn open(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64, name: &str);
    /// Ends the innermost open slice.
    fn close(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64);
    fn end(&mut self, out: &mut Vec<u8>);
    /// Most bytes of the names that are defined once.
    fn names(&self) -> u64;
}
