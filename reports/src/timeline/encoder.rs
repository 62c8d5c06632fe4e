//! What both formats can say: slices on tracks.

/// Something that a track shows from a moment to another.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    /// When it begins and ends, ns.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) name: &'a str,
    pub(super) facts: &'a [(&'static str, Fact)],
    /// Messages that it sends.
    pub(super) sends: Option<u64>,
    /// Messages that it waited for, and got.
    pub(super) receives: &'a [u64],
}

/// What a viewer shows of a slice that is selected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    Number(u64),
    Signed(i64),
}

/// Where slices are shown.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// The process that it belongs to, a host: a number below 2^32 - 1.
    pub(super) process: u32,
    /// Its number among all threads, from 0: ranks first.
    pub(super) thread: u32,
    pub(super) name: String,
    /// Beside another track, and part of that.
    pub(super) below: Option<u32>,
}

/// A format.
pub(super) trait Encoder {
    /// What stands first; at `realtime` ns since 1970 the timeline's zero is, if that is known.
    fn begin(&mut self, out: &mut Vec<u8>, realtime: Option<u64>);
    fn process(&mut self, out: &mut Vec<u8>, process: u32, name: &str);
    /// A track, of number `number`.
    fn track(&mut self, out: &mut Vec<u8>, number: u32, track: &Track);
    fn slice(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, slice: &Slice<'_>);
    /// A track that shows a share of 100 over time.
    fn counter_track(&mut self, out: &mut Vec<u8>, number: u32, track: &Track);
    /// From this moment on its value is this.
    fn counter(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64, value: f64);
    /// Something begins, in which others may be.
    fn open(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64, name: &str);
    /// What was opened last ends.
    fn close(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64);
    fn end(&mut self, out: &mut Vec<u8>);
    /// Bytes of names that are told once, at most.
    fn names(&self) -> u64;
}
