//! The C ABI of the crate `replay`: `vef_replay.h` and `TraceManager.h`, which cbindgen makes from this crate.
//!
//! [`builder`] and [`job`] describe a replay, [`instance`] is one in progress; [`trace_manager`] is the interface of
//! simulators written for VEF-TraceLib. The conventions stand once, in `cbindgen.toml`, and open the header.
//!
//! What crosses the border does so in [`border`]: pointers become references there, failures codes and texts, and
//! panics stop. Everything else is safe code, but for the signatures that C demands.
//!
//! This crate decides nothing: it has no engine, no network, no clock. It keeps no state outside of handles, but
//! for the one instance that `TraceManager.h` is about.

mod border;

pub mod builder;
pub mod checkpoint;
pub mod collective;
pub mod description;
pub mod engine;
pub mod events;
mod faults;
pub mod instance;
pub mod job;
pub mod message;
pub mod status;
pub mod trace_manager;
