//! The messages that are under way, from their start to their delivery.

use crate::departure::Departure;
use crate::in_calls::InCalls;
use crate::message::{LiveId, Message, Next, Sink, Wake, WakeTarget};
use crate::options::{SameNode, SendCompletion};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use slotmap::SlotMap;
use vef_format::ids::CollectiveId;
use vef_format::units::{Bytes, Picos};

/// The messages under way, and what decides about each that starts.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) flights: SlotMap<slotmap::DefaultKey, Flight>,
    pub(crate) stats: Stats,
    /// End node of each task, counted over all jobs.
    pub(crate) nodes: Vec<u32>,
    pub(crate) send_completion: SendCompletion,
    pub(crate) same_node: SameNode,
    /// Messages that a task, or a part of a collective, may start before the simulator calls it.
    pub(crate) run_ahead: u8,
    /// Set if large messages wait for their receivers.
    pub(crate) in_calls: Option<Box<InCalls>>,
}

/// What the engine must know when a message is reported sent or delivered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Flight {
    pub(crate) of: Of,
    /// Sending task, counted over all jobs; of a collective, the sender's rank of the communicator.
    pub(crate) src: u32,
    /// The receiver's rank of the communicator; of a line, its rank of the job.
    pub(crate) dst: u32,
    /// The receiving task, counted over all jobs.
    pub(crate) receiver: u32,
    pub(crate) completes: Completes,
    /// When it started.
    pub(crate) start: Picos,
    /// Whether the simulator has reported it sent.
    sent: bool,
    /// Whether it has left for another partition, and its sender waits for it.
    pub(crate) exported: bool,
}

/// What a live message belongs to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Of {
    /// The point-to-point line with this id.
    Line {
        id: u64,
        /// Whether some record waits for its reception, as far as the trace says so.
        awaited: bool,
        /// Number of the line among its sender's records, or [`UNKNOWN`].
        record: u32,
    },
    /// A collective.
    Collective {
        /// Its key in the table of open ones.
        open: u32,
        /// Number of the message among those that its sender sends in it.
        number: u32,
        /// Number of its sender's record, or [`UNKNOWN`].
        record: u32,
    },
    /// The collective of that id: the message came from another partition, in which its key is another.
    Imported(CollectiveId),
}

/// The number of a record that is not known, or too large for what is kept of a message.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// A record's number for [`Of`].
#[inline(always)]
pub(crate) fn short(record: u64) -> u32 {
    u32::try_from(record).unwrap_or(UNKNOWN)
}

/// The moment at which a send is complete for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Completes {
    AtStart,
    WhenSent,
    WhenDelivered,
}

/// Why an id is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    NotLive,
    AlreadySent,
}

/// The order of messages of one moment ([`Message::order`]).
#[inline(always)]
pub(crate) fn order(sender: u32, record: u32) -> u64 {
    u64::from(sender) << u32::BITS | u64::from(record)
}

impl Flight {
    #[inline(always)]
    pub(crate) fn new(of: Of, src: u32, dst: u32, receiver: u32, completes: Completes, start: Picos) -> Self {
        Self { of, src, dst, receiver, completes, start, sent: false, exported: false }
    }

    /// Whether its sender's send is complete when it arrives, and not before.
    #[inline(always)]
    pub(crate) fn completes_by_arrival(&self) -> bool {
        match self.completes {
            Completes::AtStart => false,
            Completes::WhenSent => !self.sent,
            Completes::WhenDelivered => true,
        }
    }
}

impl Live {
    pub(crate) fn new(
        nodes: Vec<u32>,
        send_completion: SendCompletion,
        same_node: SameNode,
        run_ahead: u8,
    ) -> Self {
        let in_calls = match send_completion {
            SendCompletion::RendezvousInCalls { .. } => Some(Box::new(InCalls::new(nodes.len()))),
            _ => None,
        };
        Self {
            flights: SlotMap::new(),
            stats: Stats::default(),
            nodes,
            send_completion,
            same_node,
            // What the receiver of a message does is known up to the present.
            run_ahead: if in_calls.is_some() { 0 } else { run_ahead },
            in_calls,
        }
    }

    /// A message starts; `None` if it would arrive past the end of time.
    #[inline(always)]
    pub(crate) fn start(
        &mut self,
        departure: impl Fn() -> Departure,
        flight: Flight,
        out: &mut impl Sink,
    ) -> Option<()> {
        let leaving = departure();
        self.stats.start(leaving.kind, leaving.bytes);
        let waits = flight.completes == Completes::WhenDelivered;
        let id = self.insert(flight);
        // Made again where it is kept: so the other need not be in memory.
        if let Some(in_calls) = &mut self.in_calls
            && waits
            && in_calls.keep(id, departure())
        {
            return Some(());
        }
        self.leave(id, &leaving, out)
    }

    /// A message that waited for its receiver leaves at `at`; `None` as for [`Live::start`].
    #[cold]
    pub(crate) fn leave_late(
        &mut self,
        id: LiveId,
        departure: Departure,
        at: Picos,
        out: &mut impl Sink,
    ) -> Option<()> {
        let departure = Departure { start: at, ..departure };
        let flight = self.flights.get_mut(id.key())?;
        flight.start = at;
        let line = match flight.of {
            Of::Line { id, .. } => Some(id),
            Of::Collective { .. } | Of::Imported(_) => None,
        };
        out.met(&departure.met(line));
        self.leave(id, &departure, out)
    }

