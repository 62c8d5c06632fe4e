//! The last stage: window by window, what all parts prepared gets its order and its ids, and becomes text.

use crate::Progress;
use crate::agreement::Operations;
use crate::channels::NONE;
use crate::communicators::Known;
use crate::error::MixError;
use crate::job::{Job, Tokens};
use crate::order::Sorter;
use crate::output::Output;
use crate::parts::{Blocks, Spill};
use crate::prepare::{Prepared, Preparer};
use crate::resolve::{Line, Resolver, Traced};
use crate::summary::Summary;
use crate::wire;
use rayon::prelude::*;
use std::io::Write;
use vef_format::ids::{CommId, Rank};
use vef_format::record::{Communicator, Header, Version};
use vef_format::text::{Lines, WriteError, Writer};
use vef_format::units::Picos;

/// Picoseconds in one unit of a trace's times: captures are in nanoseconds.
const CLOCK: Picos = Picos(1000);

/// Where the prepared records of some consecutive tasks come from.
pub(crate) enum Source<'a> {
    /// They are prepared when they are wanted.
    Here(Preparer<'a>),
    /// They lie in a file, each window a block.
    Spilled(Spill, Vec<Blocks>),
}

impl Source<'_> {
    /// Adds the records up to `end` inclusive, which is the end of the next window, task by task.
    fn fill(&mut self, end: u64, records: &mut Vec<Prepared>) -> Result<(), MixError> {
        match self {
            Self::Here(preparer) => preparer.fill(end, records),
            Self::Spilled(spill, parts) => {
                for part in parts {
                    wire::decode(&part.next(spill)?, records)?;
                }
            }
        }
        Ok(())
    }
}

/// What the last stage needs beside the records.
pub(crate) struct Writing<'a> {
    /// Where windows end.
    pub(crate) ends: &'a [u64],
    pub(crate) communicators: &'a [Communicator],
    pub(crate) traced: &'a [Traced],
}

impl Writing<'_> {
    /// Writes the trace. `output` is whole then, but has not its name yet.
    pub(crate) fn write(
        &self,
        mut source: Source<'_>,
        job: Option<&Job>,
        output: &Output,
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<(), MixError> {
        let mut tokens = job.map(|job| Tokens::new(job, self.ends.len()));
        let written = self.write_all(&mut source, tokens.as_mut(), output, summary, progress);
        if let Some(mut tokens) = tokens {
            tokens.finish(written.is_ok())?;
        }
        written
    }

    fn write_all(
        &self,
        source: &mut Source<'_>,
        mut others: Option<&mut Tokens<'_>>,
        output: &Output,
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<(), MixError> {
        let tasks = summary.tasks;
        let header = Header {
            version: Version::V3,
            tasks,
            messages: summary.messages + summary.marks,
            communicators: summary.communicators,
            collectives: summary.collectives,
            local_collectives: summary.local_collectives,
            received: 0,
            clock: CLOCK,
        };
        let failed = |error| output.error(error);
        let mut writer = Writer::new(output.file()?, &header).map_err(failed)?;
        for communicator in self.communicators {
            writer.communicator(communicator.id, &communicator.members).map_err(failed)?;
        }
        let mut resolver = Resolver::new(tasks, self.traced);
        // Three windows are under way at once: one is prepared, one resolved, one written.
        let (mut unsorted, mut sorter) = (Vec::new(), Sorter::default());
        let (mut records, mut records_ahead) = (Vec::new(), Vec::new());
        let (mut lines, mut lines_ahead) = (Vec::new(), Vec::new());
        let mut texts = Texts::new(tasks);
        let mut ends = self.ends.iter();
        loop {
            let end = ends.next();
            let ((written, ()), prepared) = rayon::join(
                || {
                    rayon::join(
                        || texts.write(&lines, &mut writer),
                        || resolver.take(&records, &mut lines_ahead),
                    )
                },
                || {
                    unsorted.clear();
                    if let Some(&end) = end {
                        source.fill(end, &mut unsorted)?;
                        if let Some(others) = &mut others {
                            others.fill(&mut unsorted)?;
                        }
                    }
                    sorter.sort(&unsorted, &mut records_ahead);
                    Ok::<_, MixError>(())
                },
            );
            written.map_err(failed)?;
            prepared?;
            progress.advance(lines.len() as u64);
            std::mem::swap(&mut lines, &mut lines_ahead);
            std::mem::swap(&mut records, &mut records_ahead);
            if end.is_none() && lines.is_empty() && records.is_empty() {
                break;
            }
        }
        resolver.finish()?;
        summary.early_receptions = resolver.early;
        writer.finish().map_err(failed)?;
        Ok(())
    }

    /// Gives the process that writes what this one prepares, whenever it asks.
    pub(crate) fn serve(&self, mut source: Source<'_>, job: &Job, names: &[u32]) -> Result<(), MixError> {
        let mut records = Vec::new();
        for &end in self.ends {
            records.clear();
            source.fill(end, &mut records)?;
            let block = wire::encode(&records, &|own| names[own as usize]);
            if !job.answer(&block)? {
                break;
            }
        }
        Ok(())
    }
}

/// The text of a window, in pieces that several threads make.
struct Texts {
    tasks: u32,
    pieces: Vec<Lines>,
}

impl Texts {
    /// Lines in a piece.
    const PIECE: usize = 1 << 11;

    fn new(tasks: u32) -> Self {
        Self { tasks, pieces: Vec::new() }
    }

    /// Writes a window.
    fn write<W: Write>(&mut self, lines: &[Line], writer: &mut Writer<W>) -> Result<(), WriteError> {
        let count = lines.len().div_ceil(Self::PIECE);
        if self.pieces.len() < count {
            self.pieces.resize_with(count, || Lines::new(self.tasks));
        }
        let pieces = &mut self.pieces[..count];
        pieces.par_iter_mut().zip(lines.par_chunks(Self::PIECE)).try_for_each(|(piece, lines)| {
            piece.clear();
            lines.iter().try_for_each(|line| match line {
                Line::Message(message) => piece.message(message),
                Line::Collective(collective) => piece.collective(collective),
            })
        })?;
        pieces.iter().try_for_each(|piece| writer.lines(piece))
    }
}

/// The communicators of a trace: all tasks first, then those with collectives, by the lowest member that knows them
/// and its number for them. And the place there of each, by identity.
pub(crate) fn number_communicators(
    tasks: u32,
    known: &[Known],
    operations: &[Operations],
) -> (Vec<Communicator>, Vec<Traced>) {
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.sort_unstable_by_key(|&at| known[at].order);
    let first = |is: &dyn Fn(&Known) -> bool| order.iter().copied().find(|&at| is(&known[at]));
    let world = first(&|known| known.world).or_else(|| first(&|known| known.group.is_all(tasks)));
    let rest = order.iter().copied().filter(|&at| Some(at) != world && operations[at].complete > 0);
    let mut traced = vec![Traced { id: CommId(NONE) }; known.len()];
    let mut communicators = vec![Communicator { id: CommId(0), members: (0..tasks).map(Rank).collect() }];
    if let Some(world) = world {
        traced[world].id = CommId(0);
    }
    for (number, at) in (1..).zip(rest) {
        traced[at].id = CommId(number);
        communicators.push(Communicator { id: CommId(number), members: known[at].group.iter().collect() });
    }
    (communicators, traced)
}
