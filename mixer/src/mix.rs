//! The stages of a mix, one after the other: of a whole capture in memory, of one in parts, or of one process's share.

use crate::agreement::{Operations, Rolls};
use crate::available;
use crate::bytes::{Author, Garbled, Reader};
use crate::channels::NONE;
use crate::communicators::{Communicators, Known, Names};
use crate::contained;
use crate::error::MixError;
use crate::job::{Job, Tokens};
use crate::matching::{Matched, Matching, Partners, ends, put_renamed};
use crate::order::Samples;
use crate::output::Output;
use crate::parts::{Blocks, Parts, Place, Spill};
use crate::prepare::{Preparer, Shared};
use crate::read::{Reading, sample};
use crate::stations;
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

/// Records that are ordered and resolved at a time: at least so many in all, of which a core's own cache holds what one step
/// reads and writes, and so many a task, so that what a task needs at hand is fetched once for several records.
const WINDOW: (usize, usize) = (1 << 14, 16);

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
    // The process of rank 0 writes.
    let begin = |begin: &dyn Fn() -> Result<Output, MixError>| match job {
        Some(job) if job.rank() > 0 => Ok(None),
        _ => begin().map(Some),
    };
    // A place that cannot be written to shows before the work, not after it.
    let trace = agreed(job, begin(&|| Output::create(output)))?;
    let mut summary = if contained::named(output) {
        // By way of text.
        let draft = agreed(job, begin(&|| Output::draft(output, options.temporary.as_deref())))?;
        let summary = text(capture, output, draft.as_ref(), options, progress, job)?;
        let contain = |(draft, trace)| {
            contained::write(&open(capture, options)?, draft, trace, options, &summary, progress)
        };
        agreed(job, draft.as_ref().zip(trace.as_ref()).map_or(Ok(()), contain))?;
        summary
    } else {
        text(capture, output, trace.as_ref(), options, progress, job)?
    };
    agreed(job, trace.map_or(Ok(()), Output::finish))?;
    let own = available::peak().unwrap_or(0);
    let peaks = job.map_or(Ok(vec![own]), |job| job.numbers(own))?;
    summary.peak_memory = Bytes(peaks.into_iter().max().unwrap_or(0));
    Ok(summary)
}

fn open(capture: &Path, options: &Options) -> Result<Capture, MixError> {
    let unknown = match options.skip_unknown {
        true => legacy::UnknownEvents::Skip,
        false => legacy::UnknownEvents::Refuse,
    };
    let older = legacy::Options { unknown, op_codes: None };
    Ok(Capture::open_with(capture, &older)?)
}

/// Mixes into the text of `trace`, which the process that writes has begun.
fn text(
    capture: &Path,
    trace: &Path,
    output: Option<&Output>,
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
        let another = |capture: Capture| match output.is_some() && capture.has_file(trace) {
            true => Err(MixError::OwnInput(trace.to_path_buf())),
            false => Ok(capture),
        };
        let opened = agreed(job, opened.and_then(another))?;
        let reading = Reading::new(&opened, capture, options, progress);
        Mix {
            reading,
            options,
            progress,
            job,
            trace,
            summary: Summary::default(),
            matched: Matched::default(),
        }
        .run(output)
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
    trace: &'a Path,
    summary: Summary,
    matched: Matched,
}

/// What the first reading gave.
struct Read {
    /// The tasks, if they are one part.
    kept: Vec<Task>,
    /// Of several parts, what each leaves for the second reading.
    left: Option<Left>,
    rolls: Rolls,
    zeros: Vec<u64>,
}

/// What parts leave in a file.
struct Left {
    spill: Spill,
    /// What each of one's own tells each part.
    ends: Vec<Vec<Place>>,
    /// Some starts of the records of each.
    starts: Vec<Place>,
}

