//! The placement recorded by a capture: each rank reports its host and cores.

use std::collections::HashMap;

use crate::error::{Error, Problem};
use crate::place::{Node, Place, Placement};

/// The host and cores of a rank at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The host name (`MPI_Get_processor_name` or `gethostname`).
    pub host: String,
    /// The cores that the process may run on, by number in the system; empty if not recorded.
    pub cores: Vec<u32>,
}

/// The placement of ranks 0, 1, …. Nodes are in the order of their first rank; `core` is the lowest core of
/// the process's set. A rank is oversubscribed if an earlier rank of its node was bound to the same single
/// core.
///
/// # Errors
/// There are no ranks, or a rank has no host name.
pub fn placement(ranks: &[Seen]) -> Result<Placement, Error> {
    if ranks.is_empty() {
        return Err(Problem::NoRanks.into());
    }
    let mut index: HashMap<&str, u32> = HashMap::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut used: Vec<Vec<u32>> = Vec::new();
    let mut count: Vec<u32> = Vec::new();
    let mut places = Vec::with_capacity(ranks.len());
    for (rank, seen) in ranks.iter().enumerate() {
        if seen.host.trim().is_empty() {
            return Err(Problem::Syntax(format!("rank {rank} recorded no host name")).into());
        }
        let node = *index.entry(&seen.host).or_insert_with(|| {
            nodes.push(Node::named(&seen.host));
            used.push(Vec::new());
            count.push(0);
            (nodes.len() - 1) as u32
        });
        let bound_to_one = seen.cores.len() == 1;
        let taken = &mut used[node as usize];
        let oversubscribed = bound_to_one && taken.contains(&seen.cores[0]);
        if bound_to_one && !oversubscribed {
            taken.push(seen.cores[0]);
        }
        let slot = count[node as usize];
        count[node as usize] += 1;
        places.push(Place { node, slot: Some(slot), core: seen.cores.iter().min().copied(), oversubscribed });
    }
    Ok(Placement { nodes, ranks: places })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(host: &str, cores: &[u32]) -> Seen {
        Seen { host: host.into(), cores: cores.into() }
    }

    #[test]
    fn hosts_become_nodes_in_order_of_appearance() {
        let placement =
            placement(&[seen("b", &[1]), seen("a", &[0, 1]), seen("b", &[1]), seen("b", &[])]).unwrap();
        assert_eq!(placement.nodes_of_ranks(), [0, 1, 0, 0]);
        assert_eq!(placement.host_of(0), Some("b"));
        assert_eq!(
            placement.ranks.iter().map(|p| p.oversubscribed).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        assert_eq!(placement.ranks[1].core, Some(0));
        assert_eq!(placement.ranks[3], Place { slot: Some(2), ..Place::on(0) });
    }

    #[test]
    fn a_rank_without_host_is_an_error() {
        assert!(placement(&[]).is_err());
        assert!(placement(&[seen("a", &[]), seen(" ", &[])]).unwrap_err().to_string().contains("rank 1"));
    }
}
