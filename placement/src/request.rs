//! A request as `vef place` takes it from the command line: unparsed options in, a placement out.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, Problem};
use crate::input::file::read_text;
use crate::input::hwloc::Topology;
use crate::input::rankfile::{Cpus, Entry};
use crate::input::{hostfile, hosts, machinefile, nodelist, rankfile};
use crate::launchers::slurm::Distribution;
use crate::launchers::{getinfo, hydra, in_slots, openmpi, slurm};
use crate::place::{Node, Place, Placement};
use crate::policy::{self, MapBy, RankBy};

/// The launcher whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Model {
    /// Open MPI 4.1's `mpirun`.
    #[default]
    OpenMpi,
    /// GetInfo's model of `mpirun`.
    GetInfo,
    /// MPICH's `mpiexec.hydra`.
    Hydra,
    /// Slurm's `srun`.
    Slurm,
}

impl Model {
    fn name(self) -> &'static str {
        match self {
            Model::OpenMpi => "openmpi",
            Model::GetInfo => "getinfo",
            Model::Hydra => "hydra",
            Model::Slurm => "slurm",
        }
    }
}

impl std::str::FromStr for Model {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let models = [Model::OpenMpi, Model::GetInfo, Model::Hydra, Model::Slurm];
        models.into_iter().find(|model| model.name() == text).ok_or_else(|| {
            Problem::Syntax(format!("--model is openmpi, getinfo, hydra or slurm, not {text:?}"))
        })
    }
}

/// Options of a launcher. All are optional, but nodes must come from one of `hostfile`, `hosts`, `node_list`,
/// `rankfile`, or `nodes` with `slots`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The launcher whose rules apply.
    pub model: Model,
    /// `-np N`; by default as many as the launcher would start.
    pub processes: Option<u32>,
    /// `--hostfile`: Open MPI's hostfile, or Hydra's machine file.
    pub hostfile: Option<PathBuf>,
    /// `--host`; each may be a comma-separated list.
    pub hosts: Vec<String>,
    /// `--nodelist`: Slurm's `node[01-04,07]`.
    pub node_list: Option<String>,
    /// `--nodes N`: nodes named `node0`, `node1`, ….
    pub nodes: Option<u32>,
    /// `--slots`, of each node of `nodes` or `node_list`; for the latter also `16(x3),8`.
    pub slots: Option<String>,
    /// `--core N`: cores per slot if the hostfile has no `#cores`.
    pub cores: Option<u32>,
    /// `--hwloc FILE`: hwloc's XML for a node, for mapping and ranking by object.
    pub topology: Option<PathBuf>,
    /// Slots of nodes without a given number, for which a real launcher counts the cores of the node. By
    /// default the cores of `topology`, or 1.
    pub unknown_slots: Option<u32>,
    /// `--rankfile`; overrides all policies.
    pub rankfile: Option<PathBuf>,
    /// `--map-by`.
    pub map_by: Option<String>,
    /// `--rank-by`.
    pub rank_by: Option<String>,
    /// `--bynode`: map and rank by node.
    pub by_node: bool,
    /// `--oversubscribe`.
    pub oversubscribe: bool,
    /// `--nooversubscribe`.
    pub no_oversubscribe: bool,
    /// Hydra's `-ppn`, Slurm's `--ntasks-per-node`.
    pub per_node: Option<u32>,
    /// `--distribution`, for Slurm's model.
    pub distribution: Option<Distribution>,
    /// The node on which `mpirun` runs; Open MPI puts it first.
    pub launch_node: Option<String>,
}

impl Request {
    /// Places the ranks.
    ///
    /// # Errors
    /// The first error in the request or one of its files, with file and line if it has them.
    pub fn place(&self) -> Result<Placement, Error> {
        self.check_options()?;
        self.by_model().map_err(|error| match (error, &self.hostfile) {
            (Error::Request(problem), Some(path)) if problem.is_of_nodes() => {
                Error::OfFile { file: path.display().to_string(), problem }
            }
            (error, _) => error,
        })
    }

    fn by_model(&self) -> Result<Placement, Error> {
        match self.model {
            Model::OpenMpi => match &self.rankfile {
                Some(path) => self.by_rankfile(path),
                None => self.openmpi(),
            },
            Model::GetInfo => match &self.rankfile {
                Some(path) => self.getinfo_rankfile(path),
                None => self.getinfo(),
            },
            Model::Hydra => self.hydra(),
            Model::Slurm => self.slurm(),
        }
    }

