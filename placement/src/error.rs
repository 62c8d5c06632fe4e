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
}

impl Problem {
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
