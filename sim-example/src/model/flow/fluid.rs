//! Flows with bytes to transfer: when each ends, by the rates of [`Shares`], and the token buckets of links.

use replay::Queue;
use vef_format::units::{Bytes, Picos};

use super::shares::Shares;
use crate::model::OutOfTime;

/// The token bucket of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Tokens at `since`, in bytes, and the most of them.
    pub(super) tokens: f64,
    pub(super) most: f64,
    pub(super) since: Picos,
    /// What messages leave of the link's rate, in bytes per picosecond.
    pub(super) left: f64,
}

impl Bucket {
    /// Fills it up to `now`.
    pub(super) fn fill(&mut self, now: Picos) {
        self.tokens = (self.tokens + self.left * (now.0 - self.since.0) as f64).clamp(0.0, self.most);
        self.since = now;
    }
}

/// The end of a flow beyond the range of times, unless its rate changes before.
const NEVER: Picos = Picos(Picos::MAX.0 - 1);

/// Flows with bytes to transfer, and when each ends.
pub(super) struct Fluid {
    pub(super) shares: Shares,
    /// By flow number.
    pub(super) states: Vec<State>,
    /// By link, if links have bursts.
    pub(super) buckets: Vec<Bucket>,
    pub(super) queue: Queue<Event>,
    pub(super) now: Picos,
    /// Whether flows started or ended at this moment.
    pub(super) dirty: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Bytes left.
    pub(super) left: f64,
    /// Bytes per picosecond.
    pub(super) rate: f64,
    pub(super) since: Picos,
    pub(super) bytes: Bytes,
    /// Number of the event that is valid for its end.
    pub(super) generation: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A scheduled step of a flow.
    Step(u32),
    /// The end of a flow, unless a later event replaced it.
    End { flow: u32, generation: u32 },
    /// Links fail, work again, or have another bandwidth.
    Change,
}

/// An event of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flowed {
    /// A scheduled step is due.
    Due(u32),
    /// All bytes have passed.
    Ended(u32),
    /// Links fail, work again, or have another bandwidth.
    Changed,
}

impl Fluid {
    /// Links with capacities in bytes per picosecond, and token buckets of `burst` bytes.
    pub(super) fn new(capacities: impl IntoIterator<Item = f64> + Clone, burst: Bytes) -> Self {
        let most = burst.0 as f64;
        let bucket = |left| Bucket { tokens: most, most, since: Picos::ZERO, left };
        Self {
            buckets: match burst {
                Bytes(0) => Vec::new(),
                _ => capacities.clone().into_iter().map(bucket).collect(),
            },
            shares: Shares::new(capacities),
            states: Vec::new(),
            queue: Queue::new(),
            now: Picos::ZERO,
            dirty: false,
        }
    }

    /// A link has another capacity from this moment on, in bytes per picosecond.
    pub(super) fn set_capacity(&mut self, link: u32, capacity: f64) {
        let more = self.shares.set_capacity(link, capacity);
        if let Some(bucket) = self.buckets.get_mut(link as usize) {
            bucket.fill(self.now);
            bucket.left += more;
        }
        self.dirty = true;
    }

    /// A flow that has not started.
    pub(super) fn prepare(&mut self, bytes: Bytes) -> u32 {
        let flow = self.shares.prepare();
        if flow as usize == self.states.len() {
            self.states.push(State::default());
        }
        let state = &mut self.states[flow as usize];
        (state.left, state.bytes) = (bytes.0 as f64, bytes);
        flow
    }

    /// Schedules a step of a flow.
    #[inline]
    pub(super) fn schedule(&mut self, at: Picos, flow: u32) {
        self.queue.push(at, Event::Step(flow));
    }

