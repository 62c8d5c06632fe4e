//! The messages that are under way: a slab whose slots remember how often they were used.

use crate::message::LiveId;
use vef_format::ids::CollectiveId;

/// Slots, and which are free. A slot costs 32 bytes and is reused last in, first out, so that a steady
/// traffic stays in the cache.
#[derive(Debug)]
pub(crate) struct Live {
    slots: Vec<Slot>,
    /// The slot that was freed last, or [`NONE`].
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    flight: Flight,
    /// The id of the message; of a free slot the last one's, with the impossible slot [`NONE`].
    id: LiveId,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// What the engine must know when a message is reported sent or delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The id of a line, or a place in the table of open collectives. Of a free slot the slot that was freed before.
    key: u64,
    /// Sending sequence, or the sender's rank of the communicator.
    pub(crate) src: u32,
    /// The receiver's rank of the communicator; of a line, its rank of the job.
    pub(crate) dst: u32,
    /// The receiver's sequence.
    pub(crate) receiver: u32,
    /// Bits, below.
    flags: u32,
}

const COMPLETES: u32 = 3;
const SENT: u32 = 1 << 2;
const OF_COLLECTIVE: u32 = 1 << 3;
const AWAITED: u32 = 1 << 4;
/// It has left for another partition, and its sender waits for it.
const EXPORTED: u32 = 1 << 5;
/// It came from another partition, and is of a collective.
const IMPORTED: u32 = 1 << 6;

/// What a live message belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// The point-to-point line with this id.
    Line {
        id: u64,
        /// Whether some record waits for its reception, as far as the trace says so.
        awaited: bool,
    },
    /// The collective in this place of the table of open ones.
    Collective(u32),
    /// The collective of that id: the message came from another partition, in which its place is another.
    Imported(CollectiveId),
}

/// The moment at which a send is complete for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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

impl Flight {
    #[inline(always)]
    pub(crate) fn new(of: Of, src: u32, dst: u32, receiver: u32, completes: Completes) -> Self {
        let (key, flags) = match of {
            Of::Line { id, awaited } => (id, if awaited { AWAITED } else { 0 }),
            Of::Collective(place) => (place.into(), OF_COLLECTIVE),
            Of::Imported(id) => (id.0, IMPORTED),
        };
        Self { key, src, dst, receiver, flags: flags | completes as u32 }
    }

    /// Whose message it is.
    #[inline(always)]
    pub(crate) fn of(&self) -> Of {
        match self.flags & (OF_COLLECTIVE | IMPORTED) {
            0 => Of::Line { id: self.key, awaited: self.flags & AWAITED != 0 },
            OF_COLLECTIVE => Of::Collective(self.key as u32),
            _ => Of::Imported(CollectiveId(self.key)),
        }
    }

    /// The id of a line whose send was complete at its start, and whether some record waits for its reception.
    #[inline(always)]
    pub(crate) fn as_eager_line(&self) -> Option<(u64, bool)> {
        let is_eager_line = self.flags & (COMPLETES | OF_COLLECTIVE | IMPORTED) == 0;
        is_eager_line.then_some((self.key, self.flags & AWAITED != 0))
    }

    /// Whether it has left for another partition.
    #[inline]
    pub(crate) fn is_exported(&self) -> bool {
        self.flags & EXPORTED != 0
    }

    /// When its sender's send is complete.
    #[inline(always)]
    pub(crate) fn completes(&self) -> Completes {
        match self.flags & COMPLETES {
            0 => Completes::AtStart,
            1 => Completes::WhenSent,
            _ => Completes::WhenDelivered,
        }
    }

    /// Whether its sender's send is complete when it arrives, and not before.
    #[inline(always)]
    pub(crate) fn completes_by_arrival(&self) -> bool {
        match self.completes() {
            Completes::AtStart => false,
            Completes::WhenSent => self.flags & SENT == 0,
            Completes::WhenDelivered => true,
        }
    }
}

/// A live message in its slot.
pub(crate) struct Entry<'a> {
    slot: &'a mut Slot,
    free: &'a mut u32,
}

impl Entry<'_> {
    #[inline(always)]
    pub(crate) fn flight(&self) -> &Flight {
        &self.slot.flight
    }

    /// Frees the slot.
    #[inline(always)]
    pub(crate) fn remove(self) {
        let at = self.slot.id.slot();
        self.slot.id = self.slot.id.of_free_slot();
        self.slot.flight.key = std::mem::replace(self.free, at).into();
    }
}

impl Default for Live {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }
}

