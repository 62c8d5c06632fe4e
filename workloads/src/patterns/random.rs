//! Messages to random tasks.

use vef_format::ids::MessageId;

use crate::workload::{Layout, Pattern};

/// Each task sends to a random other task, and waits for the messages sent to it.
pub(super) const RANDOM: Pattern = Pattern {
    name: "random",
    layout: Layout::Row,
    emit: |workload, out| {
        let tasks = out.tasks();
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
    },
};
