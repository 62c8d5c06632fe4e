//! Reading a capture: all events of some tasks, in parallel.

use crate::Options;
use crate::Progress;
use crate::communicators::Communicators;
use crate::error::MixError;
use crate::order::Samples;
use crate::parts;
use crate::task::Task;
use crate::walk::{Manner, Walk};
use rayon::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use vef_format::capture::{Capture, CaptureError, Ending, Layout, rank_file};
use vef_format::error::Place;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// What a record may need beside its task's own memory, in parts of that: its partner, and both at once while they
/// are looked for.
const BESIDE: u64 = 1;

/// Reads tasks of a capture.
pub(crate) struct Reading<'a> {
    pub(crate) capture: &'a Capture,
    path: &'a Path,
    options: &'a Options,
    progress: &'a dyn Progress,
}

/// A task, and what its file says beyond its events.
pub(crate) struct Walked {
    pub(crate) task: Task,
    pub(crate) skipped: u64,
    pub(crate) torn: u64,
}

impl<'a> Reading<'a> {
    /// Of `capture`, which lies at `path`.
    pub(crate) fn new(
        capture: &'a Capture,
        path: &'a Path,
        options: &'a Options,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { capture, path, options, progress }
    }

    fn manner(&self) -> Manner<'_> {
        Manner {
            by_length: self.capture.layout() == Layout::Prospector,
            with_room: false,
            lower: self.options.lower_collectives.as_ref(),
        }
    }

    /// The parts in which `share` is mixed within so many bytes of memory.
    pub(crate) fn plan(
        &self,
        share: Range<u32>,
        allowed: u64,
        communicators: &Communicators,
    ) -> Result<Vec<Range<u32>>, MixError> {
        let sizes: Vec<u64> = share.clone().map(|rank| self.file_size(Rank(rank))).collect();
        let all: u64 = sizes.iter().sum();
        let Some((largest, &size)) = sizes.iter().enumerate().max_by_key(|&(_, &size)| size) else {
            return Ok(vec![share]);
        };
        // No event takes less than a few bytes, and no record more than a few dozen.
        if all.saturating_mul(16) < allowed {
            return Ok(vec![share]);
        }
        let walked = self.walk_one(Rank(share.start + largest as u32), communicators)?;
        let memory = walked.task.memory() as u64 * (1 + BESIDE);
        let need = |rank: u32| {
            let own = u128::from(sizes[(rank - share.start) as usize]) * u128::from(memory);
            (own / u128::from(size.max(1))) as u64
        };
        // Windows, tables and the output's buffers want their share, too.
        Ok(parts::plan(share.clone(), allowed / 4 * 3, need))
    }

    /// Reads the tasks of `part`.
    pub(crate) fn walk(
        &self,
        part: Range<u32>,
        communicators: &Communicators,
    ) -> Result<Vec<Walked>, MixError> {
        let walk = |rank| {
            let walked = self.walk_one(Rank(rank), communicators);
            self.progress.advance(1);
            walked
        };
        // The first error by task, whichever comes first by time.
        let walked: Vec<_> = part.into_par_iter().map(walk).collect();
        walked.into_iter().collect()
    }

    fn walk_one(&self, rank: Rank, communicators: &Communicators) -> Result<Walked, MixError> {
        self.walk_in(rank, communicators, self.manner())
    }

    /// The walk over one task's events to their end.
    fn walk_in(
        &self,
        rank: Rank,
        communicators: &Communicators,
        manner: Manner<'_>,
    ) -> Result<Walked, MixError> {
        let mut events = self.capture.events(rank)?;
        let mut walk = Walk::new(rank, communicators, manner, events.has_many_threads());
        events.each_to(&mut walk)?;
        let skipped = events.skipped().values().sum();
        let torn = match events.ending() {
            Ending::Cut { .. } if !self.options.lenient && self.capture.is_being_written(rank) => {
                return Err(CaptureError::InUse(Place::file(&rank_file(self.path, rank))).into());
            }
            Ending::Cut { torn } => torn.into(),
            Ending::Finished | Ending::Stopped => 0,
        };
        Ok(Walked { task: walk.finish(events.functions()), skipped, torn })
    }

    /// The room of a receive: it is not kept, but read again for the few that are reported.
    pub(crate) fn room(&self, rank: Rank, receive: u32, communicators: &Communicators) -> Option<Bytes> {
        let manner = Manner { with_room: true, ..self.manner() };
        let walked = self.walk_in(rank, communicators, manner).ok()?;
        walked.task.room?.get(receive as usize).copied()
    }

    /// The size of the events of a rank in the capture.
    fn file_size(&self, rank: Rank) -> u64 {
        let older = || Some(self.path.parent()?.join(format!("{rank}.veft")));
        let size = |path: PathBuf| std::fs::metadata(path).ok().map(|file| file.len());
        let inside = || size(self.path.join(format!("{rank}.veft")));
        size(rank_file(self.path, rank)).or_else(inside).or_else(|| size(older()?)).unwrap_or(0)
    }
}

/// Some starts of the records of `tasks`; `shifts` make each task's clock that of all.
pub(crate) fn sample(tasks: &[Task], shifts: &[i64]) -> Samples {
    let sampled: Vec<_> =
        tasks.par_iter().zip(shifts).map(|(task, &shift)| Samples::of(&task.records, shift)).collect();
    let mut all = Samples::new();
    sampled.into_iter().for_each(|samples| all.merge(samples));
    all
}
