//! Sweeps: options with several values, and simulations for all combinations of them.

mod answers;
mod plot;
mod prices;
mod seeds;

pub use prices::Prices;
pub use seeds::OverSeeds;

use crate::schema::schema;
use crate::simulation::{ArrivalsReport, JobReport, Simulation, WaitsReport};
use crate::table::{Cell, Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

/// The result of `vef sim --sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Version of these keys.
    pub schema: SweepSchema,
    /// The options that vary.
    pub options: Vec<String>,
    /// A point for each combination of their values; the last option varies fastest.
    pub points: Vec<Point>,
    /// If seeds vary, the run times of the points that differ in them alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_seeds: Vec<OverSeeds>,
    /// What the parts of networks cost, if that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// What follows from the points, in words.
    #[serde(default)]
    pub answers: Vec<String>,
}

schema!(SweepSchema of Sweep: "vef-sweep/2");

impl Point {
    /// By what points are compared: the run time, or, if jobs arrive, the mean time from the submission of a job to its end.
    fn time(&self) -> Option<u64> {
        let report = self.report.as_ref()?;
        Some(report.arrivals.as_ref().map_or(report.runtime_ps, ArrivalsReport::turnaround_mean_ps))
    }
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
    /// What its network costs, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
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

schema!(StoredPointSchema of StoredPoint: "vef-sweep-point/2");

/// Most points of a sweep.
pub const MOST_POINTS: usize = 100_000;

/// An option with the values that it takes in a sweep: `OPTION=VALUE,VALUE…`, or with `|` between values; `A..B` are the numbers from A to B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The option, without dashes.
    pub option: String,
    /// Its values, at least one and all different.
    pub values: Vec<String>,
}

/// An invalid sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweptError {
    /// It does not have the form.
    #[error("--sweep {0:?}: write OPTION=VALUE,VALUE…, or OPTION=VALUE|VALUE…")]
    Form(String),
    /// A value occurs twice.
    #[error("--sweep {option}: {value} is repeated")]
    Repeated {
        /// The option.
        option: String,
        /// The value.
        value: String,
    },
    /// An option occurs twice.
    #[error("--sweep {0}: given twice")]
    Twice(String),
    /// There are too many combinations.
    #[error("--sweep: more than {} points", MOST_POINTS)]
    TooMany,
}

impl FromStr for Swept {
    type Err = SweptError;

    fn from_str(text: &str) -> Result<Self, SweptError> {
        let wrong = || SweptError::Form(text.to_owned());
        let (option, values) = text.split_once('=').ok_or_else(wrong)?;
        let option = option.trim().trim_start_matches('-').to_owned();
        let separator = if values.contains('|') { '|' } else { ',' };
        let mut all: Vec<String> = Vec::new();
        for value in values.split(separator).map(str::trim) {
            match range(value) {
                None => all.push(value.to_owned()),
                Some(numbers) if numbers.end() - numbers.start() >= MOST_POINTS as u64 => {
                    return Err(SweptError::TooMany);
                }
                Some(numbers) => all.extend(numbers.map(|number| number.to_string())),
            }
        }
        let values = all;
        if option.is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        if values.len() > MOST_POINTS {
            return Err(SweptError::TooMany);
        }
        let mut seen = HashSet::new();
        match values.iter().find(|value| !seen.insert(value.as_str())) {
            Some(value) => Err(SweptError::Repeated { option, value: value.clone() }),
            None => Ok(Self { option, values }),
        }
    }
}

/// The numbers of `A..B`.
fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (from, to) = text.split_once("..")?;
    let numbers: RangeInclusive<u64> = from.parse().ok()?..=to.parse().ok()?;
    (!numbers.is_empty()).then_some(numbers)
}

impl Swept {
    /// All combinations of the values, each with its options; the last option varies fastest.
    ///
    /// # Errors
    /// An option is given twice, or there are more than [`MOST_POINTS`].
    pub fn points(all: &[Self]) -> Result<Vec<Vec<(String, String)>>, SweptError> {
        let mut seen = HashSet::new();
        if let Some(twice) = all.iter().find(|swept| !seen.insert(swept.option.as_str())) {
            return Err(SweptError::Twice(twice.option.clone()));
        }
        let count = all.iter().try_fold(1usize, |count, swept| count.checked_mul(swept.values.len()));
        let count = count.filter(|&count| count <= MOST_POINTS).ok_or(SweptError::TooMany)?;
        let point = |number: usize| {
            let mut rest = number;
            let mut values = Vec::with_capacity(all.len());
            for Self { option, values: of_option } in all.iter().rev() {
                values.push((option.clone(), of_option[rest % of_option.len()].clone()));
                rest /= of_option.len();
            }
            values.reverse();
            values
        };
        Ok((0..count).map(point).collect())
    }
}

