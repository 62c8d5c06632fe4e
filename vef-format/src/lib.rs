//! Records, readers and writers of VEF traces and of captures.
//!
//! A *capture* is the output of the interposer: one stream of calls for each rank, with absolute times ([`capture`]). A
//! *trace* is the input of a simulator: computing times and dependencies, without absolute times ([`record`]). The crate
//! `mixer` makes traces from captures. A trace is text ([`text`]) or a container ([`container`]); both hold the same lines:
//!
//! ```
//! use vef_format::container::{About, Reader, Settings};
//! use vef_format::convert::convert;
//! use vef_format::ids::Rank;
//! use vef_format::record::Line;
//! use vef_format::trace::Trace;
//! use vef_format::validate::{Options, validate};
//!
//! // Task 0 computes for 5 µs (5 000 ticks of 1 000 ps) and sends 64 B, which are awaited (4); task 1 receives them (2) and answers.
//! let directory = tempfile::tempdir()?;
//! let text = directory.path().join("two.vef");
//! std::fs::write(&text, "VEF3 2 2 1 0 0 0 1000\nC0 0 1\n0 0 1 64 4 5000 -1\n1 1 0 8 2 700 0\n")?;
//! assert!(validate(&text, &Options::default())?.is_complete());
//!
//! // Line by line, whatever the form.
//! let mut bytes = 0;
//! Trace::open(&text)?.each(|_, line| {
//!     if let Line::Message(message) = line {
//!         bytes += message.bytes.0;
//!     }
//!     Ok::<_, vef_format::trace::TraceError>(())
//! })?;
//! assert_eq!(bytes, 72);
//!
//! // In a container, the records of one task without the others'.
//! let container = directory.path().join("two.vefx");
//! convert(&text, &container, &About::default(), Settings::default())?;
//! let reader = Reader::open(&container)?;
//! let Some(Line::Message(answer)) = reader.task(Rank(1)).next()? else { panic!("task 1 sends") };
//! assert_eq!((answer.dst, answer.time.0), (Rank(0), 700));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading order
//!
//! ```text
//! ids, units, error      types of every number; places in files
//! record, operation      the lines of a trace: message, local mark, part of a collective
//! text, container        the two forms of a trace; trace.rs opens either, convert.rs turns one into the other
//! validate               what single lines cannot show: ids that exist, members that agree; repairs
//! capture                calls of each rank: event.rs has the events, layout.rs the file, events.rs reads, writer.rs writes
//! nearest                which known name a misspelt word most likely means
//! account, state         the parts of a task's time
//! ```
//!
//! This crate never starts a thread, never calls MPI and never prints. It forbids `unsafe` outside of one module, which
//! prefetches memory.

#![deny(unsafe_code)]

pub mod account;
pub mod error;
pub mod files;
pub mod id_table;
pub mod ids;
pub mod nearest;
pub mod new_directory;
pub mod new_file;
pub mod operation;
pub mod prefetch;
pub mod raw;
pub mod record;
pub mod state;
pub mod units;
pub mod varint;
pub mod waits;

pub mod capture;
pub mod container;
pub mod convert;
pub mod format;
pub mod text;
pub mod time_independent;
pub mod trace;
pub mod validate;

mod id_set;
#[cfg(test)]
mod testing;
