//! The nodes of several jobs: a rule's nodes are some that no other job has.

use std::collections::{HashMap, HashSet};

use placement::Placement;
use replay::Job;

use crate::error::SimError;
use crate::places::Places;
use crate::random::Random;
use crate::settings::{Settings, Workload};
use crate::topology::Vertex;

/// Number of the sequence of random numbers by which the nodes of the first job are drawn; those of other jobs follow.
const DRAWS: u64 = 1 << 40;

/// The node of each task of each job. Nodes of placements are taken as they are, also by several jobs: those of the topology with their names,
/// else, if it has none of these names, those with their numbers. Then each rule, in the order of
/// the jobs, gets the first nodes that no other job has, or random ones. Jobs that arrive have their nodes numbered from 0, as each gets
/// some when it starts.
pub(crate) fn allocate(settings: &Settings, jobs: &[Job]) -> Result<Vec<Vec<u32>>, SimError> {
    let mut nodes: Vec<Vec<u32>> = (settings.jobs.iter().zip(jobs))
        .map(|(workload, job)| workload.nodes(job))
        .collect::<Result<_, _>>()?;
    take_by_name(settings, &mut nodes)?;
    let is_random = |places: &Places| matches!(places, Places::Random { .. });
    let is_given = |places: &Places| matches!(places, Places::Given(_));
    let any_random = settings.jobs.iter().any(|workload| is_random(&workload.places));
    if settings.arrivals.is_some() || (jobs.len() == 1 && !any_random) {
        return Ok(nodes);
    }
    let needed = |nodes: &Vec<u32>| nodes.iter().max().map_or(0, |&last| last.saturating_add(1));
    let all = match any_random {
        true => {
            settings.network.topology.build(nodes.iter().map(needed).fold(0, u32::saturating_add))?.nodes()
        }
        false => 0,
    };
    let with_places = || (0u32..).zip(&settings.jobs);
    let given = with_places().filter(|(_, workload)| is_given(&workload.places));
    let mut taken: HashSet<u32> = given.flat_map(|(job, _)| nodes[job as usize].clone()).collect();
    for (job, workload) in with_places().filter(|(_, workload)| !is_given(&workload.places)) {
        let of_job = &mut nodes[job as usize];
        let count = needed(of_job) as usize;
        let mut free: Vec<u32> = match is_random(&workload.places) {
            true => {
                let mut free: Vec<u32> = (0..all).filter(|node| !taken.contains(node)).collect();
                Random::new(settings.network.seed, DRAWS + u64::from(job)).shuffle(&mut free);
                free
            }
            false => (0..).filter(|node| !taken.contains(node)).take(count).collect(),
        };
        free.truncate(count);
        if free.len() < count {
            return Err(SimError::NoRoom { job, needed: count, free: free.len() });
        }
        of_job.iter_mut().for_each(|node| *node = free[*node as usize]);
        taken.extend(free);
    }
    Ok(nodes)
}

/// Gives the tasks of placements the nodes of the topology that have the names of theirs.
fn take_by_name(settings: &Settings, nodes: &mut [Vec<u32>]) -> Result<(), SimError> {
    let listed = settings.jobs.iter().filter_map(given).map(|placement| placement.nodes.len()).sum::<usize>();
    if listed == 0 {
        return Ok(());
    }
    let fabric = settings.network.topology.build(listed as u32)?;
    let name = |node| (fabric.vertex_name(Vertex::Node(node)), node);
    let numbers: HashMap<String, u32> = (0..fabric.nodes()).map(name).collect();
    for ((job, workload), nodes) in (0..).zip(&settings.jobs).zip(nodes) {
        let Some(placement) = given(workload) else { continue };
        let name = |node: &u32| placement.nodes.get(*node as usize).map_or("", |node| node.name.as_str());
        // Numbers, of which some may be those of no node.
        let is_number =
            |node: &u32| *node as usize >= placement.nodes.len() || name(node) == format!("node{node}");
        if nodes.iter().all(is_number) {
            continue;
        }
        let found: Vec<Option<u32>> = nodes.iter().map(|node| numbers.get(name(node)).copied()).collect();
        match found.iter().position(Option::is_none) {
            None => *nodes = found.into_iter().flatten().collect(),
            Some(rank) if found.iter().any(Option::is_some) => {
                return Err(SimError::UnknownNode { job, name: name(&nodes[rank]).to_owned() });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The placement file of a job, if it has one.
fn given(workload: &Workload) -> Option<&Placement> {
    match &workload.places {
        Places::Given(placement) => Some(placement),
        _ => None,
    }
}
