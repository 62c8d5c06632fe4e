//! Congestion control: what it knows of flows, nodes and queues. `controlled.rs` has its steps in a network.
//!
//! A flow is a pair of nodes, with its messages in order; the flows of a node that may send take turns, packet by packet.
//! Acknowledgements, notifications, requests and credits take the latency of the links and switches between the two nodes, and no
//! bandwidth.

pub(super) mod dcqcn;
pub(super) mod dctcp;
mod parameters;
pub(super) mod settings;

use std::collections::VecDeque;

use hashbrown::HashMap;
use vef_format::units::{Bytes, Picos};

use dcqcn::Dcqcn;
use dctcp::Dctcp;
use settings::{Congestion, Window};

use super::parts::ClassSpeed;
use super::settings::Buffers;
use crate::model::network::Congested;
use crate::quantity::Bandwidth;
use crate::topology::LinkClass;

/// Whether a flow is in the turn of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has nothing to send.
    Idle,
    /// It waits for its turn.
    Listed,
    /// It may not send.
    Closed,
}

/// What limits the sender of a flow.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Nothing,
    Window(u64),
    Dctcp(Dctcp),
    Dcqcn(Dcqcn),
    Credits(Credits),
}

/// The credits of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits {
    /// Packets that the sender may send.
    pub(super) packets: u64,
    /// Requests under way to the receiver: full packets, and bytes of the one behind them.
    pub(super) requests: VecDeque<(u32, u32)>,
    /// Those that have arrived, without the packets that have got credits.
    pub(super) demand: VecDeque<(u32, u32)>,
}

/// What a receiver returns for a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// Bytes of the packet; without loss.
    pub(super) bytes: u64,
    pub(super) marked: bool,
    /// With loss: packets that have arrived in order.
    pub(super) arrived: u64,
    /// With loss: whether a packet is missing.
    pub(super) missing: bool,
}

/// A message that is not acknowledged whole, with loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub(super) message: u32,
    /// Packets and bytes of the flow before it.
    pub(super) first: u64,
    pub(super) before: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The packets from one node to another, of a class of traffic.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) src: u32,
    /// The [`Host`] that sends.
    pub(super) host: u32,
    /// The [`Host`] that gives credits.
    pub(super) receiver: u32,
    /// Latency between the nodes.
    pub(super) delay: Picos,
    pub(super) turn: Turn,
    pub(super) control: Control,
    /// Messages with bytes to send.
    pub(super) messages: VecDeque<u32>,
    /// Payload.
    pub(super) sent: u64,
    pub(super) acked: u64,
    /// Acknowledgements under way.
    pub(super) acks: VecDeque<Ack>,
    /// Of the receiver: when it may notify again.
    pub(super) notify_at: Picos,
    pub(super) loss: Loss,
}

/// What a flow knows for go-back-N.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// Messages that are not acknowledged whole.
    pub(super) log: VecDeque<Logged>,
    /// Packets and bytes of all messages so far.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The packet that is sent next.
    pub(super) next: u64,
    /// Packets that have arrived in order, as known to the sender.
    pub(super) acked: u64,
    /// Of the receiver: the packet that it accepts.
    pub(super) expected: u64,
    /// Of the receiver: whether it has reported that packet as missing.
    pub(super) reported: bool,
    /// Whether an event of the timer is queued.
    pub(super) timed: bool,
    /// When the sender last heard of progress.
    pub(super) progress: Picos,
}

impl Loss {
    /// Bytes of the flow before a packet.
    pub(super) fn bytes_before(&self, packet: u64, size: u64) -> u64 {
        match self.log.iter().find(|entry| packet < entry.first + entry.packets) {
            Some(entry) if packet >= entry.first => entry.before + (packet - entry.first) * size,
            Some(entry) => entry.before,
            None => self.bytes,
        }
    }
}

/// The flows of a node, of a class of traffic. Credits are given by the first one of a node, for flows of all classes.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Flows that send from it, in turn.
    pub(super) ring: VecDeque<u32>,
    /// The flow of the message that is in the node's queue.
    pub(super) turn: Option<u32>,
    /// Flows to it that want credits, in turn.
    pub(super) granting: VecDeque<u32>,
    /// When it gives the next credit.
    pub(super) next_grant: Picos,
    /// Whether an event for that is queued.
    pub(super) ticking: bool,
}

/// A packet under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Its number in its flow, with loss.
    pub(super) number: u64,
    pub(super) marked: bool,
}

/// A message in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    pub(super) flow: u32,
    /// With loss: packets in the network.
    pub(super) packets: u32,
    /// With loss: whether all of it is acknowledged.
    pub(super) acked: bool,
}

