//! What the steps of congestion control share: their events, and the flows that wait for their turn.

use vef_format::units::Picos;

use super::congestion::Controlled;
use super::parts::{CONTROL, Event};
use super::state::Packets;
use crate::topology::LinkId;

/// Kinds of events of congestion control, in place of an event's bytes. Their index is a flow.
pub(super) const ACK: u32 = 0;
pub(super) const PACED: u32 = 1;
pub(super) const NOTIFIED: u32 = 2;
pub(super) const REQUESTED: u32 = 3;
pub(super) const CREDITED: u32 = 4;
pub(super) const TIMEOUT: u32 = 5;
/// Its index is a node.
pub(super) const GRANT: u32 = 6;

impl Packets<'_> {
    /// The state of congestion control.
    pub(super) fn controlled(&mut self) -> Option<&mut Controlled> {
        self.congestion.as_deref_mut()
    }

    /// An event of congestion control follows after this time.
    pub(super) fn after(&mut self, time: Picos, index: u32, what: u32) {
        self.queue.push(self.now.saturating_add(time), Event::new(CONTROL, index, what));
    }

    /// A flow waits for its turn, if it has something to send.
    pub(super) fn list(&mut self, number: u32) {
        let Some(all) = self.controlled() else { return };
        if let Some(node) = all.enlist(number) {
            self.request_arbitration(LinkId::injection(node));
        }
    }
}
