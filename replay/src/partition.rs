//! Partitions: one replay divided among several engines, so that threads can advance it side by side.
//!
//! Each partition has the tasks of its own nodes and reads their records itself; nothing is shared but what is never written. A message whose
//! receiver is in another partition leaves its own as a [`Parcel`] ([`Engine::export`]), which the simulator
//! takes there as it takes the message ([`Engine::import`]). Everything else of a partition is an engine like any other.

use crate::engine::Engine;
use crate::error::ReplayError;
use crate::live::{Completes, Flight, Of};
use crate::message::LiveId;
use vef_format::ids::CollectiveId;
use vef_format::units::Picos;

/// A message on its way from one partition to another: what the receiver's has to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the message is delivered in the partition that imports it"]
pub struct Parcel {
    /// The id of the line, or of the collective.
    id: u64,
    /// The receiver, counted over all jobs.
    receiver: u32,
    src: u32,
    /// Of a line the number of its sender's record; of a collective the receiver's rank of the communicator.
    dst: u32,
    flags: u32,
    start: Picos,
    /// The partition that exported it, and how many it had exported to the same one before.
    from: u32,
    serial: u32,
}

const OF_COLLECTIVE: u32 = 1;
const AWAITED: u32 = 2;
/// The send is not complete.
const INCOMPLETE: u32 = 4;

impl Parcel {
    /// Whether its sender has not completed the send, so that the partition that exported it is to be told as well when it is sent or
    /// delivered, under the id that it had there.
    pub fn is_incomplete(&self) -> bool {
        self.flags & INCOMPLETE != 0
    }

    /// As plain numbers, to go through a simulator's own structures or to another process.
    pub fn to_raw(self) -> [u64; 5] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << u32::BITS;
        let ends = pair(self.src, self.dst);
        [self.id, pair(self.receiver, self.flags), ends, self.start.0, pair(self.from, self.serial)]
    }

    /// Back from the plain numbers, which are those of a parcel of the same replay.
    pub fn from_raw([id, to, ends, start, number]: [u64; 5]) -> Self {
        let [high, low] = [|pair: u64| (pair >> u32::BITS) as u32, |pair: u64| pair as u32];
        let (from, serial) = (low(number), high(number));
        let (receiver, flags, start) = (low(to), high(to), Picos(start));
        Self { id, receiver, flags, src: low(ends), dst: high(ends), start, from, serial }
    }
}

/// Messages between partitions.
impl Engine {
    /// Takes a message out of this partition that goes to a task of another; its id is used up.
    ///
    /// Unless the send is incomplete ([`Parcel::is_incomplete`]): the id then stays valid here, for [`Engine::sent`] and
    /// [`Engine::delivered`], which complete the send and nothing else.
    pub fn export(&mut self, id: LiveId) -> Result<Parcel, ReplayError> {
        let flight = match self.live.get(id) {
            Some(flight) if !self.ended && !flight.exported => *flight,
            _ => return Err(self.refuse_id(id)),
        };
        if !self.is_elsewhere(flight.receiver) {
            return Err(self.refuse(ReplayError::NothingToExport { id }));
        }
        let Flight { src, mut dst, receiver, .. } = flight;
        let (parcel_id, flags) = match flight.of {
            Of::Line { id, awaited, record } => {
                // The receiver's rank of the job follows from the receiver.
                dst = record;
                (id, if awaited { AWAITED } else { 0 })
            }
            Of::Collective { open, .. } => (self.collectives.open[open as usize].id.0, OF_COLLECTIVE),
            Of::Imported(_) => return Err(self.refuse_id(id)),
        };
        self.live.stats.exported += 1;
        let incomplete = flight.completes_by_arrival();
        match incomplete {
            true => self.live.export(id),
            false => self.remove(id, receiver),
        }
        let flags = flags | if incomplete { INCOMPLETE } else { 0 };
        if let Of::Collective { open, .. } = flight.of {
            self.player().export(open);
        }
        let (from, serial) = match &mut self.partition {
            None => (0, 0),
            Some(partition) => (partition.number, partition.next_serial(receiver)),
        };
        Ok(Parcel { id: parcel_id, receiver, src, dst, flags, start: flight.start, from, serial })
    }

    /// Takes a message in that another partition has exported to a task of this one, once; the id is for [`Engine::delivered`].
    pub fn import(&mut self, parcel: Parcel) -> Result<LiveId, ReplayError> {
        if self.ended {
            return Err(ReplayError::Ended);
        }
        let Parcel { id, receiver, src, dst, flags, start, from, serial } = parcel;
        let tasks = self.sequences.len() as u32;
        if receiver >= tasks || src >= tasks || self.is_elsewhere(receiver) {
            return Err(self.refuse(ReplayError::NotHere));
        }
        let (of, dst) = match flags & OF_COLLECTIVE {
            0 => (
                Of::Line { id, awaited: flags & AWAITED != 0, record: dst },
                self.sequences[receiver as usize].rank.0,
            ),
            _ => (Of::Imported(CollectiveId(id)), dst),
        };
        if let Some(partition) = &mut self.partition
            && !partition.take(from, serial)
        {
            return Err(self.refuse(ReplayError::ImportedTwice));
        }
        self.live.stats.imported += 1;
        let job = self.sequences[receiver as usize].job;
        self.jobs[job as usize].under_way += 1;
        Ok(self.live.insert(Flight::new(of, src, dst, receiver, Completes::AtStart, start)))
    }

    /// Whether a task of a job is in this partition.
    pub fn has_task(&self, job: u32, task: u32) -> bool {
        let job = self.jobs.get(job as usize).filter(|job| task < job.tasks);
        job.is_some_and(|job| !self.is_elsewhere(job.first_task + task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_can_go_to_another_thread() {
        fn goes<T: Send>() {}
        goes::<Engine>();
    }

    #[test]
    fn a_parcel_reads_back() {
        let start = Picos(1 << 40);
        let parcel = Parcel {
            id: u64::MAX - 3,
            receiver: 7,
            src: u32::MAX,
            dst: 9,
            flags: 3,
            start,
            from: 5,
            serial: 6,
        };
        assert_eq!(Parcel::from_raw(parcel.to_raw()), parcel);
    }
}
