//! The placement rules of each launcher.

pub(crate) mod getinfo;
pub(crate) mod hydra;
pub(crate) mod openmpi;
mod openmpi_rank;
pub(crate) mod slurm;
mod target;

use crate::error::{Error, Problem};
use crate::place::Place;

/// Most processes if their number is not given: do not allocate memory on a mistyped slot count's word.
const MOST_IMPLIED: u32 = 1 << 20;

/// As many processes as there are places.
pub(crate) fn as_many_as(room: u64) -> Result<u32, Error> {
    let count = u32::try_from(room).ok().filter(|&count| count <= MOST_IMPLIED);
    count.ok_or_else(|| Problem::TooManyImplied { room }.into())
}

/// The places of ranks on these nodes: the n-th rank of a node takes its n-th slot, modulo their number.
pub(crate) fn in_slots(nodes: impl Iterator<Item = u32>, slots: &[u32]) -> Vec<Place> {
    let mut taken = vec![0u32; slots.len()];
    nodes
        .map(|node| {
            let nth = taken[node as usize];
            taken[node as usize] += 1;
            nth_place(node, nth, slots[node as usize])
        })
        .collect()
}

/// The place of the `nth` process on a node with `slots` slots.
pub(crate) fn nth_place(node: u32, nth: u32, slots: u32) -> Place {
    Place { node, slot: Some(nth % slots.max(1)), core: None, oversubscribed: nth >= slots }
}
