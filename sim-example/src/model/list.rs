//! The list of models. A further one is a file and its line here.

use std::fmt;
use std::str::FromStr;

use clap::builder::PossibleValue;
use vef_format::nearest::did_you_mean;

use super::kind::ModelInfo;
use super::{flow, loggp, message, packet};

macro_rules! models {
    ($($(#[$attribute:meta])* $model:ident => $info:path,)*) => {
        /// How messages share the network.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub enum Model {
            $($(#[$attribute])* $model,)*
        }

        impl Model {
            /// All models, in the order of the documentation.
            pub const ALL: [Self; [$(stringify!($model)),*].len()] = [$(Self::$model),*];

            /// What the model says of itself.
            pub fn info(self) -> &'static ModelInfo {
                match self {
                    $(Self::$model => &$info,)*
                }
            }
        }
    };
}

models! {
    /// A switch forwards a message from its first byte; messages queue for links.
    #[default]
    CutThrough => message::CUT_THROUGH,
    /// A switch forwards a message after its last byte; messages queue for links.
    StoreAndForward => message::STORE_AND_FORWARD,
    /// Cut-through without contention.
    Latency => message::LATENCY,
    /// Cut-through with contention for injection links alone.
    Injection => message::INJECTION,
    /// Packets, finite buffers and credits.
    Packet => packet::INFO,
    /// Concurrent messages share the bandwidth of links.
    Flow => flow::INFO,
    /// Processors and network interfaces that are busy, and a network with latency only ([`crate::loggp`]).
    LogGp => loggp::INFO,
}

/// An unknown model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown model {:?}; {}write {}", .0, did_you_mean(.0, names()), names().join(", "))]
pub struct UnknownModel(pub String);

fn names() -> [&'static str; Model::ALL.len()] {
    Model::ALL.map(|model| model.info().name)
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        let found = Self::ALL.into_iter().find(|model| model.info().name == text);
        found.ok_or_else(|| UnknownModel(text.to_owned()))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

impl clap::ValueEnum for Model {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.info().name).help(self.info().help))
    }
}
