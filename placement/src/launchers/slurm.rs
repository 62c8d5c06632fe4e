//! Slurm's `srun --distribution`: the number of tasks on each node is that of dealing tasks one by one to
//! nodes with a free CPU; the distribution then assigns the tasks (srun(1)).

use super::{as_many_as, in_slots};
use crate::error::{Error, Problem};
use crate::place::{Node, Placement};

/// `--distribution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Consecutive tasks share a node.
    #[default]
    Block,
    /// Consecutive tasks are on consecutive nodes.
    Cyclic,
    /// Blocks of this many tasks are on consecutive nodes.
    Plane(u32),
}

impl std::str::FromStr for Distribution {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        // The part after a colon concerns sockets and cores.
        match text.split(':').next().unwrap_or(text) {
            "block" | "*" => Ok(Distribution::Block),
            "cyclic" => Ok(Distribution::Cyclic),
            first => match first.strip_prefix("plane=").map(str::parse) {
                Some(Ok(size)) if size > 0 => Ok(Distribution::Plane(size)),
                _ => {
                    Err(Problem::Syntax(format!("--distribution is block, cyclic or plane=N, not {text:?}")))
                }
            },
        }
    }
}

/// Places tasks (`None`: one per CPU) on nodes whose `slots` are their CPUs.
pub(crate) fn place(
    nodes: Vec<Node>,
    tasks: Option<u32>,
    distribution: Distribution,
    oversubscribe: bool,
) -> Result<Placement, Error> {
    let cpus: Vec<u32> = nodes.iter().map(|node| node.slots.unwrap_or(1)).collect();
    let room: u64 = cpus.iter().map(|&cpus| u64::from(cpus)).sum();
    let tasks = tasks.map_or_else(|| as_many_as(room), Ok)?;
    if tasks == 0 {
        return Err(Problem::NoRanks.into());
    }
    if u64::from(tasks) > room && !oversubscribe {
        return Err(Problem::NotEnoughSlots { requested: tasks.into(), slots: room }.into());
    }
    let mut left = tasks_of_nodes(&cpus, tasks);
    let size = match distribution {
        Distribution::Block => u32::MAX,
        Distribution::Cyclic => 1,
        Distribution::Plane(size) => size,
    };
    let mut order = Vec::with_capacity(tasks as usize);
    while order.len() < tasks as usize {
        for (node, left) in left.iter_mut().enumerate() {
            let take = size.min(*left);
            order.extend(std::iter::repeat_n(node as u32, take as usize));
            *left -= take;
        }
    }
    let ranks = in_slots(order.into_iter(), &cpus);
    Ok(Placement { nodes, ranks })
}

/// Deals one task per round to each node with a free CPU, or to all nodes if none has one. Rounds without a
/// change between them are taken in one step.
fn tasks_of_nodes(cpus: &[u32], tasks: u32) -> Vec<u32> {
    let mut taken = vec![0u32; cpus.len()];
    let mut left = tasks;
    while left > 0 {
        let mut open: Vec<usize> = (0..cpus.len()).filter(|&node| taken[node] < cpus[node]).collect();
        let mut rounds = open.iter().map(|&node| cpus[node] - taken[node]).min().unwrap_or(u32::MAX);
        if open.is_empty() {
            open = (0..cpus.len()).collect();
        }
        rounds = rounds.min(left / open.len() as u32);
        if rounds == 0 {
            open.truncate(left as usize);
            rounds = 1;
        }
        for &node in &open {
            taken[node] += rounds;
        }
        left -= rounds * open.len() as u32;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cpus: &[u32], tasks: u32, distribution: &str) -> Vec<u32> {
        let nodes =
            cpus.iter().enumerate().map(|(n, &c)| Node { slots: Some(c), ..Node::named(format!("n{n}")) });
        place(nodes.collect(), Some(tasks), distribution.parse().unwrap(), true).unwrap().nodes_of_ranks()
    }

    /// The examples of srun(1).
    #[test]
    fn the_manual_s_examples() {
        assert_eq!(run(&[2, 2, 2], 4, "block"), [0, 0, 1, 2]);
        assert_eq!(run(&[2, 2, 2], 4, "cyclic"), [0, 1, 2, 0]);
    }

    #[test]
    fn planes_uneven_nodes_and_oversubscription() {
        assert_eq!(run(&[4, 4], 8, "plane=2"), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(run(&[1, 3], 4, "cyclic"), [0, 1, 1, 1]);
        assert_eq!(run(&[1, 3], 6, "block"), [0, 0, 1, 1, 1, 1]);
        assert_eq!(run(&[0, 1], 1, "block"), [1]);
    }

    #[test]
    fn bad_requests() {
        assert!("plane=0".parse::<Distribution>().is_err() && "rack".parse::<Distribution>().is_err());
        let nodes = vec![Node { slots: Some(2), ..Node::named("a") }];
        assert!(place(nodes.clone(), Some(3), Distribution::Block, false).is_err());
        assert!(place(nodes, Some(0), Distribution::Block, false).is_err());
    }
}
