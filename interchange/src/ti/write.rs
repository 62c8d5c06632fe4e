//! Exports a trace: one file with the lines of all ranks.
//!
//! Messages are sent by `isend`, which only the last `waitall` completes: blocking sends of both partners would deadlock where SimGrid
//! is no longer eager. Receives are posted where their rank waits for them. Collectives of the world stay collectives where SimGrid has
//! them with equal sizes; all others become messages.

use super::lines::Actions;
use super::run::Run;
use crate::export::{Export, ExportError, ExportProblem, Exported, Loaded, What};
use vef_format::new_file::NewFile;
use vef_format::units::Count;

/// Bytes of lines that are written at once.
const AT_ONCE: usize = 1 << 16;

/// The most bytes of a message or of a task's part of a collective. A thousand lines say it; more would be a typing error.
const MOST_BYTES: u64 = 1 << 45;

/// Checks that no message needs too many lines.
fn within_limits(trace: &Loaded) -> Result<(), ExportProblem> {
    for (task, records) in (0..).zip(&trace.tasks) {
        for record in records {
            let bytes = match record.what {
                What::Mark => 0,
                What::Send(index) => trace.message(index).bytes,
                What::Collective(_, amounts) => amounts.send.max(amounts.recv).0,
            };
            if bytes > MOST_BYTES {
                return Err(ExportProblem::Bytes { task, bytes, most: MOST_BYTES });
            }
        }
    }
    Ok(())
}

pub(super) fn write(export: &Export<'_>) -> Result<Exported, ExportError> {
    within_limits(export.trace).map_err(|problem| problem.of_file(&export.trace.path))?;
    let failed = |error| export.failed(error);
    let new = NewFile::create(export.to).map_err(failed)?;
    let mut run = Run::new(export, Actions::new(export));
    let mut out = new.file();
    while run.advance().map_err(|problem| problem.of_file(&export.trace.path))? {
        run.actions.write_to(&mut out, AT_ONCE).map_err(failed)?;
    }
    run.actions.write_to(&mut out, 0).map_err(failed)?;
    new.finish().map_err(failed)?;
    let Run { actions, late, blocking, in_steps, .. } = run;
    let mut exported = actions.exported;
    if late > 0 {
        let late = Count(late, "call");
        exported.remarks.push(format!(
            "SimGrid's ranks wait in their collectives: {late} {} behind records that follow it in the trace",
            late.agree("stands", "stand")
        ));
    }
    if blocking > 0 {
        let blocking = Count(blocking, "call");
        exported.remarks.push(format!(
            "SimGrid's ranks wait in their collectives: {blocking} {} here, while the trace waits later (non-blocking)",
            blocking.agree("blocks", "block")
        ));
    }
    if in_steps > 0 {
        let in_steps = Count(in_steps, "collective");
        exported
            .remarks
            .push(format!("{in_steps} became messages: some ranks leave before others have called it"));
    }
    exported.remarks.push("`smpirun -replay LIST` wants a file with the name of this one".to_owned());
    Ok(exported)
}
