//! The state of a node during Open MPI's mapping.

use crate::input::hwloc::ObjectCounts;
use crate::placement::Node;

/// A node during the mapping.
pub(in crate::launchers) struct Target<'a> {
    /// Index into the cluster's nodes.
    pub index: usize,
    pub node: &'a Node,
    /// The slots of the node, or those of nodes without a given number.
    pub slots: u32,
    pub objects: ObjectCounts,
    /// The object of each process in mapping order; `None` for the whole node.
    pub processes: Vec<Option<u32>>,
}

impl Target<'_> {
    pub(in crate::launchers) fn free(&self) -> u32 {
        self.slots.saturating_sub(self.processes.len() as u32)
    }

    /// Takes processes that belong to an object.
    pub(in crate::launchers) fn take(&mut self, count: u32, object: Option<u32>) {
        self.processes.resize(self.processes.len() + count as usize, object);
    }
}
