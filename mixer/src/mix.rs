//! The stages of a mix, one after the other.

use crate::channels::NONE;
use crate::communicators::{Communicators, Known};
use crate::error::MixError;
use crate::matching::{Operations, Partners, match_collectives, match_messages};
use crate::order::Sweep;
use crate::output::Output;
use crate::prepare::{Preparer, Window};
use crate::resolve::{Line, Resolver, Traced};
use crate::summary::{Summary, Unmatched};
use crate::task::{Manner, Task, Walk};
use crate::{Options, Progress, Stage};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use vef_format::capture::{Capture, Ending, Layout, legacy};
use vef_format::ids::{CommId, Rank};
use vef_format::record::{Communicator, Header, Version};
use vef_format::text::{WriteError, Writer};
use vef_format::units::Picos;

/// Picoseconds in one unit of a trace's times: captures are in nanoseconds.
const CLOCK: Picos = Picos(1000);
/// Records that are ordered and resolved at a time: at least so many in all, and so many a task, so that what a task
/// needs at hand is fetched once for several records.
const WINDOW: (usize, usize) = (1 << 15, 16);

/// Mixes the capture at `capture` (a directory, or a `VEFT.main`) into the trace `output`, version 3.
///
/// # Errors
/// See [`MixError`]. There is no output file then; one that was there before stays as it was.
pub fn mix(
    capture: &Path,
    output: &Path,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Summary, MixError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.jobs)
        .build()
        .map_err(|source| MixError::Threads { jobs: options.jobs, source })?;
    pool.install(|| {
        let unknown = match options.skip_unknown {
            true => legacy::UnknownEvents::Skip,
            false => legacy::UnknownEvents::Refuse,
        };
        let older = legacy::Options { unknown, op_codes: None };
        let capture = Capture::open_with(capture, &older)?;
        Mix { capture, options, progress, summary: Summary::default() }.run(output)
    })
}

struct Mix<'a> {
    capture: Capture,
    options: &'a Options,
    progress: &'a dyn Progress,
    summary: Summary,
}

/// A task, and what its file says beyond its events.
struct Walked {
    task: Task,
    skipped: u64,
    torn: u64,
}

