//! The models in which a message crosses each link as a whole: latency, injection, cut-through, store-and-forward.
//!
//! Links have no explicit queues: they serve messages in the order of arrival, so the start of a message is
//! known on arrival from the time at which the link becomes free. One event per switch suffices.

use std::hint::black_box;

use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::error::ModelError;
use super::kind::{Carrier, ModelInfo};
use super::links::{self, Serial, Times, Usage};
use super::network::stranded;
use super::{Carried, Happened, Hops, Network, OutOfTime, Setup};
use crate::quantity::Bandwidth;
use crate::routing::{Load, Router};
use crate::topology::{LinkId, Outages, Route};
use crate::watch::{Crossing, Watch};
use replay::Queue;

/// A switch forwards a message from its first byte; messages queue for links.
pub(super) const CUT_THROUGH: ModelInfo = ModelInfo {
    name: "cut-through",
    help: "links, one message at a time; infinite buffers",
    options: &[links::HEADING, links::GROUPS_HEADING],
    is_bounded_by_latency: true,
    has_packets: false,
    shares_bandwidth: false,
    carrier: Carrier::Links(|setup| Messages::build(setup, Waits::Everywhere, false)),
};

/// A switch forwards a message after its last byte; messages queue for links.
pub(super) const STORE_AND_FORWARD: ModelInfo = ModelInfo {
    name: "store-and-forward",
    help: "the same, but a switch receives the whole message before it sends",
    carrier: Carrier::Links(|setup| Messages::build(setup, Waits::Everywhere, true)),
    ..CUT_THROUGH
};

/// Cut-through without contention: the bound of the other models.
pub(super) const LATENCY: ModelInfo = ModelInfo {
    name: "latency",
    help: "nothing: the bound without contention",
    is_bounded_by_latency: false,
    carrier: Carrier::Links(|setup| Messages::build(setup, Waits::Nowhere, false)),
    ..CUT_THROUGH
};

/// Cut-through with contention for the links from nodes to their switches alone: what a sender does to itself.
pub(super) const INJECTION: ModelInfo = ModelInfo {
    name: "injection",
    help: "links from nodes to switches, one message at a time; nothing else",
    carrier: Carrier::Links(|setup| Messages::build(setup, Waits::ForInjection, false)),
    ..CUT_THROUGH
};

/// A network of whole messages.
pub(crate) struct Messages<'a> {
    router: Router<'a>,
    /// The links for which messages wait.
    waits: Waits,
    /// Whether a switch forwards a message only after its last byte.
    whole: bool,
    /// Whether to report [`Happened::Sent`].
    report_sent: bool,
    switch_delay: Picos,
    overhead: Picos,
    bandwidth: Bandwidth,
    links: Serial,
    flights: Slab<Flight>,
    /// The rest of each flight, by the same index.
    about: Vec<About>,
    /// Messages sent by each node, if routes depend on that.
    sent: Vec<u32>,
    queue: Queue<Event>,
    events: u64,
    hops: Hops,
    watch: Option<Box<Watch>>,
    /// Set if links fail at times.
    outages: Option<Held<'a>>,
}

/// Messages in a network whose links fail at times.
struct Held<'a> {
    outages: &'a Outages,
    /// By slot: the time for which the message was held at its switch.
    times: Vec<Picos>,
    /// The switch and the destination of a message that cannot go on.
    stranded: Option<(u32, u32)>,
}

/// The links for which messages wait; the others carry any number at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Nowhere,
    /// For the link from a node to its switch, alone.
    ForInjection,
    Everywhere,
}

/// A message in the network: the part used at each switch.
#[derive(Debug)]
struct Flight {
    bytes: Bytes,
    /// Arrival of its last byte at the current switch, without waits there.
    last_byte: Picos,
    route: Route,
    /// Links that it has crossed.
    hops: u32,
    /// Whether it is still to be reported as sent.
    unsent: bool,
    delivered: bool,
}

/// A message in the network: the part used at its ends.
#[derive(Clone, Copy, Debug, Default)]
struct About {
    tag: u64,
    submitted: Picos,
    /// When its first byte leaves the node.
    entered: Picos,
}

/// An event of a message, and the link that it takes then.
#[derive(Clone, Copy, Debug)]
struct Event {
    slot: u32,
    link: LinkId,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The message is submitted.
    Start,
    /// It can be forwarded by a switch.
    AtSwitch,
    /// It can be forwarded by its last switch.
    AtLastSwitch,
    /// It is at a switch, and its route depends on the load of the links at that time.
    Undecided,
    Sent,
    Delivered,
}

/// The load of a link is the time until it is free; that of bytes, their transmission time.
struct Backlog<'a> {
    links: &'a Serial,
    bandwidth: Bandwidth,
    now: Picos,
}

impl Load for Backlog<'_> {
    #[inline]
    fn load(&self, link: LinkId) -> u64 {
        self.links.free(link).saturating_sub(self.now).0
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        self.bandwidth.time(bytes).unwrap_or(Picos::MAX).0
    }
}