/// Congestion control of a network.
#[derive(Debug)]
pub(crate) struct Controlled {
    pub(super) control: Option<Congestion>,
    /// Most bytes that wait for a link, if others are dropped, and the time after which a sender goes back.
    pub(super) lossy: Option<(u64, Picos)>,
    pub(super) flows: Vec<Flow>,
    /// By source, destination and class of traffic.
    pub(super) pairs: HashMap<(u32, u32, u8), u32>,
    pub(super) hosts: Vec<Host>,
    /// Whether anything depends on how much waits for a link.
    pub(super) has_queues: bool,
    /// Bytes that wait, by link and class of traffic.
    pub(super) queued: Vec<u64>,
    /// DCTCP's K, by class of links.
    pub(super) thresholds: Vec<u64>,
    /// By packet.
    pub(super) flights: Vec<Flight>,
    /// By message.
    pub(super) sending: Vec<Sending>,
    pub(super) counts: Congested,
    /// Draws so far, for marks at random.
    pub(super) draws: u64,
}

impl Controlled {
    pub(super) fn new(
        control: Option<Congestion>,
        lossy: Option<(Bytes, Picos)>,
        buffers: Buffers,
        speeds: &[ClassSpeed],
        (hosts, queues): (u32, u32),
    ) -> Self {
        let threshold = |speed: &ClassSpeed| match control {
            Some(Congestion::Dctcp(settings)) => settings.threshold(speed.speed.bandwidth),
            Some(Congestion::Dcqcn(_) | Congestion::Window(_) | Congestion::Credits { .. }) | None => 0,
        };
        Self {
            control,
            lossy: lossy.map(|(queue, timeout)| (queue.0, timeout)),
            flows: Vec::new(),
            pairs: HashMap::new(),
            hosts: (0..hosts).map(|_| Host::default()).collect(),
            has_queues: lossy.is_some()
                || control.as_ref().is_some_and(Congestion::marks)
                || buffers == Buffers::Output,
            queued: vec![0; queues as usize],
            thresholds: speeds.iter().map(threshold).collect(),
            flights: Vec::new(),
            sending: Vec::new(),
            counts: Congested::default(),
            draws: 0,
        }
    }

    /// The control of a new flow over so much bandwidth and latency.
    pub(super) fn start(&self, line: Bandwidth, delay: Picos, packet: u64) -> Control {
        match &self.control {
            None => Control::Nothing,
            Some(Congestion::Window(Window::Bytes(bytes))) => Control::Window(bytes.0),
            Some(Congestion::Window(Window::Bdp)) => {
                // What passes until the first acknowledgement, in whole packets.
                let whole = line.time(Bytes(packet)).map_or(1, |time| time.0.max(1));
                let packets = (2 * u128::from(delay.0)).div_ceil(u128::from(whole)) + 1;
                Control::Window(u64::try_from(packets * u128::from(packet)).unwrap_or(u64::MAX))
            }
            Some(Congestion::Dctcp(settings)) => Control::Dctcp(Dctcp::new(settings, packet)),
            Some(Congestion::Dcqcn(_)) => Control::Dcqcn(Dcqcn::new(line)),
            Some(Congestion::Credits { .. }) => Control::Credits(Credits::default()),
        }
    }

    /// Speed class of links to nodes.
    pub(super) const NODE: usize = LinkClass::NODE.0 as usize;

    /// Whether no packet of a delivered message is left, and its sender knows that it has arrived.
    pub(super) fn has_finished(&self, message: u32) -> bool {
        let Sending { packets, acked, .. } = self.sending[message as usize];
        self.lossy.is_none() || acked && packets == 0
    }

    /// What has happened.
    pub(super) fn counts(&self) -> Congested {
        self.counts
    }

    /// Puts a flow with something to send into the turn of its node. Returns the node, unless it was there.
    pub(super) fn enlist(&mut self, number: u32) -> Option<u32> {
        let flow = &mut self.flows[number as usize];
        let host = &mut self.hosts[flow.host as usize];
        if flow.messages.is_empty() || flow.turn == Turn::Listed || host.turn == Some(number) {
            return None;
        }
        flow.turn = Turn::Listed;
        host.ring.push_back(number);
        Some(flow.src)
    }

    /// Whether packets may be marked or lost, so that each needs a [`Flight`].
    #[inline]
    pub(super) fn has_flights(&self) -> bool {
        self.lossy.is_some() || self.control.as_ref().is_some_and(Congestion::marks)
    }

    pub(super) fn set_flight(&mut self, packet: u32, flight: Flight) {
        set(&mut self.flights, packet, flight);
    }

    pub(super) fn set_sending(&mut self, message: u32, sending: Sending) {
        set(&mut self.sending, message, sending);
    }
}

fn set<T: Clone + Default>(of: &mut Vec<T>, at: u32, value: T) {
    let at = at as usize;
    if at >= of.len() {
        of.resize(at + 1, T::default());
    }
    of[at] = value;
}
