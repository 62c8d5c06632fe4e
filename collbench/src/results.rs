//! What a benchmark leaves: rows with their samples, what they were measured with and on, and the tables of them.
//!
//! [`Report`] is what `vef bench coll -o FILE.json` writes; `docs/benchmarks.md` describes the fields.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use vef_format::units::Count;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::{HostLoad, Machine};
use crate::stats::{Launches, Precision, Summary, across_launches, median};
use crate::switches::{Switch, TimedSize};
use crate::timer::{TimerKind, TimerQuality};

/// All that one launch measured. Times are in nanoseconds (`_ns`), sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of these keys.
    pub schema: BenchSchema,
    /// Whether it came to its end; partial results are kept with `false`.
    pub complete: bool,
    /// Seconds since 1970 at the start.
    pub started: u64,
    /// How it was measured.
    pub settings: Settings,
    /// Where.
    pub machine: Machine,
    /// The timer, as tested.
    pub timer: Option<TimerQuality>,
    /// Known times, measured.
    pub self_tests: Vec<SelfTest>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// What could not be measured, and what to be careful about.
    pub problems: Vec<String>,
}

/// The version of a [`Report`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BenchSchema {
    /// This version.
    #[default]
    #[serde(rename = "vef-bench-1")]
    V1,
}

/// How it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// As [`crate::method::Method`] is written.
    pub method: String,
    /// The timer.
    pub timer: TimerKind,
    /// When a measurement ends.
    pub precision: Precision,
    /// Idle time between runs, ns.
    pub gap_ns: f64,
    /// Root of rooted operations.
    pub root: u32,
    /// Whether buffers rotate so that caches are cold.
    pub cold: bool,
    /// By what each rank's block is larger or smaller in vector operations, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<Vec<f64>>,
}

/// A known time, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelfTest {
    /// `wait-up` or `wait-null`.
    pub name: String,
    /// The true time, ns.
    pub truth_ns: f64,
    /// The median measured, ns.
    pub measured_ns: f64,
}

/// One operation of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Operation: `allreduce`.
    pub operation: String,
    /// `mpi`, or the schedule's algorithm.
    pub algorithm: String,
    /// Ranks.
    pub ranks: u32,
    /// Bytes of a block (of the vector where there are no blocks).
    pub bytes: u64,
    /// Method that was used; another than in the settings where that collapsed.
    pub method: String,
    /// Times, ns, in the order measured.
    pub samples_ns: Vec<f64>,
    /// What they say, ns.
    pub summary: Summary,
    /// Median of each rank's own time, ns.
    pub rank_medians_ns: Vec<f64>,
    /// Runs thrown away: begun late, not ended in the window.
    pub thrown_away: [usize; 2],
    /// Load of rank 0's host meanwhile.
    pub load: HostLoad,
    /// Where the time by size changes its course between the next smaller size and this one; known at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
    /// With computing between start and wait, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What to be careful about.
    pub warnings: Vec<String>,
}

/// A non-blocking operation with computing between its start and the wait for its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// Computing of each rank, ns: as long as the median of the operation alone.
    pub compute_ns: f64,
    /// Median time of both, ns.
    pub median_ns: f64,
    /// The part of the operation that was hidden behind the computing, from 0 to 1.
    pub share: f64,
}

impl Overlap {
    pub(crate) fn new(compute_ns: f64, median_ns: f64) -> Self {
        let hidden = (2.0 * compute_ns - median_ns) / compute_ns;
        // Without a time there is nothing to hide.
        let share = if compute_ns > 0.0 { hidden.clamp(0.0, 1.0) } else { 0.0 };
        Self { compute_ns, median_ns, share }
    }
}

/// A row of several launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedRow {
    /// Operation.
    pub operation: String,
    /// Algorithm.
    pub algorithm: String,
    /// Ranks.
    pub ranks: u32,
    /// Bytes.
    pub bytes: u64,
    /// Median and its interval over launches, ns.
    pub over_launches: Launches,
    /// Each launch's median, ns.
    pub medians_ns: Vec<f64>,
    /// As [`Row::switch`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
    /// Median of the launches' [`Overlap::share`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// Warnings of any launch.
    pub warnings: Vec<String>,
}

