//! Encodes [`Action`]s as records; [`super::decode`] is the reverse.
//!
//! A record is a [word](super::word), or a kind byte and numbers in the form of [`crate::varint`]: the gap since the end of
//! the thread's previous record and the duration of the call, both in ticks, the function's slot in the call table plus
//! one (0: none), and the fields of the kind. The kind byte is never zero and is stored last, so an incomplete record
//! begins with zero.

use super::event::{
    Action, CallSlot, Collective, Communicator, Completion, Completions, Detail, Io, Members, Origin,
    Outcome, Receive, Remote, RequestId, Send, Transfer,
};
use crate::varint::{MAX_LEN, Sink};

/// Kind bytes. `SEND` … `COLLECTIVE` are bases to which flags are added.
pub(super) mod kind {
    pub(crate) const INIT: u8 = 1;
    pub(crate) const FINALIZE: u8 = 2;
    pub(crate) const ABORT: u8 = 3;
    pub(crate) const COMMUNICATOR: u8 = 4;
    pub(crate) const DATATYPE: u8 = 5;
    pub(crate) const COMMUNICATOR_FREE: u8 = 6;
    pub(crate) const PHASE_BEGIN: u8 = 7;
    pub(crate) const PHASE_END: u8 = 8;
    pub(crate) const OTHER: u8 = 9;
    pub(crate) const STOPPED: u8 = 10;
    pub(crate) const FORGET: u8 = 11;
    pub(crate) const PROBE: u8 = 12;
    /// Completion of own requests that were started consecutively.
    pub(crate) const COMPLETE_RUN: u8 = 13;
    pub(crate) const COMPLETE: u8 = 14;
    /// Operation (index in `Operation::ALL`) and flags follow.
    pub(crate) const COLLECTIVE: u8 = 15;
    /// + mode (0…3) + 4 if non-blocking.
    pub(crate) const SEND: u8 = 16;
    /// + 1 any source + 2 any tag.
    pub(crate) const RECEIVE: u8 = 24;
    /// + 1 any source + 2 any tag.
    pub(crate) const POST_RECEIVE: u8 = 28;
    /// + 1 any source + 2 any tag, of the receiving half.
    pub(crate) const EXCHANGE: u8 = 32;
    /// A shape number and a record of another kind, which defines the shape.
    pub(crate) const DEFINE: u8 = 36;
    /// A call of a defined shape whose times do not fit into a word.
    pub(crate) const SHAPE: u8 = 37;
    pub(crate) const POLLS: u8 = 38;

    pub(crate) const ANY_SOURCE: u8 = 1;
    pub(crate) const ANY_TAG: u8 = 2;
}

/// Flags of [`kind::COLLECTIVE`].
pub(super) mod collective_flag {
    pub(crate) const REQUEST: u64 = 1;
    pub(crate) const ROOT: u64 = 2;
    pub(crate) const SEND_COUNTS: u64 = 4;
    pub(crate) const RECV_COUNTS: u64 = 8;
    pub(crate) const RECV_DATATYPE: u64 = 16;
    pub(crate) const ALL: u64 = 31;
}

/// Codes of [`Detail`]s.
pub(super) mod detail {
    pub(crate) const NONE: u64 = 0;
    pub(crate) const WINDOW: u64 = 1;
    pub(crate) const WINDOW_FREE: u64 = 2;
    /// + 1 if it starts a request.
    pub(crate) const TRANSFER: u64 = 4;
    /// + 1 target + 2 exclusive + 4 group.
    pub(crate) const SYNC: u64 = 8;
    /// + 1 offset + 2 write + 4 collective + 8 request.
    pub(crate) const IO: u64 = 16;
    pub(crate) const FILE_OPEN: u64 = 32;
    pub(crate) const FILE_VIEW: u64 = 33;
    pub(crate) const FILE_CLOSE: u64 = 34;
}

