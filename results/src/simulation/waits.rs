//! Who waits for whom in a simulation.

use crate::table::{Cell, Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// Of these, most time first; some pairs may have been left out already.
    pub fn new(places: Vec<WaitingIn>, mut pairs: Vec<WaitingFor>, left_out: bool) -> Self {
        let pairs_left_out = pairs.len().saturating_sub(Self::MOST_PAIRS) as u64 + u64::from(left_out);
        pairs.truncate(Self::MOST_PAIRS);
        Self { places, pairs, pairs_left_out }
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

/// Why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The sender of the message for which it waits has not sent it yet.
    LateSender,
    /// The message for which it waits is under way.
    Message,
    /// Another member has not entered the collective yet.
    LateMember,
    /// All members that it waits for have entered the collective; its messages are under way.
    Collective,
    /// A send of its own is not complete.
    Send,
}

impl Cause {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::Message => "message under way",
            Self::LateMember => "late member of a collective",
            Self::Collective => "collective under way",
            Self::Send => "send not complete",
        }
    }
}

/// Waits of one cause at one place of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingIn {
    /// Why.
    pub cause: Cause,
    /// The MPI function in which tasks wait, if the trace tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The innermost phase in which it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Number of waits.
    pub waits: u64,
    /// Their time, all tasks together.
    pub time_ps: u64,
}

/// Waits of one task for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingFor {
    /// The job.
    pub job: u32,
    /// The task that waits.
    pub task: u32,
    /// The task that it waits for: the sender, or the last member that entered a collective.
    pub on_task: u32,
    /// Why.
    pub cause: Cause,
    /// Number of waits.
    pub waits: u64,
    /// Their time.
    pub time_ps: u64,
}
