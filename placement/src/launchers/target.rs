//! The state of a node during Open MPI's mapping.

use crate::input::hwloc::Topology;

/// The state of a node during the mapping.
pub(super) struct Target {
    /// Index into the cluster's nodes.
    pub index: usize,
    pub slots: u32,
    pub topology: Topology,
    /// The object of each process in mapping order; `None` for the whole node.
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