impl Live {
    /// Takes a message in.
    #[inline(always)]
    pub(crate) fn insert(&mut self, flight: Flight) -> LiveId {
        let at = match self.free {
            NONE => self.grow(),
            free => free,
        };
        let slot = &mut self.slots[at as usize];
        self.free = slot.flight.key as u32;
        let Some(id) = slot.id.next_of_slot(at) else {
            // The slot was used 2^32 times and is retired: its ids would begin to repeat.
            let slot = self.new_slot();
            slot.flight = flight;
            return slot.id;
        };
        (slot.flight, slot.id) = (flight, id);
        id
    }

    /// A new slot with its first id.
    #[cold]
    fn new_slot(&mut self) -> &mut Slot {
        let at = self.grow();
        let slot = &mut self.slots[at as usize];
        slot.id = LiveId::from_raw(1 << u32::BITS | u64::from(at));
        slot
    }

    /// A new slot, which is free.
    #[cold]
    fn grow(&mut self) -> u32 {
        let flight = Flight { key: NONE.into(), src: 0, dst: 0, receiver: 0, flags: 0 };
        self.slots.push(Slot { flight, id: LiveId::from_raw(0).of_free_slot() });
        (self.slots.len() - 1) as u32
    }

    /// The entry of a live message; `None` if there is no message of that id.
    #[inline(always)]
    pub(crate) fn entry(&mut self, id: LiveId) -> Option<Entry<'_>> {
        let Self { slots, free } = self;
        let slot = slots.get_mut(id.slot() as usize)?;
        (slot.id == id).then_some(Entry { slot, free })
    }

    /// Marks a message as gone from its source.
    #[inline]
    pub(crate) fn sent(&mut self, id: LiveId) -> Result<Flight, Refused> {
        match self.entry(id) {
            None => Err(Refused::NotLive),
            Some(Entry { slot, .. }) if slot.flight.flags & SENT != 0 => Err(Refused::AlreadySent),
            Some(Entry { slot, .. }) => {
                slot.flight.flags |= SENT;
                Ok(slot.flight)
            }
        }
    }

    /// The message of that id; `None` if there is none.
    #[inline(always)]
    pub(crate) fn get(&self, id: LiveId) -> Option<Flight> {
        let slot = self.slots.get(id.slot() as usize)?;
        (slot.id == id).then_some(slot.flight)
    }

    /// Marks a message that [`Live::get`] has returned as exported to another partition.
    pub(crate) fn export(&mut self, id: LiveId) {
        self.slots[id.slot() as usize].flight.flags |= EXPORTED;
    }

    /// Removes a message, if it is live.
    pub(crate) fn remove(&mut self, id: LiveId) {
        if let Some(entry) = self.entry(id) {
            entry.remove();
        }
    }

    /// The live messages, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LiveId, Flight)> {
        self.slots.iter().filter(|slot| slot.id.slot() != NONE).map(|slot| (slot.id, slot.flight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(id: u64) -> Flight {
        Flight::new(Of::Line { id, awaited: false }, 1, 2, 2, Completes::AtStart)
    }

    #[test]
    fn an_id_works_once() {
        let mut live = Live::default();
        let first = live.insert(flight(7));
        assert!(matches!(live.sent(first).unwrap().of(), Of::Line { id: 7, .. }));
        assert_eq!(live.sent(first).unwrap_err(), Refused::AlreadySent);
        assert!(matches!(live.get(first).unwrap().of(), Of::Line { id: 7, .. }));
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
        let mut live = Live::default();
        let id = live.insert(flight(0));
        let free = live.insert(flight(1));
        live.remove(free);
        let (as_stored, at) = (free.of_free_slot(), free.slot());
        let next_of_slot = as_stored.next_of_slot(at).unwrap();
        for invented in [free, next_of_slot, as_stored] {
            assert!(live.get(invented).is_none(), "{invented}");
        }
        for raw in [0, 1, u64::MAX, id.to_raw() + 1, id.to_raw() ^ 1 << 40] {
            assert!(live.get(LiveId::from_raw(raw)).is_none(), "{raw:#x}");
        }
    }

    #[test]
    fn a_worn_out_slot_is_not_used_again() {
        let mut live = Live::default();
        let id = live.insert(flight(0));
        let last = LiveId::from_raw(u64::MAX << u32::BITS | id.to_raw());
        live.slots[0].id = last;
        assert!(live.get(last).is_some());
        live.remove(last);
        assert!(live.get(last).is_none());
        assert_eq!(live.insert(flight(1)).slot(), 1);
    }

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 32, "{}", size_of::<Slot>());
    }
}
