//! The parcels that went from one partition to others and came from them, so that each is imported once.

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What one of several partitions knows of the others.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) number: u32,
    /// The partition of each task, counted over all jobs.
    of_tasks: Arc<[u32]>,
    /// Number of parcels that went to each other partition.
    pub(crate) exported: HashMap<u32, u32>,
    /// The parcels that came from each.
    pub(crate) imported: HashMap<u32, Imported>,
}

/// The serial numbers of parcels that have come from one partition.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Imported {
    /// All below it have.
    below: u32,
    /// Those behind it that have.
    ahead: HashSet<u32>,
}

impl Partition {
    pub(crate) fn new(number: u32, of_tasks: Arc<[u32]>) -> Self {
        Self { number, of_tasks, exported: HashMap::new(), imported: HashMap::new() }
    }

    /// The number of the next parcel to a task, counted over all jobs, of another partition.
    pub(crate) fn next_serial(&mut self, receiver: u32) -> u32 {
        let count = self.exported.entry(self.of_tasks[receiver as usize]).or_default();
        let serial = *count;
        *count = count.wrapping_add(1);
        serial
    }

    /// Takes note of a parcel that comes from another partition; whether it is new.
    pub(crate) fn take(&mut self, from: u32, serial: u32) -> bool {
        self.imported.entry(from).or_default().take(serial)
    }
}

impl Imported {
    /// Takes note of a parcel; whether it is new. Serial numbers begin again behind the last, long after the parcels of old ones were
    /// imported.
    fn take(&mut self, serial: u32) -> bool {
        // Half of the numbers lie behind.
        if serial.wrapping_sub(self.below) > u32::MAX / 2 || !self.ahead.insert(serial) {
            return false;
        }
        while self.ahead.remove(&self.below) {
            self.below = self.below.wrapping_add(1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_number_is_taken_once() {
        let mut imported = Imported { below: u32::MAX - 1, ..Imported::default() };
        let taken = [1, u32::MAX - 1, 0, u32::MAX - 1, 1, u32::MAX, 0, 2].map(|serial| imported.take(serial));
        assert_eq!(taken, [true, true, true, false, false, true, false, true]);
        assert_eq!((imported.below, imported.ahead.len()), (3, 0));
    }
}
