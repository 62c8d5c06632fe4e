//! What a launcher is, and what the rules of several of them share.

use crate::error::Error;
use crate::placement::{MOST_RANKS, Placement};
use crate::request::Request;

/// The rules by which a launcher places ranks.
pub trait Launcher: Sync {
    /// The name, as `--model` takes it.
    fn name(&self) -> &'static str;

    /// Its options, of those that not every launcher has; a request with others is refused.
    fn options(&self) -> &'static [&'static str];

    /// Whether `--host` may filter the nodes of a hostfile.
    fn filters_hostfile(&self) -> bool {
        true
    }

    /// Places the ranks of a request that has only options of this launcher.
    ///
    /// # Errors
    /// The first error in the request or one of its files.
    fn apply(&self, request: &Request) -> Result<Placement, Error>;

    /// Places the ranks of a request.
    ///
    /// # Errors
    /// The first error in the request or one of its files, with file and line if it has them.
    fn place(&self, request: &Request) -> Result<Placement, Error> {
        if let Some(option) = request.special_options().find(|option| !self.options().contains(option)) {
            return Err(Error::new(format!("{option} has no meaning in the {} model", self.name())));
        }
        request.check(self.filters_hostfile())?;
        if request.processes == Some(0) {
            return Err(Error::no_ranks());
        }
        if let Some(processes) = request.processes.filter(|&processes| processes > MOST_RANKS) {
            return Err(Error::too_many_ranks(processes, MOST_RANKS));
        }
        self.apply(request).map_err(|error| match &request.hostfile {
            Some(path) => error.in_hostfile(&path.display().to_string()),
            None => error,
        })
    }
}

/// Most processes if their number is not given: do not allocate memory on a mistyped slot count's word.
const MOST_IMPLIED: u32 = 1 << 20;

/// The given number of processes, else as many as there are places.
pub(super) fn processes_or_all(processes: Option<u32>, room: u64) -> Result<u32, Error> {
    match (processes, u32::try_from(room)) {
        (Some(processes), _) => Ok(processes),
        (None, Ok(0)) => Err(Error::no_ranks()),
        (None, Ok(count)) if count <= MOST_IMPLIED => Ok(count),
        (None, _) => Err(Error::of_nodes(format!(
            "the number of processes to start was omitted, and the hosts have room for {room}; if so many are meant, \
             give -np {room}"
        ))),
    }
}

pub(super) fn all_full() -> Error {
    Error::of_nodes("all nodes which are allocated for this job are already filled: none has a slot")
}
