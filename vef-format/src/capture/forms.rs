//! How single values stand in records: numbers, texts and lists; what writes them and reads them.

use super::event::{Completion, DatatypeId, FileId, PartitionedId, RequestId, SendMode, WindowId};
use crate::ids::{CommId, CommRank, Rank};
use crate::operation::Operation;
use crate::units::Bytes;
use crate::varint::{Ended, Sink, Source, unzigzag, zigzag};

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They end within the record.
    Ended,
    /// A field has an invalid value.
    Invalid(&'static str, u64),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended => write!(f, "the record runs past the end of its chunk"),
            Self::Invalid(what, value) => write!(f, "impossible {what}: {value}"),
        }
    }
}

impl From<Ended> for Fault {
    fn from(_: Ended) -> Self {
        Self::Ended
    }
}

/// A record that is being written.
pub(super) struct Encoder<'a> {
    pub(super) sink: Sink<'a>,
    /// The thread's next request.
    pub(super) next: RequestId,
}

/// A record that is being read into an action that borrows from `'a`.
pub(super) struct Decoder<'s, 'a> {
    pub(super) source: Source<'s>,
    /// The thread's next request.
    pub(super) next: RequestId,
    pub(super) room: Room<'a>,
}

/// Buffers for the texts and lists of an action.
#[derive(Debug, Default)]
pub(super) struct Lists {
    text: String,
    completions: Vec<Completion>,
    counts: [Vec<u64>; 2],
    ranks: [Vec<Rank>; 2],
    peers: [Vec<Option<CommRank>>; 2],
}

/// The unused ones of [`Lists`]; by default none.
#[derive(Default)]
pub(super) struct Room<'a> {
    text: Option<&'a mut String>,
    pub(super) completions: Option<&'a mut Vec<Completion>>,
    counts: std::slice::IterMut<'a, Vec<u64>>,
    ranks: std::slice::IterMut<'a, Vec<Rank>>,
    peers: std::slice::IterMut<'a, Vec<Option<CommRank>>>,
}

impl<'a> From<&'a mut Lists> for Room<'a> {
    fn from(lists: &'a mut Lists) -> Self {
        let Lists { text, completions, counts, ranks, peers } = lists;
        Self {
            text: Some(text),
            completions: Some(completions),
            counts: counts.iter_mut(),
            ranks: ranks.iter_mut(),
            peers: peers.iter_mut(),
        }
    }
}

/// Shapes have neither texts nor lists.
const NO_ROOM: Fault = Fault::Invalid("text or list in a shape", 0);

impl<'s> Decoder<'s, '_> {
    /// A decoder of the bytes at `source`, which the thread wrote before it started the request `next`.
    pub(super) fn new<'a>(source: Source<'s>, next: RequestId, room: Room<'a>) -> Decoder<'s, 'a> {
        Decoder { source, next, room }
    }

    /// The next number.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        Ok(self.source.get()?)
    }

    /// The next number, of at most 32 bits.
    #[inline(always)]
    fn number32(&mut self, field: &'static str) -> Result<u32, Fault> {
        let value = self.source.get()?;
        u32::try_from(value).map_err(|_| Fault::Invalid(field, value))
    }

    /// The next number, which holds flags.
    #[inline(always)]
    pub(super) fn flags(&mut self, largest: u64) -> Result<u64, Fault> {
        match self.source.get()? {
            flags if flags <= largest => Ok(flags),
            flags => Err(Fault::Invalid("flags", flags)),
        }
    }

    /// Reads a list, whose items have at least one byte each.
    pub(super) fn list<'l, T>(
        &mut self,
        list: Option<&'l mut Vec<T>>,
        mut item: impl FnMut(&mut Self) -> Result<T, Fault>,
    ) -> Result<&'l [T], Fault> {
        let list = list.ok_or(NO_ROOM)?;
        list.clear();
        let count = self.number()?;
        if count > self.source.remaining() as u64 {
            return Err(Fault::Ended);
        }
        for _ in 0..count {
            list.push(item(self)?);
        }
        Ok(list)
    }
}

/// What a number of a capture refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Communicator,
    Datatype,
    Window,
    File,
}

