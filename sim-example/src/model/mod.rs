//! The models: how messages share links.
//!
//! Link `i` of the `H` links of a route has the latency λᵢ and takes `τᵢ = ⌈8m / bandwidthᵢ⌉` (whole
//! picoseconds) for `m` bytes; a switch takes σ. A message is submitted at `r`; its node's interface prepares
//! messages one at a time, each for the time `o`. In the models of [`message`]
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
//! A link serves messages in the order in which their first bytes arrive, and is busy with each from `start`
//! to `end`, which is τᵢ: a fast link behind a slow one sends the message in one piece that ends with its
//! last byte, while the first byte moves on. A message that waits is delayed as a whole. Switches have
//! infinite buffers, and messages are not divided into packets.
//!
//! With a burst of `c` bytes ([`Links::burst`]) a link is a token bucket, like `tc tbf` and many virtual
//! networks: after a pause `c` bytes pass at once, and only then does the bandwidth limit. With `Γᵢ = 8c /
//! bandwidthᵢ`:
//!
//! ```text
//! startᵢ = max( readyᵢ, freeᵢ )      freeᵢ := startᵢ + τᵢ      endᵢ = max( readyᵢ, bᵢ, freeᵢ − Γᵢ )
//! aᵢ₊₁   = aᵢ + max( 0, freeᵢ before − Γᵢ − readyᵢ ) + λᵢ + σ      (cut-through)
//! ```
//!
//! The latency model is cut-through without contention: `startᵢ = readyᵢ`. The injection model has contention for the first link
//! alone: `startᵢ = readyᵢ` for `i > 1`.

mod flow;
mod loggp;
mod message;
mod packet;

mod list;
mod protocol;

mod error;
mod kind;
mod links;
mod network;
mod paces;

pub use error::ModelError;
pub use flow::settings::{Connections, FlowSettings, Weights};
pub use kind::{Build, Carrier, ModelInfo, Setup};
pub(crate) use links::LinkSpeed;
pub use links::{GROUPS_HEADING, HEADING as LINKS_HEADING, Links, Usage};
pub use list::{Model, UnknownModel};
pub(crate) use network::forward;
pub use network::{Carried, Congested, Happened, Hops, Network, Origin, OutOfTime};
pub use packet::settings::HEADING as PACKET_HEADING;
pub(crate) use packet::{Announced, Crossed, Packets};
pub use packet::{
    Arbiter, Buffers, ClassError, Congestion, CongestionError, DcqcnSettings, DctcpSettings, Members,
    PacketSettings, TrafficClasses, Window,
};
pub(crate) use protocol::WithProtocol;
pub use protocol::{Delay, Protocol};

#[cfg(test)]
mod tests;
