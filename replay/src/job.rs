//! A job: one trace, where its tasks run, when it starts and how its computing times differ from the trace's.

use crate::captured::{self, CapturedRecord};
use crate::error::{BuildError, ReplayError};
use crate::labels::Labels;
use crate::options::SendCompletion;
use crate::part::{Filter, Part, PartError, Selection, add_answers, captured_time, iterations, phase};
use crate::source::{Container, Feed, LoadError, Loaded, Stream, is_container};
use collectives::choose::Table;
use hashbrown::HashMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use vef_format::account::Account;
use vef_format::container::{About, ContainerError, Span};
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::raw::Raw;
use vef_format::units::{Picos, Ticks};

/// A trace to be replayed, and how.
#[derive(Debug)]
pub struct Job {
    pub(crate) source: Feed,
    pub(crate) nodes: Option<Vec<u32>>,
    pub(crate) start: Picos,
    /// By rank; the last one also holds for the ranks behind it. Empty for 1.
    pub(crate) factors: Vec<f64>,
    pub(crate) computing: Option<Box<dyn Computing>>,
    pub(crate) table: Option<Table>,
    pub(crate) skipped: Vec<Ticks>,
    /// As captured, by rank; empty if the first records stay as they are.
    pub(crate) spans: Vec<Span>,
    pub(crate) from_launch: bool,
    pub(crate) on_call: bool,
    pub(crate) part: Option<Arc<Selection>>,
}

/// What of a run is replayed.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// Whether it begins with the launch ([`Job::from_launch`]).
    pub from_launch: bool,
    /// The part that is replayed, if not all is.
    pub part: Option<Arc<Selection>>,
}

/// Computing times that differ from those of the trace, record by record.
pub trait Computing: Debug + Send + Sync {
    /// The computing time before `record`, number `number` (from 0) of `task`. It is called once for each record, for those of a
    /// task in their order. The result must not depend on records of other tasks: partitions have other ones.
    fn time(&mut self, task: Rank, number: u64, record: &Raw) -> Ticks;

    /// The same for another reading of the trace, from its start.
    fn again(&self) -> Box<dyn Computing>;
}

