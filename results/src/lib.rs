//! The results of the commands: tables with their writers, and the types of the JSON.
//!
//! ```
//! use results::table::{Cell, Column, Table, TextStyle};
//!
//! let columns = [Column::new("function", "function"), Column::new("time_ps", "time")];
//! let mut table = Table::new("calls", "MPI functions", columns);
//! table.row([Cell::text("MPI_Send"), Cell::Time(1_500_000)]);
//! assert_eq!(table.to_csv(), "function,time_ps\nMPI_Send,1500000\n");
//! assert_eq!(table.to_text(&TextStyle::WHOLE), "function      time\nMPI_Send  1.500 µs\n");
//! ```
//!
//! This crate reads no trace, calls no MPI and never prints.

#![forbid(unsafe_code)]

pub mod captured;
pub mod check;
pub mod classes;
pub mod conversion;
pub mod profile;
pub mod report;
pub mod schedule;
pub mod simulation;
pub mod sweep;
pub mod text;
pub mod traffic;

pub mod shown;
pub mod table;

mod by_state;
mod exact;
mod interval;
mod kind;
mod schema;

pub use by_state::ByState;
pub use exact::Exact;
pub use interval::Mean;
pub use kind::Kind;
