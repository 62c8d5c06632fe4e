//! The result of `vef traffic`.

use crate::Mean;
use crate::schema::schema;
use crate::simulation::{CongestionReport, Latency, OfSize};
use crate::table::{Cell, Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of synthetic traffic on a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Version of these keys.
    pub schema: TrafficSchema,
    /// The options by which it was made, by name, defaults included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Vec<String>>,
    /// The topology.
    pub topology: String,
    /// The routing.
    pub routing: String,
    /// The model.
    pub model: String,
    /// The traffic pattern.
    pub pattern: String,
    /// A result for each load.
    pub points: Vec<Load>,
    /// The time of a number of messages a node, if requested instead of loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
}

/// Messages that all nodes submit at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    /// Messages of a node; of a matrix, of those that send most.
    pub messages: u32,
    /// When the last one has arrived.
    pub runtime_ps: u64,
    /// When the first node has none left under way.
    pub first_node_ps: u64,
    /// Payload of a node in the mean, over the run time, as a share of the bandwidth of a node's link.
    pub throughput: f64,
    /// From submission to the last byte.
    pub latency: Latency,
    /// Link crossings of messages or packets, in sum.
    pub events: u64,
    /// Congestion control, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionReport>,
}

schema!(TrafficSchema of Traffic: "vef-traffic/3");

/// The result for one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// The requested load: a share of the bandwidth of a node's link.
    pub load: f64,
    /// The submitted load.
    pub offered: f64,
    /// The load that arrived in the last window, in the mean of all nodes.
    pub accepted: f64,
    /// The least load that arrived of a node, of the nodes that sent.
    pub accepted_worst: f64,
    /// From submission to the last byte.
    pub latency: Latency,
    /// The same by message size, in powers of two, if sizes differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<OfSize>,
    /// Half the width of the 95 % confidence interval of the mean latency, from ten parts of the measured
    /// time; absent if messages arrived in fewer than two of them.
    pub mean_half_width_ps: Option<u64>,
    /// From the first byte that leaves the source to the last byte.
    pub network_latency: Latency,
    /// Links from source to destination, those of nodes included, in the mean of the packets that arrived (in models without packets, of
    /// messages); absent if none did, and in a model of one's own that does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<f64>,
    /// Whether messages of some node arrive more slowly than it submits them, here or at a smaller load. Latencies
    /// then depend on the length of the measured time.
    pub saturated: bool,
    /// Link crossings of messages or packets, in sum.
    pub events: u64,
    /// Congestion control, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionReport>,
    /// Means over several seeds, of which all else but `saturated` has the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_seeds: Option<OverSeeds>,
}

/// The same load with several seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverSeeds {
    /// Their number.
    pub seeds: u32,
    /// Mean latency, in picoseconds; absent if no message was measured.
    pub latency_mean_ps: Option<Mean>,
    /// The load that arrived.
    pub accepted: Mean,
}

impl Load {
    /// The first of loads that differ in their seed alone, with the means of all; saturated if any is. `None` of no load.
    pub fn over_seeds(loads: Vec<Self>) -> Option<Self> {
        let measured = loads.iter().filter(|load| load.latency.messages > 0);
        let latencies: Vec<f64> = measured.map(|load| load.latency.mean_ps as f64).collect();
        let accepted: Vec<f64> = loads.iter().map(|load| load.accepted).collect();
        let seeds = OverSeeds {
            seeds: loads.len() as u32,
            latency_mean_ps: Mean::of(&latencies),
            accepted: Mean::of(&accepted)?,
        };
        let saturated = loads.iter().any(|load| load.saturated);
        let first = loads.into_iter().next()?;
        Some(Self { saturated, over_seeds: Some(seeds), ..first })
    }
}

