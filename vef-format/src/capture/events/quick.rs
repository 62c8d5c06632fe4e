//! The records that nearly all of a large capture is made of, read without detours: words, and sends of a size that seldom
//! comes again. What else stands there, and what is not as it should be, is left to the reader that looks at every step.

use super::super::Taker;
use super::super::decode::{self, Context, Shapes};
use super::super::encode::kind;
use super::super::event::{Action, DatatypeId, Event, RequestId, Send};
use super::super::file::RankFile;
use super::super::varint::{NEAR, Near};
use super::super::word::{self, Code};
use super::{Next, Step};
use crate::ids::{CommId, CommRank};
use crate::units::{Bytes, Nanos};

/// Gives `taker` the next records of the only thread of `file`, whose chunk ends at `end`, as long as they are quick to read.
/// `next` is behind the last of them then.
#[inline]
pub(super) fn records<T: Taker>(
    file: &RankFile,
    end: usize,
    thread: u16,
    next: &mut Next,
    shapes: &mut Shapes,
    taker: &mut T,
) -> Result<(), T::Error> {
    let bytes = &file.map.bytes()[..end];
    // A copy of its own, which need not be stored after every record.
    let mut here = *next;
    while let Some(window) = bytes.get(here.at..).and_then(|rest| rest.first_chunk()) {
        let taken = match window[0] {
            kind if kind & word::MARK != 0 => a_word(window, thread, file, &mut here, shapes, taker),
            kind @ kind::SEND..kind::RECEIVE => a_send(window, kind, thread, file, &mut here, taker),
            _ => None,
        };
        match taken {
            Some(Ok(())) => {}
            Some(failed) => {
                *next = here;
                return failed;
            }
            None => break,
        }
    }
    *next = here;
    Ok(())
}

/// The word that `window` begins with: what `taker` says of it.
#[inline(always)]
fn a_word<T: Taker>(
    window: &[u8; NEAR],
    thread: u16,
    file: &RankFile,
    here: &mut Next,
    shapes: &mut Shapes,
    taker: &mut T,
) -> Option<Result<(), T::Error>> {
    let (head, gap, duration) = word::parse(u64::from_le_bytes(*window.first_chunk()?));
    let (start, end) = here.times(gap, duration)?;
    let times = (Nanos(file.clock.nanos(start)), Nanos(file.clock.nanos(end)));
    let context = Context { thread, requests: here.requests, calls: 0 };
    let after = here.at + word::WORD;
    match head.code() {
        Code::Shape(shape) => {
            let (event, makes) = shapes.call(shape.into(), times, &context).ok()?;
            here.pass(end, Step { after, makes, ends: 0 }).ok()?;
            Some(taker.take(event))
        }
        Code::Run { completer, count, after: later } => {
            let action = decode::run(count, later, &context).ok()?;
            here.pass(end, Step { after, makes: false, ends: count }).ok()?;
            let call = file.completer(completer);
            Some(taker.take(&Event { start: times.0, end: times.1, thread, call, action }))
        }
    }
}

/// The send of kind `kind` that `window` begins with: what `taker` says of it.
#[inline(always)]
fn a_send<T: Taker>(
    window: &[u8; NEAR],
    kind: u8,
    thread: u16,
    file: &RankFile,
    here: &mut Next,
    taker: &mut T,
) -> Option<Result<(), T::Error>> {
    let mut near = Near::new(window, 1);
    let (gap, duration) = (near.get(), near.get());
    let (start, end) = here.times(gap, duration)?;
    let call = decode::call_slot(near.get(), file.calls.len()).ok()?;
    let (comm, dest, tag, bytes, datatype) = (near.get(), near.get(), near.get(), near.get(), near.get());
    if (comm | dest | tag | datatype) >> 32 != 0 {
        return None;
    }
    let (mode, makes) = decode::flags_of_send(kind);
    let request = RequestId { thread, number: here.requests };
    let send = Send {
        comm: CommId(comm as u32),
        dest: CommRank(dest as u32),
        tag: tag as u32 as i32,
        bytes: Bytes(bytes),
        datatype: DatatypeId(datatype as u32),
        mode,
        request: makes.then_some(request),
    };
    here.pass(end, Step { after: here.at + near.position(), makes, ends: 0 }).ok()?;
    let (start, end) = (Nanos(file.clock.nanos(start)), Nanos(file.clock.nanos(end)));
    Some(taker.take(&Event { start, end, thread, call, action: Action::Send(send) }))
}
