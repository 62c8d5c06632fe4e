//! The loop between the replay, which has the messages, and the network, which has the times.

use std::ops::Range;

use replay::{
    Accounts, Collective, Engine, Follow, Left, LiveId, Message, Met, Next, Queue, Sink, Started, WaitSums,
};
use vef_format::units::Picos;

use crate::arrivals::Arrivals;
use crate::critical::Causes;
use crate::error::SimError;
use crate::in_network::{Completed, InNetwork};
use crate::latencies::{Cell, Latencies};
use crate::model::{Carried, Happened, Network, Origin, OutOfTime};
use crate::progress::{PROGRESS_EVERY, Progress};
use crate::repeats::Repeats;

/// An engine and its network.
pub(crate) struct Run<'a, N, F = ()> {
    pub(crate) engine: Engine,
    pub(crate) latencies: Latencies,
    pub(crate) output: EngineOutput<'a, N, F>,
    /// Set if jobs run more than once.
    pub(crate) repeats: Option<Box<Repeats>>,
    /// Set if jobs arrive.
    pub(crate) arrivals: Option<Box<Arrivals>>,
    /// The last moment of an event.
    now: Picos,
    until_progress: u32,
}

impl<'a, N: Network, F: Follow> Run<'a, N, F> {
    /// Starts all tasks of an engine that has not begun.
    pub(crate) fn begin(
        mut engine: Engine,
        network: N,
        accounts: Accounts,
        causes: Option<Box<Causes<'a>>>,
        waits: Option<Box<WaitSums>>,
        in_network: Option<Box<InNetwork>>,
        mut follow: F,
    ) -> Result<Self, SimError> {
        follow.begins(&engine);
        let (events, cells) = (Queue::new(), Vec::new());
        let mut output = EngineOutput {
            network,
            refused: None,
            events,
            cells,
            accounts,
            causes,
            waits,
            in_network,
            follow,
            over: Vec::new(),
            instances: Vec::new(),
        };
        engine.begin(&mut output)?;
        output.called(false)?;
        let (latencies, now, until_progress) = (Latencies::new(), Picos::ZERO, PROGRESS_EVERY);
        Ok(Self { engine, latencies, output, repeats: None, arrivals: None, now, until_progress })
    }

    /// Runs to the end, jobs as often as they are to.
    ///
    /// Terminates: jobs that run until another is over do not begin again when that is stuck.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), SimError> {
        loop {
            let Self { engine, output, repeats, arrivals, now, .. } = self;
            if let Some(repeats) = repeats {
                repeats.note(engine, &output.accounts, &output.over, *now);
            }
            if let Some(arrivals) = arrivals {
                arrivals.note(engine, &output.over, *now);
            }
            output.over.clear();
            let begins = repeats.as_ref().and_then(|repeats| repeats.next());
            let begins = begins.or(arrivals.as_ref().and_then(|arrivals| arrivals.next()));
            if self.run_until(begins.unwrap_or(Picos::MAX), progress)? {
                continue;
            }
            let Some(at) = begins else { return Ok(()) };
            self.now = at;
            let Self { engine, output, repeats, arrivals, .. } = self;
            if let Some((job, at)) =
                repeats.as_mut().and_then(|repeats| repeats.begin(engine, &mut output.accounts))
            {
                engine.repeat(job, at, output)?;
                output.called(false)?;
            }
            if let Some(arrivals) = arrivals {
                arrivals.advance(at, |trace, nodes| {
                    let job = engine.open(trace, nodes, at, output)?;
                    output.called(false)?;
                    Ok(job)
                })?;
            }
        }
    }

    /// Processes all events up to `limit`, and calls `progress` from time to time. Returns true if it stopped before, because a job is
    /// over and there are [`Run::repeats`] or [`Run::arrivals`].
    ///
    /// Terminates: each iteration consumes an event or a record, and produces no more of them than the trace has.
    pub(crate) fn run_until(
        &mut self,
        limit: Picos,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, SimError> {
        let Self { engine, latencies, output, repeats, arrivals, now: latest, until_progress } = self;
        let notes_ends = repeats.is_some() || arrivals.is_some();
        loop {
            let mut next = output.events.next().map_or(limit, |next| next.min(limit));
            if let Some(complete) = output.in_network.as_ref().and_then(|in_network| in_network.next()) {
                next = next.min(complete);
            }
            let now = match output.network.run_until(next)? {
                Some((now, Happened::Sent { tag })) => {
                    let id = LiveId::from_raw(tag);
                    if let Some(causes) = &mut output.causes {
                        causes.sent(id, now);
                    }
                    engine.sent(id, now, output)?;
                    output.called(false)?;
                    now
                }
                Some((now, Happened::Delivered { tag, latency, queued })) => {
                    let id = LiveId::from_raw(tag);
                    latencies.add(output.cells[id.slot() as usize], latency.0);
                    if let Some(causes) = &mut output.causes {
                        let way = output.network.watch().map_or(&[][..], |watch| watch.way(id));
                        causes.delivered(id, now, queued, way);
                    }
                    engine.delivered(id, now, output)?;
                    output.called(false)?;
                    now
                }
                None => match output.events.pop(next) {
                    Some((now, event)) => {
                        match event {
                            Next::Inside { message, .. } => {
                                if let Some(causes) = &mut output.causes {
                                    causes.delivered_inside(message.id, now);
                                }
                                engine.delivered(message.id, now, output)?;
                                output.called(false)?;
                            }
                            Next::Wake(wake) => {
                                if let Some(causes) = &mut output.causes {
                                    causes.wakes(&wake, now);
                                }
                                engine.wake(wake, now, output)?;
                                output.called(true)?;
                            }
                            // Submitted to the network by `take`.
                            Next::Message(_) => {}
                        }
                        now
                    }
                    None => {
                        let Some(in_network) = &mut output.in_network else { return Ok(false) };
                        let nodes = |job, id| {
                            let members = engine.members(job, id).into_iter().flatten();
                            members.map(|member| member.node).collect()
                        };
                        let Some((now, completed)) = in_network.step(next, nodes)? else { return Ok(false) };
                        if let Some(Completed { collective, member }) = completed {
                            engine.complete_member(collective, member, now, output)?;
                            output.called(false)?;
                        }
                        now
                    }
                },
            };
            *latest = now;
            if notes_ends && !output.over.is_empty() {
                return Ok(true);
            }
            *until_progress -= 1;
            if *until_progress == 0 {
                *until_progress = PROGRESS_EVERY;
                progress(Progress { delivered: engine.stats().delivered, now });
            }
        }
    }
}

