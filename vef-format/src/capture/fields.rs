//! The fields of every action, described once, in their order in the file: records are written and read by the same tables.
//!
//! A table names the fields of a structure, or the variants of an enum and the fields of each:
//!
//! ```text
//! Send { comm, dest, tag, bytes, datatype, mode / 1, request / 4 }
//! ```
//!
//! Of some fields a part is not a number of its own but *flags*: whether an `Option` has a value, the variant of an enum. With
//! `/ bit` they are added to the flags of the structure, times `bit`; otherwise they precede the field as a number. The flags of
//! an action itself are the kind of its record. `as` names a wrapper that has another form than the field's type.

use super::event::{
    Action, Collective, Communicator, Completion, Completions, Creation, Datatype, DatatypeId, Detail,
    FileId, Io, Members, Neighbourhood, Origin, Outcome, PostReceive, Receive, Remote, RequestId, Send,
    SendMode, Split, Topology, Transfer, WindowId,
};
use crate::ids::{CommId, CommRank, Rank};
use crate::operation::{Amounts, Operation};
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
    completions: Option<&'a mut Vec<Completion>>,
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
    fn number(&mut self) -> Result<u64, Fault> {
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
    fn flags(&mut self, largest: u64) -> Result<u64, Fault> {
        match self.source.get()? {
            flags if flags <= largest => Ok(flags),
            flags => Err(Fault::Invalid("flags", flags)),
        }
    }

    /// Reads a list, whose items have at least one byte each.
    fn list<'l, T>(
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
    FileId: value => value.0.into(), from _field => FileId(from.number32("file")?), File;
}

fn operation(number: u64) -> Result<Operation, Fault> {
    let known = usize::try_from(number).ok().and_then(|index| Operation::ALL.get(index));
    known.copied().ok_or(Fault::Invalid("collective operation", number))
}

/// An `i32` that is small whatever its sign.
struct Signed(i32);

impl Signed {
    fn of(number: u64, field: &'static str) -> Result<Self, Fault> {
        i32::try_from(unzigzag(number)).map(Self).map_err(|_| Fault::Invalid(field, number))
    }
}

/// An `i64` other than 0.
struct Stride(i64);

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
struct Not<T>(T);

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
struct Earlier(RequestId);

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
fn put_request(to: &mut Encoder<'_>, previous: u64, request: RequestId, outcome: u64) {
    if request.thread == to.next.thread {
        let distance = zigzag(request.number.wrapping_sub(previous) as i64);
        to.sink.put(distance << REQUEST_AT | outcome);
    } else {
        to.sink.put(request.number << REQUEST_AT | FOREIGN | outcome);
        to.sink.put(request.thread.into());
    }
}

/// The reverse of [`put_request`].
fn get_request(from: &mut Decoder<'_, '_>, previous: u64) -> Result<(RequestId, u64), Fault> {
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

/// A run of the thread's own requests, as [`Completions::run`] makes it, or a list.
impl<'a> Form<'a> for Completions<'a> {
    fn flags(&self) -> u64 {
        matches!(self, Self::List(_)).into()
    }
    fn put(&self, to: &mut Encoder<'_>) {
        match *self {
            Self::Run { first, count } => {
                to.sink.put(count);
                to.sink.put(to.next.number.wrapping_sub(first.number).wrapping_sub(count));
            }
            Self::List(list) => {
                to.sink.put(list.len() as u64);
                let mut previous = to.next.number;
                for Completion { request, outcome } in list {
                    put_request(to, previous, *request, outcome.flags());
                    if request.thread == to.next.thread {
                        previous = request.number.wrapping_add(1);
                    }
                    outcome.put(to);
                }
            }
        }
    }
    fn get(from: &mut Decoder<'_, 'a>, flags: u64, _: &'static str) -> Result<Self, Fault> {
        if flags & 1 == 0 {
            let (count, after) = (from.number()?, from.number()?);
            return Self::before(from.next, count, after);
        }
        let list = from.room.completions.take();
        let next = from.next;
        let mut previous = next.number;
        let item = |from: &mut Decoder<'_, 'a>| {
            let (request, outcome) = get_request(from, previous)?;
            if request.thread == next.thread {
                if request.number >= next.number {
                    return Err(Fault::Invalid("request that was not made yet", request.number));
                }
                previous = request.number + 1;
            }
            Ok(Completion { request, outcome: Outcome::get(from, outcome, "outcome")? })
        };
        from.list(list, item).map(Self::List)
    }
}

