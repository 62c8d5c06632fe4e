//! Feeds VEF traces to any network simulator.
//!
//! The engine knows tasks, messages, collectives and dependencies; it knows no network. The simulator owns time and
//! topology: it carries the messages that the engine starts as it likes, and reports when they have arrived
//! ([`Engine::delivered`]), from which others follow.
//!
//! ```
//! use replay::{Engine, Job, Loaded, Next, OpCodes, Picos, Queue};
//! use std::{path::Path, sync::Arc};
//! use vef_format::text::Reader;
//!
//! // Task 0 computes for 10 ns and sends 100 bytes to task 1, which answers 5 ns after it has received them.
//! let text = "VEF3 2 2 0 0 0 0 1000\n0 0 1 100 4 10 -1\n1 1 0 50 6 5 0\n";
//! let trace = Loaded::read(Reader::from_bytes(text.as_bytes(), Path::new("trace.vef"))?, OpCodes::default())?;
//!
//! // The smallest network: every message takes 2 µs, whatever happens beside it.
//! let happens = |next: &Next| match next {
//!     Next::Message(message) => Picos(message.start.0 + 2_000_000),
//!     Next::Inside { .. } | Next::Wake(_) => next.at(),
//! };
//! let mut engine = Engine::builder().job(Job::loaded(&Arc::new(trace))).engine()?;
//! let mut events: Queue<Next> = Queue::new();
//! engine.begin(&mut |next: Next| events.push(happens(&next), next))?;
//! while let Some((now, event)) = events.pop(Picos::MAX) {
//!     let mut later = |next: Next| events.push(happens(&next), next);
//!     match event {
//!         Next::Message(message) | Next::Inside { message, .. } => engine.delivered(message.id, now, &mut later)?,
//!         Next::Wake(wake) => engine.wake(wake, now, &mut later)?,
//!     }
//! }
//! assert!(engine.is_complete());
//! assert_eq!(engine.finish(), Picos(10_000 + 2_000_000 + 5_000 + 2_000_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading the source
//!
//! A job's records come from a source (`source/`), a task at a time. A record k of a task starts at
//! `max(start(k−1), release of what it depends on) + computing time`, in picoseconds of 64 bits ([`Picos`]); a later moment is an error.
//! The files, from top to bottom; each uses those below it alone:
//!
//! ```text
//!  1  poll.rs          Replay: an engine behind a queue and a clock, for simulators that ask what is ready
//!     yardstick.rs     a network without contention;  partition.rs, exchange.rs  engines side by side in threads
//!     stuck.rs         why nothing happens;  describe.rs  what a message is;  accounts.rs  times by state
//!     waits.rs         who waits for whom;  progress.rs  how far all is;  repeat.rs  a job that runs again;  instances.rs  jobs that come and go;  checkpoint.rs  a replay's state as bytes
//!         │ calls
//!  2  engine.rs        Engine: what a simulator reports, and carrying out what the two state machines return
//!         │ Halt                          │ Released
//!  3  task.rs          Task: over      4  collective.rs   Player: each task's part of an algorithm's
//!         its records until one waits         │             schedule until it waits or is complete
//!         │                                   │
//!  5  job.rs           Job: a trace and how it is replayed;  source/ its records (text, container, memory)
//!     sequence.rs      what is kept of a task;  collective/tables.rs  of collectives
//!     live.rs          the messages under way, by the id that the simulator has of them;  parcels.rs  those of partitions;
//!     in_calls.rs      those that wait until their receiver is in a call of MPI;  departure.rs  a message that starts
//!     events.rs        which collectives are the simulator's;  closed.rs  which jobs were opened and closed
//!     part.rs          Part, Selection: a part of a run;  part/ how it is found
//!     lines.rs         which lines of the trace were sent and delivered;  states.rs  the table of ids below it
//! ```
//!
//! [`Builder`] puts these together. `docs/replay.md` has the contract with a simulator, when sends are complete, how collectives are
//! played, memory and order.
//!
//! This crate never starts a thread, never looks at a clock, never prints, and reads nothing but traces.

#![forbid(unsafe_code)]

mod accounts;
mod builder;
mod checkpoint;
mod departure;
mod describe;
mod exchange;
mod follow;
mod in_calls;
mod instances;
mod partition;
mod poll;
mod progress;
mod repeat;
mod stuck;
mod waits;
pub mod yardstick;

mod engine;

mod collective;
mod task;

mod captured;
mod closed;
mod job;
mod kept;
mod labels;
mod lines;
mod live;
mod parcels;
mod part;
mod running;
mod scale;
mod sequence;
mod source;
mod states;

mod error;
mod events;
mod message;
mod options;
mod queue;
mod stats;

/// What threads synchronise by. `tests/exchange.rs` compiles `exchange.rs` with a model checker's types of these names.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}

pub use accounts::Accounts;
pub use builder::Builder;
pub use captured::CapturedRecord;
pub use checkpoint::CheckpointError;
pub use collectives::Algorithm;
pub use collectives::choose::Table;
pub use describe::{Description, Origin, Step};
pub use engine::Engine;
pub use error::{BuildError, CollectiveProblem, NoInstance, RecordPlace, ReplayError};
pub use events::{Collective, CollectiveEvents, EventMember, EventOn};
pub use exchange::{Exchange, Seat};
pub use follow::Follow;
pub use job::{Computing, Extent, Job};
pub use labels::{Label, Labels};
pub use message::{Kind, Left, LiveId, Message, Met, Next, Sink, Started, Wake};
pub use options::{Link, Memory, SameNode, SendCompletion};
pub use part::{LeftOut, Part, PartError, PlaceInPart, Selection, Stretch};
pub use partition::Parcel;
pub use poll::Replay;
pub use progress::TaskProgress;
pub use queue::Queue;
pub use source::{Container, Found, LoadError, Loaded, SourceError, Stream};
pub use stats::{Count, Stats};
pub use stuck::{Awaited, Missing, Stuck, StuckTask, Undelivered, WaitsFor};
pub use vef_format::ids::{CollectiveId, CommId, Rank};
pub use vef_format::operation::{OpCodes, OpCodesError};
pub use vef_format::raw::Raw;
pub use vef_format::units::{Bytes, Picos, Ticks};
pub use vef_format::waits::{Cause, WaitingFor, WaitingIn};
pub use waits::{Wait, WaitSums, Waits};
