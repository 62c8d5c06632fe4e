//! The state of a packet network, and the steps of single links and buffers.

use std::collections::VecDeque;

use replay::Queue;
use slab::Slab;
use vef_format::units::{Bytes, Picos};

use super::border::Border;
use super::classes::Shares;
use super::congestion::Controlled;
use super::parts::*;
use super::settings::{Buffers, PacketSettings, room};
use crate::model::kind::Setup;
use crate::model::links::{Links, Usage};
use crate::model::paces::Paces;
use crate::model::{Hops, ModelError, OutOfTime};
use crate::routing::Router;
use crate::topology::{LinkClass, LinkId};
use crate::watch::Watch;

/// A network of packets.
pub(crate) struct Packets<'a> {
    pub(super) router: Router<'a>,
    pub(super) settings: PacketSettings,
    /// Virtual channels per link.
    pub(super) vcs: u32,
    /// Those of a class of traffic.
    pub(super) vcs_of_class: u32,
    /// The shares of classes of traffic.
    pub(super) shares: Shares,
    /// The range of virtual channels (first, end) of each class, of the first class of traffic, for local and for global links.
    pub(super) channels: [Vec<(u8, u8)>; 2],
    pub(super) speeds: Vec<ClassSpeed>,
    pub(super) switch_delay: Picos,
    pub(super) overhead: Picos,
    pub(super) report_sent: bool,
    pub(super) links: Vec<Link>,
    pub(super) usage: Vec<Usage>,
    /// By link and virtual channel.
    pub(super) buffers: Vec<Buffer>,
    /// Nodes of the network, or of this part of it.
    pub(super) nodes: u32,
    /// By node and class of traffic.
    pub(super) sources: Vec<Source>,
    pub(super) messages: Slab<Message>,
    pub(super) packets: Slab<Packet>,
    pub(super) credits: Credits,
    pub(super) queue: Queue<Event>,
    pub(super) now: Picos,
    /// Buffers (output buffers: packets) whose head has arrived and needs routing.
    pub(super) arrived: Vec<u32>,
    /// Links that need arbitration.
    pub(super) to_arbitrate: Vec<LinkId>,
    /// Links that packets have crossed, in sum.
    pub(super) crossings: u64,
    pub(super) hops: Hops,
    pub(super) watch: Option<Box<Watch>>,
    /// Set with a congestion control, or if switches drop packets.
    pub(super) congestion: Option<Box<Controlled>>,
    /// Set if links fail at times.
    pub(super) outages: Option<Box<Held<'a>>>,
    /// Set if the bandwidth of links changes.
    pub(super) paces: Option<Box<Paces>>,
    /// Set in a network that several threads divide among themselves.
    pub(super) border: Option<Box<Border<'a>>>,
}

impl<'a> Packets<'a> {
    /// An empty network.
    pub(crate) fn new(setup: &Setup<'a>) -> Result<Self, ModelError> {
        let &Setup { mut router, links, packet: settings, report_sent, .. } = setup;
        if let Some(vcs) = settings.vcs.filter(|vcs| !(1..=u32::from(u8::MAX)).contains(vcs)) {
            return Err(ModelError::Channels { vcs });
        }
        let vcs = router.assign_channels(settings.vcs, settings.channel_classes)?;
        let vcs = if settings.vcs.is_none() { vcs.max(2) } else { vcs };
        Self::with_channels(router, vcs, settings, links, report_sent, None)
    }

