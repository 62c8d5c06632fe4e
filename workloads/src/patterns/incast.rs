//! All to one.

use vef_format::units::Bytes;

use crate::workload::{Layout, Pattern};

/// Size of a message that only releases its receiver.
const NOTICE: Bytes = Bytes(8);

/// All tasks send to task 0, which releases each with a message of 8 bytes.
pub(super) const INCAST: Pattern = Pattern {
    name: "incast",
    layout: Layout::Row,
    emit: |workload, out| {
        let tasks = out.tasks();
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
    },
};
