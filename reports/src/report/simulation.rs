//! The section of a page about a simulation, from its result.

use super::model::Report;
use super::parts::{Cell, figure, mean_of, percent, table, tile};
use super::result::{MOST_LINKS_OVER_TIME, SimulationError, busiest_first};
use super::shown::{bytes, count, time};
use super::text::Rows;
use maud::{Markup, html};
use results::Exact;
use results::table::{self, Column, Table};
use serde_json::Value;
use vef_format::operation::Operation;
use vef_format::units::Grouped;

/// Links of a simulation in a report, at most: the busiest.
const MOST_LINKS: usize = 1 << 14;
/// Ranks of a job in a report, at most: of more ranks, several share a row.
const MOST_RANKS: usize = 1 << 12;

impl Report {
    /// Adds the result of a simulation of this trace. The report's tables have all of its links; its figures, and its JSON, only the
    /// busiest, and of many ranks the sums over groups: a network of any size fits on a page.
    ///
    /// # Errors
    /// The result is of another trace: ranks, messages, bytes or collectives are not the same.
    pub fn add_simulation(&mut self, mut result: Value) -> Result<(), SimulationError> {
        self.is_of_this_trace(&result)?;
        self.links = links_table(&result);
        if let Some(Value::Array(links)) = result.pointer_mut("/links/all") {
            links.sort_by(busiest_first);
            links.truncate(MOST_LINKS);
            for link in links.iter_mut().skip(MOST_LINKS_OVER_TIME).filter_map(Value::as_object_mut) {
                link.retain(|key, _| ["link", "utilisation", "bytes"].contains(&key.as_str()));
            }
        }
        if let Some(Value::Array(jobs)) = result.get_mut("jobs") {
            jobs.iter_mut().for_each(group_ranks);
        }
        keep_digits(&mut result);
        self.simulated = Some(result);
        Ok(())
    }

    /// Compares with the jobs of a simulation. One of them has as many ranks; a single one has as many messages, bytes and collectives,
    /// several have at least as many.
    fn is_of_this_trace(&self, result: &Value) -> Result<(), SimulationError> {
        let ranks: Vec<u64> = list(result, "/jobs").filter_map(|job| number(job, "/tasks")).collect();
        let other = |what, there: String, here: u128| {
            Err(SimulationError::OtherTrace { what, there, here: Grouped(here).to_string() })
        };
        if !ranks.is_empty() && !ranks.contains(&self.head.ranks.into()) {
            let there: Vec<String> = ranks.iter().map(|ranks| Grouped(ranks).to_string()).collect();
            return other("ranks:", there.join(" and "), self.head.ranks.into());
        }
        let sent = list(result, "/kinds").find(|kind| text(kind, "/kind") == POINT_TO_POINT);
        let differs = |there: u128, here: Exact| there < here.0 || there > here.0 && ranks.len() == 1;
        // Kinds without messages are not listed.
        let of_sent =
            |path| result.get("kinds").map(|_| sent.and_then(|kind| number(kind, path)).unwrap_or(0));
        for (what, there, here) in [
            ("point-to-point messages:", of_sent("/messages"), self.totals.messages),
            ("bytes of point-to-point messages:", of_sent("/bytes"), self.totals.bytes),
            ("collective operations:", number(result, "/collectives"), self.totals.collectives),
        ] {
            // A sum that does not fit stays at the greatest number.
            let Some(there) = there.filter(|&there| there < u64::MAX) else { continue };
            if differs(there.into(), here) {
                return other(what, Grouped(there).to_string(), here.0);
            }
        }
        Ok(())
    }
}

/// The kind of the messages of point-to-point lines.
const POINT_TO_POINT: &str = "point_to_point";

/// Turns whole numbers that a double cannot hold into strings of digits, as [`Exact`] does.
fn keep_digits(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_u64().filter(|&whole| u128::from(whole) > Exact::MOST) {
                *value = Value::String(whole.to_string());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(keep_digits),
        Value::Object(values) => values.values_mut().for_each(keep_digits),
        _ => {}
    }
}

/// Adds up the times of neighbouring ranks of a job where there are too many; the time at which a group finishes is that of its last
/// rank.
fn group_ranks(job: &mut Value) {
    let ranks = job.get("ranks").and_then(Value::as_array).map_or(0, Vec::len);
    let per_row = ranks.div_ceil(MOST_RANKS);
    if per_row <= 1 {
        return;
    }
    job["ranks_per_row"] = per_row.into();
    if let Some(Value::Array(ranks)) = job.get_mut("ranks") {
        *ranks = ranks.chunks(per_row).map(sum_of).collect();
    }
    if let Some(Value::Array(tasks)) = job.pointer_mut("/finish_ps/tasks") {
        let last = |times: &[Value]| times.iter().filter_map(Value::as_u64).max().into();
        *tasks = tasks.chunks(per_row).map(last).collect();
    }
}