    /// Refuses options that the model ignores.
    fn check_options(&self) -> Result<(), Error> {
        let mpirun = matches!(self.model, Model::OpenMpi | Model::GetInfo);
        let policies = self.map_by.is_some() || self.rank_by.is_some() || self.by_node;
        let misplaced = [
            (policies && !mpirun, "--map-by, --rank-by or --bynode"),
            (self.rankfile.is_some() && !mpirun, "--rankfile"),
            (self.topology.is_some() && self.model != Model::OpenMpi, "--hwloc"),
            (self.per_node.is_some() && mpirun, "-ppn (say --map-by ppr:N:node)"),
            (self.distribution.is_some() && self.model != Model::Slurm, "--distribution"),
            (self.launch_node.is_some() && self.model != Model::OpenMpi, "a launch node"),
            (self.cores.is_some() && !mpirun, "--core"),
            (self.no_oversubscribe && self.model == Model::Hydra, "--nooversubscribe"),
            (self.unknown_slots.is_some() && self.model != Model::OpenMpi, "--unknown-slots"),
        ];
        if let Some(&(_, option)) = misplaced.iter().find(|(wrong, _)| *wrong) {
            return Err(Problem::NotForModel { option, model: self.model.name() }.into());
        }
        if self.oversubscribe && self.no_oversubscribe {
            let (first, second) = ("--oversubscribe".into(), "--nooversubscribe".into());
            return Err(Problem::Conflict { what: "oversubscription", first, second }.into());
        }
        self.check_sources()
    }

    /// Refuses a second source of nodes: they come from a hostfile (filtered by `--host`, except for Hydra),
    /// `--host`, `--nodelist` or `--nodes`.
    fn check_sources(&self) -> Result<(), Error> {
        let filtered = self.hostfile.is_some() && !self.hosts.is_empty() && self.model != Model::Hydra;
        let given = [
            (self.hostfile.is_some(), "--hostfile"),
            (!self.hosts.is_empty() && !filtered, "--host"),
            (self.node_list.is_some(), "--nodelist"),
            (self.nodes.is_some(), "--nodes"),
        ];
        let mut given = given.into_iter().filter(|(given, _)| *given).map(|(_, option)| option);
        let (first, second) = (given.next(), given.next());
        // Slots apply to counted or listed nodes; hosts have them in their own list.
        let second = second
            .or((self.slots.is_some() && self.node_list.is_none() && self.nodes.is_none())
                .then_some("--slots"));
        match (first.or(self.rankfile.is_some().then_some("--rankfile")), second) {
            (Some(first), Some(second)) => {
                Err(Problem::Conflict { what: "nodes", first: first.into(), second: second.into() }.into())
            }
            _ => Ok(()),
        }
    }

    /// The nodes from hostfile, `--host`, node list or count, with the cores of `--core`.
    fn cluster(&self) -> Result<Vec<Node>, Error> {
        let from_file = match &self.hostfile {
            Some(path) => Some(hostfile::parse(&read_text(path)?, &path.display().to_string())?),
            None => None,
        };
        let mut nodes = match (from_file, &self.node_list, self.nodes) {
            (known, _, _) if !self.hosts.is_empty() => hosts::parse(&self.hosts, known.as_deref())?,
            (Some(nodes), _, _) => nodes,
            (None, Some(list), _) => self.listed(nodelist::expand(list)?)?,
            (None, None, Some(0)) => return Err(Problem::NoNodes.into()),
            (None, None, Some(count)) => self.listed((0..count).map(|n| format!("node{n}")).collect())?,
            (None, None, None) => return Err(Problem::NoCluster.into()),
        };
        if self.cores == Some(0) {
            return Err(Problem::Syntax("--core wants a number above 0".into()).into());
        }
        for node in &mut nodes {
            node.cores = node.cores.or(self.cores);
        }
        Ok(nodes)
    }

    fn listed(&self, names: Vec<String>) -> Result<Vec<Node>, Error> {
        let slots = match &self.slots {
            Some(text) => nodelist::counts(text, names.len())?.into_iter().map(Some).collect(),
            None => vec![None; names.len()],
        };
        let nodes = names.into_iter().zip(slots);
        Ok(nodes.map(|(name, slots)| Node { slots, ..Node::named(name) }).collect())
    }

