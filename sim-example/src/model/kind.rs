//! The models by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
