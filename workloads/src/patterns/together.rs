//! One collective of all tasks after the other.

use vef_format::operation::Operation;

use crate::emit::Emitter;
use crate::error::WorkloadError;
use crate::workload::{Layout, Pattern, Workload};

/// An Alltoall of all tasks.
pub(super) const ALLTOALL: Pattern = Pattern {
    name: "alltoall",
    layout: Layout::Row,
    emit: |workload, out| together(workload, out, Operation::Alltoall),
};

/// An Allreduce of all tasks.
pub(super) const ALLREDUCE: Pattern = Pattern {
    name: "allreduce",
    layout: Layout::Row,
    emit: |workload, out| together(workload, out, Operation::Allreduce),
};

/// Each task computes and enters a collective of all tasks.
fn together(workload: &Workload, out: &mut Emitter<'_>, operation: Operation) -> Result<(), WorkloadError> {
    let all: Vec<u32> = (0..out.tasks()).collect();
    let world = out.communicator(&all)?;
    for _ in 0..workload.iterations {
        all.iter().for_each(|&task| out.compute(task, 1.0));
        out.collective(world, &all, operation, workload.bytes)?;
    }
    Ok(())
}
