//! The result of a simulation in a report.

use super::model::Report;
use super::parts::{figure, mean_of};
use maud::{Markup, PreEscaped, html};
use results::report::{RankStates, Simulated};
use results::simulation::Simulation;
use results::sweep::Sweep;
use results::table::{Cell, Table};
use results::{ByState, Exact, Kind};
use std::fs;
use std::path::{Path, PathBuf};
use vef_format::units::{Count, Grouped};

/// Links of a simulation that keep their load over time in a report, at most: the busiest.
const MOST_LINKS_OVER_TIME: usize = 256;
/// Links in the figure of their utilisation, at most.
const MOST_LINKS: usize = 1 << 14;
/// Ranks of a job in a report, at most: of more ranks, several share a row.
const MOST_RANKS: usize = 1 << 12;

/// Why a result is not added to a report.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// It is something else.
    #[error("{0}: not the JSON of `vef sim --json`: {1}")]
    Other(PathBuf, serde_json::Error),
    /// It is of another trace.
    #[error("the result of another trace, or of another part of it: {what} {there} there, {here} here")]
    OtherTrace {
        /// What differs.
        what: &'static str,
        /// In the result.
        there: String,
        /// In the trace of the report.
        here: String,
    },
    /// It is of jobs that arrived.
    #[error("the result of jobs that arrive (--arrivals), of which a report shows nothing")]
    Arrivals,
}

/// Reads the JSON that `vef sim --json` wrote.
///
/// # Errors
/// The file cannot be read, or is something else.
pub fn read(path: &Path) -> Result<Simulation, SimulationError> {
    let json = fs::read(path).map_err(|error| SimulationError::Io(path.into(), error))?;
    serde_json::from_slice(&json).map_err(|error| SimulationError::Other(path.into(), error))
}

/// One simulation, or many.
#[derive(Debug, Clone, PartialEq)]
pub enum Simulations {
    /// The result of `vef sim --json`.
    One(Box<Simulation>),
    /// That of a sweep.
    Sweep(Sweep),
}

/// Reads the JSON that `vef sim --json` wrote, with or without `--sweep`.
///
/// # Errors
/// The file cannot be read, or is something else.
pub fn read_any(path: &Path) -> Result<Simulations, SimulationError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        schema: Option<String>,
    }
    let json = fs::read(path).map_err(|error| SimulationError::Io(path.into(), error))?;
    let other = |error| SimulationError::Other(path.into(), error);
    let Versioned { schema } = serde_json::from_slice(&json).map_err(other)?;
    match schema.is_some_and(|schema| schema.starts_with("vef-sweep/")) {
        true => Ok(Simulations::Sweep(serde_json::from_slice(&json).map_err(other)?)),
        false => Ok(Simulations::One(serde_json::from_slice(&json).map_err(other)?)),
    }
}

impl Report {
    /// Adds the result of a simulation of this trace: of its links the busiest, and of many ranks the sums over groups, so that a
    /// network of any size fits on a page. The tables have all links.
    ///
    /// # Errors
    /// The result is of another trace: ranks, messages, bytes or collectives are not the same.
    pub fn add_simulation(&mut self, mut result: Simulation) -> Result<(), SimulationError> {
        let job = self.job_of(&result)?;
        let ranks = rank_states(&result, job);
        self.links = result.links.all.is_some().then(|| result.links_table());
        if let Some(links) = &mut result.links.all {
            links.sort_by(|one, other| other.utilisation.total_cmp(&one.utilisation));
        }
        let listed = result.links.all.as_ref().unwrap_or(&result.links.busiest);
        let utilisations = listed.iter().take(MOST_LINKS).map(|link| link.utilisation).collect();
        if let Some(links) = &mut result.links.all {
            links.truncate(MOST_LINKS_OVER_TIME);
        }
        for job in &mut result.jobs {
            job.ranks.clear();
            job.finish.tasks_ps.clear();
        }
        self.data.simulated = Some(Simulated { result, ranks, utilisations });
        Ok(())
    }

    /// Adds a sweep of simulations of this trace.
    ///
    /// # Errors
    /// A result is of another trace.
    pub fn add_sweep(&mut self, sweep: Sweep) -> Result<(), SimulationError> {
        sweep
            .points
            .iter()
            .filter_map(|point| point.report.as_ref())
            .try_for_each(|report| self.job_of(report).map(drop))?;
        self.data.sweep = Some(sweep);
        Ok(())
    }

    /// The job of a result that is this trace: the one with as many ranks. A single one has as many messages, bytes and collectives,
    /// several have at least as many.
    fn job_of(&self, result: &Simulation) -> Result<usize, SimulationError> {
        if result.arrivals.is_some() {
            return Err(SimulationError::Arrivals);
        }
        let other = |what, there: String, here: u128| {
            Err(SimulationError::OtherTrace { what, there, here: Grouped(here).to_string() })
        };
        let Some(job) = result.jobs.iter().position(|job| job.tasks == self.data.head.ranks) else {
            let there: Vec<String> = result.jobs.iter().map(|job| Grouped(job.tasks).to_string()).collect();
            return other("ranks:", there.join(" and "), self.data.head.ranks.into());
        };
        // Kinds without messages are not listed.
        let sent = result.kinds.iter().find(|of| of.kind == Kind::PointToPoint);
        let sent = sent.map(|of| of.amount).unwrap_or_default();
        let differs = |there: u128, here: Exact| there < here.0 || there > here.0 && result.jobs.len() == 1;
        for (what, there, here) in [
            ("point-to-point messages:", sent.messages, self.data.totals.messages),
            ("bytes of point-to-point messages:", sent.bytes, self.data.totals.bytes),
            ("collective operations:", result.collectives, self.data.totals.collectives),
        ] {
            // A sum that does not fit stays at the greatest number.
            if there < u64::MAX && differs(there.into(), here) {
                return other(what, Grouped(there).to_string(), here.0);
            }
        }
        Ok(job)
    }
}

