//! Drives the stages of a mix. There is one path for a capture in memory and in parts, by one process and by several: a
//! process has one or more parts, and a job one or more processes.
//!
//! 1. [`Mix::divide`] reads the tasks for the first time, divides them into parts that fit into memory, and finds the
//!    communicators and clocks that all processes have in common. A share that fits stays in memory; otherwise each further
//!    stage reads each part again.
//! 2. [`Mix::survey`] counts, and stores what each part needs of the others to match its messages; [`Mix::agree`] combines the
//!    counts, compares collectives and chooses windows.
//! 3. [`Mix::match_parts`] matches the messages of each part. Several parts prepare their records now and store them,
//!    window by window; a single one prepares each window when the output needs it.
//! 4. [`Mix::write`] merges, numbers and writes the windows.

use crate::agreement::{Operations, Rolls};
use crate::available;
use crate::communicators::{CommFacts, Communicators, ids_in_trace};
use crate::counts::Counts;
use crate::error::MixError;
use crate::index::CommIndex;
use crate::job::{Job, WindowRequests};
use crate::matching::{Ends, Matched, Matching, Partners, export};
use crate::order::{End, Samples};
use crate::output::Output;
use crate::parts::{Parts, memory_for_tasks};
use crate::prepare::{Preparer, Shared};
use crate::read::{Read, Reading, sample};
use crate::sink::{AllNotes, Sink};
use crate::stations;
use crate::store::{Store, Stored};
use crate::summary::Summary;
use crate::task::{Asked, Task};
use crate::thread_notes::Sequences;
use crate::two_phase::{self, Access};
use crate::window::Window;
use crate::wire;
use crate::write::{Source, Writing};
use crate::{Options, Progress, Stage};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;
use vef_format::capture::{Capture, legacy};
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
    mix_among(capture, output, options, progress, &Job::alone())
}

/// Like [`mix`], but shares the work with the other processes of `job`, all of which must call this function with the
/// same arguments. The file is identical to that of [`mix`]. The process of rank 0 writes it and returns the summary or
/// the error; the others return part of the summary, or [`MixError::ReportedByPeer`].
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
    // Fail on an output that cannot be written before doing the work. Only rank 0 has one.
    let created = (job.rank() == 0).then(|| Output::create(output)).transpose();
    let trace = job.agree(created)?;
    // The processes of a job share the cores of their node: one thread by default.
    let jobs = if job.size() > 1 { options.jobs.max(1) } else { options.jobs };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = job.agree(pool.map_err(|source| MixError::Threads { jobs, source }))?;
    let mut summary = pool.install(|| {
        let opened = job.agree(open(capture, options, trace.as_ref()))?;
        job.agree(job.have_one_capture(capture, &opened))?;
        let reading = Reading::new(&opened, output, options, progress);
        Mix { reading, options, progress, job, trace: output, output: trace.as_ref() }.run()
    })?;
    job.agree(trace.map_or(Ok(()), Output::finish))?;
    let peaks = job.all(available::peak().unwrap_or(0))?;
    summary.peak_memory = Bytes(peaks.into_iter().max().unwrap_or(0));
    Ok(summary)
}

/// Opens the capture, which must not contain the output.
fn open(capture: &Path, options: &Options, output: Option<&Output>) -> Result<Capture, MixError> {
    let unknown = match options.skip_unknown {
        true => legacy::UnknownEvents::Skip,
        false => legacy::UnknownEvents::Refuse,
    };
    let opened = Capture::open_with(capture, &legacy::Options { unknown, op_codes: None })?;
    match output.map(Output::path).filter(|path| opened.has_file(path)) {
        Some(path) => Err(MixError::OwnInput(path.to_path_buf())),
        None => Ok(opened),
    }
}

struct Mix<'a> {
    reading: Reading<'a>,
    options: &'a Options,
    progress: &'a dyn Progress,
    job: &'a Job,
    /// Path of the trace.
    trace: &'a Path,
    /// The open trace, in the writing process.
    output: Option<&'a Output>,
}

