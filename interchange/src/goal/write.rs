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

/// Writes the trace as text.
pub(super) fn text(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    write(from, codes, to, options, progress, false)
}

/// Writes the trace in binary.
pub(super) fn binary(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    write(from, codes, to, options, progress, true)
}

fn write(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
    is_binary: bool,
) -> Result<Exported, ExportError> {
    let trace = Loaded::read(from, codes)?;
    let mut exported = Exported { ranks: trace.header.tasks, ..Exported::default() };
    let failed = |problem: ExportProblem| problem.of_file(to);
    let new = NewFile::create(to).map_err(|error| failed(error.into()))?;
    write_ranks(&trace, new.file(), is_binary, &mut exported, |rank, graph, exported| {
        progress.set(rank.into(), trace.header.tasks.into());
        Operations::of(&trace, rank, options, graph, exported)
    })
    .map_err(|error| match error {
        Either::Trace(error) => error,
        Either::Output(problem) => failed(problem),
    })?;
    new.finish().map_err(|error| failed(error.into()))?;
    exported.remarks.push(
        "LogGOPSim adds its own costs to these times: -o 0 -g 0 -G 0 -S 2147483647 leaves them as they are, with all sends eager"
            .to_owned(),
    );
    Ok(exported)
}

/// The error of either end.
enum Either {
    Trace(ExportError),
    Output(ExportProblem),
}

impl<E: Into<ExportProblem>> From<E> for Either {
    fn from(error: E) -> Self {
        Self::Output(error.into())
    }
}

/// Writes the graphs that `make` makes of the ranks.
fn write_ranks(
    trace: &Loaded,
    file: &File,
    is_binary: bool,
    exported: &mut Exported,
    mut make: impl FnMut(u32, &mut RankGraph, &mut Exported) -> Result<(), ExportError>,
) -> Result<(), Either> {
    let ranks = trace.header.tasks;
    let out = BufWriter::with_capacity(1 << 20, file);
    let mut graph = RankGraph::default();
    if is_binary {
        let mut writer = BinaryWriter::new(out, ranks)?;
        for rank in 0..ranks {
            make(rank, &mut graph, exported).map_err(Either::Trace)?;
            writer.rank(&graph)?;
        }
        writer.finish()?;
    } else {
        let mut writer = TextWriter::new(out, ranks)?;
        for rank in 0..ranks {
            make(rank, &mut graph, exported).map_err(Either::Trace)?;
            writer.rank(&graph)?;
        }
        writer.finish()?;
    }
    Ok(())
}
