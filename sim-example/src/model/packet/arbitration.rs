//! Which of the packets that request a link it serves next.

use vef_format::units::Picos;

use super::parts::{NONE, Packet};
use super::settings::{Arbiter, Buffers};
use super::state::Packets;
use crate::model::OutOfTime;
use crate::random::combine;
use crate::topology::LinkId;

impl Packets<'_> {
    /// Arbitrates all links that need it.
    pub(super) fn arbitrate(&mut self) -> Result<(), OutOfTime> {
        let mut open = std::mem::take(&mut self.to_arbitrate);
        if self.settings.speedup.is_some() && open.len() > 1 {
            // An input sends over one link at a time. The order does not depend on that of events or on other
            // switches, and changes with time, for fairness.
            open.sort_unstable_by_key(|link| combine(self.now.0, link.0.into()));
        }
        for &link in &open {
            let state = &mut self.links[link.index()];
            state.requested = false;
            if state.next_arbitration > self.now {
                self.schedule_arbitration(link.0);
            } else if link.0 < 2 * self.sources.len() as u32 && link.0.is_multiple_of(2) {
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
        state.settle(self.now, &mut self.buffers);
        let (mut chosen, mut oldest, mut no_room) = (None, Picos::MAX, false);
        let mut first_turn = (0, 0, 0);
        for place in 0..count {
            let waiting = self.links[link.index()].waiting[place];
            let slot = match self.settings.buffers {
                Buffers::Output => waiting,
                Buffers::Input => self.buffers[waiting as usize].first,
            };
            let packet = &self.packets[slot as usize];
            if self.settings.speedup.is_some() && self.input_is_busy(packet.buffer) {
                continue;
            }
            let room = match packet.last {
                true => NONE,
                false => {
                    let bytes = packet.bytes + self.settings.header.0 as u32;
                    match self.room_for(link, bytes, packet.vcs) {
                        Some(room) => room,
                        None => {
                            no_room = true;
                            continue;
                        }
                    }
                }
            };
            match self.settings.arbiter {
                // Output buffers are first come, first served.
                Arbiter::RoundRobin if count == 1 || self.settings.buffers == Buffers::Output => {
                    chosen = Some((place, slot, room));
                    break;
                }
                Arbiter::RoundRobin => {
                    let turn = self.turn(link, packet);
                    if chosen.is_none() || turn < first_turn {
                        (chosen, first_turn) = (Some((place, slot, room)), turn);
                    }
                }
                Arbiter::Age => {
                    let age = self.messages[packet.message as usize].submitted;
                    if age < oldest {
                        (chosen, oldest) = (Some((place, slot, room)), age);
                    }
                }
            }
        }
        let now = self.now;
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

    /// When it is a packet's turn on a link: classes of virtual channels take turns, within a class, inputs of the switch, and within an
    /// input, a random channel is first. A single order for all classes starves buffers, because each win of a class would move the turn
    /// of the others; with one for all buffers, an input would get more the more of its channels wait. The turn does not depend on other
    /// links, which may be served at the same time, in any order.
    #[inline]
    fn turn(&self, link: LinkId, packet: &Packet) -> (u32, u32, u32) {
        let class = if packet.last { 0 } else { u32::from(packet.vcs.0) };
        let served = self.links[link.index()].served;
        let winner = self.buffers[(link.0 * self.vcs + class) as usize].winner;
        let channel = u64::from(packet.buffer) + combine(self.now.0, link.0.into()) % u64::from(self.vcs);
        // Those behind the last one come first, in ascending order, then the others.
        (
            class.wrapping_sub(served + 1),
            self.buffers[packet.buffer as usize].link.0.wrapping_sub(winner + 1),
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
