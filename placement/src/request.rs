//! A request to a launcher: its options, and the nodes that they give.

use std::path::PathBuf;

use crate::error::Error;
use crate::input::nodelist::{NodeList, SlotCounts};
use crate::input::policy::{Distribution, Mapping, Ranking};
use crate::input::{hostfile, hosts};
use crate::placement::Node;

/// The options of a launcher, which are also those of `vef place`. All are optional, but nodes must come from
/// one of `hostfile`, `hosts`, `node_list`, `rankfile`, or `nodes` with `slots`.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
pub struct Request {
    /// Number of ranks [default: as many as the launcher would start]
    #[arg(short = 'n', long = "np", visible_short_alias = 'c', value_name = "N")]
    pub processes: Option<u32>,
    /// Hostfile (Hydra: machine file)
    #[arg(long, visible_alias = "machinefile", value_name = "FILE")]
    pub hostfile: Option<PathBuf>,
    /// Hosts, or a filter on the hostfile: a,b:2,c
    #[arg(long = "host", value_name = "HOSTS")]
    pub hosts: Vec<String>,
    /// Slurm node list: node[01-04,07]
    #[arg(long = "nodelist", value_name = "LIST")]
    pub node_list: Option<NodeList>,
    /// Number of nodes, named node0, node1, …
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Slots per node of --nodes or --nodelist; also 16(x3),8
    #[arg(long, value_name = "N")]
    pub slots: Option<SlotCounts>,
    /// Cores per slot if the hostfile has no #cores
    #[arg(long = "core", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cores: Option<u32>,
    /// XML file of hwloc that describes a node, for mapping and ranking by object
    #[arg(long, value_name = "FILE")]
    pub hwloc: Option<PathBuf>,
    /// Slots of nodes without a given number [default: the cores of --hwloc, or 1]
    #[arg(long, value_name = "N")]
    pub unknown_slots: Option<u32>,
    /// Rankfile; overrides all policies
    #[arg(long, value_name = "FILE")]
    pub rankfile: Option<PathBuf>,
    /// Mapping policy: node, slot, core, ppr:N:node …
    #[arg(long, value_name = "POLICY")]
    pub map_by: Option<Mapping>,
    /// Ranking policy: node, slot, core (Open MPI 5: node, slot, fill, span)
    #[arg(long, value_name = "POLICY")]
    pub rank_by: Option<Ranking>,
    /// Map and rank by node
    #[arg(long = "bynode")]
    pub by_node: bool,
    /// Allow more ranks than slots
    #[arg(long)]
    pub oversubscribe: bool,
    /// Refuse more ranks than slots
    #[arg(long = "nooversubscribe")]
    pub no_oversubscribe: bool,
    /// Ranks per node (Hydra, Slurm; for mpirun say --map-by ppr:N:node)
    #[arg(long = "ntasks-per-node", visible_alias = "ppn", value_name = "N")]
    pub per_node: Option<u32>,
    /// Slurm distribution: block, cyclic, plane=N
    #[arg(long, value_name = "HOW")]
    pub distribution: Option<Distribution>,
    /// Node on which mpirun runs; Open MPI puts it first if it is one of the nodes
    #[arg(long, value_name = "NODE")]
    pub launch_node: Option<String>,
}

impl Request {
    /// Whether nodes are given, other than by a rankfile.
    pub fn has_cluster(&self) -> bool {
        self.hostfile.is_some() || !self.hosts.is_empty() || self.node_list.is_some() || self.nodes.is_some()
    }

    /// The given options that not every launcher has.
    pub(crate) fn special_options(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            ("--map-by", self.map_by.is_some()),
            ("--rank-by", self.rank_by.is_some()),
            ("--bynode", self.by_node),
            ("--rankfile", self.rankfile.is_some()),
            ("--hwloc", self.hwloc.is_some()),
            ("--ntasks-per-node", self.per_node.is_some()),
            ("--distribution", self.distribution.is_some()),
            ("--launch-node", self.launch_node.is_some()),
            ("--core", self.cores.is_some()),
            ("--nooversubscribe", self.no_oversubscribe),
            ("--unknown-slots", self.unknown_slots.is_some()),
        ];
        options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Refuses options that contradict each other, such as a second source of nodes: they come from a hostfile
    /// (`filtered` by `--host`, if the launcher does so), `--host`, `--nodelist` or `--nodes`.
    pub(crate) fn check(&self, filtered: bool) -> Result<(), Error> {
        if self.oversubscribe && self.no_oversubscribe {
            return Err(Error::conflict("oversubscription", "--oversubscribe", "--nooversubscribe"));
        }
        let sources = [
            ("--hostfile", self.hostfile.is_some()),
            ("--host", !self.hosts.is_empty() && (self.hostfile.is_none() || !filtered)),
            ("--nodelist", self.node_list.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--rankfile", self.rankfile.is_some()),
        ];
        let mut given = sources.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        let first = given.next();
        // A rankfile may use the nodes of another source; slots apply to listed or counted nodes.
        let second = given.find(|name| *name != "--rankfile");
        let slots_apply = self.slots.is_none() || self.node_list.is_some() || self.nodes.is_some();
        match (first, second.or((!slots_apply).then_some("--slots"))) {
            (Some(first), Some(second)) => Err(Error::conflict("nodes", first, second)),
            _ => Ok(()),
        }
    }

    /// The nodes from hostfile, `--host`, node list or count, with the cores of `--core`.
    pub(crate) fn cluster(&self) -> Result<Vec<Node>, Error> {
        let listed = self.hostfile.as_deref().map(hostfile::read).transpose()?;
        let mut nodes = match (listed, &self.node_list, self.nodes) {
            (listed, _, _) if !self.hosts.is_empty() => hosts::parse(&self.hosts, listed.as_deref())?,
            (Some(nodes), _, _) => nodes,
            (None, Some(NodeList(names)), _) => self.with_slots(names.iter().map(Node::named).collect())?,
            (None, None, Some(0)) => return Err(Error::no_nodes()),
            (None, None, Some(count)) => self.with_slots(Node::numbered(count)?)?,
            (None, None, None) => {
                return Err(Error::new("no nodes: give a hostfile, --host, or --nodes N --slots M"));
            }
        };
        for node in &mut nodes {
            node.cores = node.cores.or(self.cores);
        }
        Ok(nodes)
    }

    fn with_slots(&self, mut nodes: Vec<Node>) -> Result<Vec<Node>, Error> {
        if let Some(slots) = &self.slots {
            let slots = slots.of_nodes(nodes.len())?;
            nodes.iter_mut().zip(slots).for_each(|(node, slots)| node.slots = Some(slots));
        }
        Ok(nodes)
    }
}
