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
    Action, Collective, Communicator, Completion, Completions, Creation, Datatype, Detail, Io, Meeting,
    MeetingWay, Members, Neighbourhood, Origin, Outcome, Partitioned, PartitionedInit, PostReceive, Receive,
    Remote, RequestId, Send, Split, Tile, Topology, Transfer,
};
use super::forms::{
    Class, Decoder, Earlier, Encoder, Fault, Form, Not, Signed, Stride, get_request, put_request,
};
use crate::operation::Amounts;

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
                // There may be no fields.
                let _ = &to;
                match self {
                    $(Self::$variant $(($value))? $({ $($field),* })? => {
                        $(part!(put to wrapped!($value $(, $value_wrapper)?) $(, $value_bit)?);)?
                        $($(part!(put to wrapped!($field $(, $wrapper)?) $(, $bit)?);)*)?
                    })*
                }
            }
            #[inline(always)]
            fn get(from: &mut Decoder<'_, 'a>, flags: u64, field: &'static str) -> Result<Self, Fault> {
                let _ = &from;
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
        50 Partitioned(call),
        51 Preempted,
        52..=56 Meeting(meeting / 1),
    }
    Partitioned {
        0..=1 Init(init / 1),
        2 Start { id, request },
        3 Ready { id, first, count, bytes },
        4 Arrived { id, partition },
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
    MeetingWay {
        0 Spawned,
        1 Parents,
        2 Accepted,
        3 Connected,
        4 Unseen,
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
        35 FileViewTiled { file, displacement, unit, tile },
        36 FileSeek { file, position },
        37 FileOpenAt { id, comm, mode as Signed, position, name },
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
    Meeting<'a> { first, count, way / 1, comm, name }
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
    PartitionedInit { id, comm, peer, tag, partitions, bytes, datatype, sends / 1 }
    Amounts { send, recv }
    Tile { size, extent, first, span }
    Transfer { window, target, displacement, sent, fetched, at_target, request / 1 }
    Io { file, offset / 1, write / 2, collective / 4, request / 8 }
}
