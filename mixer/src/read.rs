//! Reads the events of tasks, in parallel.

use crate::Options;
use crate::Progress;
use crate::communicators::Communicators;
use crate::error::MixError;
use crate::order::Samples;
use crate::parts;
use crate::summary::Spent;
use crate::task::Task;
use crate::walk::{Walk, WalkOptions};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use vef_format::capture::{Capture, CaptureError, Ending, Layout, rank_file};
use vef_format::error::Place;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// Memory of tasks while they are matched and written, as a multiple of their memory behind the walk (a fraction). The
/// further memory is channel ends and partners: at most 4 bytes beside the 9 of a receive, and less beside a message.
const WHEN_MATCHED: (u64, u64) = (3, 2);

/// Reads tasks of a capture.
pub(crate) struct Reading<'a> {
    pub(crate) capture: &'a Capture,
    path: &'a Path,
    options: &'a Options,
    progress: &'a dyn Progress,
    /// Number of records of the last task that was read, at most [`EXPECTED`]: tasks are often alike.
    expected: AtomicUsize,
}

/// Maximum number of records for which memory is reserved.
const EXPECTED: usize = 1 << 14;

/// Result of the first reading of a process's share.
pub(crate) enum FirstReading {
    /// All its tasks.
    Whole(Vec<Walked>),
    /// The parts that fit into memory.
    Parts(Vec<Range<u32>>),
}

/// A task, and what its file says beside events.
pub(crate) struct Walked {
    pub(crate) task: Task,
    pub(crate) skipped: u64,
    pub(crate) torn: u64,
    pub(crate) spent: Spent,
}

impl<'a> Reading<'a> {
    /// Reads `capture`, which is at `path`.
    pub(crate) fn new(
        capture: &'a Capture,
        path: &'a Path,
        options: &'a Options,
        progress: &'a dyn Progress,
    ) -> Self {
        Self { capture, path, options, progress, expected: AtomicUsize::new(0) }
    }

    fn walk_options(&self) -> WalkOptions<'_> {
        WalkOptions {
            with_notes: false,
            by_length: self.capture.layout() == Layout::Prospector,
            with_room: false,
            polls: self.options.polls,
            lower: self.options.lower_collectives.as_ref(),
        }
    }

    /// Reads the tasks of `share`. Returns them if they fit into `allowed` bytes, otherwise the parts that do: how much memory
    /// a task takes is known only after reading, because events may be compressed or become many records.
    pub(crate) fn read(
        &self,
        share: Range<u32>,
        allowed: u64,
        communicators: &Communicators,
        with_notes: bool,
    ) -> Result<FirstReading, MixError> {
        // A quarter remains for windows, tables and output buffers.
        let room = allowed / 4 * 3;
        let options = WalkOptions { with_notes, ..self.walk_options() };
        let kept: Vec<Mutex<Option<Walked>>> = share.clone().map(|_| Mutex::default()).collect();
        let of =
            |rank: u32| kept[(rank - share.start) as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let (sum, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let read = |rank: u32| {
            let walked = self.walk_in(Rank(rank), communicators, options);
            self.progress.advance(1);
            let walked = walked?;
            let need = walked.task.memory() as u64 * WHEN_MATCHED.0 / WHEN_MATCHED.1;
            let all = sum.fetch_add(need, Ordering::Relaxed).saturating_add(need);
            if all > room && share.len() > 1 && !over.swap(true, Ordering::SeqCst) {
                share.clone().for_each(|rank| *of(rank) = None);
            }
            *of(rank) = Some(walked);
            if over.load(Ordering::SeqCst) {
                *of(rank) = None;
            }
            Ok(need)
        };
        // Collect first: the error of the lowest task is returned, not the earliest.
        let needs: Vec<Result<u64, MixError>> = share.clone().into_par_iter().map(read).collect();
        let needs = needs.into_iter().collect::<Result<Vec<u64>, _>>()?;
        if over.into_inner() {
            let need = |rank: u32| needs[(rank - share.start) as usize];
            return Ok(FirstReading::Parts(parts::plan(share.clone(), room, need)));
        }
        let kept = kept.into_iter().map(|task| task.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(FirstReading::Whole(kept.flatten().collect()))
    }

    /// Reads the tasks of `part`, with or without notes for a container.
    pub(crate) fn walk(
        &self,
        part: Range<u32>,
        communicators: &Communicators,
        with_notes: bool,
    ) -> Result<Vec<Walked>, MixError> {
        let options = WalkOptions { with_notes, ..self.walk_options() };
        let walk = |rank| {
            let walked = self.walk_in(Rank(rank), communicators, options);
            self.progress.advance(1);
            walked
        };
        // Collect first: the error of the lowest task is returned, not the earliest.
        let walked: Vec<_> = part.into_par_iter().map(walk).collect();
        walked.into_iter().collect()
    }

    /// Walks over all events of one task.
    fn walk_in(
        &self,
        rank: Rank,
        communicators: &Communicators,
        options: WalkOptions<'_>,
    ) -> Result<Walked, MixError> {
        let mut events = self.capture.events(rank)?;
        let expected = self.expected.load(Ordering::Relaxed);
        let (threads, functions) = (events.has_many_threads(), events.functions());
        let mut walk = Walk::new(rank, communicators, options, threads, functions, expected);
        events.each_to(&mut walk)?;
        self.expected.store(EXPECTED.min(walk.records() as usize), Ordering::Relaxed);
        let skipped = events.skipped().values().sum();
        let torn = match events.ending() {
            Ending::Cut { .. } if !self.options.lenient && self.capture.is_being_written(rank) => {
                return Err(CaptureError::InUse(Place::file(&rank_file(self.path, rank))).into());
            }
            Ending::Cut { torn } => torn.into(),
            Ending::Finished | Ending::Stopped => 0,
        };
        let (begin, end) = events.span();
        let spent = Spent::of(end.0.saturating_sub(begin.0), events.functions());
        let task = walk.finish(events.functions());
        let spent = Spent { awaited: task.counts.polled, send_waits: task.counts.send_waits, ..spent };
        Ok(Walked { task, skipped, torn, spent })
    }

    /// The buffer size of a receive. It is not kept; the few that are reported are read again.
    pub(crate) fn room(&self, rank: Rank, receive: u32, communicators: &Communicators) -> Option<Bytes> {
        let options = WalkOptions { with_room: true, ..self.walk_options() };
        let walked = self.walk_in(rank, communicators, options).ok()?;
        walked.task.room?.get(receive as usize).copied()
    }
}

/// Samples the starts of the records of `tasks`, the first of which is `first`; `shifts` convert their clocks.
pub(crate) fn sample(first: Rank, tasks: &[Task], shifts: &[i64]) -> Samples {
    let of = |(at, (task, &shift)): (usize, (&Task, &i64))| {
        Samples::of(Rank(first.0 + at as u32), &task.records, shift)
    };
    let sampled: Vec<_> = tasks.par_iter().zip(shifts).enumerate().map(of).collect();
    let mut all = Samples::new();
    sampled.into_iter().for_each(|samples| all.merge(samples));
    all
}