/// A value in records.
pub(super) trait Form<'a>: Sized {
    /// The largest value of the flags where they are a number of their own.
    const FLAGS: u64 = 0;

    fn flags(&self) -> u64 {
        0
    }

    /// Writes the numbers other than the flags.
    fn put(&self, to: &mut Encoder<'_>);

    /// The value with these flags, or with flags of which these are the lowest bits.
    fn get(from: &mut Decoder<'_, 'a>, flags: u64, field: &'static str) -> Result<Self, Fault>;

    /// Passes every object that the value refers to.
    fn refers(&self, _see: &mut impl FnMut(Class, u32)) {}

    /// [`Form::put`], and the flags in front of it.
    #[inline(always)]
    fn put_whole(&self, to: &mut Encoder<'_>) {
        if Self::FLAGS > 0 {
            to.sink.put(self.flags());
        }
        self.put(to);
    }

    /// The reverse of [`Form::put_whole`].
    #[inline(always)]
    fn get_whole(from: &mut Decoder<'_, 'a>, field: &'static str) -> Result<Self, Fault> {
        let flags = if Self::FLAGS > 0 { from.flags(Self::FLAGS)? } else { 0 };
        Self::get(from, flags, field)
    }
}

/// Values that are one number.
macro_rules! numbers {
    ($($type:ty: $value:ident => $number:expr, $from:ident $field:ident => $read:expr $(, $class:ident)?;)*) => { $(
        impl Form<'_> for $type {
            #[inline(always)]
            fn put(&self, to: &mut Encoder<'_>) {
                let $value = self;
                to.sink.put($number);
            }
            #[inline(always)]
            fn get($from: &mut Decoder<'_, '_>, _: u64, $field: &'static str) -> Result<Self, Fault> {
                Ok($read)
            }
            $(fn refers(&self, see: &mut impl FnMut(Class, u32)) {
                see(Class::$class, self.0);
            })?
        }
    )* };
}
numbers! {
    u64: value => *value, from _field => from.number()?;
    u32: value => (*value).into(), from field => from.number32(field)?;
    i64: value => zigzag(*value), from _field => unzigzag(from.number()?);
    i32: value => (*value as u32).into(), from field => from.number32(field)? as i32;
    // The index in `Operation::ALL`.
    Operation: value => *value as u64, from _field => operation(from.number()?)?;
    Signed: value => zigzag(value.0.into()), from field => Signed::of(from.number()?, field)?;
    Stride: value => zigzag(value.0), from field => Stride::of(from.number()?, field)?;
    Bytes: value => value.0, from _field => Bytes(from.number()?);
    Rank: value => value.0.into(), from _field => Rank(from.number32("rank")?);
    CommRank: value => value.0.into(), from _field => CommRank(from.number32("rank")?);
    CommId: value => value.0.into(), from _field => CommId(from.number32("communicator")?), Communicator;
    DatatypeId: value => value.0.into(), from _field => DatatypeId(from.number32("datatype")?), Datatype;
    WindowId: value => value.0.into(), from _field => WindowId(from.number32("window")?), Window;
    PartitionedId: value => value.0.into(), from _field => PartitionedId(from.number32("partitioned transfer")?);
    FileId: value => value.0.into(), from _field => FileId(from.number32("file")?), File;
}

fn operation(number: u64) -> Result<Operation, Fault> {
    let known = usize::try_from(number).ok().and_then(|index| Operation::ALL.get(index));
    known.copied().ok_or(Fault::Invalid("collective operation", number))
}

/// An `i32` that is small whatever its sign.
pub(super) struct Signed(pub(super) i32);

impl Signed {
    fn of(number: u64, field: &'static str) -> Result<Self, Fault> {
        i32::try_from(unzigzag(number)).map(Self).map_err(|_| Fault::Invalid(field, number))
    }
}

/// An `i64` other than 0.
pub(super) struct Stride(pub(super) i64);

impl Stride {
    fn of(number: u64, field: &'static str) -> Result<Self, Fault> {
        if number == 0 { Err(Fault::Invalid(field, 0)) } else { Ok(Self(unzigzag(number))) }
    }
}

impl Form<'_> for bool {
    const FLAGS: u64 = 1;

    #[inline(always)]
    fn flags(&self) -> u64 {
        (*self).into()
    }
    #[inline(always)]
    fn put(&self, _: &mut Encoder<'_>) {}
    #[inline(always)]
    fn get(_: &mut Decoder<'_, '_>, flags: u64, _: &'static str) -> Result<Self, Fault> {
        Ok(flags & 1 != 0)
    }
}

impl<'a, T: Form<'a>> Form<'a> for Option<T> {
    const FLAGS: u64 = 1;

    #[inline(always)]
    fn flags(&self) -> u64 {
        self.is_some().into()
    }
    #[inline(always)]
    fn put(&self, to: &mut Encoder<'_>) {
        if let Some(value) = self {
            value.put_whole(to);
        }
    }
    #[inline(always)]
    fn get(from: &mut Decoder<'_, 'a>, flags: u64, field: &'static str) -> Result<Self, Fault> {
        Ok(if flags & 1 != 0 { Some(T::get_whole(from, field)?) } else { None })
    }
    fn refers(&self, see: &mut impl FnMut(Class, u32)) {
        self.iter().for_each(|value| value.refers(see));
    }
}

/// Flags the other way round.
pub(super) struct Not<T>(pub(super) T);

impl<'a, T: Form<'a>> Form<'a> for Not<T> {
    #[inline(always)]
    fn flags(&self) -> u64 {
        T::FLAGS - self.0.flags()
    }
    #[inline(always)]
    fn put(&self, to: &mut Encoder<'_>) {
        self.0.put(to);
    }
    #[inline(always)]
    fn get(from: &mut Decoder<'_, 'a>, flags: u64, field: &'static str) -> Result<Self, Fault> {
        T::get(from, !flags, field).map(Self)
    }
}