impl<'a> Messages<'a> {
    /// An empty network.
    fn build(setup: Setup<'a>, waits: Waits, whole: bool) -> Result<Box<dyn Network + 'a>, ModelError> {
        let Setup { router, links, report_sent, .. } = setup;
        let fabric = router.fabric();
        Ok(Box::new(Self {
            waits,
            whole,
            report_sent,
            switch_delay: links.switch_delay,
            overhead: links.overhead,
            bandwidth: links.bandwidth,
            links: Serial::new(fabric, links),
            flights: Slab::new(),
            about: Vec::new(),
            sent: if router.is_random() { vec![0; fabric.nodes() as usize] } else { Vec::new() },
            queue: Queue::new(),
            events: 0,
            hops: Hops::default(),
            watch: None,
            outages: fabric.outages().map(|outages| Held { outages, times: Vec::new(), stranded: None }),
            router,
        }))
    }

    /// Sends a message over its injection link.
    #[inline]
    fn start(&mut self, slot: u32, link: LinkId, now: Picos) -> Result<(), OutOfTime> {
        let flight = &mut self.flights[slot as usize];
        let turn = if self.waits == Waits::Nowhere { now } else { now.max(self.links.free(link)) };
        let first_byte = turn.checked_add(self.overhead).ok_or(OutOfTime { bytes: flight.bytes })?;
        flight.last_byte = first_byte;
        if self.outages.is_some()
            && let Some(again) = self.is_held(slot, link, first_byte, now)?
        {
            if let Some(at) = again {
                self.queue.push(at, Event { slot, link, what: What::Start });
            }
            return Ok(());
        }
        self.about[slot as usize].entered = first_byte;
        let (end, mut then) = self.cross(slot, link, first_byte, false)?;
        if self.report_sent {
            self.flights[slot as usize].unsent = true;
            self.queue.push(end, Event { slot, link, what: What::Sent });
        }
        if self.waits != Waits::Everywhere {
            // Without contention behind its injection, no other event affects the message: compute its whole route at once.
            while then.1.what != What::Delivered {
                match self.pass_on(then.1, then.0)? {
                    Some(next) => then = next,
                    None => return Ok(()),
                }
            }
        }
        self.queue.push(then.0, then.1);
        Ok(())
    }

    /// Sends a message at a switch over its next link; returns its next event. `None` if it cannot go on, ever.
    #[inline(always)]
    fn pass_on(&mut self, event: Event, now: Picos) -> Result<Option<(Picos, Event)>, OutOfTime> {
        if self.outages.is_some() {
            return self.pass_on_if_up(event, now);
        }
        let Event { slot, link, what } = match event.what {
            What::Undecided => self.route(event.slot, now),
            _ => event,
        };
        let (_, then) = self.cross(slot, link, now, what == What::AtLastSwitch)?;
        Ok(Some(then))
    }

    /// The same in a network whose links fail at times: a message is held if the link fails before its last byte has left, and takes the
    /// route of the time of the failure, as a whole.
    #[inline(never)]
    fn pass_on_if_up(&mut self, event: Event, now: Picos) -> Result<Option<(Picos, Event)>, OutOfTime> {
        let Some(Held { outages, .. }) = self.outages else { return Ok(None) };
        let Event { slot, .. } = event;
        let load = Backlog { links: &self.links, bandwidth: self.bandwidth, now };
        let before = self.flights[slot as usize].route;
        let hop = self.router.next_at(outages, &mut self.flights[slot as usize].route, now, &load);
        let again = match hop {
            None => Some(self.hold(slot, now, None)),
            Some(hop) => self.is_held(slot, hop.link, now, now)?,
        };
        match (again, hop) {
            (None, Some(hop)) => {
                let (_, then) = self.cross(slot, hop.link, now, hop.last)?;
                Ok(Some(then))
            }
            (again, _) => {
                self.flights[slot as usize].route = before;
                Ok(again.flatten().map(|at| (at, Event { what: What::Undecided, ..event })))
            }
        }
    }

    /// Whether a message whose first byte could enter a link at `ready` is held, as the link fails before its last byte has left, and until when.
    fn is_held(
        &mut self,
        slot: u32,
        over: LinkId,
        ready: Picos,
        now: Picos,
    ) -> Result<Option<Option<Picos>>, OutOfTime> {
        let Some(Held { outages, .. }) = self.outages else { return Ok(None) };
        let Flight { bytes, last_byte, .. } = self.flights[slot as usize];
        let out_of_time = OutOfTime { bytes };
        let waits = self.waits == Waits::Everywhere;
        let Times { ready, time, end, .. } =
            self.links.times(over, bytes, ready, last_byte, waits).ok_or(out_of_time)?;
        let fails = outages.cut(over, ready.max(end.saturating_sub(time)), end).is_some();
        let Some(cut) = outages.cut(over, now, end).filter(|_| fails) else { return Ok(None) };
        if self.waits != Waits::Nowhere {
            // Those behind do not overtake it.
            self.links.keep_until(over, cut).ok_or(out_of_time)?;
        }
        Ok(Some(self.hold(slot, now, Some(cut).filter(|cut| *cut > now))))
    }

    /// Holds a message at its switch or node until a link fails there or, without, until the next change.
    fn hold(&mut self, slot: u32, now: Picos, cut: Option<Picos>) -> Option<Picos> {
        let held = self.outages.as_mut()?;
        let Route { at, dst, .. } = self.flights[slot as usize].route;
        let Some(until) = cut.or_else(|| held.outages.next(now)) else {
            held.stranded = Some((at, dst));
            return None;
        };
        let slot = slot as usize;
        if slot >= held.times.len() {
            held.times.resize(slot + 1, Picos::ZERO);
        }
        held.times[slot] = held.times[slot].saturating_add(until.saturating_sub(now));
        Some(until)
    }

    /// Chooses the next link of a message that is at a switch at `now`.
    #[inline]
    fn route(&mut self, slot: u32, now: Picos) -> Event {
        let load = Backlog { links: &self.links, bandwidth: self.bandwidth, now };
        let hop = self.router.next(&mut self.flights[slot as usize].route, &load);
        let what = if hop.last { What::AtLastSwitch } else { What::AtSwitch };
        Event { slot, link: hop.link, what }
    }

    /// Sends a message whose first byte is at the beginning of link `over`; returns when the last byte enters
    /// the link, and the message's next event.
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
        let waits = self.waits == Waits::Everywhere;
        let times = self.links.times(over, flight.bytes, now, flight.last_byte, waits).ok_or(out_of_time)?;
        let Times { waited, time, end, free, .. } = times;
        let (link, latency) = self.links.at(over);
        link.free = free;
        let held = match &mut self.outages {
            Some(held) => held.times.get_mut(slot as usize).map_or(Picos::ZERO, std::mem::take),
            None => Picos::ZERO,
        };
        link.usage.add(flight.bytes, time, waited.saturating_add(held));
        if let Some(watch) = &mut self.watch {
            let waited = waited.saturating_add(held);
            let crossing = Crossing { link: over, bytes: flight.bytes.0, waited, time, end };
            watch.crossed(slot, self.about[slot as usize].tag, &crossing, last);
        }

        let there = end.checked_add(latency).ok_or(out_of_time)?;
        flight.hops += 1;
        if last {
            self.hops.add(flight.hops);
            return Ok((end, (there, Event { slot, link: over, what: What::Delivered })));
        }
        flight.last_byte = there.checked_add(self.switch_delay).ok_or(out_of_time)?;
        let passed_on = match self.whole {
            true => flight.last_byte,
            // Cannot overflow: not later than `last_byte`, as a message that waits is delayed as a whole.
            false => Picos(now.0 + waited.0 + latency.0 + self.switch_delay.0),
        };
        let at_switch = match self.router.asks_for_load() || self.outages.is_some() {
            true => Event { slot, link: over, what: What::Undecided },
            false => self.route(slot, passed_on),
        };
        Ok((end, (passed_on, at_switch)))
    }
}

