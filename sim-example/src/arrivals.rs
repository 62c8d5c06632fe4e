//! Jobs that arrive at a batch system: each runs one of the traces, on nodes that it gets when it starts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use placement::{Allotment, ArrivalList, Backfill, BatchQueue, Wanted};
use replay::{Engine, Picos};
use results::simulation::{ArrivalsReport, ArrivedJob};

use crate::error::SimError;
use crate::places::Places;
use crate::settings::{Arriving, Settings, Workload};
use crate::topology::{TopologyError, TopologySpec};

impl Settings {
    /// Lets the jobs of a list run in place of one run of each trace. `executables` has the traces by the numbers of programs in the list
    /// ([`ArrivalList::programs`]); a second of the list takes `second`. [`TopologySpec::Auto`] becomes a switch with the list's nodes.
    ///
    /// # Errors
    /// The list is empty, a job has no trace with as many tasks as it has processors, or it arrives past the end of time, or the time that it asks for
    /// is unknown and `backfill` depends on it; a trace cannot be opened; its nodes are given, not by a rule.
    pub fn arrive(
        &mut self,
        list: &ArrivalList,
        executables: &[(u64, usize)],
        second: Picos,
        backfill: Backfill,
    ) -> Result<(), SimError> {
        if let Some(job) = self.jobs.iter().position(|job| matches!(job.places, Places::Given(_))) {
            return Err(SimError::GivenPlaces { job: job as u32 });
        }
        let tasks = self.jobs.iter().map(|job| Ok(job.open()?.program_tasks()));
        let traces = list.programs(&tasks.collect::<Result<Vec<_>, SimError>>()?, executables)?;
        let arriving = list.arrivals.iter().zip(traces).map(|(arrival, trace)| {
            let submit = arrival.submit.checked_mul(second.0).map(Picos).ok_or_else(|| {
                let text =
                    format!("submit time {}: past the end of time (2^64 ps, 213 days)", arrival.submit);
                list.error(arrival, text)
            })?;
            let time = match (arrival.time, backfill) {
                (Some(time), _) => Picos(time.saturating_mul(second.0)),
                (None, Backfill::None) => Picos::ZERO,
                (None, Backfill::Easy) => {
                    let text = "backfilling needs the requested time or the run time: both are unknown";
                    return Err(list.error(arrival, text));
                }
            };
            Ok(Arriving { number: arrival.job, trace: trace as u32, submit, time })
        });
        let arriving: Vec<Arriving> = arriving.collect::<Result<_, placement::Error>>()?;
        if arriving.is_empty() {
            return Err(SimError::NoArrivals);
        }
        if let TopologySpec::Auto = self.network.topology {
            let nodes = list.nodes()?.ok_or(SimError::NoMachine)?;
            let text = format!("switch:{nodes}");
            self.network.topology = text.parse().map_err(|problem| TopologyError { text, problem })?;
        }
        (self.arrivals, self.backfill) = (Some(Arc::new(arriving)), backfill);
        Ok(())
    }
}

/// What a trace needs.
#[derive(Debug)]
struct Program {
    /// The node of each task among those of a job.
    places: Vec<u32>,
    nodes: u32,
    allotment: Allotment,
}

/// A job that has started and whose nodes are not free again.
#[derive(Debug)]
struct Started {
    arrival: usize,
    nodes: Vec<u32>,
}

/// The jobs that are to come, wait, run and have run.
#[derive(Debug)]
pub(crate) struct Arrivals {
    arriving: Arc<Vec<Arriving>>,
    /// So many have been submitted.
    submitted: usize,
    programs: Vec<Program>,
    queue: BatchQueue<usize>,
    nodes: u32,
    /// By the number of the job in the engine.
    running: HashMap<u32, Started>,
    /// Jobs whose end is known, with their nodes.
    ending: BinaryHeap<Reverse<(Picos, usize, Vec<u32>)>>,
    /// Of each arrival, when it started, and when its last task and all of it ended.
    ran: Vec<[Picos; 3]>,
}

