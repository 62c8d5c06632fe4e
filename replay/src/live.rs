//! The messages that the simulator is carrying: a slab whose slots remember how often they were used.

use crate::message::LiveId;

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
    generation: u32,
    /// The slot that was freed before this one.
    free: u32,
    flight: Flight,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// Whether the simulator has a message, and has said that it left its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Free,
    Live,
    Sent,
}

/// What the engine must know when a message arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The id of a line, or a place in the table of open collectives.
    whose: u64,
    /// Sending task, counted over all jobs, or rank of the communicator.
    pub(crate) src: u32,
    /// Receiving task or rank likewise.
    pub(crate) dst: u32,
    /// Its [`State`], its [`Completes`] and whether it is of a collective, a byte each: one word, so that no part of it is read
    /// while another is still being stored.
    about: u32,
}

const COMPLETES: u32 = 8;
const OF_COLLECTIVE: u32 = 1 << 16;

impl Flight {
    #[inline(always)]
    pub(crate) fn new(of: Of, src: u32, dst: u32, completes: Completes) -> Self {
        let (whose, of_collective) = match of {
            Of::Line(id) => (id, 0),
            Of::Collective(place) => (place.into(), OF_COLLECTIVE),
        };
        let about = of_collective | (completes as u32) << COMPLETES | State::Live as u32;
        Self { whose, src, dst, about }
    }

    /// Whose message it is.
    #[inline(always)]
    pub(crate) fn of(&self) -> Of {
        match self.about & OF_COLLECTIVE {
            0 => Of::Line(self.whose),
            _ => Of::Collective(self.whose as u32),
        }
    }

    /// When its sender may go on.
    #[inline(always)]
    pub(crate) fn completes(&self) -> Completes {
        match self.about >> COMPLETES & 3 {
            0 => Completes::AtStart,
            1 => Completes::WhenSent,
            _ => Completes::WhenDelivered,
        }
    }

    #[inline(always)]
    fn state(&self) -> State {
        match self.about & 3 {
            0 => State::Free,
            1 => State::Live,
            _ => State::Sent,
        }
    }

    #[inline(always)]
    fn turn(&mut self, state: State) {
        self.about = self.about & !3 | state as u32;
    }

    /// Whether its sender waits for its arrival.
    #[inline(always)]
    pub(crate) fn completes_by_arrival(&self) -> bool {
        match self.completes() {
            Completes::AtStart => false,
            Completes::WhenSent => self.state() != State::Sent,
            Completes::WhenDelivered => true,
        }
    }
}

/// What a live message belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// The point-to-point line with this id.
    Line(u64),
    /// The collective in this place of the table of open ones.
    Collective(u32),
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
        self.free = slot.free;
        slot.flight = flight;
        LiveId::new(at, slot.generation)
    }

    /// A new slot.
    #[cold]
    fn grow(&mut self) -> u32 {
        let mut flight = Flight::new(Of::Line(0), 0, 0, Completes::AtStart);
        flight.turn(State::Free);
        self.slots.push(Slot { generation: 1, free: NONE, flight });
        (self.slots.len() - 1) as u32
    }

    /// Marks a message as gone from its source.
    #[inline]
    pub(crate) fn sent(&mut self, id: LiveId) -> Result<Flight, Refused> {
        match self.slots.get_mut(id.slot() as usize) {
            Some(slot) if slot.generation == id.generation() => match slot.flight.state() {
                State::Free => Err(Refused::NotLive),
                State::Sent => Err(Refused::AlreadySent),
                State::Live => {
                    slot.flight.turn(State::Sent);
                    Ok(slot.flight)
                }
            },
            _ => Err(Refused::NotLive),
        }
    }

    /// Lets a message go; `None` if there is none of that id.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: LiveId) -> Option<Flight> {
        let slot = self.slots.get_mut(id.slot() as usize)?;
        if slot.generation != id.generation() || slot.flight.state() == State::Free {
            return None;
        }
        let flight = slot.flight;
        slot.flight.turn(State::Free);
        // A slot used 2^32 times is retired: its ids would begin to repeat.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            slot.free = std::mem::replace(&mut self.free, id.slot());
        }
        Some(flight)
    }

    /// Lets the message in a slot go.
    pub(crate) fn remove_slot(&mut self, at: u32) -> Option<Flight> {
        let generation = self.slots.get(at as usize)?.generation;
        self.remove(LiveId::new(at, generation))
    }

    /// The live messages, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LiveId, Flight)> {
        (0u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.flight.state() != State::Free)
            .map(|(at, slot)| (LiveId::new(at, slot.generation), slot.flight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(line: u64) -> Flight {
        Flight::new(Of::Line(line), 1, 2, Completes::AtStart)
    }

    #[test]
    fn an_id_works_once() {
        let mut live = Live::default();
        let first = live.insert(flight(7));
        assert!(matches!(live.sent(first).unwrap().of(), Of::Line(7)));
        assert_eq!(live.sent(first).unwrap_err(), Refused::AlreadySent);
        let removed = live.remove(first).unwrap();
        assert!(matches!(removed.of(), Of::Line(7)) && removed.state() == State::Sent);
        assert!(live.remove(first).is_none());
        let second = live.insert(flight(8));
        assert_eq!(second.slot(), first.slot());
        assert_ne!(second, first);
        assert!(live.remove(first).is_none());
        assert_eq!(live.sent(first).unwrap_err(), Refused::NotLive);
        assert_eq!(live.iter().map(|(id, _)| id).collect::<Vec<_>>(), [second]);
    }

    #[test]
    fn invented_ids_are_refused() {
        let mut live = Live::default();
        let id = live.insert(flight(0));
        for raw in [0, 1, u64::MAX, id.to_raw() + 1, id.to_raw() ^ 1 << 40] {
            assert!(live.remove(LiveId::from_raw(raw)).is_none(), "{raw:#x}");
        }
    }

    #[test]
    fn a_worn_out_slot_is_not_used_again() {
        let mut live = Live::default();
        let id = live.insert(flight(0));
        live.slots[0].generation = u32::MAX;
        assert!(live.remove(LiveId::new(id.slot(), u32::MAX)).is_some());
        assert!(live.remove(LiveId::new(id.slot(), u32::MAX)).is_none());
        assert_eq!(live.insert(flight(1)).slot(), 1);
    }

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 32, "{}", size_of::<Slot>());
    }
}
