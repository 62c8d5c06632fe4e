//! What an import found, and what the trace made of it lacks.

use crate::error::Problem;
use crate::findings::{EXAMPLES, Finding, in_one_line};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Summary of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of ranks, including missing ones.
    pub ranks: u32,
    /// Ranks without a file, which were left out (`--partial`).
    pub missing_ranks: Vec<u32>,
    /// Calls or operations by name, including those that were left out.
    pub calls: BTreeMap<String, u64>,
    /// Messages of point-to-point operations.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Calls or operations by name that are not part of the trace.
    pub skipped: BTreeMap<String, Skipped>,
    /// Sends and receives without a partner.
    pub unmatched: Unmatched,
    /// What is wrong in the files, and did not keep them from being imported.
    pub findings: Vec<Finding>,
    /// Everything else that the trace lacks or that was decided in the import: a sentence each, without a full stop.
    pub remarks: Vec<String>,
}

/// Calls that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The ranks that called it, at most [`EXAMPLES`].
    pub ranks: Vec<u32>,
}

/// Sends and receives without a partner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmatched {
    /// Number of sends.
    pub sends: u64,
    /// Number of receives.
    pub receives: u64,
    /// The first ones, at most [`EXAMPLES`]: rank, peer, tag, communicator and place.
    pub first: Vec<String>,
}

impl Summary {
    /// Counts `count` calls of a function.
    pub fn call(&mut self, name: &str, count: u64) {
        match self.calls.get_mut(name) {
            Some(calls) => *calls += count,
            None => drop(self.calls.insert(name.to_owned(), count)),
        }
    }

    /// Counts a call that is left out.
    pub fn skip(&mut self, name: &str, rank: u32) {
        let skipped = match self.skipped.get_mut(name) {
            Some(skipped) => skipped,
            None => self.skipped.entry(name.to_owned()).or_default(),
        };
        skipped.count += 1;
        if skipped.ranks.len() < EXAMPLES && !skipped.ranks.contains(&rank) {
            skipped.ranks.push(rank);
        }
    }
}

impl Summary {
    /// Everything that is wrong in the files: the findings, and each function whose calls are left out.
    pub fn faults(&self) -> impl Iterator<Item = Finding> {
        let skipped = self.skipped.iter().map(|(name, skipped)| {
            let first = skipped.ranks.iter().map(|rank| format!("rank {rank}")).collect();
            let what = format!("left out: calls of {name}");
            Finding { what, is_error: false, count: skipped.count, first }
        });
        self.findings.iter().cloned().chain(skipped)
    }

    /// An error if anything is wrong or left out.
    pub(crate) fn refuse_left_out(&self) -> Result<(), Problem> {
        let all: Vec<Finding> = self.faults().collect();
        in_one_line(all.iter()).map_or(Ok(()), |wrong| Err(Problem::Invalid(wrong)))
    }

    /// What a user has to know of the import: a sentence each, without a full stop.
    pub fn told(&self) -> impl Iterator<Item = String> {
        let found = self.findings.iter().map(|finding| format!("warning: {}", finding.in_one_line()));
        found.chain(self.remarks.iter().cloned())
    }
}

impl Unmatched {
    /// Counts a send without a receive.
    pub fn send(&mut self, what: impl FnOnce() -> String) {
        self.sends += 1;
        self.example(what);
    }

    /// Counts a receive without a send.
    pub fn receive(&mut self, what: impl FnOnce() -> String) {
        self.receives += 1;
        self.example(what);
    }

    fn example(&mut self, what: impl FnOnce() -> String) {
        if self.first.len() < EXAMPLES {
            self.first.push(what());
        }
    }
}
