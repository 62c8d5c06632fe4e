//! MPICH's `mpiexec.hydra`: hosts take processes in turn, repeatedly if there are more. Hydra always permits
//! oversubscription.

use indexmap::IndexMap;

use super::launcher::{Launcher, processes_or_all};
use crate::error::Error;
use crate::input::machinefile::{self, HostTurn};
use crate::placement::{Location, Node, Placement};
use crate::request::Request;

/// MPICH's `mpiexec.hydra`.
pub(super) struct Hydra;

impl Launcher for Hydra {
    fn name(&self) -> &'static str {
        "hydra"
    }

    fn options(&self) -> &'static [&'static str] {
        &["--ntasks-per-node"]
    }

    fn filters_hostfile(&self) -> bool {
        false
    }

    fn apply(&self, request: &Request) -> Result<Placement, Error> {
        let turns = match &request.hostfile {
            _ if !request.hosts.is_empty() => machinefile::parse_hosts(&request.hosts)?,
            Some(path) => machinefile::read(path)?,
            None => {
                let turn = |node: Node| HostTurn { host: node.name, processes: node.slots.unwrap_or(1) };
                request.cluster()?.into_iter().map(turn).filter(|turn| turn.processes > 0).collect()
            }
        };
        place(turns, request.processes, request.per_node)
    }
}

/// Places processes (`None`: as many as the turns have) on the hosts of the turns; `per_node` (`-ppn`)
/// replaces the count of each turn.
fn place(turns: Vec<HostTurn>, processes: Option<u32>, per_node: Option<u32>) -> Result<Placement, Error> {
    if turns.is_empty() {
        return Err(Error::no_nodes());
    }
    if per_node == Some(0) {
        return Err(Error::no_ranks());
    }
    let mut slots_of: IndexMap<String, u32> = IndexMap::new();
    let mut order = Vec::with_capacity(turns.len());
    for turn in turns {
        let count = per_node.unwrap_or(turn.processes);
        let entry = slots_of.entry(turn.host);
        order.push((entry.index() as u32, count));
        let slots = entry.or_default();
        *slots = slots.saturating_add(count);
    }
    let room = order.iter().map(|&(_, count)| u64::from(count)).sum();
    let processes = processes_or_all(processes, room)?;
    let once = || order.iter().flat_map(|&(node, count)| std::iter::repeat_n(node, count as usize));
    let around = std::iter::repeat_with(once).flatten().take(processes as usize);
    let slots: Vec<u32> = slots_of.values().copied().collect();
    let ranks = Location::in_slots(around, &slots);
    let nodes = slots_of.into_iter().map(|(name, slots)| Node { slots: Some(slots), ..Node::named(name) });
    Ok(Placement { nodes: nodes.collect(), ranks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::machinefile::parse;

    fn run(text: &str, processes: Option<u32>, per_node: Option<u32>) -> Vec<u32> {
        place(parse(text, "m").unwrap(), processes, per_node).unwrap().nodes_of_ranks()
    }

    #[test]
    fn turns_and_rounds() {
        assert_eq!(run("a:2\nb:3\nc", Some(8), None), [0, 0, 1, 1, 1, 2, 0, 0]);
        assert_eq!(run("a:2\nb\na", None, None), [0, 0, 1, 0]);
        assert_eq!(run("a:2\nb:3\nc", Some(4), Some(1)), [0, 1, 2, 0]);
        let placement = place(parse("a\nb", "m").unwrap(), Some(3), None).unwrap();
        assert!(placement.ranks[2].oversubscribed && !placement.ranks[1].oversubscribed);
        assert!(place(parse("a", "m").unwrap(), Some(1), Some(0)).is_err());
        let error = place(parse("a:22222222", "m").unwrap(), None, None).unwrap_err().to_string();
        assert!(error.contains("room for 22222222; if so many are meant, give -np 22222222"), "{error}");
    }
}
