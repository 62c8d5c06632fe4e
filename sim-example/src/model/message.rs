//! The models in which a message crosses a link as a whole: latency, cut-through, store-and-forward.
//!
//! A link's queue is not kept as such. Links serve in the order of arrival, so the time at which a message
//! gets a link is known when it comes: all that must be remembered is when the link will be free. One event
//! a switch is enough.

use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::links::{Links, Serial, Usage};
use super::{Carried, Happened, Model, Network, OutOfTime};
use crate::queue::Queue;
use crate::routing::{Decide, Load, Router, Walk};
use crate::topology::{LinkClass, LinkId};
use crate::watch::{Crossing, Watch};

/// Messages on their way through a topology.
pub(crate) struct Messages<'a> {
    router: Router<'a>,
    /// Messages wait for links.
    waits: bool,
    /// A switch passes a message on when it has all of it.
    whole: bool,
    /// Messages are reported [`Happened::Sent`].
    report_sent: bool,
    switch_delay: Picos,
    overhead: Picos,
    /// The threshold of UGAL, as time on a link.
    threshold: Picos,
    links: Serial,
    flights: Slab<Flight>,
    /// What is known of each flight besides, by its place.
    about: Vec<About>,
    /// How many messages each node has sent, where ways depend on that.
    sent: Vec<u32>,
    queue: Queue<Event, LANES>,
    events: u64,
    watch: Option<Box<Watch>>,
}

/// A message on its way: what every switch looks at.
#[derive(Debug)]
struct Flight {
    bytes: Bytes,
    /// When its last byte comes to the switch at which it is, if nothing delays it there.
    last_byte: Picos,
    walk: Walk,
    src: u32,
    /// Whether it is to be reported as sent, and was not yet.
    unsent: bool,
    delivered: bool,
}

/// A message on its way: what its ends look at.
#[derive(Clone, Copy, Debug, Default)]
struct About {
    tag: u64,
    submitted: Picos,
    /// When its first byte leaves its node.
    entered: Picos,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A message is handed over.
    Start(u32),
    /// A message is at a switch, so far that it can be passed on.
    AtSwitch(u32),
    Sent(u32),
    Delivered(u32),
}

/// Arrivals from nodes, over local links, over global links; deliveries.
const LANES: usize = 4;
const DELIVERED: usize = 3;

/// Loads of links are the times for which they are taken.
struct Backlog<'a> {
    links: &'a Serial,
    now: Picos,
}

impl Load for Backlog<'_> {
    #[inline]
    fn load(&self, link: LinkId) -> u64 {
        self.links.free(link).saturating_sub(self.now).0
    }
}

impl<'a> Messages<'a> {
    /// An empty network. Messages are reported [`Happened::Sent`] only if `report_sent`.
    pub(crate) fn new(
        router: Router<'a>,
        model: Model,
        links: &Links,
        report_sent: bool,
    ) -> Result<Self, OutOfTime> {
        let topology = router.topology();
        let threshold = links.bandwidth.time(router.threshold());
        Ok(Self {
            waits: model != Model::Latency,
            whole: model == Model::StoreAndForward,
            report_sent,
            switch_delay: links.switch_delay,
            overhead: links.overhead,
            threshold: threshold.ok_or(OutOfTime { bytes: router.threshold() })?,
            links: Serial::new(topology, links),
            flights: Slab::new(),
            about: Vec::new(),
            sent: if router.is_random() { vec![0; topology.nodes() as usize] } else { Vec::new() },
            queue: Queue::new(),
            events: 0,
            watch: None,
            router,
        })
    }

    /// A message is handed over at `now`: it takes its injection link.
    #[inline]
    fn start(&mut self, slot: u32, now: Picos) -> Result<(), OutOfTime> {
        let flight = &mut self.flights[slot as usize];
        let link = LinkId::injection(flight.src);
        let turn = if self.waits { now.max(self.links.free(link)) } else { now };
        let first_byte = turn.checked_add(self.overhead).ok_or(OutOfTime { bytes: flight.bytes })?;
        flight.last_byte = first_byte;
        self.about[slot as usize].entered = first_byte;
        let (end, mut then) = self.cross(slot, link, first_byte, false)?;
        if self.report_sent {
            self.flights[slot as usize].unsent = true;
            self.queue.push_any(end, Event::Sent(slot));
        }
        if !self.waits {
            // Nothing that happens meanwhile can change anything: the whole way is known at once.
            while let Event::AtSwitch(_) = then.1 {
                then = self.pass_on(slot, then.0)?;
            }
        }
        self.schedule(then.0, then.1, LinkClass::NODE);
        Ok(())
    }

