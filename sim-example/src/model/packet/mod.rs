//! The packet model: virtual cut-through with credits.
//!
//! A message of m bytes becomes ⌈m / P⌉ packets, at least one, each of at most P bytes and a header. On link
//! i, with bandwidth Bᵢ and latency λᵢ, behind a switch of delay σ, a packet of p bytes has the times
//!
//! ```text
//! startᵢ = first t ≥ aᵢ + σ with link i idle, the packet chosen by its arbiter, and room for it in a buffer
//! behind the link
//! endᵢ   = max( startᵢ + p/Bᵢ, bᵢ + σ )
//! aᵢ₊₁   = startᵢ + λᵢ           bᵢ₊₁ = endᵢ + λᵢ
//! ```
//!
//! Behind each injection link and each link between switches is one first-in-first-out buffer per virtual
//! channel. A packet frees its space when it has left entirely (endᵢ of the next link); the credit returns
//! after λ and the credit delay. A node consumes packets as they arrive.
//!
//! **Input buffers**: only the head of each buffer requests a link, and the link serves buffers round-robin.
//! **Output buffers**, the ideal: every packet requests its link on arrival and is served in that order.
//!
//! Events of one moment are processed in phases: credits, arrivals and releases of links; then routing; then
//! arbitration. Therefore the order of events within a moment does not matter.

mod arbitration;
mod border;
mod crossing;
mod deadlock;
mod injection;
mod parts;
mod settings;

use std::collections::VecDeque;

use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::links::{Links, Usage};
use super::{Carried, Happened, ModelError, Network, OutOfTime};
use crate::routing::Router;
use crate::routing::channels::describe;
use crate::topology::{LinkClass, LinkId};
use crate::watch::{Crossing, Watch};
use border::Border;
pub(crate) use border::{Announced, Crossed};
use parts::*;
use replay::Queue;
use settings::room;
pub use settings::{Arbiter, Buffers, PacketSettings};

/// A network of packets.
pub(crate) struct Packets<'a> {
    router: Router<'a>,
    settings: PacketSettings,
    /// Virtual channels per link.
    vcs: u32,
    /// The range of virtual channels (first, end) of each class, for local and for global links.
    channels: [Vec<(u8, u8)>; 2],
    speeds: Vec<ClassSpeed>,
    switch_delay: Picos,
    overhead: Picos,
    report_sent: bool,
    links: Vec<Link>,
    usage: Vec<Usage>,
    /// By link and virtual channel.
    buffers: Vec<Buffer>,
    sources: Vec<Source>,
    messages: Slab<Message>,
    packets: Slab<Packet>,
    queue: Queue<Event>,
    now: Picos,
    /// Buffers (output buffers: packets) whose head has arrived and needs routing.
    arrived: Vec<u32>,
    /// Links that need arbitration.
    to_arbitrate: Vec<LinkId>,
    hops: u64,
    watch: Option<Box<Watch>>,
    /// Set in a network that several threads divide among themselves.
    border: Option<Box<Border<'a>>>,
}

impl<'a> Packets<'a> {
    /// An empty network. Reports [`Happened::Sent`] only if `report_sent`.
    pub(crate) fn new(
        mut router: Router<'a>,
        settings: PacketSettings,
        links: &Links,
        report_sent: bool,
    ) -> Result<Self, ModelError> {
        if let Some(vcs) = settings.vcs.filter(|vcs| !(1..=u32::from(u8::MAX)).contains(vcs)) {
            return Err(ModelError::Channels { vcs });
        }
        let vcs = router.assign_channels(settings.vcs)?;
        let vcs = if settings.vcs.is_none() { vcs.max(2) } else { vcs };
        Self::with_channels(router, vcs, settings, links, report_sent)
    }

