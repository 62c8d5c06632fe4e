//! Writes records.
//!
//! A record is a [word](super::word), or a kind byte and numbers in the form of [`crate::varint`]: the gap since the end of
//! the thread's previous record and the duration of the call, both in ticks, the function's slot in the call table plus
//! one (0: none), and the [fields](super::fields) of the kind. The kind byte is never zero and is stored last, so an incomplete
//! record begins with zero.

use super::event::{
    Action, CallSlot, Collective, Completions, Creation, Detail, Io, Neighbourhood, Outcome, Partitioned,
    RequestId, Transfer,
};
use super::forms::{Encoder, Form};
use super::word::{Code, Head, WORD};
use crate::varint::Sink;

/// Kinds of records that the reader distinguishes; [`fields`](super::fields) has those of all [`Action`]s.
pub(super) mod kind {
    pub(crate) const SEND: u8 = 16;
    pub(crate) const LAST_SEND: u8 = 23;
    /// A shape number and a record of another kind, which defines the shape.
    pub(crate) const DEFINE: u8 = 36;
    /// A call of a defined shape whose times do not fit into a word.
    pub(crate) const SHAPE: u8 = 37;
}

/// Times of a call, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From the end of the thread's previous record to the start of the call.
    pub gap: u64,
    /// From the start of the call to its end.
    pub duration: u64,
}

/// The content of a record.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// An action.
    Action(&'a Action<'a>),
    /// An action that [`can_be_shape`], and the definition of the shape with this number.
    Definition(&'a Action<'a>, u16),
    /// What a word with this head says, also if the times do not fit into a word.
    Word(Head),
    /// Completions that no word can say.
    Completions(Completions<'a>),
}

impl<'a> Content<'a> {
    /// Completions by the function with index `completer` in [`COMPLETERS`](super::word::COMPLETERS), or by another one. `next`: the
    /// thread's next request.
    pub fn completed(list: Completions<'a>, completer: Option<u8>, next: RequestId) -> Self {
        let Some((run, count, after)) = as_run(list, next) else { return Content::Completions(list) };
        let head = completer.and_then(|completer| Head::run(completer, count, after));
        head.map_or(Content::Completions(run), Content::Word)
    }

    /// Whether it starts a request; a word does not tell.
    pub fn makes_request(&self) -> bool {
        match self {
            Content::Action(action) | Content::Definition(action, _) => makes_request(action).is_some(),
            Content::Word(_) | Content::Completions(_) => false,
        }
    }
}

/// Writes one record at index `at` of `bytes`; returns the index of the next, or `None` if there is not enough room (only
/// bytes of an invalid record were written then).
///
/// A request that an action starts must be `next`, the thread's next one; the caller counts requests.
pub fn record(
    bytes: &mut [u8],
    at: usize,
    times: Times,
    next: RequestId,
    call: CallSlot,
    content: Content<'_>,
) -> Option<usize> {
    let to = (bytes, at, times, next);
    match content {
        Content::Action(action) => write(to, call, |to| put(action, to)),
        Content::Completions(list) => write(to, call, |to| put(&Action::Complete(list), to)),
        Content::Definition(action, shape) => write(to, call, |to| {
            debug_assert!(can_be_shape(action));
            to.sink.put(shape.into());
            action.put_whole(to);
            kind::DEFINE
        }),
        Content::Word(head) => match (head.with(times.gap, times.duration), head.code()) {
            (Some(word), _) => {
                *to.0.get_mut(at..)?.first_chunk_mut()? = word.to_le_bytes();
                Some(at + WORD)
            }
            // The shape includes the function.
            (None, Code::Shape(shape)) => write(to, CallSlot::NONE, |to| {
                to.sink.put(shape.into());
                kind::SHAPE
            }),
            (None, Code::Run { count, after, .. }) => {
                let run = Completions::before(next, count, after).ok()?;
                write(to, call, |to| put(&Action::Complete(run), to))
            }
        },
    }
}

