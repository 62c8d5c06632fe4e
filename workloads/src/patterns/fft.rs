//! The transposes of an FFT.

use vef_format::operation::Operation;

use crate::workload::{Layout, Pattern};

/// An Alltoall in each row of a grid of tasks, computing, an Alltoall in each column.
pub(super) const FFT: Pattern = Pattern {
    name: "fft",
    layout: Layout::Grid2d,
    emit: |workload, out| {
        let (width, height) = (workload.sizes[0], workload.sizes[1]);
        let rows = out.communicators((0..height).map(|y| (0..width).map(|x| x + width * y).collect()))?;
        let columns = out.communicators((0..width).map(|x| (0..height).map(|y| x + width * y).collect()))?;
        for _ in 0..workload.iterations {
            for lines in [&rows, &columns] {
                for (comm, members) in lines {
                    members.iter().for_each(|&task| out.compute(task, 0.5));
                    if members.len() > 1 {
                        out.collective(*comm, members, Operation::Alltoall, workload.bytes)?;
                    }
                }
            }
        }
        Ok(())
    },
};
