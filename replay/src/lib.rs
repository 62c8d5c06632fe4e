//! Feeds VEF traces to any network simulator.
//!
//! The engine knows tasks, messages, collectives and dependencies; it knows no network. The simulator owns time and
//! topology: it takes messages when they are ready ([`Replay::pop_ready`]), carries them as it likes, and says when
//! they have arrived ([`Replay::delivered`]), which may make others ready.
//!
//! ```no_run
//! use replay::{Job, Picos, Replay};
//! use std::{cmp::Reverse, collections::BinaryHeap, path::Path};
//!
//! // The smallest network: every message takes 2 µs, whatever happens beside it.
//! let mut replay = Replay::builder().job(Job::open(Path::new("trace.vef"))?).build()?;
//! let mut arrivals = BinaryHeap::new();
//! loop {
//!     let arrival = arrivals.peek().map(|&Reverse((at, _))| at);
//!     let Some(now) = replay.next_ready().into_iter().chain(arrival).min() else { break };
//!     if arrival == Some(now) {
//!         let Some(Reverse((at, id))) = arrivals.pop() else { break };
//!         replay.delivered(id, at)?;
//!     } else if let Some(message) = replay.pop_ready(now)? {
//!         arrivals.push(Reverse((Picos(now.0 + 2_000_000), message.id)));
//!     }
//! }
//! assert!(replay.is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Time is a number of picoseconds in 64 bits ([`Picos`]); what would go beyond is an error. A record k of a task
//! starts at `max(start(k−1), release of what it depends on) + computing time`. `docs/replay.md` tells the rest:
//! the contract with a simulator, when sends are complete, how collectives are played, memory and order.
//!
//! This crate never starts a thread, never looks at a clock, never prints, and reads nothing but traces.

#![forbid(unsafe_code)]

mod builder;
mod engine;
mod job;
mod message;
mod options;
mod source;
mod stats;
mod stuck;
pub mod yardstick;

mod advance;
mod error;

mod collective;
mod live;
mod progress;
mod ready;
mod task;

pub use builder::Builder;
pub use collectives::choose::Table;
pub use engine::{Replay, TaskProgress};
pub use error::{BuildError, CollectiveProblem, RecordPlace, ReplayError};
pub use job::Job;
pub use message::{Kind, LiveId, Message};
pub use options::{Link, SameNode, SendCompletion};
pub use source::{Container, Found, LoadError, Loaded, SourceError, Step, Stream};
pub use stats::{Count, Stats};
pub use stuck::{Awaited, Missing, Stuck, StuckTask, Undelivered, WaitsFor};
pub use vef_format::operation::{OpCodes, OpCodesError};
pub use vef_format::units::{Bytes, Picos};
