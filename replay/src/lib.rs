//! Feeds VEF traces to any network simulator.
//!
//! The engine knows tasks, messages, collectives and dependencies; it knows no network. The simulator owns time and
//! topology: it carries the messages that the engine starts as it likes, and reports when they have arrived
//! ([`Engine::delivered`]), from which others follow.
//!
//! ```no_run
//! use replay::{Engine, Job, Next, Picos, Queue};
//! use std::path::Path;
//!
//! // The smallest network: every message takes 2 µs, whatever happens beside it.
//! let mut engine = Engine::builder().job(Job::open(Path::new("trace.vef"))?).engine()?;
//! let mut events: Queue<Next> = Queue::new();
//! engine.begin(&mut |next: Next| events.push(next.at(), next))?;
//! while let Some((now, event)) = events.pop(Picos::MAX) {
//!     let mut later = |next: Next| match next {
//!         Next::Message(message) => events.push(Picos(message.start.0 + 2_000_000), next),
//!         _ => events.push(next.at(), next),
//!     };
//!     match event {
//!         Next::Message(message) | Next::Inside { message, .. } => engine.delivered(message.id, now, &mut later)?,
//!         Next::Wake(wake) => engine.wake(wake, now, &mut later)?,
//!     }
//! }
//! assert!(engine.is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Replay`] is an engine behind a queue with a clock, for simulators that would rather ask for the messages that are ready at
//! a moment.
//!
//! Time is a number of picoseconds in 64 bits ([`Picos`]); what would go beyond is an error. A record k of a task
//! starts at `max(start(k−1), release of what it depends on) + computing time`. `docs/replay.md` has the rest:
//! the contract with a simulator, when sends are complete, how collectives are played, memory and order.
//!
//! This crate never starts a thread, never looks at a clock, never prints, and reads nothing but traces.

#![forbid(unsafe_code)]

mod builder;
mod engine;
mod exchange;
mod job;
mod message;
mod options;
mod poll;
mod queue;
mod source;
mod stats;
mod stuck;
pub mod yardstick;

mod error;

mod collective;
mod early;
mod ledger;
mod live;
mod partition;
mod progress;
mod run;
mod running;
mod sequence;
mod walk;

pub use builder::Builder;
pub use collectives::choose::Table;
pub use engine::{Engine, TaskProgress};
pub use error::{BuildError, CollectiveProblem, RecordPlace, ReplayError};
pub use exchange::{Exchange, Seat};
pub use job::{Computing, Job};
pub use message::{Kind, Left, LiveId, Message, Next, Sink, Started, Wake};
pub use options::{Link, SameNode, SendCompletion};
pub use partition::Parcel;
pub use poll::Replay;
pub use queue::Queue;
pub use source::{Container, Found, LoadError, Loaded, SourceError, Stream};
pub use stats::{Count, Stats};
pub use stuck::{Awaited, Missing, Stuck, StuckTask, Undelivered, WaitsFor};
pub use vef_format::operation::{OpCodes, OpCodesError};
pub use vef_format::raw::Raw;
pub use vef_format::units::{Bytes, Picos, Ticks};
