//! A step of training a language model, with data, tensor, pipeline and expert parallelism, and the stages of ZeRO.

use vef_format::ids::{CollectiveId, CommId, MessageId};
use vef_format::operation::Operation;
use vef_format::units::Bytes;

use crate::emit::Emitter;
use crate::error::WorkloadError;
use crate::model::Model;
use crate::workload::{Layout, Pattern, Workload};

/// A training step: micro-batches pass the stages, one forward and one backward in turn (1F1B). In each layer the tensor group reduces
/// twice, tokens go to their experts and back; the replicas exchange gradients, and by ZeRO's stage parameters.
pub(super) const LLM: Pattern = Pattern {
    name: "llm",
    layout: Layout::Model,
    emit: |workload, out| {
        let [data, tensor, pipeline] = [0, 1, 2].map(|dimension| workload.sizes[dimension]);
        let model = &workload.model;
        model.check(data, pipeline)?;
        let llm = Llm::new(workload, [data, tensor, pipeline], out)?;
        (0..workload.iterations).try_for_each(|_| llm.step(out))
    },
};

/// A communicator with its members.
type Group = (CommId, Vec<u32>);

/// Task number: `tensor index + tensor · (replica + data · stage)`.
struct Llm<'a> {
    workload: &'a Workload,
    model: &'a Model,
    data: u32,
    tensor: u32,
    pipeline: u32,
    /// By stage and replica.
    tensors: Vec<Group>,
    /// Of the parameters that all replicas have: by stage and tensor index.
    replicas: Vec<Group>,
    /// Of the experts: those that share the experts of a layer, and those that have the same.
    experts: Vec<Group>,
    same_experts: Vec<Group>,
}

/// A pass of a micro-batch through a stage.
#[derive(Clone, Copy, Debug)]
struct Pass {
    backward: bool,
    last: bool,
}

impl<'a> Llm<'a> {
    /// With its communicators.
    fn new(
        workload: &'a Workload,
        [data, tensor, pipeline]: [u32; 3],
        out: &mut Emitter<'_>,
    ) -> Result<Self, WorkloadError> {
        let model = &workload.model;
        let experts = model.expert_ranks;
        let task = |stage: u32, replica: u32, t: u32| t + tensor * (replica + data * stage);
        let (mut tensors, mut replicas) = (Vec::new(), Vec::new());
        let (mut shared, mut same) = (Vec::new(), Vec::new());
        for stage in 0..pipeline {
            for replica in 0..data {
                tensors.push((0..tensor).map(|t| task(stage, replica, t)).collect());
            }
            for t in 0..tensor {
                let of = |list: &mut dyn Iterator<Item = u32>| -> Vec<u32> {
                    list.map(|replica| task(stage, replica, t)).collect()
                };
                replicas.push(of(&mut (0..data)));
                shared.extend(
                    (0..data / experts).map(|group| of(&mut (group * experts..(group + 1) * experts))),
                );
                same.extend((0..experts).map(|expert| of(&mut (expert..data).step_by(experts as usize))));
            }
        }
        let many = |groups: Vec<Vec<u32>>| groups.into_iter().filter(|members| members.len() > 1);
        let (tensors, replicas) = (out.communicators(many(tensors))?, out.communicators(many(replicas))?);
        let (experts, same_experts) = match model.experts {
            0..=1 => (Vec::new(), Vec::new()),
            _ => (out.communicators(many(shared))?, out.communicators(many(same))?),
        };
        Ok(Self { workload, model, data, tensor, pipeline, tensors, replicas, experts, same_experts })
    }

    fn step(&self, out: &mut Emitter<'_>) -> Result<(), WorkloadError> {
        let micro_batches = self.workload.micro_batches;
        // The passes of each stage, in its order.
        let schedule: Vec<Vec<Pass>> = (0..self.pipeline)
            .map(|stage| {
                let ahead = (self.pipeline - 1 - stage).min(micro_batches);
                let forward = |_| Pass { backward: false, last: false };
                let both = |at: u32| {
                    [
                        Pass { backward: false, last: false },
                        Pass { backward: true, last: at + 1 == micro_batches },
                    ]
                };
                let behind = (micro_batches - ahead..micro_batches)
                    .map(|at| Pass { backward: true, last: at + 1 == micro_batches });
                let between = (0..micro_batches - ahead).flat_map(both);
                (0..ahead).map(forward).chain(between).chain(behind).collect()
            })
            .collect();
        // What has arrived at each stage: for each task of it the message, forward and backward.
        let mut incoming: [Vec<std::collections::VecDeque<Vec<MessageId>>>; 2] =
            [0, 1].map(|_| vec![Default::default(); self.pipeline as usize]);
        let mut exchanges = Vec::new();
        let mut next = vec![0; self.pipeline as usize];
        // A stage does what it has the input for.
        while next.iter().zip(&schedule).any(|(&next, passes)| next < passes.len()) {
            for stage in 0..self.pipeline {
                let Some(&pass) = schedule[stage as usize].get(next[stage as usize]) else { continue };
                let is_source = stage == if pass.backward { self.pipeline - 1 } else { 0 };
                let queue = &mut incoming[usize::from(pass.backward)][stage as usize];
                let input = match is_source {
                    true => Vec::new(),
                    false => match queue.pop_front() {
                        Some(input) => input,
                        None => continue,
                    },
                };
                let output = self.pass(out, stage, pass, &input, &mut exchanges)?;
                next[stage as usize] += 1;
                let to = if pass.backward { stage.checked_sub(1) } else { Some(stage + 1) };
                if let Some(to) = to.filter(|&to| to < self.pipeline) {
                    incoming[usize::from(pass.backward)][to as usize].push_back(output);
                }
            }
        }
        for (members, id) in exchanges {
            members.iter().try_for_each(|&task: &u32| out.wait_collective(task, id))?;
        }
        // What the optimiser has updated goes to all replicas.
        if matches!(self.model.zero, 1 | 2) {
            let layers = u64::from(self.model.layers / self.pipeline);
            for stage in 0..self.pipeline {
                let [shared, experts] = self.layer_parameters().map(|parameters| parameters * layers);
                let all = [shared + self.tables(stage), experts];
                self.exchange(out, stage, Operation::Allgather, all, false)?;
            }
        }
        Ok(())
    }

