//! Warns of a run time that is mostly start-up, beside which the network hardly shows: with --from-launch, and of text traces, which
//! do not record the end of `MPI_Init`.

use crate::input::Input;
use crate::output::remark;
use std::path::Path;
use vef_format::container::Reader as Container;
use vef_format::record::{Dependency, Line};
use vef_format::text::Reader;
use vef_format::units::Picos;

/// Records of a text trace among which the first ones of tasks are looked for.
const LOOKED_AT: u32 = 1_000_000;

/// Warns if more than half of `runtime` lies before a task's end of `MPI_Init`, or in a text trace, which lacks that, before its first
/// record.
pub fn warn(trace: &Input, runtime: Picos, from_launch: bool) {
    // An invalid file is reported by the command that reads it.
    let is_large = |time: &Picos| time.0 > runtime.0 / 2;
    if let Some(time) = of_container(&trace.path).filter(|_| from_launch).filter(is_large) {
        remark(format_args!(
            "warning: {}: MPI_Init takes {time} of the run time of {runtime}; without --from-launch it is left out",
            trace.shown()
        ));
    } else if let Some(time) = of_text(&trace.path).filter(is_large) {
        remark(format_args!(
            "warning: {}: {time} of the run time of {runtime} lie before a rank's first record; in a captured program that may be MPI_Init, \
             which vef mix leaves out unless --keep-init is given",
            trace.shown()
        ));
    }
}

/// The longest `MPI_Init` of a task.
fn of_container(trace: &Path) -> Option<Picos> {
    let container = Container::open(trace).ok()?;
    let ticks = container.spans().ok()??.iter().map(|span| span.initialised.0).max()?;
    Some(Picos(ticks.saturating_mul(container.header().clock.0)))
}

/// The longest time before the first record of a task.
fn of_text(trace: &Path) -> Option<Picos> {
    let mut reader = Reader::open(trace).ok()?;
    let (clock, tasks) = (reader.header().clock, reader.header().tasks);
    let (mut seen, mut longest) = (vec![false; tasks as usize], 0);
    let mut unseen = tasks;
    for _ in 0..LOOKED_AT {
        if unseen == 0 {
            break;
        }
        let (task, after, time) = match reader.next().ok()? {
            Some(Line::Message(message)) => (message.src, message.after, message.time),
            Some(Line::Collective(part)) => (part.task, part.after, part.time),
            Some(Line::Communicator { .. }) => continue,
            None => break,
        };
        let seen = seen.get_mut(task.index())?;
        if !std::mem::replace(seen, true) {
            unseen -= 1;
            longest = longest.max(if after == Dependency::Start { time.0 } else { 0 });
        }
    }
    Some(Picos(longest.saturating_mul(clock.0)))
}
