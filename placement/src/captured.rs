//! The placement recorded by a capture: each rank reports its host and cores.

use indexmap::IndexMap;

use crate::error::Error;
use crate::placement::{Location, Node, Placement};

/// The host and cores of a rank at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedHost {
    /// The host name (`MPI_Get_processor_name` or `gethostname`).
    pub host: String,
    /// The cores that the process may run on, by number in the system; empty if not recorded.
    pub cores: Vec<u32>,
}

impl Placement {
    /// The placement of ranks 0, 1, … of a capture. Nodes are in the order of their first rank; `core` is the
    /// lowest core of the process's set. A rank is oversubscribed if an earlier rank of its node was bound to
    /// the same single core.
    ///
    /// # Errors
    /// There are no ranks, or a rank has no host name.
    pub fn captured(ranks: &[RecordedHost]) -> Result<Self, Error> {
        if ranks.is_empty() {
            return Err(Error::no_ranks());
        }
        // By host: the single cores that ranks are bound to, and the number of ranks.
        let mut hosts: IndexMap<&str, (Vec<u32>, u32)> = IndexMap::new();
        let mut locations = Vec::with_capacity(ranks.len());
        for (rank, RecordedHost { host, cores }) in ranks.iter().enumerate() {
            if host.trim().is_empty() {
                return Err(Error::new(format!("rank {rank} recorded no host name")));
            }
            let entry = hosts.entry(host);
            let node = entry.index() as u32;
            let (taken, count) = entry.or_default();
            let oversubscribed = match cores[..] {
                [core] if taken.contains(&core) => true,
                [core] => {
                    taken.push(core);
                    false
                }
                _ => false,
            };
            locations.push(Location {
                node,
                slot: Some(*count),
                core: cores.iter().min().copied(),
                oversubscribed,
            });
            *count += 1;
        }
        Ok(Placement { nodes: hosts.into_keys().map(Node::named).collect(), ranks: locations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(ranks: &[(&str, &[u32])]) -> Result<Placement, Error> {
        let recorded =
            |&(host, cores): &(&str, &[u32])| RecordedHost { host: host.into(), cores: cores.into() };
        Placement::captured(&ranks.iter().map(recorded).collect::<Vec<_>>())
    }

    #[test]
    fn hosts_become_nodes_in_order_of_appearance() {
        let placement = placement(&[("b", &[1]), ("a", &[0, 1]), ("b", &[1]), ("b", &[])]).unwrap();
        assert_eq!(placement.nodes_of_ranks(), [0, 1, 0, 0]);
        assert_eq!(placement.hosts_of_ranks().next(), Some("b"));
        assert_eq!(
            placement.ranks.iter().map(|p| p.oversubscribed).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        assert_eq!(placement.ranks[1].core, Some(0));
        assert_eq!(placement.ranks[3], Location { slot: Some(2), ..Location::on(0) });
    }

    #[test]
    fn a_rank_without_host_is_an_error() {
        assert!(placement(&[]).is_err());
        assert!(placement(&[("a", &[]), (" ", &[])]).unwrap_err().to_string().contains("rank 1"));
    }
}
