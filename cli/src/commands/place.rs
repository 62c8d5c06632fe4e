//! `vef place`: places ranks on nodes by a launcher's rules, as captured, or optimised.

use crate::args::Place;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use placement::captured::{self, Seen};
use placement::optimise::{self, CommMatrix, Cost, Distances, Optimised, Options, Report};
use placement::{Format, Placement, Request};
use replay::{Job, Replay};
use sim_example::topology::{Topology, TopologySpec};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vef_format::capture::Capture;
use vef_format::ids::Rank;
use vef_format::units::Grouped;

pub fn execute(place: &Place) -> Result<(), Failure> {
    let placement = match (&place.optimise, &place.topology) {
        (Some(trace), Some(topology)) => {
            let Optimised { placement, report } = optimised(place, trace, topology)?;
            // If stdout is for a program, print the report on stderr.
            match place.format.as_str() {
                "table" => output::result(compared(&report))?,
                _ => output::remark(compared(&report)),
            }
            placement
        }
        _ => by_rules(place)?,
    };
    if let Some(path) = &place.output {
        output::file(path, &placement.to_text(Format::of_path(path)))?;
        output::remark(format_args!("placement written to {}", path.display()));
    }
    output::result(shown(&placement, &place.format)?.trim_end())
}

/// The result of the optimisation: totals, and bytes by distance before and after.
fn compared(report: &Report) -> String {
    let share = |cost: u128| 100.0 * cost as f64 / (report.before.hop_bytes as f64).max(1.0);
    let rows = [
        ("before".to_owned(), report.before.hop_bytes),
        ("after".to_owned(), report.after.hop_bytes),
        ("block".to_owned(), report.block),
        ("round-robin".to_owned(), report.round_robin),
        (format!("best of {} random", report.random_rivals), report.best_random),
    ];
    let mut lines = vec![format!("{:18}  {:>26}  of before", "placement", "hop-bytes")];
    let row =
        |(name, cost): &(String, u128)| format!("{name:18}  {:>26}  {:>7.1} %", Grouped(*cost), share(*cost));
    lines.extend(rows.iter().map(row));
    lines.push(format!("\n{:>4}  {:>26}  {:>26}", "hops", "bytes before", "bytes after"));
    let by_hops = |cost: &Cost| -> BTreeMap<u32, u128> {
        cost.by_hops.iter().map(|class| (class.hops, class.bytes)).collect()
    };
    let (before, after) = (by_hops(&report.before), by_hops(&report.after));
    let hops: BTreeSet<u32> = before.keys().chain(after.keys()).copied().collect();
    let bytes = |of: &BTreeMap<u32, u128>, hops| Grouped(of.get(&hops).copied().unwrap_or(0));
    lines.extend(
        hops.iter()
            .map(|&hops| format!("{hops:>4}  {:>26}  {:>26}", bytes(&before, hops), bytes(&after, hops))),
    );
    if report.after == report.before {
        lines.push("\nNo better placement was found; the placement is unchanged.".into());
    }
    let cut = if report.cut_short { ", cut short by the time limit" } else { "" };
    lines.push(format!("\n{:.1} s{cut}\n", report.elapsed.as_secs_f64()));
    lines.join("\n")
}

fn shown(placement: &Placement, format: &str) -> Result<String, Failure> {
    match format {
        "table" => Ok(placement.to_table(|count| Grouped(count).to_string())),
        "getinfo" => Ok(placement.to_getinfo()),
        "json" => Ok(placement.to_text(Format::Json)),
        "toml" => Ok(placement.to_text(Format::Toml)),
        "text" => Ok(placement.to_text(Format::Text)),
        _ => Err(format!("--format {format:?}: write table, getinfo, json, toml or text").into()),
    }
}

