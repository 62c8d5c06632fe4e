//! The hosts of a capture, with the number of ranks and cores of each.

use super::Capture;
use crate::ids::Rank;
use crate::units::Count;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Number of ranks on it.
    pub ranks: u32,
    /// Number of CPUs that these ranks may use together; 0: unknown.
    pub cores: u32,
}

impl Host {
    /// Whether there are more ranks than CPUs, so that times in the capture include waiting for a CPU.
    pub fn is_oversubscribed(&self) -> bool {
        self.cores > 0 && self.ranks > self.cores
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} of {}", Count(self.ranks, "rank"), Count(self.cores, "core"), self.name)
    }
}

impl Capture {
    /// The hosts by name. Ranks without a recorded host are ignored.
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
