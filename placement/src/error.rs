//! The error of this crate: a message, and the line or file that it is about.

use std::fmt;

/// An invalid file, or a request that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    scope: Scope,
    message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Request,
    /// The nodes, wherever they come from.
    Nodes,
    File(String),
    Line(String, usize),
}

impl Error {
    /// An error in a request.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Error { scope: Scope::Request, message: message.into() }
    }

    /// The nodes are unsuitable; [`Error::in_hostfile`] adds the file that they come from.
    pub(crate) fn of_nodes(message: impl Into<String>) -> Self {
        Error { scope: Scope::Nodes, message: message.into() }
    }

    /// The error is in a file.
    pub(crate) fn in_file(self, file: impl Into<String>) -> Self {
        Error { scope: Scope::File(file.into()), ..self }
    }

    /// The error is in a line of a file, from 1.
    pub(crate) fn at(self, file: &str, line: usize) -> Self {
        Error { scope: Scope::Line(file.to_owned(), line), ..self }
    }

    /// Names the file of the nodes in an error about them.
    pub(crate) fn in_hostfile(self, hostfile: &str) -> Self {
        if self.scope == Scope::Nodes { self.in_file(hostfile) } else { self }
    }

    pub(crate) fn too_many_ranks(ranks: u32, most: u32) -> Self {
        Error::new(format!("{ranks} ranks; at most {most} are possible"))
    }

    pub(crate) fn no_ranks() -> Self {
        Error::new("a placement needs at least one rank")
    }

    pub(crate) fn no_nodes() -> Self {
        Error::of_nodes("there are no nodes to place ranks on")
    }

    /// There are more processes than slots, without permission to oversubscribe.
    pub(crate) fn not_enough_slots(requested: impl Into<u64>, slots: u64) -> Self {
        Error::of_nodes(format!(
            "there are not enough slots available in the system to satisfy the {} slots that were requested \
             (there are {slots}): request fewer processes, make more slots available (slots=N in the hostfile, :N after \
             a --host name, --slots N with --nodes), or use --oversubscribe",
            requested.into()
        ))
    }

    /// Relative hosts (`+n1`, `+e`) need the allocation of a resource manager.
    pub(crate) fn relative_host(host: &str) -> Self {
        Error::new(format!(
            "a relative host was specified, but no prior allocation has been made, so there is no way to determine \
             the proper host: {host}"
        ))
    }

    pub(crate) fn missing_rank(rank: usize) -> Self {
        Error::new(format!(
            "rank {rank} is missing its location specification: all processes must have theirs in the rankfile"
        ))
    }

    /// Two options contradict each other in `what`.
    pub(crate) fn conflict(what: &str, first: &str, second: &str) -> Self {
        Error::new(format!("conflicting directives for {what}: {first} and {second}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Request | Scope::Nodes => {}
            Scope::File(file) => write!(f, "{file}: ")?,
            Scope::Line(file, line) => write!(f, "{file}:{line}: ")?,
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
