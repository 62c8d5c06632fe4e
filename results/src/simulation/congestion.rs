//! What congestion control has done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use vef_format::units::Grouped;

/// What congestion control and loss have done, in packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CongestionReport {
    /// The control, in the form in which it can be given again; `none` if there is only loss.
    pub control: String,
    /// Packets marked by switches.
    pub marked: u64,
    /// Notifications of senders (DCQCN).
    pub notified: u64,
    /// Packets dropped by switches.
    pub dropped: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Times that a sender got no acknowledgement for too long.
    pub timeouts: u64,
    /// Most bytes that waited for a link, if buffers are those of outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_queue_bytes: Option<u64>,
}

impl fmt::Display for CongestionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { control, marked, notified, dropped, sent_again, timeouts, largest_queue_bytes } = self;
        let counts = [
            (*marked, "packets marked"),
            (*notified, "notifications"),
            (*dropped, "packets dropped"),
            (*sent_again, "sent again"),
            (*timeouts, "timeouts"),
        ];
        f.write_str(control)?;
        for (count, of) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {} {of}", Grouped(count))?;
        }
        largest_queue_bytes.map_or(Ok(()), |bytes| write!(f, ", longest queue {} B", Grouped(bytes)))
    }
}
