//! The communication patterns.

use std::fmt;

use vef_format::ids::{CommId, MessageId};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

use crate::Workload;
use crate::emit::{Emitter, Sink};
use crate::error::WorkloadError;

/// A communication pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Each task sends to the next and waits for the previous.
    Ring {
        /// Number of tasks.
        tasks: u32,
    },
    /// Each task exchanges with its four neighbours on a periodic grid.
    Halo2d {
        /// Tasks per dimension.
        grid: [u32; 2],
    },
    /// Each task exchanges with its six neighbours on a periodic grid.
    Halo3d {
        /// Tasks per dimension.
        grid: [u32; 3],
    },
    /// An Alltoall of all tasks.
    Alltoall {
        /// Number of tasks.
        tasks: u32,
    },
    /// An Allreduce of all tasks.
    Allreduce {
        /// Number of tasks.
        tasks: u32,
    },
    /// Each task sends to a random other task, and waits for the messages sent to it.
    Random {
        /// Number of tasks.
        tasks: u32,
    },
    /// All tasks send to task 0, which releases each with a message of 8 bytes.
    Incast {
        /// Number of tasks.
        tasks: u32,
    },
    /// A wavefront over a grid, from each corner in turn: each task waits for two neighbours, computes, and
    /// sends to the other two.
    Sweep {
        /// Tasks per dimension.
        grid: [u32; 2],
    },
    /// The transposes of an FFT: an Alltoall in each row of a grid of tasks, computing, an Alltoall in each
    /// column.
    Fft {
        /// Tasks per dimension.
        grid: [u32; 2],
    },
    /// A training step: micro-batches pass the stages of a pipeline forward and backward, with an Allreduce
    /// of the tensor group for each; at the end the replicas reduce their gradients.
    Training {
        /// Replicas of the model.
        data: u32,
        /// Tasks that share each layer.
        tensor: u32,
        /// Stages of the pipeline.
        pipeline: u32,
        /// Micro-batches per step.
        micro_batches: u32,
        /// Gradients per task.
        gradient: Bytes,
    },
}

/// An unknown kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown pattern {0:?}; write ring, halo2d, halo3d, alltoall, allreduce, random, incast, sweep, fft or training"
)]
pub struct UnknownKernel(pub String);

/// Size of a message that only releases its receiver.
const NOTICE: Bytes = Bytes(8);

