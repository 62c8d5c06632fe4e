//! The stages of a mix, one after the other: of a whole capture in memory, of one in parts, or of one process's share.

use crate::agreement::{Operations, Rolls};
use crate::channels::NONE;
use crate::communicators::{Communicators, Known};
use crate::contained::{self, Draft};
use crate::error::MixError;
use crate::job::{Job, Tokens};
use crate::matching::{Matched, Matching, Partners, ends};
use crate::order::Samples;
use crate::output::Output;
use crate::parts::{Blocks, Place, Spill};
use crate::prepare::{Preparer, Shared};
use crate::read::{Clocks, Reading};
use crate::summary::Summary;
use crate::task::Task;
use crate::window::Window;
use crate::wire;
use crate::write::{Source, Writing, number_communicators};
use crate::{Options, Progress, Stage};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;
use vef_format::capture::{Capture, legacy};
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// Records that are ordered and resolved at a time: at least so many in all, which fit into a core's own cache with all that
/// becomes of them, and so many a task, so that what a task needs at hand is fetched once for several records.
const WINDOW: (usize, usize) = (1 << 13, 16);

/// Mixes the capture at `capture` (a directory, or a `VEFT.main`) into the trace `output`, version 3: a container if its
/// name ends in `.vefx`, else text.
///
/// # Errors
/// See [`MixError`]. There is no output file then; one that was there before stays as it was.
pub fn mix(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Summary, MixError> {
    alone_or_among(capture, output, options, progress, None)
}

/// As [`mix`], the work shared with the other processes of `job`, all of which must call this alike. The file is the
/// same to the byte. The process of rank 0 writes it, and has the summary or the error; the others have what little
/// they know, or [`MixError::Elsewhere`].
///
/// # Errors
/// As [`mix`], and [`MixError::Job`].
pub fn mix_among(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
    job: &Job,
) -> Result<Summary, MixError> {
    alone_or_among(capture, output, options, progress, Some(job))
}

fn alone_or_among(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
    job: Option<&Job>,
) -> Result<Summary, MixError> {
    let mixed = match contained::named(output) {
        true => container(capture, output, options, progress, job),
        false => text(capture, output, options, progress, job),
    };
    mixed.map_err(|error| error.of_trace(output))
}

/// Mixes into a container, by way of text.
fn container(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
    job: Option<&Job>,
) -> Result<Summary, MixError> {
    let draft = Draft::beside(output)?;
    let summary = text(capture, draft.path(), options, progress, job)?;
    let outcome = match job {
        Some(job) if job.rank() > 0 => Ok(()),
        _ => open(capture, options)
            .and_then(|capture| contained::write(&capture, &draft, output, options, &summary, progress)),
    };
    agreed(job, outcome).map(|()| summary)
}

fn open(capture: &Path, options: &Options) -> Result<Capture, MixError> {
    let unknown = match options.skip_unknown {
        true => legacy::UnknownEvents::Skip,
        false => legacy::UnknownEvents::Refuse,
    };
    let older = legacy::Options { unknown, op_codes: None };
    Ok(Capture::open_with(capture, &older)?)
}

/// Mixes into text.
fn text(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
    job: Option<&Job>,
) -> Result<Summary, MixError> {
    // Processes of a job share the cores of their node.
    let jobs = if job.is_some() { options.jobs.max(1) } else { options.jobs };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|source| MixError::Threads { jobs, source })?;
    pool.install(|| {
        let opened = open(capture, options);
        let opened = agreed(job, opened)?;
        let reading = Reading::new(&opened, capture, options, progress);
        Mix {
            reading,
            options,
            progress,
            job,
            output,
            summary: Summary::default(),
            matched: Matched::default(),
        }
        .run()
    })
}

/// What came of a step, if all processes came through it.
fn agreed<T>(job: Option<&Job>, outcome: Result<T, MixError>) -> Result<T, MixError> {
    match job {
        None => outcome,
        Some(job) => job.agree(outcome),
    }
}

struct Mix<'a> {
    reading: Reading<'a>,
    options: &'a Options,
    progress: &'a dyn Progress,
    job: Option<&'a Job>,
    output: &'a Path,
    summary: Summary,
    matched: Matched,
}

