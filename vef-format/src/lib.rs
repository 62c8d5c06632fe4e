//! Records, readers and writers of VEF traces and of captures.
//!
//! A *capture* is the output of the interposer: one stream of calls for each rank, with absolute times ([`capture`]). A
//! *trace* is the input of a simulator: computing times and dependencies, without absolute times ([`record`], [`text`]).
//! The crate `mixer` makes traces from captures.
//!
//! This crate never starts a thread, never calls MPI and never prints. It forbids `unsafe` outside of one module, which
//! prefetches memory.

#![deny(unsafe_code)]

pub mod account;
pub mod error;
pub mod ids;
pub mod new_file;
pub mod operation;
pub mod prefetch;
pub mod raw;
pub mod record;
pub mod state;
pub mod units;
pub mod varint;

pub mod capture;
pub mod container;
pub mod convert;
pub mod format;
pub mod text;
pub mod time_independent;
pub mod trace;
pub mod validate;

mod id_set;
mod id_table;
#[cfg(test)]
mod testing;
