//! An event-driven network simulator that replays VEF traces.
//!
//! ```
//! use sim_example::model::Model;
//! use sim_example::{Settings, Workload, simulate};
//!
//! // Task 0 sends 1000 bytes to task 2, two links of a ring away, and 1 µs later to its neighbour.
//! let directory = tempfile::tempdir()?;
//! let trace = directory.path().join("trace.vef");
//! std::fs::write(&trace, "VEF3 4 2 0 0 0 0 1000\n0 0 2 1000 0 0 -1\n1 0 1 1000 0 1000 -1\n")?;
//!
//! let mut settings = Settings { jobs: vec![Workload::new(&trace)], ..Settings::default() };
//! settings.network.topology = "torus:4".parse()?;
//! settings.network.links.bandwidth = "8Gbit/s".parse()?;
//! let report = simulate(&settings, &mut |progress| eprintln!("{}", progress.now))?;
//! // The first: 1 µs for its bytes, and 500 ns for each of four links, with those between nodes and switches. The second: 1 µs later, but
//! // over three links.
//! assert_eq!((report.messages, report.runtime_ps), (2, 3_500_000));
//! assert_eq!(report.links.busiest[0].link, "node0->(0)");
//!
//! // Another model: processors and network interfaces that are busy, but no links.
//! settings.network.model = Model::LogGp;
//! assert_eq!(simulate(&settings, &mut |_| {})?.links.used, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is an example of how a simulator drives `replay`, and a reference to compare other simulators with. `docs/simulator.md` is the
//! manual.
//!
//! # Reading the source
//!
//! ```text
//!  1  settings.rs      what is simulated: traces (places.rs, computing.rs, noise.rs) on a network
//!     driver.rs        simulate: opens the traces, builds the network, runs, reports
//!         │
//!  2  event_loop.rs    the loop between the replay, which has the messages, and the network, which has the times
//!     parallel.rs      one such loop in each of several threads
//!         │                                    │
//!  3  model/           Network: how messages   │ latencies.rs, watch.rs, critical/   what is recorded on the way
//!     loggp/           share links             │ report.rs                                        and put into a result
//!         │
//!  4  routing/         which links a message takes
//!         │
//!  5  topology/        nodes, switches and the links between them
//! ```
//!
//! [`model`] has the formulas. A model, a topology and a routing are public traits ([`model::Network`], [`topology::Topology`],
//! [`routing::Routing`]), each with a list of those that there are; `examples/own_model.rs` and `examples/own_topology.rs` add one from
//! outside. [`traffic`] is synthetic traffic without a trace, [`calibration`] are parameters that were measured.
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

mod allocation;
mod arrivals;
mod computing;
mod critical;
mod draw;
mod in_network;
mod latencies;
mod modes;
mod noise;
mod offload;
mod repeats;
mod spans;
mod watch;

pub mod calibration;
pub mod loggp;
pub mod model;
pub mod presets;
pub mod quantity;
pub mod routing;
pub mod topology;
pub mod traffic;
pub mod tune;

mod division;
mod histogram;
mod random;

pub use computing::{ComputeScale, ScaleError};
pub use draw::MOST_CABLES;
pub use driver::{run, run_observed, run_on, simulate, simulate_followed};
pub use error::SimError;
pub use noise::{ComputeNoise, UnknownNoise};
pub use offload::{Collectives, Offload, OffloadError};
pub use places::{Places, RULES, UnknownRule};
pub use progress::Progress;
pub use repeats::Repeat;
pub use replay::{Link, Picos, SameNode, SendCompletion};
pub use results::simulation::Simulation;
pub use settings::{Arriving, NetworkSettings, Settings, TASKS_PER_THREAD, Workload};
pub use watch::{Crossing, Observe, Watch};