impl Kernel {
    /// The kernel of that name with this many tasks, on the squarest grid, or as data-parallel replicas.
    pub fn named(name: &str, tasks: u32) -> Result<Self, UnknownKernel> {
        Ok(match name {
            "ring" => Self::Ring { tasks },
            "halo2d" => Self::Halo2d { grid: square(tasks) },
            "halo3d" => Self::Halo3d { grid: cube(tasks) },
            "alltoall" => Self::Alltoall { tasks },
            "allreduce" => Self::Allreduce { tasks },
            "random" => Self::Random { tasks },
            "incast" => Self::Incast { tasks },
            "sweep" => Self::Sweep { grid: square(tasks) },
            "fft" => Self::Fft { grid: square(tasks) },
            "training" => Self::Training {
                data: tasks,
                tensor: 1,
                pipeline: 1,
                micro_batches: 4,
                gradient: Bytes(64 << 20),
            },
            _ => return Err(UnknownKernel(name.to_owned())),
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ring { .. } => "ring",
            Self::Halo2d { .. } => "halo2d",
            Self::Halo3d { .. } => "halo3d",
            Self::Alltoall { .. } => "alltoall",
            Self::Allreduce { .. } => "allreduce",
            Self::Random { .. } => "random",
            Self::Incast { .. } => "incast",
            Self::Sweep { .. } => "sweep",
            Self::Fft { .. } => "fft",
            Self::Training { .. } => "training",
        }
    }

    /// Number of tasks; 0 if the product overflows.
    pub fn tasks(&self) -> u32 {
        let product = |sizes: &[u32]| sizes.iter().try_fold(1u32, |a, &b| a.checked_mul(b)).unwrap_or(0);
        match *self {
            Self::Ring { tasks }
            | Self::Alltoall { tasks }
            | Self::Allreduce { tasks }
            | Self::Random { tasks }
            | Self::Incast { tasks } => tasks,
            Self::Halo2d { grid } | Self::Sweep { grid } | Self::Fft { grid } => product(&grid),
            Self::Halo3d { grid } => product(&grid),
            Self::Training { data, tensor, pipeline, .. } => product(&[data, tensor, pipeline]),
        }
    }

    /// The grid of tasks, if the kernel has one.
    pub fn grid(&self) -> Option<&[u32]> {
        match self {
            Self::Halo2d { grid } | Self::Sweep { grid } | Self::Fft { grid } => Some(grid),
            Self::Halo3d { grid } => Some(grid),
            _ => None,
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Training { data, tensor, pipeline, .. } => {
                write!(f, " (data {data}, tensor {tensor}, pipeline {pipeline})")
            }
            kernel => match kernel.grid() {
                Some(grid) => {
                    write!(f, " ({})", grid.iter().map(u32::to_string).collect::<Vec<_>>().join("x"))
                }
                None => Ok(()),
            },
        }
    }
}

/// The squarest rectangle with this many tasks.
pub fn square(tasks: u32) -> [u32; 2] {
    let mut side = (f64::from(tasks)).sqrt() as u32 + 1;
    while side > 1 && !tasks.is_multiple_of(side) {
        side -= 1;
    }
    let side = side.max(1);
    [side.max(tasks / side), side.min(tasks / side)]
}

/// The most cubic box with this many tasks.
pub fn cube(tasks: u32) -> [u32; 3] {
    let mut best = [tasks, 1, 1];
    for a in (1..=tasks)
        .take_while(|&a| u64::from(a).pow(3) <= u64::from(tasks))
        .filter(|&a| tasks.is_multiple_of(a))
    {
        let [b, c] = square(tasks / a);
        let found = [b.max(a), c.max(a.min(b)).min(b.max(a)), a.min(c)];
        let spread = |sides: &[u32; 3]| sides.iter().max().zip(sides.iter().min()).map_or(0, |(a, b)| a - b);
        if spread(&found) < spread(&best) {
            best = found;
        }
    }
    best
}

/// Emits all records of a workload.
pub(crate) fn emit<S: Sink>(workload: &Workload, mut emitter: Emitter<'_, S>) -> Result<(), WorkloadError> {
    let out = &mut emitter;
    match workload.kernel {
        Kernel::Ring { tasks } => exchange(workload, out, &|task| vec![((task + 1) % tasks, 0)])?,
        Kernel::Halo2d { grid } => exchange(workload, out, &|task| neighbours(&grid, task))?,
        Kernel::Halo3d { grid } => exchange(workload, out, &|task| neighbours(&grid, task))?,
        Kernel::Alltoall { tasks } => {
            let bytes = Bytes(workload.bytes.0.saturating_mul(tasks.into()));
            all_at_once(workload, out, Operation::Alltoall, bytes)?;
        }
        Kernel::Allreduce { .. } => all_at_once(workload, out, Operation::Allreduce, workload.bytes)?,
        Kernel::Random { tasks } => random(workload, out, tasks)?,
        Kernel::Incast { tasks } => incast(workload, out, tasks)?,
        Kernel::Sweep { grid } => sweep(workload, out, grid)?,
        Kernel::Fft { grid } => fft(workload, out, grid)?,
        Kernel::Training { data, tensor, pipeline, micro_batches, gradient } => {
            Training { workload, data, tensor, pipeline, micro_batches, gradient }.emit(out)?;
        }
    }
    emitter.finish()
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
fn exchange<S: Sink>(
    workload: &Workload,
    out: &mut Emitter<'_, S>,
    partners: &dyn Fn(u32) -> Vec<(u32, usize)>,
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

/// Each task computes and enters a collective of all tasks.
fn all_at_once<S: Sink>(
    workload: &Workload,
    out: &mut Emitter<'_, S>,
    operation: Operation,
    bytes: Bytes,
) -> Result<(), WorkloadError> {
    let all: Vec<u32> = (0..out.tasks()).collect();
    let world = out.communicator(&all)?;
    for _ in 0..workload.iterations {
        all.iter().for_each(|&task| out.compute(task, 1.0));
        out.collective(world, &all, operation, Amounts { send: bytes, recv: bytes })?;
    }
    Ok(())
}

fn random<S: Sink>(workload: &Workload, out: &mut Emitter<'_, S>, tasks: u32) -> Result<(), WorkloadError> {
    let mut incoming: Vec<Vec<MessageId>> = vec![Vec::new(); tasks as usize];
    for _ in 0..workload.iterations {
        for task in 0..tasks {
            out.compute(task, 1.0);
            if tasks > 1 {
                let to = (task + 1 + out.below(tasks - 1)) % tasks;
                incoming[to as usize].push(out.send(task, to, workload.bytes)?);
            }
        }
        for (task, incoming) in (0..).zip(&mut incoming) {
            for message in incoming.drain(..) {
                out.wait(task, message)?;
            }
        }
    }
    Ok(())
}

fn incast<S: Sink>(workload: &Workload, out: &mut Emitter<'_, S>, tasks: u32) -> Result<(), WorkloadError> {
    for _ in 0..workload.iterations {
        let mut all = Vec::with_capacity(tasks as usize);
        for task in 0..tasks {
            out.compute(task, 1.0);
            if task > 0 {
                all.push(out.send(task, 0, workload.bytes)?);
            }
        }
        all.into_iter().try_for_each(|message| out.wait(0, message))?;
        for task in 1..tasks {
            let notice = out.send(0, task, NOTICE)?;
            out.wait(task, notice)?;
        }
    }
    Ok(())
}

fn sweep<S: Sink>(
    workload: &Workload,
    out: &mut Emitter<'_, S>,
    [width, height]: [u32; 2],
) -> Result<(), WorkloadError> {
    // Messages sent to each task, from the side and from above.
    let mut incoming: Vec<[Option<MessageId>; 2]> = vec![[None; 2]; (width * height) as usize];
    for iteration in 0..workload.iterations {
        let (mirrored, upside_down) = (iteration % 2 == 1, iteration / 2 % 2 == 1);
        let task = |x: u32, y: u32| {
            let x = if mirrored { width - 1 - x } else { x };
            let y = if upside_down { height - 1 - y } else { y };
            x + width * y
        };
        for y in 0..height {
            for x in 0..width {
                let here = task(x, y);
                for message in incoming[here as usize].iter_mut().filter_map(Option::take) {
                    out.wait(here, message)?;
                }
                out.compute(here, 1.0);
                if x + 1 < width {
                    incoming[task(x + 1, y) as usize][0] =
                        Some(out.send(here, task(x + 1, y), workload.bytes)?);
                }
                if y + 1 < height {
                    incoming[task(x, y + 1) as usize][1] =
                        Some(out.send(here, task(x, y + 1), workload.bytes)?);
                }
            }
        }
    }
    Ok(())
}

/// Communicators with their members.
type Groups = Vec<(CommId, Vec<u32>)>;

/// Creates a communicator for each group.
fn groups<S: Sink>(
    out: &mut Emitter<'_, S>,
    members: impl Iterator<Item = Vec<u32>>,
) -> Result<Groups, WorkloadError> {
    members.map(|members| Ok((out.communicator(&members)?, members))).collect()
}

fn fft<S: Sink>(
    workload: &Workload,
    out: &mut Emitter<'_, S>,
    [width, height]: [u32; 2],
) -> Result<(), WorkloadError> {
    let rows = groups(out, (0..height).map(|y| (0..width).map(|x| x + width * y).collect()))?;
    let columns = groups(out, (0..width).map(|x| (0..height).map(|y| x + width * y).collect()))?;
    for _ in 0..workload.iterations {
        for lines in [&rows, &columns] {
            for (comm, members) in lines {
                members.iter().for_each(|&task| out.compute(task, 0.5));
                if members.len() > 1 {
                    let bytes = Bytes(workload.bytes.0.saturating_mul(members.len() as u64));
                    out.collective(
                        *comm,
                        members,
                        Operation::Alltoall,
                        Amounts { send: bytes, recv: bytes },
                    )?;
                }
            }
        }
    }
    Ok(())
}

/// Task number: `tensor index + tensor · (replica + data · stage)`.
struct Training<'a> {
    workload: &'a Workload,
    data: u32,
    tensor: u32,
    pipeline: u32,
    micro_batches: u32,
    gradient: Bytes,
}

impl Training<'_> {
    fn task(&self, stage: u32, replica: u32, tensor: u32) -> u32 {
        tensor + self.tensor * (replica + self.data * stage)
    }

    fn emit<S: Sink>(&self, out: &mut Emitter<'_, S>) -> Result<(), WorkloadError> {
        let (data, tensor, pipeline) = (self.data, self.tensor, self.pipeline);
        let stages = || (0..pipeline).flat_map(move |stage| (0..data).map(move |replica| (stage, replica)));
        let split =
            stages().map(|(stage, replica)| (0..tensor).map(|t| self.task(stage, replica, t)).collect());
        let split = groups(out, split)?;
        let same = (0..pipeline).flat_map(|stage| {
            (0..tensor)
                .map(move |t| (0..data).map(|replica| self.task(stage, replica, t)).collect::<Vec<_>>())
        });
        let same = groups(out, same)?;
        let share = 1.0 / f64::from(3 * self.micro_batches);
        // For each task, the messages with its next micro-batches.
        let mut incoming: Vec<Vec<MessageId>> = vec![Vec::new(); out.tasks() as usize];
        for _ in 0..self.workload.iterations {
            // Forward through the stages, then backward, which takes twice the time.
            for backward in [false, true] {
                for _ in 0..self.micro_batches {
                    for step in 0..pipeline {
                        let stage = if backward { pipeline - 1 - step } else { step };
                        for replica in 0..data {
                            let (comm, members) = &split[(stage * data + replica) as usize];
                            self.pass(out, *comm, members, backward, share, &mut incoming)?;
                        }
                    }
                }
            }
            if data > 1 {
                for (comm, members) in &same {
                    let amounts = Amounts { send: self.gradient, recv: self.gradient };
                    out.collective(*comm, members, Operation::Allreduce, amounts)?;
                }
            }
        }
        Ok(())
    }

    /// A micro-batch passes a stage.
    fn pass<S: Sink>(
        &self,
        out: &mut Emitter<'_, S>,
        comm: CommId,
        members: &[u32],
        backward: bool,
        share: f64,
        incoming: &mut [Vec<MessageId>],
    ) -> Result<(), WorkloadError> {
        let bytes = self.workload.bytes;
        for &task in members {
            for message in std::mem::take(&mut incoming[task as usize]) {
                out.wait(task, message)?;
            }
            out.compute(task, if backward { 2.0 * share } else { share });
        }
        if members.len() > 1 {
            out.collective(comm, members, Operation::Allreduce, Amounts { send: bytes, recv: bytes })?;
        }
        let stage = self.tensor * self.data;
        for &task in members {
            let next = match backward {
                true => task.checked_sub(stage),
                false => Some(task + stage).filter(|&next| next < out.tasks()),
            };
            if let Some(next) = next {
                incoming[next as usize].push(out.send(task, next, bytes)?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!((square(64), square(12), square(7), square(1)), ([8, 8], [4, 3], [7, 1], [1, 1]));
        let sorted = |tasks| {
            let mut sides = cube(tasks);
            sides.sort_unstable();
            sides
        };
        assert_eq!(
            (sorted(64), sorted(240), sorted(7), sorted(4096)),
            ([4, 4, 4], [5, 6, 8], [1, 1, 7], [16, 16, 16])
        );
        for tasks in 1..300 {
            assert_eq!(square(tasks).iter().product::<u32>(), tasks);
            assert_eq!(cube(tasks).iter().product::<u32>(), tasks, "{:?}", cube(tasks));
        }
    }

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
