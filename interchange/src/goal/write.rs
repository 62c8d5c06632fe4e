//! Exports a trace as a schedule.

use super::operation::RankGraph;
use super::{BinaryWriter, TextWriter};
use crate::export::{Export, ExportError, ExportProblem, Exported, Operations};
use std::fs::File;
use vef_format::new_file::NewFile;

type Written<T> = Result<T, ExportProblem>;

/// Writes the trace as text.
pub(super) fn text(export: &Export<'_>) -> Result<Exported, ExportError> {
    let rank = |writer: &mut TextWriter<_>, graph: &_| Ok(writer.rank(graph)?);
    write(
        export,
        |out, ranks| Ok(TextWriter::new(out, ranks)?),
        rank,
        |writer| Ok(writer.finish().map(drop)?),
    )
}

/// Writes the trace in binary.
pub(super) fn binary(export: &Export<'_>) -> Result<Exported, ExportError> {
    let rank = |writer: &mut BinaryWriter<_>, graph: &_| Ok(writer.rank(graph)?);
    write(
        export,
        |out, ranks| Ok(BinaryWriter::new(out, ranks)?),
        rank,
        |writer| Ok(writer.finish().map(drop)?),
    )
}

/// Writes the graphs of all ranks with a writer, which is begun, given each rank, and finished.
fn write<W>(
    export: &Export<'_>,
    begin: impl FnOnce(File, u32) -> Written<W>,
    write_rank: impl Fn(&mut W, &RankGraph) -> Written<()>,
    finish: impl FnOnce(W) -> Written<()>,
) -> Result<Exported, ExportError> {
    let failed = |problem: ExportProblem| problem.of_file(export.to);
    let new = NewFile::create(export.to).map_err(|error| export.failed(error))?;
    let file = new.file().try_clone().map_err(|error| export.failed(error))?;
    let mut writer = begin(file, export.trace.header.tasks).map_err(failed)?;
    let (mut graph, mut operations) = (RankGraph::default(), Operations::new(export));
    for rank in export.ranks() {
        operations.task(rank, &mut graph)?;
        write_rank(&mut writer, &graph).map_err(failed)?;
    }
    finish(writer).map_err(failed)?;
    new.finish().map_err(|error| export.failed(error))?;
    let mut exported = operations.exported;
    exported.remarks.push(
        "LogGOPSim adds its own costs to these times: -o 0 -g 0 -G 0 -S 2147483647 leaves them as they are, with all sends eager"
            .to_owned(),
    );
    Ok(exported)
}
