//! A network with traffic beside that of its jobs: nodes send to each other by a pattern, as long as the jobs run.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use results::simulation::BackgroundReport;
use vef_format::units::{Bytes, Picos};

use super::background::Background;
use super::{Arrivals, Destinations, Sizes, SourceClock, Traffic, slot};
use crate::error::SimError;
use crate::model::{Carried, Happened, Network, Origin, OutOfTime, forward};
use crate::settings::NetworkSettings;
use crate::topology::Fabric;
use crate::watch::{background_tag, node_of_background};

/// Most messages of a node that are under way: a node with so many waits until one has arrived. So what waits in a network that
/// cannot carry the load is bounded.
const MOST_UNDER_WAY: u32 = 1000;
/// So many background messages arrive between two messages of jobs only if the latter are stuck.
const STUCK: u64 = 100_000_000;

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    submitted: u64,
    delivered: u64,
    /// Sum of latencies, in picoseconds.
    latency: u128,
}

/// The counts of a [`Beside`], which outlive it.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Rc<Cell<Counts>>,
    bytes: Bytes,
    text: String,
}

impl Counted {
    pub(crate) fn report(&self) -> BackgroundReport {
        let Counts { submitted, delivered, latency } = self.counts.get();
        BackgroundReport {
            traffic: self.text.clone(),
            messages: submitted,
            bytes: submitted.saturating_mul(self.bytes.0),
            delivered,
            latency_mean_ps: latency.checked_div(delivered.into()).unwrap_or_default() as u64,
        }
    }
}

/// A network with traffic beside that of its jobs.
pub(crate) struct Beside<N> {
    network: N,
    destinations: Destinations,
    /// Transmission time of a message.
    slot: u64,
    bytes: Bytes,
    sources: Vec<Source>,
    /// Next messages of nodes.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// Messages of jobs under way.
    of_jobs: u64,
    /// Messages that arrived since the last one of a job did.
    since: u64,
    counts: Rc<Cell<Counts>>,
}

struct Source {
    clock: SourceClock,
    under_way: u32,
}

impl<N: Network> Beside<N> {
    pub(crate) fn new(
        network: N,
        background: &Background,
        topology: &Fabric,
        settings: &NetworkSettings,
    ) -> Result<(Self, Counted), SimError> {
        let &Background { ref pattern, load } = background;
        let traffic = Traffic { arrivals: Arrivals::Poisson, seed: settings.seed, ..Traffic::default() };
        let destinations = pattern.destinations(topology, traffic.seed)?;
        let bytes = settings.message_of_one_packet();
        let slot = slot(settings, &Sizes::One(bytes))?;
        if slot == 0 {
            return Err(SimError::EmptyMessages);
        }
        if !(load > 0.0 && load <= 1.0) {
            return Err(SimError::Load(load));
        }
        let source = |node| Source {
            clock: SourceClock::new(&traffic, node, load * destinations.rate(node)),
            under_way: 0,
        };
        let sources: Vec<Source> = (0..topology.nodes()).map(source).collect();
        let first = |(node, source): (u32, &Source)| Reverse((source.clock.next(slot), node));
        let next = (0..).zip(&sources).map(first).collect();
        let counts = Rc::new(Cell::new(Counts::default()));
        let counted = Counted { counts: counts.clone(), bytes, text: background.to_string() };
        let beside = Self { network, destinations, slot, bytes, sources, next, of_jobs: 0, since: 0, counts };
        Ok((beside, counted))
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Submits the next message of a node, at `at`.
    fn send(&mut self, node: u32, at: u64) -> Result<(), OutOfTime> {
        let source = &mut self.sources[node as usize];
        source.clock.take(self.slot);
        source.under_way += 1;
        if source.under_way < MOST_UNDER_WAY {
            self.next.push(Reverse((source.clock.next(self.slot).max(at), node)));
        }
        let dst = self.destinations.draw(node, &mut source.clock.random);
        self.count(|counts| counts.submitted += 1);
        let (bytes, tag) = (self.bytes, background_tag(node));
        let message = Carried { src: node, dst, bytes, tag, origin: Origin::Background };
        self.network.submit(Picos(at), message)
    }

    fn delivered(&mut self, node: u32, now: Picos, latency: Picos) {
        self.since += 1;
        self.count(|counts| {
            counts.delivered += 1;
            counts.latency += u128::from(latency.0);
        });
        let source = &mut self.sources[node as usize];
        if source.under_way == MOST_UNDER_WAY {
            self.next.push(Reverse((source.clock.next(self.slot).max(now.0), node)));
        }
        source.under_way -= 1;
    }
}

impl<N: Network> Network for Beside<N> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        self.of_jobs += 1;
        self.network.submit(at, message)
    }

    /// Ends when nothing of the jobs is left, in the network or after it.
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        loop {
            if (limit == Picos::MAX && self.of_jobs == 0) || self.since > STUCK {
                return Ok(None);
            }
            let next = self.next.peek().map(|&Reverse(next)| next);
            let until = next.map_or(limit, |(at, _)| limit.min(Picos(at)));
            match self.network.run_until(until)? {
                Some((now, Happened::Delivered { tag, latency, queued })) => match node_of_background(tag) {
                    Some(node) => self.delivered(node, now, latency),
                    None => {
                        (self.of_jobs, self.since) = (self.of_jobs - 1, 0);
                        return Ok(Some((now, Happened::Delivered { tag, latency, queued })));
                    }
                },
                Some((now, Happened::Sent { tag })) => {
                    if node_of_background(tag).is_none() {
                        return Ok(Some((now, Happened::Sent { tag })));
                    }
                }
                None => match next {
                    Some((at, node)) if Picos(at) <= limit => {
                        self.next.pop();
                        self.send(node, at)?;
                    }
                    _ => return Ok(None),
                },
            }
        }
    }

    forward!(self => self.network);
}
