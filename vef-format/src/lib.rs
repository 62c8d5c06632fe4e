//! Records, readers and writers of VEF traces and of captures.
//!
//! A *capture* is what the interposer left behind: one stream of calls a rank, with absolute times
//! ([`capture`]). A *trace* is what a simulator replays: computing times and dependencies, no absolute
//! times ([`record`], [`text`]). This crate knows both as data and nothing of how one becomes the other.
//!
//! This crate never starts a thread, never calls MPI, never prints, and forbids `unsafe` outside one
//! module, which asks for memory ahead.

#![deny(unsafe_code)]

pub mod error;
pub mod ids;
pub mod new_file;
pub mod operation;
pub mod raw;
pub mod record;
pub mod units;

pub mod capture;
pub mod container;
pub mod text;
pub mod time_independent;
pub mod validate;

mod id_set;
mod id_table;
mod prefetch;
#[cfg(test)]
mod testing;
