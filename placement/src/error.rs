//! What can be wrong, and where: every error that comes from a file names the file and the line.

use std::path::PathBuf;

/// Why there is no placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written at all.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// Something in a file is wrong.
    #[error("{file}:{line}: {problem}")]
    InFile {
        /// The file's name.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong there.
        problem: Problem,
    },
    /// The nodes that a file lists are not those that are wanted.
    #[error("{file}: {problem}")]
    OfFile {
        /// The file's name.
        file: String,
        /// What is wrong with them.
        problem: Problem,
    },
    /// The request itself cannot be met.
    #[error("{0}")]
    Request(Problem),
}

/// One thing that can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text does not follow its format.
    #[error("{0}")]
    Syntax(String),
    /// A placement without any rank.
    #[error("a placement needs at least one rank")]
    NoRanks,
    /// A cluster without any node.
    #[error("there are no nodes to place ranks on")]
    NoNodes,
    /// A rank points at a node the file does not list.
    #[error("rank {rank} is on node {node}, but there are only {nodes} nodes")]
    NodeOutOfRange {
        /// The rank.
        rank: usize,
        /// Its node, from 0.
        node: u64,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A block placement would need more nodes than there are.
    #[error("{ranks} ranks at {per_node} a node need {needed} nodes, and there are {nodes}")]
    TooFewNodes {
        /// Ranks to place.
        ranks: u64,
        /// Ranks a node takes.
        per_node: u64,
        /// Nodes that would take.
        needed: u64,
        /// Nodes there are.
        nodes: u64,
    },
    /// A host that is not among the nodes of the hostfile.
    #[error(
        "at least one of the requested hosts is not included in the current allocation; missing requested host: {0}"
    )]
    UnknownHost(String),
    /// `+n1`, `+e`: hosts relative to an allocation that a resource manager made.
    #[error(
        "a relative host was specified, but no prior allocation has been made, so there is no way to determine the \
         proper host: {0}"
    )]
    RelativeHost(String),
    /// A host's slots are given twice, or given and counted by repeating the host.
    #[error(
        "multiple definitions of the slot count for node {0}: list a node once for each slot, or once with slots=N, \
         not both"
    )]
    SlotsGivenTwice(String),
    /// A limit below the slots it limits.
    #[error("the max_slots parameter is less than the slots parameter: slots={slots} max_slots={max_slots}")]
    MaxBelowSlots {
        /// The node's slots.
        slots: u32,
        /// Its limit.
        max_slots: u32,
    },
    /// More processes than slots, and no leave to oversubscribe.
    #[error(
        "there are not enough slots available in the system to satisfy the {requested} slots that were requested \
         (there are {slots}): request fewer processes, make more slots available (slots=N in the hostfile, :N after \
         a --host name), or use --oversubscribe"
    )]
    NotEnoughSlots {
        /// Processes asked for.
        requested: u64,
        /// Slots there are.
        slots: u64,
    },
    /// A node would take more processes than it has slots, or than its limit.
    #[error(
        "there are not enough slots available on node {node} for the {requested} processes that the mapping puts \
         there (it has {slots}): use --oversubscribe, or map fewer"
    )]
    NodeFull {
        /// The node.
        node: String,
        /// Processes the mapping puts there.
        requested: u64,
        /// Its slots.
        slots: u64,
    },
    /// No node has a slot.
    #[error("all nodes which are allocated for this job are already filled: none has a slot")]
    AllFull,
    /// Nobody said how many processes, and it cannot be told from the nodes.
    #[error(
        "the number of processes to start was omitted, and the hosts do not say how many slots they have; give -np N"
    )]
    NoProcessCount,
    /// Nobody said how many processes, and the slots are more than anybody means.
    #[error(
        "the number of processes to start was omitted, and the hosts have room for {room}; if so many are meant, give -np {room}"
    )]
    TooManyImplied {
        /// Slots, or what a mapping makes of them.
        room: u64,
    },
    /// Nodes were not given in any way.
    #[error("no nodes: give a hostfile, --host, or --nodes N --slots M")]
    NoCluster,
    /// A policy nobody knows.
    #[error("the specified {what} policy is not recognized: {policy}")]
    UnknownPolicy {
        /// `mapping` or `ranking`.
        what: &'static str,
        /// What was written.
        policy: String,
    },
    /// A modifier nobody knows (`pe=N` binds processes and moves none between nodes).
    #[error("the request contains an unrecognized modifier: {0}")]
    UnknownModifier(String),
    /// Two options that contradict each other.
    #[error("conflicting directives for {what}: {first} and {second}")]
    Conflict {
        /// `mapping`, `ranking`, `oversubscription`, `nodes`.
        what: &'static str,
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A `ppr` of another shape.
    #[error(
        "the mapping request contains a pattern that doesn't match the required syntax ppr:N:object: {0}"
    )]
    PprPattern(String),
    /// A `ppr` without any process.
    #[error("{0}: ppr:0 would place no process at all")]
    PprZero(String),
    /// A `ppr` per something nobody knows.
    #[error(
        "an unrecognized object {object:?} in {ppr}: only hwthread, core, socket, l1cache, l2cache, l3cache, numa and \
         node are allowed (ppr:N:slot is GetInfo's: --model getinfo)"
    )]
    PprObject {
        /// The object.
        object: String,
        /// The whole request.
        ppr: String,
    },
    /// More processes than the pattern has places.
    #[error(
        "your job has requested more processes than the ppr for this topology can support: {requested} processes, \
         ppr {ppr}, room for {room}"
    )]
    PprTooMany {
        /// Processes asked for.
        requested: u64,
        /// Places the pattern has on all nodes.
        room: u64,
        /// The pattern.
        ppr: String,
    },
    /// No node has an object of the kind to rank by.
    #[error("no objects of the type to rank by were found on node {0}")]
    NoObjects(String),
    /// A rankfile gives a rank two places.
    #[error("rank {rank} is already assigned, in line {first}")]
    RankTwice {
        /// The rank.
        rank: u32,
        /// The line that assigned it first.
        first: usize,
    },
    /// A rankfile leaves out a rank.
    #[error(
        "rank {rank} is missing its location specification: all processes must have theirs in the rankfile"
    )]
    MissingRank {
        /// The rank.
        rank: u32,
    },
    /// A rankfile names a host that is not among the nodes.
    #[error("the rankfile claimed a host that is not allocated: {0}")]
    RankHost(String),
    /// A rankfile's slot list goes beyond the node.
    #[error("rank {rank}: node {node} has {has} {what}s, and the slot list wants {what} {wants}")]
    SlotBeyondNode {
        /// The rank.
        rank: u32,
        /// Its node.
        node: String,
        /// `core` or `socket`.
        what: &'static str,
        /// How many there are.
        has: u32,
        /// The one wanted, from 0.
        wants: u32,
    },
    /// A matrix or trace with more ranks than a placement.
    #[error("there are {ranks} ranks, and the placement has places for {places}")]
    MoreRanksThanPlaces {
        /// Ranks there are.
        ranks: u32,
        /// Ranks of the placement.
        places: u32,
    },
    /// A network with another number of nodes than a placement.
    #[error("the network has {network} nodes, and the placement has {placement}")]
    OtherNetwork {
        /// Nodes of the network.
        network: u32,
        /// Nodes of the placement.
        placement: u32,
    },
    /// An option that the chosen model does not have.
    #[error("{option} means nothing to the {model} model")]
    NotForModel {
        /// The option.
        option: &'static str,
        /// The model.
        model: &'static str,
    },
}

impl Problem {
    /// Whether it lies in which nodes there are.
    pub(crate) fn is_of_nodes(&self) -> bool {
        matches!(
            self,
            Problem::NoNodes
                | Problem::UnknownHost(_)
                | Problem::NotEnoughSlots { .. }
                | Problem::TooManyImplied { .. }
                | Problem::NodeFull { .. }
                | Problem::AllFull
                | Problem::NoProcessCount
                | Problem::NoObjects(_)
        )
    }

    /// The problem, placed at a line of a file.
    pub(crate) fn at(self, file: &str, line: usize) -> Error {
        Error::InFile { file: file.to_owned(), line, problem: self }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error::Request(problem)
    }
}