/// A column, and its value in a result.
type Measure = (Column, fn(&Simulation) -> Cell);

/// Columns of the table behind those of the options.
fn columns() -> [Measure; 16] {
    [
        (Column::new("runtime_ps", "run time"), |run| Cell::Time(run.runtime_ps.into())),
        (Column::new("ideal_runtime_ps", "ideal"), |run| {
            Cell::maybe(run.ideal, |ideal| Cell::Time(ideal.runtime_ps.into()))
        }),
        (Column::new("slowdown", "slowdown"), |run| {
            Cell::maybe(run.ideal, |ideal| Cell::Real(ideal.slowdown, 3))
        }),
        (Column::new("wait_mean_ps", "mean wait"), |run| {
            Cell::maybe(run.arrivals.as_ref(), |arrivals| Cell::Time(arrivals.wait_mean_ps.into()))
        }),
        (Column::new("turnaround_mean_ps", "mean wait + run"), |run| {
            Cell::maybe(run.arrivals.as_ref(), |arrivals| Cell::Time(arrivals.turnaround_mean_ps().into()))
        }),
        (Column::new("messages", "messages"), |run| Cell::count(run.messages)),
        (Column::new("latency_mean_ps", "mean latency"), |run| Cell::Time(run.latency.mean_ps.into())),
        (Column::new("latency_p50_ps", "p50"), |run| Cell::Time(run.latency.p50_ps.into())),
        (Column::new("latency_p99_ps", "p99"), |run| Cell::Time(run.latency.p99_ps.into())),
        (Column::new("utilisation_max", "busiest"), |run| Cell::Share(run.links.utilisation_max)),
        (Column::new("busiest_link", "busiest link"), |run| {
            Cell::maybe(run.links.busiest.first(), |link| Cell::text(&link.link))
        }),
        (Column::new("waited_most", "waits most for"), |run| {
            Cell::maybe(run.waits.as_ref().and_then(WaitsReport::main_cause), |(cause, _)| {
                Cell::text(cause.name())
            })
        }),
        (Column::new("waited_most_share", "of waiting"), |run| {
            Cell::maybe(run.waits.as_ref().and_then(WaitsReport::main_cause), |(_, share)| Cell::Share(share))
        }),
        (Column::new("switches", "switches"), |run| Cell::count(u64::from(run.network.switches))),
        (Column::new("cables", "cables"), |run| Cell::count(u64::from(run.network.cables()))),
        (Column::new("ports", "ports"), |run| Cell::count(u64::from(run.network.switch_ports()))),
    ]
}

/// Columns of each job, and their values.
type JobMeasure = (&'static str, &'static str, fn(&JobReport) -> Cell);

fn job_columns() -> [JobMeasure; 2] {
    [
        ("runtime_ps", "run time", |job| Cell::Time(job.runtime_ps.into())),
        ("slowdown", "slowdown", |job| Cell::maybe(job.alone, |alone| Cell::Real(alone.slowdown, 3))),
    ]
}

impl Sweep {
    /// The jobs that have columns of their own, by name: of several, or beside background traffic.
    fn jobs(&self) -> Vec<String> {
        let reports = || self.points.iter().filter_map(|point| point.report.as_ref());
        let most = reports().map(|report| &report.jobs[..]).max_by_key(|jobs| jobs.len()).unwrap_or_default();
        let is_alone = reports().all(|report| report.jobs.iter().all(|job| job.alone.is_none()));
        if most.len() < 2 && is_alone {
            return Vec::new();
        }
        let stem = |job: &JobReport| Some(Path::new(job.trace.as_ref()?).file_stem()?.to_str()?.to_owned());
        // The name of a trace that varies would be that of one point.
        let name = |number| {
            let mut names: Vec<_> =
                reports().filter_map(|report| report.jobs.get(number)).map(stem).collect();
            names.dedup();
            match &names[..] {
                [Some(name)] => name.clone(),
                _ => format!("job {number}"),
            }
        };
        (0..most.len()).map(name).collect()
    }

    /// The columns of jobs.
    fn job_columns(&self) -> Vec<Column> {
        let of_job = |(number, job): (usize, String)| {
            job_columns().map(|(name, head, _)| Column {
                name: format!("job{number}_{name}").into(),
                head: format!("{job}: {head}").into(),
                meaning: "",
            })
        };
        self.jobs().into_iter().enumerate().flat_map(of_job).collect()
    }