/// Writes a record other than a word: times, function, and the numbers that `rest` writes; `rest` returns the kind.
#[inline(always)]
fn write(
    (bytes, at, times, next): (&mut [u8], usize, Times, RequestId),
    call: CallSlot,
    rest: impl FnOnce(&mut Encoder<'_>) -> u8,
) -> Option<usize> {
    let mut to = Encoder { sink: Sink::new(bytes, at.checked_add(1)?), next };
    for number in [times.gap, times.duration, call.0.wrapping_add(1).into()] {
        to.sink.put(number);
    }
    let kind = rest(&mut to);
    let end = to.sink.position()?;
    // A killed process leaves its stores in program order; the fence keeps the compiler from reordering them.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
    *bytes.get_mut(at)? = kind;
    Some(end)
}

/// Writes the fields of an action; returns the kind.
#[inline]
fn put(action: &Action<'_>, to: &mut Encoder<'_>) -> u8 {
    action.put(to);
    action.flags() as u8
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
        Action::Neighbourhood(part) => part.send_counts.is_empty() && part.recv_counts.is_empty(),
        Action::Other { detail, .. } => match detail {
            Detail::None | Detail::Transfer(_) | Detail::Io(_) => true,
            Detail::Sync { group, .. } => group.is_none(),
            _ => false,
        },
        _ => false,
    }
}

/// The run that `completions` form, its length, and the number of requests started after it; `None`: no run.
fn as_run(completions: Completions<'_>, next: RequestId) -> Option<(Completions<'static>, u64, u64)> {
    let first = match completions {
        Completions::List(list) => list.first()?.request,
        Completions::Run { first, .. } => first,
    };
    let count = completions.len();
    let after = next.number.checked_sub(first.number.checked_add(count)?)?;
    let is_run = match completions {
        Completions::List(list) => list.iter().zip(first.number..).all(|(completion, number)| {
            completion.outcome == Outcome::Done && completion.request == RequestId { number, ..next }
        }),
        Completions::Run { .. } => first.thread == next.thread && count > 0,
    };
    is_run.then_some((Completions::Run { first, count }, count, after))
}

/// The request that `action` starts.
pub fn makes_request(action: &Action<'_>) -> Option<RequestId> {
    match action {
        Action::Send(send) => send.request,
        Action::PostReceive(post) => Some(post.request),
        Action::Partitioned(Partitioned::Start { request, .. }) => Some(*request),
        Action::Collective(Collective { request, .. })
        | Action::Creation(Creation { request, .. })
        | Action::Neighbourhood(Neighbourhood { request, .. })
        | Action::Other {
            detail: Detail::Transfer(Transfer { request, .. }) | Detail::Io(Io { request, .. }),
            ..
        } => *request,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Completion;
    use super::*;

    #[test]
    fn runs_are_own_requests_in_order() {
        let next = RequestId { thread: 3, number: 10 };
        let list = |thread, numbers: &[u64]| -> Vec<Completion> {
            let completion =
                |&number| Completion { request: RequestId { thread, number }, outcome: Outcome::Done };
            numbers.iter().map(completion).collect()
        };
        fn as_run(list: Completions<'_>, next: RequestId) -> Option<(u64, u64)> {
            super::as_run(list, next).map(|(_, count, after)| (count, after))
        }
        assert_eq!(as_run(Completions::List(&list(3, &[8, 9])), next), Some((2, 0)));
        assert_eq!(as_run(Completions::List(&list(3, &[0])), next), Some((1, 9)));
        for numbers in [&[][..], &[9, 8], &[7, 9], &[9, 10], &[u64::MAX]] {
            assert_eq!(as_run(Completions::List(&list(3, numbers)), next), None, "{numbers:?}");
        }
        assert_eq!(as_run(Completions::List(&list(2, &[8, 9])), next), None);
        let mut cancelled = list(3, &[8, 9]);
        cancelled[1].outcome = Outcome::Cancelled;
        assert_eq!(as_run(Completions::List(&cancelled), next), None);
        let run = |thread, number, count| Completions::Run { first: RequestId { thread, number }, count };
        assert_eq!(as_run(run(3, 8, 2), next), Some((2, 0)));
        for run in [run(2, 8, 2), run(3, 8, 0), run(3, 8, 3), run(3, u64::MAX, 1)] {
            assert_eq!(as_run(run, next), None);
        }
    }
}
