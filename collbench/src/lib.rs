//! Times real collectives, calibrates simulators by them, and checks the simulators.
//!
//! An application can measure at run time:
//!
//! ```no_run
//! use collbench::{Plan, Task, run};
//! use mpi_abi::api::Mpi;
//!
//! let mpi = Mpi::open(None)?;
//! mpi.init_thread(mpi.abi().constants.thread_single)?;
//! let plan = Plan {
//!     tasks: vec![Task::named("allreduce", "mpi")?, Task::named("allreduce", "ring")?],
//!     sizes: "8:1M".parse()?,
//!     ..Plan::default()
//! };
//! let report = run(&mpi, &plan, &mut |_: &collbench::Report| {})?;
//! let fastest = report.rows.iter().min_by(|a, b| a.summary.median.total_cmp(&b.summary.median));
//! mpi.finalize()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The MPI is the one found at run time (`mpi-abi`), so one build serves all. This crate never prints, starts no thread and
//! no process.

mod error;

pub mod machine;
pub mod sizes;
pub mod stats;
mod switches;
pub mod timer;

pub mod clock;
pub mod world;

pub mod executor;
pub mod factors;
pub mod library;
pub mod subject;
pub mod verify;

pub mod bench;

pub mod calibrate;
pub mod check;
pub mod method;
pub mod plot;
pub mod results;

pub use bench::{Plan, Watch, default_tasks, run};
pub use error::{Error, Result};
pub use factors::Factors;
pub use library::Libraries;
pub use method::Method;
pub use results::{MergedRow, Overlap, Report, Row, merge, merged_text};
pub use sizes::Sizes;
pub use stats::Precision;
pub use subject::Task;
pub use switches::Switch;
pub use timer::{Timer, TimerKind};