    fn openmpi(&self) -> Result<Placement, Error> {
        let mut nodes = self.cluster()?;
        if let Some(at) = nodes.iter().position(|node| Some(&node.name) == self.launch_node.as_ref()) {
            nodes[..=at].rotate_right(1);
        }
        let mapping = self.map_by.as_deref().map(policy::mapping).transpose()?;
        let ranking = self.rank_by.as_deref().map(policy::ranking).transpose()?;
        let oversubscribe = match (mapping.and_then(|mapping| mapping.oversubscribe), self.oversubscribe) {
            (Some(false), true) => return Err(self.conflict("oversubscription", "--oversubscribe")),
            (Some(true), _) if self.no_oversubscribe => {
                return Err(self.conflict("oversubscription", "--nooversubscribe"));
            }
            (modifier, option) => modifier.unwrap_or(option),
        };
        let (mut map_by, mut rank_by) = (mapping.map(|mapping| mapping.by), ranking);
        if self.by_node {
            if map_by.is_some_and(|by| by != MapBy::Node) {
                return Err(self.conflict("mapping", "--bynode"));
            }
            if rank_by.is_some_and(|by| by != RankBy::Node) {
                return Err(self.conflict("ranking", "--bynode"));
            }
            (map_by, rank_by) = (Some(MapBy::Node), Some(RankBy::Node));
        }
        let topology = self.topology()?;
        let default_slots =
            self.unknown_slots.unwrap_or(topology.map_or(1, |topology| topology.cores.max(1)));
        let job = openmpi::Job {
            processes: self.processes,
            map_by,
            rank_by,
            oversubscribe,
            default_slots,
            topology,
        };
        openmpi::place(nodes, &job)
    }

    fn conflict(&self, what: &'static str, option: &str) -> Error {
        let other = match what {
            "ranking" => format!("--rank-by {}", self.rank_by.as_deref().unwrap_or_default()),
            _ => format!("--map-by {}", self.map_by.as_deref().unwrap_or_default()),
        };
        Problem::Conflict { what, first: option.to_owned(), second: other }.into()
    }

    fn topology(&self) -> Result<Option<Topology>, Error> {
        let Some(path) = &self.topology else { return Ok(None) };
        Ok(Some(Topology::parse(&read_text(path)?, &path.display().to_string())?))
    }

    /// Open MPI with a rankfile: its hosts are the nodes, or must be among the nodes given.
    fn by_rankfile(&self, path: &Path) -> Result<Placement, Error> {
        let file = path.display().to_string();
        let entries = rankfile::parse(&read_text(path)?, &file)?;
        let given = self.hostfile.is_some()
            || !self.hosts.is_empty()
            || self.node_list.is_some()
            || self.nodes.is_some();
        let nodes = if given { self.cluster()? } else { hosts_of(&entries, self.cores) };
        let topology = self.topology()?;
        let index = index_of(&nodes);
        let ranks = self.processes.unwrap_or(entries.len() as u32);
        let last_line = entries.iter().map(|entry| entry.line).max().unwrap_or(1);
        let mut places: Vec<Option<Place>> = vec![None; entries.len().min(ranks as usize)];
        for entry in &entries {
            let Some(&node) = index.get(entry.host.as_str()) else {
                return Err(Problem::RankHost(entry.host.clone()).at(&file, entry.line));
            };
            check_cpus(entry, &nodes[node as usize], topology.as_ref())
                .map_err(|problem| problem.at(&file, entry.line))?;
            if let Some(place) = places.get_mut(entry.rank as usize) {
                *place = Some(place_of(entry, node));
            }
        }
        let missing = places
            .iter()
            .position(Option::is_none)
            .or((places.len() < ranks as usize).then_some(places.len()));
        if let Some(rank) = missing {
            return Err(Problem::MissingRank { rank: rank as u32 }.at(&file, last_line));
        }
        if ranks == 0 {
            return Err(Problem::NoRanks.into());
        }
        Ok(Placement { nodes, ranks: places.into_iter().flatten().collect() })
    }

    fn getinfo(&self) -> Result<Placement, Error> {
        let (map_by, rank_by) = if self.by_node {
            (Some("node"), Some("node"))
        } else {
            (self.map_by.as_deref(), self.rank_by.as_deref())
        };
        let job = getinfo::Job {
            processes: self.processes.unwrap_or(1),
            map_by: map_by.unwrap_or("node"),
            rank_by: rank_by.unwrap_or("slot"),
            oversubscribe: !self.no_oversubscribe,
        };
        getinfo::place(self.cluster()?, &job)
    }