    /// As [`Self::new`], with `vcs` virtual channels per link, which are not checked.
    pub(crate) fn with_channels(
        router: Router<'a>,
        vcs: u32,
        settings: PacketSettings,
        links: &Links,
        report_sent: bool,
    ) -> Result<Self, ModelError> {
        let topology = router.fabric();
        // Divide the channels evenly among the classes.
        let channels = [LinkClass::LOCAL, LinkClass::GLOBAL].map(|class| {
            let classes = router.classes(class).min(vcs);
            let first = |class: u32| (class * vcs / classes) as u8;
            (0..classes).map(|class| (first(class), first(class + 1))).collect()
        });
        let most = settings.size.0.saturating_add(settings.header.0);
        if settings.size.0 == 0 || most >= MOST_BYTES {
            return Err(ModelError::PacketSize { size: settings.size, header: settings.header });
        }
        let whole = Bytes(most);
        let mut speeds = Vec::new();
        for speed in links.speeds(topology) {
            let whole = speed.bandwidth.time(whole).ok_or(OutOfTime { bytes: whole })?;
            let back = speed.latency.saturating_add(settings.credit_delay);
            speeds.push(ClassSpeed { speed, whole, back });
        }
        let rooms = speeds
            .iter()
            .map(|speed| room(&settings, speed, links.switch_delay))
            .collect::<Result<Vec<u32>, _>>()?;
        if settings.speedup.is_some_and(|speedup| !(speedup >= 1.0 && speedup.is_finite()))
            || settings.speedup.is_some() && settings.buffers == Buffers::Output
        {
            return Err(ModelError::Speedup);
        }
        let link = |link: u32| Link {
            free: Picos::ZERO,
            next_arbitration: Picos::ZERO,
            winner: 0,
            load: 0,
            class: topology.class(LinkId(link)),
            global: topology.kind(LinkId(link)) == LinkClass::GLOBAL,
            scheduled: false,
            requested: false,
            blocked: Picos::MAX,
            waiting: VecDeque::new(),
            sending: link * vcs,
        };
        let all_links: Vec<Link> = (0..topology.links()).map(link).collect();
        let buffer = |link: &Link| Buffer {
            first: NONE,
            last: NONE,
            credit: rooms[usize::from(link.class.0)],
            class: link.class,
            requests: false,
            scheduled: false,
            busy: Picos::ZERO,
        };
        let buffers = all_links.iter().flat_map(|link| vec![buffer(link); vcs as usize]).collect();
        Ok(Self {
            settings,
            vcs,
            channels,
            speeds,
            switch_delay: links.switch_delay,
            overhead: links.overhead,
            report_sent,
            usage: vec![Usage::default(); all_links.len()],
            links: all_links,
            buffers,
            sources: (0..topology.nodes()).map(|_| Source::default()).collect(),
            messages: Slab::new(),
            packets: Slab::new(),
            queue: Queue::new(),
            now: Picos::ZERO,
            arrived: Vec::new(),
            to_arbitrate: Vec::new(),
            hops: 0,
            watch: None,
            border: None,
            router,
        })
    }

    /// Requests arbitration for a link, after all other events of this moment.
    #[inline]
    fn request_arbitration(&mut self, link: LinkId) {
        let state = &mut self.links[link.index()];
        if !state.requested {
            state.requested = true;
            self.to_arbitrate.push(link);
        }
    }

    /// Schedules the next arbitration of a link.
    #[inline]
    fn schedule_arbitration(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        if !state.scheduled {
            state.scheduled = true;
            self.queue.push(state.next_arbitration, Event::new(ARBITRATE, link, 0));
        }
    }

    /// Schedules the departure of the packet that leaves a buffer.
    #[inline]
    fn schedule_departure(&mut self, number: u32) {
        let buffer = &mut self.buffers[number as usize];
        if !buffer.scheduled {
            buffer.scheduled = true;
            self.queue.push(buffer.busy, Event::new(DEPARTED, number, 0));
        }
    }

    /// Requests routing for the head of a buffer, once the packet before it has left.
    #[inline]
    fn front(&mut self, number: u32) {
        let buffer = &mut self.buffers[number as usize];
        if buffer.requests {
            return;
        }
        if buffer.busy > self.now {
            return self.schedule_departure(number);
        }
        buffer.requests = true;
        self.arrived.push(number);
    }