/// What the first reading gave.
struct Read {
    parts: Vec<Range<u32>>,
    /// Of parts that lie in a file: what each tells each.
    told: Option<(Spill, Vec<Vec<Place>>)>,
    /// The tasks, if there is only one part.
    kept: Vec<Task>,
    rolls: Rolls,
    zeros: Vec<u64>,
}

/// What all parts and processes know of each other.
struct Common {
    known: Vec<Known>,
    /// The number that all know each of one's own communicators by.
    names: Vec<u32>,
    /// The operations on each of one's own communicators.
    operations: Vec<Operations>,
    /// Those that all know.
    all_operations: Vec<Operations>,
    lenient: bool,
    shifts: Vec<i64>,
    /// Where windows end.
    ends: Vec<u64>,
}

impl<'a> Mix<'a> {
    fn run(mut self) -> Result<Summary, MixError> {
        self.summary.tasks = self.reading.capture.tasks();
        let begun = Instant::now();
        // A place that cannot be written to shows before the work, not after it.
        let output = match self.job {
            Some(job) if job.rank() > 0 => Ok(None),
            _ => Output::create(self.output).map(Some),
        };
        let output = agreed(self.job, output)?;
        let communicators = Communicators::new(self.summary.tasks);
        let outcome = self.read(&communicators);
        let mut read = agreed(self.job, outcome)?;
        let common = self.agree(&communicators, &mut read)?;
        let walked = Instant::now();
        self.summary.times.walk = walked - begun;
        // In parts, what they prepare goes to a file; else it is prepared when its turn comes.
        let shared = Shared::new(&common.operations, &self.options.op_codes);
        let partners;
        let mut sources = match read.told.take() {
            Some((spill, told)) => {
                let blocks = self.match_parts(&communicators, &read, &spill, &told, &common, &shared)?;
                self.summary.spilled = Bytes(spill.bytes());
                vec![Source::Spilled(spill, blocks)]
            }
            None => {
                let outcome = self.match_all(&communicators, &read, &common);
                partners = agreed(self.job, outcome)?;
                read.kept.par_iter_mut().for_each(|task| {
                    task.sends.forget_numbers();
                    task.receives.forget_numbers();
                });
                let part = read.parts[0].clone();
                // One for each thread but that which gives ids.
                let sources = (rayon::current_num_threads() - 1).max(1);
                let many = read.kept.len().div_ceil(sources).max(1);
                let shifts = common.shifts[part.start as usize..part.end as usize].chunks(many);
                let tasks = read.kept.chunks(many).zip(partners.chunks(many)).zip(shifts);
                (part.step_by(many).map(Rank))
                    .zip(tasks)
                    .map(|(first, ((tasks, partners), shifts))| {
                        Source::Here(Preparer::new(first, tasks, partners, shifts, &shared))
                    })
                    .collect()
            }
        };
        let counted = self.count(&common);
        agreed(self.job, counted)?;
        let matched = Instant::now();
        self.summary.times.matching = matched - walked;
        self.progress.begin(Stage::Output, self.summary.records);
        let (communicators, traced) =
            number_communicators(self.summary.tasks, &common.known, &common.all_operations);
        self.summary.communicators = communicators.len() as u64;
        let writing = Writing { ends: &common.ends, communicators: &communicators, traced: &traced };
        let outcome = match (self.job, &output) {
            (Some(job), None) => writing.serve(sources, job, &common.names),
            (job, Some(output)) => {
                sources.extend(job.map(|job| Source::Elsewhere(Tokens::new(job, common.ends.len()))));
                writing.write(sources, output, &mut self.summary, self.progress)
            }
            (None, None) => Ok(()),
        };
        agreed(self.job, outcome)?;
        output.map_or(Ok(()), Output::finish)?;
        self.summary.times.output = matched.elapsed();
        Ok(self.summary)
    }

