//! A node while processes are being mapped to it by Open MPI's rules.

use crate::input::hwloc::Topology;

/// A node while processes are being mapped to it.
pub(super) struct Target {
    /// Index into the cluster's nodes.
    pub index: usize,
    pub slots: u32,
    pub topology: Topology,
    /// The object of each process in the order of mapping, `None` for the whole node.
    pub processes: Vec<Option<u32>>,
}

impl Target {
    pub(super) fn free(&self) -> u32 {
        self.slots.saturating_sub(self.processes.len() as u32)
    }

    pub(super) fn take(&mut self, count: u32) {
        self.processes.resize(self.processes.len() + count as usize, None);
    }
}
