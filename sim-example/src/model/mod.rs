//! What messages do to each other on their way.
//!
//! Link `i` of the `H` links of a route has the latency λᵢ and takes `τᵢ = ⌈8m / bandwidthᵢ⌉` (whole picoseconds)
//! for all `m` bytes; a switch between two links takes σ. A message is ready at `r`, its node interface prepares it
//! for the time `o`, one message after the other. In the models of [`message`]
//!
//! ```text
//! aᵢ      first byte at the beginning of link i         a₁ = r + o behind the node's earlier messages
//! bᵢ      last byte at the beginning of link i          b₁ = a₁
//! readyᵢ = max( aᵢ, bᵢ − τᵢ )
//! startᵢ = max( readyᵢ, endᵢ of the message before it on link i )
//! endᵢ   = startᵢ + τᵢ
//! bᵢ₊₁   = endᵢ + λᵢ + σ
//! aᵢ₊₁   = aᵢ + (startᵢ − readyᵢ) + λᵢ + σ   (cut-through)        aᵢ₊₁ = bᵢ₊₁   (store-and-forward)
//! sent   = end₁               delivered = end_H + λ_H
//! ```
//!
//! A link serves messages in the order in which their first bytes come to it. It belongs to one message from `start` to `end`,
//! τᵢ and no longer: a fast link behind a slow one sends the message in one piece that ends with its last byte, while the
//! first byte goes ahead. A message that waits is delayed as a whole.
//! Switches have room for all that waits (infinite buffers), and no message is divided into packets.
//! With a burst of `c` bytes ([`Links::burst`]) a link is a token bucket, as `tc tbf` and many virtual networks have: after a
//! pause `c` bytes pass at once, and the link only then is as fast as it says. `Γᵢ = 8c / bandwidthᵢ`:
//!
//! ```text
//! startᵢ = max( readyᵢ, freeᵢ )      freeᵢ := startᵢ + τᵢ      endᵢ = max( readyᵢ, bᵢ, freeᵢ − Γᵢ )
//! aᵢ₊₁   = aᵢ + max( 0, freeᵢ before − Γᵢ − readyᵢ ) + λᵢ + σ      (cut-through)
//! ```
//!
//! In the latency model no message waits for another: `startᵢ = readyᵢ`, else as cut-through.

mod flow;
mod links;
mod message;
mod packet;
mod protocol;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::routing::RoutingError;
use crate::watch::Watch;
use vef_format::units::{Bytes, Picos};

pub(crate) use flow::Flows;
pub use links::Links;
pub(crate) use links::{LinkSpeed, Usage};
pub(crate) use message::Messages;
pub(crate) use packet::Packets;
pub use packet::{Arbiter, Buffers, PacketSettings};
pub(crate) use protocol::WithProtocol;
pub use protocol::{Delay, Protocol};

/// What the messages of a simulation do to each other and where they wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A switch passes a message on as soon as its first byte is there; messages wait for links.
    #[default]
    CutThrough,
    /// A switch passes a message on when its last byte is there; messages wait for links.
    StoreAndForward,
    /// As cut-through, but no message waits for another.
    Latency,
    /// Packets, finite buffers and credits.
    Packet,
    /// Messages share the bandwidth of links.
    Flow,
    /// Processors and interfaces that are busy; a network that only takes time ([`crate::loggp`]).
    #[serde(rename = "loggp")]
    LogGp,
}

impl Model {
    /// All models.
    pub const ALL: [Self; 6] =
        [Self::CutThrough, Self::StoreAndForward, Self::Latency, Self::Packet, Self::Flow, Self::LogGp];
}

/// How large a share of a link each message gets in the flow model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// All the same.
    #[default]
    Equal,
    /// In inverse proportion to the latency of their ways.
    Latency,
}

/// A text that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown model {0:?}; write cut-through, store-and-forward, latency, packet, flow or loggp")]
pub struct UnknownModel(pub String);

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

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        Self::ALL
            .into_iter()
            .find(|model| model.to_string() == text)
            .ok_or_else(|| UnknownModel(text.to_owned()))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CutThrough => "cut-through",
            Self::StoreAndForward => "store-and-forward",
            Self::Latency => "latency",
            Self::Packet => "packet",
            Self::Flow => "flow",
            Self::LogGp => "loggp",
        })
    }
}

/// A message would arrive after the end of time, 2^64 picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {} bytes would arrive after the end of time (2^64 ps, 213 days)", .bytes.0)]
pub struct OutOfTime {
    /// Its payload.
    pub bytes: Bytes,
}

/// A message for a network: between nodes that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) bytes: Bytes,
    /// The caller's name for it.
    pub(crate) tag: u64,
}

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// Its last byte has left its node.
    Sent { tag: u64 },
    /// Its last byte is there, `latency` after it was handed over and `latency − queued` after its first byte left its node.
    Delivered { tag: u64, latency: Picos, queued: Picos },
}

/// A network that carries messages.
pub(crate) trait Network {
    /// Hands a message over at a moment that is not before anything that has happened.
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime>;

    /// Lets happen what happens until `limit`, up to the first that concerns the caller, if there is something.
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime>;

    /// What each link has carried, by number.
    fn usage(&self) -> Vec<Usage>;

    /// Events that have happened: steps of messages or packets.
    fn events(&self) -> u64;

    /// What it records besides, if it is to.
    fn watch(&mut self) -> &mut Option<Box<Watch>>;
}

/// Runs code for the network of a model, compiled for each.
macro_rules! with_network {
    ($topology:expr, $settings:expr, $report_sent:expr, |$network:ident| $run:expr) => {{
        let (topology, settings, report_sent) = ($topology, $settings, $report_sent);
        let router = $crate::routing::Router::new(topology, settings.routing, settings.seed)
            .map_err($crate::model::ModelError::from)?;
        match settings.model {
            $crate::model::Model::Packet => {
                let $network =
                    $crate::model::Packets::new(router, settings.packet, &settings.links, report_sent)?;
                $run
            }
            $crate::model::Model::Flow => {
                let $network =
                    $crate::model::Flows::new(router, settings.weights, &settings.links, report_sent);
                $run
            }
            $crate::model::Model::LogGp => return Err($crate::model::ModelError::NoLinks.into()),
            model => {
                let $network = $crate::model::Messages::new(router, model, &settings.links, report_sent)?;
                $run
            }
        }
    }};
}
pub(crate) use with_network;

#[cfg(test)]
mod tests;