    /// A packet has arrived at its switch.
    #[inline]
    fn arrive(&mut self, slot: u32) {
        let number = self.packets[slot as usize].buffer;
        match self.settings.buffers {
            Buffers::Input if self.buffers[number as usize].first == slot => self.front(number),
            Buffers::Input => {}
            Buffers::Output => self.arrived.push(slot),
        }
    }

    /// A link can be arbitrated again.
    #[inline]
    fn arbitration_due(&mut self, link: u32) {
        self.links[link as usize].scheduled = false;
        self.request_arbitration(LinkId(link));
    }

    /// The packet that left a buffer has departed entirely.
    #[inline]
    fn departed(&mut self, number: u32) {
        let buffer = &mut self.buffers[number as usize];
        buffer.scheduled = false;
        let first = buffer.first;
        if self.settings.buffers == Buffers::Input
            && first != NONE
            && self.packets[first as usize].ready <= self.now
        {
            self.front(number);
        }
        if self.settings.speedup.is_some() {
            // The input is free for its other virtual channels.
            let input = number - number % self.vcs;
            for other in input..input + self.vcs {
                let Buffer { first, requests, .. } = self.buffers[other as usize];
                if requests && first != NONE && self.packets[first as usize].link != NONE {
                    self.request_arbitration(LinkId(self.packets[first as usize].link));
                }
            }
        }
    }

    /// A credit has returned.
    #[inline]
    fn credit(&mut self, buffer: u32, bytes: u32) {
        self.buffers[buffer as usize].credit += bytes;
        let link = LinkId(buffer / self.vcs);
        let state = &mut self.links[link.index()];
        state.load -= bytes;
        if state.blocked != Picos::MAX {
            self.request_arbitration(link);
        }
    }

    /// Routes all packets that have arrived.
    fn route_arrived(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        if arrived.len() > 1 && (self.router.asks_for_load() || self.settings.buffers == Buffers::Output) {
            match self.settings.buffers {
                Buffers::Input => arrived.sort_unstable(),
                // By location; packets of one buffer keep their order.
                Buffers::Output => {
                    let packets = &self.packets;
                    arrived
                        .sort_by_key(|&slot| (packets[slot as usize].ready, packets[slot as usize].buffer));
                }
            }
        }
        for &number in &arrived {
            let slot = match self.settings.buffers {
                Buffers::Input => self.buffers[number as usize].first,
                Buffers::Output => number,
            };
            self.route(slot);
        }
        arrived.clear();
        self.arrived = arrived;
    }

    #[inline]
    fn route(&mut self, slot: u32) {
        let packet = &mut self.packets[slot as usize];
        let loads = Loads(&self.links);
        let hop = self.router.next(&mut packet.route, &loads);
        let link = &mut self.links[hop.link.index()];
        packet.link = hop.link.0;
        packet.last = hop.last;
        if !hop.last {
            let channels = &self.channels[usize::from(link.global)];
            packet.vcs = channels[usize::from(hop.class).min(channels.len() - 1)];
            link.load += packet.bytes + self.settings.header.0 as u32;
        }
        match self.settings.buffers {
            Buffers::Output => link.waiting.push_back(slot),
            Buffers::Input => {
                let number = packet.buffer;
                let place = link.waiting.partition_point(|&other| other < number);
                link.waiting.insert(place, number);
            }
        }
        self.request_arbitration(hop.link);
    }

    /// Transmission time of a packet with that payload.
    #[inline]
    fn time(&self, class: LinkClass, payload: u32) -> Result<Picos, OutOfTime> {
        let ClassSpeed { speed, whole, .. } = self.speeds[usize::from(class.0)];
        if u64::from(payload) == self.settings.size.0 {
            return Ok(whole);
        }
        let wire = Bytes(u64::from(payload) + self.settings.header.0);
        speed.bandwidth.time(wire).ok_or(OutOfTime { bytes: Bytes(payload.into()) })
    }

