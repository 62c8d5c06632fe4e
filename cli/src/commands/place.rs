//! `vef place`: places ranks on nodes by a launcher's rules, as captured, or optimised.

use crate::groups::one_of;
use crate::input::Input;
use crate::output::{self, Failure, Written};
use crate::progress::Bar;
use clap::Args;
use placement::optimise::{self, CommMatrix, Distances, Optimised, SearchOptions};
use placement::{LAUNCHERS, Launcher, Placement, PlacementFormat, RecordedHost, Request};
use replay::{Job, Replay};
use sim_example::topology::{Fabric, TopologySpec, Vertex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vef_format::capture::Capture;
use vef_format::ids::Rank;
use vef_format::units::Grouped;

/// Place ranks on nodes by a launcher's rules, or optimise a placement
#[derive(Args)]
#[command(after_help = "\
Nodes come from --hostfile, --host, --nodelist, --rankfile, or --nodes with --slots; no launcher is run.
--optimise starts from the placement by these rules (default: one rank per node of the topology), and compares its
result with it, with block, round-robin and the best of 100 random placements.

Examples:
  vef place -n 8 --hostfile hosts --map-by node
  vef place -n 8 --model slurm --nodelist 'node[01-04]' --slots 2 --distribution cyclic
  vef place --captured capture -o ran.toml
  vef place --optimise app.vef --topology torus:4x4x4 -o better.toml     # fewest hop-bytes: bytes of each message times its links
  vef sim app.vef --topology torus:4x4x4 --sweep placement=block,better.toml   # what the run gains by that
  vef place --optimise app.vef --topology file:topology.conf -o better.rankfile   # for mpirun --rankfile")]
pub struct Arguments {
    /// Launcher whose rules to apply
    #[arg(
        long,
        default_value = LAUNCHERS[0].name(),
        value_name = "MODEL",
        value_parser = one_of(LAUNCHERS.map(|launcher| (launcher.name(), launcher)))
    )]
    pub model: &'static dyn Launcher,
    #[command(flatten)]
    pub request: Request,
    /// Use the placement recorded in this capture instead of rules
    #[arg(long, value_name = "DIR", conflicts_with_all = rules())]
    pub captured: Option<PathBuf>,
    /// Search for a placement with fewer hop-bytes for this trace; - is standard input
    #[arg(long, value_name = "TRACE", requires = "topology", value_parser = Input::argument)]
    pub optimise: Option<PathBuf>,
    /// Topology to optimise for (as in vef sim)
    #[arg(long, value_name = "T", requires = "optimise")]
    pub topology: Option<TopologySpec>,
    /// Seed of the search; the same seed gives the same placement
    #[arg(long, default_value_t = 1, value_name = "N", requires = "optimise")]
    pub seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = Shown::Table, value_name = "FORMAT")]
    pub format: Shown,
    /// Also write a placement file: .toml, .json, .rankfile (Open MPI's), or text with one node per line
    #[arg(short, long, value_name = "FILE", value_parser = Written::kind(&["toml", "json", "txt", "rankfile"], "a placement file is .toml, .json, .rankfile or .txt"))]
    pub output: Option<Written>,
}

/// The arguments that decide where ranks run.
fn rules() -> Vec<clap::Id> {
    let request = Request::augment_args(clap::Command::new("request"));
    let ids = request.get_arguments().map(|argument| argument.get_id().clone());
    ids.chain(["model".into()]).collect()
}

/// What is printed.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Table,
    Getinfo,
    Json,
    Toml,
    /// Open MPI's
    Rankfile,
    /// The node of each rank, a line each
    Text,
}

pub fn run(place: &Arguments) -> Result<(), Failure> {
    if let Some(path) = &place.output {
        output::can_all_be_written(&[path], &[])?;
    }
    let placement = match (&place.optimise, &place.topology) {
        (Some(trace), Some(topology)) => {
            let found = optimised(place, trace, topology)?;
            // If stdout is for a program, print the comparison on stderr.
            match place.format {
                Shown::Table => output::result(compared(&found))?,
                _ => {
                    let text = compared(&found);
                    text.lines().filter(|line| !line.is_empty()).for_each(output::remark);
                }
            }
            found.placement
        }
        _ => by_rules(place)?,
    };
    if let Some(path) = &place.output {
        output::file(path, &placement.to_text(PlacementFormat::of_path(path)))?;
        output::remark(format_args!("placement written to {}", path.display()));
        // The table is in the file.
        if place.optimise.is_some() && place.format == Shown::Table {
            return Ok(());
        }
    }
    let text = match place.format {
        Shown::Table => placement.to_table(|count| Grouped(count).to_string()),
        Shown::Getinfo => placement.to_getinfo(),
        Shown::Json => placement.to_text(PlacementFormat::Json),
        Shown::Toml => placement.to_text(PlacementFormat::Toml),
        Shown::Rankfile => placement.to_text(PlacementFormat::Rankfile),
        Shown::Text => placement.to_text(PlacementFormat::Text),
    };
    output::result(text.trim_end())
}

