//! GetInfo's model of `mpirun`: a node has slots, a slot has cores, and a process takes a core.
//! `docs/placement.md` lists the differences to `mpirun`.

use crate::error::{Error, Problem};
use crate::place::{Node, Place, Placement};
use crate::policy::ppr_parts;

/// Options of GetInfo; by default one process, mapped by node, ranked by slot.
pub(crate) struct Job<'a> {
    pub processes: u32,
    pub map_by: &'a str,
    pub rank_by: &'a str,
    pub oversubscribe: bool,
}

/// Places a job.
pub(crate) fn place(nodes: Vec<Node>, job: &Job<'_>) -> Result<Placement, Error> {
    if job.processes == 0 {
        return Err(Problem::NoRanks.into());
    }
    let room = nodes.iter().map(|node| u64::from(slots(node)) * u64::from(cores(node)));
    let capacity = room.fold(0u64, u64::saturating_add);
    if capacity == 0 {
        return Err(Problem::AllFull.into());
    }
    if !job.oversubscribe && u64::from(job.processes) > capacity {
        return Err(Problem::NotEnoughSlots { requested: job.processes.into(), slots: capacity }.into());
    }
    let (per_visit, by) = match ppr_parts(job.map_by) {
        Some(parts) => parts?,
        None => (1, job.map_by),
    };
    let mapped = match by {
        "node" => deal(
            &nodes.iter().enumerate().map(|(at, node)| (at, 0..slots(node))).collect::<Vec<_>>(),
            &nodes,
            job,
            per_visit,
        ),
        "slot" => {
            // Slots beyond the number of processes are never used.
            let each_slot =
                |(at, node)| (0..slots(node).min(job.processes)).map(move |slot| (at, slot..slot + 1));
            deal(&nodes.iter().enumerate().flat_map(each_slot).collect::<Vec<_>>(), &nodes, job, per_visit)
        }
        // `ppr` does not affect mapping by core.
        "core" => fill(&nodes, job),
        _ => return Err(Problem::UnknownPolicy { what: "mapping", policy: job.map_by.to_owned() }.into()),
    };
    let ranks = rank(mapped, &nodes, job.rank_by)?;
    Ok(Placement { nodes, ranks })
}

fn slots(node: &Node) -> u32 {
    node.slots.unwrap_or(1)
}

fn cores(node: &Node) -> u32 {
    node.cores.unwrap_or(1)
}

/// A node, and its slots that take turns as one.
type Unit = (usize, std::ops::Range<u32>);

/// Deals cores in turns: each visit of a unit takes its next `per_visit` cores. A unit without cores left is
/// done. When all are done, all start again, oversubscribed; then a visit that finds no cores left only
/// resets the unit.
fn deal(units: &[Unit], nodes: &[Node], job: &Job<'_>, per_visit: u32) -> Vec<Place> {
    let mut places = Vec::new();
    for oversubscribed in [false, true] {
        let mut given = vec![0u64; units.len()];
        let mut done = 0;
        let mut dry = vec![false; units.len()];
        while done < units.len() || oversubscribed {
            for (at, (node, slots)) in units.iter().enumerate() {
                let cores = u64::from(cores(&nodes[*node]));
                let holds = slots.len() as u64 * cores;
                if dry[at] {
                    continue;
                }
                for _ in 0..per_visit {
                    if given[at] == holds {
                        given[at] = 0;
                        if !oversubscribed {
                            dry[at] = true;
                            done += 1;
                        }
                        break;
                    }
                    if places.len() as u32 == job.processes {
                        return places;
                    }
                    let (slot, core) = (slots.start + (given[at] / cores) as u32, (given[at] % cores) as u32);
                    places.push(Place {
                        node: *node as u32,
                        slot: Some(slot),
                        core: Some(core),
                        oversubscribed,
                    });
                    given[at] += 1;
                }
            }
            if places.len() as u32 == job.processes {
                return places;
            }
        }
    }
    places
}