impl Arrivals {
    /// On the machine of the settings; `places` has the node of each trace's tasks, among those of a job.
    ///
    /// # Errors
    /// A trace needs more nodes than there are.
    pub(crate) fn new(settings: &Settings, places: Vec<Vec<u32>>) -> Result<Option<Box<Self>>, SimError> {
        let Some(arriving) = settings.arrivals.clone() else { return Ok(None) };
        let nodes = settings.network.topology.build(1)?.nodes();
        let program = |(places, workload): (Vec<u32>, &Workload)| Program {
            nodes: places.iter().max().map_or(0, |&last| last.saturating_add(1)),
            places,
            allotment: match workload.places {
                Places::Random { .. } => Allotment::Random,
                Places::Block { .. } | Places::RoundRobin { .. } | Places::Captured | Places::Given(_) => {
                    Allotment::FirstFit
                }
            },
        };
        let programs: Vec<Program> = places.into_iter().zip(&settings.jobs).map(program).collect();
        for trace in arriving.iter().map(|arriving| arriving.trace) {
            let needed = programs[trace as usize].nodes;
            if needed > nodes {
                let trace = settings.jobs[trace as usize].trace.clone();
                return Err(SimError::TooSmall { trace, needed, nodes });
            }
        }
        Ok(Some(Box::new(Self {
            submitted: 0,
            programs,
            queue: BatchQueue::new(nodes, settings.backfill, settings.network.seed),
            nodes,
            running: HashMap::new(),
            ending: BinaryHeap::new(),
            ran: vec![[Picos::ZERO; 3]; arriving.len()],
            arriving,
        })))
    }

    /// Closes the jobs that are over, `now`. Their nodes are free when their last task has ended and their last message arrived.
    pub(crate) fn note(&mut self, engine: &mut Engine, over: &[u32], now: Picos) {
        for &job in over {
            let Some(Started { arrival, nodes }) = self.running.remove(&job) else { continue };
            let [start, ended, free] = &mut self.ran[arrival];
            *ended = engine.progress(job).filter_map(|task| task.finished).max().unwrap_or(*start);
            *free = now.max(*ended);
            self.ending.push(Reverse((*free, arrival, nodes)));
            engine.close(job);
        }
    }

    /// When a job arrives or ends next.
    pub(crate) fn next(&self) -> Option<Picos> {
        let arrives = self.arriving.get(self.submitted).map(|arriving| arriving.submit);
        let ends = self.ending.peek().map(|Reverse((at, ..))| *at);
        arrives.into_iter().chain(ends).min()
    }

    /// Jobs end and arrive at `at`, and those that can start do so, on nodes of their own.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub(crate) fn advance(
        &mut self,
        at: Picos,
        mut open: impl FnMut(u32, &[u32]) -> Result<u32, SimError>,
    ) -> Result<(), SimError> {
        while let Some(Reverse((free, ..))) = self.ending.peek()
            && *free <= at
            && let Some(Reverse((.., nodes))) = self.ending.pop()
        {
            self.queue.release(&nodes);
        }
        while let Some(arriving) = self.arriving.get(self.submitted).filter(|arriving| arriving.submit <= at)
        {
            let Program { nodes, allotment, .. } = self.programs[arriving.trace as usize];
            self.queue.submit(self.submitted, Wanted { nodes, allotment, time: arriving.time.0 });
            self.submitted += 1;
        }
        while let Some((arrival, nodes)) = self.queue.start(at.0) {
            let trace = self.arriving[arrival].trace;
            let places = &self.programs[trace as usize].places;
            let of_tasks: Vec<u32> = places.iter().map(|&place| nodes[place as usize]).collect();
            self.ran[arrival][0] = at;
            self.running.insert(open(trace, &of_tasks)?, Started { arrival, nodes });
        }
        Ok(())
    }

    /// What has become of the jobs, when all have run.
    pub(crate) fn report(&self) -> ArrivalsReport {
        let job = |(arriving, [start, ended, _]): (&Arriving, &[Picos; 3])| ArrivedJob {
            job: arriving.number,
            trace: arriving.trace,
            nodes: self.programs[arriving.trace as usize].nodes,
            submit_ps: arriving.submit.0,
            wait_ps: start.0 - arriving.submit.0,
            runtime_ps: ended.0 - start.0,
        };
        let jobs: Vec<ArrivedJob> = self.arriving.iter().zip(&self.ran).map(job).collect();
        let held = self.ran.iter().zip(&jobs);
        let held =
            held.map(|([start, _, free], job)| u128::from(free.0 - start.0) * u128::from(job.nodes)).sum();
        let last = self.ran.iter().map(|[.., free]| free.0).max().unwrap_or(0);
        let first = self.arriving.first().map_or(0, |arriving| arriving.submit.0);
        ArrivalsReport::new(jobs, held, u128::from(last - first) * u128::from(self.nodes))
    }
}