    /// Sends a packet over `link` into buffer `room`, or to the node if `room` is [`NONE`].
    #[inline]
    fn send(&mut self, link: LinkId, slot: u32, room: u32) -> Result<(), OutOfTime> {
        let now = self.now;
        let time = self.time(self.links[link.index()].class, self.packets[slot as usize].bytes)?;
        let packet = &mut self.packets[slot as usize];
        let wire = packet.bytes + self.settings.header.0 as u32;
        let out_of_time = OutOfTime { bytes: Bytes(packet.bytes.into()) };
        let number = packet.buffer;
        let state = &mut self.links[link.index()];
        let latency = self.speeds[usize::from(state.class.0)].speed.latency;
        // With a speedup the packet may leave its buffer before the link is idle.
        let inside = match self.settings.speedup {
            Some(speedup) => Picos((time.0 as f64 / speedup).ceil() as u64),
            None => time,
        };
        let left = now.checked_add(inside).ok_or(out_of_time)?.max(packet.last_byte);
        let start = now.max(state.free);
        let end = start.checked_add(time).ok_or(out_of_time)?.max(packet.last_byte);
        let usage = &mut self.usage[link.index()];
        let (time, waited) = (Picos(end.0 - start.0), start.saturating_sub(packet.ready));
        usage.add(Bytes(wire.into()), time, waited);
        if let Some(watch) = &mut self.watch {
            let crossing = Crossing { link, bytes: wire.into(), waited, time, end };
            watch.crossed(slot, self.messages[packet.message as usize].tag, &crossing, room == NONE);
            watch.blocked(link, state.blocked.min(now), now);
        }
        if state.blocked != Picos::MAX {
            usage.blocked = usage.blocked.saturating_add(now.saturating_sub(state.blocked));
            state.blocked = Picos::MAX;
        }
        (state.free, state.next_arbitration, state.winner) = (end, left, number);
        self.hops += 1;
        if !state.waiting.is_empty() {
            self.schedule_arbitration(link.0);
        }

        // Advance the buffer.
        let next = self.packets[slot as usize].next;
        let buffer = &mut self.buffers[number as usize];
        buffer.busy = left;
        if self.settings.buffers == Buffers::Input {
            (buffer.first, buffer.requests) = (next, false);
            if next == NONE {
                buffer.last = NONE;
            }
        }
        let (input, class) = (LinkId(number / self.vcs), buffer.class);
        if self.settings.speedup.is_some() {
            self.links[input.index()].sending = number;
        }
        if self.settings.buffers == Buffers::Input && next != NONE || self.settings.speedup.is_some() {
            self.schedule_departure(number);
        }
        let back = self.speeds[usize::from(class.0)].back;
        let credit = left.checked_add(back).ok_or(out_of_time)?;
        match &mut self.border {
            Some(border) if border.sender_is_elsewhere(input) => {
                border.return_credit(input, number, wire, credit)
            }
            _ => self.queue.push(credit, Event::new(CREDIT, number, wire)),
        }

        let there = end.checked_add(latency).ok_or(out_of_time)?;
        if room == NONE {
            let Packet { message, bytes, .. } = self.packets.remove(slot as usize);
            let state = &mut self.messages[message as usize];
            state.to_arrive -= u64::from(bytes);
            // All packets of a message arrive over this link: the last one completes the message.
            if state.to_arrive == 0 && state.to_send == 0 {
                self.queue.push(there, Event::new(DELIVERED, message, 0));
            }
            return Ok(());
        }
        let last_byte = there.checked_add(self.switch_delay).ok_or(out_of_time)?;
        self.buffers[room as usize].credit -= wire;
        let ready = Picos(start.0 + latency.0 + self.switch_delay.0);
        match &self.border {
            Some(border) if border.receiver_is_elsewhere(link) => self.leave(room, slot, ready, last_byte),
            _ => self.enqueue(room, slot, ready, last_byte),
        }
        Ok(())
    }

