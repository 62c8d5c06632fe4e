//! What people see: traces and captures, added up and made readable.
//!
//! - [`stats`]: a trace, added up in one pass without a replay (`vef stats`);
//! - [`yardstick`]: what a replay on the yardstick network adds to that;
//! - [`report`]: the data of a report, as text, JSON and page (`vef report`); its tables, by `results`;
//! - [`text`]: a capture as time-independent text traces, a line a call, and their aggregation (`vef text`);
//! - [`profile`]: counts, times and bytes of a capture's functions (`vef profile`);
//! - [`timeline`]: what each rank did when, for trace viewers (`vef timeline`).
//!
//! This crate never calls MPI and never prints; its threads are those of the pool that it is called in.

#![forbid(unsafe_code)]

pub mod profile;
pub mod report;
pub mod stats;
pub mod text;
pub mod timeline;
pub mod yardstick;

mod flow;
mod wildcards;
