//! Errors in the settings of a model.

use vef_format::units::Bytes;

use super::network::OutOfTime;
use crate::routing::RoutingError;

/// Invalid settings of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The routing is invalid for the topology, or needs more virtual channels.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The model has no links, which the caller needs.
    #[error("model loggp has no links: it only runs traces and GOAL schedules")]
    NoLinks,
    /// The routing compares loads with bytes, and the load of the model is of messages.
    #[error("routing {routing}: model flow counts messages, not bytes; leave the bytes out")]
    CountsBytes {
        /// The routing.
        routing: String,
    },
    /// Packets without payload, or too large.
    #[error("packets of {} bytes and a header of {}: write a size of at least 1, and both less than 256 MiB", .size.0, .header.0)]
    PacketSize {
        /// The payload.
        size: Bytes,
        /// The header.
        header: Bytes,
    },
    /// A buffer smaller than a packet.
    #[error("a buffer of {} bytes has no room for a packet of {}, header included", .buffer.0, .packet.0)]
    Buffer {
        /// The buffer.
        buffer: Bytes,
        /// A packet with its header.
        packet: Bytes,
    },
    /// A buffer of more than 2³² − 1 bytes.
    #[error("a buffer of {} bytes: at most 4294967295 are possible", .buffer.0)]
    BufferTooLarge {
        /// The buffer.
        buffer: Bytes,
    },
    /// A speedup below 1, or with output buffers, which have none.
    #[error("the speedup must be at least 1, and applies to input buffers only")]
    Speedup,
    /// A setting of congestion control or of loss that others do not permit.
    #[error("{option} need{} {needs}", if option.starts_with("--") { "s" } else { "" })]
    Congestion {
        /// The setting.
        option: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// The number of virtual channels is outside 1 to 255.
    #[error("{vcs} virtual channels: write a number from 1 to 255")]
    Channels {
        /// The number.
        vcs: u32,
    },
    /// The virtual channels of all classes of traffic are more than 255.
    #[error(
        "{vcs} × {classes} virtual channels, of {classes} classes of traffic: write a number from 1 to {}",
        u32::from(u8::MAX) / classes
    )]
    ChannelsOfClasses {
        /// The number of each class.
        vcs: u32,
        /// The classes.
        classes: u32,
    },
    /// A packet takes longer than 2⁶⁴ ps.
    #[error("{} bytes take longer than 2^64 ps (213 days) on a link, or are more than 2^26 packets", .0.bytes.0)]
    OutOfTime(#[from] OutOfTime),
}
