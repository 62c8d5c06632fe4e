//! An event-driven network simulator that replays VEF traces.
//!
//! ```no_run
//! use sim_example::{Settings, Workload, simulate};
//!
//! let mut settings = Settings { jobs: vec![Workload::new("trace.vef")], ..Settings::default() };
//! settings.network.topology = "torus:4x4x2".parse()?;
//! settings.network.links.bandwidth = "100Gbit/s".parse()?;
//! let report = simulate(&settings, &mut |progress| eprintln!("{}", progress.now))?;
//! assert!(report.complete);
//! eprint!("{}", report.to_text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is an example of how a simulator drives `replay` ([`run`] and the loop in `driver.rs`), and a
//! reference to compare other simulators with. [`model`] has the formulas, [`topology`] the networks;
//! `docs/simulator.md` is the manual.
//!
//! This crate never prints. It starts threads only if [`Settings::threads`] asks for them, and reads the wall clock only to measure its own speed.

#![forbid(unsafe_code)]

mod driver;
mod error;
mod event_loop;
mod parallel;
mod places;
mod progress;
mod report;
mod settings;

mod accounts;
mod computing;
mod critical;
mod draw;
mod latencies;
mod modes;
mod noise;
mod spans;
mod watch;

pub mod calibration;
pub mod loggp;
pub mod model;
pub mod quantity;
pub mod routing;
pub mod topology;
pub mod traffic;

mod division;
mod histogram;
mod random;

pub use computing::{ComputeScale, ScaleError};
pub use draw::MOST_CABLES;
pub use driver::{run, run_observed, run_on, simulate};
pub use error::SimError;
pub use noise::{ComputeNoise, UnknownNoise};
pub use places::{Places, UnknownRule};
pub use progress::Progress;
pub use replay::{Link, Picos, SameNode, SendCompletion};
pub use results::simulation::Simulation;
pub use settings::{NetworkSettings, Settings, TASKS_PER_THREAD, Workload};
pub use watch::{Crossing, Observe, Watch};
