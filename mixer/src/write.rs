//! The last stage: merges the prepared records of all parts window by window, sorts and numbers them, and writes them.
//!
//! Filling, numbering and writing need the windows in order; sorting a window and formatting it as text do not. The
//! threads share this work by [`stations`].

use crate::Progress;
use crate::communicators::InTrace;
use crate::error::MixError;
use crate::job::{self, Job, WindowRequests};
use crate::numbering::Numbering;
use crate::order::{End, Sorter};
use crate::prepare::Preparer;
use crate::prepared::Prepared;
use crate::sink::{Format, Sink};
use crate::stations::{self, Station};
use crate::store::{Store, Stored};
use crate::summary::Summary;
use crate::thread_notes::Sequences;
use crate::window::Window;
use crate::wire;
use vef_format::prefetch::prefetch;
use vef_format::text::Lines;

/// How many lines ahead a record is prefetched.
const AHEAD: usize = 8;

/// Source of the prepared records of some consecutive tasks.
pub(crate) enum Source<'a> {
    /// Prepares them on demand.
    Preparer(Preparer<'a>),
    /// Reads the windows of each part.
    Stored(&'a Store, Vec<std::vec::IntoIter<Stored>>),
    /// Requests them from other processes.
    Peers(WindowRequests<'a>),
}

impl Source<'_> {
    /// Adds the records of the next window, which ends at `end`, by task.
    fn fill(&mut self, end: End, window: &mut Window) -> Result<(), MixError> {
        match self {
            Self::Preparer(preparer) => preparer.fill(end, window),
            Self::Stored(store, parts) => {
                for stored in parts.iter_mut().filter_map(Iterator::next) {
                    wire::decode(&store.read(&stored)?, window)?;
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
            Self::Preparer(_) | Self::Stored(..) => Ok(()),
        }
    }
}

/// What the last stage needs beside the records.
pub(crate) struct Writing<'a> {
    /// Ends of the windows.
    pub(crate) ends: &'a [End],
    pub(crate) communicators: &'a [InTrace],
}

impl Writing<'_> {
    /// Writes the records from `sources`, by ascending tasks. Returns the sequences of tasks with several threads, if notes need
    /// them.
    pub(crate) fn write(
        &self,
        mut sources: Vec<Source<'_>>,
        sink: &mut Sink<'_>,
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<Sequences, MixError> {
        let written = self.write_all(&mut sources, sink, summary, progress);
        for source in sources {
            source.finish(written.is_ok())?;
        }
        written
    }

    fn write_all(
        &self,
        sources: &mut [Source<'_>],
        Sink { output, format }: &mut Sink<'_>,
        summary: &mut Summary,
        progress: &dyn Progress,
    ) -> Result<Sequences, MixError> {
        let (tasks, threaded) = (summary.tasks, summary.threaded + summary.answering > 0);
        let mut numbering = Numbering::new(tasks, self.communicators, threaded, &summary.killed);
        if let Format::Container(_) = format {
            numbering.sequences = Some(Sequences::default());
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
            numbering.take(&mut work.window, work.sorter.slots(), number + 1 == self.ends.len());
            Ok(())
        }));
        match format {
            Format::Text(writer) => {
                stations.push(Station::parallel(|work: &mut Work| {
                    work.text.clear();
                    let Window { records, lines } = &work.window;
                    let mut ahead = lines.get(AHEAD..).unwrap_or_default().iter();
                    for &slot in lines {
                        ahead.next().inspect(|&&slot| prefetch(records, slot as usize));
                        let Prepared { task, raw, .. } = &records[slot as usize];
                        work.text.raw(*task, raw).map_err(|error| output.error(error))?;
                    }
                    Ok(())
                }));
                stations.push(Station::sequential(|_, work: &mut Work| {
                    progress.advance(work.text.count());
                    writer.lines(&work.text).map_err(|error| output.error(error))
                }));
            }
            Format::Container(writer) => stations.push(Station::sequential(|_, work: &mut Work| {
                let Window { records, lines } = &work.window;
                let record = |slot: u32| (records[slot as usize].task, &records[slot as usize].raw);
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
    pub(crate) fn serve(&self, mut sources: Vec<Source<'_>>, job: &Job) -> Result<(), MixError> {
        let mut window = Window::default();
        let mut outcome = Ok(());
        for &end in self.ends {
            window.clear();
            if outcome.is_ok() {
                outcome = sources.iter_mut().try_for_each(|source| source.fill(end, &mut window));
            }
            let block = match outcome {
                Ok(()) => wire::encode(&window),
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