    /// Parameters that a rank has of the tables of tokens: those of the first stage, and of the last.
    fn tables(&self, stage: u32) -> u64 {
        let tables = u64::from(stage == 0) + u64::from(stage + 1 == self.pipeline);
        tables * self.model.embedding() / u64::from(self.tensor)
    }

    /// Parameters that a rank has of a layer: those of all replicas, and of experts.
    fn layer_parameters(&self) -> [u64; 2] {
        let (tensor, experts) = (u64::from(self.tensor), u64::from(self.model.expert_ranks));
        [self.model.shared_parameters() / tensor, self.model.expert_parameters() / tensor / experts]
    }

    /// The replicas of a stage exchange as many parameters or gradients of each kind; returns the collectives that are under way.
    fn exchange(
        &self,
        out: &mut Emitter<'_>,
        stage: u32,
        operation: Operation,
        parameters: [u64; 2],
        overlap: bool,
    ) -> Result<Vec<(Vec<u32>, CollectiveId)>, WorkloadError> {
        let mut begun = Vec::new();
        for (groups, parameters) in [&self.replicas, &self.same_experts].into_iter().zip(parameters) {
            for (comm, members) in groups.iter().filter(|_| parameters > 0) {
                if members[0] / (self.tensor * self.data) != stage {
                    continue;
                }
                let whole = parameters * self.model.element;
                let bytes = match operation {
                    // Each member has, or gets, its share.
                    Operation::Allgather | Operation::ReduceScatterBlock => {
                        whole.div_ceil(members.len() as u64)
                    }
                    _ => whole,
                };
                match overlap {
                    true => begun.push((
                        members.clone(),
                        out.start_collective(*comm, members, operation, Bytes(bytes))?,
                    )),
                    false => out.collective(*comm, members, operation, Bytes(bytes))?,
                }
            }
        }
        Ok(begun)
    }

    /// A micro-batch passes the layers of a stage, at all replicas; returns the messages to the next stage.
    fn pass(
        &self,
        out: &mut Emitter<'_>,
        stage: u32,
        pass: Pass,
        input: &[MessageId],
        exchanges: &mut Vec<(Vec<u32>, CollectiveId)>,
    ) -> Result<Vec<MessageId>, WorkloadError> {
        let model = self.model;
        let size = self.tensor * self.data;
        let members = || stage * size..(stage + 1) * size;
        for (task, &message) in members().zip(input) {
            out.wait(task, message)?;
        }
        let of_stage = |group: &&Group| members().contains(&group.1[0]);
        let speed = model.flops * f64::from(self.tensor) / 1e9;
        let factor = if pass.backward { 2.0 } else { 1.0 };
        let half = factor * model.layer_flops() / 2.0 / speed;
        let layers = model.layers / self.pipeline;
        // Gradients are exchanged with the last micro-batch, or divided with each.
        let reduction = match (pass.backward, model.zero) {
            (true, 0) if pass.last => Some(Operation::Allreduce),
            (true, 1) if pass.last => Some(Operation::ReduceScatterBlock),
            (true, 2 | 3) => Some(Operation::ReduceScatterBlock),
            _ => None,
        };
        let tables = [self.tables(stage), 0];
        if model.zero == 3 {
            self.exchange(out, stage, Operation::Allgather, tables, false)?;
        }
        for _ in 0..layers {
            if model.zero == 3 {
                self.exchange(out, stage, Operation::Allgather, self.layer_parameters(), false)?;
            }
            // Attention, then feed-forward.
            for part in 0..2 {
                let expert_part = part == 1 && model.experts > 1;
                let alltoall = |out: &mut Emitter<'_>| {
                    self.experts.iter().filter(of_stage).filter(|_| expert_part).try_for_each(
                        |(comm, members)| {
                            let block = model.dispatched().0 / members.len() as u64;
                            out.collective(*comm, members, Operation::Alltoall, Bytes(block))
                        },
                    )
                };
                alltoall(out)?;
                members().for_each(|task| out.compute_ns(task, half));
                alltoall(out)?;
                for (comm, members) in self.tensors.iter().filter(of_stage) {
                    out.collective(*comm, members, Operation::Allreduce, model.activations())?;
                }
            }
            if let Some(reduction) = reduction {
                exchanges.extend(self.exchange(
                    out,
                    stage,
                    reduction,
                    self.layer_parameters(),
                    model.overlap,
                )?);
            }
        }
        if stage + 1 == self.pipeline {
            members().for_each(|task| out.compute_ns(task, factor * model.head_flops() / speed));
        }
        if let Some(reduction) = reduction {
            exchanges.extend(self.exchange(out, stage, reduction, tables, model.overlap)?);
        }
        let to = |task: u32| if pass.backward { task.checked_sub(size) } else { Some(task + size) };
        let next = members().filter_map(|task| Some((task, to(task).filter(|&to| to < out.tasks())?)));
        let next: Vec<(u32, u32)> = next.collect();
        next.into_iter().map(|(task, to)| out.send(task, to, model.activations())).collect()
    }
}
