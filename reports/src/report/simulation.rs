//! The section of a page about a simulation, from its result.

use super::model::Report;
use super::parts::{Cell, figure, percent, table, tile};
use super::result::{MOST_LINKS_OVER_TIME, busiest_first};
use super::shown::{bytes, count, time};
use crate::exact::Exact;
use crate::table::{Column, Table};
use maud::{Markup, html};
use serde_json::Value;

/// Links of a simulation in a report, at most: the busiest.
const MOST_LINKS: usize = 1 << 14;
/// Ranks of a job in a report, at most: of more ranks, several share a row.
const MOST_RANKS: usize = 1 << 12;

impl Report {
    /// Adds the result of a simulation. The report's tables have all of its links; its figures, and its JSON, only the busiest, and
    /// of many ranks the sums over groups: a network of any size fits on a page.
    pub fn add_simulation(&mut self, mut result: Value) {
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
        self.simulated = Some(result);
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

fn links_table(result: &Value) -> Option<Table> {
    let links = result.get("links")?;
    let links = links.get("all").or_else(|| links.get("busiest"))?.as_array()?;
    let whole = |name, key: &str| {
        Column::whole(name, links.iter().map(|link| link.get(key).and_then(Value::as_u64).unwrap_or(0)))
    };
    let columns = vec![
        Column::text(
            "link",
            links.iter().map(|link| link.get("link").and_then(Value::as_str).unwrap_or_default()),
        ),
        whole("messages", "messages"),
        whole("bytes", "bytes"),
        whole("busy_ps", "busy_ps"),
    ];
    Some(Table { name: "links", columns })
}

/// The number at a path of keys, if there is one.
fn number(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path)?.as_u64()
}

fn real(value: &Value, path: &str) -> Option<f64> {
    value.pointer(path)?.as_f64()
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("unknown")
}

fn list<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

fn cell(value: &Value, path: &str, shown: fn(Exact) -> String) -> Cell {
    match number(value, path) {
        Some(number) => Cell::shown(number.into(), shown),
        None => Cell::text(""),
    }
}

pub(super) fn section(sim: &Value) -> Markup {
    let shown = |path: &str, shown: fn(Exact) -> String| {
        number(sim, path).map_or_else(|| "unknown".to_owned(), |value| shown(value.into()))
    };
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
            .map(|kind| latency(kind, &text(kind, "/kind").replace('_', "-"), "/latency_ps")),
    );
    let utilisation = |value: f64| Cell::number(value, percent(value));
    let busiest = list(sim, "/links/busiest").map(|link| {
        vec![
            Cell::text(text(link, "/link")),
            utilisation(real(link, "/utilisation").unwrap_or_default()),
            cell(link, "/busy_ps", time),
            cell(link, "/messages", count),
            cell(link, "/bytes", bytes),
            cell(link, "/waited_ps", time),
        ]
    });
    html! {
        p {
            "Topology " code { (text(sim, "/network/topology")) } ", routing " (text(sim, "/network/routing")) ", model " (text(sim, "/network/model"))
            ", " (shown("/network/nodes", count)) " nodes, " (shown("/network/links", count)) " links."
        }
        div .tiles {
            (tile(&shown("/runtime_ps", time), "simulated run time"))
            @if let Some(slowdown) = real(sim, "/ideal/slowdown") { (tile(&format!("{slowdown:.2}"), "times as long as without contention")) }
            (tile(&shown("/messages", count), "messages on the network"))
            (tile(&shown("/bytes", bytes), "in them"))
            (tile(&shown("/latency_ps/p50", time), "median latency"))
            (tile(&shown("/latency_ps/p99", time), "99th percentile of latency"))
            (tile(&percent(real(sim, "/links/utilisation_max").unwrap_or_default()), "utilisation of the busiest link"))
            (tile(&percent(real(sim, "/links/utilisation_mean").unwrap_or_default()), "mean utilisation of all links"))
        }
        h3 { "Latency of messages" }
        (figure("sim-latency", "How long messages of a size took on the simulated network, from being handed over to their last byte: the median, and the band from the least up to 99 %."))
        (table(&["kind", "messages", "least", "mean", "median", "90 %", "99 %", "greatest"], latencies, 0))
        h3 { "Links" }
        (figure("sim-topology", "The simulated network: each line is a link, coloured by the share of the run time during which it was busy, the busier direction of two. On a torus nodes are left out, and links around its edges are stubs."))
        (figure("sim-links", "The share of the run time during which links were busy, the busiest first."))
        (figure("sim-link-time", "When links were busy: the busiest above; the lighter, the busier."))
        (table(&["link", "utilisation", "busy", "messages", "bytes", "messages waited"], busiest.collect(), 0))
        h3 { "Ranks in the simulation" }
        (figure("sim-ranks", "What each rank does from the start to the end of the simulation."))
        @if let Some(path) = sim.get("critical_path").filter(|path| path.is_object()) { (critical_path(sim, path)) }
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
        (table(&["on the path", "time", "share of the run time"], parts.collect(), 0))
        (table(&["link on the path", "transmission", "queueing", "run time if it were twice as fast"], links.collect(), 0))
    }
}
