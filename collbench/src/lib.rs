//! Times real collectives, calibrates simulators by them, and checks the simulators.
//!
//! An application can measure at run time, on the MPI that it runs with (found at run time by `mpi-abi`, so one build
//! serves all):
//!
//! ```no_run
//! use collbench::{Plan, run};
//! use mpi_abi::api::Mpi;
//!
//! let mpi = Mpi::open(None)?;
//! mpi.init_thread(mpi.abi().constants.thread_single)?;
//! let plan = Plan {
//!     operations: vec!["allreduce".into()],
//!     algorithms: vec!["mpi".into(), "ring".into()],
//!     sizes: "8:1M".parse()?,
//!     ..Plan::default()
//! };
//! let report = run(&mpi, &plan, &mut |_| {})?;
//! let fastest = report.rows.iter().min_by(|a, b| a.summary.median.total_cmp(&b.summary.median));
//! mpi.finalize()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`bench::run`] takes each [`benchmark::Benchmark`] of the plan at each size of [`sizes::MessageSizes`]. [`case::prepare`] makes it
//! ready as a [`subject::Subject`]: a function of the MPI, a schedule of `collectives` over the MPI's messages
//! (`executor.rs`), a function of a user's library (`library.rs`) or messages (`messages.rs`); its result is verified
//! (`numbers.rs`). [`method::Stopwatch`] then starts it at all ranks again and again, on clocks that [`clock`] has
//! synchronised, until [`stats::Precision`] is met:
//!
//! ```
//! use collbench::stats::{Summary, across_launches};
//!
//! let launches = [vec![9.9, 10.0, 10.2], vec![11.9, 12.0, 12.1], vec![10.9, 11.0, 11.3]];
//! let first = Summary::of(&launches[0], 0.95).expect("there are samples");
//! assert_eq!((first.median, first.min), (10.0, 9.9));
//!
//! // The samples of one launch do not tell what the next one gives; several launches do.
//! let all = across_launches(&launches, 0.95, 1).expect("there are samples");
//! let interval = all.interval.expect("three launches are enough");
//! assert!(all.median == 11.0 && interval.low < 9.0 && interval.high > 13.0);
//! ```
//!
//! The [`Report`] has the samples and the machine; [`results`] merges and shows reports, [`plot`] draws them.
//! [`calibrate`] measures messages instead, and [`check`] simulates measured collectives on the calibrated network.
//!
//! This crate never prints, starts no thread and no process.

// Names say what fields are; docs give units and reasons.
#![allow(missing_docs)]

mod error;
mod options;

pub mod machine;
pub mod sizes;
pub mod stats;
mod switches;
pub mod timer;

pub mod clock;
pub mod world;

pub mod benchmark;
pub mod case;
pub mod executor;
pub mod factors;
pub mod library;
pub mod messages;
pub mod numbers;
pub mod subject;

pub mod bench;
pub mod method;

pub mod calibrate;
pub mod check;
pub mod plot;
pub mod results;

pub use bench::{Plan, run};
pub use benchmark::Benchmark;
pub use error::{Error, Result};
pub use library::Libraries;
pub use results::{MergedRow, Overlap, Report, Row, merge, merged_text};
pub use sizes::MessageSizes;
pub use switches::Switch;
