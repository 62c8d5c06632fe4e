//! Decodes the events of a location.

use super::chunks::{Chunks, Field};
use crate::error::Result;

/// Type of a timestamp, and of the attributes of the event that follows.
const TIMESTAMP: u8 = 5;
const ATTRIBUTES: u8 = 6;

/// A message: the numbers are those of the location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Rank in the communicator.
    pub(super) peer: u64,
    pub(super) comm: u64,
    pub(super) tag: u64,
    pub(super) bytes: u64,
}

/// A part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collective {
    pub(super) operation: u8,
    pub(super) comm: u64,
    pub(super) root: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// What happened. A request is a number of the location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Enter(u64),
    Leave(u64),
    Send(Message),
    Isend(Message, u64),
    IsendComplete(u64),
    /// A receive is posted.
    IrecvRequest(u64),
    Recv(Message),
    /// A posted receive completed.
    Irecv(Message, u64),
    /// A test found a request pending.
    RequestTest(u64),
    RequestCancelled(u64),
    CollectiveEnd(Collective),
    /// A non-blocking collective starts.
    CollectiveRequest(u64),
    /// A non-blocking collective completed.
    CollectiveComplete(Collective, u64),
    /// The measurement itself needed the time until then.
    BufferFlush(u64),
    /// The measurement is switched on or off.
    Measurement(bool),
    /// Anything else.
    Other,
}

/// The events of a location, in order.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) chunks: Chunks,
    /// Time of the current event, in ticks.
    pub(super) time: u64,
    /// Events read.
    pub(super) number: u64,
}

impl Events {
    pub(super) fn new(chunks: Chunks) -> Self {
        Self { chunks, time: 0, number: 0 }
    }

    /// The next event; `None`: there are no more.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Event>> {
        loop {
            let Some(kind) = self.chunks.next()? else { return Ok(None) };
            match kind {
                TIMESTAMP => self.time = self.chunks.full().map_err(|stop| self.chunks.stopped(stop))?,
                _ => {
                    let event = self.read(kind).map_err(|stop| self.chunks.stopped(stop))?;
                    if kind != ATTRIBUTES {
                        self.number += 1;
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    #[inline]
    fn read(&mut self, kind: u8) -> Field<Event> {
        let chunks = &mut self.chunks;
        // Without a length.
        match kind {
            12 => return Ok(Event::Enter(chunks.packed()?)),
            13 => return Ok(Event::Leave(chunks.packed()?)),
            16 => return Ok(Event::IsendComplete(chunks.packed()?)),
            17 => return Ok(Event::IrecvRequest(chunks.packed()?)),
            20 => return Ok(Event::RequestTest(chunks.packed()?)),
            21 => return Ok(Event::RequestCancelled(chunks.packed()?)),
            _ => {}
        }
        let end = chunks.length()?;
        let event = match kind {
            14 => Event::Send(message(chunks)?),
            18 => Event::Recv(message(chunks)?),
            15 => Event::Isend(message(chunks)?, chunks.packed()?),
            19 => Event::Irecv(message(chunks)?, chunks.packed()?),
            23 => Event::CollectiveEnd(collective(chunks)?),
            85 => Event::CollectiveRequest(chunks.packed()?),
            86 => Event::CollectiveComplete(collective(chunks)?, chunks.packed()?),
            10 => Event::BufferFlush(chunks.full()?),
            11 => Event::Measurement(chunks.byte()? == 1),
            _ => Event::Other,
        };
        chunks.leave(end)?;
        Ok(event)
    }
}

#[inline]
fn message(chunks: &mut Chunks) -> Field<Message> {
    let (peer, comm) = (chunks.packed()?, chunks.packed()?);
    Ok(Message { peer, comm, tag: chunks.packed()?, bytes: chunks.packed()? })
}

fn collective(chunks: &mut Chunks) -> Field<Collective> {
    let (operation, comm, root) = (chunks.byte()?, chunks.packed()?, chunks.packed()?);
    Ok(Collective { operation, comm, root, sent: chunks.packed()?, received: chunks.packed()? })
}
