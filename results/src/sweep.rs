//! The result of a sweep: simulations for all combinations of some options.

use crate::simulation::Simulation;
use crate::table::{Cell, Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of `vef sim --sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Version of these keys.
    pub schema: SweepSchema,
    /// The options that vary.
    pub options: Vec<String>,
    /// A point for each combination of their values; the last option varies fastest.
    pub points: Vec<Point>,
}

/// The version of a [`Sweep`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SweepSchema {
    /// This version.
    #[default]
    #[serde(rename = "vef-sweep/2")]
    V2,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Options and their values.
    pub settings: BTreeMap<String, String>,
    /// Why it has no result.
    pub error: Option<String>,
    /// The result, without the lists by rank.
    pub report: Option<Simulation>,
}

/// The file of a point, by which processes share a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPoint {
    /// Version of these keys.
    pub schema: StoredPointSchema,
    /// Everything that determines the result.
    pub identity: String,
    /// The result.
    pub report: Simulation,
}

/// The version of a [`StoredPoint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredPointSchema {
    /// This version.
    #[default]
    #[serde(rename = "vef-sweep-point/2")]
    V2,
}

/// A column, and its value in a result.
type Measure = (Column, fn(&Simulation) -> Cell);

/// Columns of the table behind those of the options.
fn columns() -> [Measure; 9] {
    [
        (Column::new("runtime_ps", "run time"), |run| Cell::Time(run.runtime_ps.into())),
        (Column::new("ideal_runtime_ps", "ideal"), |run| {
            Cell::maybe(run.ideal, |ideal| Cell::Time(ideal.runtime_ps.into()))
        }),
        (Column::new("slowdown", "slowdown"), |run| {
            Cell::maybe(run.ideal, |ideal| Cell::Real(ideal.slowdown, 3))
        }),
        (Column::new("messages", "messages"), |run| Cell::count(run.messages)),
        (Column::new("latency_mean_ps", "mean latency"), |run| Cell::Time(run.latency.mean_ps.into())),
        (Column::new("latency_p50_ps", "p50"), |run| Cell::Time(run.latency.p50_ps.into())),
        (Column::new("latency_p99_ps", "p99"), |run| Cell::Time(run.latency.p99_ps.into())),
        (Column::new("utilisation_max", "busiest"), |run| Cell::Share(run.links.utilisation_max)),
        (Column::new("busiest_link", "busiest link"), |run| {
            Cell::maybe(run.links.busiest.first(), |link| Cell::text(&link.link))
        }),
    ]
}

impl Sweep {
    /// A row for each point.
    pub fn table(&self) -> Table {
        let option =
            |name: &String| Column { name: name.clone().into(), head: name.clone().into(), meaning: "" };
        let own = columns().map(|(column, _)| column);
        let error = Column::new("error", "");
        let options = self.options.iter().map(option);
        let mut table = Table::new("points", "Points", options.chain(own).chain([error]).collect::<Vec<_>>());
        for point in &self.points {
            let settings = self.options.iter().map(|name| Cell::text(&point.settings[name]));
            let own = columns().map(|(_, value)| Cell::maybe(point.report.as_ref(), value));
            let error = Cell::text(point.error.as_deref().unwrap_or_default());
            table.row(settings.chain(own).chain([error]));
        }
        table
    }
}
