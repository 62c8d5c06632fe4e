//! The network while it runs: links with their queues, messages on their way, and what happens next.
//!
//! A link's queue is not kept as such. Links serve in the order of arrival, so the time at which a message
//! gets a link is known when it comes: all that must be remembered is when the link will be free. One event
//! a link crossed is enough, and none for the first link, which a message enters when it is handed over.

use slab::Slab;
use vef_format::units::{Bytes, Picos};

use crate::queue::Queue;
use crate::routing::{LinkId, Routing};

use super::{LinkSpeed, Links, Model};

/// A message would arrive after the end of time, 2^64 picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfTime {
    pub(crate) bytes: Bytes,
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// How long it sent: the sum of `end − start`.
    pub(crate) busy: Picos,
    pub(crate) messages: u64,
    pub(crate) bytes: Bytes,
}

/// What happened to a message; `tag` is the caller's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The network is empty.
    Nothing,
    /// It came to another link: nothing to the outside.
    Moved,
    /// Its last byte has left its node.
    Sent { tag: u64 },
    /// Its last byte is there, `latency` after it was handed over.
    Delivered { tag: u64, latency: Picos },
}

/// Messages on their way through a topology.
pub(crate) struct Network<'a, R: Routing> {
    routing: &'a R,
    model: Model,
    parameters: Parameters,
    /// Messages are reported [`Happened::Sent`].
    report_sent: bool,
    links: Vec<Link>,
    flights: Slab<Flight<R::Walk>>,
    queue: Queue<Event>,
    events: u64,
}

/// [`Links`], ready to be looked up by link.
struct Parameters {
    /// Links below this number are those of the nodes.
    node_links: u32,
    of_nodes: LinkSpeed,
    of_switches: LinkSpeed,
    switch_delay: Picos,
    overhead: Picos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// When the last message that came to it will have left: the latest `end`.
    free: Picos,
    usage: Usage,
}

/// A message on its way.
#[derive(Debug)]
struct Flight<W> {
    tag: u64,
    bytes: Bytes,
    handed_over: Picos,
    /// The link to be crossed next.
    link: LinkId,
    /// When its last byte comes to the beginning of that link if nothing delays it there: `b`.
    last_byte: Picos,
    walk: W,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A message is at the beginning of its next link, so far that it can be passed on.
    AtLink(u32),
    Sent(u32),
    Delivered(u32),
}

/// How a link was crossed.
struct Crossing {
    /// When the last byte enters the link.
    end: Picos,
    /// What comes of it, and when.
    then: (Picos, Event),
}

impl<'a, R: Routing> Network<'a, R> {
    /// An empty network. Messages are reported [`Happened::Sent`] only if `report_sent`.
    pub(crate) fn new(routing: &'a R, model: Model, links: Links, report_sent: bool) -> Self {
        Self {
            routing,
            model,
            parameters: Parameters {
                node_links: 2 * routing.nodes(),
                of_nodes: links.of_nodes(),
                of_switches: links.of_switches(),
                switch_delay: links.switch_delay,
                overhead: links.overhead,
            },
            report_sent,
            links: vec![Link::default(); routing.links() as usize],
            flights: Slab::new(),
            queue: Queue::new(),
            events: 0,
        }
    }

    /// When something happens next.
    #[inline]
    pub(crate) fn next(&self) -> Option<Picos> {
        self.queue.next()
    }

