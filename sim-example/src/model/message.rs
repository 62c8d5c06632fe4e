//! The models in which a message crosses a link as a whole: latency, cut-through, store-and-forward.
//!
//! A link's queue is not kept as such. Links serve in the order of arrival, so the time at which a message
//! gets a link is known when it comes: all that must be remembered is when the link will be free. One event
//! a switch is enough.

use std::hint::black_box;

use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::links::{Links, Serial, Usage};
use super::{Carried, Happened, Model, Network, OutOfTime};
use crate::queue::Queue;
use crate::routing::{Decide, Load, Router, Walk};
use crate::topology::LinkId;
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
    queue: Queue<Event>,
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

/// What happens to a message, and the link over which it goes then.
#[derive(Clone, Copy, Debug)]
struct Event {
    slot: u32,
    link: LinkId,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It is handed over.
    Start,
    /// It is at a switch, so far that it can be passed on.
    AtSwitch,
    /// It is at its last switch.
    AtLastSwitch,
    /// It is at a switch where its way depends on how loaded the links are then.
    Undecided,
    Sent,
    Delivered,
}

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
    fn start(&mut self, slot: u32, link: LinkId, now: Picos) -> Result<(), OutOfTime> {
        let flight = &mut self.flights[slot as usize];
        let turn = if self.waits { now.max(self.links.free(link)) } else { now };
        let first_byte = turn.checked_add(self.overhead).ok_or(OutOfTime { bytes: flight.bytes })?;
        flight.last_byte = first_byte;
        self.about[slot as usize].entered = first_byte;
        let (end, mut then) = self.cross(slot, link, first_byte, false)?;
        if self.report_sent {
            self.flights[slot as usize].unsent = true;
            self.queue.push(end, Event { slot, link, what: What::Sent });
        }
        if !self.waits {
            // Nothing that happens meanwhile can change anything: the whole way is known at once.
            while then.1.what != What::Delivered {
                then = self.pass_on(then.1, then.0)?;
            }
        }
        self.queue.push(then.0, then.1);
        Ok(())
    }

    /// Takes a message that is at a switch over its next link: what comes of it, and when.
    #[inline]
    fn pass_on(&mut self, event: Event, now: Picos) -> Result<(Picos, Event), OutOfTime> {
        let Event { slot, link, what } = match event.what {
            What::Undecided => self.route(event.slot, now),
            _ => event,
        };
        let (_, then) = self.cross(slot, link, now, what == What::AtLastSwitch)?;
        Ok(then)
    }

    /// Where a message goes from the switch at which it is at `now`.
    #[inline]
    fn route(&mut self, slot: u32, now: Picos) -> Event {
        let load = Backlog { links: &self.links, now };
        let mut decide = Decide { pick: self.router.pick(), threshold: self.threshold.0, load: &load };
        let hop = self.router.next(&mut self.flights[slot as usize].walk, &mut decide);
        let what = if hop.last { What::AtLastSwitch } else { What::AtSwitch };
        Event { slot, link: hop.link, what }
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
            return Ok((end, (there, Event { slot, link: over, what: What::Delivered })));
        }
        flight.last_byte = there.checked_add(self.switch_delay).ok_or(out_of_time)?;
        let passed_on = match self.whole {
            true => flight.last_byte,
            // Not after `last_byte`, which is in range: a message that waits is delayed as a whole.
            false => Picos(now.0 + waited.0 + speed.latency.0 + self.switch_delay.0),
        };
        let at_switch = match self.router.asks_for_load() {
            true => Event { slot, link: over, what: What::Undecided },
            false => self.route(slot, passed_on),
        };
        Ok((end, (passed_on, at_switch)))
    }
}

/// Reads what the events of a day will look at. Where that is not in the processor's cache, the loads go on side by side; in the events they
/// would wait for each other.
fn fetch(today: &[(u64, Event)], flights: &Slab<Flight>, links: &Serial) {
    let read = |event: &Event| {
        flights.get(event.slot as usize).map_or(0, |flight| flight.last_byte.0) ^ links.free(event.link).0
    };
    black_box(today.iter().fold(0, |sum, (_, event)| sum ^ read(event)));
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
            self.flights.insert(Flight { bytes, last_byte: at, walk, unsent: false, delivered: false });
        if slot == self.about.len() {
            self.about.push(About::default());
        }
        self.about[slot] = About { tag, submitted: at, entered: at };
        self.queue.push(at, Event { slot: slot as u32, link: LinkId::injection(src), what: What::Start });
        Ok(())
    }

    #[inline]
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        loop {
            if let Some(today) = self.queue.begins_day(limit) {
                fetch(today, &self.flights, &self.links);
            }
            let Some((now, event)) = self.queue.pop_until(limit) else { return Ok(None) };
            let slot = event.slot;
            match event.what {
                What::Start => self.start(slot, event.link, now)?,
                What::AtSwitch | What::AtLastSwitch | What::Undecided => {
                    self.events += 1;
                    let (at, event) = self.pass_on(event, now)?;
                    self.queue.push(at, event);
                }
                What::Sent => {
                    let flight = &mut self.flights[slot as usize];
                    flight.unsent = false;
                    // Without latencies it may have arrived in the same moment, and before.
                    if flight.delivered {
                        self.flights.remove(slot as usize);
                        continue;
                    }
                    return Ok(Some((now, Happened::Sent { tag: self.about[slot as usize].tag })));
                }
                What::Delivered => {
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