type Key = (String, String, u32, u64);
/// Operation, algorithm and ranks.
type Operation = (String, String, u32);

impl Row {
    fn key(&self) -> Key {
        (self.operation.clone(), self.algorithm.clone(), self.ranks, self.bytes)
    }
}

impl Report {
    /// Reads one that was written with [`Report::to_json`].
    ///
    /// # Errors
    /// [`Error::Local`].
    pub fn read(path: &Path) -> Result<Report> {
        let wrong = |reason: String| Error::file(path, reason);
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Numbers, texts and lists only.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// A line a row, with a title line.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "operation,algorithm,ranks,bytes,method,samples,median_us,mean_us,min_us,max_us,p10_us,p90_us,standard_error_us,late,too_long,overlap\n",
        );
        for row in &self.rows {
            let us = |ns: f64| format!("{:.4}", ns / 1e3);
            let Row { operation, algorithm, ranks, bytes, method, summary: s, thrown_away, .. } = row;
            let times = [s.median, s.mean, s.min, s.max, s.p10, s.p90, s.standard_error].map(us).join(",");
            let [late, too_long] = thrown_away;
            let overlap = row.overlap.map_or(String::new(), |overlap| format!("{:.4}", overlap.share));
            let _ = writeln!(
                text,
                "{operation},{algorithm},{ranks},{bytes},{method},{},{times},{late},{too_long},{overlap}",
                s.samples
            );
        }
        text
    }

    /// Marks rows at which the time by size changes its course.
    pub(crate) fn find_switches(&mut self) {
        let of = |row: &Row| {
            let point = TimedSize {
                bytes: row.bytes,
                ns: row.summary.median,
                half_width: row.summary.within.half_width(),
            };
            ((row.operation.clone(), row.algorithm.clone(), row.ranks), point)
        };
        Switch::mark::<Row, Operation>(&mut self.rows, of, |row, switch| row.switch = switch);
    }

    /// A line for each row with a [`Row::switch`].
    pub fn switches_text(&self) -> String {
        let line = |row: &Row| {
            let Row { operation, algorithm, ranks, .. } = row;
            Some(format!("# {operation} ({algorithm}, {ranks} ranks) {}\n", row.switch?))
        };
        self.rows.iter().filter_map(line).collect()
    }

    /// What stands before the rows.
    pub fn heading(&self) -> String {
        let mut text = String::new();
        let hosts: std::collections::BTreeSet<&String> = self.machine.hosts.iter().collect();
        let _ = writeln!(
            text,
            "# {}; {} on {}",
            self.machine.mpi,
            Count(self.machine.hosts.len(), "rank"),
            Count(hosts.len(), "host")
        );
        if let Some(timer) = &self.timer {
            let _ = writeln!(
                text,
                "# method {}, timer {} (resolution {:.0} ns, cost {:.0} ns)",
                self.settings.method,
                self.settings.timer.name(),
                timer.resolution_ns,
                timer.cost_ns
            );
        }
        for test in &self.self_tests {
            let (measured, truth) = (test.measured_ns / 1e3, test.truth_ns / 1e3);
            let _ = writeln!(text, "# self-test {}: {measured:.3} µs, true {truth:.3} µs", test.name);
        }
        if self.machine.oversubscribed {
            text += "# WARNING: more ranks than cores: the scheduler is measured too\n";
        }
        let _ = writeln!(
            text,
            "{:<22} {:<18} {:>5} {:>10} {:>12} {:>12} {:>12} {:>12} {:>12} {:>5} {:>4}",
            "operation",
            "algorithm",
            "ranks",
            "bytes",
            "median µs",
            "mean µs",
            "± 95 %",
            "min µs",
            "p90 µs",
            "n",
            "bad"
        );
        text
    }
}

