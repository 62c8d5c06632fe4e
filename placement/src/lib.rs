//! Computes the node of each rank as a launcher does, and searches for better placements.
//!
//! A [`Placement`] has the nodes of a job and, for each rank, its node, slot and core. The rules of a launcher
//! make one of its files and options, without running it:
//!
//! ```
//! use placement::{Request, launcher};
//!
//! let request = Request {
//!     processes: Some(4),
//!     node_list: Some("n[1-3]".parse()?),
//!     slots: Some("2".parse()?),
//!     ..Request::default()
//! };
//! let slurm = launcher("slurm").expect("one of LAUNCHERS");
//! let placement = slurm.place(&request)?;
//! assert_eq!(placement.hosts_of_ranks().collect::<Vec<_>>(), ["n1", "n1", "n2", "n3"]);
//!
//! // Open MPI maps by slot or node, or by the objects of a node.
//! let by_node = Request { map_by: Some("node".parse()?), ..request };
//! let placement = launcher("openmpi").expect("one of LAUNCHERS").place(&by_node)?;
//! assert_eq!(placement.nodes_of_ranks(), [0, 1, 2, 0]);
//! # Ok::<(), placement::Error>(())
//! ```
//!
//! Further sources are a simple rule ([`Placement::block`], [`Placement::round_robin`]), a file
//! ([`Placement::read`]: TOML, JSON, or one node per line), the hosts recorded by a capture
//! ([`Placement::captured`]), and a search for fewer hop-bytes on a network whose distances the caller knows:
//!
//! ```
//! use placement::Placement;
//! use placement::optimise::{CommMatrix, Distances, SearchOptions, optimise};
//!
//! /// Nodes in a row.
//! struct Row(u32);
//!
//! impl Distances for Row {
//!     fn nodes(&self) -> u32 {
//!         self.0
//!     }
//!
//!     fn hops(&self, a: u32, b: u32) -> u32 {
//!         a.abs_diff(b)
//!     }
//!
//!     fn order(&self) -> Vec<u32> {
//!         (0..self.0).collect()
//!     }
//! }
//!
//! let mut matrix = CommMatrix::new(4);
//! matrix.push(0, 3, 1000); // ranks 0 and 3 communicate, but are three nodes apart
//! let best = optimise(&mut matrix, &Row(4), &Placement::block(4, 4, 1)?, SearchOptions::default())?;
//! assert_eq!((best.before.hop_bytes, best.after.hop_bytes), (3000, 1000));
//! # Ok::<(), placement::Error>(())
//! ```
//!
//! For jobs that arrive one after the other, [`ArrivalList`] reads lists of the Parallel Workloads Archive, and a [`BatchQueue`] gives each job nodes
//! when it starts.
//!
//! Where to look: `request.rs` has the options of all launchers, `input/` a parser for each of their files,
//! `launchers/` the rules of each launcher, `optimise/` the search. [`LAUNCHERS`] is the list to which a further
//! launcher is added.
//!
//! The crate never prints, never runs a launcher, and knows nothing of traces, messages or simulators.

mod arrivals;
mod batch;
mod captured;
mod error;
mod file;
mod free;
mod input;
mod launchers;
pub mod optimise;
mod output;
mod placement;
mod request;

pub use arrivals::{Arrival, ArrivalList};
pub use batch::{Allotment, Backfill, BatchQueue, Wanted};
pub use captured::RecordedHost;
pub use error::Error;
pub use file::PlacementFormat;
pub use input::hwloc::Object;
pub use input::nodelist::{NodeList, SlotCounts};
pub use input::policy::{Distribution, Mapping, Ranking, Sweep};
pub use launchers::{LAUNCHERS, Launcher, launcher};
pub use placement::{Location, Node, Placement};
pub use request::Request;
