//! The functions that a rank called, how often, and for how long.

use super::arguments::Span;
use crate::error::Problem;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use vef_format::capture::event::CallSlot;
use vef_format::capture::layout::{CALL_NAME, CALL_SLOTS};
use vef_format::capture::{Function, RankWriter};
use vef_format::units::Nanos;

/// A function that the rank called: an index into its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Called(usize);

#[derive(Debug)]
struct Entry {
    name: String,
    slot: CallSlot,
    calls: u64,
    time: u64,
}

/// The functions of one rank.
#[derive(Debug, Default)]
pub(super) struct Functions {
    all: Vec<Entry>,
    by_name: HashMap<String, usize>,
    /// Calls counted, of all functions.
    pub(super) calls: u64,
}

impl Functions {
    /// The function with this name; a new one gets a slot of the file.
    pub(super) fn called(&mut self, name: &str, writer: &mut RankWriter) -> Result<Called, Problem> {
        if let Some(&at) = self.by_name.get(name) {
            return Ok(Called(at));
        }
        let fits = !name.is_empty() && name.len() <= CALL_NAME && !name.contains('\0');
        let slot = if fits && self.all.len() < CALL_SLOTS { writer.function(name)? } else { CallSlot::NONE };
        self.all.push(Entry { name: name.to_owned(), slot, calls: 0, time: 0 });
        self.by_name.insert(name.to_owned(), self.all.len() - 1);
        Ok(Called(self.all.len() - 1))
    }

    pub(super) fn name(&self, called: Called) -> &str {
        &self.all[called.0].name
    }

    pub(super) fn slot(&self, called: Called) -> CallSlot {
        self.all[called.0].slot
    }

    /// Counts a call.
    pub(super) fn count(&mut self, span: Span, called: Called) {
        self.calls += 1;
        let entry = &mut self.all[called.0];
        entry.calls += 1;
        entry.time = entry.time.saturating_add(span.end.saturating_sub(span.start));
    }

    /// Writes the table of functions; returns the calls by function.
    pub(super) fn finish(self, writer: &mut RankWriter) -> Result<BTreeMap<String, u64>, Problem> {
        let mut counts = BTreeMap::new();
        for Entry { name, slot, calls, time } in self.all {
            *counts.entry(name.clone()).or_default() += calls;
            if slot != CallSlot::NONE {
                writer.calls(Function { name, calls, errors: 0, time: Nanos(time) })?;
            }
        }
        Ok(counts)
    }
}