    /// Hands a message to the simulator.
    #[inline(always)]
    fn leave(&mut self, id: LiveId, departure: &Departure, out: &mut impl Sink) -> Option<()> {
        let &Departure { ready, start, bytes, kind, job, src, dst, first_task, record } = departure;
        let [src_node, dst_node] = [src, dst].map(|rank| self.nodes[(first_task + rank.0) as usize]);
        let order = order(first_task + src.0, record);
        let message = Message { id, start, ready, order, src_node, dst_node, bytes, job, src, dst, kind };
        if let SameNode::Inside(memory) = &self.same_node
            && src_node == dst_node
        {
            self.stats.inside.add(bytes);
            let link = if src == dst { &memory.itself } else { &memory.shared };
            let arrives = link.time(bytes).and_then(|took| start.checked_add(took))?;
            out.take(Next::Inside { message, arrives });
        } else {
            out.take(Next::Message(message));
        }
        Some(())
    }

    /// A task is in a call at `at`: messages that waited for that may leave.
    #[inline(always)]
    pub(crate) fn enter_call(&mut self, task: u32, at: Picos, out: &mut impl Sink) {
        let Some(in_calls) = &mut self.in_calls else { return };
        for (slot, sender) in in_calls.enter(task) {
            let inside = self.same_node.keeps(&self.nodes, sender, task);
            out.take(Next::Wake(Wake { at, target: WakeTarget(WakeTarget::HELD | slot), inside }));
        }
    }

    /// Whether messages between two tasks stay within their node.
    #[inline(always)]
    pub(crate) fn stays_inside(&self, src: u32, dst: u32) -> bool {
        self.same_node.keeps(&self.nodes, src, dst)
    }

    /// When a message of that size is complete for its sender; a `synchronous` one as one that is large.
    #[inline]
    pub(crate) fn completes(&self, bytes: Bytes, synchronous: bool) -> Completes {
        let is_large = |above| synchronous || bytes > above;
        match self.send_completion {
            SendCompletion::Eager => Completes::AtStart,
            SendCompletion::WhenSent => Completes::WhenSent,
            SendCompletion::LargeWhenSent { above } if is_large(above) => Completes::WhenSent,
            SendCompletion::Rendezvous { above } | SendCompletion::RendezvousInCalls { above }
                if is_large(above) =>
            {
                Completes::WhenDelivered
            }
            SendCompletion::LargeWhenSent { .. }
            | SendCompletion::Rendezvous { .. }
            | SendCompletion::RendezvousInCalls { .. } => Completes::AtStart,
        }
    }

    /// Takes a message in.
    #[inline(always)]
    pub(crate) fn insert(&mut self, flight: Flight) -> LiveId {
        LiveId::of_key(self.flights.insert(flight))
    }

    /// The message of that id; `None` if there is none.
    #[inline(always)]
    pub(crate) fn get(&self, id: LiveId) -> Option<&Flight> {
        self.flights.get(id.key()).filter(|_| id.is_possible())
    }

    /// Marks a message as gone from its source.
    #[inline]
    pub(crate) fn sent(&mut self, id: LiveId) -> Result<Flight, Refused> {
        let flight = self.flights.get_mut(id.key()).filter(|_| id.is_possible()).ok_or(Refused::NotLive)?;
        match std::mem::replace(&mut flight.sent, true) {
            true => Err(Refused::AlreadySent),
            false => Ok(*flight),
        }
    }

    /// Marks a message that [`Live::get`] has returned as exported to another partition.
    pub(crate) fn export(&mut self, id: LiveId) {
        if let Some(flight) = self.flights.get_mut(id.key()) {
            flight.exported = true;
        }
    }

    /// Removes a message that [`Live::get`] has returned.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: LiveId) {
        self.flights.remove(id.key());
    }

    /// The live messages, in the order of [`LiveId::slot`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LiveId, &Flight)> {
        self.flights.iter().map(|(key, flight)| (LiveId::of_key(key), flight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Live {
        Live::new(Vec::new(), SendCompletion::Eager, SameNode::ViaNetwork, 0)
    }

    fn flight(id: u64) -> Flight {
        Flight::new(Of::Line { id, awaited: false, record: 0 }, 1, 2, 2, Completes::AtStart, Picos::ZERO)
    }

    #[test]
    fn an_id_works_once() {
        let mut live = live();
        let first = live.insert(flight(7));
        assert!(matches!(live.sent(first).unwrap().of, Of::Line { id: 7, .. }));
        assert_eq!(live.sent(first).unwrap_err(), Refused::AlreadySent);
        assert!(matches!(live.get(first).unwrap().of, Of::Line { id: 7, .. }));
        live.remove(first);
        assert!(live.get(first).is_none());
        let second = live.insert(flight(8));
        assert_eq!(second.slot(), first.slot());
        assert_ne!(second, first);
        assert!(live.get(first).is_none());
        assert_eq!(live.sent(first).unwrap_err(), Refused::NotLive);
        assert_eq!(live.iter().map(|(id, _)| id).collect::<Vec<_>>(), [second]);
    }

    #[test]
    fn invented_ids_are_refused() {
        let mut live = live();
        let id = live.insert(flight(0));
        let free = live.insert(flight(1));
        live.remove(free);
        assert!(live.get(id).is_some() && live.get(free).is_none());
        for bit in 0..u64::BITS {
            for raw in [id.to_raw(), free.to_raw()].map(|raw| raw ^ 1 << bit) {
                assert!(live.get(LiveId::from_raw(raw)).is_none(), "{raw:#x}");
            }
        }
        for raw in [0, 1, u64::MAX, u64::from(u32::MAX)] {
            assert!(live.get(LiveId::from_raw(raw)).is_none(), "{raw:#x}");
        }
    }

    #[test]
    fn a_flight_is_small() {
        assert!(size_of::<Flight>() <= 40, "{}", size_of::<Flight>());
    }
}
