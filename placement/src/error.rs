//! Errors. An error from a file names the file and the line.

use std::path::PathBuf;

/// An error in a placement, or in a request for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The message of the operating system.
        reason: String,
    },
    /// A line of a file is invalid.
    #[error("{file}:{line}: {problem}")]
    InFile {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The error.
        problem: Problem,
    },
    /// The list of nodes in a file is unsuitable.
    #[error("{file}: {problem}")]
    OfFile {
        /// The file's name.
        file: String,
        /// The error.
        problem: Problem,
    },
    /// The request is invalid.
    #[error("{0}")]
    Request(Problem),
}

/// The error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is malformed.
    #[error("{0}")]
    Syntax(String),
    /// A placement has no ranks.
    #[error("a placement needs at least one rank")]
    NoRanks,
    /// A cluster has no nodes.
    #[error("there are no nodes to place ranks on")]
    NoNodes,
    /// A rank is on a node that the file does not list.
    #[error("rank {rank} is on node {node}, but there are only {nodes} nodes")]
    NodeOutOfRange {
        /// The rank.
        rank: usize,
        /// Its node, from 0.
        node: u64,
        /// Number of nodes.
        nodes: usize,
    },
    /// A block placement needs more nodes than there are.
    #[error("{ranks} ranks at {per_node} per node need {needed} nodes, but there are {nodes}")]
    TooFewNodes {
        /// Ranks to place.
        ranks: u64,
        /// Ranks per node.
        per_node: u64,
        /// Nodes needed.
        needed: u64,
        /// Nodes available.
        nodes: u64,
    },
    /// A host is not in the hostfile.
    #[error(
        "at least one of the requested hosts is not included in the current allocation; missing requested host: {0}"
    )]
    UnknownHost(String),
    /// Relative hosts (`+n1`, `+e`) need the allocation of a resource manager.
    #[error(
        "a relative host was specified, but no prior allocation has been made, so there is no way to determine the \
         proper host: {0}"
    )]
    RelativeHost(String),
    /// The slots of a host are given twice, or given and also counted by repetition.
    #[error(
        "multiple definitions of the slot count for node {0}: list a node once for each slot, or once with slots=N, \
         not both"
    )]
    SlotsGivenTwice(String),
    /// The maximum of slots is below the number of slots.
    #[error("the max_slots parameter is less than the slots parameter: slots={slots} max_slots={max_slots}")]
    MaxBelowSlots {
        /// Slots of the node.
        slots: u32,
        /// Their maximum.
        max_slots: u32,
    },
    /// There are more processes than slots, without permission to oversubscribe.
    #[error(
        "there are not enough slots available in the system to satisfy the {requested} slots that were requested \
         (there are {slots}): request fewer processes, make more slots available (slots=N in the hostfile, :N after \
         a --host name), or use --oversubscribe"
    )]
    NotEnoughSlots {
        /// Processes requested.
        requested: u64,
        /// Slots available.
        slots: u64,
    },
    /// A node gets more processes than its slots, or its maximum, permit.
    #[error(
        "there are not enough slots available on node {node} for the {requested} processes that the mapping puts \
         there (it has {slots}): use --oversubscribe, or map fewer"
    )]
    NodeFull {
        /// The node.
        node: String,
        /// Processes on the node.
        requested: u64,
        /// Its slots.
        slots: u64,
    },
    /// No node has a slot.
    #[error("all nodes which are allocated for this job are already filled: none has a slot")]
    AllFull,
    /// The number of processes is missing and cannot be derived from the nodes.
    #[error(
        "the number of processes to start was omitted, and the hosts do not say how many slots they have; give -np N"
    )]
    NoProcessCount,
    /// The number of processes is missing, and the nodes have implausibly many slots.
    #[error(
        "the number of processes to start was omitted, and the hosts have room for {room}; if so many are meant, give -np {room}"
    )]
    TooManyImplied {
        /// Slots, or places of the mapping.
        room: u64,
    },
    /// No nodes are given.
    #[error("no nodes: give a hostfile, --host, or --nodes N --slots M")]
    NoCluster,
    /// A policy is unknown.
    #[error("the specified {what} policy is not recognized: {policy}")]
    UnknownPolicy {
        /// `mapping` or `ranking`.
        what: &'static str,
        /// The text.
        policy: String,
    },
    /// A modifier is unknown (`pe=N` only binds processes and is accepted).
    #[error("the request contains an unrecognized modifier: {0}")]
    UnknownModifier(String),
    /// Two options contradict each other.
    #[error("conflicting directives for {what}: {first} and {second}")]
    Conflict {
        /// `mapping`, `ranking`, `oversubscription`, `nodes`.
        what: &'static str,
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A `ppr` is malformed.
    #[error(
        "the mapping request contains a pattern that doesn't match the required syntax ppr:N:object: {0}"
    )]
    PprPattern(String),
    /// A `ppr` has zero processes.
    #[error("{0}: ppr:0 would place no process at all")]
    PprZero(String),
    /// The object of a `ppr` is unknown.
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
    /// There are more processes than the `ppr` permits.
    #[error(
        "your job has requested more processes than the ppr for this topology can support: {requested} processes, \
         ppr {ppr}, room for {room}"
    )]
    PprTooMany {
        /// Processes requested.
        requested: u64,
        /// Places on all nodes.
        room: u64,
        /// The pattern.
        ppr: String,
    },
    /// No node has an object of the kind to rank by.
    #[error("no objects of the type to rank by were found on node {0}")]
    NoObjects(String),
    /// A rankfile assigns a rank twice.
    #[error("rank {rank} is already assigned, in line {first}")]
    RankTwice {
        /// The rank.
        rank: u32,
        /// The line of the first assignment.
        first: usize,
    },
    /// A rankfile omits a rank.
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
    /// The slot list of a rankfile exceeds the node.
    #[error("rank {rank}: node {node} has {has} {what}s, and the slot list wants {what} {wants}")]
    SlotBeyondNode {
        /// The rank.
        rank: u32,
        /// Its node.
        node: String,
        /// `core` or `socket`.
        what: &'static str,
        /// Number on the node.
        has: u32,
        /// The number requested, from 0.
        wants: u32,
    },
    /// A matrix or trace has more ranks than the placement.
    #[error("there are {ranks} ranks, but the placement has {places}")]
    MoreRanksThanPlaces {
        /// Ranks of the matrix or trace.
        ranks: u32,
        /// Ranks of the placement.
        places: u32,
    },
    /// The network and the placement have different numbers of nodes.
    #[error("the network has {network} nodes, but the placement has {placement}")]
    OtherNetwork {
        /// Nodes of the network.
        network: u32,
        /// Nodes of the placement.
        placement: u32,
    },
    /// The model does not support an option.
    #[error("{option} has no meaning in the {model} model")]
    NotForModel {
        /// The option.
        option: &'static str,
        /// The model.
        model: &'static str,
    },
}

impl Problem {
    /// Whether the error concerns the list of nodes.
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

    /// Adds the position in a file.
    pub(crate) fn at(self, file: &str, line: usize) -> Error {
        Error::InFile { file: file.to_owned(), line, problem: self }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error::Request(problem)
    }
}
