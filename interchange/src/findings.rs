//! What is wrong in a foreign trace: kinds of faults, how often, and where first.

use serde::{Deserialize, Serialize};

/// Number of examples that a summary names.
pub const EXAMPLES: usize = 3;

/// The fault of files that end before their last record; each place names the file.
pub const ENDS_EARLY: &str = "files that end early";

/// A kind of fault in a foreign trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// Whether an import refuses it. Otherwise it leaves out what is wrong, unless it is strict.
    pub is_error: bool,
    /// How often.
    pub count: u64,
    /// The first ones, at most [`EXAMPLES`], with their places.
    pub first: Vec<String>,
}

/// All faults found, in the order in which their kinds were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) all: Vec<Finding>,
}

impl Findings {
    /// Notes a fault that is left out.
    pub(crate) fn warning(&mut self, what: &str, example: impl FnOnce() -> String) {
        self.add(what, false, example);
    }

    /// Notes a fault that cannot be imported.
    pub(crate) fn error(&mut self, what: &str, example: impl FnOnce() -> String) {
        self.add(what, true, example);
    }

    /// Notes `count` faults of a kind that are left out, with one example for all.
    pub(crate) fn many(&mut self, what: &str, count: u64, example: impl FnOnce() -> String) {
        if count > 0 {
            self.warning(what, example);
            if let Some(finding) = self.all.iter_mut().find(|finding| finding.what == what) {
                finding.count += count - 1;
            }
        }
    }

    /// Adds the faults of another part of the trace.
    pub(crate) fn merge(&mut self, other: Self) {
        for Finding { what, is_error, count, first } in other.all {
            match self.all.iter_mut().find(|finding| finding.what == what) {
                Some(finding) => {
                    finding.count += count;
                    let room = EXAMPLES.saturating_sub(finding.first.len());
                    finding.first.extend(first.into_iter().take(room));
                }
                None => self.all.push(Finding { what, is_error, count, first }),
            }
        }
    }

    /// Notes a fault.
    pub(crate) fn add(&mut self, what: &str, is_error: bool, example: impl FnOnce() -> String) {
        let at = self.all.iter().position(|finding| finding.what == what).unwrap_or_else(|| {
            let finding = Finding { what: what.to_owned(), is_error, count: 0, first: Vec::new() };
            self.all.push(finding);
            self.all.len() - 1
        });
        let finding = &mut self.all[at];
        finding.count += 1;
        if finding.first.len() < EXAMPLES {
            finding.first.push(example());
        }
    }

    /// The faults for which an import is refused, in one line.
    pub(crate) fn refused(&self, strict: bool) -> Option<String> {
        in_one_line(self.all.iter().filter(|finding| finding.is_error || strict))
    }
}

/// Faults in one line; `None`: there are none.
pub(crate) fn in_one_line<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<String> {
    let told: Vec<String> = findings.map(Finding::in_one_line).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

impl Finding {
    /// The fault with its number and first examples.
    pub fn in_one_line(&self) -> String {
        // One example may stand for many.
        let more = if self.count > EXAMPLES as u64 && self.first.len() == EXAMPLES { ", …" } else { "" };
        format!("{} ({}): {}{more}", self.what, self.count, self.first.join(", "))
    }
}