    /// GetInfo copies a rankfile and ignores all other options.
    fn getinfo_rankfile(&self, path: &Path) -> Result<Placement, Error> {
        let file = path.display().to_string();
        let mut entries = rankfile::parse(&read_text(path)?, &file)?;
        entries.sort_by_key(|entry| entry.rank);
        let nodes = hosts_of(&entries, None);
        let index = index_of(&nodes);
        let mut ranks = Vec::with_capacity(entries.len());
        for (rank, entry) in entries.iter().enumerate() {
            if entry.rank as usize != rank {
                return Err(Problem::MissingRank { rank: rank as u32 }.at(&file, entry.line));
            }
            ranks.push(Place { core: Some(0), ..place_of(entry, index[entry.host.as_str()]) });
        }
        Ok(Placement { nodes, ranks })
    }

    fn hydra(&self) -> Result<Placement, Error> {
        let turns = match (&self.hostfile, self.hosts.is_empty()) {
            (_, false) => machinefile::parse_hosts(&self.hosts)?,
            (Some(path), true) => machinefile::parse(&read_text(path)?, &path.display().to_string())?,
            (None, true) => {
                let nodes = self.cluster()?;
                let turn =
                    |node: Node| machinefile::Turn { host: node.name, processes: node.slots.unwrap_or(1) };
                nodes.into_iter().map(turn).filter(|turn| turn.processes > 0).collect()
            }
        };
        if turns.is_empty() {
            return Err(Problem::NoNodes.into());
        }
        hydra::place(turns, self.processes, self.per_node)
    }

    fn slurm(&self) -> Result<Placement, Error> {
        let nodes = self.cluster()?;
        let distribution = self.distribution.unwrap_or_default();
        let Some(per_node) = self.per_node else {
            return slurm::place(nodes, self.processes, distribution, self.oversubscribe);
        };
        // The number of CPUs limits the tasks of each node.
        let capped = nodes.iter().map(|node| Node { slots: Some(per_node), ..node.clone() }).collect();
        let placed = slurm::place(capped, self.processes, distribution, false)?;
        let slots: Vec<u32> = nodes.iter().map(|node| node.slots.unwrap_or(per_node)).collect();
        let ranks = in_slots(placed.ranks.iter().map(|place| place.node), &slots);
        let over = ranks.iter().filter(|place| place.oversubscribed).count();
        if over > 0 && !self.oversubscribe {
            let requested = ranks.len() as u64;
            return Err(Problem::NotEnoughSlots { requested, slots: requested - over as u64 }.into());
        }
        Ok(Placement { nodes, ranks })
    }
}

/// The hosts of a rankfile as nodes, in the order of their first lines.
fn hosts_of(entries: &[Entry], cores: Option<u32>) -> Vec<Node> {
    let mut seen = HashSet::new();
    let hosts = entries.iter().map(|entry| entry.host.as_str()).filter(|&host| seen.insert(host));
    hosts.map(|host| Node { cores, ..Node::named(host) }).collect()
}

/// Index of each node in the list.
fn index_of(nodes: &[Node]) -> HashMap<&str, u32> {
    nodes.iter().zip(0..).map(|(node, at)| (node.name.as_str(), at)).collect()
}

fn place_of(entry: &Entry, node: u32) -> Place {
    let first = entry.cpus.first();
    let core = first.and_then(|cpus| cpus.cores).map(|(first, _)| first);
    match first.and_then(|cpus| cpus.socket) {
        Some(socket) => Place { slot: Some(socket), core, ..Place::on(node) },
        None => Place { slot: core, ..Place::on(node) },
    }
}

/// Checks a slot list against the node, as far as its topology, or slots and cores, are known.
fn check_cpus(entry: &Entry, node: &Node, topology: Option<&Topology>) -> Result<(), Problem> {
    let known = topology.map(|topology| topology.cores);
    let Some(cores) = known.or_else(|| Some(node.slots?.saturating_mul(node.cores.unwrap_or(1)))) else {
        return Ok(());
    };
    for &Cpus { socket, cores: range } in &entry.cpus {
        let beyond = |what, has, wants| {
            let node = node.name.clone();
            if wants < has {
                Ok(())
            } else {
                Err(Problem::SlotBeyondNode { rank: entry.rank, node, what, has, wants })
            }
        };
        let within = match (socket, topology) {
            (Some(socket), Some(topology)) => {
                beyond("socket", topology.sockets, socket)?;
                cores / topology.sockets.max(1)
            }
            _ => cores,
        };
        if let Some((_, last)) = range {
            beyond("core", within, last)?;
        }
    }
    Ok(())
}