/// What the ranks of a job do.
fn rank_states(result: &Simulation, job: usize) -> Option<RankStates> {
    let job = &result.jobs[job];
    let per_row = job.ranks.len().div_ceil(MOST_RANKS).max(1);
    let rows = || job.ranks.chunks(per_row);
    let sum = |times: &mut dyn Iterator<Item = u64>| Exact(times.map(u128::from).sum());
    let last = job.finish.tasks_ps.iter().max().copied().unwrap_or_default();
    let finished = job.finish.tasks_ps.iter().map(|finish| last - finish).collect::<Vec<_>>();
    (!job.ranks.is_empty()).then(|| RankStates {
        ranks_per_row: per_row as u32,
        times: ByState::from_fn(|state| {
            rows().map(|ranks| sum(&mut ranks.iter().map(|times| times[state]))).collect()
        }),
        initialising_ps: Vec::new(),
        finished_ps: finished.chunks(per_row).map(|times| sum(&mut times.iter().copied())).collect(),
    })
}

/// The sums over a simulation.
pub(super) fn sums(run: &Simulation) -> Table {
    let mut sums = Table::facts("simulation", "Simulation");
    sums.fact("simulated run time", Cell::Time(run.runtime_ps.into()));
    if let Some(ideal) = run.ideal {
        sums.fact("times as long as without contention", Cell::Real(ideal.slowdown, 2));
    }
    sums.fact("messages on the network", Cell::count(run.messages));
    sums.fact("in them", Cell::Bytes(run.bytes.into()));
    sums.fact("median latency", Cell::Time(run.latency.p50_ps.into()));
    sums.fact("99th percentile of latency", Cell::Time(run.latency.p99_ps.into()));
    sums.fact("utilisation of the busiest link", Cell::Share(run.links.utilisation_max));
    sums.fact("mean utilisation of all links", Cell::Share(run.links.utilisation_mean));
    sums
}

/// The network that was simulated.
pub(super) fn network(run: &Simulation) -> Table {
    let mut network = Table::facts("network", "Network");
    network.fact("topology", Cell::text(&run.network.topology));
    network.fact("routing", Cell::text(&run.network.routing));
    network.fact("model", Cell::text(&run.network.model));
    if !run.network.failures.is_empty() {
        network.fact("failures", Cell::text(run.network.failures.join("; ")));
    }
    network
}

/// The busiest links, with the columns that there is room for; the JSON and the CSV have all.
pub(super) fn busiest(run: &Simulation) -> Table {
    run.busiest_table().only(&["link", "utilisation", "busy_ps", "messages", "bytes", "waited_ps"])
}

pub(super) fn section(simulated: &Simulated) -> Markup {
    let Simulated { result: run, ranks, utilisations } = simulated;
    let network = &run.network;
    let over_time = run.links.all.iter().flatten().filter(|link| link.over_time.is_some()).count();
    let per_row = ranks.as_ref().map_or(1, |ranks| ranks.ranks_per_row);
    html! {
        p {
            "Topology " code { (network.topology) } ", routing " (network.routing) ", model " (network.model)
            ", " (Count(network.nodes, "node")) ", " (Count(network.links, "link")) "."
            @if !network.failures.is_empty() { " Failures: " code { (network.failures.join("; ")) } "." }
        }
        p .small {
            "Run times, efficiency and figures over time in the sections above are of a replay on the yardstick network, without contention; those here are of this network."
        }
        (sums(run).to_tiles())
        h3 { "Latency of messages" }
        (figure("sim-latency", "How long messages of a size took on the simulated network, from being handed over to their last byte: the median, and the band from the least up to 99 %."))
        (run.latency_table().to_html(None))
        h3 { "Links" }
        (figure("sim-topology", "The simulated network: each line is a cable, coloured by the share of the run time during which it was busy, the busier direction of two. Where nodes are left out, the colour of a switch is that of its nodes' busiest link."))
        (figure("sim-links", &format!("The share of the run time during which links were busy, the busiest first{}.", of_all(utilisations.len(), run.links.used))))
        (figure("sim-link-time", &format!("When links were busy: the busiest above{}; the lighter, the busier.", of_all(over_time, run.links.used))))
        (busiest(run).to_html(None))
        p .small {
            "The ten busiest links. Time waited for a link: of all its messages or packets together. How long messages wait for the link that leads from their node, and in model flow for any, "
            "is not counted by link: it is part of their latency."
        }
        h3 { "Ranks in the simulation" }
        (figure("sim-ranks", &format!("What each rank does from the start to the end of the simulation.{}", mean_of(per_row.into()))))
        @if let Some(path) = &run.critical_path {
            h3 { "Critical path" }
            p .small { "Where the run time goes along the chain of computing and messages that ends last." }
            (path.parts_table(run.runtime_ps).to_html(None))
            (path.links_table().to_html(None))
        }
    }
}

/// Says how many of all a figure shows, unless all.
fn of_all(shown: usize, all: u32) -> String {
    match all as usize > shown {
        true => format!(", {} of {} that carried messages", Grouped(shown), Grouped(all)),
        false => String::new(),
    }
}

pub(super) fn sweep_section(sweep: &Sweep) -> Markup {
    html! {
        @if !sweep.answers.is_empty() { ul { @for answer in &sweep.answers { li { (answer) } } } }
        @if let Ok(picture) = sweep.plot() { figure { div .picture { (PreEscaped(picture)) } } }
        (sweep.table().to_html(Some(html! { "the JSON of the sweep has them" })))
    }
}