/// Low bits of a completion's number.
pub(super) mod outcome {
    pub(crate) const DONE: u64 = 0;
    pub(crate) const RECEIVED: u64 = 1;
    pub(crate) const RECEIVED_BYTES: u64 = 2;
    pub(crate) const CANCELLED: u64 = 3;
    /// Another thread started the request; its number follows.
    pub(crate) const FOREIGN: u64 = 4;
    pub(crate) const BITS: u32 = 3;
}

/// Times of a call, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From the end of the thread's previous record to the start of the call.
    pub gap: u64,
    /// From the start of the call to its end.
    pub duration: u64,
}

/// The thread that writes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    /// The thread.
    pub thread: u16,
    /// Number of requests it has started, which is the number of its next request.
    pub requests: u64,
}

/// Writes one record at index `at` of `bytes`; returns the index of the next, or `None` if there is not enough room (only
/// bytes of an invalid record were written then).
///
/// A request that the action starts must be `author`'s next; the caller counts requests.
pub fn record(
    bytes: &mut [u8],
    at: usize,
    times: Times,
    author: Author,
    call: CallSlot,
    action: &Action<'_>,
) -> Option<usize> {
    write(bytes, at, times, call, |sink| body(sink, author, action))
}

/// Like [`record`], for an action that [`can_be_shape`]; also defines `shape`.
pub fn define(
    bytes: &mut [u8],
    at: usize,
    times: Times,
    author: Author,
    call: CallSlot,
    action: &Action<'_>,
    shape: u16,
) -> Option<usize> {
    debug_assert!(can_be_shape(action));
    write(bytes, at, times, call, |sink| {
        sink.put(u64::from(shape));
        // The kind is stored after the rest is written; all kinds take one byte.
        let mut rest = [0; MOST_OF_SHAPE];
        let mut inner = Sink::new(&mut rest, 0);
        let kind = body(&mut inner, author, action);
        let len = inner.position().unwrap_or(0);
        sink.put(u64::from(kind));
        sink.raw(&rest[..len]);
        kind::DEFINE
    })
}

/// Like [`record`], for a call of a defined shape.
pub fn shape(bytes: &mut [u8], at: usize, times: Times, shape: u16) -> Option<usize> {
    // The shape includes the function.
    write(bytes, at, times, CallSlot::NONE, |sink| {
        sink.put(u64::from(shape));
        kind::SHAPE
    })
}

/// Like [`record`], for an [`Action::Complete`] of `count` of the author's requests that were started consecutively, all of
/// them [`Outcome::Done`]; `after` requests were started after the last of them.
pub fn run(
    bytes: &mut [u8],
    at: usize,
    times: Times,
    call: CallSlot,
    count: u64,
    after: u64,
) -> Option<usize> {
    write(bytes, at, times, call, |sink| {
        sink.put(count);
        sink.put(after);
        kind::COMPLETE_RUN
    })
}

/// Like [`record`], for an [`Action::Complete`] of `author`'s own requests with these numbers, all of them
/// [`Outcome::Done`].
pub fn completed(
    bytes: &mut [u8],
    at: usize,
    times: Times,
    author: Author,
    call: CallSlot,
    numbers: impl ExactSizeIterator<Item = u64>,
) -> Option<usize> {
    write(bytes, at, times, call, |sink| {
        sink.put(numbers.len() as u64);
        let mut previous = author.requests;
        for number in numbers {
            sink.put(own_head(previous, number, outcome::DONE));
            previous = number.wrapping_add(1);
        }
        kind::COMPLETE
    })
}