impl Completions<'_> {
    /// `count` requests of a thread, which has started `after` more since and starts `next` next.
    #[inline]
    pub(super) fn before(next: RequestId, count: u64, after: u64) -> Result<Self, Fault> {
        let end = next.number.checked_sub(after).ok_or(Fault::Invalid("distance of a request", after))?;
        let number = end.checked_sub(count).ok_or(Fault::Invalid("number of completed requests", count))?;
        Ok(Self::Run { first: RequestId { number, ..next }, count })
    }
}

/// The value of a field, in its wrapper if there is one.
macro_rules! wrapped {
    ($value:expr) => {
        $value
    };
    ($value:expr, $wrapper:ident) => {
        $wrapper($value.clone())
    };
}

/// The same as a pattern.
macro_rules! unwrapped {
    ($field:ident) => {
        $field
    };
    ($field:ident, $wrapper:ident) => {
        $wrapper($field)
    };
}

/// A value as part of a structure: without a bit its flags are a number of their own.
macro_rules! part {
    (flags $value:expr) => {
        0
    };
    (flags $value:expr, $bit:literal) => {
        $value.flags() * $bit
    };
    (put $to:ident $value:expr) => {
        $value.put_whole($to)
    };
    (put $to:ident $value:expr, $bit:literal) => {
        $value.put($to)
    };
    (get $from:ident $flags:ident $field:ident) => {
        Form::get_whole($from, stringify!($field))?
    };
    (get $from:ident $flags:ident $field:ident, $bit:literal) => {
        Form::get($from, $flags / $bit, stringify!($field))?
    };
}

/// Structures: the largest value of their flags where these are a number in front, and the fields; or a field in
/// front of that number.
macro_rules! structures {
    ($($type:ident $(<$life:lifetime>)? $($most:literal)? {
        $([$front:ident, flags: $largest:literal])?
        $($field:ident $(as $wrapper:ident)? $(/ $bit:literal)?),*
    })*) => { $(
        impl<'a> Form<'a> for $type $(<$life>)? {
            $(const FLAGS: u64 = $most;)?

            #[inline(always)]
            fn flags(&self) -> u64 {
                0 $(+ part!(flags wrapped!(self.$field $(, $wrapper)?) $(, $bit)?))*
            }
            #[inline(always)]
            fn put(&self, to: &mut Encoder<'_>) {
                $(self.$front.put_whole(to);
                to.sink.put(self.flags());)?
                $(part!(put to wrapped!(self.$field $(, $wrapper)?) $(, $bit)?);)*
            }
            #[inline(always)]
            fn get(from: &mut Decoder<'_, 'a>, flags: u64, _: &'static str) -> Result<Self, Fault> {
                let _ = flags;
                $(let $front = part!(get from flags $front);
                let flags = from.flags($largest)?;)?
                $(let unwrapped!($field $(, $wrapper)?) = part!(get from flags $field $(, $bit)?);)*
                Ok(Self { $($front,)? $($field),* })
            }
            fn refers(&self, see: &mut impl FnMut(Class, u32)) {
                let _ = &see;
                $(self.$field.refers(see);)*
            }
        }
    )* };
}

