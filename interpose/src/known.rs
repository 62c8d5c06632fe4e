//! The state of the program's handles.

use crate::comms::Comms;
use crate::pending::PendingRequests;
use crate::requests::Template;
use crate::table::{HandleMap, Numbered};
use vef_format::capture::event::DatatypeId;
use vef_format::units::Bytes;

#[derive(Default)]
pub(crate) struct KnownObjects {
    pub(crate) comms: Comms,
    pub(crate) types: Numbered<KnownType>,
    pub(crate) windows: Numbered<u32>,
    pub(crate) files: Numbered<u32>,
    pub(crate) requests: PendingRequests,
    /// Matched messages by handle.
    pub(crate) messages: PendingRequests,
    /// The templates of persistent requests.
    pub(crate) templates: HandleMap<Template>,
    /// Number of partitioned transfers.
    partitioned: u32,
}

impl KnownObjects {
    /// The number of the next partitioned transfer.
    pub(crate) fn next_partitioned(&mut self) -> u32 {
        self.partitioned += 1;
        self.partitioned - 1
    }
}

/// The properties of a datatype that recording needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownType {
    pub(crate) id: DatatypeId,
    /// Whether its elements have gaps.
    pub(crate) sparse: bool,
    /// Bytes of one element.
    pub(crate) size: u64,
}

impl KnownType {
    #[inline(always)]
    pub(crate) fn bytes(self, count: i64) -> Bytes {
        Bytes(self.size.wrapping_mul(count as u64))
    }
}
