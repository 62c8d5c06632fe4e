//! The steps of congestion control: whose packet a node sends next, marks in switches, and what returns to senders.

use vef_format::units::{Bytes, Picos};

use super::congestion::settings::Congestion;
use super::congestion::{Ack, Control, Controlled, Flight, Flow, Loss, Sending, Turn};
use super::flows::{ACK, CREDITED, GRANT, NOTIFIED, PACED, REQUESTED, TIMEOUT};
use super::parts::{CONTROL, Credit, Event, Message, Packet};
use super::settings::Buffers;
use super::state::Packets;
use crate::model::OutOfTime;
use crate::random::combine;
use crate::routing::Load;
use crate::topology::LinkId;

/// A network without load, for the latency between two nodes.
struct Idle;

impl Load for Idle {
    fn load(&self, _: LinkId) -> u64 {
        0
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        bytes.0
    }
}

impl Packets<'_> {
    /// Latencies of links and switches from one node to another.
    fn latency(&self, src: u32, dst: u32) -> Picos {
        let latency = |link: LinkId| self.speeds[usize::from(self.links[link.index()].class.0)].speed.latency;
        let mut route = self.router.start(src, dst, self.router.key(src, dst, 0));
        let mut sum = latency(LinkId::injection(src));
        loop {
            let hop = self.router.next(&mut route, &Idle);
            sum = sum.saturating_add(self.switch_delay).saturating_add(latency(hop.link));
            if hop.last {
                return sum;
            }
        }
    }

    /// The flow between two nodes, of a class of traffic.
    fn flow(&mut self, src: u32, dst: u32, class: u8) -> u32 {
        let known = self.congestion.as_ref().and_then(|all| all.pairs.get(&(src, dst, class)).copied());
        if let Some(flow) = known {
            return flow;
        }
        let delay = self.latency(src, dst);
        let (size, line) = (self.settings.size.0, self.speeds[Controlled::NODE].speed.bandwidth);
        let classes = self.shares.count();
        let Some(all) = self.controlled() else { return 0 };
        let flow = all.flows.len() as u32;
        all.flows.push(Flow {
            src,
            host: src * classes + u32::from(class),
            receiver: dst * classes,
            delay,
            turn: Turn::Idle,
            control: all.start(line, delay, size),
            messages: Default::default(),
            sent: 0,
            acked: 0,
            acks: Default::default(),
            notify_at: Picos::ZERO,
            loss: Loss::default(),
        });
        all.pairs.insert((src, dst, class), flow);
        flow
    }

    /// A message enters the queue of its node.
    pub(super) fn start(&mut self, slot: u32) {
        if self.congestion.is_some() {
            return self.start_controlled(slot);
        }
        let Message { src, class, .. } = self.messages[slot as usize];
        let node = self.node(src);
        let source = node * self.shares.count() + u32::from(class);
        self.sources[source as usize].messages.push_back(slot);
        self.request_arbitration(LinkId::injection(node));
    }

    /// A message enters its flow.
    fn start_controlled(&mut self, slot: u32) {
        let message = &self.messages[slot as usize];
        let (src, bytes, size) = (message.src, message.to_send, self.settings.size.0);
        let number = self.flow(src, message.dst, message.class);
        // At most 2²⁶ (`MOST_PACKETS`).
        let packets = bytes.div_ceil(size).max(1) as u32;
        let Some(all) = self.controlled() else { return };
        let is_lossy = all.lossy.is_some();
        let free = match all.control {
            Some(Congestion::Credits { unsolicited }) => (unsolicited.0 / size).min(packets.into()) as u32,
            _ => 0,
        };
        all.set_sending(slot, Sending { flow: number, ..Sending::default() });
        let flow = &mut all.flows[number as usize];
        let delay = flow.delay;
        if is_lossy {
            flow.loss.append(slot, packets.into(), bytes);
        }
        let was_idle = flow.messages.is_empty() && flow.acked == flow.sent;
        flow.messages.push_back(slot);
        if let Control::Credits(credits) = &mut flow.control {
            let free = if was_idle && credits.packets == 0 { free } else { 0 };
            credits.packets += u64::from(free);
            if packets > free {
                // All but the last are full.
                let last = (bytes - u64::from(packets - 1) * size) as u32;
                credits.requests.push_back((packets - free - 1, last));
                self.after(delay, number, REQUESTED);
            }
        }
        let flow = self.controlled().map(|all| &all.flows[number as usize]);
        if flow.is_some_and(|flow| flow.turn == Turn::Idle) {
            self.list(number);
        }
    }

    /// The next flow of a host that may send.
    fn choose(&mut self, host: u32) -> Option<u32> {
        let (now, size) = (self.now, self.settings.size.0);
        loop {
            let all = self.congestion.as_deref_mut()?;
            let number = all.hosts[host as usize].ring.pop_front()?;
            let flow = &mut all.flows[number as usize];
            let Some(&message) = flow.messages.front() else {
                flow.turn = Turn::Idle;
                continue;
            };
            let under_way = flow.sent - flow.acked;
            let window = |window: u64| {
                let bytes = self.messages[message as usize].to_send.min(size);
                under_way == 0 || under_way + bytes <= window
            };
            let may_send = match &flow.control {
                Control::Nothing => true,
                Control::Window(bytes) => window(*bytes),
                Control::Dctcp(dctcp) => window(dctcp.window as u64),
                Control::Credits(credits) => credits.packets > 0,
                Control::Dcqcn(dcqcn) if dcqcn.next <= now => true,
                Control::Dcqcn(dcqcn) => {
                    let at = dcqcn.next;
                    flow.turn = Turn::Closed;
                    self.queue.push(at, Event::new(CONTROL, number, PACED));
                    continue;
                }
            };
            if may_send {
                return Some(number);
            }
            flow.turn = Turn::Closed;
        }
    }

    /// Sends the next packet of the flow whose turn it is at a node.
    pub(super) fn inject_controlled(&mut self, link: LinkId) -> Result<(), OutOfTime> {
        let classes = self.shares.count();
        let hosts = link.0 / 2 * classes..(link.0 / 2 + 1) * classes;
        for host in hosts.clone() {
            if self.sources[host as usize].messages.is_empty()
                && let Some(number) = self.choose(host)
                && let Some(all) = self.controlled()
            {
                all.hosts[host as usize].turn = Some(number);
                let message = all.flows[number as usize].messages.front().copied();
                self.sources[host as usize].messages.extend(message);
            }
        }
        // Each keeps its turn until a buffer has room.
        let Some((packet, class)) = self.inject(link)? else { return Ok(()) };
        let host = hosts.start + class;
        let sent_all = self.sources[host as usize].messages.pop_front().is_none();
        let (now, header) = (self.now, self.settings.header.0);
        let (bytes, message) = {
            let packet = &self.packets[packet as usize];
            (u64::from(packet.bytes), packet.message)
        };
        let Some(all) = self.congestion.as_deref_mut() else { return Ok(()) };
        let Some(number) = all.hosts[host as usize].turn.take() else { return Ok(()) };
        let flow = &mut all.flows[number as usize];
        flow.sent += bytes;
        match (&mut flow.control, &all.control) {
            (Control::Dcqcn(dcqcn), Some(Congestion::Dcqcn(settings))) => {
                dcqcn.sent(now, bytes, bytes + header, settings)
            }
            (Control::Credits(credits), _) => credits.packets -= 1,
            _ => {}
        }
        if sent_all {
            flow.messages.pop_front();
        }
        flow.turn = Turn::Idle;
        let number_of_packet = flow.loss.next;
        flow.loss.next += 1;
        if all.has_flights() {
            all.set_flight(packet, Flight { number: number_of_packet, marked: false });
        }
        if let Some((_, timeout)) = all.lossy {
            all.sending[message as usize].packets += 1;
            let loss = &mut all.flows[number as usize].loss;
            if !std::mem::replace(&mut loss.timed, true) {
                loss.progress = now;
                self.after(timeout, number, TIMEOUT);
            }
        }
        let Some(all) = self.controlled() else { return Ok(()) };
        all.enlist(number);
        let waits = |host: u32| !all.hosts[host as usize].ring.is_empty();
        if hosts.into_iter().any(waits) {
            self.schedule_arbitration(link.0);
        }
        Ok(())
    }

    /// A packet requests a link, with congestion control: it is marked if the queue is long, and dropped (`false`) if it has no room.
    #[inline]
    pub(super) fn admit(&mut self, link: LinkId, slot: u32) -> bool {
        if !self.congestion.as_ref().is_some_and(|all| all.has_queues) {
            return true;
        }
        let packet = &self.packets[slot as usize];
        let wire = u64::from(packet.bytes) + self.settings.header.0;
        let buffer = packet.buffer;
        let class = usize::from(self.links[link.index()].class.0);
        let place = self.queue_of(link, buffer);
        let seed = self.router.seed();
        let Some(all) = self.congestion.as_deref_mut() else { return true };
        let queue = all.queued[place];
        if all.lossy.is_some_and(|(most, _)| queue + wire > most) {
            self.drop_packet(slot);
            return false;
        }
        let marked = match &all.control {
            Some(Congestion::Dctcp(_)) => queue > all.thresholds[class],
            Some(Congestion::Dcqcn(settings)) => match settings.marked(queue) {
                0.0 => false,
                probability => {
                    all.draws += 1;
                    (combine(combine(seed, link.0.into()), all.draws) >> 11) as f64 / ((1u64 << 53) as f64)
                        < probability
                }
            },
            Some(Congestion::Window(_) | Congestion::Credits { .. }) | None => false,
        };
        if marked {
            let flight = &mut all.flights[slot as usize];
            all.counts.marked += u64::from(!flight.marked);
            flight.marked = true;
        }
        all.queued[place] = queue + wire;
        // Of input buffers, only the first packets wait for a link.
        if self.settings.buffers == Buffers::Output {
            all.counts.largest_queue = all.counts.largest_queue.max(queue + wire);
        }
        true
    }

    /// A switch drops a packet.
    pub(super) fn drop_packet(&mut self, slot: u32) {
        let Packet { message, buffer, bytes, .. } = self.packets.remove(slot as usize);
        if let Some(all) = self.controlled() {
            all.counts.dropped += 1;
            all.sending[message as usize].packets -= 1;
        }
        self.credit(Credit::new(self.now, buffer, bytes + self.settings.header.0 as u32));
        self.release(message);
    }

    /// A packet leaves the queue of a link.
    #[inline]
    pub(super) fn leaves_queue(&mut self, link: LinkId, slot: u32) {
        if !self.congestion.as_ref().is_some_and(|all| all.has_queues) {
            return;
        }
        let packet = &self.packets[slot as usize];
        let wire = u64::from(packet.bytes) + self.settings.header.0;
        let place = self.queue_of(link, packet.buffer);
        if let Some(all) = self.controlled() {
            all.queued[place] -= wire;
        }
    }

    /// The queue of a link for the class of traffic of a packet in this buffer.
    fn queue_of(&self, link: LinkId, buffer: u32) -> usize {
        (link.0 * self.shares.count() + self.class_of(buffer)) as usize
    }

    /// The last byte of a packet arrives at its node at `there`. Returns whether the node accepts it.
    pub(super) fn received(&mut self, slot: u32, message: u32, bytes: u32, there: Picos) -> bool {
        let Some(all) = self.congestion.as_deref_mut() else { return true };
        let flight = all.has_flights().then(|| all.flights[slot as usize]);
        let Flight { number, marked } = flight.unwrap_or_default();
        let of = all.sending[message as usize].flow;
        let flow = &mut all.flows[of as usize];
        let mut accepted = true;
        if all.lossy.is_some() {
            all.sending[message as usize].packets -= 1;
            accepted = number == flow.loss.expected;
            let missing = number > flow.loss.expected && !flow.loss.reported;
            if accepted {
                flow.loss.expected += 1;
            }
            if accepted || missing {
                flow.loss.reported = missing;
            }
            // A report of what is missing goes out once; a duplicate is acknowledged again.
            if accepted || missing || number < flow.loss.expected {
                flow.acks.push_back(Ack { bytes: 0, marked, arrived: flow.loss.expected, missing });
                self.queue.push(there.saturating_add(flow.delay), Event::new(CONTROL, of, ACK));
            }
        } else if matches!(flow.control, Control::Window(_) | Control::Dctcp(_)) {
            flow.acks.push_back(Ack { bytes: bytes.into(), marked, arrived: 0, missing: false });
            self.queue.push(there.saturating_add(flow.delay), Event::new(CONTROL, of, ACK));
        } else {
            flow.acked += u64::from(bytes);
        }
        if !accepted {
            self.release(message);
        }
        let Some(all) = self.congestion.as_deref_mut() else { return accepted };
        if let (true, Some(Congestion::Dcqcn(settings))) = (marked, &all.control) {
            let flow = &mut all.flows[of as usize];
            if there >= flow.notify_at {
                flow.notify_at = there.saturating_add(settings.cnp);
                all.counts.notified += 1;
                self.queue.push(there.saturating_add(flow.delay), Event::new(CONTROL, of, NOTIFIED));
            }
        }
        accepted
    }

    /// An event of congestion control.
    pub(super) fn control(&mut self, index: u32, what: u32) {
        match what {
            ACK => self.acknowledged(index),
            PACED => self.list(index),
            NOTIFIED => {
                let now = self.now;
                let Some(all) = self.controlled() else { return };
                if let (Control::Dcqcn(dcqcn), Some(Congestion::Dcqcn(settings))) =
                    (&mut all.flows[index as usize].control, &all.control)
                {
                    dcqcn.notified(now, settings);
                }
            }
            REQUESTED => self.requested(index),
            CREDITED => {
                let Some(all) = self.controlled() else { return };
                if let Control::Credits(credits) = &mut all.flows[index as usize].control {
                    credits.packets += 1;
                }
                self.list(index);
            }
            TIMEOUT => self.timed_out(index),
            _ => self.grant(index),
        }
    }

    fn acknowledged(&mut self, number: u32) {
        let size = self.settings.size.0;
        let Some(all) = self.controlled() else { return };
        let is_lossy = all.lossy.is_some();
        let flow = &mut all.flows[number as usize];
        let Some(ack) = flow.acks.pop_front() else { return };
        let bytes = match is_lossy {
            true => flow.loss.bytes_before(ack.arrived.max(flow.loss.acked), size).saturating_sub(flow.acked),
            false => ack.bytes,
        };
        flow.acked += bytes;
        if let Control::Dctcp(dctcp) = &mut flow.control {
            dctcp.acknowledged(bytes, ack.marked, flow.acked, flow.sent);
        }
        if is_lossy {
            self.arrived_until(number, ack.arrived, ack.missing);
        }
        self.list(number);
    }

    /// A request for credits arrives at its receiver.
    fn requested(&mut self, number: u32) {
        let Some(all) = self.controlled() else { return };
        let flow = &mut all.flows[number as usize];
        let dst = flow.receiver;
        let Control::Credits(credits) = &mut flow.control else { return };
        let was_waiting = !credits.demand.is_empty();
        credits.demand.extend(credits.requests.pop_front());
        let host = &mut all.hosts[dst as usize];
        if !was_waiting {
            host.granting.push_back(number);
        }
        if !std::mem::replace(&mut host.ticking, true) {
            let at = host.next_grant.max(self.now);
            self.queue.push(at, Event::new(CONTROL, dst, GRANT));
        }
    }

    /// A node gives a flow to it credit for a packet; the next one when that can have arrived over its link.
    fn grant(&mut self, node: u32) {
        let (now, size, header) = (self.now, self.settings.size.0, self.settings.header.0);
        let line = self.speeds[Controlled::NODE].speed.bandwidth;
        let Some(all) = self.controlled() else { return };
        let host = &mut all.hosts[node as usize];
        host.ticking = false;
        let Some(number) = host.granting.pop_front() else { return };
        let flow = &mut all.flows[number as usize];
        let Control::Credits(credits) = &mut flow.control else { return };
        let bytes = match credits.demand.front_mut() {
            Some((full, _)) if *full > 0 => {
                *full -= 1;
                size
            }
            _ => credits.demand.pop_front().map_or(size, |(_, last)| last.into()),
        };
        if !credits.demand.is_empty() {
            host.granting.push_back(number);
        }
        let time = line.time(Bytes(bytes + header)).unwrap_or(Picos::MAX);
        host.next_grant = now.saturating_add(time);
        host.ticking = !host.granting.is_empty();
        let (next, delay, more) = (host.next_grant, flow.delay, host.ticking);
        self.after(delay, number, CREDITED);
        if more {
            self.queue.push(next, Event::new(CONTROL, node, GRANT));
        }
    }
}
