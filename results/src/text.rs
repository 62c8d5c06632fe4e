//! The result of `vef text`.

use crate::schema::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the text traces of a capture hold, and where their summaries are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Aggregated {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: TextSchema,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of phases, by name.
    pub phases: usize,
    /// Sends.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Collective operations.
    pub collectives: u64,
    /// Communicators, `MPI_COMM_WORLD` included.
    pub communicators: usize,
    /// Collective operations without a root that not all members have shown: not written.
    pub incomplete: usize,
    /// The directory of the summaries.
    pub output: PathBuf,
}

schema!(TextSchema of Aggregated: "vef-text/1");
