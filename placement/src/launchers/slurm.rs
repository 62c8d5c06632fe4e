//! Slurm's `srun --distribution`: the number of tasks on each node is that of dealing tasks one by one to
//! nodes with a free CPU; the distribution then assigns the tasks (srun(1)).

use super::launcher::{Launcher, processes_or_all};
use crate::error::Error;
use crate::input::policy::Distribution;
use crate::placement::{Location, Placement};
use crate::request::Request;

/// Slurm's `srun`.
pub(super) struct Slurm;

impl Launcher for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn options(&self) -> &'static [&'static str] {
        &["--ntasks-per-node", "--distribution", "--nooversubscribe"]
    }

    fn apply(&self, request: &Request) -> Result<Placement, Error> {
        let nodes = request.cluster()?;
        // A node takes as many tasks as its CPUs, or as asked for.
        let most: Vec<u32> = nodes.iter().map(|node| request.per_node.or(node.slots).unwrap_or(1)).collect();
        let room: u64 = most.iter().copied().map(u64::from).sum();
        let tasks = processes_or_all(request.processes, room)?;
        if u64::from(tasks) > room && (request.per_node.is_some() || !request.oversubscribe) {
            return Err(Error::not_enough_slots(tasks, room));
        }
        let mut left = tasks_of_nodes(&most, tasks);
        let size = match request.distribution.unwrap_or_default() {
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
        let cpus: Vec<u32> = nodes.iter().zip(most).map(|(node, most)| node.slots.unwrap_or(most)).collect();
        let ranks = Location::in_slots(order.into_iter(), &cpus);
        let over = ranks.iter().filter(|location| location.oversubscribed).count() as u64;
        if over > 0 && !request.oversubscribe {
            return Err(Error::not_enough_slots(tasks, u64::from(tasks) - over));
        }
        Ok(Placement { nodes, ranks })
    }
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

    fn request(cpus: &[u32], tasks: u32, distribution: &str) -> Request {
        let slots: Vec<String> = cpus.iter().map(u32::to_string).collect();
        Request {
            nodes: Some(cpus.len() as u32),
            slots: Some(slots.join(",").parse().unwrap()),
            processes: Some(tasks),
            distribution: Some(distribution.parse().unwrap()),
            ..Request::default()
        }
    }

    fn run(cpus: &[u32], tasks: u32, distribution: &str) -> Vec<u32> {
        let request = Request { oversubscribe: true, ..request(cpus, tasks, distribution) };
        Slurm.place(&request).unwrap().nodes_of_ranks()
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
        assert!(Slurm.place(&request(&[2], 3, "block")).is_err());
        assert!(Slurm.place(&request(&[2], 0, "block")).is_err());
    }
}
