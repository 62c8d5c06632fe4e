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
use crate::prepare::Preparer;
use crate::resolve::{Line, Lines, Resolver, Traced};
use crate::summary::Summary;
use crate::window::Window;
use crate::wire;
use rayon::prelude::*;
use std::io::Write;
use vef_format::ids::{CommId, Rank};
use vef_format::record::{Communicator, Header, LocalCollective, Message, Version};
use vef_format::text::{self, WriteError, Writer};
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
    fn fill(&mut self, end: u64, window: &mut Window) -> Result<(), MixError> {
        match self {
            Self::Here(preparer) => preparer.fill(end, window),
            Self::Spilled(spill, parts) => {
                for part in parts {
                    wire::decode(&part.next(spill)?, window)?;
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
        let mut writer = Writer::new(output.file(), &header).map_err(failed)?;
        for communicator in self.communicators {
            writer.communicator(communicator.id, &communicator.members).map_err(failed)?;
        }
        let mut resolver = Resolver::new(tasks, self.traced);
        let (mut unsorted, mut sorter) = (Window::default(), Sorter::default());
        let prepare = |end: Option<&u64>, window: &mut Window| {
            if let Some(&end) = end {
                source.fill(end, &mut unsorted)?;
                if let Some(others) = &mut others {
                    others.fill(&mut unsorted)?;
                }
            }
            unsorted.sort(&mut sorter, window);
            Ok::<_, MixError>(())
        };
        let stages = Stages { resolver: &mut resolver, writer: &mut writer, tasks, progress };
        match rayon::current_num_threads() {
            1 | 2 => stages.in_two(self.ends, prepare, &failed),
            _ => stages.in_three(self.ends, prepare, &failed),
        }?;
        resolver.finish()?;
        summary.early_receptions = resolver.early;
        writer.finish().map_err(failed)?;
        Ok(())
    }

    /// Gives the process that writes what this one prepares, whenever it asks.
    pub(crate) fn serve(&self, mut source: Source<'_>, job: &Job, names: &[u32]) -> Result<(), MixError> {
        let mut window = Window::default();
        for &end in self.ends {
            window.clear();
            source.fill(end, &mut window)?;
            let block = wire::encode(&window, &|own| names[own as usize]);
            if !job.answer(&block)? {
                break;
            }
        }
        Ok(())
    }
}

/// What windows go through once they are prepared.
struct Stages<'a, W: Write> {
    resolver: &'a mut Resolver,
    writer: &'a mut Writer<W>,
    tasks: u32,
    progress: &'a dyn Progress,
}

impl<W: Write + Send> Stages<'_, W> {
    /// One window becomes text as it is resolved, while the next is prepared: nothing but windows goes from one core to
    /// another.
    fn in_two(
        self,
        ends: &[u64],
        mut prepare: impl FnMut(Option<&u64>, &mut Window) -> Result<(), MixError> + Send,
        failed: &(dyn Fn(WriteError) -> MixError + Sync),
    ) -> Result<(), MixError> {
        let Self { resolver, writer, tasks, progress } = self;
        let (mut window, mut window_ahead) = (Window::default(), Window::default());
        let mut text = Text::new(tasks);
        let mut ends = ends.iter();
        loop {
            let end = ends.next();
            let write = || {
                for begin in (0..window.len()).step_by(Text::PIECE) {
                    let end = window.len().min(begin + Text::PIECE);
                    resolver.take(&window, begin..end, &mut text);
                    text.write(writer).map_err(failed)?;
                    progress.advance(text.count);
                }
                Ok::<_, MixError>(())
            };
            let (written, prepared) = rayon::join(write, || prepare(end, &mut window_ahead));
            written?;
            prepared?;
            std::mem::swap(&mut window, &mut window_ahead);
            if end.is_none() {
                return Ok(());
            }
        }
    }

    /// Three windows are under way at once: one is prepared, one resolved, one becomes text, which any number of threads make.
    fn in_three(
        self,
        ends: &[u64],
        mut prepare: impl FnMut(Option<&u64>, &mut Window) -> Result<(), MixError> + Send,
        failed: &(dyn Fn(WriteError) -> MixError + Sync),
    ) -> Result<(), MixError> {
        let Self { resolver, writer, tasks, progress } = self;
        let (mut window, mut window_ahead) = (Window::default(), Window::default());
        let (mut lines, mut lines_ahead) = (Vec::new(), Vec::new());
        let mut texts = Texts::new(tasks);
        let mut ends = ends.iter();
        loop {
            let end = ends.next();
            let ((written, ()), prepared) = rayon::join(
                || {
                    let resolve = || {
                        lines_ahead.clear();
                        resolver.take(&window, 0..window.len(), &mut lines_ahead);
                    };
                    rayon::join(|| texts.write(&lines, writer), resolve)
                },
                || prepare(end, &mut window_ahead),
            );
            written.map_err(failed)?;
            prepared?;
            progress.advance(lines.len() as u64);
            std::mem::swap(&mut lines, &mut lines_ahead);
            std::mem::swap(&mut window, &mut window_ahead);
            if end.is_none() && lines.is_empty() && window.len() == 0 {
                return Ok(());
            }
        }
    }
}

/// Lines that become text as they come.
struct Text {
    lines: text::Lines,
    count: u64,
    outcome: Result<(), WriteError>,
}

impl Text {
    /// Turns between two writes: their text stays in the cache.
    const PIECE: usize = 1 << 12;

    fn new(tasks: u32) -> Self {
        Self { lines: text::Lines::new(tasks), count: 0, outcome: Ok(()) }
    }

    /// Writes the lines that came since this was called before; they are `count`.
    fn write<W: Write>(&mut self, writer: &mut Writer<W>) -> Result<(), WriteError> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        writer.lines(&self.lines)?;
        self.count = self.lines.count();
        self.lines.clear();
        Ok(())
    }
}

impl Lines for Text {
    #[inline(always)]
    fn message(&mut self, message: Message) {
        if let Err(error) = self.lines.message(&message) {
            self.outcome = Err(error);
        }
    }

    #[inline(always)]
    fn collective(&mut self, part: LocalCollective) {
        if let Err(error) = self.lines.collective(&part) {
            self.outcome = Err(error);
        }
    }
}

/// The text of a window, in pieces that several threads make.
struct Texts {
    tasks: u32,
    pieces: Vec<text::Lines>,
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
            self.pieces.resize_with(count, || text::Lines::new(self.tasks));
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