    /// The place of each point by [`Point::time`], from 1; points of equal times share one.
    fn places(&self) -> Vec<Option<u64>> {
        let mut times: Vec<u64> = self.points.iter().filter_map(Point::time).collect();
        times.sort_unstable();
        let place = |time| 1 + times.partition_point(|&other| other < time) as u64;
        self.points.iter().map(|point| point.time().map(place)).collect()
    }

    /// The table with the columns that there is room for on a terminal: what a network is made of only beside its cost.
    pub fn brief_table(&self) -> Table {
        let options = self.options.iter().map(String::as_str);
        let of_jobs = self.job_columns();
        let mut columns: Vec<&str> = options
            .chain(["runtime_ps"])
            .chain(of_jobs.iter().map(|column| &*column.name))
            .chain(["ideal_runtime_ps", "slowdown", "latency_p99_ps", "utilisation_max", "busiest_link"])
            .collect();
        let reports = || self.points.iter().filter_map(|point| point.report.as_ref());
        if reports().any(|report| report.arrivals.is_some()) {
            columns.extend(["wait_mean_ps", "turnaround_mean_ps"]);
        }
        if reports().any(|report| report.waits.is_some()) {
            columns.extend(["waited_most", "waited_most_share"]);
        }
        if self.prices.is_some() {
            columns.extend(["switches", "cables", "cost"]);
        }
        if self.points.iter().any(|point| point.error.is_some()) {
            columns.push("error");
        }
        self.table().only(&columns)
    }

    /// A row for each point.
    pub fn table(&self) -> Table {
        let option =
            |name: &String| Column { name: name.clone().into(), head: name.clone().into(), meaning: "" };
        let own = columns().map(|(column, _)| column);
        let costs = self.prices.map(|_| Column::new("cost", "cost"));
        let last = [Column::new("place", "place")].into_iter().chain(costs).chain([Column::new("error", "")]);
        let options = self.options.iter().map(option);
        let (jobs, of_jobs) = (self.jobs().len(), self.job_columns());
        let all = options.chain(own).chain(of_jobs).chain(last);
        let mut table = Table::new("points", "Points", all.collect::<Vec<_>>());
        for (point, place) in self.points.iter().zip(self.places()) {
            let settings = self.options.iter().map(|name| Cell::text(&point.settings[name]));
            let own = columns().map(|(_, value)| Cell::maybe(point.report.as_ref(), value));
            let of_job = |number: usize| {
                let job = point.report.as_ref().and_then(|report| report.jobs.get(number));
                job_columns().map(|(.., value)| Cell::maybe(job, value))
            };
            let of_jobs = (0..jobs).flat_map(of_job);
            let error = Cell::text(point.error.as_deref().unwrap_or_default());
            let place = [Cell::maybe(place, Cell::count)];
            let cost = self.prices.map(|_| Cell::maybe(point.cost, |cost| Cell::Real(cost, 0)));
            table.row(settings.chain(own).chain(of_jobs).chain(place).chain(cost).chain([error]));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values() {
        let values = |text: &str| text.parse::<Swept>().unwrap().values;
        assert_eq!(values("bandwidth=10G,25G"), ["10G", "25G"]);
        assert_eq!(values("topology=xgft:4,4;1,2 | torus:4x4"), ["xgft:4,4;1,2", "torus:4x4"]);
        assert_eq!(values("seed=8..11,20"), ["8", "9", "10", "11", "20"]);
        assert_eq!(values("trace=../a.vef|b..c"), ["../a.vef", "b..c"]);
        assert_eq!("seed=1..200000".parse::<Swept>(), Err(SweptError::TooMany));
        assert_eq!("--model=packet".parse::<Swept>().unwrap().option, "model");
        for text in ["", "bandwidth", "bandwidth=", "=1G", "bandwidth=1G,,2G", "bandwidth=1G,1G"] {
            assert!(text.parse::<Swept>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_option_varies_fastest() {
        let points = |texts: &[&str]| {
            let swept: Vec<Swept> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let points = Swept::points(&swept)?;
            Ok(points
                .iter()
                .map(|point| point.iter().map(|(_, value)| value.as_str()).collect::<String>())
                .collect())
        };
        assert_eq!(points(&["a=1,2", "b=x,y"]), Ok(["1x", "1y", "2x", "2y"].map(str::to_owned).to_vec()));
        assert_eq!(points(&["a=1,2", "a=x,y"]), Err(SweptError::Twice("a".into())));
        let many = (0..400).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(points(&[&format!("a={many}"), &format!("b={many}")]), Err(SweptError::TooMany));
    }
}