impl Traffic {
    /// A row for each load; what congestion control has done, if there is any at some load.
    pub fn table(&self) -> Table {
        let is_controlled = self.points.iter().any(|point| point.congestion.is_some());
        let has_seeds = self.points.iter().any(|point| point.over_seeds.is_some());
        let mut columns = vec![
            Column::new("load", "load"),
            Column::new("offered", "offered"),
            Column::new("accepted", "accepted"),
            Column::new("accepted_worst", "worst").means("The least load that arrived of a sender"),
            Column::new("latency_mean_ps", "mean latency"),
            Column::new("latency_half_width_ps", "±")
                .means("Half the 95 % confidence interval of the mean latency"),
            Column::new("latency_p50_ps", "median"),
            Column::new("latency_p99_ps", "p99"),
            Column::new("latency_p999_ps", "p99.9"),
            Column::new("latency_max_ps", "greatest"),
            Column::new("network_latency_mean_ps", "in network")
                .means("From the first byte that leaves the source"),
            Column::new("hops", "hops"),
            Column::new("saturated", "saturated")
                .means("Then latencies depend on the length of the measured time"),
        ];
        if has_seeds {
            columns.extend([
                Column::new("seeds_latency_ps", "over seeds: mean latency"),
                Column::new("seeds_latency_half_width_ps", "±"),
                Column::new("seeds_accepted", "accepted"),
                Column::new("seeds_accepted_half_width", "±")
                    .means("Half the 95 % confidence intervals of the means over seeds"),
            ]);
        }
        if is_controlled {
            columns.extend([
                Column::new("marked", "marked").means("Packets that switches marked"),
                Column::new("dropped", "dropped").means("Packets that switches dropped"),
                Column::new("sent_again", "sent again").means("Packets that senders sent again"),
                Column::new("timeouts", "timeouts")
                    .means("Times that a sender waited too long for an acknowledgement"),
            ]);
        }
        let mut table = Table::new("points", "Loads", columns);
        for point in &self.points {
            let time = |time: u64| Cell::Time(time.into());
            let latency =
                |time: u64| Cell::maybe((point.latency.messages > 0).then_some(time.into()), Cell::Time);
            let Latency { mean_ps, p50_ps, p99_ps, p999_ps, max_ps, .. } = point.latency;
            let mut row = vec![
                Cell::Real(point.load, 3),
                Cell::Real(point.offered, 4),
                Cell::Real(point.accepted, 4),
                Cell::Real(point.accepted_worst, 4),
                latency(mean_ps),
                Cell::maybe(point.mean_half_width_ps, time),
                latency(p50_ps),
                latency(p99_ps),
                latency(p999_ps),
                latency(max_ps),
                latency(point.network_latency.mean_ps),
                Cell::maybe(point.hops, |hops| Cell::Real(hops, 2)),
                Cell::text(point.saturated.to_string()),
            ];
            if has_seeds {
                let of = point.over_seeds.as_ref();
                let latency = of.and_then(|of| of.latency_mean_ps);
                let ps = |time: f64| Cell::Time(time.round() as u128);
                let share = |share| Cell::Real(share, 4);
                row.extend([
                    Cell::maybe(latency.map(|of| of.mean), ps),
                    Cell::maybe(latency.and_then(|of| of.half_width), ps),
                    Cell::maybe(of.map(|of| of.accepted.mean), share),
                    Cell::maybe(of.and_then(|of| of.accepted.half_width), share),
                ]);
            }
            if is_controlled {
                let counts = point
                    .congestion
                    .as_ref()
                    .map(|all| [all.marked, all.dropped, all.sent_again, all.timeouts]);
                row.extend((0..4).map(|at| Cell::maybe(counts.map(|counts| counts[at].into()), Cell::Count)));
            }
            table.row(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_latency_where_no_message_was_measured() {
        let nothing = Load {
            load: 0.1,
            offered: 0.0,
            accepted: 0.0,
            accepted_worst: 0.0,
            latency: Latency::default(),
            sizes: Vec::new(),
            mean_half_width_ps: None,
            network_latency: Latency::default(),
            hops: None,
            saturated: false,
            events: 0,
            congestion: None,
            over_seeds: None,
        };
        let measured = Latency { messages: 2, ..Latency::default() };
        let something = Load { latency: measured, network_latency: measured, ..nothing.clone() };
        let traffic = Traffic {
            schema: TrafficSchema::default(),
            settings: BTreeMap::new(),
            topology: String::new(),
            routing: String::new(),
            model: String::new(),
            pattern: String::new(),
            points: vec![nothing, something],
            batch: None,
        };
        let table = traffic.table();
        for (at, column) in
            table.columns().iter().enumerate().filter(|(_, column)| column.name.contains("latency"))
        {
            let [nothing, something] = [0, 1].map(|row| table.rows().nth(row).map(|row| row[at].clone()));
            assert_eq!(nothing, Some(Cell::Missing), "{}", column.name);
            let width = column.name.contains("half_width");
            assert_eq!(something, Some(if width { Cell::Missing } else { Cell::Time(0) }), "{}", column.name);
        }
    }
}