    /// Starts a flow.
    pub(super) fn begin(&mut self, flow: u32, weight: f64) {
        let Self { states, shares, buckets, now, .. } = self;
        let state = &mut states[flow as usize];
        (state.rate, state.since) = (0.0, *now);
        if !buckets.is_empty() {
            let mut tokens = state.left;
            for link in shares.route(flow) {
                let bucket = &mut buckets[link as usize];
                bucket.fill(*now);
                tokens = tokens.min(bucket.tokens);
            }
            shares.route(flow).for_each(|link| buckets[link as usize].tokens -= tokens);
            state.left -= tokens;
        }
        shares.begin(flow, weight);
        self.dirty = true;
    }

    /// Whether all bytes of a flow that has just begun have passed.
    pub(super) fn is_over(&self, flow: u32) -> bool {
        self.states[flow as usize].left <= 0.0
    }

    /// Removes a flow that has ended.
    pub(super) fn remove(&mut self, flow: u32) {
        self.change_rate(flow, 0.0);
        self.shares.remove(flow);
        self.dirty = true;
    }

    /// A flow stops at this moment; returns its bytes that are left. It keeps its route, but is to be withdrawn from it.
    pub(super) fn stop(&mut self, flow: u32) -> f64 {
        let state = &mut self.states[flow as usize];
        state.left = (state.left - state.rate * (self.now.0 - state.since.0) as f64).max(0.0);
        state.since = self.now;
        // The event of its end is not valid any more.
        state.generation = state.generation.wrapping_add(1);
        self.change_rate(flow, 0.0);
        self.dirty = true;
        self.states[flow as usize].left
    }

    /// Sets the rate of a flow, and what it leaves of its links'.
    pub(super) fn change_rate(&mut self, flow: u32, rate: f64) {
        let Self { shares, states, buckets, now, .. } = self;
        let more = rate - std::mem::replace(&mut states[flow as usize].rate, rate);
        if !buckets.is_empty() {
            for link in shares.route(flow) {
                let bucket = &mut buckets[link as usize];
                bucket.fill(*now);
                bucket.left -= more;
            }
        }
    }

    /// The next event up to `limit`.
    pub(super) fn next(&mut self, limit: Picos) -> Result<Option<(Picos, Flowed)>, OutOfTime> {
        loop {
            if self.dirty && self.queue.next() != Some(self.now) {
                self.share();
            }
            let Some((now, event)) = self.queue.pop(limit) else { return Ok(None) };
            match event {
                Event::Step(flow) => {
                    self.now = now;
                    return Ok(Some((now, Flowed::Due(flow))));
                }
                Event::End { flow, generation } if self.states[flow as usize].generation == generation => {
                    if now == NEVER {
                        return Err(OutOfTime { bytes: self.states[flow as usize].bytes });
                    }
                    self.now = now;
                    self.states[flow as usize].generation = generation.wrapping_add(1);
                    return Ok(Some((now, Flowed::Ended(flow))));
                }
                Event::End { .. } => {}
                Event::Change => {
                    self.now = now;
                    return Ok(Some((now, Flowed::Changed)));
                }
            }
        }
    }

    /// Updates rates and ends after all starts and ends of this moment.
    pub(super) fn share(&mut self) {
        self.dirty = false;
        self.shares.solve();
        for at in 0..self.shares.changed().len() {
            let flow = self.shares.changed()[at];
            let state = &mut self.states[flow as usize];
            state.left = (state.left - state.rate * (self.now.0 - state.since.0) as f64).max(0.0);
            state.since = self.now;
            self.change_rate(flow, self.shares.rate(flow));
            let state = &mut self.states[flow as usize];
            state.generation = state.generation.wrapping_add(1);
            // Round up to picoseconds, ignoring floating-point error.
            let exact = state.left / state.rate;
            let time = (exact - exact * 1e-13 - 1e-6).ceil().max(0.0);
            // The cast saturates.
            let end = self.now.saturating_add(Picos(time as u64)).min(NEVER);
            self.queue.push(end, Event::End { flow, generation: state.generation });
        }
    }
}