impl Mix<'_> {
    fn run(mut self, output: &Path) -> Result<Summary, MixError> {
        self.summary.tasks = self.capture.tasks();
        let begun = Instant::now();
        let (mut tasks, known) = self.walk()?;
        let walked = Instant::now();
        let lenient = self.options.lenient || !self.summary.killed.is_empty();
        let (partners, operations) = self.matching(&tasks, &known, lenient)?;
        tasks.par_iter_mut().for_each(|task| {
            task.sends.forget_numbers();
            task.receives.forget_numbers();
        });
        let matched = Instant::now();
        self.write(output, &tasks, &partners, &known, &operations)?;
        self.summary.times.walk = walked - begun;
        self.summary.times.matching = matched - walked;
        self.summary.times.output = matched.elapsed();
        Ok(self.summary)
    }

    fn manner(&self) -> Manner<'_> {
        Manner {
            by_length: self.capture.layout() == Layout::Prospector,
            with_room: false,
            lower: self.options.lower_collectives.as_ref(),
        }
    }

    /// Reads all events.
    fn walk(&mut self) -> Result<(Vec<Task>, Vec<Known>), MixError> {
        let tasks = self.capture.tasks();
        self.progress.begin(Stage::Walk, tasks.into());
        let communicators = Communicators::new(tasks);
        let walks: Vec<_> = (0..tasks)
            .into_par_iter()
            .map(|rank| {
                let walked = walk(&self.capture, Rank(rank), &communicators, self.manner());
                self.progress.advance(1);
                walked
            })
            .collect();
        let mut all = Vec::with_capacity(walks.len());
        for (rank, walked) in (0..tasks).map(Rank).zip(walks) {
            let Walked { task, skipped, torn } = walked?;
            let counts = task.counts;
            self.summary.events += counts.events;
            self.summary.messages += counts.messages;
            self.summary.marks += counts.marks;
            self.summary.local_collectives += counts.collectives;
            self.summary.bytes.0 = self.summary.bytes.0.saturating_add(counts.bytes);
            self.summary.negative_times += counts.negative_times;
            self.summary.unknown_requests += counts.unknown_requests;
            self.summary.skipped_unknown += skipped;
            self.summary.torn += torn;
            for (name, &tally) in &task.not_representable {
                self.summary.not_representable.entry(name.clone()).or_default().merge(tally);
            }
            if !counts.finalized {
                self.summary.killed.push(rank);
            }
            all.push(task);
        }
        Ok((all, communicators.finish()))
    }

    /// Matches messages and collectives, and takes what will be dropped out of the counts.
    fn matching(
        &mut self,
        tasks: &[Task],
        known: &[Known],
        lenient: bool,
    ) -> Result<(Vec<Partners>, Vec<Operations>), MixError> {
        self.progress.begin(Stage::Matching, 0);
        let mut operations = match_collectives(tasks, known, lenient).map_err(MixError::Disagreement)?;
        if self.options.lower_collectives.is_some() {
            // They agree; their messages are matched like all others.
            operations.fill(Operations::default());
        }
        // Which room a receive had is not kept; it is read again for the few that are reported.
        let room = |rank: Rank, receive: u32| {
            let communicators = Communicators::new(self.capture.tasks());
            let manner = Manner { with_room: true, ..self.manner() };
            let walked = walk(&self.capture, rank, &communicators, manner).ok()?;
            walked.task.room?.get(receive as usize).copied()
        };
        let mut partners = match_messages(tasks, &room);
        let mut unmatched = Unmatched::default();
        let dropped = &mut self.summary.dropped;
        for partner in &mut partners {
            self.summary.matched += partner.matched;
            dropped.sends += partner.unmatched.sends;
            dropped.cancelled += partner.cancelled;
            dropped.empty_self += partner.empty_self;
            self.summary.bytes.0 = self.summary.bytes.0.saturating_sub(partner.dropped_bytes);
            unmatched.merge(std::mem::take(&mut partner.unmatched));
        }
        if !unmatched.is_empty() && !lenient {
            return Err(MixError::Unmatched(Box::new(unmatched)));
        }
        self.summary.unmatched = unmatched;
        dropped.collectives = operations.iter().map(|operations| operations.incomplete_parts).sum();
        self.summary.messages -= dropped.sends + dropped.cancelled + dropped.empty_self;
        self.summary.local_collectives -= dropped.collectives;
        self.summary.collectives = operations.iter().map(|operations| operations.complete).sum();
        let summary = &mut self.summary;
        summary.records = summary.messages + summary.marks + summary.local_collectives;
        if summary.messages + summary.marks > u64::from(NONE - 2) || summary.collectives > u64::from(NONE - 2)
        {
            return Err(MixError::TooMany("lines of one kind"));
        }
        Ok((partners, operations))
    }

    /// Orders, resolves and writes.
    fn write(
        &mut self,
        output: &Path,
        tasks: &[Task],
        partners: &[Partners],
        known: &[Known],
        operations: &[Operations],
    ) -> Result<(), MixError> {
        self.progress.begin(Stage::Output, self.summary.records);
        let (communicators, traced) = number_communicators(self.capture.tasks(), known, operations);
        self.summary.communicators = communicators.len() as u64;
        let header = Header {
            version: Version::V3,
            tasks: self.capture.tasks(),
            messages: self.summary.messages + self.summary.marks,
            communicators: self.summary.communicators,
            collectives: self.summary.collectives,
            local_collectives: self.summary.local_collectives,
            received: 0,
            clock: CLOCK,
        };
        let output = Output::create(output)?;
        let failed = |error| output.error(error);
        let mut writer = Writer::new(output.file()?, &header).map_err(failed)?;
        for communicator in &communicators {
            writer.communicator(communicator.id, &communicator.members).map_err(failed)?;
        }
        let shifts = self.shifts(tasks);
        let starts: Vec<_> = tasks.iter().zip(&shifts).map(|(task, &shift)| (&task.starts, shift)).collect();
        let sweep = Sweep::new(&starts, WINDOW.0.max(WINDOW.1 * tasks.len()));
        let mut preparer = Preparer::new(tasks, partners, sweep, &self.options.op_codes);
        let mut resolver = Resolver::new(tasks, &traced);
        // Three windows are under way at once: one is prepared, one resolved, one written.
        let (mut window, mut window_ahead) = (Window::default(), Window::default());
        let (mut lines, mut lines_ahead) = (Vec::new(), Vec::new());
        loop {
            let ((written, ()), prepared) = rayon::join(
                || rayon::join(|| put(&mut writer, &lines), || resolver.take(&window, &mut lines_ahead)),
                || preparer.next(&mut window_ahead),
            );
            written.map_err(failed)?;
            self.progress.advance(lines.len() as u64);
            std::mem::swap(&mut lines, &mut lines_ahead);
            std::mem::swap(&mut window, &mut window_ahead);
            if !prepared && lines.is_empty() {
                break;
            }
        }
        resolver.finish()?;
        self.summary.early_receptions = resolver.early;
        writer.finish().map_err(failed)?;
        output.finish()
    }

    /// What to add to the clock of each task to make all clocks one. Tasks of one host share a clock; between
    /// hosts, the wall clocks at `MPI_Init` tell.
    fn shifts(&self, tasks: &[Task]) -> Vec<i64> {
        let mut hosts = BTreeMap::new();
        let mut first = 0;
        let shift_of = |(rank, task): (u32, &Task)| {
            let info = self.capture.rank(Rank(rank));
            let (host, wall) = info.map_or(("", 0), |info| (&info.host, info.realtime));
            let between = wall.wrapping_sub(task.zero.0) as i64;
            if rank == 0 {
                first = between;
            }
            *hosts.entry(host).or_insert(if wall == 0 { 0 } else { between.wrapping_sub(first) })
        };
        (0..).zip(tasks).map(shift_of).collect()
    }
}