    /// Hands a message over at `now`, not before anything that has happened. Both nodes are below
    /// [`Routing::nodes`].
    pub(crate) fn inject(
        &mut self,
        now: Picos,
        src: u32,
        dst: u32,
        bytes: Bytes,
        tag: u64,
    ) -> Result<(), OutOfTime> {
        let link = LinkId::injection(src);
        let turn = if self.waits() { now.max(self.links[link.index()].free) } else { now };
        let first_byte = turn.checked_add(self.parameters.overhead).ok_or(OutOfTime { bytes })?;
        let walk = self.routing.walk(src, dst);
        let flight = Flight { tag, bytes, handed_over: now, link, last_byte: first_byte, walk };
        let slot = self.flights.insert(flight) as u32;
        let Crossing { end, mut then } = self.cross(slot, first_byte)?;
        if !self.waits() {
            // Nothing that happens meanwhile can change anything: the whole way is known at once.
            while let (at, Event::AtLink(_)) = then {
                then = self.cross(slot, at)?.then;
            }
        }
        if self.report_sent {
            self.queue.push(end, Event::Sent(slot));
        }
        self.queue.push(then.0, then.1);
        Ok(())
    }

    /// Lets happen what happens next, at the time that [`Network::next`] says.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Happened, OutOfTime> {
        let Some((now, event)) = self.queue.pop() else { return Ok(Happened::Nothing) };
        self.events += 1;
        Ok(match event {
            Event::AtLink(slot) => {
                let (at, event) = self.cross(slot, now)?.then;
                self.queue.push(at, event);
                Happened::Moved
            }
            Event::Sent(slot) => Happened::Sent { tag: self.flights[slot as usize].tag },
            Event::Delivered(slot) => {
                let flight = self.flights.remove(slot as usize);
                Happened::Delivered { tag: flight.tag, latency: now.saturating_sub(flight.handed_over) }
            }
        })
    }

    /// Takes a message that comes to its next link at `now` over that link.
    #[inline]
    fn cross(&mut self, slot: u32, now: Picos) -> Result<Crossing, OutOfTime> {
        let waits = self.waits();
        let flight = &mut self.flights[slot as usize];
        let out_of_time = OutOfTime { bytes: flight.bytes };
        let link = &mut self.links[flight.link.index()];
        let LinkSpeed { latency, bandwidth } = self.parameters.of(flight.link);
        let time = bandwidth.time(flight.bytes).ok_or(out_of_time)?;
        // Behind a slower link the message is sent in one piece that ends with its last byte.
        let in_time = now.max(flight.last_byte.saturating_sub(time));
        let start = if waits { in_time.max(link.free) } else { in_time };
        let waited = start.saturating_sub(in_time);
        let end = start.checked_add(time).ok_or(out_of_time)?;
        link.free = end;
        link.usage.add(time, flight.bytes);

        let there = end.checked_add(latency).ok_or(out_of_time)?;
        let Some(next) = self.routing.next(&mut flight.walk) else {
            return Ok(Crossing { end, then: (there, Event::Delivered(slot)) });
        };
        let switch_delay = self.parameters.switch_delay;
        flight.link = next;
        flight.last_byte = there.checked_add(switch_delay).ok_or(out_of_time)?;
        let passed_on = match self.model {
            Model::StoreAndForward => flight.last_byte,
            // Not after `last_byte`, which is in range: a message that waits is delayed as a whole.
            Model::CutThrough | Model::Latency => Picos(now.0 + waited.0 + latency.0 + switch_delay.0),
        };
        Ok(Crossing { end, then: (passed_on, Event::AtLink(slot)) })
    }

    #[inline]
    fn waits(&self) -> bool {
        self.model != Model::Latency
    }

    /// What each link has carried, by number.
    pub(crate) fn usage(&self) -> impl ExactSizeIterator<Item = Usage> {
        self.links.iter().map(|link| link.usage)
    }

    /// Events that have happened.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

impl Usage {
    #[inline]
    fn add(&mut self, time: Picos, bytes: Bytes) {
        // In the latency model messages overlap, and amounts of a hostile trace may be anything: sums stay at
        // the end of their range.
        self.busy = self.busy.saturating_add(time);
        self.messages += 1;
        self.bytes = Bytes(self.bytes.0.saturating_add(bytes.0));
    }
}

impl Parameters {
    #[inline]
    fn of(&self, link: LinkId) -> LinkSpeed {
        if link.0 < self.node_links { self.of_nodes } else { self.of_switches }
    }
}
