//! Exports a trace as a schedule.

use super::operation::RankGraph;
use super::{BinaryWriter, TextWriter};
use crate::export::{ExportError, ExportOptions, ExportProblem, Exported, Loaded, Operations};
use crate::format::Progress;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use vef_format::new_file::NewFile;
use vef_format::operation::OpCodes;

type Written<T> = Result<T, ExportProblem>;

/// Writes the trace as text.
pub(super) fn text(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let begin = |out, ranks| Ok(TextWriter::new(out, ranks)?);
    let rank = |writer: &mut TextWriter<_>, graph: &_| Ok(writer.rank(graph)?);
    write((from, codes), to, options, progress, begin, rank, |writer| Ok(writer.finish().map(drop)?))
}

/// Writes the trace in binary.
pub(super) fn binary(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let begin = |out, ranks| Ok(BinaryWriter::new(out, ranks)?);
    let rank = |writer: &mut BinaryWriter<_>, graph: &_| Ok(writer.rank(graph)?);
    write((from, codes), to, options, progress, begin, rank, |writer| Ok(writer.finish().map(drop)?))
}

/// Writes the graphs of all ranks with a writer, which is begun, given each rank, and finished.
fn write<W>(
    (from, codes): (&Path, &OpCodes),
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
    begin: impl FnOnce(BufWriter<File>, u32) -> Written<W>,
    write_rank: impl Fn(&mut W, &RankGraph) -> Written<()>,
    finish: impl FnOnce(W) -> Written<()>,
) -> Result<Exported, ExportError> {
    let trace = Loaded::read(from, codes)?;
    let ranks = trace.header.tasks;
    let mut exported = Exported { ranks, ..Exported::default() };
    let failed = |problem: ExportProblem| problem.of_file(to);
    let io = |error: std::io::Error| failed(error.into());
    let new = NewFile::create(to).map_err(io)?;
    let out = BufWriter::with_capacity(1 << 20, new.file().try_clone().map_err(io)?);
    let (mut writer, mut graph) = (begin(out, ranks).map_err(failed)?, RankGraph::default());
    for rank in 0..ranks {
        progress.set(rank.into(), ranks.into());
        Operations::of(&trace, rank, options, &mut graph, &mut exported)?;
        write_rank(&mut writer, &graph).map_err(failed)?;
    }
    finish(writer).map_err(failed)?;
    new.finish().map_err(io)?;
    exported.remarks.push(
        "LogGOPSim adds its own costs to these times: -o 0 -g 0 -G 0 -S 2147483647 leaves them as they are, with all sends eager"
            .to_owned(),
    );
    Ok(exported)
}