    /// Puts a packet into a buffer that it is going to reach at `ready`.
    #[inline]
    fn enqueue(&mut self, room: u32, slot: u32, ready: Picos, last_byte: Picos) {
        let buffer = &mut self.buffers[room as usize];
        if self.settings.buffers == Buffers::Input {
            if buffer.last == NONE {
                buffer.first = slot;
            } else {
                self.packets[buffer.last as usize].next = slot;
            }
            buffer.last = slot;
        }
        let packet = &mut self.packets[slot as usize];
        (packet.next, packet.buffer) = (NONE, room);
        (packet.ready, packet.last_byte) = (ready, last_byte);
        packet.link = NONE;
        self.queue.push(packet.ready, Event::new(ARRIVE, slot, 0));
    }

    /// The last byte of a message has arrived.
    fn deliver(&mut self, slot: u32) -> Happened {
        let message = &mut self.messages[slot as usize];
        message.delivered = true;
        let (tag, latency) = (message.tag, self.now.saturating_sub(message.submitted));
        let queued = message.entered.saturating_sub(message.submitted);
        if let Some(border) = &mut self.border {
            border.arriving.remove(&(message.src, message.number));
        }
        if !message.report_sent {
            self.messages.remove(slot as usize);
        }
        Happened::Delivered { tag, latency, queued }
    }
}

impl Network for Packets<'_> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, tag } = message;
        let source = &mut self.sources[src as usize];
        source.count += 1;
        let key = match self.router.by_packet() {
            // Each packet combines this with its own number.
            true => source.count as u32,
            false => self.router.key(src, dst, source.count),
        };
        let slot = self.messages.insert(Message {
            tag,
            submitted: at,
            entered: at,
            to_send: bytes.0,
            to_arrive: bytes.0,
            src,
            dst,
            key,
            packets: 0,
            prepared: false,
            number: source.count as u32,
            report_sent: false,
            delivered: false,
            passing: false,
        });
        self.queue.push(at, Event::new(START, slot as u32, 0));
        if let Some(border) = &mut self.border {
            let number = source.count as u32;
            border.announce(Announced { tag, dst, src, number, submitted: at, bytes });
        }
        Ok(())
    }

    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        loop {
            if self.queue.next() != Some(self.now) {
                // All events of this moment are processed.
                if !self.arrived.is_empty() {
                    self.route_arrived();
                }
                if !self.to_arbitrate.is_empty() {
                    self.arbitrate()?;
                    continue;
                }
            }
            let Some((now, event)) = self.queue.pop(limit) else { return Ok(None) };
            self.now = now;
            let index = event.index();
            match event.0 & 7 {
                START => self.start(index),
                ARRIVE => self.arrive(index),
                ARBITRATE => self.arbitration_due(index),
                DEPARTED => self.departed(index),
                CREDIT => self.credit(index, event.bytes()),
                SENT => {
                    let message = &mut self.messages[index as usize];
                    message.report_sent = false;
                    let (tag, dst, is_gone) = (message.tag, message.dst, message.delivered);
                    if is_gone {
                        self.messages.remove(index as usize);
                        // With zero latencies the delivery may have come first.
                        if self.border.as_ref().is_none_or(|border| !border.is_elsewhere(dst)) {
                            continue;
                        }
                    }
                    return Ok(Some((now, Happened::Sent { tag })));
                }
                _ => return Ok(Some((now, self.deliver(index)))),
            }
        }
    }

    fn usage(&self) -> Vec<Usage> {
        self.usage.clone()
    }

    fn events(&self) -> u64 {
        self.hops
    }

    fn watch(&mut self) -> &mut Option<Box<Watch>> {
        &mut self.watch
    }

    fn deadlock(&self) -> Option<String> {
        self.circle().map(|circle| describe(&self.router, &circle))
    }
}