/// Enums: the flags of each variant, and its fields.
macro_rules! variants {
    ($($type:ident $(<$life:lifetime>)? {
        $($first:literal $(..= $last:literal)? $variant:ident
            $(($value:ident $(as $value_wrapper:ident)? $(/ $value_bit:literal)?))?
            $({ $($field:ident $(as $wrapper:ident)? $(/ $bit:literal)?),* })?,)*
    })*) => { $(
        impl<'a> Form<'a> for $type $(<$life>)? {
            const FLAGS: u64 = u64::MAX;

            #[inline(always)]
            fn flags(&self) -> u64 {
                match self {
                    $(Self::$variant $(($value))? $({ $($field),* })? => {
                        $(let _ = $value;)?
                        $($(let _ = $field;)*)?
                        $first
                            $(+ part!(flags wrapped!($value $(, $value_wrapper)?) $(, $value_bit)?))?
                            $($(+ part!(flags wrapped!($field $(, $wrapper)?) $(, $bit)?))*)?
                    })*
                }
            }
            #[inline(always)]
            fn put(&self, to: &mut Encoder<'_>) {
                match self {
                    $(Self::$variant $(($value))? $({ $($field),* })? => {
                        $(part!(put to wrapped!($value $(, $value_wrapper)?) $(, $value_bit)?);)?
                        $($(part!(put to wrapped!($field $(, $wrapper)?) $(, $bit)?);)*)?
                    })*
                }
            }
            #[inline(always)]
            fn get(from: &mut Decoder<'_, 'a>, flags: u64, field: &'static str) -> Result<Self, Fault> {
                Ok(match flags {
                    $($first $(..= $last)? => {
                        let flags = flags - $first;
                        let _ = flags;
                        $(let unwrapped!($value $(, $value_wrapper)?) =
                            part!(get from flags $value $(, $value_bit)?);)?
                        $($(let unwrapped!($field $(, $wrapper)?) =
                            part!(get from flags $field $(, $bit)?);)*)?
                        Self::$variant $(($value))? $({ $($field),* })?
                    })*
                    other => return Err(Fault::Invalid(field, other)),
                })
            }
            fn refers(&self, see: &mut impl FnMut(Class, u32)) {
                let _ = &see;
                match self {
                    $(Self::$variant $(($value))? $({ $($field),* })? => {
                        $($value.refers(see);)?
                        $($($field.refers(see);)*)?
                    })*
                }
            }
        }
    )* };
}

variants! {
    Action<'a> {
        1 Init,
        2 Finalize,
        3 Abort { code },
        4 Communicator(communicator),
        5 Datatype(datatype),
        6 CommunicatorFree(communicator),
        7..=8 Phase { begin as Not / 1, name },
        9 Other { bytes, detail },
        10 Stopped { reason },
        11 Forget(request as Earlier),
        12 Probe { comm, source, tag },
        13..=14 Complete(completions / 1),
        15 Collective(part),
        16..=23 Send(send / 1),
        24..=27 Receive(receive / 1),
        28..=31 PostReceive(post / 1),
        32..=35 Exchange { send, receive / 1 },
        38 Polls { count },
        39..=40 Creation(creation / 1),
        41 Topology(topology),
        42..=49 Neighbourhood(part / 1),
    }
    Origin {
        0 World,
        1 SelfOnly,
        2 Child { parent, ordinal },
        3 Group { parent, tag, ordinal },
        4 Unseen { ordinal },
    }
    Members<'a> {
        0 All,
        1 Strided { first, stride as Stride, count },
        2 List(ranks),
    }
    Remote<'a> {
        0 None,
        1 Inside(members),
        2 Outside(size),
    }
    Detail<'a> {
        0 None,
        1 Window { id, comm, size, unit },
        2 WindowFree(window),
        4..=5 Transfer(transfer / 1),
        8..=15 Sync { window, assert as Signed, target / 1, exclusive / 2, group / 4 },
        16..=31 Io(io / 1),
        32 FileOpen { id, comm, mode as Signed, name },
        33 FileView { file, displacement, unit },
        34 FileClose(file),
    }
    Outcome {
        0 Done,
        1..=2 Received { source, tag, bytes / 1 },
        3 Cancelled,
    }
}

structures! {
    Communicator<'a> { id, foreign, origin, split, members, remote }
    Creation { comm, request / 1 }
    Split { color as Signed, key as Signed }
    Datatype<'a> { id, size, contiguous, name }
    Send 3 { comm, dest, tag, bytes, datatype, mode / 1, request / 4 }
    Receive { comm, source, tag, bytes, datatype, any_source / 1, any_tag / 2 }
    PostReceive { comm, source as Not / 1, tag as Not / 2, bytes, datatype, request }
    Collective<'a> {
        [operation, flags: 31]
        comm, root / 2, amounts, count, datatype, recv_datatype / 16, send_counts / 4, recv_counts / 8, request / 1
    }
    Topology<'a> { comm, sources, destinations }
    Neighbourhood<'a> { comm, block, datatype, send_counts / 2, recv_counts / 4, request / 1 }
    Amounts { send, recv }
    Transfer { window, target, displacement, sent, fetched, at_target, request / 1 }
    Io { file, offset / 1, write / 2, collective / 4, request / 8 }
}
