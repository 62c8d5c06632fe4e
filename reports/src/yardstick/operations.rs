//! Durations of collective operations, and how far apart their members enter them.

use crate::stats::Stats;
use hashbrown::HashMap;
use replay::Picos;
use results::Exact;
use results::report::OperationTimes;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vef_format::ids::CommId;
use vef_format::raw::Raw;

/// An operation that not all members have left yet.
#[derive(Clone, Debug)]
struct Open {
    code: u16,
    members: u32,
    left: u32,
    first: Picos,
    last: Picos,
    /// Sums of the members' times of entry and exit.
    entries: u128,
    exits: u128,
}

/// Sums over complete operations of a kind.
#[derive(Clone, Debug, Default)]
struct Tally {
    operations: u64,
    inside: u128,
    gaps: u128,
    longest_gap: u64,
}

/// The collective operations of a replay.
pub(super) struct Operations<'a> {
    stats: &'a Stats,
    /// Incomplete operations by id.
    open: HashMap<u64, Open>,
    /// Complete operations by code and size of the communicator.
    over: BTreeMap<(u16, u32), Tally>,
}

impl<'a> Operations<'a> {
    pub(super) fn new(stats: &'a Stats) -> Self {
        Self { stats, open: HashMap::new(), over: BTreeMap::new() }
    }

    /// A member enters an operation.
    pub(super) fn entered(&mut self, part: &Raw, at: Picos) {
        let members = self.stats.communicators.get(&CommId(part.to)).copied().unwrap_or(1);
        let open = self.open.entry(part.id).or_insert(Open {
            code: part.op,
            members,
            left: 0,
            first: at,
            last: at,
            entries: 0,
            exits: 0,
        });
        open.first = open.first.min(at);
        open.last = open.last.max(at);
        open.entries += u128::from(at.0);
    }

    /// A member's part is complete.
    pub(super) fn left(&mut self, id: u64, at: Picos) {
        let Some(open) = self.open.get_mut(&id) else { return };
        open.exits += u128::from(at.0);
        open.left += 1;
        if open.left < open.members {
            return;
        }
        let tally = self.over.entry((open.code, open.members)).or_default();
        let gap = open.last.0 - open.first.0;
        tally.operations += 1;
        tally.inside += open.exits.saturating_sub(open.entries);
        tally.gaps += u128::from(gap);
        tally.longest_gap = tally.longest_gap.max(gap);
        self.open.remove(&id);
    }

    /// The durations by kind of operation, the longest first.
    pub(super) fn finish(&self, runtime: Picos) -> Vec<OperationTimes> {
        let everything = runtime.0 as f64 * self.stats.recorded.len() as f64;
        let mut times: Vec<OperationTimes> = self
            .over
            .iter()
            .map(|(&(code, members), tally)| OperationTimes {
                operation: self.stats.operation_name(code),
                members,
                operations: tally.operations.into(),
                inside_ps: Exact(tally.inside),
                share: if everything > 0.0 { tally.inside as f64 / everything } else { 0.0 },
                entry_gap_mean_ps: Exact(tally.gaps / u128::from(tally.operations)),
                entry_gap_max_ps: tally.longest_gap.into(),
            })
            .collect();
        times.sort_by_key(|times| Reverse(times.inside_ps));
        times
    }
}
