//! A step of training a model on several tasks.

use vef_format::ids::{CommId, MessageId};
use vef_format::operation::Operation;

use crate::emit::Emitter;
use crate::error::WorkloadError;
use crate::workload::{Layout, Pattern, Workload};

/// A training step: micro-batches pass the stages of a pipeline forward and backward, with an Allreduce of the tensor group for
/// each; at the end the replicas reduce their gradients.
pub(super) const TRAINING: Pattern = Pattern {
    name: "training",
    layout: Layout::Model,
    emit: |workload, out| {
        let [data, tensor, pipeline] = [0, 1, 2].map(|dimension| workload.sizes[dimension]);
        Training { workload, data, tensor, pipeline }.emit(out)
    },
};

/// Task number: `tensor index + tensor · (replica + data · stage)`.
struct Training<'a> {
    workload: &'a Workload,
    data: u32,
    tensor: u32,
    pipeline: u32,
}

impl Training<'_> {
    fn task(&self, stage: u32, replica: u32, tensor: u32) -> u32 {
        tensor + self.tensor * (replica + self.data * stage)
    }

    fn emit(&self, out: &mut Emitter<'_>) -> Result<(), WorkloadError> {
        let (data, tensor, pipeline) = (self.data, self.tensor, self.pipeline);
        let stages = || (0..pipeline).flat_map(move |stage| (0..data).map(move |replica| (stage, replica)));
        let split =
            stages().map(|(stage, replica)| (0..tensor).map(|t| self.task(stage, replica, t)).collect());
        let split = out.communicators(split)?;
        let same = (0..pipeline).flat_map(|stage| {
            (0..tensor)
                .map(move |t| (0..data).map(|replica| self.task(stage, replica, t)).collect::<Vec<_>>())
        });
        let same = out.communicators(same)?;
        let share = 1.0 / f64::from(3 * self.workload.micro_batches);
        // For each task, the messages with its next micro-batches.
        let mut incoming: Vec<Vec<MessageId>> = vec![Vec::new(); out.tasks() as usize];
        for _ in 0..self.workload.iterations {
            // Forward through the stages, then backward, which takes twice the time.
            for backward in [false, true] {
                for _ in 0..self.workload.micro_batches {
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
                    out.collective(*comm, members, Operation::Allreduce, self.workload.gradient)?;
                }
            }
        }
        Ok(())
    }

    /// A micro-batch passes a stage.
    fn pass(
        &self,
        out: &mut Emitter<'_>,
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
            out.collective(comm, members, Operation::Allreduce, bytes)?;
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