/// The sums of the whole numbers in objects, by key.
fn sum_of(rows: &[Value]) -> Value {
    let mut sums = serde_json::Map::new();
    for (key, value) in rows.iter().filter_map(Value::as_object).flatten() {
        let sum = sums.get(key).and_then(Value::as_u64).unwrap_or(0);
        sums.insert(key.clone(), sum.saturating_add(value.as_u64().unwrap_or(0)).into());
    }
    Value::Object(sums)
}

/// The links of a result that lists all of them.
fn links_table(result: &Value) -> Option<Table> {
    let columns = ["link", "messages", "bytes", "busy_ps"].map(|name| Column::new(name, name));
    let mut table = Table::new("links", "Links", columns);
    for link in result.pointer("/links/all")?.as_array()? {
        let whole = |path| number(link, path).unwrap_or(0);
        let [messages, bytes] = ["/messages", "/bytes"].map(|path| table::Cell::count(whole(path)));
        let busy = table::Cell::Time(whole("/busy_ps").into());
        table.row([table::Cell::text(text(link, "/link")), messages, bytes, busy]);
    }
    Some(table)
}

/// The number at a path of keys, if there is one; those beyond 2^53 are strings.
pub(super) fn number(value: &Value, path: &str) -> Option<u64> {
    let value = value.pointer(path)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

pub(super) fn real(value: &Value, path: &str) -> Option<f64> {
    value.pointer(path)?.as_f64()
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("unknown")
}

pub(super) fn list<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

fn cell(value: &Value, path: &str, shown: fn(Exact) -> String) -> Cell {
    match number(value, path) {
        Some(number) => Cell::shown(number.into(), shown),
        None => Cell::text(""),
    }
}

fn shown(sim: &Value, path: &str, shown: fn(Exact) -> String) -> String {
    number(sim, path).map_or_else(|| "unknown".to_owned(), |value| shown(value.into()))
}

/// The sums over a simulation, by name.
fn sums(sim: &Value) -> Vec<(&'static str, String)> {
    let share = |path: &str| percent(real(sim, path).unwrap_or_default());
    let mut sums = vec![
        ("simulated run time", shown(sim, "/runtime_ps", time)),
        ("messages on the network", shown(sim, "/messages", count)),
        ("in them", shown(sim, "/bytes", bytes)),
        ("median latency", shown(sim, "/latency_ps/p50", time)),
        ("99th percentile of latency", shown(sim, "/latency_ps/p99", time)),
        ("utilisation of the busiest link", share("/links/utilisation_max")),
        ("mean utilisation of all links", share("/links/utilisation_mean")),
    ];
    if let Some(slowdown) = real(sim, "/ideal/slowdown") {
        sums.insert(1, ("times as long as without contention", format!("{slowdown:.2}")));
    }
    sums
}

/// The simulation as text: its sums, and the busiest links.
pub(super) fn rows(sim: &Value) -> [Rows; 2] {
    let mut all = Rows::new(&["", ""]);
    for (name, path) in
        [("topology", "/network/topology"), ("routing", "/network/routing"), ("model", "/network/model")]
    {
        all.row(Exact(0), vec![name.to_owned(), text(sim, path).to_owned()]);
    }
    for (name, value) in sums(sim) {
        all.row(Exact(0), vec![name.to_owned(), value]);
    }
    let mut links = Rows::new(&["busiest links", "utilisation", "busy", "messages", "bytes"]);
    for link in list(sim, "/links/busiest") {
        let cells = vec![
            text(link, "/link").to_owned(),
            percent(real(link, "/utilisation").unwrap_or_default()),
            shown(link, "/busy_ps", time),
            shown(link, "/messages", count),
            shown(link, "/bytes", bytes),
        ];
        links.row(Exact(0), cells);
    }
    [all, links]
}

pub(super) fn section(sim: &Value) -> Markup {
    let latency = |row: &Value, name: &str, at: &str| {
        let mut cells = vec![Cell::text(name), cell(row, &format!("{at}/messages"), count)];
        for key in ["min", "mean", "p50", "p90", "p99", "max"] {
            cells.push(cell(row, &format!("{at}/{key}"), time));
        }
        cells
    };
    let mut latencies = vec![latency(sim, "all messages", "/latency_ps")];
    latencies.extend(
        list(sim, "/kinds")
            .filter(|kind| kind.get("latency_ps").is_some())
            .map(|kind| latency(kind, &kind_name(text(kind, "/kind")), "/latency_ps")),
    );
    let utilisation = |value: f64| Cell::number(value, percent(value));
    let busiest = list(sim, "/links/busiest").map(|link| {
        vec![
            Cell::text(text(link, "/link")),
            utilisation(real(link, "/utilisation").unwrap_or_default()),
            cell(link, "/busy_ps", time),
            cell(link, "/messages", count),
            cell(link, "/bytes", bytes),
            match waits_are_known(sim, link) {
                true => cell(link, "/waited_ps", time),
                false => Cell::unknown(),
            },
        ]
    });
    let used = number(sim, "/links/used").unwrap_or(0);
    let per_row = list(sim, "/jobs").next().and_then(|job| number(job, "/ranks_per_row")).unwrap_or(1);
    let all = || list(sim, "/links/all");
    let listed = if all().next().is_some() { all().count() } else { list(sim, "/links/busiest").count() };
    let over_time = all().filter(|link| link.get("busy").is_some()).count().min(MOST_LINKS_OVER_TIME);
    html! {
        p {
            "Topology " code { (text(sim, "/network/topology")) } ", routing " (text(sim, "/network/routing")) ", model " (text(sim, "/network/model"))
            ", " (shown(sim, "/network/nodes", count)) " nodes, " (shown(sim, "/network/links", count)) " links."
        }
        div .tiles { @for (name, value) in sums(sim) { (tile(&value, name)) } }
        h3 { "Latency of messages" }
        (figure("sim-latency", "How long messages of a size took on the simulated network, from being handed over to their last byte: the median, and the band from the least up to 99 %."))
        (table(&["kind", "messages", "least", "mean", "median", "90 %", "99 %", "greatest"], latencies))
        h3 { "Links" }
        (figure("sim-topology", "The simulated network: each line is a link, coloured by the share of the run time during which it was busy, the busier direction of two. On a torus nodes are left out, and links around its edges are stubs."))
        (figure("sim-links", &format!("The share of the run time during which links were busy, the busiest first{}.", of_all(listed, used))))
        (figure("sim-link-time", &format!("When links were busy: the busiest above{}; the lighter, the busier.", of_all(over_time, used))))
        (table(&["link", "utilisation", "busy", "messages", "bytes", "time waited for it"], busiest.collect()))
        p .small {
            "The ten busiest links. Time waited for a link: of all its messages or packets together. How long messages wait for the link that leads from their node, and in model flow for any, "
            "is not counted by link: it is part of their latency."
        }
        h3 { "Ranks in the simulation" }
        (figure("sim-ranks", &format!("What each rank does from the start to the end of the simulation.{}", mean_of(per_row))))
        @if let Some(path) = sim.get("critical_path").filter(|path| path.is_object()) { (critical_path(sim, path)) }
    }
}

/// How messages of a kind are called elsewhere in a report.
pub(super) fn kind_name(kind: &str) -> String {
    match serde_json::from_value::<Operation>(kind.into()) {
        Ok(operation) => operation.to_string(),
        Err(_) => kind.replace('_', "-"),
    }
}

/// Whether the simulator says how long messages waited for a link.
fn waits_are_known(sim: &Value, link: &Value) -> bool {
    !text(link, "/link").starts_with("node") && text(sim, "/network/model") != "flow"
}

/// Says how many of all a figure shows, unless all.
fn of_all(shown: usize, all: u64) -> String {
    match all > shown as u64 {
        true => format!(", {} of {} that carried messages", Grouped(shown), Grouped(all)),
        false => String::new(),
    }
}

/// The critical path: how the run time divides along the chain of computing and messages that ends last.
fn critical_path(sim: &Value, path: &Value) -> Markup {
    let runtime = number(sim, "/runtime_ps").unwrap_or_default();
    let share = |time: Option<u64>| match (time, runtime) {
        (Some(time), 1..) => {
            Cell::number(time as f64 / runtime as f64, percent(time as f64 / runtime as f64))
        }
        _ => Cell::text(""),
    };
    let parts = [
        ("before the start", "/before_start_ps"),
        ("computing", "/computing_ps"),
        ("overhead of nodes", "/overhead_ps"),
        ("latency", "/latency_ps"),
        ("transmission", "/transmission_ps"),
        ("queueing", "/queueing_ps"),
        ("within nodes", "/memory_ps"),
    ];
    let parts = parts
        .into_iter()
        .filter(|(_, at)| number(path, at).is_some_and(|time| time > 0))
        .map(|(name, at)| vec![Cell::text(name), cell(path, at, time), share(number(path, at))]);
    let links = list(path, "/links").map(|link| {
        vec![
            Cell::text(text(link, "/link")),
            cell(link, "/transmission_ps", time),
            cell(link, "/queueing_ps", time),
            cell(link, "/runtime_if_twice_as_fast_ps", time),
        ]
    });
    html! {
        h3 { "Critical path" }
        p .small { "Where the run time goes along the chain of computing and messages that ends last." }
        (table(&["on the path", "time", "share of the run time"], parts.collect()))
        (table(&["link on the path", "transmission", "queueing", "run time if it were twice as fast"], links.collect()))
    }
}
