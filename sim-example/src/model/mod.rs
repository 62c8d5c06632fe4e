//! How a message of `m` bytes gets over the links of its route.
//!
//! Link `i` of the `H` links of a route has the latency λᵢ and takes `τᵢ = ⌈8m / bandwidthᵢ⌉` (whole picoseconds)
//! for all bytes; a switch between two links takes σ. A message is ready at `r`, its node interface prepares it
//! for the time `o`, one message after the other.
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
//! A link serves messages in the order in which their first bytes come to it; those that come in the same
//! picosecond, in the order in which the events that brought them were made. It belongs to one message from `start` to `end`,
//! τᵢ and no longer: a fast link behind a slow one sends the message in one piece that ends with its last byte, while the
//! first byte goes ahead. A message that waits is delayed as a whole.
//! Switches have room for all that waits (infinite buffers), and no message is divided into packets.
//! In the latency model no message waits for another: `startᵢ = readyᵢ`, else as cut-through.

mod network;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use vef_format::units::Picos;

use crate::quantity::Bandwidth;

pub(crate) use network::{Happened, Network, OutOfTime, Usage};

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
}

/// A text that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown model {0:?}; write cut-through, store-and-forward or latency")]
pub struct UnknownModel(pub String);

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        [Self::CutThrough, Self::StoreAndForward, Self::Latency]
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
        })
    }
}

/// The links' speeds and the delays of interfaces and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// Of the links between switches.
    pub bandwidth: Bandwidth,
    /// Of the links between switches.
    pub latency: Picos,
    /// Of the links between nodes and switches; as between switches where absent.
    pub node_bandwidth: Option<Bandwidth>,
    /// Of the links between nodes and switches; as between switches where absent.
    pub node_latency: Option<Picos>,
    /// What a switch takes to pass a message on (σ).
    pub switch_delay: Picos,
    /// What a node's interface takes to prepare a message, before its first byte enters the network (o).
    pub overhead: Picos,
}

impl Default for Links {
    /// 10 Gbit/s and 500 ns a link, nothing else: over one switch a lone message takes as long as on the yardstick
    /// network of `vef check`, 1 µs + bytes / 10 Gbit/s.
    fn default() -> Self {
        const DEFAULT: Bandwidth = match Bandwidth::from_bits_per_second(10_000_000_000) {
            Some(bandwidth) => bandwidth,
            None => unreachable!(),
        };
        Self {
            bandwidth: DEFAULT,
            latency: Picos(500_000),
            node_bandwidth: None,
            node_latency: None,
            switch_delay: Picos::ZERO,
            overhead: Picos::ZERO,
        }
    }
}

/// Latency and bandwidth of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkSpeed {
    pub(crate) latency: Picos,
    pub(crate) bandwidth: Bandwidth,
}

impl Links {
    /// The links of nodes.
    pub(crate) fn of_nodes(&self) -> LinkSpeed {
        LinkSpeed {
            latency: self.node_latency.unwrap_or(self.latency),
            bandwidth: self.node_bandwidth.unwrap_or(self.bandwidth),
        }
    }

    /// The links between switches.
    pub(crate) fn of_switches(&self) -> LinkSpeed {
        LinkSpeed { latency: self.latency, bandwidth: self.bandwidth }
    }
}

#[cfg(test)]
mod tests;