/// What is known after the first reading.
struct Division {
    parts: Parts,
    /// The communicators of all processes.
    communicators: Communicators,
    /// For each task, the offset from its clock to the common clock.
    shifts: Vec<i64>,
    /// What parts leave for other parts and for the output.
    store: Store,
}

/// What is known of this process's tasks after each part has been seen.
struct Survey {
    /// The tasks and their channel ends, if they are one part.
    held: Option<(Vec<Task>, Vec<Ends>)>,
    /// For each own part, its channel ends for each part.
    exports: Vec<Vec<Stored>>,
    counts: Counts,
    rolls: Rolls,
    samples: Samples,
}

/// What all processes know after the survey.
struct Common {
    counts: Counts,
    communicators: Vec<CommFacts>,
    /// The operations of each communicator.
    operations: Vec<Operations>,
    /// Whether messages without a partner, and collectives that a member did not call, are dropped.
    lenient: bool,
    /// Ends of the windows.
    windows: Vec<End>,
}

/// The parts of this process after matching.
#[derive(Default)]
struct MatchedParts {
    /// The tasks of a single part.
    held: Vec<(Task, Partners)>,
    /// The prepared windows of each of several parts.
    windows: Vec<Vec<Stored>>,
    notes: AllNotes,
    matched: Matched,
}

