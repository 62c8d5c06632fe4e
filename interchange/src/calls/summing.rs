//! Puts what the ranks had into the summary of an import, and completes the capture.

use super::recorder::Counts;
use super::wildcards;
use crate::error::{Problem, Result};
use crate::findings::{ENDS_EARLY, EXAMPLES, Findings};
use crate::options::Options;
use crate::summary::Summary;
use std::collections::BTreeSet;
use std::path::Path;
use vef_format::capture::{RankInfo, RankWriter};
use vef_format::ids::Rank;
use vef_format::units::Count;

/// Missing ranks for each rank that is there: more say that the number of ranks is wrong.
const MISSING: u64 = 1000;

/// Sums the ranks of an import.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    /// The summary so far.
    pub(crate) summary: Summary,
    /// Ranks with wildcards whose message is not known.
    unresolved: Vec<u32>,
    /// Ranks whose calls end early.
    cut: BTreeSet<u32>,
    /// What is wrong.
    pub(crate) findings: Findings,
}

impl Sum {
    /// Adds a rank.
    pub(crate) fn add(&mut self, rank: u32, counts: Counts) {
        for (name, count) in counts.calls {
            self.summary.call(&name, count);
        }
        self.summary.messages += counts.messages;
        self.summary.bytes = self.summary.bytes.saturating_add(counts.bytes);
        for (name, count) in counts.skipped {
            let skipped = self.summary.skipped.entry(name).or_default();
            skipped.count += count;
            if skipped.ranks.len() < EXAMPLES {
                skipped.ranks.push(rank);
            }
        }
        if counts.unresolved > 0 {
            self.unresolved.push(rank);
        }
        self.findings.merge(counts.findings);
    }

    /// Notes the place at which the calls of a rank end early.
    pub(crate) fn ends_early(&mut self, rank: u32, place: impl FnOnce() -> String) {
        self.cut.insert(rank);
        self.findings.warning(ENDS_EARLY, place);
    }

    /// Adds a remark.
    pub(crate) fn remark(&mut self, remark: String) {
        self.summary.remarks.push(remark);
    }

    /// Completes the capture in `directory`, made from `files`.
    pub(crate) fn finish(mut self, directory: &Path, files: &Path, options: &Options) -> Result<Summary> {
        self.cut.extend(&self.summary.missing_ranks);
        let resolved = wildcards::resolve(directory, &self.unresolved, &self.cut, options.partial);
        let (told, dropped) = resolved.map_err(|problem| problem.of_file(files))?;
        if told > 0 {
            self.remark(format!(
                "{} with a wildcard got the only message that remained",
                Count(told, "receive")
            ));
        }
        self.findings.many(
            "receives left out: with a wildcard of which the trace does not tell the message",
            dropped,
            || {
                let ranks: Vec<String> = self.unresolved.iter().take(EXAMPLES).map(u32::to_string).collect();
                format!("of ranks {}", ranks.join(", "))
            },
        );
        self.summary.findings = self.findings.all;
        if options.strict {
            self.summary.refuse_left_out().map_err(|problem| problem.of_file(files))?;
        }
        Ok(self.summary)
    }
}

/// Checks which ranks of `0..ranks` are there, which are `present` in number. Missing ones are an error, or with `partial` returned.
pub(crate) fn missing(
    ranks: u64,
    present: usize,
    there: impl Fn(u32) -> bool,
    partial: bool,
) -> std::result::Result<Vec<u32>, Problem> {
    let are = if present == 1 { "is" } else { "are" };
    let too_large =
        || Problem::TooLarge(format!("the number of ranks ({ranks}, of which {present} {are} there)"));
    let all = u32::try_from(ranks).map_err(|_| too_large())?;
    let lacking = u64::from(all).saturating_sub(present as u64);
    if lacking > MISSING * present.max(1) as u64 {
        return Err(too_large());
    }
    if lacking > 0 && !partial {
        let rank = (0..all).find(|&rank| !there(rank)).unwrap_or(all);
        let missing = u32::try_from(lacking).unwrap_or(u32::MAX);
        return Err(Problem::MissingRank { rank, missing, ranks: all });
    }
    Ok((0..all).filter(|&rank| !there(rank)).collect())
}

/// Writes the file of a missing rank: without events, as of a process that was killed at once.
pub(crate) fn write_missing(directory: &Path, rank: u32, tasks: u32) -> std::result::Result<(), Problem> {
    let info = RankInfo { rank: Rank(rank), tasks, ..RankInfo::default() };
    Ok(RankWriter::create(directory, &info)?.finish()?)
}