/// The result of the optimisation: totals, and bytes by distance before and after.
fn compared(found: &Optimised) -> String {
    let share = |cost: u128| 100.0 * cost as f64 / (found.before.hop_bytes as f64).max(1.0);
    let rows = [
        ("before".to_owned(), found.before.hop_bytes),
        ("after".to_owned(), found.after.hop_bytes),
        ("block".to_owned(), found.block),
        ("round-robin".to_owned(), found.round_robin),
        (format!("best of {} random", found.random_rivals), found.best_random),
    ];
    let mut lines = vec![format!("{:18}  {:>26}  of before", "placement", "hop-bytes")];
    let row =
        |(name, cost): &(String, u128)| format!("{name:18}  {:>26}  {:>7.1} %", Grouped(*cost), share(*cost));
    lines.extend(rows.iter().map(row));
    lines.push(format!("\n{:>4}  {:>26}  {:>26}", "hops", "bytes before", "bytes after"));
    let (before, after) = (&found.before.by_hops, &found.after.by_hops);
    let hops: BTreeSet<u32> = before.keys().chain(after.keys()).copied().collect();
    let bytes = |of: &BTreeMap<u32, u128>, hops| Grouped(of.get(&hops).copied().unwrap_or(0));
    lines.extend(
        hops.iter()
            .map(|&hops| format!("{hops:>4}  {:>26}  {:>26}", bytes(before, hops), bytes(after, hops))),
    );
    if found.after == found.before {
        lines.push("\nNo better placement was found; the placement is unchanged.".into());
    }
    let cut = if found.cut_short { ", cut short by the time limit" } else { "" };
    lines.push(format!("\nsearched for {:.1} s{cut}\n", found.elapsed.as_secs_f64()));
    lines.join("\n")
}

fn by_rules(place: &Arguments) -> Result<Placement, Failure> {
    match &place.captured {
        Some(directory) => as_captured(directory),
        None => Ok(place.model.place(&place.request)?),
    }
}

fn as_captured(directory: &Path) -> Result<Placement, Failure> {
    let capture = Capture::open(directory)?;
    let recorded: Vec<RecordedHost> = (0..capture.tasks())
        .filter_map(|rank| capture.rank(Rank(rank)))
        .map(|info| RecordedHost { host: info.host.clone(), cores: info.cores.clone() })
        .collect();
    Ok(Placement::captured(&recorded)?)
}

/// Starts from the rules if nodes are given, else from one rank per node of the topology.
fn optimised(place: &Arguments, trace: &Path, spec: &TopologySpec) -> Result<Optimised, Failure> {
    let trace = Input::of(trace)?;
    let job = Job::open(&trace.path).map_err(|error| trace.error(error))?;
    let ranks = job.placed_tasks();
    if let Some(processes) = place.request.processes.filter(|&processes| processes != ranks) {
        let error = format!("-n {processes}, but {} has {ranks} tasks", trace.path.display());
        return Err(trace.error(error));
    }
    let Request { rankfile, .. } = &place.request;
    let nodes_given = place.request.has_cluster() || rankfile.is_some() || place.captured.is_some();
    let before = match nodes_given {
        true => by_rules(place)?,
        false => {
            let network = spec.build(ranks)?;
            let per_node = ranks.div_ceil(network.nodes().max(1));
            let mut block = Placement::block(ranks, network.nodes(), per_node)?;
            // Those of a site's own file.
            for (number, node) in (0..).zip(&mut block.nodes) {
                node.name = network.vertex_name(Vertex::Node(number));
            }
            block
        }
    };
    let network = TopologyDistances(spec.build(before.nodes.len() as u32)?);
    let mut matrix = traffic(job).map_err(|error| trace.error(error))?;
    Ok(optimise::optimise(
        &mut matrix,
        &network,
        &before,
        SearchOptions { seed: place.seed, ..SearchOptions::default() },
    )?)
}

/// The topology of a simulator as distances for the optimiser.
struct TopologyDistances(Fabric);

impl Distances for TopologyDistances {
    fn nodes(&self) -> u32 {
        self.0.nodes()
    }

    fn order(&self) -> Vec<u32> {
        self.0.topology().order(self.nodes())
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        match a == b {
            true => 0,
            false => self.0.distance(a, b),
        }
    }
}

/// The communication matrix, with the messages of collectives: a replay in which messages arrive at once.
fn traffic(job: Job) -> Result<CommMatrix, Failure> {
    let bar = Bar::new("reading the trace");
    let (placed, mut matrix) = (job.placed_tasks(), CommMatrix::new(job.placed_tasks()));
    // A network interface is where its task is.
    let place = |task: Rank| if task.0 < placed { task.0 } else { task.0 - placed };
    let mut replay = Replay::builder().job(job).build()?;
    let mut messages = 0;
    while let Some(now) = replay.next_ready() {
        while let Some(message) = replay.pop_ready(now)? {
            matrix.push(place(message.src), place(message.dst), message.bytes.0);
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
