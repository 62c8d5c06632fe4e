//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod account;
mod bad_input;
mod between;
mod capture;
mod contained;
mod creations;
mod files;
mod job;
mod lower;
mod memory;
mod model;
mod neighbourhoods;
mod one_phase;
mod original;
mod partitioned;
mod polls;
mod preempted;
mod probes;
mod stepper;
mod threads;
mod truth;
mod windows;
mod worlds;