/// Writes a window.
fn put<W: Write>(writer: &mut Writer<W>, lines: &[Line]) -> Result<(), WriteError> {
    lines.iter().try_for_each(|line| match line {
        Line::Message(message) => writer.message(message),
        Line::Collective(collective) => writer.collective(collective),
    })
}

/// The walk over one task's events to their end.
fn walk(
    capture: &Capture,
    rank: Rank,
    communicators: &Communicators,
    manner: Manner<'_>,
) -> Result<Walked, MixError> {
    let mut events = capture.events(rank)?;
    let mut walk = Walk::new(rank, communicators, manner);
    while let Some(event) = events.next()? {
        walk.event(&event)?;
    }
    let skipped = events.skipped().values().sum();
    let torn = match events.ending() {
        Ending::Cut { torn } => torn.into(),
        Ending::Finished | Ending::Stopped => 0,
    };
    Ok(Walked { task: walk.finish(), skipped, torn })
}

/// The communicators of a trace: all tasks first, then those with collectives, by the lowest member that knows them
/// and its number for them. And the place there of each, by identity.
fn number_communicators(
    tasks: u32,
    known: &[Known],
    operations: &[Operations],
) -> (Vec<Communicator>, Vec<Traced>) {
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.sort_unstable_by_key(|&at| known[at].order);
    let first = |is: &dyn Fn(&Known) -> bool| order.iter().copied().find(|&at| is(&known[at]));
    let world = first(&|known| known.world).or_else(|| first(&|known| known.group.is_all(tasks)));
    let rest = order.iter().copied().filter(|&at| Some(at) != world && operations[at].complete > 0);
    let mut traced: Vec<_> = operations
        .iter()
        .map(|operations| Traced { id: CommId(NONE), complete: operations.complete })
        .collect();
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
