//! Who waits for whom in a simulation.

use crate::table::{Cell, Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vef_format::waits::{Cause, WaitingFor, WaitingIn};

/// The waits of a simulation, those at the end of the last collective excepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitsReport {
    /// By cause, function and phase, most time first.
    pub places: Vec<WaitingIn>,
    /// By pair of tasks and cause, most time first; at most [`WaitsReport::MOST_PAIRS`].
    pub pairs: Vec<WaitingFor>,
    /// Pairs that are left out, with their causes.
    pub pairs_left_out: u64,
}

impl WaitsReport {
    /// Pairs in a report.
    pub const MOST_PAIRS: usize = 10_000;

    /// Of these, most time first; and a number of waits of which the pairs have been left out already.
    pub fn new(places: Vec<WaitingIn>, (mut pairs, others): (Vec<WaitingFor>, u64)) -> Self {
        let pairs_left_out = pairs.len().saturating_sub(Self::MOST_PAIRS) as u64 + u64::from(others > 0);
        pairs.truncate(Self::MOST_PAIRS);
        Self { places, pairs, pairs_left_out }
    }

    /// The cause of most waiting, and its share of all; `None`: nothing waits.
    pub fn main_cause(&self) -> Option<(Cause, f64)> {
        let mut times: Vec<(Cause, u64)> = Vec::new();
        for place in &self.places {
            match times.iter_mut().find(|(cause, _)| *cause == place.cause) {
                Some((_, time)) => *time = time.saturating_add(place.time_ps),
                None => times.push((place.cause, place.time_ps)),
            }
        }
        let all = times.iter().fold(0u64, |all, (_, time)| all.saturating_add(*time));
        let (cause, time) = times.into_iter().max_by_key(|(_, time)| *time).filter(|(_, time)| *time > 0)?;
        Some((cause, time as f64 / all as f64))
    }

    /// The tables of a trace alone, as `vef stats` and `vef report` name them.
    pub fn tables(&self) -> [Table; 2] {
        let [mut places, mut pairs] = [self.places_table(), self.pairs_table()];
        (places.name, pairs.name) = ("wait-causes", "wait-pairs");
        [places, pairs]
    }

    /// By cause, function and phase.
    pub fn places_table(&self) -> Table {
        let columns = ["cause", "function", "phase", "waits"].map(|name| Column::new(name, name));
        let time = Column::new("time_ps", "time");
        let mut table = Table::new("waits", "Why tasks wait, and where", [&columns[..], &[time]].concat());
        for place in &self.places {
            table.row([
                Cell::text(place.cause.name()),
                Cell::text(place.function.clone().unwrap_or_default()),
                Cell::text(place.phase.clone().unwrap_or_default()),
                Cell::count(place.waits),
                Cell::Time(place.time_ps.into()),
            ]);
        }
        table
    }

    /// By pair of tasks.
    pub fn pairs_table(&self) -> Table {
        let ids = ["job", "rank"].map(|name| Column::new(name, name));
        let on = Column::new("on_rank", "waits for rank");
        let columns = ["cause", "waits"].map(|name| Column::new(name, name));
        let time = Column::new("time_ps", "time");
        let columns = [&ids[..], &[on], &columns, &[time]].concat();
        let mut table = Table::new("wait_pairs", "Who waits for whom", columns);
        for pair in &self.pairs {
            table.row([
                Cell::Id(pair.job.into()),
                Cell::Id(pair.task.into()),
                Cell::Id(pair.on_task.into()),
                Cell::text(pair.cause.name()),
                Cell::count(pair.waits),
                Cell::Time(pair.time_ps.into()),
            ]);
        }
        table
    }
}