    /// Reads all events of this process's share.
    fn read(&mut self, communicators: &Communicators) -> Result<Read, MixError> {
        let tasks = self.summary.tasks;
        let share = self.job.map_or(0..tasks, |job| job.share(tasks));
        let parts = match self.job {
            // More processes are the way to less memory.
            Some(job) => {
                self.fits(job, &share, communicators)?;
                vec![share]
            }
            None => self.reading.plan(share, communicators)?,
        };
        let again = if parts.len() > 1 { 2 } else { 1 };
        self.progress.begin(Stage::Walk, u64::from(tasks) * again);
        let mut told = match parts.len() {
            1 => None,
            _ => Some((Spill::beside(self.output)?, Vec::new())),
        };
        let (mut kept, mut rolls, mut zeros) = (Vec::new(), Rolls::default(), Vec::new());
        for part in &parts {
            let walked = self.reading.walk(part.clone(), communicators)?;
            kept = self.summary.add_walked(part.start, walked);
            for (rank, task) in (part.start..).map(Rank).zip(&kept) {
                rolls.add(rank, task);
                zeros.push(task.zero.0);
            }
            if let Some((spill, told)) = &mut told {
                let sent = ends(Rank(part.start), &kept, &parts, &|comm| comm);
                told.push(sent.iter().map(|sent| spill.add(sent)).collect::<Result<_, _>>()?);
                self.reading.sample(part.clone(), &kept, &zeros, None);
                kept = Vec::new();
            }
        }
        if let Some(operation) = rolls.operation(|called| self.options.op_codes.code(called).is_none()) {
            return Err(MixError::NoCode(operation));
        }
        Ok(Read { parts, told, kept, rolls, zeros })
    }

    /// Whether `share`, which is kept in memory, needs no more than each process of `job` was allowed.
    fn fits(&self, job: &Job, share: &Range<u32>, communicators: &Communicators) -> Result<(), MixError> {
        let Some(allowed) = self.options.memory else { return Ok(()) };
        let parts = self.reading.plan(share.clone(), communicators)?.len() as u32;
        if parts < 2 {
            return Ok(());
        }
        let enough = job.size().saturating_mul(parts).min(self.summary.tasks);
        Err(MixError::Share { tasks: share.clone(), allowed, processes: job.size(), enough })
    }

    /// What the parts or processes must know of each other: communicators, collectives, clocks, windows.
    fn agree(&mut self, communicators: &Communicators, read: &mut Read) -> Result<Common, MixError> {
        let summary = &mut self.summary;
        let mut known = communicators.known();
        let mut names: Vec<u32> = (0..known.len() as u32).collect();
        if let Some(job) = self.job {
            job.gather_walked(summary)?;
            read.zeros = job.all_zeros(&read.zeros)?;
            (names, known) = job.all_communicators(communicators, summary.tasks)?;
        }
        let lenient = self.options.lenient || !summary.killed.is_empty();
        let name = |own: u32| names[own as usize];
        let rolls = std::mem::take(&mut read.rolls);
        let mut all_operations = match self.job {
            None => rolls.compare(&known, lenient).map_err(MixError::Disagreement)?,
            Some(job) => job.compare(rolls, &name, &known, lenient)?,
        };
        if self.options.lower_collectives.is_some() {
            // They agree; their messages are matched like all others.
            all_operations.fill(Operations::default());
        }
        let operations = names.iter().map(|&name| all_operations[name as usize]).collect();
        let shifts = Clocks::of(self.reading.capture, &read.zeros);
        if read.told.is_none() {
            self.reading.sample(read.parts[0].clone(), &read.kept, &read.zeros, Some(&shifts));
        }
        let samples = std::mem::replace(&mut self.reading.samples, Samples::new());
        let window = WINDOW.0.max(WINDOW.1 * summary.tasks as usize);
        let ends = match self.job {
            None => samples.ends(window),
            // What the process of rank 0 has under way comes on top of its share.
            Some(job) => job.ends(samples, WINDOW.0.max(window / 4))?,
        };
        Ok(Common { known, names, operations, all_operations, lenient, shifts, ends })
    }

