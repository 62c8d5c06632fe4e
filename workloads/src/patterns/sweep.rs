//! A wavefront.

use vef_format::ids::MessageId;

use crate::workload::{Layout, Pattern};

/// A wavefront over a grid, from each corner in turn: each task waits for two neighbours, computes, and sends to the other two.
pub(super) const SWEEP: Pattern = Pattern {
    name: "sweep",
    layout: Layout::Grid2d,
    emit: |workload, out| {
        let (width, height) = (workload.sizes[0], workload.sizes[1]);
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
    },
};