/// Receives the results of the engine's calls. Messages are submitted to the network at once, with the time of their start;
/// messages within a node and wake-ups are queued here.
pub(crate) struct EngineOutput<'a, N, F = ()> {
    pub(crate) network: N,
    /// The first error of [`Network::submit`].
    refused: Option<OutOfTime>,
    pub(crate) events: Queue<Next>,
    /// Kind and size class of each live message, by slot of its id.
    pub(crate) cells: Vec<Cell>,
    pub(crate) accounts: Accounts,
    /// Set if the critical path is requested.
    pub(crate) causes: Option<Box<Causes<'a>>>,
    /// Set if it is requested who waits for whom.
    pub(crate) waits: Option<Box<WaitSums>>,
    /// Set if the network carries out collectives.
    pub(crate) in_network: Option<Box<InNetwork>>,
    /// Who else follows the tasks.
    pub(crate) follow: F,
    /// Jobs that are over, of which that was not noted.
    over: Vec<u32>,
    /// Of which of the traces each job is an instance, if it is one.
    instances: Vec<Option<u32>>,
}

impl<N: Network, F: Follow> Sink for EngineOutput<'_, N, F> {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        if let Some(causes) = &mut self.causes {
            causes.follows(&next, |job, task| self.accounts.number(job, task));
        }
        match next {
            Next::Message(message) => self.submit(&message),
            _ => self.events.push(next.at(), next),
        }
    }

    #[inline(always)]
    fn started(&mut self, started: &Started) {
        let task = self.accounts.number(started.job, started.task.0);
        if let Some(causes) = &mut self.causes {
            causes.started(task, started, self.accounts.reached(task));
        }
        if let Some(waits) = &mut self.waits {
            waits.started(started);
        }
        self.follow.started(started);
        self.accounts.started(task, started);
    }

    fn collective(&mut self, collective: &Collective) {
        if let Some(in_network) = &mut self.in_network {
            in_network.enter(collective);
        }
    }

    #[inline(always)]
    fn left(&mut self, left: &Left) {
        if let Some(waits) = &mut self.waits {
            waits.left(left);
        }
        self.follow.left(left);
    }

    fn opened(&mut self, job: u32, of: u32, tasks: Range<u32>, start: Picos) {
        self.accounts.opened(job, tasks, start);
        let at = job as usize;
        if at >= self.instances.len() {
            self.instances.resize(at + 1, None);
        }
        self.instances[at] = Some(of);
    }

    fn met(&mut self, met: &Met) {
        if let Some(waits) = &mut self.waits {
            waits.met(met);
        }
        self.follow.met(met);
    }

    fn over(&mut self, job: u32) {
        self.over.push(job);
    }
}

impl<N: Network, F: Follow> EngineOutput<'_, N, F> {
    /// Keeps the cell of a message.
    #[inline(always)]
    pub(crate) fn note(&mut self, id: LiveId, cell: Cell) {
        let slot = id.slot() as usize;
        if slot >= self.cells.len() {
            self.cells.resize(slot + 1, Cell::default());
        }
        self.cells[slot] = cell;
    }

    #[inline(always)]
    fn submit(&mut self, message: &Message) {
        let &Message { id, job, src_node, dst_node, bytes, kind, start, .. } = message;
        self.note(id, Cell::of(kind, bytes));
        if let Some(watch) = self.network.watch() {
            let trace = self.instances.get(job as usize).copied().flatten().unwrap_or(job);
            watch.handed_over(id, self.accounts.number(trace, message.src.0), trace, kind);
        }
        let origin = Origin::Job { job, kind, ranks: [message.src.0, message.dst.0] };
        let carried = Carried { src: src_node, dst: dst_node, bytes, tag: id.to_raw(), origin };
        if let Err(refused) = self.network.submit(start, carried) {
            self.refused.get_or_insert(refused);
        }
    }

    /// Follows each call of the engine; `woken` after a wake-up.
    ///
    /// # Errors
    /// The network has refused a message of the call.
    #[inline(always)]
    fn called(&mut self, woken: bool) -> Result<(), OutOfTime> {
        if let Some(causes) = &mut self.causes {
            causes.done(woken);
        }
        self.refused.map_or(Ok(()), Err)
    }
}
