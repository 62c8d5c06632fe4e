//! Drives the stages of a mix: of a whole capture in memory, of one in parts, or of one process's share.

use crate::agreement::{Operations, Rolls};
use crate::available;
use crate::bytes::{Coded, Encoder, Garbled, Reader};
use crate::channels::NONE;
use crate::communicators::{Communicators, Known, Names};
use crate::error::MixError;
use crate::job::{Job, WindowRequests};
use crate::matching::{Ends, Matched, Matches, Matching, Partners, channel_ends, put_renamed};
use crate::order::{End, Samples};
use crate::output::Output;
use crate::parts::{Parts, Place, Spill};
use crate::prepare::{Preparer, Shared};
use crate::read::{FirstReading, Reading, Walked, sample};
use crate::sink::{AllNotes, KeptNotes, Sink, take_notes};
use crate::stations;
use crate::summary::Summary;
use crate::task::Task;
use crate::thread_notes::Sequence;
use crate::window::Window;
use crate::wire;
use crate::write::{Source, Writing, number_communicators};
use crate::{Options, Progress, Stage};
use hashbrown::HashMap;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;
use vef_format::capture::{Capture, legacy};
use vef_format::format::named_container;
use vef_format::ids::Rank;
use vef_format::record::{Communicator, Header, Version};
use vef_format::units::{Bytes, Picos};

/// Records in a window: at least this many in all, so that one step works within a core's own cache, and at least this
/// many a task, so that the data of a task is fetched once for several records.
const WINDOW: (usize, usize) = (1 << 13, 4);

/// Picoseconds in one time unit of the trace: captures are in nanoseconds.
const CLOCK: Picos = Picos(1000);