    /// As [`Self::new`], with `vcs` virtual channels per link and class of traffic, which are not checked; with a `border`, the part of the
    /// network behind it.
    pub(crate) fn with_channels(
        router: Router<'a>,
        vcs: u32,
        settings: PacketSettings,
        links: &Links,
        report_sent: bool,
        border: Option<Box<Border<'a>>>,
    ) -> Result<Self, ModelError> {
        let topology = router.fabric();
        let (vcs_of_class, classes) = (vcs, settings.classes.count());
        let vcs = vcs * classes;
        if vcs > u32::from(u8::MAX) {
            return Err(match classes {
                1 => ModelError::Channels { vcs },
                _ => ModelError::ChannelsOfClasses { vcs: vcs_of_class, classes },
            });
        }
        // Divide the channels evenly among the classes.
        let channels = [LinkClass::LOCAL, LinkClass::GLOBAL].map(|class| {
            let classes = router.classes(class).min(vcs_of_class);
            let first = |class: u32| (class * vcs_of_class / classes) as u8;
            (0..classes).map(|class| (first(class), first(class + 1))).collect()
        });
        let most = settings.size.0.saturating_add(settings.header.0);
        if settings.size.0 == 0 || most >= MOST_BYTES {
            return Err(ModelError::PacketSize { size: settings.size, header: settings.header });
        }
        let whole = Bytes(most);
        let (mut speeds, of_classes) = (Vec::new(), links.speeds(topology));
        let paces = Paces::new(topology, |class| of_classes[usize::from(class.0)].bandwidth);
        for speed in of_classes {
            let whole = speed.bandwidth.time(whole).ok_or(OutOfTime { bytes: whole })?;
            let back = speed.latency.saturating_add(settings.credit_delay);
            speeds.push(ClassSpeed { speed, whole, back, buffered: Picos::ZERO });
        }
        let rooms = speeds
            .iter()
            .map(|speed| room(&settings, speed, links.switch_delay))
            .collect::<Result<Vec<u32>, _>>()?;
        for (speed, &room) in speeds.iter_mut().zip(&rooms) {
            let bytes = Bytes(room.into());
            speed.buffered = speed.speed.bandwidth.time(bytes).ok_or(OutOfTime { bytes })?;
        }
        if settings.speedup.is_some_and(|speedup| !(speedup >= 1.0 && speedup.is_finite()))
            || settings.speedup.is_some() && settings.buffers == Buffers::Output
        {
            return Err(ModelError::Speedup);
        }
        settings.check_congestion(&router)?;
        let congestion = (settings.congestion.is_some() || settings.lossy.is_some()).then(|| {
            let of = (topology.nodes() * classes, topology.links() * classes);
            Box::new(Controlled::new(
                settings.congestion,
                settings.lossy_queue(),
                settings.buffers,
                &speeds,
                of,
            ))
        });
        let whole: Vec<LinkId> = match &border {
            None => (0..topology.links()).map(LinkId).collect(),
            Some(border) => border.parts.links(border.part).to_vec(),
        };
        let nodes = whole.partition_point(|link| link.0 < 2 * topology.nodes()) as u32 / 2;
        // As if the first input of the whole network had been served last.
        let winner = if whole.first() == Some(&LinkId(0)) { 0 } else { NONE };
        let link = |(own, whole): (u32, &LinkId)| Link {
            free: Picos::ZERO,
            next_arbitration: Picos::ZERO,
            load: 0,
            class: topology.class(*whole),
            global: topology.kind(*whole) == LinkClass::GLOBAL,
            scheduled: false,
            requested: false,
            blocked: Picos::MAX,
            waiting: VecDeque::new(),
            sending: own * vcs,
            first_credit: NONE,
            last_credit: NONE,
            wake: Picos::MAX,
        };
        let all_links: Vec<Link> = (0..).zip(&whole).map(link).collect();
        let buffer = |(number, link): (u32, &Link)| Buffer {
            link: LinkId(number),
            first: NONE,
            last: NONE,
            credit: rooms[usize::from(link.class.0)],
            winner,
            served: 0,
            busy: Picos::ZERO,
        };
        let buffers: Vec<Buffer> =
            (0..).zip(&all_links).flat_map(|link| vec![buffer(link); vcs as usize]).collect();
        let mut queue = Queue::new();
        let changes = topology.outages().into_iter().flat_map(|outages| &outages.begins()[1..]);
        changes.for_each(|&begin| queue.push(begin, Event::new(CONTROL, 0, CHANGED)));
        Ok(Self {
            settings,
            vcs,
            vcs_of_class,
            shares: Shares::new(settings.classes, whole.len() as u32),
            channels,
            speeds,
            switch_delay: links.switch_delay,
            overhead: links.overhead,
            report_sent,
            usage: vec![Usage::default(); all_links.len()],
            links: all_links,
            buffers,
            nodes,
            sources: (0..nodes * classes).map(|_| Source::default()).collect(),
            messages: Slab::new(),
            packets: Slab::new(),
            credits: Slab::new(),
            queue,
            now: Picos::ZERO,
            arrived: Vec::new(),
            to_arbitrate: Vec::new(),
            crossings: 0,
            hops: Hops::default(),
            watch: None,
            congestion,
            outages: topology.outages().map(|outages| Box::new(Held::new(outages))),
            paces,
            border,
            router,
        })
    }

    /// The number in the whole network of a link here.
    #[inline]
    pub(super) fn whole(&self, own: LinkId) -> LinkId {
        self.border.as_ref().map_or(own, |border| border.whole(own))
    }

    /// The number here of a node of the whole network.
    #[inline]
    pub(super) fn node(&self, node: u32) -> u32 {
        self.border.as_ref().map_or(node, |border| border.parts.at_sender(LinkId::injection(node)).0 / 2)
    }

    /// The class of traffic of the packets in a buffer.
    #[inline]
    pub(super) fn class_of(&self, buffer: u32) -> u32 {
        match self.shares.count() {
            1 => 0,
            _ => buffer % self.vcs / self.vcs_of_class,
        }
    }

    /// The virtual channels (first, end) of a class of traffic.
    #[inline]
    pub(super) fn channels_of(&self, class: u32) -> (u8, u8) {
        ((class * self.vcs_of_class) as u8, ((class + 1) * self.vcs_of_class) as u8)
    }

    /// Requests arbitration for a link, after all other events of this moment.
    #[inline]
    pub(super) fn request_arbitration(&mut self, link: LinkId) {
        let state = &mut self.links[link.index()];
        if !state.requested {
            state.requested = true;
            self.to_arbitrate.push(link);
        }
    }