/// Writes one record: times, function, and the fields that `rest` writes; `rest` returns the kind.
#[inline(always)]
fn write(
    bytes: &mut [u8],
    at: usize,
    times: Times,
    call: CallSlot,
    rest: impl FnOnce(&mut Sink<'_>) -> u8,
) -> Option<usize> {
    let mut sink = Sink::new(bytes, at.checked_add(1)?);
    sink.put(times.gap);
    sink.put(times.duration);
    sink.put(u64::from(call.0.wrapping_add(1)));
    let kind = rest(&mut sink);
    let end = sink.position()?;
    commit(bytes.get_mut(at)?, kind);
    Some(end)
}

/// Maximum bytes of an action that can be a shape (eleven numbers, of an exchange).
const MOST_OF_SHAPE: usize = 12 * MAX_LEN;

/// Makes the record at `first` valid.
#[inline(always)]
fn commit(first: &mut u8, kind: u8) {
    // A killed process leaves its stores in program order; the fence keeps the compiler from reordering them.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
    *first = kind;
}

/// Whether the action can be a shape: no lists, no text, no definition.
pub fn can_be_shape(action: &Action<'_>) -> bool {
    match action {
        Action::Send(_)
        | Action::Receive(_)
        | Action::PostReceive(_)
        | Action::Exchange { .. }
        | Action::Probe { .. } => true,
        Action::Collective(part) => part.send_counts.is_empty() && part.recv_counts.is_empty(),
        Action::Other { detail, .. } => match detail {
            Detail::None | Detail::Transfer(_) | Detail::Io(_) => true,
            Detail::Sync { group, .. } => group.is_none(),
            _ => false,
        },
        _ => false,
    }
}

/// The length of the run that `completions` form, and the number of requests started after it; `None`: no run.
pub fn as_run(completions: Completions<'_>, author: Author) -> Option<(u64, u64)> {
    let first = match completions {
        Completions::List(list) => list.first()?.request,
        Completions::Run { first, .. } => first,
    };
    let count = completions.len();
    let after = author.requests.checked_sub(first.number.checked_add(count)?)?;
    let in_order = match completions {
        Completions::List(list) => list.iter().zip(first.number..).all(|(completion, number)| {
            completion.outcome == Outcome::Done
                && completion.request == RequestId { thread: author.thread, number }
        }),
        Completions::Run { .. } => first.thread == author.thread && count > 0,
    };
    in_order.then_some((count, after))
}

/// Writes what follows the times; returns the kind.
pub(super) fn body(sink: &mut Sink<'_>, author: Author, action: &Action<'_>) -> u8 {
    match action {
        Action::Init => kind::INIT,
        Action::Finalize => kind::FINALIZE,
        Action::Abort { code } => {
            sink.put(u64::from(*code as u32));
            kind::ABORT
        }
        Action::Communicator(comm) => communicator(sink, comm),
        Action::Datatype(datatype) => {
            sink.put(u64::from(datatype.id.0));
            sink.put(datatype.size.0);
            sink.put(u64::from(datatype.contiguous));
            sink.text(datatype.name);
            kind::DATATYPE
        }
        Action::CommunicatorFree(comm) => {
            sink.put(u64::from(comm.0));
            kind::COMMUNICATOR_FREE
        }
        Action::Send(send) => {
            put_send(sink, send);
            kind::SEND + send.mode as u8 + if send.request.is_some() { 4 } else { 0 }
        }
        Action::Receive(receive) => {
            put_receive(sink, receive);
            kind::RECEIVE + wildcards(receive)
        }
        Action::PostReceive(post) => {
            sink.put(u64::from(post.comm.0));
            if let Some(source) = post.source {
                sink.put(u64::from(source.0));
            }
            if let Some(tag) = post.tag {
                sink.put(u64::from(tag as u32));
            }
            sink.put(post.bytes.0);
            sink.put(u64::from(post.datatype.0));
            let any_source = if post.source.is_none() { kind::ANY_SOURCE } else { 0 };
            let any_tag = if post.tag.is_none() { kind::ANY_TAG } else { 0 };
            kind::POST_RECEIVE + any_source + any_tag
        }
        Action::Exchange { send, receive } => {
            sink.put(send.mode as u64);
            put_send(sink, send);
            put_receive(sink, receive);
            kind::EXCHANGE + wildcards(receive)
        }
        Action::Complete(completions) => complete(sink, author, *completions),
        Action::Forget(request) => {
            sink.put(completion_head(author, author.requests, *request, outcome::DONE));
            if request.thread != author.thread {
                sink.put(u64::from(request.thread));
            }
            kind::FORGET
        }
        Action::Probe { comm, source, tag } => {
            sink.put(u64::from(comm.0));
            sink.put(u64::from(source.0));
            sink.put(u64::from(*tag as u32));
            kind::PROBE
        }
        Action::Collective(part) => collective(sink, part),
        Action::Phase { begin, name } => {
            sink.text(name);
            if *begin { kind::PHASE_BEGIN } else { kind::PHASE_END }
        }
        Action::Other { bytes, detail } => {
            sink.put(bytes.0);
            put_detail(sink, detail);
            kind::OTHER
        }
        Action::Polls { count } => {
            sink.put(*count);
            kind::POLLS
        }
        Action::Stopped { reason } => {
            sink.text(reason);
            kind::STOPPED
        }
    }
}

/// The request that `action` starts.
pub fn makes_request(action: &Action<'_>) -> Option<RequestId> {
    match action {
        Action::Send(send) => send.request,
        Action::PostReceive(post) => Some(post.request),
        Action::Collective(part) => part.request,
        Action::Other {
            detail: Detail::Transfer(Transfer { request, .. }) | Detail::Io(Io { request, .. }),
            ..
        } => *request,
        _ => None,
    }
}

fn put_send(sink: &mut Sink<'_>, send: &Send) {
    sink.put(u64::from(send.comm.0));
    sink.put(u64::from(send.dest.0));
    sink.put(u64::from(send.tag as u32));
    sink.put(send.bytes.0);
    sink.put(u64::from(send.datatype.0));
}

fn put_receive(sink: &mut Sink<'_>, receive: &Receive) {
    sink.put(u64::from(receive.comm.0));
    sink.put(u64::from(receive.source.0));
    sink.put(u64::from(receive.tag as u32));
    sink.put(receive.bytes.0);
    sink.put(u64::from(receive.datatype.0));
}

fn wildcards(receive: &Receive) -> u8 {
    (if receive.any_source { kind::ANY_SOURCE } else { 0 }) + if receive.any_tag { kind::ANY_TAG } else { 0 }
}

/// The number of a completion: own requests by their zigzag distance from `previous`, so that requests completed in the
/// order of their starts take one byte each.
fn completion_head(author: Author, previous: u64, request: RequestId, outcome: u64) -> u64 {
    if request.thread == author.thread {
        own_head(previous, request.number, outcome)
    } else {
        request.number << outcome::BITS | outcome::FOREIGN | outcome
    }
}

/// [`completion_head`] of an own request.
fn own_head(previous: u64, number: u64, outcome: u64) -> u64 {
    zigzag(number.wrapping_sub(previous) as i64) << outcome::BITS | outcome
}

fn complete(sink: &mut Sink<'_>, author: Author, completions: Completions<'_>) -> u8 {
    if let Some((count, after)) = as_run(completions, author) {
        sink.put(count);
        sink.put(after);
        return kind::COMPLETE_RUN;
    }
    sink.put(completions.len());
    let mut previous = author.requests;
    for Completion { request, outcome } in completions.iter() {
        let low = match outcome {
            Outcome::Done => outcome::DONE,
            Outcome::Received { bytes: None, .. } => outcome::RECEIVED,
            Outcome::Received { bytes: Some(_), .. } => outcome::RECEIVED_BYTES,
            Outcome::Cancelled => outcome::CANCELLED,
        };
        sink.put(completion_head(author, previous, request, low));
        if request.thread == author.thread {
            previous = request.number.wrapping_add(1);
        } else {
            sink.put(u64::from(request.thread));
        }
        if let Outcome::Received { source, tag, bytes } = outcome {
            sink.put(u64::from(source.0));
            sink.put(u64::from(tag as u32));
            if let Some(bytes) = bytes {
                sink.put(bytes.0);
            }
        }
    }
    kind::COMPLETE
}

fn collective(sink: &mut Sink<'_>, part: &Collective<'_>) -> u8 {
    // The index in `Operation::ALL`.
    sink.put(part.operation as u64);
    let flag = |set: bool, flag: u64| if set { flag } else { 0 };
    sink.put(
        flag(part.request.is_some(), collective_flag::REQUEST)
            | flag(part.root.is_some(), collective_flag::ROOT)
            | flag(!part.send_counts.is_empty(), collective_flag::SEND_COUNTS)
            | flag(!part.recv_counts.is_empty(), collective_flag::RECV_COUNTS)
            | flag(part.recv_datatype.is_some(), collective_flag::RECV_DATATYPE),
    );
    sink.put(u64::from(part.comm.0));
    if let Some(root) = part.root {
        sink.put(u64::from(root.0));
    }
    sink.put(part.amounts.send.0);
    sink.put(part.amounts.recv.0);
    sink.put(part.count);
    sink.put(u64::from(part.datatype.0));
    if let Some(datatype) = part.recv_datatype {
        sink.put(u64::from(datatype.0));
    }
    for counts in [part.send_counts, part.recv_counts].into_iter().filter(|counts| !counts.is_empty()) {
        sink.list(counts.iter().copied());
    }
    kind::COLLECTIVE
}

fn communicator(sink: &mut Sink<'_>, comm: &Communicator<'_>) -> u8 {
    sink.put(u64::from(comm.id.0));
    sink.put(u64::from(comm.foreign));
    match comm.origin {
        Origin::World => sink.put(0),
        Origin::SelfOnly => sink.put(1),
        Origin::Child { parent, ordinal } => {
            sink.put(2);
            sink.put(u64::from(parent.0));
            sink.put(u64::from(ordinal));
        }
        Origin::Group { parent, tag, ordinal } => {
            sink.put(3);
            sink.put(u64::from(parent.0));
            sink.put(u64::from(tag as u32));
            sink.put(u64::from(ordinal));
        }
        Origin::Unseen { ordinal } => {
            sink.put(4);
            sink.put(u64::from(ordinal));
        }
    }
    sink.put(u64::from(comm.split.is_some()));
    if let Some(split) = comm.split {
        sink.put(zigzag(split.color.into()));
        sink.put(zigzag(split.key.into()));
    }
    members(sink, comm.members);
    match comm.remote {
        None => sink.put(0),
        Some(Remote::Inside(group)) => {
            sink.put(1);
            members(sink, group);
        }
        Some(Remote::Outside(size)) => {
            sink.put(2);
            sink.put(u64::from(size));
        }
    }
    kind::COMMUNICATOR
}

fn members(sink: &mut Sink<'_>, members: Members<'_>) {
    match members {
        Members::All => sink.put(0),
        Members::Strided { first, stride, count } => {
            sink.put(1);
            sink.put(u64::from(first.0));
            sink.put(zigzag(stride));
            sink.put(u64::from(count));
        }
        Members::List(ranks) => {
            sink.put(2);
            sink.list(ranks.iter().map(|rank| u64::from(rank.0)));
        }
    }
}

fn put_detail(sink: &mut Sink<'_>, detail: &Detail<'_>) {
    let flag = |set: bool, flag: u64| if set { flag } else { 0 };
    match *detail {
        Detail::None => sink.put(detail::NONE),
        Detail::Window { id, comm, size, unit } => {
            sink.put(detail::WINDOW);
            sink.put(u64::from(id.0));
            sink.put(u64::from(comm.0));
            sink.put(size.0);
            sink.put(u64::from(unit));
        }
        Detail::WindowFree(id) => {
            sink.put(detail::WINDOW_FREE);
            sink.put(u64::from(id.0));
        }
        Detail::Transfer(transfer) => {
            sink.put(detail::TRANSFER + flag(transfer.request.is_some(), 1));
            sink.put(u64::from(transfer.window.0));
            sink.put(u64::from(transfer.target.0));
            sink.put(zigzag(transfer.displacement));
            sink.put(transfer.sent.0);
            sink.put(transfer.fetched.0);
            sink.put(transfer.at_target.0);
        }
        Detail::Sync { window, target, exclusive, assert, group } => {
            sink.put(
                detail::SYNC + flag(target.is_some(), 1) + flag(exclusive, 2) + flag(group.is_some(), 4),
            );
            sink.put(u64::from(window.0));
            sink.put(zigzag(assert.into()));
            if let Some(target) = target {
                sink.put(u64::from(target.0));
            }
            if let Some(group) = group {
                members(sink, group);
            }
        }
        Detail::FileOpen { id, comm, mode, name } => {
            sink.put(detail::FILE_OPEN);
            sink.put(u64::from(id.0));
            sink.put(u64::from(comm.0));
            sink.put(zigzag(mode.into()));
            sink.text(name);
        }
        Detail::FileView { file, displacement, unit } => {
            sink.put(detail::FILE_VIEW);
            sink.put(u64::from(file.0));
            sink.put(zigzag(displacement));
            sink.put(unit.0);
        }
        Detail::FileClose(id) => {
            sink.put(detail::FILE_CLOSE);
            sink.put(u64::from(id.0));
        }
        Detail::Io(io) => {
            sink.put(
                detail::IO
                    + flag(io.offset.is_some(), 1)
                    + flag(io.write, 2)
                    + flag(io.collective, 4)
                    + flag(io.request.is_some(), 8),
            );
            sink.put(u64::from(io.file.0));
            if let Some(offset) = io.offset {
                sink.put(zigzag(offset));
            }
        }
    }
}

/// Maps small numbers of either sign to small numbers.
#[inline(always)]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The reverse of [`zigzag`].
#[inline(always)]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn completed_is_complete(
            numbers in proptest::collection::vec(0u64..1000, 2..60),
            gap: u64, duration: u64, thread: u16, size in 0usize..600, at in 0usize..20,
        ) {
            let author = Author { thread, requests: 1000 };
            let times = Times { gap, duration };
            let completion =
                |&number: &u64| Completion { request: RequestId { thread, number }, outcome: Outcome::Done };
            let list: Vec<_> = numbers.iter().map(completion).collect();
            let list = Completions::List(&list);
            prop_assume!(as_run(list, author).is_none());
            let (mut one, mut other) = (vec![0; size], vec![0; size]);
            let call = CallSlot(thread);
            let first = record(&mut one, at, times, author, call, &Action::Complete(list));
            let second = completed(&mut other, at, times, author, call, numbers.iter().copied());
            prop_assert_eq!(first, second);
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn runs_are_own_requests_in_order() {
        let author = Author { thread: 3, requests: 10 };
        let list = |thread, numbers: &[u64]| -> Vec<Completion> {
            let completion =
                |&number| Completion { request: RequestId { thread, number }, outcome: Outcome::Done };
            numbers.iter().map(completion).collect()
        };
        assert_eq!(as_run(Completions::List(&list(3, &[8, 9])), author), Some((2, 0)));
        assert_eq!(as_run(Completions::List(&list(3, &[0])), author), Some((1, 9)));
        for numbers in [&[][..], &[9, 8], &[7, 9], &[9, 10], &[u64::MAX]] {
            assert_eq!(as_run(Completions::List(&list(3, numbers)), author), None, "{numbers:?}");
        }
        assert_eq!(as_run(Completions::List(&list(2, &[8, 9])), author), None);
        let mut cancelled = list(3, &[8, 9]);
        cancelled[1].outcome = Outcome::Cancelled;
        assert_eq!(as_run(Completions::List(&cancelled), author), None);
        let run = |thread, number, count| Completions::Run { first: RequestId { thread, number }, count };
        assert_eq!(as_run(run(3, 8, 2), author), Some((2, 0)));
        for run in [run(2, 8, 2), run(3, 8, 0), run(3, 8, 3), run(3, u64::MAX, 1)] {
            assert_eq!(as_run(run, author), None);
        }
    }
}
