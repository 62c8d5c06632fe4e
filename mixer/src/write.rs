//! The last stage: window by window, what all parts prepared gets its order and its ids, and becomes text.
//!
//! Preparing, giving ids and writing go on from the window before; sorting a window and making text of it do not. How threads
//! share that, [`stations`] says.

use crate::Progress;
use crate::agreement::Operations;
use crate::channels::NONE;
use crate::communicators::Known;
use crate::error::MixError;
use crate::job::{self, Job, Tokens};
use crate::numbering::{Numbering, Traced};
use crate::order::{End, Sorter};
use crate::output::Output;
use crate::parts::{Blocks, Spill};
use crate::prepare::Preparer;
use crate::sink::Sink;
use crate::stations::{self, Station};
use crate::summary::Summary;
use crate::window::Window;
use crate::wire;
use vef_format::ids::{CommId, Rank};
use vef_format::record::Communicator;
use vef_format::text::Lines;

/// Where the prepared records of some consecutive tasks come from.
pub(crate) enum Source<'a> {
    /// They are prepared when they are wanted.
    Here(Preparer<'a>),
    /// They lie in a file, each window a block.
    Spilled(&'a Spill, Vec<Blocks>),
    /// Other processes prepare them.
    Elsewhere(Tokens<'a>),
}

impl Source<'_> {
    /// Adds the records of the next window, which ends there, task by task.
    fn fill(&mut self, end: End, window: &mut Window) -> Result<(), MixError> {
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
    pub(crate) ends: &'a [End],
    pub(crate) traced: &'a [Traced],
}

impl Writing<'_> {
    /// Writes the trace; `sources` are those of ascending tasks. `output` is whole then, but has not its name yet.
    pub(crate) fn write(
        &self,
        mut sources: Vec<Source<'_>>,
        (sink, output): (Sink<'_>, &Output),
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<(), MixError> {
        let written = self.write_all(&mut sources, (sink, output), summary, progress);
        for source in sources {
            source.finish(written.is_ok())?;
        }
        written
    }

    fn write_all(
        &self,
        sources: &mut [Source<'_>],
        (mut sink, output): (Sink<'_>, &Output),
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<(), MixError> {
        let tasks = summary.tasks;
        let mut numbering = Numbering::new(tasks, self.traced, summary.threaded > 0, &summary.killed);
        let mut stations = vec![Station::parallel(|work: &mut Work| {
            work.prepared.clear();
            Ok(())
        })];
        for source in sources {
            stations.push(Station::sequential(move |number, work: &mut Work| {
                source.fill(self.ends[number], &mut work.prepared)
            }));
        }
        stations.push(Station::parallel(|work: &mut Work| {
            work.prepared.sort(&mut work.sorter, &mut work.sorted);
            Ok(())
        }));
        stations.push(Station::sequential(|number, work: &mut Work| {
            numbering.take(&mut work.sorted, number + 1 == self.ends.len());
            Ok(())
        }));
        match &mut sink {
            Sink::Text(writer) => {
                stations.push(Station::parallel(|work: &mut Work| {
                    work.text.clear();
                    work.sorted.write(&mut work.text).map_err(|error| output.error(error))
                }));
                stations.push(Station::sequential(|_, work: &mut Work| {
                    progress.advance(work.text.count());
                    writer.lines(&work.text).map_err(|error| output.error(error))
                }));
            }
            Sink::Container(writer) => stations.push(Station::sequential(|_, work: &mut Work| {
                progress.advance(work.sorted.lines());
                work.sorted.write(&mut **writer).map_err(|error| output.error(error))
            })),
        }
        stations::pass(&stations, || Work::new(tasks), self.ends.len())?;
        drop(stations);
        numbering.finish()?;
        summary.early_receptions = numbering.early;
        sink.finish(output)
    }

    /// Gives the process that writes what this one prepares, whenever it asks.
    pub(crate) fn serve(
        &self,
        mut sources: Vec<Source<'_>>,
        job: &Job,
        names: &[u32],
    ) -> Result<(), MixError> {
        let mut window = Window::default();
        let mut outcome = Ok(());
        for &end in self.ends {
            window.clear();
            if outcome.is_ok() {
                outcome = sources.iter_mut().try_for_each(|source| source.fill(end, &mut window));
            }
            let block = match outcome {
                Ok(()) => wire::encode(&window, &|own| names[own as usize]),
                // It goes on until it is let go, so that nobody waits for ever.
                Err(_) => job::FAILED.to_vec(),
            };
            if !job.answer(&block)? {
                break;
            }
        }
        outcome
    }
}

/// A window on its way.
struct Work {
    prepared: Window,
    sorter: Sorter,
    sorted: Window,
    text: Lines,
}

impl Work {
    fn new(tasks: u32) -> Self {
        let (prepared, sorted) = (Window::default(), Window::default());
        Self { prepared, sorter: Sorter::default(), sorted, text: Lines::new(tasks) }
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
    let traced = |known: &Known| Traced { id: CommId(NONE), members: known.group.count() };
    let mut traced: Vec<Traced> = known.iter().map(traced).collect();
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