    /// Schedules the next arbitration of a link.
    #[inline]
    pub(super) fn schedule_arbitration(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        if !state.scheduled {
            state.scheduled = true;
            self.queue.push(state.next_arbitration, Event::new(ARBITRATE, link, 0));
        }
    }

    /// A link can be arbitrated again.
    #[inline]
    pub(super) fn arbitration_due(&mut self, link: u32) {
        self.links[link as usize].scheduled = false;
        self.request_arbitration(LinkId(link));
    }

    /// A packet has left the input of a buffer entirely, which is free for its other virtual channels.
    #[inline]
    pub(super) fn departed(&mut self, number: u32) {
        let input = number - number % self.vcs;
        for other in input..input + self.vcs {
            let first = self.buffers[other as usize].first;
            if first != NONE && self.packets[first as usize].link != NONE {
                self.request_arbitration(LinkId(self.packets[first as usize].link));
            }
        }
    }

    /// The credit of a buffer returns at some time.
    #[inline]
    pub(super) fn credit(&mut self, credit: Credit) {
        let link = self.buffers[credit.buffer as usize].link;
        self.links[link.index()].add_credit(credit, &mut self.credits);
        self.wake(link);
    }

    /// Schedules the next look at the credits of a link, if it is blocked.
    #[inline]
    pub(super) fn wake(&mut self, link: LinkId) {
        let state = &mut self.links[link.index()];
        if state.blocked != Picos::MAX
            && let Some(at) = state.next_credit(&self.credits)
            && at < state.wake
        {
            state.wake = at;
            self.queue.push(at, Event::new(CREDIT, link.0, 0));
        }
    }

    /// A credit may have returned to a link.
    #[inline]
    pub(super) fn credit_due(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        state.wake = Picos::MAX;
        if state.blocked != Picos::MAX {
            self.request_arbitration(LinkId(link));
        }
    }

    /// Forgets a message that is delivered, unless something of it is still to happen.
    #[inline]
    pub(super) fn release(&mut self, slot: u32) {
        let message = &self.messages[slot as usize];
        if message.delivered
            && !message.report_sent
            && self.congestion.as_ref().is_none_or(|all| all.has_finished(slot))
        {
            self.messages.remove(slot as usize);
        }
    }

    /// Transmission time of a packet with that payload.
    #[inline]
    pub(super) fn time(&self, class: LinkClass, payload: u32) -> Result<Picos, OutOfTime> {
        let ClassSpeed { speed, whole, .. } = self.speeds[usize::from(class.0)];
        if u64::from(payload) == self.settings.size.0 {
            return Ok(whole);
        }
        let wire = Bytes(u64::from(payload) + self.settings.header.0);
        speed.bandwidth.time(wire).ok_or(OutOfTime { bytes: Bytes(payload.into()) })
    }

    /// When a packet with that payload has left that begins to leave at `start`, over a link of that class.
    #[inline]
    pub(super) fn end(
        &self,
        (link, class): (LinkId, LinkClass),
        start: Picos,
        payload: u32,
    ) -> Result<Picos, OutOfTime> {
        let bytes = Bytes(payload.into());
        if let Some(pace) = self.paces.as_ref().and_then(|paces| paces.of(link)) {
            return pace.after(start, Bytes(bytes.0 + self.settings.header.0)).ok_or(OutOfTime { bytes });
        }
        start.checked_add(self.time(class, payload)?).ok_or(OutOfTime { bytes })
    }

    /// Puts a packet into a buffer that it is going to reach at `ready`.
    #[inline]
    pub(super) fn enqueue(&mut self, room: u32, slot: u32, ready: Picos, last_byte: Picos) {
        let packet = &mut self.packets[slot as usize];
        (packet.next, packet.buffer) = (NONE, room);
        (packet.ready, packet.last_byte) = (ready, last_byte);
        packet.link = NONE;
        if self.settings.buffers == Buffers::Output {
            return self.queue.push(ready, Event::new(ARRIVE, slot, 0));
        }
        let buffer = &mut self.buffers[room as usize];
        match std::mem::replace(&mut buffer.last, slot) {
            NONE => {
                buffer.first = slot;
                self.queue.push(ready.max(buffer.busy), Event::new(ARRIVE, room, 0));
            }
            last => self.packets[last as usize].next = slot,
        }
    }

    /// The virtual channel of `link`, within `vcs`, with the most credit, if that is at least `bytes`.
    #[inline]
    pub(super) fn room_for(&self, link: LinkId, bytes: u32, vcs: (u8, u8)) -> Option<u32> {
        let first = link.0 * self.vcs;
        let mut best: Option<(u32, u32)> = None;
        for number in first + u32::from(vcs.0)..first + u32::from(vcs.1) {
            let credit = self.buffers[number as usize].credit;
            if credit >= bytes && best.is_none_or(|(most, _)| credit > most) {
                best = Some((credit, number));
            }
        }
        best.map(|(_, number)| number)
    }
}
