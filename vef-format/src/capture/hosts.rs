//! The hosts that a capture was made on: how many ranks each had, and how many cores for them.

use super::Capture;
use crate::ids::Rank;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A host, and the ranks on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// How many ranks of the capture ran on it.
    pub ranks: u32,
    /// How many CPUs these ranks were allowed to run on, all together; 0: not recorded.
    pub cores: u32,
}

impl Host {
    /// Whether ranks had to wait for each other's cores, so that times in the capture measure the scheduler, too.
    pub fn is_oversubscribed(&self) -> bool {
        self.cores > 0 && self.ranks > self.cores
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        write!(f, "{} ranks on {} {cores} of {}", self.ranks, self.cores, self.name)
    }
}

impl Capture {
    /// The hosts of the ranks, by name. Ranks that recorded none are left out.
    pub fn hosts(&self) -> Vec<Host> {
        let mut hosts: BTreeMap<&str, (u32, BTreeSet<u32>)> = BTreeMap::new();
        for info in (0..self.tasks()).filter_map(|rank| self.rank(Rank(rank))) {
            if !info.host.is_empty() {
                let (ranks, cores) = hosts.entry(&info.host).or_default();
                *ranks += 1;
                cores.extend(&info.cores);
            }
        }
        let host = |(name, (ranks, cores)): (&str, (u32, BTreeSet<u32>))| Host {
            name: name.to_owned(),
            ranks,
            cores: cores.len() as u32,
        };
        hosts.into_iter().map(host).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_ranks_than_cores() {
        let host = |ranks, cores| Host { name: "n1".into(), ranks, cores };
        assert!(host(3, 2).is_oversubscribed() && !host(2, 2).is_oversubscribed());
        assert!(!host(3, 0).is_oversubscribed(), "not recorded is not known");
        assert_eq!(host(2, 1).to_string(), "2 ranks on 1 core of n1");
    }
}
