//! MPICH's `mpiexec.hydra`: hosts take processes in turn, repeatedly if there are more.

use std::collections::HashMap;

use super::{as_many_as, in_slots};
use crate::error::{Error, Problem};
use crate::input::machinefile::Turn;
use crate::place::{Node, Placement};

/// Places processes (`None`: as many as the turns have) on the hosts of the turns; `per_node` (`-ppn`)
/// replaces the count of each turn. Hydra always permits oversubscription.
pub(crate) fn place(
    mut turns: Vec<Turn>,
    processes: Option<u32>,
    per_node: Option<u32>,
) -> Result<Placement, Error> {
    if per_node == Some(0) || processes == Some(0) {
        return Err(Problem::NoRanks.into());
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut index = HashMap::new();
    let mut hosts = Vec::with_capacity(turns.len());
    for turn in &mut turns {
        turn.processes = per_node.unwrap_or(turn.processes);
        let at = *index.entry(turn.host.clone()).or_insert_with(|| {
            nodes.push(Node { slots: Some(0), ..Node::named(&turn.host) });
            nodes.len() - 1
        });
        nodes[at].slots = nodes[at].slots.map(|slots| slots.saturating_add(turn.processes));
        hosts.push(at as u32);
    }
    let room: u64 = turns.iter().map(|turn| u64::from(turn.processes)).sum();
    let processes = match processes {
        Some(processes) => processes,
        None => as_many_as(room)?,
    };
    let once = || {
        hosts.iter().zip(&turns).flat_map(|(&host, turn)| std::iter::repeat_n(host, turn.processes as usize))
    };
    let around = std::iter::repeat_with(once).flatten().take(processes as usize);
    let slots: Vec<u32> = nodes.iter().map(|node| node.slots.unwrap_or(0)).collect();
    let ranks = in_slots(around, &slots);
    Ok(Placement { nodes, ranks })
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
