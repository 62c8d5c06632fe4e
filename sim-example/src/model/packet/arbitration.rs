//! Which of the packets that request a link it serves next.

use vef_format::units::Picos;

use super::parts::{NONE, Request};
use super::settings::{Arbiter, Buffers};
use super::state::Packets;
use crate::model::OutOfTime;
use crate::random::combine;
use crate::topology::LinkId;

/// The order in which packets are served, the least first.
type Turn = (u64, u64, u32, u32);

impl Packets<'_> {
    /// Arbitrates all links that need it.
    pub(super) fn arbitrate(&mut self) -> Result<(), OutOfTime> {
        let mut open = std::mem::take(&mut self.to_arbitrate);
        if self.settings.speedup.is_some() && open.len() > 1 {
            // An input sends over one link at a time. The order does not depend on that of events or on other
            // switches, and changes with time, for fairness.
            open.sort_unstable_by_key(|link| combine(self.now.0, self.whole(*link).0.into()));
        }
        for &link in &open {
            let state = &mut self.links[link.index()];
            state.requested = false;
            if state.next_arbitration > self.now {
                self.schedule_arbitration(link.0);
            } else if link.0 < 2 * self.nodes && link.0.is_multiple_of(2) {
                match self.congestion {
                    Some(_) => self.inject_controlled(link)?,
                    None => self.inject(link).map(drop)?,
                }
            } else {
                self.serve(link)?;
            }
        }
        open.clear();
        // Arbitration requests no arbitration.
        self.to_arbitrate = open;
        Ok(())
    }

    /// Arbitrates a link between switches or an ejection link.
    #[inline]
    fn serve(&mut self, link: LinkId) -> Result<(), OutOfTime> {
        let state = &mut self.links[link.index()];
        let count = state.waiting.len();
        if count == 0 {
            return Ok(());
        }
        state.settle(self.now, &mut self.credits, &mut self.buffers);
        let (mut chosen, mut first_turn, mut no_room) = (None, Turn::default(), false);
        let first_come = self.settings.buffers == Buffers::Output;
        let in_order = first_come && self.settings.arbiter == Arbiter::RoundRobin && self.shares.count() == 1;
        // Most that wait have a room in common.
        let mut same = (0, (0, 0), None);
        for (place, request) in self.links[link.index()].waiting.iter().enumerate() {
            if self.settings.speedup.is_some() && self.input_is_busy(request.buffer) {
                continue;
            }
            let room = if request.last {
                NONE
            } else {
                if (same.0, same.1) != (request.wire, request.vcs) {
                    same = (request.wire, request.vcs, self.room_for(link, request.wire, request.vcs));
                }
                let Some(room) = same.2 else {
                    no_room = true;
                    continue;
                };
                room
            };
            let found = (place, request.slot, room);
            if count == 1 || in_order {
                chosen = Some(found);
                break;
            }
            let class = self.class_of(request.buffer);
            let start = self.shares.start(link, class);
            let turn = match self.settings.arbiter {
                // Output buffers are first come, first served.
                Arbiter::RoundRobin if first_come => (start, 0, 0, 0),
                Arbiter::RoundRobin => self.turn(link, request, start, class),
                Arbiter::Age => {
                    let message = self.packets[request.slot as usize].message;
                    (start, self.messages[message as usize].submitted.0, 0, 0)
                }
            };
            if chosen.is_none() || turn < first_turn {
                (chosen, first_turn) = (Some(found), turn);
            }
        }
        let now = self.now;
        let state = &self.links[link.index()];
        if let (Some(held), Some((_, slot, _))) = (&self.outages, chosen) {
            let start = state.free.max(now);
            let end = self.end((link, state.class), start, self.packets[slot as usize].bytes)?;
            if held.will_fail(link, start, end) {
                return Ok(());
            }
        }
        let state = &mut self.links[link.index()];
        let Some((place, slot, room)) = chosen else {
            if no_room && state.blocked == Picos::MAX {
                state.blocked = now;
            }
            self.wake(link);
            return Ok(());
        };
        state.waiting.remove(place);
        self.send(link, slot, room)
    }

    /// When it is a packet's turn on a link: after classes of traffic by their tags, classes of virtual channels take turns, within a class,
    /// inputs of the switch, and within an input, a random channel is first. A single order for all classes starves buffers, because each
    /// win of a class would move the turn of the others; with one for all buffers, an input would get more the more of its channels wait.
    /// The turn does not depend on other links, which may be served at the same time, in any order.
    #[inline]
    fn turn(&self, link: LinkId, request: &Request, start: u64, traffic: u32) -> Turn {
        let (class, first) = (u32::from(request.vcs.0), link.0 * self.vcs);
        let served = u32::from(self.buffers[(first + traffic * self.vcs_of_class) as usize].served);
        let winner = self.buffers[(first + class) as usize].winner;
        let input = request.buffer / self.vcs;
        let channel =
            u64::from(request.buffer) + combine(self.now.0, self.whole(link).0.into()) % u64::from(self.vcs);
        // Those behind the last one come first, in ascending order, then the others.
        (
            start,
            class.wrapping_sub(served + 1).into(),
            input.wrapping_sub(winner.wrapping_add(1)),
            (channel % u64::from(self.vcs)) as u32,
        )
    }

    /// Whether the input of a buffer is sending; an event follows when it has finished.
    #[inline]
    fn input_is_busy(&self, number: u32) -> bool {
        let sending = self.links[self.buffers[number as usize].link.index()].sending;
        self.buffers[sending as usize].busy > self.now
    }
}
