//! A network to measure traces by: every message takes a latency and its bytes over a bandwidth, whatever else is
//! under way. It shows whether a trace replays to its end, what is in it, and how long it takes when nothing
//! collides.

use crate::engine::Engine;
use crate::error::ReplayError;
use crate::message::{Left, LiveId, Message, Met, Next, Sink, Started, Wake};
use crate::options::Link;
use crate::queue::Queue;
use crate::stuck::Stuck;
use vef_format::units::Picos;

/// What came of a replay on the yardstick. What was in the trace is in [`Engine::stats`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the last task finished.
    pub runtime: Picos,
    /// Why it did not replay to its end, if it did not and was to.
    pub stuck: Option<Stuck>,
}

impl Outcome {
    /// Whether every record was replayed and every message delivered.
    pub fn complete(&self) -> bool {
        self.stuck.is_none()
    }
}

/// The default link: 1 µs and 10 Gbit/s.
pub fn default_link() -> Link {
    Link::whole(Picos(1_000_000), 800)
}

/// The network, as far as it is under way.
struct Network<'a, W> {
    link: &'a Link,
    watcher: &'a mut W,
    events: Queue<Event>,
    /// The first message that would arrive past the end of time.
    late: Option<Message>,
}

#[derive(Clone, Copy)]
enum Event {
    Arrival(LiveId),
    Wake(Wake),
}

impl<W: Sink> Sink for Network<'_, W> {
    fn take(&mut self, next: Next) {
        self.watcher.take(next);
        match next {
            Next::Message(message) => {
                let time = self.link.time(message.bytes);
                match time.and_then(|time| message.start.checked_add(time)) {
                    Some(at) => self.events.push(at, Event::Arrival(message.id)),
                    None => drop(self.late.get_or_insert(message)),
                }
            }
            Next::Inside { message, arrives } => self.events.push(arrives, Event::Arrival(message.id)),
            Next::Wake(wake) => self.events.push(wake.at, Event::Wake(wake)),
        }
    }

    #[inline(always)]
    fn started(&mut self, started: &Started) {
        self.watcher.started(started);
    }

    #[inline(always)]
    fn left(&mut self, left: &Left) {
        self.watcher.left(left);
    }

    fn met(&mut self, met: &Met) {
        self.watcher.met(met);
    }
}

/// Replays to the end, or as far as the trace goes.
pub fn run(engine: &mut Engine, link: &Link) -> Result<Outcome, ReplayError> {
    watch(engine, link, Picos::MAX, &mut |_| {})
}

/// As [`run`], as long as anything happens up to `until`; `watcher` receives what happens. Tasks run ahead of each other: it is
/// told of moments after `until`, too, but of all up to that.
pub fn watch(
    engine: &mut Engine,
    link: &Link,
    until: Picos,
    watcher: &mut impl Sink,
) -> Result<Outcome, ReplayError> {
    let mut network = Network { link, watcher, events: Queue::new(), late: None };
    engine.begin(&mut network)?;
    while let Some((now, event)) = network.events.pop(until) {
        network.watcher.reached(now);
        match event {
            Event::Arrival(id) => engine.delivered(id, now, &mut network)?,
            Event::Wake(wake) => engine.wake(wake, now, &mut network)?,
        }
    }
    let is_over = network.events.pop(Picos::MAX).is_none();
    match network.late {
        Some(Message { src, dst, bytes, .. }) => Err(ReplayError::Arrival { src, dst, bytes }),
        None => Ok(Outcome { runtime: engine.finish(), stuck: is_over.then(|| engine.stuck()).flatten() }),
    }
}