impl Form<'_> for SendMode {
    #[inline(always)]
    fn flags(&self) -> u64 {
        *self as u64
    }
    #[inline(always)]
    fn put(&self, _: &mut Encoder<'_>) {}
    #[inline(always)]
    fn get(_: &mut Decoder<'_, '_>, flags: u64, _: &'static str) -> Result<Self, Fault> {
        Ok([Self::Standard, Self::Buffered, Self::Synchronous, Self::Ready][flags as usize & 3])
    }
}

impl<'a> Form<'a> for &'a str {
    fn put(&self, to: &mut Encoder<'_>) {
        to.sink.text(self);
    }
    fn get(from: &mut Decoder<'_, 'a>, _: u64, field: &'static str) -> Result<Self, Fault> {
        let bytes = from.source.text()?;
        let text = std::str::from_utf8(bytes).map_err(|_| Fault::Invalid(field, bytes.len() as u64))?;
        let copy = from.room.text.take().ok_or(NO_ROOM)?;
        copy.clear();
        copy.push_str(text);
        Ok(copy)
    }
}

/// A list that may be empty; then it is omitted.
impl<'a> Form<'a> for &'a [u64] {
    fn flags(&self) -> u64 {
        (!self.is_empty()).into()
    }
    fn put(&self, to: &mut Encoder<'_>) {
        if !self.is_empty() {
            to.sink.list(self.iter().copied());
        }
    }
    fn get(from: &mut Decoder<'_, 'a>, flags: u64, _: &'static str) -> Result<Self, Fault> {
        if flags & 1 == 0 {
            return Ok(&[]);
        }
        let list = from.room.counts.next();
        from.list(list, Decoder::number)
    }
}

impl<'a> Form<'a> for &'a [Rank] {
    fn put(&self, to: &mut Encoder<'_>) {
        to.sink.list(self.iter().map(|rank| rank.0.into()));
    }
    fn get(from: &mut Decoder<'_, 'a>, _: u64, _: &'static str) -> Result<Self, Fault> {
        let list = from.room.ranks.next();
        from.list(list, |from| Ok(Rank(from.number32("rank")?)))
    }
}

/// Each rank plus one, and 0 for none.
impl<'a> Form<'a> for &'a [Option<CommRank>] {
    fn put(&self, to: &mut Encoder<'_>) {
        to.sink.list(self.iter().map(|peer| peer.map_or(0, |rank| u64::from(rank.0) + 1)));
    }
    fn get(from: &mut Decoder<'_, 'a>, _: u64, field: &'static str) -> Result<Self, Fault> {
        let list = from.room.peers.next();
        from.list(list, |from| {
            let Some(rank) = from.number()?.checked_sub(1) else { return Ok(None) };
            u32::try_from(rank).map(|rank| Some(CommRank(rank))).map_err(|_| Fault::Invalid(field, rank))
        })
    }
}

/// The request that a call starts is the next of its thread.
impl Form<'_> for RequestId {
    #[inline(always)]
    fn put(&self, _: &mut Encoder<'_>) {}
    #[inline(always)]
    fn get(from: &mut Decoder<'_, '_>, _: u64, _: &'static str) -> Result<Self, Fault> {
        Ok(from.next)
    }
}

/// An earlier request: its number in front of `next`, then of foreign ones the thread.
pub(super) struct Earlier(pub(super) RequestId);

impl Form<'_> for Earlier {
    fn put(&self, to: &mut Encoder<'_>) {
        put_request(to, to.next.number, self.0, 0);
    }
    fn get(from: &mut Decoder<'_, '_>, _: u64, _: &'static str) -> Result<Self, Fault> {
        let (request, _) = get_request(from, from.next.number)?;
        Ok(Self(request))
    }
}

/// Low bits of a request's number: the outcome, and whether another thread started it.
const OUTCOME: u64 = 3;
const FOREIGN: u64 = 4;
const REQUEST_AT: u32 = 3;

/// Writes the reference to a request, with an outcome: own requests by their distance from `previous`, so that requests completed
/// in the order of their starts take one byte each.
pub(super) fn put_request(to: &mut Encoder<'_>, previous: u64, request: RequestId, outcome: u64) {
    if request.thread == to.next.thread {
        let distance = zigzag(request.number.wrapping_sub(previous) as i64);
        to.sink.put(distance << REQUEST_AT | outcome);
    } else {
        to.sink.put(request.number << REQUEST_AT | FOREIGN | outcome);
        to.sink.put(request.thread.into());
    }
}

/// The reverse of [`put_request`].
pub(super) fn get_request(from: &mut Decoder<'_, '_>, previous: u64) -> Result<(RequestId, u64), Fault> {
    let number = from.number()?;
    let (code, outcome) = (number >> REQUEST_AT, number & OUTCOME);
    if number & FOREIGN == 0 {
        let number = previous.wrapping_add(unzigzag(code) as u64);
        return Ok((RequestId { number, ..from.next }, outcome));
    }
    let thread = from.number()?;
    let thread = u16::try_from(thread).map_err(|_| Fault::Invalid("thread", thread))?;
    Ok((RequestId { thread, number: code }, outcome))
}