impl Job {
    /// The trace in the file `path`, text or container; it is read while it is replayed.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        Ok(match is_container(path)? {
            false => Self::stream(Stream::open(path)?),
            true => Self::container(Container::open(path)?),
        })
    }

    /// A trace in memory.
    pub fn loaded(trace: &Arc<Loaded>) -> Self {
        Self::from_feed(Feed::Loaded(trace.clone().source()))
    }

    /// A text trace that is read while it is replayed.
    pub fn stream(trace: Stream) -> Self {
        Self::from_feed(Feed::Stream(Box::new(trace)))
    }

    /// A container that is read while it is replayed.
    pub fn container(trace: Container) -> Self {
        Self::from_feed(Feed::Container(Box::new(trace)))
    }

    fn from_feed(source: Feed) -> Self {
        Self {
            source,
            nodes: None,
            start: Picos::ZERO,
            factors: Vec::new(),
            computing: None,
            table: None,
            skipped: Vec::new(),
            spans: Vec::new(),
            from_launch: false,
            on_call: false,
            part: None,
        }
    }

    /// Number of tasks.
    pub fn tasks(&self) -> u32 {
        self.source.header().tasks
    }

    /// How many of them, the first ones, ran the program: all but the storage servers and network interfaces of `vef mix`. Only a container
    /// tells.
    pub fn program_tasks(&self) -> u32 {
        self.about().map_or(self.tasks(), |about| about.program_tasks(self.tasks()))
    }

    /// How many of the tasks, the first ones, a placement places: all but network interfaces, which are on the nodes of the program's tasks.
    pub fn placed_tasks(&self) -> u32 {
        let interfaces = self.about().and_then(|about| about.interfaces(self.tasks()));
        interfaces.map_or(self.tasks(), |interfaces| interfaces.start)
    }

    fn about(&self) -> Option<&About> {
        let Feed::Container(container) = &self.source else { return None };
        Some(container.reader().about())
    }

    /// Number of records of all tasks: messages, marks, and parts of collectives, as the header says. [`Stats::records`](crate::Stats::records) reaches it.
    pub fn records(&self) -> u64 {
        let header = self.source.header();
        header.messages.saturating_add(header.local_collectives)
    }

    /// Number of end nodes that its placement needs: one more than the largest node of any task.
    pub fn nodes_needed(&self) -> u64 {
        let placed = self.nodes.as_ref().map(|nodes| nodes.iter().take(self.placed_tasks() as usize).max());
        match placed {
            Some(largest) => largest.map_or(0, |&largest| u64::from(largest) + 1),
            None => self.placed_tasks().into(),
        }
    }

    /// The node of each task, if enough are placed; else how many are.
    pub(crate) fn all_nodes(&self) -> Result<Vec<u32>, usize> {
        let placed = self.placed_tasks();
        match &self.nodes {
            Some(nodes) => nodes_of_all(self.tasks(), placed, nodes).ok_or(nodes.len()),
            None => Ok((0..placed).chain(0..self.tasks() - placed).collect()),
        }
    }

    /// Checks the number of tasks against the length of the trace, so that no per-task memory is allocated on the header's word alone.
    /// `number` is the job's number in errors.
    ///
    /// # Errors
    /// [`BuildError::Tasks`].
    pub fn check_tasks(&self, number: u32) -> Result<(), BuildError> {
        match self.source.header().promises_too_many_tasks(self.source.most_tasks()) {
            true => Err(BuildError::Tasks { job: number, tasks: self.tasks() }),
            false => Ok(()),
        }
    }

    /// The trace's clock: how long a tick of its computing times lasts, without the time factor.
    pub fn clock(&self) -> Picos {
        self.source.header().clock
    }

    /// The node of each task as the trace was captured, by rank, if a container says it: hosts are numbered in the order of
    /// their first tasks.
    pub fn captured_nodes(&self) -> Result<Option<Vec<u32>>, LoadError> {
        let Feed::Container(container) = &self.source else { return Ok(None) };
        let Some(hosts) = container.reader().hosts()? else { return Ok(None) };
        let mut numbers = HashMap::new();
        let mut number = |host| {
            let next = numbers.len() as u32;
            *numbers.entry(host).or_insert(next)
        };
        Ok(Some(hosts.into_iter().map(&mut number).collect()))
    }

    /// When each task could use MPI where the trace was captured, by rank, if a container says it.
    pub fn captured_spans(&self) -> Result<Option<Vec<Span>>, LoadError> {
        let Feed::Container(container) = &self.source else { return Ok(None) };
        Ok(container.reader().spans()?)
    }

    /// The same of the [program's tasks](Job::program_tasks).
    pub fn program_spans(&self) -> Result<Option<Vec<Span>>, LoadError> {
        let Feed::Container(container) = &self.source else { return Ok(None) };
        Ok(container.reader().program_spans()?)
    }

    /// What is known of these records, tasks and numbers (from 0), as they were captured: nothing, if the trace is no container.
    pub fn captured_records(&self, wanted: &[(Rank, u64)]) -> Result<Vec<CapturedRecord>, LoadError> {
        let Feed::Container(container) = &self.source else {
            return Ok(vec![CapturedRecord::default(); wanted.len()]);
        };
        Ok(captured::records(container.shared_reader(), wanted)?)
    }

    /// Tags, functions and phases of the trace's records, if it is a container.
    pub fn labels(&self) -> Result<Option<Labels>, LoadError> {
        let Feed::Container(container) = &self.source else { return Ok(None) };
        Ok(Some(Labels::new(container.shared_reader())?))
    }

    /// Where the time of each task went when the trace was captured, in order, with the sum of its records' computing times; in units of
    /// [`Job::clock`]. None of tasks of which the trace does not tell.
    pub fn captured_accounts(&self) -> Result<Vec<(Rank, Account, Ticks)>, LoadError> {
        let Feed::Container(container) = &self.source else { return Ok(Vec::new()) };
        let reader = container.reader();
        let accounts = reader.accounts()?.into_iter();
        Ok(accounts
            .map(|(task, account)| Ok((task, account, reader.computing_of(task)?)))
            .collect::<Result<_, ContainerError>>()?)
    }

    /// Whether computing times contain what tasks waited for their own sends, a hundredth of them at least, as far as a container says it.
    pub fn computes_send_waits(&self) -> bool {
        self.about().is_some_and(|about| about.facts(About::SEND_WAITS).next().is_some())
    }

    /// Whether computing times contain what tasks spent outside MPI without a core, a hundredth of them at least, as far as a container says it.
    pub fn computes_preempted(&self) -> bool {
        self.about().is_some_and(|about| about.facts(About::PREEMPTED_KEPT).next().is_some())
    }

    /// Which codes stand for which collectives in a text trace that is read while it is replayed; the default codes without it. Others have their own, and
    /// refuse.
    pub fn set_op_codes(&mut self, codes: OpCodes) -> Result<(), BuildError> {
        match &mut self.source {
            Feed::Stream(stream) => {
                stream.set_codes(codes);
                Ok(())
            }
            _ => Err(BuildError::OpCodes),
        }
    }

    /// The end node of each of the [placed tasks](Job::placed_tasks), by rank. Without it, task r is on node r.
    pub fn nodes(mut self, nodes: Vec<u32>) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// When the tasks start; 0 without it.
    pub fn start(mut self, at: Picos) -> Self {
        self.start = at;
        self
    }

    /// The job counts as over until [`Engine::repeat`](crate::Engine::repeat) starts it, at a moment that depends on what happens.
    pub fn on_call(mut self) -> Self {
        self.on_call = true;
        self
    }

    /// Computing that each task leaves out in front of its first record, by rank; none without it. More than there is leaves none.
    pub fn skip(mut self, computing: Vec<Ticks>) -> Self {
        self.skipped = computing;
        self
    }

    /// Whether the run begins with each task's launch or with its return from `MPI_Init`, if the trace records that
    /// ([`Job::captured_spans`]). Without this call, and of other traces, it begins as the first records say: those of
    /// `vef mix` leave start-up out unless it was told to keep it.
    ///
    /// # Errors
    /// As [`Job::captured_spans`].
    pub fn from_launch(&mut self, from_launch: bool) -> Result<(), LoadError> {
        self.spans = self.captured_spans()?.unwrap_or_default();
        self.from_launch = from_launch;
        Ok(())
    }

    /// By what computing times are multiplied (1 without it); the product with the clock is rounded to the
    /// nearest picosecond, halves up.
    pub fn time_factor(self, factor: f64) -> Self {
        self.time_factors(vec![factor])
    }

    /// As [`Job::time_factor`], by rank; the last factor also holds for the ranks behind it.
    pub fn time_factors(mut self, factors: Vec<f64>) -> Self {
        self.factors = factors;
        self
    }

    /// Which algorithm plays which collective of this job; that of all jobs without it ([`Builder::algorithms`](crate::Builder::algorithms)).
    pub fn algorithms(mut self, table: Table) -> Self {
        self.table = Some(table);
        self
    }

    /// Replaces the trace's computing times, before factors are applied.
    pub fn computing(mut self, computing: Box<dyn Computing>) -> Self {
        self.computing = Some(computing);
        self
    }

    /// Reads the trace once more, and gives `see` each record as [`Computing::time`] gets it in a replay whose sends are complete as
    /// `send_completion` says.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn survey(
        &self,
        send_completion: SendCompletion,
        see: &mut dyn FnMut(Rank, &Raw),
    ) -> Result<(), ReplayError> {
        let sends = send_completion != SendCompletion::Eager;
        let mut part = self.part.as_ref().map(|part| Filter::new(part, self.tasks()));
        let seen = self.source.survey(sends, &mut |task, record| match &mut part {
            None => see(task, record),
            Some(part) => {
                let mut record = *record;
                if part.take(task, &mut record).is_some() {
                    see(task, &record);
                }
            }
        });
        seen.map_err(ReplayError::Source)
    }

    /// Finds a part of the run, to be passed to [`Job::part`] of this trace. The trace is read for that.
    ///
    /// # Errors
    /// The trace has no such part, or cannot be read.
    pub fn select(&self, part: &Part) -> Result<Selection, PartError> {
        let (mut stretches, description) = match part {
            Part::Phase { name, entry } => phase(&self.source, name, *entry)?,
            Part::Captured { from, to } => captured_time(&self.source, *from, *to)?,
            Part::Iterations { first, last } => {
                let (stretches, description, number) = iterations(&self.source, *first, *last)?;
                return Selection::new(stretches, (description, Some(number)), &self.source);
            }
        };
        add_answers(&self.source, self.program_tasks(), &mut stretches)?;
        Selection::new(stretches, (description, None), &self.source)
    }

    /// Replays only these records. All tasks begin with their first record of them at [`Job::start`]; what depends on other records
    /// does not wait, and collectives that not all members enter in the part are left out
    /// ([`Engine::left_out`](crate::Engine::left_out)).
    pub fn part(mut self, part: Arc<Selection>) -> Self {
        self.part = Some(part);
        self
    }

    /// [`Job::from_launch`] and [`Job::part`].
    ///
    /// # Errors
    /// As [`Job::captured_spans`].
    pub fn extent(mut self, extent: &Extent) -> Result<Self, LoadError> {
        self.from_launch(extent.from_launch)?;
        self.part.clone_from(&extent.part);
        Ok(self)
    }
}

/// The node of each task, if there is one for each that a placement places: network interfaces are on the nodes of the program's tasks.
pub(crate) fn nodes_of_all(tasks: u32, placed: u32, nodes: &[u32]) -> Option<Vec<u32>> {
    let mut all = nodes.get(..placed as usize)?.to_vec();
    all.extend_from_within(..(tasks - placed) as usize);
    Some(all)
}