fn by_rules(place: &Place) -> Result<Placement, Failure> {
    if let Some(directory) = &place.captured {
        return as_captured(directory);
    }
    let request = Request {
        model: place.model.parse()?,
        processes: place.processes,
        hostfile: place.hostfile.clone(),
        hosts: place.host.clone(),
        node_list: place.nodelist.clone(),
        nodes: place.nodes,
        slots: place.slots.clone(),
        cores: place.core,
        topology: place.hwloc.clone(),
        unknown_slots: place.unknown_slots,
        rankfile: place.rankfile.clone(),
        map_by: place.map_by.clone(),
        rank_by: place.rank_by.clone(),
        by_node: place.bynode,
        oversubscribe: place.oversubscribe,
        no_oversubscribe: place.nooversubscribe,
        per_node: place.per_node,
        distribution: place.distribution.as_deref().map(str::parse).transpose()?,
        launch_node: place.launch_node.clone(),
    };
    Ok(request.place()?)
}

fn as_captured(directory: &Path) -> Result<Placement, Failure> {
    let capture = Capture::open(directory)?;
    let seen: Vec<Seen> = (0..capture.tasks())
        .filter_map(|rank| capture.rank(Rank(rank)))
        .map(|info| Seen { host: info.host.clone(), cores: info.cores.clone() })
        .collect();
    Ok(captured::placement(&seen)?)
}

/// Starts from the rules if nodes are given, else from one rank per node of the topology.
fn optimised(place: &Place, trace: &Path, topology: &str) -> Result<Optimised, Failure> {
    let trace = Input::of(trace)?;
    let job = Job::open(&trace.path).map_err(|error| trace.error(error))?;
    let ranks = job.tasks();
    if let Some(processes) = place.processes.filter(|&processes| processes != ranks) {
        let error = format!("-n {processes}, but {} has {ranks} tasks", trace.path.display());
        return Err(trace.error(error));
    }
    let nodes_given = place.hostfile.is_some()
        || !place.host.is_empty()
        || place.nodelist.is_some()
        || place.nodes.is_some()
        || place.rankfile.is_some()
        || place.captured.is_some();
    let spec: TopologySpec = topology.parse()?;
    let before = match nodes_given {
        true => by_rules(place)?,
        false => {
            let network = spec.build(ranks)?;
            Placement::block(ranks, network.nodes(), ranks.div_ceil(network.nodes().max(1)))?
        }
    };
    let network = Network { topology: spec.build(before.nodes.len() as u32)?, spec };
    let mut matrix = traffic(job).map_err(|error| trace.error(error))?;
    Ok(optimise::optimise(
        &mut matrix,
        &network,
        &before,
        Options { seed: place.seed, ..Options::default() },
    )?)
}

/// The topology of a simulator as distances for the optimiser.
struct Network {
    topology: Topology,
    spec: TopologySpec,
}

impl Distances for Network {
    fn nodes(&self) -> u32 {
        self.topology.nodes()
    }

    /// The nodes of a tree are numbered along its leaves.
    fn order(&self) -> Vec<u32> {
        match &self.spec {
            TopologySpec::Torus { sizes, nodes_per_router, .. } => {
                optimise::box_order(&[&[*nodes_per_router], &sizes[..]].concat())
            }
            _ => (0..self.nodes()).collect(),
        }
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        match a == b {
            true => 0,
            false => self.topology.distance(a, b),
        }
    }
}

/// The communication matrix, with the messages of collectives: a replay in which messages arrive at once.
fn traffic(job: Job) -> Result<CommMatrix, Failure> {
    let bar = Bar::new("reading the trace");
    let mut matrix = CommMatrix::new(job.tasks());
    let mut replay = Replay::builder().job(job).build()?;
    let mut messages = 0;
    while let Some(now) = replay.next_ready() {
        while let Some(message) = replay.pop_ready(now)? {
            matrix.push(message.src.0, message.dst.0, message.bytes.0);
            replay.delivered(message.id, now)?;
            messages += 1;
            if messages % (1 << 16) == 0 {
                bar.count(messages, "messages");
            }
        }
    }
    match replay.stuck() {
        Some(stuck) => Err(stuck.to_string().into()),
        None => Ok(matrix),
    }
}
