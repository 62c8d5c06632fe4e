//! Why a model cannot run.

use vef_format::units::Bytes;

use super::network::OutOfTime;
use crate::routing::RoutingError;

/// A model that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The topology does not have such a routing, or not with these virtual channels.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// A model without links, where links are asked about.
    #[error("model loggp knows ranks and no links: it runs traces and GOAL schedules")]
    NoLinks,
    /// Packets without payload, or too large ones.
    #[error("packets of {} bytes and a header of {}: write a size of at least 1, and both less than 256 MiB", .size.0, .header.0)]
    PacketSize {
        /// The payload.
        size: Bytes,
        /// The header.
        header: Bytes,
    },
    /// A buffer without room for a packet.
    #[error("a buffer of {} bytes has no room for a packet of {}, header included", .buffer.0, .packet.0)]
    Buffer {
        /// The buffer.
        buffer: Bytes,
        /// A packet with its header.
        packet: Bytes,
    },
    /// A buffer beyond what can be counted.
    #[error("a buffer of {} bytes: at most 4294967295 are possible", .buffer.0)]
    BufferTooLarge {
        /// The buffer.
        buffer: Bytes,
    },
    /// A switch slower inside than its links, or output buffers, which are reached at once.
    #[error(
        "a switch with input buffers is at least as fast inside as its links: write a speedup of at least 1"
    )]
    Speedup,
    /// No virtual channels, or too many.
    #[error("{vcs} virtual channels: write a number from 1 to 255")]
    Channels {
        /// How many.
        vcs: u32,
    },
    /// A time beyond the end of time.
    #[error("{} bytes need until after the end of time (2^64 ps, 213 days) on a link", .0.bytes.0)]
    OutOfTime(#[from] OutOfTime),
}