    /// Matches the tasks that are in memory, among themselves and with those of other processes.
    fn match_all(
        &mut self,
        communicators: &Communicators,
        read: &Read,
        common: &Common,
    ) -> Result<Vec<Partners>, MixError> {
        self.progress.begin(Stage::Matching, 0);
        let first = Rank(read.parts[0].start);
        let mut matching = Matching::new(first, &read.kept);
        if let Some(job) = self.job {
            let shares: Vec<_> = job.shares(self.summary.tasks);
            let name =
                |own: u32| on_plain(own, |own| common.names.get(own as usize).copied()).unwrap_or(NONE);
            let mut own_of = vec![NONE; common.known.len()];
            (0..).zip(&common.names).for_each(|(own, &name)| own_of[name as usize] = own);
            let own = |name: u32| {
                on_plain(name, |name| own_of.get(name as usize).copied().filter(|&own| own != NONE))
            };
            job.exchange(
                |to| ends(first, &read.kept, &shares[to..=to], &name).swap_remove(0),
                |told| Ok(matching.hear(&told, &own)?),
            )?;
        }
        let room = |rank: Rank, receive: u32| self.reading.room(rank, receive, communicators);
        let (partners, matched) = matching.finish(&room);
        self.matched = matched;
        Ok(partners)
    }

    /// Matches part by part, and prepares the windows of each.
    fn match_parts(
        &mut self,
        communicators: &Communicators,
        read: &Read,
        spill: &Spill,
        told: &[Vec<Place>],
        common: &Common,
        shared: &Shared<'_>,
    ) -> Result<Vec<Blocks>, MixError> {
        let mut blocks = Vec::new();
        let mut all = Matched::default();
        for (at, part) in read.parts.iter().enumerate() {
            let walked = self.reading.walk(part.clone(), communicators)?;
            let tasks: Vec<Task> = walked.into_iter().map(|walked| walked.task).collect();
            let first = Rank(part.start);
            let mut matching = Matching::new(first, &tasks);
            for told in told.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, told)| told[at]) {
                matching.hear(&spill.read(told)?, &Some)?;
            }
            let room = |rank: Rank, receive: u32| self.reading.room(rank, receive, communicators);
            let (partners, matched) = matching.finish(&room);
            all.merge(matched);
            let shifts = &common.shifts[part.start as usize..part.end as usize];
            let mut preparer = Preparer::new(first, &tasks, &partners, shifts, shared);
            let mut window = Window::default();
            let mut prepared = Blocks::default();
            for &end in &common.ends {
                window.clear();
                preparer.fill(end, &mut window);
                prepared.add(spill, &wire::encode(&window, &|comm| comm))?;
            }
            blocks.push(prepared);
        }
        self.matched = all;
        Ok(blocks)
    }

    /// Brings the counts to those of the trace, and refuses what has no partner.
    fn count(&mut self, common: &Common) -> Result<(), MixError> {
        let mut matched = std::mem::take(&mut self.matched);
        if let Some(job) = self.job {
            job.gather_matched(&mut matched)?;
            if job.rank() > 0 {
                return Ok(());
            }
        }
        let summary = &mut self.summary;
        summary.add_matched(matched);
        if !summary.unmatched.is_empty() && !common.lenient {
            return Err(MixError::Unmatched(Box::new(std::mem::take(&mut summary.unmatched))));
        }
        let operations = &common.all_operations;
        let dropped = &mut summary.dropped;
        dropped.collectives = operations.iter().map(|operations| operations.incomplete_parts).sum();
        summary.messages -= dropped.sends + dropped.cancelled + dropped.empty_self;
        summary.local_collectives -= dropped.collectives;
        summary.collectives = operations.iter().map(|operations| operations.complete).sum();
        summary.records = summary.messages + summary.marks + summary.local_collectives;
        let most = u64::from(NONE - 2);
        match summary.messages + summary.marks > most || summary.collectives > most {
            true => Err(MixError::TooMany("lines of one kind")),
            false => Ok(()),
        }
    }
}

/// Translates the number of a communicator; that of its lowered collectives goes with it.
fn on_plain(number: u32, translate: impl Fn(u32) -> Option<u32>) -> Option<u32> {
    const LOWERED: u32 = 1 << 31;
    translate(number & !LOWERED).map(|plain| plain | number & LOWERED)
}