/// What all parts and processes know of each other.
struct Common {
    known: Vec<Known>,
    names: Names,
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
    fn run(mut self, output: Option<&Output>) -> Result<Summary, MixError> {
        self.summary.tasks = self.reading.capture.tasks();
        self.summary.hosts = self.reading.capture.hosts();
        let begun = Instant::now();
        let communicators = Communicators::new(self.summary.tasks);
        let parts = self.plan(&communicators)?;
        let outcome = self.read(&communicators, &parts);
        let mut read = agreed(self.job, outcome)?;
        let common = self.agree(&communicators, &parts, &mut read)?;
        let walked = Instant::now();
        self.summary.times.walk = walked - begun;
        self.progress.begin(Stage::Matching, 0);
        // In parts, what they prepare goes to a file; else it is prepared when its turn comes.
        let shared = Shared::new(&common.operations, &self.options.op_codes);
        let partners;
        let mut sources = match read.left {
            Some(left) => {
                let outcome = self.match_parts(&communicators, &parts, &left, &common, &shared);
                let blocks = agreed(self.job, outcome)?;
                vec![Source::Spilled(left.spill, blocks)]
            }
            None => {
                let outcome = self.match_all(&communicators, &parts, &read.kept, &common);
                partners = agreed(self.job, outcome)?;
                read.kept.par_iter_mut().for_each(|task| {
                    task.sends.forget_numbers();
                    task.receives.forget_numbers();
                });
                let part = parts.all()[parts.own().start].clone();
                // Several, so that several threads prepare, each some tasks' part of another window.
                let sources = (rayon::current_num_threads() - 1).clamp(1, stations::MOST - 1);
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
        let outcome = match (self.job, output) {
            (Some(job), None) => writing.serve(sources, job, common.names.common()),
            (job, Some(output)) => {
                sources.extend(job.map(|job| Source::Elsewhere(Tokens::new(job, common.ends.len()))));
                writing.write(sources, output, &mut self.summary, self.progress)
            }
            (None, None) => Ok(()),
        };
        agreed(self.job, outcome)?;
        self.summary.times.output = matched.elapsed();
        Ok(self.summary)
    }

    /// The parts of all processes, so that each fits into the memory that its process may use.
    fn plan(&self, communicators: &Communicators) -> Result<Parts, MixError> {
        let tasks = self.summary.tasks;
        let allowed = match (self.options.memory, self.job) {
            (Some(allowed), _) => allowed.0,
            (None, job) => {
                let half = available::free().map_or(u64::MAX, |free| free / 2);
                half / job.map_or(Ok(1), Job::on_this_node)?.max(1)
            }
        };
        let share = self.job.map_or(0..tasks, |job| job.share(tasks));
        let own = agreed(self.job, self.reading.plan(share, allowed, communicators))?;
        match self.job {
            None => Ok(Parts::new([own], 0)),
            Some(job) => job.all_parts(&own, tasks),
        }
    }

    /// Reads all events of this process's share.
    fn read(&mut self, communicators: &Communicators, parts: &Parts) -> Result<Read, MixError> {
        let own = &parts.all()[parts.own()];
        let share: u64 = own.iter().map(|part| part.len() as u64).sum();
        self.progress.begin(Stage::Walk, if own.len() > 1 { 2 * share } else { share });
        let mut left = match own {
            [_] => None,
            _ => {
                let spill = Spill::new(self.trace, self.options.temporary.as_deref())?;
                Some(Left { spill, ends: Vec::new(), starts: Vec::new() })
            }
        };
        let (mut kept, mut rolls, mut zeros) = (Vec::new(), Rolls::default(), Vec::new());
        for (number, part) in parts.own().zip(own) {
            let walked = self.reading.walk(part.clone(), communicators)?;
            kept = self.summary.add_walked(part.start, walked);
            for (rank, task) in (part.start..).map(Rank).zip(&kept) {
                rolls.add(rank, task);
                zeros.push(task.zero.0);
            }
            if let Some(left) = &mut left {
                left.add(Rank(part.start), &kept, &parts.but(number))?;
                kept = Vec::new();
            }
        }
        if let Some(operation) = rolls.operation(|called| self.options.op_codes.code(called).is_none()) {
            return Err(MixError::NoCode(operation));
        }
        Ok(Read { kept, left, rolls, zeros })
    }

    /// What the parts or processes must know of each other: communicators, collectives, clocks, windows.
    fn agree(
        &mut self,
        communicators: &Communicators,
        parts: &Parts,
        read: &mut Read,
    ) -> Result<Common, MixError> {
        let summary = &mut self.summary;
        let mut known = communicators.known();
        let mut names = Names::new((0..known.len() as u32).collect());
        if let Some(job) = self.job {
            job.gather_walked(summary)?;
            read.zeros = job.all_zeros(&read.zeros)?;
            (names, known) = job.all_communicators(communicators, summary.tasks)?;
        }
        let lenient = self.options.lenient || !summary.killed.is_empty();
        let rolls = std::mem::take(&mut read.rolls);
        let mut all_operations = match self.job {
            None => rolls.compare(&known, lenient).map_err(MixError::Disagreement)?,
            Some(job) => job.compare(rolls, &names, &known, lenient)?,
        };
        if self.options.lower_collectives.is_some() {
            // They agree; their messages are matched like all others.
            all_operations.fill(Operations::default());
        }
        let operations = names.common().iter().map(|&name| all_operations[name as usize]).collect();
        let shifts = self.reading.capture.clock_shifts(&read.zeros);
        let own = &shifts[parts.share()];
        let samples = match &read.left {
            None => Ok(sample(&read.kept, own)),
            Some(left) => left.sample(own),
        };
        let samples = agreed(self.job, samples)?;
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
        parts: &Parts,
        kept: &[Task],
        common: &Common,
    ) -> Result<Vec<Partners>, MixError> {
        let first = Rank(parts.share().start as u32);
        let mut matching = Matching::new(first, kept);
        if let Some(job) = self.job {
            let tell = |part: usize| {
                let to = &parts.all()[part..=part];
                Ok(ends(first, kept, to, &|own| common.names.of_own(own)).swap_remove(0))
            };
            let own = |name| common.names.own(name);
            job.exchange(parts, tell, |_, told| Ok(matching.hear(&told, &own)?))?;
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
        parts: &Parts,
        left: &Left,
        common: &Common,
        shared: &Shared<'_>,
    ) -> Result<Vec<Blocks>, MixError> {
        let Left { spill, ends, .. } = left;
        let own = parts.own();
        // What other processes tell each part.
        let mut heard = vec![Vec::new(); own.len()];
        if let Some(job) = self.job {
            let tell = |part: usize| left.tell(part, &common.names);
            job.exchange(parts, tell, |part, told| {
                heard[part - own.start].push(spill.add(&told)?);
                Ok(())
            })?;
        }
        let mut blocks = Vec::new();
        let mut all = Matched::default();
        for (number, heard) in own.zip(heard) {
            let part = &parts.all()[number];
            let walked = self.reading.walk(part.clone(), communicators)?;
            let tasks: Vec<Task> = walked.into_iter().map(|walked| walked.task).collect();
            let first = Rank(part.start);
            let mut matching = Matching::new(first, &tasks);
            for told in ends {
                matching.hear(&spill.read(told[number])?, &Some)?;
            }
            for told in heard {
                matching.hear(&spill.read(told)?, &|name| common.names.own(name))?;
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
        self.summary.spilled = Bytes(spill.bytes());
        Ok(blocks)
    }

    /// Brings the counts to those of the trace, and refuses what has no partner.
    fn count(&mut self, common: &Common) -> Result<(), MixError> {
        let mut matched = std::mem::take(&mut self.matched);
        if let Some(job) = self.job {
            job.gather_matched(&mut matched)?;
            self.summary.spilled = Bytes(job.numbers(self.summary.spilled.0)?.iter().sum());
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

impl Left {
    /// Takes what `tasks`, the first of them `first`, must tell those of the parts `to`.
    fn add(&mut self, first: Rank, tasks: &[Task], to: &[Range<u32>]) -> Result<(), MixError> {
        let told = ends(first, tasks, to, &|comm| comm);
        self.ends.push(told.iter().map(|told| self.spill.add(told)).collect::<Result<_, _>>()?);
        let mut starts = Author::default();
        for task in tasks {
            starts.put_bytes(&Samples::of(&task.records, 0).encode(usize::MAX));
        }
        self.starts.push(self.spill.add(&starts.0)?);
        Ok(())
    }

    /// Some starts of all records; `shifts` make each task's clock that of all.
    fn sample(&self, shifts: &[i64]) -> Result<Samples, MixError> {
        let mut all = Samples::new();
        let mut shifts = shifts.iter();
        for &place in &self.starts {
            let starts = self.spill.read(place)?;
            let mut starts = Reader::new(&starts);
            while starts.more() {
                let &shift = shifts.next().ok_or(Garbled)?;
                all.merge(Samples::decode(starts.get_bytes()?, shift)?);
            }
        }
        Ok(all)
    }

    /// What all of these tell a part of another process.
    fn tell(&self, part: usize, names: &Names) -> Result<Vec<u8>, MixError> {
        let mut author = Author::default();
        for told in &self.ends {
            put_renamed(&self.spill.read(told[part])?, &|own| names.of_own(own), &mut author)?;
        }
        Ok(author.0)
    }
}
