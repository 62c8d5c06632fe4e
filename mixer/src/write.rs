//! The last stage: window by window, what all parts prepared gets its order and its ids, and becomes text.
//!
//! Each thread takes a window all the way, so that it stays in that core's cache; [gates](crate::gate) keep the windows in
//! their order where that matters. With one thread there is one window at a time.

use crate::Progress;
use crate::agreement::Operations;
use crate::channels::NONE;
use crate::communicators::Known;
use crate::error::MixError;
use crate::gate::Gate;
use crate::job::{Job, Tokens};
use crate::order::Sorter;
use crate::output::Output;
use crate::parts::{Blocks, Spill};
use crate::prepare::Preparer;
use crate::resolve::{Resolver, Traced};
use crate::summary::Summary;
use crate::window::Window;
use crate::wire;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use vef_format::ids::{CommId, Rank};
use vef_format::record::{Communicator, Header, Version};
use vef_format::text::{Lines, WriteError, Writer};
use vef_format::units::Picos;

/// Picoseconds in one unit of a trace's times: captures are in nanoseconds.
const CLOCK: Picos = Picos(1000);

/// At most so many windows are under way at once: more would only wait at the gate where ids are given.
const UNDER_WAY: usize = 8;

/// Where the prepared records of some consecutive tasks come from.
pub(crate) enum Source<'a> {
    /// They are prepared when they are wanted.
    Here(Preparer<'a>),
    /// They lie in a file, each window a block.
    Spilled(Spill, Vec<Blocks>),
    /// Other processes prepare them.
    Elsewhere(Tokens<'a>),
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
            Self::Elsewhere(others) => others.fill(window)?,
        }
        Ok(())
    }

    /// After all windows, or those until something failed.
    fn finish(self, whole: bool) -> Result<(), MixError> {
        match self {
            Self::Elsewhere(mut others) => others.finish(whole),
            _ => Ok(()),
        }
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
    /// Writes the trace; `sources` are those of ascending tasks. `output` is whole then, but has not its name yet.
    pub(crate) fn write(
        &self,
        sources: Vec<Source<'_>>,
        output: &Output,
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<(), MixError> {
        let sources: Vec<_> = sources.into_iter().map(Gate::new).collect();
        let written = self.write_all(&sources, output, summary, progress);
        for source in sources {
            source.into_inner().finish(written.is_ok())?;
        }
        written
    }

    fn write_all(
        &self,
        sources: &[Gate<Source<'_>>],
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
        let stages = Stages {
            ends: self.ends,
            next: AtomicUsize::new(0),
            sources,
            resolver: Gate::new(Resolver::new(tasks, self.traced)),
            writer: Gate::new(writer),
            failure: Mutex::new(None),
        };
        rayon::broadcast(|thread| {
            if thread.index() < UNDER_WAY {
                stages.take_windows(Lines::new(tasks), &failed, progress);
            }
        });
        let Stages { resolver, writer, failure, .. } = stages;
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let resolver = resolver.into_inner();
        resolver.finish()?;
        summary.early_receptions = resolver.early;
        writer.into_inner().finish().map_err(failed)?;
        Ok(())
    }

    /// Gives the process that writes what this one prepares, whenever it asks.
    pub(crate) fn serve(
        &self,
        mut sources: Vec<Source<'_>>,
        job: &Job,
        names: &[u32],
    ) -> Result<(), MixError> {
        let mut window = Window::default();
        for &end in self.ends {
            window.clear();
            sources.iter_mut().try_for_each(|source| source.fill(end, &mut window))?;
            let block = wire::encode(&window, &|own| names[own as usize]);
            if !job.answer(&block)? {
                break;
            }
        }
        Ok(())
    }
}

/// What a window goes through, and where each stage stands.
struct Stages<'a, 'b> {
    /// Where windows end, and the first that nobody has taken.
    ends: &'a [u64],
    next: AtomicUsize,
    sources: &'a [Gate<Source<'b>>],
    resolver: Gate<Resolver>,
    writer: Gate<Writer<&'a File>>,
    /// Why the gates were closed.
    failure: Mutex<Option<MixError>>,
}

impl Stages<'_, '_> {
    /// Takes one window after the other through all stages, until there is none or something failed (`None`).
    fn take_windows(
        &self,
        mut text: Lines,
        failed: &dyn Fn(WriteError) -> MixError,
        progress: &dyn Progress,
    ) -> Option<()> {
        let (mut window, mut sorter) = (Window::default(), Sorter::default());
        let _guard = Guard(self);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&end) = self.ends.get(number) else { return Some(()) };
            window.clear();
            for source in self.sources {
                let filled = source.pass(number, |source| source.fill(end, &mut window))?;
                self.go_on(filled)?;
            }
            let turns = sorter.sort(window.starts());
            self.resolver.pass(number, |resolver| resolver.take(&mut window, turns))?;
            text.clear();
            self.go_on(window.write(&mut text).map_err(failed))?;
            let written = self.writer.pass(number, |writer| writer.lines(&text))?;
            self.go_on(written.map_err(failed))?;
            progress.advance(text.count());
        }
    }

    /// `None`: it failed, and so does all.
    fn go_on(&self, outcome: Result<(), MixError>) -> Option<()> {
        if let Err(error) = outcome {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.close();
            return None;
        }
        Some(())
    }

    fn close(&self) {
        self.sources.iter().for_each(Gate::close);
        self.resolver.close();
        self.writer.close();
    }
}

/// Of a thread at work: should it panic, the others do not wait for it.
struct Guard<'a, 'b, 'c>(&'c Stages<'a, 'b>);

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
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