impl Mix<'_> {
    fn run(self) -> Result<Summary, MixError> {
        let begun = Instant::now();
        let job = self.job;
        let (division, held) = self.divide()?;
        let mut survey = job.agree(self.survey(&division, held))?;
        let mut common = self.agree(&division, &mut survey)?;
        let capture = self.reading.capture;
        let mut summary = Summary {
            tasks: self.reading.tasks(),
            io_servers: self.reading.servers(),
            interfaces: self.reading.interfaces(),
            hosts: capture.hosts(),
            spawned: capture.spawned(),
            left_out: capture.left_out(),
            ..Summary::default()
        };
        summary.add_counts(std::mem::take(&mut common.counts));
        let walked = Instant::now();
        summary.times.walk = walked - begun;
        self.progress.begin(Stage::Matching, 0);
        let shared = Shared::new(&common.operations, &self.options.op_codes);
        let parts = job.agree(self.match_parts(&division, survey, &common.windows, &shared))?;
        self.count_matched(&parts, &division.store, &common, &mut summary)?;
        let matched = Instant::now();
        summary.times.matching = matched - walked;
        self.progress.begin(Stage::Output, summary.records);
        self.write(&division, &common, parts, &shared, &mut summary)?;
        summary.times.output = matched.elapsed();
        Ok(summary)
    }

    /// Reads this process's share to measure its memory, and divides it into parts. Also returns the tasks if they are one part.
    fn divide(&self) -> Result<(Division, Option<Vec<Task>>), MixError> {
        let (job, tasks) = (self.job, self.reading.tasks());
        let room = memory_for_tasks(self.options, job.on_this_node()?);
        let share = job.share(tasks);
        self.progress.begin(Stage::Walk, share.len() as u64);
        let of_capture = self.reading.capture.tasks();
        let own = Communicators::new(of_capture);
        let Read { zeros, mut asked, mut accesses, mut partitioned, parts, tasks: mut held } =
            job.agree(self.reading.read(share.clone(), room, &own))?;
        let parts = job.all_parts(&parts, tasks)?;
        let shifts = self.reading.capture.clock_shifts(&job.all(zeros)?.concat());
        let (communicators, mut names) = (Communicators::new(of_capture), Vec::new());
        for of_process in job.all(own.all())? {
            names.push(communicators.merge(of_process)?);
        }
        let names = &names[job.rank() as usize];
        held.iter_mut().flatten().for_each(|task| task.rename_communicators(names));
        let comms = asked.iter_mut().flat_map(|(_, list)| list).map(|asked| &mut asked.comm);
        comms.for_each(|comm| *comm = names[comm.index()]);
        let requests = partitioned.iter_mut().flat_map(|(_, list)| list);
        requests.for_each(|request| request.comm = names[request.comm.index()]);
        let own_accesses = accesses.iter_mut().flat_map(|(_, list)| list);
        own_accesses.for_each(|access| access.comm = names[access.comm.index()]);
        self.plan(&share, job.all(accesses)?.concat(), &communicators, &shifts, &mut asked, &mut held)?;
        let asked = job.all(asked)?.into_iter().flatten();
        let mut targets = self.reading.answer(&share, asked, &shifts);
        targets.extend(self.reading.tell(&share, job.all(partitioned)?.into_iter().flatten()));
        targets.sort_unstable();
        targets.dedup();
        if held.is_some() && !targets.is_empty() {
            self.progress.begin(Stage::Walk, targets.len() as u64);
        }
        let answering = held.iter_mut().try_for_each(|held| {
            let read = |target: &Rank| self.reading.read_again(target.0..target.0 + 1, &communicators);
            let read: Vec<_> = targets.par_iter().map(read).collect::<Result<_, MixError>>()?;
            for (target, task) in targets.iter().zip(read.into_iter().flatten()) {
                held[(target.0 - share.start) as usize] = task;
            }
            Ok::<_, MixError>(())
        });
        job.agree(answering)?;
        let store = if held.is_some() {
            Ok(Store::in_memory())
        } else {
            self.progress.begin(Stage::Walk, 2 * share.len() as u64);
            Store::in_file(self.trace, self.options.temporary.as_deref())
        };
        Ok((Division { parts, communicators, shifts, store: job.agree(store)? }, held))
    }

    /// Reads the tasks again that access files in two phases, for which the `accesses` of all tasks must be known.
    fn plan(
        &self,
        share: &Range<u32>,
        accesses: Vec<(Rank, Vec<Access>)>,
        communicators: &Communicators,
        shifts: &[i64],
        asked: &mut Vec<(Rank, Vec<Asked>)>,
        held: &mut Option<Vec<Task>>,
    ) -> Result<(), MixError> {
        let (facts, capture) = (communicators.all(), self.reading.capture);
        let group = |comm: CommIndex| facts[comm.index()].group.iter().collect::<Vec<Rank>>();
        let host = |task: Rank| capture.rank(task).map_or("", |info| &info.host);
        let plans = two_phase::plans(accesses, group, host, |task| shifts[task.index()]);
        let planned = self.reading.plan(share, plans, group);
        if !planned.is_empty() {
            self.progress.begin(Stage::Walk, planned.len() as u64);
        }
        let holds = held.is_some();
        let read = |task: &Rank| {
            let mut read = self.reading.read(task.0..task.0 + 1, u64::MAX, communicators)?;
            Ok::<_, MixError>((read.asked, read.tasks.take().filter(|_| holds)))
        };
        let read: Result<Vec<_>, MixError> = planned.par_iter().map(read).collect();
        asked.retain(|(task, _)| !planned.contains(task));
        for (task, (own, again)) in planned.iter().zip(self.job.agree(read)?) {
            asked.extend(own);
            if let (Some(held), Some(again)) = (held.as_mut(), again.into_iter().flatten().next()) {
                held[(task.0 - share.start) as usize] = again;
            }
        }
        Ok(())
    }

    /// Counts the tasks of each part and compares their collectives, and stores what other parts need to match their messages.
    fn survey(&self, division: &Division, mut tasks: Option<Vec<Task>>) -> Result<Survey, MixError> {
        let Division { parts, communicators, shifts, store } = division;
        let is_held = tasks.is_some();
        let mut survey = Survey {
            held: None,
            exports: Vec::new(),
            counts: Counts::default(),
            rolls: Rolls::default(),
            samples: Samples::default(),
        };
        for number in parts.own() {
            let part = parts.tasks(number);
            let mut tasks = match tasks.take() {
                Some(tasks) => tasks,
                None => self.reading.read_again(part.clone(), communicators)?,
            };
            for (rank, task) in (part.start..).map(Rank).zip(&mut tasks) {
                survey.counts.merge(std::mem::take(&mut task.counts));
                survey.rolls.add(rank, &task.calls);
            }
            let first = Rank(part.start);
            survey.samples.merge(sample(first, &tasks, &shifts[range(&part)]));
            let ends = Ends::of(&tasks);
            let exports = export(first, &tasks, &ends, &parts.all_but(number)).into_iter();
            survey.exports.push(exports.map(|exported| store.add(exported)).collect::<Result<_, _>>()?);
            survey.held = is_held.then_some((tasks, ends));
        }
        match survey.rolls.operation(|called| self.options.op_codes.code(called).is_none()) {
            Some(operation) => Err(MixError::NoCode(operation)),
            None => Ok(survey),
        }
    }

    /// Combines the surveys of all processes.
    fn agree(&self, division: &Division, survey: &mut Survey) -> Result<Common, MixError> {
        let job = self.job;
        let communicators = division.communicators.all();
        let mut counts = Counts::default();
        job.gather(std::mem::take(&mut survey.counts))?.into_iter().for_each(|later| counts.merge(later));
        let counts = job.spread(counts)?;
        let lenient = self.options.lenient || !counts.killed.is_empty();
        let mut rolls = Rolls::default();
        job.gather(std::mem::take(&mut survey.rolls))?.into_iter().for_each(|later| rolls.merge(later));
        let compared = match job.rank() {
            0 => rolls.compare(&communicators, lenient).map_err(MixError::Disagreement),
            _ => Ok(Vec::new()),
        };
        let mut operations = job.spread(job.agree(compared)?)?;
        if self.options.lower_collectives.is_some() {
            // Lowered collectives are messages by now.
            operations.fill(Operations::default());
        }
        let mut samples = Samples::default();
        // Limits the total that rank 0 receives.
        survey.samples.thin_among(job.size());
        job.gather(std::mem::take(&mut survey.samples))?.into_iter().for_each(|later| samples.merge(later));
        let window = WINDOW.0.max(WINDOW.1 * self.reading.tasks() as usize);
        let windows = job.spread(samples.ends(window))?;
        Ok(Common { counts, communicators, operations, lenient, windows })
    }

    /// Matches each part, with the other parts of this process and those of others.
    fn match_parts(
        &self,
        division: &Division,
        Survey { mut held, exports, .. }: Survey,
        windows: &[End],
        shared: &Shared<'_>,
    ) -> Result<MatchedParts, MixError> {
        let Division { parts, communicators, shifts, store } = division;
        let own = parts.own();
        let is_held = held.is_some();
        // Channel ends received from other processes, for each own part.
        let mut imported: Vec<Vec<Stored>> = own.clone().map(|_| Vec::new()).collect();
        let export_for = |part: usize| {
            let exports = exports.iter().map(|exports| store.read(&exports[part]));
            Ok(exports.collect::<Result<Vec<_>, _>>()?.concat())
        };
        self.job.exchange(parts, export_for, |part, exported| {
            imported[part - own.start].push(store.add(exported)?);
            Ok(())
        })?;
        let mut all = MatchedParts::default();
        for (number, imported) in own.zip(&imported) {
            let part = parts.tasks(number);
            let first = Rank(part.start);
            let (mut tasks, ends) = match held.take() {
                Some(held) => held,
                None => {
                    let tasks = self.reading.read_again(part.clone(), communicators)?;
                    let ends = Ends::of(&tasks);
                    (tasks, ends)
                }
            };
            let imports = exports.iter().map(|exports| &exports[number]).chain(imported);
            let imports = imports.map(|stored| store.read(stored)).collect::<Result<Vec<_>, _>>()?;
            let matching = Matching::new(first, &tasks, &ends, imports.iter().map(|import| &**import))?;
            let room = |rank: Rank, receive: u32| self.reading.room(rank, receive, communicators);
            let (matches, matched) = matching.run(&room);
            drop((ends, imports));
            all.matched.merge(matched);
            all.notes.take(first, &mut tasks, &matches, &shifts[range(&part)], shared, store)?;
            let with_partners = |(mut task, matches)| {
                let partners = Partners::of(&mut task, matches);
                (task, partners)
            };
            let tasks: Vec<_> = tasks.into_par_iter().zip(matches).map(with_partners).collect();
            if is_held {
                all.held = tasks;
                continue;
            }
            let mut preparer = Preparer::new(first, &tasks, &shifts[range(&part)], shared);
            let mut window = Window::default();
            let prepare = |&end: &End| {
                window.clear();
                preparer.fill(end, &mut window);
                store.add(wire::encode(&window))
            };
            all.windows.push(windows.iter().map(prepare).collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    /// Subtracts dropped records from the counts; unmatched messages are an error unless lenient.
    fn count_matched(
        &self,
        parts: &MatchedParts,
        store: &Store,
        common: &Common,
        summary: &mut Summary,
    ) -> Result<(), MixError> {
        let mut matched = Matched::default();
        self.job.gather(parts.matched.clone())?.into_iter().for_each(|later| matched.merge(later));
        summary.spilled = Bytes(self.job.all(store.spilled())?.iter().sum());
        let counted = match self.job.rank() {
            0 => summary.add_matched(matched, &common.operations, common.lenient),
            _ => Ok(()),
        };
        self.job.agree(counted)
    }

    /// Writes the trace, or in processes of higher ranks sends the records to rank 0.
    fn write(
        &self,
        Division { store, shifts, .. }: &Division,
        common: &Common,
        MatchedParts { held, windows, notes, .. }: MatchedParts,
        shared: &Shared<'_>,
        summary: &mut Summary,
    ) -> Result<(), MixError> {
        let job = self.job;
        let has_operations = |comm: usize| common.operations[comm].complete > 0;
        let (communicators, ids) = ids_in_trace(summary.tasks, &common.communicators, has_operations);
        summary.communicators = communicators.len() as u64;
        let begun = self.output.map(|output| self.begin(output, &communicators, summary)).transpose();
        let mut sink = job.agree(begun)?;
        job.agree(self.write_notes(&notes.placed, store, &Sequences::default(), &mut sink))?;
        let mut sources = Vec::new();
        if windows.is_empty() {
            // Several preparers let several threads prepare windows at once.
            let preparers = (rayon::current_num_threads() - 1).clamp(1, stations::MOST - 1);
            let many = held.len().div_ceil(preparers).max(1);
            let share = job.share(summary.tasks);
            let shifts = shifts[range(&share)].chunks(many);
            for ((first, tasks), shifts) in share.step_by(many).zip(held.chunks(many)).zip(shifts) {
                sources.push(Source::Preparer(Preparer::new(Rank(first), tasks, shifts, shared)));
            }
        } else {
            sources.push(Source::Stored(store, windows.into_iter().map(Vec::into_iter).collect()));
        }
        let writing = Writing { ends: &common.windows, communicators: &ids };
        let written = match &mut sink {
            Some(sink) => {
                sources.push(Source::Peers(WindowRequests::new(job, common.windows.len())));
                writing.write(sources, sink, summary, self.progress)
            }
            None => writing.serve(sources, job).map(|()| Sequences::default()),
        };
        let sequences = job.agree(written)?;
        job.agree(self.write_notes(&notes.unplaced, store, &sequences, &mut sink))?;
        job.agree(sink.map_or(Ok(()), Sink::finish))
    }

    /// Begins the trace in `output`.
    fn begin<'o>(
        &self,
        output: &'o Output,
        communicators: &[Communicator],
        summary: &Summary,
    ) -> Result<Sink<'o>, MixError> {
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

    /// Writes notes of the tasks of all processes, by ascending task.
    fn write_notes(
        &self,
        notes: &[Stored],
        store: &Store,
        sequences: &Sequences,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<(), MixError> {
        let own = notes.iter().map(|notes| Ok(store.read(notes)?.into_owned()));
        self.job.collect(own, |notes| match sink {
            Some(sink) => sink.notes(notes, sequences),
            None => Ok(()),
        })
    }
}

/// The range of `tasks` in a list.
fn range(tasks: &Range<u32>) -> Range<usize> {
    tasks.start as usize..tasks.end as usize
}