/// All cores in order; when oversubscribed, from the start again.
fn fill(nodes: &[Node], job: &Job<'_>) -> Vec<Place> {
    let mut places = Vec::with_capacity(job.processes as usize);
    for oversubscribed in std::iter::once(false).chain(std::iter::repeat(true)) {
        for (at, node) in nodes.iter().enumerate() {
            for slot in 0..slots(node) {
                for core in 0..cores(node) {
                    if places.len() as u32 == job.processes {
                        return places;
                    }
                    places.push(Place {
                        node: at as u32,
                        slot: Some(slot),
                        core: Some(core),
                        oversubscribed,
                    });
                }
            }
        }
    }
    places
}

/// Ranks follow the order of places as text (node10 before node2, core 10 before core 2); oversubscribed
/// places come last.
fn rank(places: Vec<Place>, nodes: &[Node], rank_by: &str) -> Result<Vec<Place>, Error> {
    let text = |number: Option<u32>| number.unwrap_or(0).to_string();
    let mut keyed: Vec<_> = places
        .into_iter()
        .map(|place| {
            let node = nodes[place.node as usize].name.clone();
            let key = match rank_by {
                "core" => [node, text(place.slot), text(place.core)],
                "slot" => [text(place.core), node, text(place.slot)],
                "node" => [text(place.slot), text(place.core), node],
                _ => return Err(Problem::UnknownPolicy { what: "ranking", policy: rank_by.to_owned() }),
            };
            Ok(((place.oversubscribed, key), place))
        })
        .collect::<Result<_, _>>()?;
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(keyed.into_iter().map(|(_, place)| place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Node> {
        let text = "node0\nnode1 slots=2 #cores=3\nnode2 slots=2 maxSlots=2\nnode3 slots=5 maxSlots=20\n";
        crate::input::hostfile::parse(text, "hostFile-example").unwrap()
    }

    fn run(processes: u32, map_by: &str, rank_by: &str) -> String {
        let job = Job { processes, map_by, rank_by, oversubscribe: true };
        place(sample(), &job).unwrap().to_getinfo()
    }

    /// Figure "bynode" of GetInfo's manual.
    #[test]
    fn by_node() {
        let expected = "0 0:0:node0\n1 0:0:node1\n2 0:0:node2\n3 0:0:node3\n4 1:0:node1\n5 2:0:node1\n6 0:1:node2\n\
            7 0:1:node3\n";
        assert_eq!(run(8, "node", "node"), expected);
    }

    /// Figure "map-by core, rank-by slot".
    #[test]
    fn by_core_ranked_by_slot() {
        let expected = "0 0:0:node0\n1 0:0:node1\n2 0:1:node1\n3 0:0:node2\n4 1:0:node1\n5 1:1:node1\n6 2:0:node1\n\
            7 2:1:node1\n";
        assert_eq!(run(8, "core", "slot"), expected);
    }

    #[test]
    fn ppr_takes_several_cores_a_visit() {
        assert_eq!(
            run(5, "ppr:2:node", "core"),
            "0 0:0:node0\n1 0:0:node1\n2 1:0:node1\n3 0:0:node2\n4 0:1:node2\n"
        );
        assert_eq!(run(4, "ppr:2:slot", "core"), "0 0:0:node0\n1 0:0:node1\n2 1:0:node1\n3 0:1:node1\n");
    }

    #[test]
    fn oversubscription_repeats_and_says_so() {
        let text = run(16, "core", "core");
        assert!(text.ends_with("14 o0:0:node0\n15 o0:0:node1\n"), "{text}");
        let job = Job { processes: 15, map_by: "node", rank_by: "node", oversubscribe: false };
        let error = place(sample(), &job).unwrap_err().to_string();
        assert!(error.contains("not enough slots") && error.contains("14"), "{error}");
    }
}