/// Loads the flights and links of a day's events into the cache. These loads are independent, so cache misses overlap; the events
/// themselves would take one miss after the other.
fn fetch(today: &[(Picos, Event)], flights: &Slab<Flight>, links: &Serial) {
    let read = |event: &Event| {
        flights.get(event.slot as usize).map_or(0, |flight| flight.last_byte.0) ^ links.free(event.link).0
    };
    black_box(today.iter().fold(0, |sum, (_, event)| sum ^ read(event)));
}

impl Network for Messages<'_> {
    #[inline]
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, tag, .. } = message;
        let number = match self.sent.get_mut(src as usize) {
            Some(sent) => {
                *sent = sent.wrapping_add(1);
                (*sent).into()
            }
            None => 0,
        };
        let route = self.router.start(src, dst, self.router.key(src, dst, number));
        let slot = self.flights.insert(Flight {
            bytes,
            last_byte: at,
            route,
            hops: 0,
            unsent: false,
            delivered: false,
        });
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
            if let Some(today) = self.queue.begin_day(limit) {
                fetch(today, &self.flights, &self.links);
            }
            let Some((now, event)) = self.queue.pop(limit) else { return Ok(None) };
            let slot = event.slot;
            match event.what {
                What::Start => self.start(slot, event.link, now)?,
                What::AtSwitch | What::AtLastSwitch | What::Undecided => {
                    self.events += 1;
                    if let Some((at, event)) = self.pass_on(event, now)? {
                        self.queue.push(at, event);
                    }
                }
                What::Sent => {
                    let flight = &mut self.flights[slot as usize];
                    flight.unsent = false;
                    // With zero latencies the delivery may have come first.
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

    fn hops(&self) -> Option<Hops> {
        Some(self.hops)
    }

    fn stranded(&self) -> Option<String> {
        let (at, dst) = self.outages.as_ref()?.stranded?;
        Some(stranded(self.router.fabric(), at, dst))
    }

    fn set_watch(&mut self, watch: Option<Box<Watch>>) {
        self.watch = watch;
    }

    fn watch(&mut self) -> Option<&mut Watch> {
        self.watch.as_deref_mut()
    }
}
