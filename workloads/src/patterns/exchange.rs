//! Exchange with fixed partners: a ring, and halos of grids.

use vef_format::ids::MessageId;

use crate::emit::Emitter;
use crate::error::WorkloadError;
use crate::workload::{Layout, Pattern, Workload};

/// Each task sends to the next and waits for the previous.
pub(super) const RING: Pattern = Pattern {
    name: "ring",
    layout: Layout::Row,
    emit: |workload, out| {
        let tasks = out.tasks();
        exchange(workload, out, |task| vec![((task + 1) % tasks, 0)])
    },
};

/// Each task exchanges with its four neighbours on a periodic grid.
pub(super) const HALO2D: Pattern = Pattern { name: "halo2d", layout: Layout::Grid2d, emit: halo };

/// Each task exchanges with its six neighbours on a periodic grid.
pub(super) const HALO3D: Pattern = Pattern { name: "halo3d", layout: Layout::Grid3d, emit: halo };

fn halo(workload: &Workload, out: &mut Emitter<'_>) -> Result<(), WorkloadError> {
    exchange(workload, out, |task| neighbours(&workload.sizes, task))
}

/// The neighbours of a task on a periodic grid, dimension by dimension, before and behind; each with the
/// index at which that neighbour lists the task. None in a dimension of size 1.
fn neighbours(grid: &[u32], task: u32) -> Vec<(u32, usize)> {
    let (mut found, mut stride) = (Vec::with_capacity(2 * grid.len()), 1);
    for &size in grid {
        let at = task / stride % size;
        if size > 1 {
            let place = found.len();
            found.push((task - at * stride + (at + 1) % size * stride, place + 1));
            found.push((task - at * stride + (at + size - 1) % size * stride, place));
        }
        stride *= size;
    }
    found
}

/// Each task computes, sends to its partners, and waits for their messages. A partner is listed with the
/// index at which the partner waits for this task.
fn exchange(
    workload: &Workload,
    out: &mut Emitter<'_>,
    partners: impl Fn(u32) -> Vec<(u32, usize)>,
) -> Result<(), WorkloadError> {
    let partners: Vec<Vec<(u32, usize)>> = (0..out.tasks()).map(partners).collect();
    let mut incoming: Vec<Vec<Option<MessageId>>> =
        partners.iter().map(|all| vec![None; all.len()]).collect();
    for _ in 0..workload.iterations {
        for (task, partners) in (0..).zip(&partners) {
            out.compute(task, 1.0);
            for &(to, place) in partners.iter().filter(|(to, _)| *to != task) {
                incoming[to as usize][place] = Some(out.send(task, to, workload.bytes)?);
            }
        }
        for (task, incoming) in (0..).zip(&mut incoming) {
            for message in incoming.iter_mut().filter_map(Option::take) {
                out.wait(task, message)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_neighbour_of_its_neighbours() {
        for grid in [&[5, 3][..], &[2, 2], &[4, 1], &[3, 4, 2], &[1, 1]] {
            let tasks: u32 = grid.iter().product();
            for task in 0..tasks {
                for (place, (to, back)) in neighbours(grid, task).into_iter().enumerate() {
                    assert_eq!(neighbours(grid, to)[back].0, task, "{grid:?}: {task}, {place}");
                }
            }
        }
    }
}
