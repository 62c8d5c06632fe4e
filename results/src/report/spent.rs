//! How the ranks spent the captured run (`docs/time.md`).

use super::measures::OfRank;
use crate::Exact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vef_format::account::TimePart;

/// How the ranks spent the captured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// From the end of `MPI_Init` to the start of `MPI_Finalize`, of all threads of all ranks: what shares refer to.
    pub run_ps: Exact,
    /// The parts of that time, and start-up, which comes before.
    pub parts: Vec<Part>,
    /// By function and part, the one with most time first.
    pub functions: Vec<InFunction>,
    /// Ranks that share a row of the following lists; values are then sums.
    pub ranks_per_row: u32,
    /// By rank, a list a part that is not 0 everywhere.
    pub ranks: BTreeMap<String, Vec<Exact>>,
    /// By rank, a list for each of the functions with most time.
    pub function_ranks: Vec<FunctionRanks>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Its name: `outside`, `own`, `message` and so on.
    pub part: String,
    /// All ranks together.
    pub time_ps: Exact,
    /// That as a share of `run_ps`, from 0 to 1; of start-up none.
    pub share: Option<f64>,
    /// The mean over the ranks, rounded down.
    pub mean_ps: Exact,
    /// The most of a rank.
    pub max: OfRank,
}

/// The time in a function, or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFunction {
    /// Its C name.
    pub function: String,
    /// The part of the time that this is.
    pub part: String,
    /// Calls; 0 in the further rows of a function.
    pub calls: Exact,
    /// All ranks together.
    pub time_ps: Exact,
    /// That as a share of `run_ps`; of start-up none.
    pub share: Option<f64>,
    /// The most of a rank.
    pub max: OfRank,
}

/// The time in a function by rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionRanks {
    /// Its C name.
    pub function: String,
    /// The times, a row a rank or group of ranks.
    pub time_ps: Vec<Exact>,
}

impl Part {
    /// Its name for people.
    pub fn title(&self) -> &str {
        title(&self.part)
    }
}

impl InFunction {
    /// The name of its part for people.
    pub fn part_title(&self) -> &str {
        title(&self.part)
    }
}

fn title(name: &str) -> &str {
    TimePart::ALL.iter().find(|part| part.name() == name).map_or(name, |part| part.title())
}