    /// Takes a message that is at a switch over its next link: what comes of it, and when.
    #[inline]
    fn pass_on(&mut self, slot: u32, now: Picos) -> Result<(Picos, Event), OutOfTime> {
        let walk = &mut self.flights[slot as usize].walk;
        let load = Backlog { links: &self.links, now };
        let mut decide = Decide { pick: self.router.pick(), threshold: self.threshold.0, load: &load };
        let hop = self.router.next(walk, &mut decide);
        let (_, then) = self.cross(slot, hop.link, now, hop.last)?;
        Ok(then)
    }

    /// Takes a message whose first byte is at the beginning of the link `over` at `now` over that link: when its last byte enters the link, and what
    /// comes of it, and when.
    #[inline]
    fn cross(
        &mut self,
        slot: u32,
        over: LinkId,
        now: Picos,
        last: bool,
    ) -> Result<(Picos, (Picos, Event)), OutOfTime> {
        let flight = &mut self.flights[slot as usize];
        let out_of_time = OutOfTime { bytes: flight.bytes };
        let (link, speed, forgiven) = self.links.at(over);
        let time = speed.bandwidth.time(flight.bytes).ok_or(out_of_time)?;
        // Behind a slower link the message is sent in one piece that ends with its last byte.
        let ready = now.max(flight.last_byte.saturating_sub(time));
        let start = if self.waits { ready.max(link.free) } else { ready };
        let waited = start.saturating_sub(ready).saturating_sub(forgiven);
        link.free = start.checked_add(time).ok_or(out_of_time)?;
        // A bucket lets nothing pass that is not there yet.
        let end = ready.max(flight.last_byte).max(link.free.saturating_sub(forgiven));
        link.usage.add(flight.bytes, time, waited);
        if let Some(watch) = &mut self.watch {
            let crossing = Crossing { link: over, bytes: flight.bytes.0, waited, time, end };
            watch.crossed(slot, self.about[slot as usize].tag, &crossing, last);
        }

        let there = end.checked_add(speed.latency).ok_or(out_of_time)?;
        if last {
            return Ok((end, (there, Event::Delivered(slot))));
        }
        flight.last_byte = there.checked_add(self.switch_delay).ok_or(out_of_time)?;
        let passed_on = match self.whole {
            true => flight.last_byte,
            // Not after `last_byte`, which is in range: a message that waits is delayed as a whole.
            false => Picos(now.0 + waited.0 + speed.latency.0 + self.switch_delay.0),
        };
        Ok((end, (passed_on, Event::AtSwitch(slot))))
    }

    #[inline]
    fn schedule(&mut self, at: Picos, event: Event, class: LinkClass) {
        let lane = match event {
            Event::Delivered(_) => DELIVERED,
            _ => usize::from(class.0.min(2)),
        };
        self.queue.push(lane, at, event);
    }
}

impl Network for Messages<'_> {
    #[inline]
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, tag } = message;
        let number = match self.sent.get_mut(src as usize) {
            Some(sent) => {
                *sent = sent.wrapping_add(1);
                (*sent).into()
            }
            None => 0,
        };
        let walk = self.router.start(src, dst, self.router.key(src, dst, number));
        let slot =
            self.flights.insert(Flight { bytes, last_byte: at, walk, src, unsent: false, delivered: false });
        if slot == self.about.len() {
            self.about.push(About::default());
        }
        self.about[slot] = About { tag, submitted: at, entered: at };
        self.queue.push_any(at, Event::Start(slot as u32));
        Ok(())
    }

    #[inline]
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        while let Some((now, event)) = self.queue.pop_until(limit) {
            match event {
                Event::Start(slot) => self.start(slot, now)?,
                Event::AtSwitch(slot) => {
                    self.events += 1;
                    let (at, event) = self.pass_on(slot, now)?;
                    self.schedule(at, event, LinkClass::LOCAL);
                }
                Event::Sent(slot) => {
                    let flight = &mut self.flights[slot as usize];
                    flight.unsent = false;
                    // Without latencies it may have arrived in the same moment, and before.
                    if flight.delivered {
                        self.flights.remove(slot as usize);
                        continue;
                    }
                    return Ok(Some((now, Happened::Sent { tag: self.about[slot as usize].tag })));
                }
                Event::Delivered(slot) => {
                    self.events += 1;
                    let flight = &mut self.flights[slot as usize];
                    flight.delivered = true;
                    if !flight.unsent {
                        self.flights.remove(slot as usize);
                    }
                    let About { tag, submitted, entered } = self.about[slot as usize];
                    let (latency, queued) =
                        (now.saturating_sub(submitted), entered.saturating_sub(submitted));
                    return Ok(Some((now, Happened::Delivered { tag, latency, queued })));
                }
            }
        }
        Ok(None)
    }

    fn usage(&self) -> Vec<Usage> {
        self.links.usage().collect()
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn watch(&mut self) -> &mut Option<Box<Watch>> {
        &mut self.watch
    }
}