/// Mixes the capture at `capture` (a directory, or a `VEFT.main`) into the version 3 trace `output`: a container if the
/// name ends in `.vefx`, otherwise text.
///
/// # Errors
/// See [`MixError`]. On error no output file is created; an existing file is left unchanged.
pub fn mix(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Summary, MixError> {
    mix_with(capture, output, options, progress, None)
}

/// Like [`mix`], but shares the work with the other processes of `job`, all of which must call this function with the
/// same arguments. The file is identical to that of [`mix`]. The process of rank 0 writes it and returns the summary or
/// the error; the others return partial counts, or [`MixError::ReportedByPeer`].
///
/// # Errors
/// Those of [`mix`], and [`MixError::Job`].
pub fn mix_among(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
    job: &Job,
) -> Result<Summary, MixError> {
    mix_with(capture, output, options, progress, Some(job))
}

fn mix_with(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
    job: Option<&Job>,
) -> Result<Summary, MixError> {
    // Only rank 0 has an output.
    let begin = |begin: &dyn Fn() -> Result<Output, MixError>| match job {
        Some(job) if job.rank() > 0 => Ok(None),
        _ => begin().map(Some),
    };
    // Fail on an output that cannot be written before doing the work.
    let trace = agreed(job, begin(&|| Output::create(output)))?;
    let mut summary = mix_into(capture, output, trace.as_ref(), options, progress, job)?;
    agreed(job, trace.map_or(Ok(()), Output::finish))?;
    let own = available::peak().unwrap_or(0);
    let peaks = job.map_or(Ok(vec![own]), |job| job.all(&own))?;
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

/// Mixes into `trace`; `output` is the open file, in the writing process only.
fn mix_into(
    capture: &Path,
    trace: &Path,
    output: Option<&Output>,
    options: &Options,
    progress: &dyn Progress,
    job: Option<&Job>,
) -> Result<Summary, MixError> {
    // The processes of a job share the cores of their node: one thread by default.
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

/// Returns the outcome of a step if it succeeded in all processes, otherwise an error.
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

/// Result of the first reading.
struct Read {
    /// The tasks, if they are one part.
    kept: Vec<Task>,
    /// Data spilled by each part for the second reading, if there are several.
    left: Option<Left>,
    rolls: Rolls,
    zeros: Vec<u64>,
}

/// Data that parts leave in a temporary file.
struct Left {
    spill: Spill,
    /// For each own part, its channel ends for each part.
    ends: Vec<Vec<Place>>,
    /// For each own part, a sample of its records' starts.
    starts: Vec<Place>,
}

/// What all parts and processes know in common.
struct Common {
    known: Vec<Known>,
    names: Names,
    /// Complete operations of each of this process's communicators, by [`Identity`](crate::communicators::Identity).
    operations: Vec<Operations>,
    /// The same of the communicators of all processes, by common number.
    all_operations: Vec<Operations>,
    lenient: bool,
    shifts: Vec<i64>,
    /// Ends of the windows.
    ends: Vec<End>,
}

impl<'a> Mix<'a> {
    fn run(mut self, output: Option<&Output>) -> Result<Summary, MixError> {
        self.summary.tasks = self.reading.capture.tasks();
        self.summary.hosts = self.reading.capture.hosts();
        let begun = Instant::now();
        let communicators = Communicators::new(self.summary.tasks);
        let (parts, whole) = self.plan(&communicators)?;
        let outcome = self.read(&communicators, &parts, whole);
        let mut read = agreed(self.job, outcome)?;
        let common = self.agree(&communicators, &parts, &mut read)?;
        let walked = Instant::now();
        self.summary.times.walk = walked - begun;
        self.progress.begin(Stage::Matching, 0);
        // Parts prepare their records now and spill them; a single part prepares each window when the output needs it.
        let shared = Shared::new(&common.operations, &self.options.op_codes);
        let (partners, spill, notes);
        let mut sources = match read.left {
            Some(left) => {
                let outcome = self.match_parts(&communicators, &parts, &left, &common, &shared);
                let blocks;
                (blocks, notes) = agreed(self.job, outcome)?;
                spill = Some(left.spill);
                spill.iter().zip([blocks]).map(|(spill, blocks)| Source::Spilled(spill, blocks)).collect()
            }
            None => {
                let outcome = self.match_all(&communicators, &parts, &read.kept, &common);
                let matches = agreed(self.job, outcome)?;
                let part = parts.all()[parts.own().start].clone();
                notes = take_notes(Rank(part.start), &mut read.kept, &matches, &common.operations);
                spill = None;
                let partners_of = |(task, matches)| Partners::of(task, matches);
                partners = read.kept.par_iter_mut().zip(matches).map(partners_of).collect::<Vec<_>>();
                // Several preparers let several threads prepare windows at once.
                let sources = (rayon::current_num_threads() - 1).clamp(1, stations::MOST - 1);
                let many = read.kept.len().div_ceil(sources).max(1);
                let shifts = common.shifts[part.start as usize..part.end as usize].chunks(many);
                let tasks = read.kept.chunks(many).zip(partners.chunks(many)).zip(shifts);
                (part.step_by(many).map(Rank))
                    .zip(tasks)
                    .map(|(first, ((tasks, partners), shifts))| {
                        Source::Here(Preparer::new(first, tasks, partners, shifts, &shared))
                    })
                    .collect::<Vec<_>>()
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
        let begun = output.map(|output| self.begin(output, &communicators)).transpose();
        let mut sink = agreed(self.job, begun)?;
        let [before, after] = notes;
        let outcome = self.write_notes(before, spill.as_ref(), &HashMap::new(), sink.as_mut().zip(output));
        agreed(self.job, outcome)?;
        let writing = Writing { ends: &common.ends, traced: &traced };
        let outcome = match (self.job, sink.as_mut().zip(output)) {
            (Some(job), None) => writing.serve(sources, job, common.names.common()).map(|()| HashMap::new()),
            (job, Some(output)) => {
                sources.extend(job.map(|job| Source::Peers(WindowRequests::new(job, common.ends.len()))));
                writing.write(sources, output, &mut self.summary, self.progress)
            }
            (None, None) => Ok(HashMap::new()),
        };
        let sequences = agreed(self.job, outcome)?;
        let outcome = self.write_notes(after, spill.as_ref(), &sequences, sink.as_mut().zip(output));
        agreed(self.job, outcome)?;
        let outcome = sink.zip(output).map_or(Ok(()), |(sink, output)| sink.finish(output));
        agreed(self.job, outcome)?;
        self.summary.times.output = matched.elapsed();
        Ok(self.summary)
    }

    /// Begins the trace in `output`.
    fn begin<'o>(&self, output: &'o Output, communicators: &[Communicator]) -> Result<Sink<'o>, MixError> {
        let summary = &self.summary;
        let header = Header {
            version: Version::V3,
            tasks: summary.tasks,
            messages: summary.messages + summary.marks,
            communicators: summary.communicators,
            collectives: summary.collectives,
            local_collectives: summary.local_collectives,
            received: 0,
            clock: CLOCK,
        };
        let about = (self.reading.capture, &self.options.op_codes, summary);
        Sink::new(output, &header, communicators, about)
    }

    /// Writes notes of all tasks into the container, by ascending task.
    fn write_notes(
        &self,
        notes: Vec<KeptNotes>,
        spill: Option<&Spill>,
        sequences: &HashMap<Rank, Sequence>,
        mut sink: Option<(&mut Sink<'_>, &Output)>,
    ) -> Result<(), MixError> {
        if !named_container(self.trace) {
            return Ok(());
        }
        let mut own = notes.into_iter().map(|notes| notes.read(spill));
        let write = |bytes: &[u8]| match &mut sink {
            Some((sink, output)) => sink.notes(bytes, sequences, output),
            None => Ok(()),
        };
        match self.job {
            Some(job) => job.collect(own, write),
            None => own.try_for_each({
                let mut write = write;
                move |bytes| write(&bytes?)
            }),
        }
    }

    /// Reads this process's share to measure its memory. Returns the parts of all processes, and the tasks of this one if
    /// they fit into its memory.
    fn plan(&self, communicators: &Communicators) -> Result<(Parts, Option<Vec<Walked>>), MixError> {
        let tasks = self.summary.tasks;
        let allowed = match (self.options.memory, self.job) {
            (Some(allowed), _) => allowed.0,
            (None, job) => {
                let half = available::free().map_or(u64::MAX, |free| free / 2);
                half / job.map_or(Ok(1), Job::on_this_node)?.max(1)
            }
        };
        let share = self.job.map_or(0..tasks, |job| job.share(tasks));
        self.progress.begin(Stage::Walk, share.len() as u64);
        let read = self.reading.read(share.clone(), allowed, communicators, named_container(self.trace));
        let (own, whole) = match agreed(self.job, read)? {
            FirstReading::Whole(walked) => (vec![share], Some(walked)),
            FirstReading::Parts(parts) => (parts, None),
        };
        let parts = match self.job {
            None => Parts::new([own], 0),
            Some(job) => job.all_parts(&own, tasks)?,
        };
        Ok((parts, whole))
    }

    /// Takes over the tasks that were read; for several parts, reads each again and spills what other parts need.
    fn read(
        &mut self,
        communicators: &Communicators,
        parts: &Parts,
        mut whole: Option<Vec<Walked>>,
    ) -> Result<Read, MixError> {
        let own = &parts.all()[parts.own()];
        let mut left = match whole {
            Some(_) => None,
            None => {
                self.progress.begin(Stage::Walk, 2 * parts.share().len() as u64);
                let spill = Spill::new(self.trace, self.options.temporary.as_deref())?;
                Some(Left { spill, ends: Vec::new(), starts: Vec::new() })
            }
        };
        let (mut kept, mut rolls, mut zeros) = (Vec::new(), Rolls::default(), Vec::new());
        for (number, part) in parts.own().zip(own) {
            let walked = match whole.take() {
                Some(walked) => walked,
                None => self.reading.walk(part.clone(), communicators, false)?,
            };
            kept = self.summary.add_walked(part.start, walked);
            for (rank, task) in (part.start..).map(Rank).zip(&kept) {
                rolls.add(rank, &task.calls);
                zeros.push(task.zero.0);
            }
            if let Some(left) = &mut left {
                left.add(Rank(part.start), &kept, &parts.all_but(number))?;
                kept = Vec::new();
            }
        }
        if let Some(operation) = rolls.operation(|called| self.options.op_codes.code(called).is_none()) {
            return Err(MixError::NoCode(operation));
        }
        Ok(Read { kept, left, rolls, zeros })
    }

    /// Combines what parts and processes need of each other: communicators, collectives, clocks, windows.
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
            read.zeros = job.all(&read.zeros)?.concat();
            (names, known) = job.all_communicators(communicators, summary.tasks)?;
        }
        let lenient = self.options.lenient || !summary.killed.is_empty();
        let rolls = std::mem::take(&mut read.rolls);
        let mut all_operations = match self.job {
            None => rolls.compare(&known, lenient).map_err(MixError::Disagreement)?,
            Some(job) => job.compare(rolls, &names, &known, lenient)?,
        };
        if self.options.lower_collectives.is_some() {
            // Lowered collectives are messages by now.
            all_operations.fill(Operations::default());
        }
        let operations = names.common().iter().map(|&name| all_operations[name as usize]).collect();
        let shifts = self.reading.capture.clock_shifts(&read.zeros);
        let own = &shifts[parts.share()];
        let samples = match &read.left {
            None => Ok(sample(Rank(parts.share().start as u32), &read.kept, own)),
            Some(left) => left.sample(own),
        };
        let samples = agreed(self.job, samples)?;
        let window = WINDOW.0.max(WINDOW.1 * summary.tasks as usize);
        let ends = match self.job {
            None => samples.ends(window),
            Some(job) => job.ends(samples, window)?,
        };
        Ok(Common { known, names, operations, all_operations, lenient, shifts, ends })
    }

    /// Matches the tasks in memory with each other and with those of other processes.
    fn match_all(
        &mut self,
        communicators: &Communicators,
        parts: &Parts,
        kept: &[Task],
        common: &Common,
    ) -> Result<Vec<Matches>, MixError> {
        let first = Rank(parts.share().start as u32);
        let ends = Ends::of(kept);
        let mut matching = Matching::new(first, kept, &ends);
        if let Some(job) = self.job {
            let export = |part: usize| {
                let to = &parts.all()[part..=part];
                Ok(channel_ends(first, kept, &ends, to, &|own| common.names.of_own(own)).swap_remove(0))
            };
            let own = |name| common.names.own(name);
            job.exchange(parts, export, |_, exported| Ok(matching.import_peer(&exported, &own)?))?;
        }
        let room = |rank: Rank, receive: u32| self.reading.room(rank, receive, communicators);
        let (matches, matched) = matching.finish(&room);
        self.matched = matched;
        Ok(matches)
    }

    /// Matches part by part, and spills the prepared windows of each.
    fn match_parts(
        &mut self,
        communicators: &Communicators,
        parts: &Parts,
        left: &Left,
        common: &Common,
        shared: &Shared<'_>,
    ) -> Result<(Vec<std::vec::IntoIter<Place>>, AllNotes), MixError> {
        let Left { spill, ends, .. } = left;
        let own = parts.own();
        // Channel ends received from other processes, for each own part.
        let mut imported = vec![Vec::new(); own.len()];
        if let Some(job) = self.job {
            let export = |part: usize| left.export_for(part, &common.names);
            job.exchange(parts, export, |part, exported| {
                imported[part - own.start].push(spill.add(&exported)?);
                Ok(())
            })?;
        }
        let with_notes = named_container(self.trace);
        let (mut blocks, mut notes) = (Vec::new(), AllNotes::default());
        let mut all = Matched::default();
        for (number, imported) in own.zip(imported) {
            let part = &parts.all()[number];
            let walked = self.reading.walk(part.clone(), communicators, with_notes)?;
            let mut tasks: Vec<Task> = walked.into_iter().map(|walked| walked.task).collect();
            let first = Rank(part.start);
            let own_ends = Ends::of(&tasks);
            let mut matching = Matching::new(first, &tasks, &own_ends);
            for exported in ends {
                matching.import_peer(&spill.read(exported[number])?, &Some)?;
            }
            for exported in imported {
                matching.import_peer(&spill.read(exported)?, &|name| common.names.own(name))?;
            }
            let room = |rank: Rank, receive: u32| self.reading.room(rank, receive, communicators);
            let (matches, matched) = matching.finish(&room);
            drop(own_ends);
            all.merge(matched);
            let taken = take_notes(first, &mut tasks, &matches, &common.operations);
            for (notes, taken) in notes.iter_mut().zip(taken) {
                for kept in taken {
                    notes.push(kept.spill(spill)?);
                }
            }
            let partners_of = |(task, matches)| Partners::of(task, matches);
            let partners: Vec<_> = tasks.par_iter_mut().zip(matches).map(partners_of).collect();
            let shifts = &common.shifts[part.start as usize..part.end as usize];
            let mut preparer = Preparer::new(first, &tasks, &partners, shifts, shared);
            let mut window = Window::default();
            let prepare = |&end: &End| {
                window.clear();
                preparer.fill(end, &mut window);
                spill.add(&wire::encode(&window, &|comm| comm))
            };
            let prepared: Vec<Place> = common.ends.iter().map(prepare).collect::<Result<_, _>>()?;
            blocks.push(prepared.into_iter());
        }
        self.matched = all;
        self.summary.spilled = Bytes(spill.bytes());
        Ok((blocks, notes))
    }

    /// Subtracts dropped records from the counts; unmatched messages are an error unless lenient.
    fn count(&mut self, common: &Common) -> Result<(), MixError> {
        let mut matched = std::mem::take(&mut self.matched);
        if let Some(job) = self.job {
            job.gather_matched(&mut matched)?;
            self.summary.spilled = Bytes(job.all(&self.summary.spilled.0)?.iter().sum());
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
    /// Spills the channel ends of `tasks`, the first of which is `first`, for the parts `to`.
    fn add(&mut self, first: Rank, tasks: &[Task], to: &[Range<u32>]) -> Result<(), MixError> {
        let exported = channel_ends(first, tasks, &Ends::of(tasks), to, &|comm| comm);
        self.ends.push(exported.iter().map(|exported| self.spill.add(exported)).collect::<Result<_, _>>()?);
        let mut starts = Encoder::default();
        for (rank, task) in (first.0..).zip(tasks) {
            Samples::of(Rank(rank), &task.records, 0).put(&mut starts);
        }
        self.starts.push(self.spill.add(&starts.0)?);
        Ok(())
    }

    /// Samples the starts of all records; `shifts` convert each task's clock to the common clock.
    fn sample(&self, shifts: &[i64]) -> Result<Samples, MixError> {
        let mut all = Samples::new();
        let mut shifts = shifts.iter();
        for &place in &self.starts {
            let starts = self.spill.read(place)?;
            let mut starts = Reader::new(&starts);
            while starts.more() {
                let &shift = shifts.next().ok_or(Garbled)?;
                let mut samples = Samples::get(&mut starts)?;
                samples.shift(shift);
                all.merge(samples);
            }
        }
        Ok(all)
    }

    /// The channel ends of all own parts for a part of another process.
    fn export_for(&self, part: usize, names: &Names) -> Result<Vec<u8>, MixError> {
        let mut encoder = Encoder::default();
        for exported in &self.ends {
            put_renamed(&self.spill.read(exported[part])?, &|own| names.of_own(own), &mut encoder)?;
        }
        Ok(encoder.0)
    }
}
