//! The last stage: merges the prepared records of all parts window by window, sorts and numbers them, and writes them.
//!
//! Filling, numbering and writing need the windows in order; sorting a window and formatting it as text do not. The
//! threads share this work by [`stations`].

use crate::Progress;
use crate::agreement::Operations;
use crate::channels::NONE;
use crate::communicators::Known;
use crate::error::MixError;
use crate::job::{self, Job, WindowRequests};
use crate::numbering::{Numbering, Traced};
use crate::order::{End, Sorter};
use crate::output::Output;
use crate::parts::{Place, Spill};
use crate::prepare::Preparer;
use crate::prepared::Prepared;
use crate::sink::Sink;
use crate::stations::{self, Station};
use crate::summary::Summary;
use crate::thread_notes::Sequence;
use crate::window::Window;
use crate::wire;
use hashbrown::HashMap;
use vef_format::capture::event::Members;
use vef_format::ids::{CommId, Rank};
use vef_format::prefetch::prefetch;
use vef_format::record::Communicator;
use vef_format::text::Lines;

/// How many lines ahead a record is prefetched.
const AHEAD: usize = 8;

/// Source of the prepared records of some consecutive tasks.
pub(crate) enum Source<'a> {
    /// Prepares them on demand.
    Here(Preparer<'a>),
    /// Reads them from a file, one block a window.
    Spilled(&'a Spill, Vec<std::vec::IntoIter<Place>>),
    /// Requests them from other processes.
    Peers(WindowRequests<'a>),
}

impl Source<'_> {
    /// Adds the records of the next window, which ends at `end`, by task.
    fn fill(&mut self, end: End, window: &mut Window) -> Result<(), MixError> {
        match self {
            Self::Here(preparer) => preparer.fill(end, window),
            Self::Spilled(spill, parts) => {
                for place in parts.iter_mut().filter_map(Iterator::next) {
                    wire::decode(&spill.read(place)?, window)?;
                }
            }
            Self::Peers(others) => others.fill(window)?,
        }
        Ok(())
    }

    /// Call after the last window (`whole`) or after an error.
    fn finish(self, whole: bool) -> Result<(), MixError> {
        match self {
            Self::Peers(mut others) => others.finish(whole),
            _ => Ok(()),
        }
    }
}

/// What the last stage needs beside the records.
pub(crate) struct Writing<'a> {
    /// Ends of the windows.
    pub(crate) ends: &'a [End],
    pub(crate) traced: &'a [Traced],
}

impl Writing<'_> {
    /// Writes the records from `sources`, by ascending tasks. Returns the sequences of tasks with several threads, if notes need
    /// them.
    pub(crate) fn write(
        &self,
        mut sources: Vec<Source<'_>>,
        (sink, output): (&mut Sink<'_>, &Output),
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<HashMap<Rank, Sequence>, MixError> {
        let written = self.write_all(&mut sources, (sink, output), summary, progress);
        for source in sources {
            source.finish(written.is_ok())?;
        }
        written
    }

    fn write_all(
        &self,
        sources: &mut [Source<'_>],
        (sink, output): (&mut Sink<'_>, &Output),
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<HashMap<Rank, Sequence>, MixError> {
        let tasks = summary.tasks;
        let mut numbering = Numbering::new(tasks, self.traced, summary.threaded > 0, &summary.killed);
        if let Sink::Container(_) = sink {
            numbering.sequences = Some(HashMap::new());
        }
        let mut stations = vec![Station::parallel(|work: &mut Work| {
            work.window.clear();
            Ok(())
        })];
        for source in sources {
            stations.push(Station::sequential(move |number, work: &mut Work| {
                source.fill(self.ends[number], &mut work.window)
            }));
        }
        stations.push(Station::parallel(|work: &mut Work| {
            work.sorter.sort(&work.window.records, |record| record.start);
            Ok(())
        }));
        stations.push(Station::sequential(|number, work: &mut Work| {
            numbering.take(&mut work.window, work.sorter.places(), number + 1 == self.ends.len());
            Ok(())
        }));
        match sink {
            Sink::Text(writer) => {
                stations.push(Station::parallel(|work: &mut Work| {
                    work.text.clear();
                    let Window { records, lines } = &work.window;
                    let mut ahead = lines.get(AHEAD..).unwrap_or_default().iter();
                    for &place in lines {
                        ahead.next().inspect(|&&place| prefetch(records, place as usize));
                        let Prepared { task, raw, .. } = &records[place as usize];
                        work.text.raw(*task, raw).map_err(|error| output.error(error))?;
                    }
                    Ok(())
                }));
                stations.push(Station::sequential(|_, work: &mut Work| {
                    progress.advance(work.text.count());
                    writer.lines(&work.text).map_err(|error| output.error(error))
                }));
            }
            Sink::Container(writer) => stations.push(Station::sequential(|_, work: &mut Work| {
                let Window { records, lines } = &work.window;
                let record = |place: u32| (records[place as usize].task, &records[place as usize].raw);
                progress.advance(lines.len() as u64);
                writer.records(lines, record).map_err(|error| output.error(error))
            })),
        }
        stations::pass(&stations, || Work::new(tasks), self.ends.len())?;
        drop(stations);
        numbering.finish()?;
        summary.early_receptions = numbering.early;
        Ok(numbering.sequences.unwrap_or_default())
    }

    /// Sends the prepared windows of this process to rank 0 on request.
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
                // Rank 0 continues to request windows until it has seen the error.
                Err(_) => job::FAILED.to_vec(),
            };
            if !job.answer(&block)? {
                break;
            }
        }
        outcome
    }
}

/// A window in the pipeline, and its buffers.
struct Work {
    window: Window,
    sorter: Sorter,
    text: Lines,
}

impl Work {
    fn new(tasks: u32) -> Self {
        Self { window: Window::default(), sorter: Sorter::default(), text: Lines::new(tasks) }
    }
}

/// The communicators of the trace: all tasks first, then those with collectives, by the lowest task that has them and its
/// number for them. Also the id of each, by identity.
pub(crate) fn number_communicators(
    tasks: u32,
    known: &[Known],
    operations: &[Operations],
) -> (Vec<Communicator>, Vec<Traced>) {
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.sort_unstable_by_key(|&at| known[at].order);
    let first = |is: &dyn Fn(&Known) -> bool| order.iter().copied().find(|&at| is(&known[at]));
    let all = Members::Strided { first: Rank(0), stride: 1, count: tasks };
    let world = first(&|known| known.world).or_else(|| first(&|known| known.group.members() == all));
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
