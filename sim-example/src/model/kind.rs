//! The models by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How messages share the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A switch forwards a message from its first byte; messages queue for links.
    #[default]
    CutThrough,
    /// A switch forwards a message after its last byte; messages queue for links.
    StoreAndForward,
    /// Cut-through without contention.
    Latency,
    /// Packets, finite buffers and credits.
    Packet,
    /// Concurrent messages share the bandwidth of links.
    Flow,
    /// Processors and network interfaces that are busy, and a network with latency only ([`crate::loggp`]).
    #[serde(rename = "loggp")]
    LogGp,
}

impl Model {
    /// All models.
    pub const ALL: [Self; 6] =
        [Self::CutThrough, Self::StoreAndForward, Self::Latency, Self::Packet, Self::Flow, Self::LogGp];
}

/// The share of a link that each message gets in the flow model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Equal shares.
    #[default]
    Equal,
    /// In inverse proportion to the latency of the route.
    Latency,
}

/// An unknown model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown model {0:?}; write cut-through, store-and-forward, latency, packet, flow or loggp")]
pub struct UnknownModel(pub String);

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