impl Row {
    /// As a line of the table.
    pub fn to_text(&self) -> String {
        let s = &self.summary;
        let mut text = format!(
            "{:<22} {:<18} {:>5} {:>10} {:>12.3} {:>12.3} {:>12.3} {:>12.3} {:>12.3} {:>5} {:>4}\n",
            self.operation,
            self.algorithm,
            self.ranks,
            self.bytes,
            s.median / 1e3,
            s.mean / 1e3,
            s.within.half_width() / 1e3,
            s.min / 1e3,
            s.p90 / 1e3,
            s.samples,
            self.thrown_away.iter().sum::<usize>(),
        );
        if let Some(Overlap { compute_ns, median_ns, share }) = self.overlap {
            let (compute, both) = (compute_ns / 1e3, median_ns / 1e3);
            let _ = writeln!(
                text,
                "  overlap {:.0} %: {both:.3} µs with {compute:.3} µs of computing",
                100.0 * share
            );
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "  ! {warning}");
        }
        text
    }
}

/// Rows of several launches, each with an interval that covers further launches.
pub fn merge(reports: &[Report], confidence: f64) -> Vec<MergedRow> {
    let mut order = Vec::new();
    let mut alike: BTreeMap<Key, Vec<&Row>> = BTreeMap::new();
    for row in reports.iter().flat_map(|report| &report.rows) {
        let rows = alike.entry(row.key()).or_default();
        if rows.is_empty() {
            order.push(row.key());
        }
        rows.push(row);
    }
    let merged = order.into_iter().filter_map(|key| {
        let rows = alike.remove(&key)?;
        let launches: Vec<Vec<f64>> = rows.iter().map(|row| row.samples_ns.clone()).collect();
        let over_launches = across_launches(&launches, confidence, 1)?;
        let mut warnings: Vec<String> = rows.iter().flat_map(|row| row.warnings.iter().cloned()).collect();
        warnings.sort();
        warnings.dedup();
        let medians_ns = launches.iter().map(|samples| median(samples)).collect();
        let (operation, algorithm, ranks, bytes) = key;
        let overlaps: Vec<f64> =
            rows.iter().filter_map(|row| row.overlap.map(|overlap| overlap.share)).collect();
        let overlap = (!overlaps.is_empty()).then(|| median(&overlaps));
        let switch = None;
        Some(MergedRow {
            operation,
            algorithm,
            ranks,
            bytes,
            over_launches,
            medians_ns,
            switch,
            overlap,
            warnings,
        })
    });
    let mut merged: Vec<MergedRow> = merged.collect();
    let of = |row: &MergedRow| {
        let Launches { median: ns, interval, .. } = row.over_launches;
        // Where launches say nothing, the time may be any.
        let unknown = if row.over_launches.launches > 1 { ns } else { 0.0 };
        let half_width = interval.map_or(unknown, |interval| interval.half_width());
        let key = (row.operation.clone(), row.algorithm.clone(), row.ranks);
        (key, TimedSize { bytes: row.bytes, ns, half_width })
    };
    Switch::mark::<MergedRow, Operation>(&mut merged, of, |row, switch| row.switch = switch);
    merged
}

/// In place of an interval.
fn too_few(launches: usize) -> String {
    match launches {
        1 => "one launch says nothing".into(),
        _ => format!("too few launches ({launches})"),
    }
}

/// Merged rows as a table.
pub fn merged_text(rows: &[MergedRow]) -> String {
    let mut text = format!(
        "{:<22} {:<18} {:>5} {:>10} {:>12} {:>26} {:>8} {:>8}\n",
        "operation", "algorithm", "ranks", "bytes", "median µs", "95 % over launches", "rse %", "launches"
    );
    for row in rows {
        let over = &row.over_launches;
        let interval = over
            .interval
            .map_or_else(|| too_few(over.launches), |i| format!("{:.3} … {:.3}", i.low / 1e3, i.high / 1e3));
        let _ = writeln!(
            text,
            "{:<22} {:<18} {:>5} {:>10} {:>12.3} {:>26} {:>8.2} {:>8}",
            row.operation,
            row.algorithm,
            row.ranks,
            row.bytes,
            over.median / 1e3,
            interval,
            over.relative_standard_error * 100.0,
            over.launches
        );
        if let Some(share) = row.overlap {
            let _ = writeln!(text, "  overlap {:.0} %, median of the launches", 100.0 * share);
        }
        if let Some(switch) = &row.switch {
            let _ = writeln!(text, "  # {switch}");
        }
        for warning in &row.warnings {
            let _ = writeln!(text, "  ! {warning}");
        }
    }
    text
}
